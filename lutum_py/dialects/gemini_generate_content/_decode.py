"""A response of generateContent becomes a turn.

The wire has camelCase, and the SDK's own dumps may have snake_case, bytes and enumerations: all of
it is brought into the form of the wire first. A call has an id only from some hosts and models; the
others get one of ours. (Gemini API reference: "Generating content", GenerateContentResponse.)
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from ... import AssistantTurn, ToolMetadata, Usage
from ..._text.json import LEAVES, JsonObject, is_mapping, is_sequence
from ...turns import (
    AssistantItem,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from .._facts import Facts
from .._reading import (
    UNKNOWN_EVENTS,
    DecodedResponse,
    Place,
    WireCall,
    count_at,
    objects_in,
    plain,
    read_call,
    replace_texts,
    total,
    with_nulls,
)
from .._schema.compiler import gemini_schema
from ._pieces import is_in_pieces

NAME: Final = "gemini_generate_content"


def _is_own_item(item: Mapping[str, object]) -> bool:
    return "parts" in item


def _is_own_body(body: Mapping[str, object]) -> bool:
    tools = objects_in(body.get("tools"))
    fields = ("systemInstruction", "generationConfig")
    return any(key in body for key in fields) or any("functionDeclarations" in t for t in tools)


FACTS: Final = Facts(
    name=NAME,
    key="contents",
    model_at="modelVersion",
    message_word="content",
    result_word="response",
    tool_names=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    tool_names_in_words=(
        "letters, digits, `_`, `.`, `:` and `-`, a letter or `_` first, at most 64 characters"
    ),
    names_at=(
        "tools[].functionDeclarations[].name",
        "toolConfig.functionCallingConfig.allowedFunctionNames[]",
    ),
    # By the reference of FinishReason. A limit, what the model wrote wrongly, and an end for no
    # reason given: the last call may be half of one, or the one that was wrong; those before it
    # were written to their end and run. STOP and NO_IMAGE are ends of the model's own: all calls
    # run. FINISH_REASON_UNSPECIFIED is the default of the enumeration, which no whole turn has, and
    # TOO_MANY_TOOL_CALLS stops the provider's own loop before the answer.
    truncated=frozenset(
        {
            *("MAX_TOKENS", "CONTINUATION", "TOO_MANY_TOOL_CALLS"),
            *("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"),
            *("OTHER", "IMAGE_OTHER", "FINISH_REASON_UNSPECIFIED", "MISSING_THOUGHT_SIGNATURE"),
        }
    ),
    # A filter, of what was asked or said: no call runs.
    refused=frozenset(
        {
            *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "MODEL_ARMOR"),
            *("LANGUAGE", "ESCALATION", "PUP_LIMITED_DISABLED"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        }
    ),
    rewrite=gemini_schema,
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)


# What the model or a program wrote, nulls and odd keys included.
_FREE: Final = frozenset({"args", "response", UNKNOWN_EVENTS})
_OF_THE_SDK: Final = frozenset({"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"})
_BYTES: Final = frozenset({"thoughtSignature", "data"})
_SPECIAL: Final = _OF_THE_SDK | _BYTES
_SNAKE: Final = re.compile(r"_([a-z0-9])")
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_GROUNDING: Final = ("groundingMetadata", "urlContextMetadata")


def tidy(value: Any) -> Any:
    """Copy a payload in the form of the wire: camelCase, without nulls, bytes as base64."""
    # One look at all keys: a name without `_` is camelCase already, and plain leaves are shared and
    # not copied. A payload from the wire itself has nothing else; the long way below is for what an
    # SDK dumped.
    if value.__class__ is dict and "_" not in "".join(value):  # nearly all objects
        tidied: JsonObject = value.copy()
        for key, item in value.items():
            if item.__class__ in LEAVES and item is not None and key not in _SPECIAL:
                continue
            if item is None or key in _OF_THE_SDK:
                del tidied[key]
            else:
                tidied[key] = _tidy_at(key, item)
        return tidied
    if is_mapping(value):
        tidied = {}
        for key, item in value.items():
            name = _SNAKE.sub(_upper, key) if "_" in key and key not in _FREE else key
            if item is not None and name not in _OF_THE_SDK:
                tidied[name] = _tidy_at(name, item)
        return tidied
    if is_sequence(value):
        return [item if item.__class__ is str else tidy(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return plain(value)


UNTIDY: Final = (b"null", *(f'"{name}"'.encode() for name in sorted(_OF_THE_SDK)))
"""Where none of these stands in the JSON of a payload, only `has_wire_names` has to be asked."""


def has_wire_names(payload: JsonObject) -> bool:
    """Tell whether `tidy` would leave the names and bytes of what was parsed from JSON."""
    # The text does not tell, since the arguments of a call may have any names. A list that grows
    # while it is gone through takes half as long as to copy all of it.
    waiting: list[Any] = [payload]
    for each in waiting:
        if each.__class__ is list:
            waiting += [item for item in each if item.__class__ in _HOLDERS]
            continue
        if "_" in "".join(each):
            return False
        for name in _BYTES.intersection(each):
            if _tidy_at(name, each[name]) != each[name]:
                return False
        for key, item in each.items():
            if item.__class__ in _HOLDERS and key not in _FREE:
                waiting.append(item)
    return True


_HOLDERS: Final = frozenset({dict, list})
"""What holds others: a number may be of a class that remembers how it was written."""


def _tidy_at(name: str, item: Any) -> Any:
    if name in _FREE:
        return with_nulls(item)
    if name in _BYTES and isinstance(item, str):
        # The SDK dumps base64 with the letters for addresses.
        return item.translate(_TO_STANDARD)
    return tidy(item)


def _upper(match: re.Match[str]) -> str:
    return match[1].upper()


def turn_of(
    response: Place, made: Sequence[ToolMetadata] = (), usage: Usage | None = None
) -> AssistantTurn:
    """Read a tidy response.

    Args:
        response: The response.
        made: The first of its calls, if they were read before.
        usage: Its usage, if that was read before.

    Raises:
        DialectError: It is an error, has no candidate, or a field is missing or odd.
    """
    response.raise_error()
    response_id = response.text_at("responseId") or None
    candidates = response.items_at("candidates")
    items: list[AssistantItem]
    finish_reason: str | None
    refusal = None
    if candidates:
        items = list(_items(candidates[0], response_id, made))
        finish_reason = candidates[0].text_at("finishReason")
        refusal = candidates[0].value.get("finishMessage")
        if (blocked := _blocked(response)) is not None:  # a filter took back what was said
            items += blocked[0]
    else:
        blocked = _blocked(response)
        if blocked is None:
            raise response.error("the response has no candidates")
        items, finish_reason = blocked
    usage, calls = usage or usage_of(response), calls_in(response.value)
    read = DecodedResponse(items, finish_reason, response_id, usage, calls, refusal)
    return read.turn(FACTS, response)


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    candidates = payload.get("candidates", ({},))
    for part in candidates[0].get("content", {}).get("parts", ()):
        if "functionCall" in part:
            yield WireCall(part["functionCall"], "id", part["functionCall"], "args")


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    for candidate in payload.get("candidates", ())[:1]:
        parts = candidate.setdefault("content", {"role": "model"}).setdefault("parts", [])
        replace_texts(parts, text, _is_text, lambda said: {"text": said}, _is_call)


def _is_text(part: Any) -> bool:
    return "text" in part and not part.get("thought")


def _is_call(part: Any) -> bool:
    return "functionCall" in part


def _blocked(response: Place) -> tuple[list[AssistantItem], str] | None:
    """Read why the provider would not answer a prompt; None if it does not say so."""
    feedback = response.get("promptFeedback")
    reason = None if feedback is None else feedback.text_at("blockReason")
    if feedback is None or reason is None:
        return None
    return [RefusalItem(feedback.text_at("blockReasonMessage") or "")], reason


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of thoughts and of tools' prompts are counted apart."""
    usage = response.get("usageMetadata")
    return None if usage is None else usage_in(usage.value)


