"""The generated names of hooks, as in Lutum: `<member>_hook`, `<member>_gate` and so on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from ..errors import ToolDefinitionError
from .declared import GroupMember, ToolMember

__all__ = ["HOOK_SET_NAMES", "Phase", "check_hook_names", "generated_names", "slot_of"]

Phase: TypeAlias = Literal["execution", "gates", "before", "after", "description"]

HOOK_SET_NAMES = frozenset(
    {
        "after",
        "before",
        "copy",
        "deciding",
        "describe",
        "description_overrides",
        "description_overrides_sync",
        "extend",
        "gate",
        "hook_tool_call",
        "hooks_for",
        "mro",
        "on",
        "on_args",
        "places_for",
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


def check_hook_names(toolset: str, members: Mapping[str, ToolMember | GroupMember]) -> None:
    """Make sure that each generated name stands for one hook of one member.

    Raises:
        ToolDefinitionError: Two members meet in one name.
    """
    owners: dict[str, str] = {}
    for key, member in members.items():
        if isinstance(member, ToolMember):
            for ending, _ in _ENDINGS:
                other = owners.setdefault(key + ending, key)
                if other != key:
                    raise ToolDefinitionError(
                        f"Toolset `{toolset}`: members `{other}` and `{key}` both give a hook the "
                        f"name `{key + ending}`. Rename one of the members; the tool keeps its "
                        "wire name."
                    )
    verbs = {verb + name for name in (*owners, "hooks") for verb in ("register_", "with_")}
    for key in members:
        if key in verbs:
            raise ToolDefinitionError(
                f"Toolset `{toolset}`: member `{key}` has the name of a generated method of its "
                "hook set. Rename the member; the tool keeps its wire name."
            )
