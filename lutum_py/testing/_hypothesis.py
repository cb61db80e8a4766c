"""The strategies behind `lutum_py.testing.strategies`; Hypothesis, or what to install for it."""

from __future__ import annotations

from ..errors import MissingExtraError

try:
    from hypothesis import Phase, event, find, reject
    from hypothesis import settings as Settings  # noqa: N812 - a class, named as one
    from hypothesis import strategies as st
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable
except ImportError as error:
    raise MissingExtraError(
        "Trying what a model may send needs the package hypothesis: "
        "python -m pip install 'lutum-py[testing]'"
    ) from error

__all__ = [
    "Flaky",
    "NoSuchExample",
    "Phase",
    "Settings",
    "Unsatisfiable",
    "event",
    "find",
    "reject",
    "st",
]
