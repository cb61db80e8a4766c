"""What a tool does to the world, as the hints of the protocol have it: read, and written."""

from __future__ import annotations

from typing import Final

from mcp.types import ToolAnnotations

from .._schema.capabilities import (
    Confirmation,
    EffectKind,
    Reversibility,
    ToolCapabilities,
    ToolEffect,
)

_NO_HINTS: Final = ToolAnnotations()
_LOCAL: Final = frozenset(
    {
        EffectKind.READ_FILE,
        EffectKind.INTROSPECT_RUNTIME,
        EffectKind.PERSIST_MEMORY,
        EffectKind.WRITE_FILE,
        EffectKind.DELETE_FILE,
    }
)
_ADDITIVE: Final = frozenset({EffectKind.PERSIST_MEMORY, EffectKind.GENERATE_MEDIA})


def capabilities_of(hints: ToolAnnotations | None, trusted: bool) -> ToolCapabilities:
    """Say what a tool does to the world; a server that is not trusted can only raise its risk.

    No hint says to what a tool does it, so it may be anything.
    """
    hints = hints or _NO_HINTS
    # A hint is what the server says about itself: that it does harm is believed of anybody, and
    # that it does none only of a server that the user trusts.
    if trusted and hints.read_only_hint:
        is_closed = hints.open_world_hint is False
        effect = ToolEffect("introspect_runtime" if is_closed else "network_request", area="*")
    elif trusted and hints.destructive_hint is False:
        effect = ToolEffect("persist_memory", confirmation=Confirmation.ON_RISK, area="*")
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


def hints_of(capabilities: ToolCapabilities, is_idempotent: bool) -> ToolAnnotations | None:
    """Say what a tool does to the world, as far as its author declared it."""
    effects = capabilities.effects
    if not effects:
        # Also of one that is idempotent here, as a program is: it is run again under its key, but
        # each request of a client is another call, and what it does would be done twice.
        return None
    mutating = [each for each in effects if each.mutating]
    # Three answers: True, what it does cannot be taken back; False, it only adds; None, the author
    # did not say, and the client assumes the worst.
    destructive: bool | None = None
    if any(each.reversibility is Reversibility.IRREVERSIBLE for each in mutating):
        destructive = True
    elif all(each.kind in _ADDITIVE for each in mutating):
        destructive = False
    return ToolAnnotations(
        read_only_hint=not mutating,
        destructive_hint=destructive,
        idempotent_hint=True if is_idempotent else None,
        open_world_hint=any(each.kind not in _LOCAL for each in effects),
    )
