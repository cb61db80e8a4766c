"""What stands in the body of a toolset class: the records that `tool()` and `toolset()` make."""

from __future__ import annotations

from typing import Any

from .._call.spec import ToolSpec

__all__ = ["GroupMember", "ToolMember"]


class ToolMember:
    """One tool in the body of a toolset."""

    __slots__ = ("is_off", "prefix", "spec")

    def __init__(self, spec: ToolSpec[Any, Any], is_off: bool, prefix: str = "") -> None:
        self.spec = spec
        self.is_off = is_off
        self.prefix = prefix

    @property
    def name(self) -> str:
        """The tool's name on the wire."""
        return self.prefix + self.spec.definition.name


class GroupMember:
    """One nested toolset in the body of a toolset."""

    __slots__ = ("inner", "is_off", "prefix")

    def __init__(self, inner: Any, is_off: bool, prefix: str) -> None:
        self.inner = inner
        self.is_off = is_off
        self.prefix = prefix
