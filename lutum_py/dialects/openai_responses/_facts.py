"""What is known of Responses: OpenAI API reference, "Create a model response"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .._facts import Facts
from .._schema.strict import OPENAI

NAME: Final = "openai_responses"

_KINDS: Final = ("function_call", "function_call_output", "reasoning", "item_reference")


def _is_own_item(item: Mapping[str, object]) -> bool:
    return item.get("type") in _KINDS


FACTS: Final = Facts(
    name=NAME,
    key="input",
    names_at=(
        "tools[].name",
        "tools[].tools[].name",
        "tool_choice.name",
        "tool_choice.tools[].name",
    ),
    truncated=frozenset(
        {
            *("max_output_tokens", "max_messages", "steered", "incomplete"),
            *("in_progress", "queued", "cancelled"),
        }
    ),
    refused=frozenset({"content_filter"}),
    call_ids=re.compile(r".{1,64}", re.DOTALL),
    call_ids_in_words="at most 64 characters",
    strictness=OPENAI,
    callers={"model": "direct", "program": "programmatic"},
    is_own_item=_is_own_item,
)


REQUIRED: Final[Mapping[str, Mapping[str, object]]] = {
    "reasoning": {"summary": []},
    "code_interpreter_call": {"code": None, "outputs": None},
}
"""By the kind of an item, the fields that it has to have, and what is in each that says nothing.

"Input[N] missing required field `summary`": newo-ether/Agora#141, 2026."""


# "Invalid 'input[16].id': 'call_b4a...'. Expected an ID that begins with 'fc'.":
# fuzhengwei/WaLiAPI#129, 2026. Which ids else are refused depends on the host.
def is_id_refused(item_id: str) -> bool:
    """Tell the id of an item that the API refuses: an empty one, and that of a call."""
    return not item_id or item_id.startswith("call_")
