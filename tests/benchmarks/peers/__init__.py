"""The same work by other libraries, each in an environment of its own: `nox -s bench -- --peers`.

A module here is one library. It does the work with the library's public API, as its documentation
shows it; where there was a choice, a comment says what was chosen and why. The fake models answer
at once, and copy and count nothing, so that only the library is measured. Where a library meets a
provider it does so by the provider's SDK: see `sdks.py`.
"""
