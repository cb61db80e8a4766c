"""What a tool of a server may do: by what its hints say, where they are believed."""

from __future__ import annotations

from typing import Final

from mcp.types import ToolAnnotations

from .._schema.capabilities import Confirmation, Reversibility, ToolCapabilities, ToolEffect

__all__ = ["capabilities_of", "is_idempotent"]

_NO_HINTS: Final = ToolAnnotations()


def capabilities_of(hints: ToolAnnotations | None, trusted: bool) -> ToolCapabilities:
    """Say what a tool does to the world; a server that is not trusted can only raise its risk."""
    hints = hints or _NO_HINTS
    if trusted and hints.read_only_hint:
        is_closed = hints.open_world_hint is False
        effect = ToolEffect("introspect_runtime" if is_closed else "network_request")
    elif trusted and hints.destructive_hint is False:
        effect = ToolEffect("persist_memory", confirmation=Confirmation.ON_RISK)
    else:
        is_final = hints.destructive_hint is True
        effect = ToolEffect(
            "delegate_work", reversibility=Reversibility.IRREVERSIBLE if is_final else None
        )
    return ToolCapabilities(effects=[effect])


def is_idempotent(hints: ToolAnnotations | None, trusted: bool) -> bool:
    """Say whether a second call does no harm, as far as somebody vouches for it."""
    hints = hints or _NO_HINTS
    return trusted and bool(hints.read_only_hint or hints.idempotent_hint)
