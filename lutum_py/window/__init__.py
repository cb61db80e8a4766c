"""What is sent of a long conversation: views of a transcript, and what they cut of it.

Example:
    >>> from lutum_py import Session
    >>> from lutum_py.window import View
    >>> session = Session()
    >>> session.push_user("Hello")
    >>> len(View().of(session))
    1
"""

from __future__ import annotations

from ._view import Count, Cut, CutKind, Target, View

__all__ = ["Count", "Cut", "CutKind", "Target", "View"]
