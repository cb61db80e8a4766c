"""What stands in the body of a toolset class: the records that `tool()` and `toolset()` make."""

from __future__ import annotations

from typing import Any

from .._call.member_options import UNSAID, MemberOptions
from .._call.spec import ToolSpec

__all__ = ["GroupMember", "ToolMember"]


class ToolMember:
    """One tool in the body of a toolset."""

    __slots__ = ("options", "spec")

    def __init__(self, spec: ToolSpec[Any, Any], options: MemberOptions) -> None:
        own = spec.definition.timeout
        if options.timeout is UNSAID and own is not None:  # said nearer than by a class or group
            options = options.inside(MemberOptions(timeout=own))
        self.spec = spec
        self.options = options


class GroupMember:
    """One nested toolset in the body of a toolset."""

    __slots__ = ("inner", "options")

    def __init__(self, inner: Any, options: MemberOptions) -> None:
        self.inner = inner
        self.options = options
