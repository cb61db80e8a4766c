"""What is known of Chat Completions: OpenAI API reference, "Create chat completion"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .._facts import Facts
from .._schema.strict import OPENAI
from .._wire.reading import objects_in

NAME: Final = "openai_chat"


# Who guesses the dialect of messages kept elsewhere asks these: plain {"role": "user"} is in
# several dialects and says nothing, so only what no other dialect has counts.
def _is_own_item(item: Mapping[str, object]) -> bool:
    of_calls = "tool_calls" in item or "tool_call_id" in item
    return of_calls or item.get("role") in ("tool", "function")


def _is_own_body(body: Mapping[str, object]) -> bool:
    roles = (message.get("role") for message in objects_in(body.get("messages")))
    tools = objects_in(body.get("tools"))
    return any(role in ("system", "developer") for role in roles) or any(
        "function" in tool for tool in tools
    )


FACTS: Final = Facts(
    name=NAME,
    key="messages",
    names_at=(
        "tools[].function.name",
        "tools[].custom.name",
        "functions[].name",
        "tool_choice.function.name",
        "tool_choice.custom.name",
        "tool_choice.allowed_tools.tools[].function.name",
        "function_call.name",
    ),
    # Of OpenAI, Mistral, DeepSeek, Zhipu, and hosts that pass on what a provider said.
    truncated=frozenset(
        {
            *("length", "model_length", "model_context_window_exceeded"),
            *("error", "insufficient_system_resource", "network_error", "abort"),
        }
    ),
    refused=frozenset({"content_filter", "sensitive"}),  # the latter of Zhipu, for its GLM
    call_ids=re.compile(r".{1,40}", re.DOTALL),
    call_ids_in_words="at most 40 characters",
    takes_own_ids=True,
    repeats_own_ids=True,
    strictness=OPENAI,
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)
