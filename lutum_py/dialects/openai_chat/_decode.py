"""A response of Chat Completions becomes a turn.

Many hosts speak this dialect, each in its own accent: reasoning under one of three names, content
as text or as parts, calls without an id, arguments as an object or as `""`, empty shells of fields
that are not in use, and any word, or none, as the finish reason. What a call *is* decides, never
what the finish reason says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, is_array, is_mapping, is_sequence
from ...turns import AssistantItem, ReasoningItem, RefusalItem, TextItem, ToolCallItem
from .._facts import Facts
from .._openai import tidying
from .._reading import (
    DecodedResponse,
    Place,
    WireCall,
    count_at,
    ends_early,
    objects_in,
    read_call,
    replace_texts,
    total,
)
from .._schema.strict import OPENAI

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


THOUGHTS: Final = ("thinking", "reasoning")
"""The kinds of parts that are reasoning: Mistral's, and those of Databricks."""

_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})

# Some hosts send no message where nothing was said, as Google's if a filter spoke.
_BARE: Final = frozenset({"finish_reason", "native_finish_reason", "index", "logprobs"})

_CACHED: Final = ("num_cached_tokens", "prompt_cache_hit_tokens", "cached_tokens")

CALLS: Final[Mapping[str, str]] = {"function": "arguments", "custom": "input"}
"""The kinds of calls, each the key of what is called, and where that has what the model wrote."""


# The arguments of a host that sends an object instead of text are the model's own data.
tidy: Final = tidying("arguments")
"""Copies a response without null fields and without what only the SDK puts there."""


def turn_of(response: Place, *, is_ended: bool = False) -> AssistantTurn:
    """Read a tidy response.

    Args:
        response: The response.
        is_ended: Whether it is known that the provider had come to the end.

    Raises:
        DialectError: It is an error, has no choice, or a field is missing or odd.
    """
    response.raise_error()
    choices = response.need("choices").items()
    if not choices:
        raise response.error("the response has no choices")
    choice = choices[0]
    choice.raise_error()
    response_id = response.text_at("id") or None
    finish_reason = _why_it_ended(choice)
    message = choice.get("message")
    is_bare = message is None and finish_reason and choice.object().keys() <= _BARE
    items = [] if is_bare else list(_items(message or choice.need("message"), response_id))
    usage, calls = usage_of(response), calls_in(response.value)
    # Some hosts give no finish reason. What a call cost is known only once it is whole, and what a
    # program puts around a message of its own has no id.
    is_ended = is_ended or finish_reason is not None or usage is not None or response_id is None
    read = DecodedResponse(items, finish_reason, response_id, usage, calls, is_ended=is_ended)
    return read.turn(FACTS, response)


# A router may end a turn with "stop" though the provider behind it failed, or a filter spoke there:
# that word stands beside its own. (Seen of OpenRouter: "network_error" of an empty answer.)
def _why_it_ended(choice: Place) -> str | None:
    said, behind = choice.text_at("finish_reason"), choice.text_at("native_finish_reason")
    return behind if any(ends_early(behind)) and not any(ends_early(said)) else said


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; some hosts have names of their own for it."""
    usage = response.get("usage")
    if usage is None:
        usage = response.get("x_groq")
        usage = None if usage is None else usage.get("usage")
        if usage is None:
            return None
    fields = usage.value
    # OpenAI, Mistral, DeepSeek and Moonshot each have a place of their own for what the cache gave;
    # zero is an answer, so it is None that asks on.
    cached = count_at(fields, "prompt_tokens_details", "cached_tokens")
    if cached is None and is_mapping(fields):
        counts = (count_at(fields, key) for key in _CACHED if key in fields)
        cached = next((count for count in counts if count is not None), None)
    asked, said = count_at(fields, "prompt_tokens"), count_at(fields, "completion_tokens")
    reasoning = count_at(fields, "completion_tokens_details", "reasoning_tokens")
    # xAI counts reasoning apart, as its sum tells.
    if reasoning and count_at(fields, "total_tokens") == total(asked, said, reasoning):
        said = total(said, reasoning)
    return Usage(
        input_tokens=asked,
        output_tokens=said,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        cache_write_tokens=count_at(fields, "prompt_tokens_details", "cache_write_tokens"),
    )


def kind_of(call: Mapping[str, object]) -> str:
    """Return the kind of a call, which hosts may leave out."""
    return "custom" if call.get("type") == "custom" else "function"


def function_of(message: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the call of the old single-function form; None for the empty shell that hosts send."""
    function = message.get("function_call")
    return function if is_mapping(function) and function.get("name") else None


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    message = payload["choices"][0].get("message", {})
    for call in message.get("tool_calls", ()):
        kind = kind_of(call)
        yield WireCall(call, "id", call.setdefault(kind, {}), CALLS[kind], is_text=True)
    function: Any = function_of(message)
    if function is not None:
        yield WireCall({}, "id", function, "arguments", is_text=True)


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    message = payload["choices"][0].setdefault("message", {})
    content = message.get("content")
    if is_array(content):
        replace_texts(content, text, _is_text, lambda said: {"type": "text", "text": said})
    else:
        message["content"] = text


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") == "text"


