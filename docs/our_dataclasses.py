"""Show the parameters of our own dataclasses as those of the standard library.

This extension of griffe tells it that the decorator of `lutum_py._text.immutable` is the standard
one, as type checkers are told.
"""

from __future__ import annotations

from typing import Any

import griffe

OURS = "lutum_py._text.immutable.dataclass"


class OurDataclasses(griffe.Extension):
    """Take our decorator for the standard one."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Rewrite the decorator of one class, before its parameters are read from it."""
        for decorator in cls.decorators:
            value = decorator.value
            if isinstance(value, griffe.ExprCall) and value.canonical_path == OURS:
                value.function = griffe.ExprName("dataclasses.dataclass")
