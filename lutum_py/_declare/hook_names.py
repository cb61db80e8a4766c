"""The generated names of hooks, as in Lutum: `<member>_hook`, `<member>_gate` and so on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

Phase: TypeAlias = Literal["execution", "gates", "before", "after", "description"]

VERBS: dict[Phase, str] = {
    "execution": "on",
    "gates": "gate",
    "before": "before",
    "after": "after",
    "description": "describe",
}
"""What the decorator of each phase is called, in a hook set and in `policy`."""

HOOK_SET_NAMES = frozenset(
    {
        "after",
        "before",
        "copy",
        "describe",
        "description_overrides",
        "description_overrides_sync",
        "extend",
        "gate",
        "hook_tool_call",
        "mro",
        "on",
        "on_args",
        "register_hooks",
        "toolset",
        "with_extended",
        "with_hooks",
    }
)
"""What every hook set has, which stands above this file: no member may be called so."""

# The longer ending first: `x_description_hook` also ends in `_hook`.
_ENDINGS: tuple[tuple[str, Phase], ...] = (
    ("_description_hook", "description"),
    ("_before_hook", "before"),
    ("_after_hook", "after"),
    ("_hook", "execution"),
    ("_gate", "gates"),
)


def slot_of(members: Iterable[str], name: str) -> tuple[str, Phase] | None:
    """Return the member and the phase that a generated name stands for, or None."""
    known = set(members)
    for ending, phase in _ENDINGS:
        member = name.removesuffix(ending)
        if member != name and member in known:
            return member, phase
    return None


def generated_names(members: Iterable[str]) -> Iterator[str]:
    """Give the names of all hooks of some members, without the verb in front."""
    for member in members:
        for ending, _ in _ENDINGS:
            yield member + ending