def _items(message: Place, response_id: str | None) -> Iterator[AssistantItem]:
    fields = message.object()
    # Asked first, in one look: most hosts send none of the three fields.
    if not _REASONING.isdisjoint(fields):
        yield from _reasoning(fields)
    content = fields.get("content")
    if isinstance(content, str):
        if content:
            yield TextItem(content)
    elif content is not None:
        yield from items_of_content(message.need("content").items())
    audio = message.get("audio")
    # The text of an audio answer is beside it. Hosts that send it as content too mean it once.
    if audio is not None and not content:
        transcript = audio.text_at("transcript")
        if transcript:
            yield TextItem(transcript)
    refusal = message.text_at("refusal")
    if refusal:
        yield RefusalItem(refusal)
    index = 0
    # `index` is how many there were, so that a call of the old form is numbered after them. Some
    # hosts send both forms, of one call or of two: what is there counts.
    for index, call in enumerate(message.items_at("tool_calls"), 1):
        kind = "custom" if call.text_at("type") == "custom" else "function"
        called, call_id = call.get(kind) or Place(call.dialect, {}), call.text_at("id")
        made = read_call(called, CALLS[kind], call_id, response_id, index - 1, empty="")
        yield ToolCallItem(made)
    if "function_call" in fields and function_of(fields) is not None:
        called = message.need("function_call")
        yield ToolCallItem(read_call(called, "arguments", None, response_id, index, empty=""))


Shown: TypeAlias = TextItem | RefusalItem | ReasoningItem
"""What a part of a content may be."""


def items_of_content(parts: Iterable[Place]) -> Iterator[Shown]:
    """Read the parts of a content; one of another kind says nothing."""
    for part in parts:
        if isinstance(part.value, str):
            yield TextItem(part.value)
            continue
        kind = part.text_at("type")
        if kind == "text":
            yield TextItem(part.need_text("text"))
        elif kind == "refusal":
            yield RefusalItem(part.need_text("refusal"))
        elif kind in THOUGHTS:
            yield ReasoningItem(plain_text(part.value))


def _reasoning(fields: Mapping[str, Any]) -> Iterator[AssistantItem]:
    # The same text under up to three names, of which the first that says something counts.
    for key in ("reasoning_content", "reasoning"):
        if isinstance(fields.get(key), str) and fields[key]:
            yield ReasoningItem(fields[key])
            return
    details = fields.get("reasoning_details")
    if is_sequence(details) and details:
        yield ReasoningItem(plain_text(details))


def plain_text(value: Any) -> str:
    """Return the text in a tree of parts, whatever a host calls it."""
    if is_sequence(value):
        return "".join(map(plain_text, value))
    if is_mapping(value):
        return plain_text(value.get("text") or value.get("summary") or value.get("thinking"))
    return value if isinstance(value, str) else ""
