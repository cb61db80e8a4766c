"""How much Hypothesis tries: a profile for people, two for CI, and one for hours.

`HYPOTHESIS_PROFILE` names one; without it, `CI` chooses the second, and otherwise the first holds.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

__all__ = ["load_profile", "scaled"]

_USUAL = 100
"""The number of examples that a test's own number is meant beside."""

# A slow machine is no fault of the code.
_PATIENT = settings(
    settings.get_profile("default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("quick", _PATIENT, max_examples=25)
# Every run tries the same, so that a change fails for what it changes.
settings.register_profile("ci", _PATIENT, max_examples=50, derandomize=True, database=None)
# For the second Python, and the third: what the code does is tried at length on the first.
settings.register_profile("again", _PATIENT, max_examples=20, derandomize=True, database=None)
settings.register_profile("soak", _PATIENT, max_examples=1_000)


def load_profile() -> None:
    """Load the profile that the environment chooses."""
    chosen = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "quick")
    settings.load_profile(chosen)


def scaled(examples: int) -> int:
    """Scale a test's own number of examples, chosen beside the usual 100, with the profile."""
    return max(1, examples * settings().max_examples // _USUAL)