def usage_in(fields: Any) -> Usage:
    """Read what is in the usage of a response, or of a chunk: most of them have it."""
    reasoning = count_at(fields, "thoughtsTokenCount")
    of_tools = count_at(fields, "toolUsePromptTokenCount")
    return Usage(
        input_tokens=total(count_at(fields, "promptTokenCount"), of_tools),
        output_tokens=total(count_at(fields, "candidatesTokenCount"), reasoning),
        cached_tokens=count_at(fields, "cachedContentTokenCount"),
        reasoning_tokens=reasoning,
    )


def _items(
    candidate: Place, response_id: str | None, made: Sequence[ToolMetadata]
) -> Iterator[AssistantItem]:
    content = candidate.get("content")
    if content is not None:
        yield from items_of_parts(content.items_at("parts"), response_id, made)
    for kind in _GROUNDING:
        if kind in candidate.value:
            yield ServerToolItem(kind, candidate.need(kind).object())


def items_of_parts(
    parts: Iterable[Place], response_id: str | None, made: Sequence[ToolMetadata] = ()
) -> Iterator[AssistantItem]:
    """Read the parts of a content; what is neither text nor call, the provider ran or made."""
    index = 0
    for part in parts:
        fields = part.object()
        if "functionCall" in fields:
            # The decoder of a stream has read its calls already, and told their ids. An id that is
            # made must not be made again here: the same call would have two.
            if index < len(made):
                yield ToolCallItem(made[index])
            else:
                yield ToolCallItem(call_of(part.need("functionCall"), index, response_id))
            index += 1
        elif "functionResponse" in fields:
            raise part.error("a function response is the program's answer, which no model sends")
        elif "text" in fields:
            text = part.need_text("text")
            if text:
                yield ReasoningItem(text) if fields.get("thought") else TextItem(text)
        else:
            # A part is told by the key that holds an object: {"executableCode": {...}} beside
            # {"thoughtSignature": "..."}. So a kind that is new is kept under its own name.
            kind = next((key for key in fields if is_mapping(fields[key])), None)
            if kind is not None:
                yield ServerToolItem(kind, fields)


def call_of(call: Place, index: int, response_id: str | None) -> ToolMetadata:
    """Read a call, which comes as an object.

    Raises:
        DialectError: It has no name, or comes in pieces.
    """
    fields = call.object()
    if is_in_pieces(fields):
        raise call.error(
            "the arguments come in pieces, as in a stream; feed each chunk to `StreamDecoder`"
        )
    return read_call(call, "args", call.text_at("id"), response_id, index)
