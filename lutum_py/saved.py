"""Read JSON that was saved, for stores of your own: every surprise is an error that says where.

Example:
    >>> from lutum_py.errors import PlanError
    >>> from lutum_py.saved import Saved
    >>> Saved({"calls": [{"id": 7}]}, "$", PlanError).inner("ticket")
    Traceback (most recent call last):
    lutum_py.errors.PlanError: Damaged data at $.ticket: it is missing.
"""

from __future__ import annotations

from ._transcript.saved import Saved, check_key

__all__ = ["Saved", "check_key"]
