"""Suites that others wrote, run against this library: `python -m nox -s conformance`."""
