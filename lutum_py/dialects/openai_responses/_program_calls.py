"""The items of Responses that the program has to answer beside functions, and what answers each.

"No tool output found for local shell call call_...": openai/openai-agents-python#1855, 2025. Which
items there are is in the types of the package `openai`. What the provider runs has an `id` alone;
an item of an unknown kind that has a `call_id` waits for the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..._text.json import compact_json, is_mapping
from .._findings import OUTCOME_UNKNOWN
from .._wire.reading import text_or_none
from ._decode import ANSWERS

_TEXT: Final = {"output": compact_json(OUTCOME_UNKNOWN)}
_SHELL: Final = {"stdout": "", "stderr": OUTCOME_UNKNOWN, "outcome": {"type": "timeout"}}

PROGRAM_CALLS: Final[Mapping[str, tuple[str, dict[str, Any] | None]]] = {
    "local_shell_call": ("local_shell_call_output", _TEXT),
    "shell_call": ("shell_call_output", {"output": [_SHELL]}),
    "apply_patch_call": (
        "apply_patch_call_output",
        {"status": "failed", "output": OUTCOME_UNKNOWN},
    ),
    # A picture of the screen, which nobody can make up.
    "computer_call": ("computer_call_output", None),
    "mcp_approval_request": (
        "mcp_approval_response",
        {"approve": False, "reason": "Nobody decided."},
    ),
}
"""By the kind of each call, what answers it, and what an answer says that nobody gave; None if
there is no such answer."""

_OUTPUTS: Final = frozenset(kind for kind, _ in PROGRAM_CALLS.values())


def unanswered(items: Iterable[Mapping[str, Any]]) -> list[int]:
    """Find the calls of the program, functions aside, that no item answers: their places."""
    waiting: dict[tuple[str, Any], int] = {}
    for place, item in enumerate(items):
        kind = str(item.get("type"))
        if kind in PROGRAM_CALLS or _is_unknown(item, kind):
            if not _is_hosted(item):
                key = item.get("id" if kind == "mcp_approval_request" else "call_id")
                waiting[answer_of(kind), text_or_none(key)] = place
        elif kind in _OUTPUTS or kind.endswith("_output"):
            for name in ("call_id", "approval_request_id", "id"):
                waiting.pop((kind, text_or_none(item.get(name))), None)
    return sorted(waiting.values())


def answer_of(kind: str) -> str:
    """Return the kind of the item that answers a kind of call."""
    return PROGRAM_CALLS[kind][0] if kind in PROGRAM_CALLS else f"{kind}_output"


def made_answer(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """Make the answer that says that nobody answered; None if there can be none."""
    kind = str(call.get("type"))
    answer, says = PROGRAM_CALLS.get(kind, ("", None))
    if says is None:
        return None
    if kind == "mcp_approval_request":
        return {"type": answer, "approval_request_id": call.get("id"), **says}
    same = {key: call[key] for key in ("call_id", "caller") if call.get(key) is not None}
    return {"type": answer, **same, **says}


def _is_unknown(item: Mapping[str, Any], kind: str) -> bool:
    has_id = isinstance(item.get("call_id"), str)
    return has_id and kind.endswith("_call") and kind not in ANSWERS


def _is_hosted(item: Mapping[str, Any]) -> bool:
    """Tell a shell that runs in a container of the provider's."""
    environment = item.get("environment")
    return is_mapping(environment) and environment.get("type") not in (None, "local")
