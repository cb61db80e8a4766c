"""A response of Converse becomes a turn.

The response names neither itself nor its model. The id of the request stands among what boto3 says
about the answer; the model, if it is known, is put beside the output as `modelId`, the word of
requests for it. What a model ran by a tool of the provider is kept and sent back as it came, as is
a block of a kind that is unknown here. (Amazon Bedrock API reference: "Converse", response.)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ... import AssistantTurn, Attachment, Usage
from ..._text.json import JsonObject, is_mapping, is_object, is_sequence, shorten
from ...turns import AssistantItem, ReasoningItem, ServerToolItem, TextItem, ToolCallItem
from ...typing import MediaType
from .._blocks import NOTHING, PROPERTY_KEYS, BlockForm, Read
from .._facts import Facts
from .._reading import (
    UNKNOWN_EVENTS,
    DecodedResponse,
    Place,
    WireCall,
    count_at,
    objects_in,
    read_call,
    replace_texts,
    total,
    usual_type,
    without_nulls,
)
from .._repair import Repairing, text_of
from .._schema.strict import ANTHROPIC

_KINDS: Final[Mapping[MediaType, str]] = {
    "image": "image",
    "video": "video",
    "audio": "audio",
    "file": "document",
}
MEDIA: Final[Mapping[str, MediaType]] = {kind: media for media, kind in _KINDS.items()}
"""The blocks that are files, and what kind of file each is."""

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
FORMATS: Final[Mapping[str, Mapping[str, str]]] = {
    "image": {form: f"image/{form}" for form in ("png", "jpeg", "gif", "webp")},
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": f"{_OFFICE}wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": f"{_OFFICE}spreadsheetml.sheet",
        "html": "text/html",
        "md": "text/markdown",
        "txt": "text/plain",
    },
    "video": {
        **{form: f"video/{form}" for form in ("mp4", "webm", "mpeg")},
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        **{form: f"audio/{form}" for form in ("wav", "flac", "ogg", "aac", "opus", "webm")},
        "mp3": "audio/mpeg",
        "m4a": "audio/mp4",
    },
}
"""By the kind of a block, its formats and the types of their files."""

_BY_TYPE: Final = {
    **{(kind, its): name for kind, names in FORMATS.items() for name, its in names.items()},
    ("audio", "audio/mp3"): "mp3",
}
# Letters, digits, one space in a row, hyphens and brackets, at most 200: so says "DocumentBlock".
_ODD: Final = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")
UNNAMED: Final = "document"
"""What stands for the name of a document, which the API demands."""


_LONGEST, _ROOT = 200, 190


def name_of(attachment: Attachment) -> str:
    """Return the name of a document as the API takes it, without its ending."""
    stem = (attachment.name or "").rpartition(".")
    return allowed_name(stem[0] or stem[2])


def allowed_name(name: object) -> str:
    """Return a name as the API takes it: itself, or what is left of it without what is refused."""
    text = name if isinstance(name, str) else ""
    return _ODD.sub(" ", text).strip()[:_LONGEST].strip() or UNNAMED


def distinct_name(name: str, taken: dict[str, int]) -> str:
    """Return a name that no other document of the request has, and note it.

    Args:
        name: The name; it is the API's to say whether capitals count, so they do not.
        taken: How many came of each name so far.

    Example:
        >>> taken = {}
        >>> [distinct_name(name, taken) for name in ("report", "Report")]
        ['report', 'Report (2)']
    """
    made, key = name, name.casefold()
    while made.casefold() in taken:
        taken[key] += 1
        made = f"{name[:_ROOT]} ({taken[key]})"
    taken[made.casefold()] = 1
    return made


def block_of(attachment: Attachment) -> JsonObject | None:
    """Make the block of a file, which goes as data; None if there is none."""
    data, kind = attachment.base64, _KINDS[attachment.media_type]
    mime_type = usual_type(attachment)
    form = _BY_TYPE.get((kind, mime_type))
    # Source code, JSON lines and the like: the API has no name for these, and reads them as text.
    if form is None and kind == "document" and mime_type.startswith("text/"):
        form = "txt"
    if not data or form is None:
        return None
    named = {"name": name_of(attachment)} if kind == "document" else {}
    return {kind: {"format": form, **named, "source": {"bytes": data}}}


_BYTES: Final = frozenset({"bytes", "redactedContent"})
FREE: Final = frozenset(
    {"input", "json", "additionalModelRequestFields", "additionalModelResponseFields"}
)
"""The fields that hold what somebody else wrote."""


def with_bytes(value: object) -> Any:
    r"""Copy a body, or messages, for boto3: with bytes where JSON has base64.

    Args:
        value: A request body, or any part of one.

    Example:
        >>> with_bytes({"image": {"format": "png", "source": {"bytes": "iVBORw=="}}})
        {'image': {'format': 'png', 'source': {'bytes': b'\x89PNG'}}}
    """
    if is_mapping(value):
        return {
            key: _decoded(item) if key in _BYTES else item if key in FREE else with_bytes(item)
            for key, item in value.items()
        }
    return [with_bytes(item) for item in value] if is_sequence(value) else value


def _decoded(text: object) -> Any:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else text
    except binascii.Error:
        return text  # the SDK says what it thinks of it


def without_bytes(value: object) -> Any:
    """Copy what boto3 gave, with base64 where it has bytes."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if is_mapping(value):
        return {key: without_bytes(item) for key, item in value.items()}
    return [without_bytes(item) for item in value] if is_sequence(value) else value


NAME: Final = "bedrock_converse"

_BLOCKS: Final = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "cachePoint"})
_FIELDS: Final = ("inferenceConfig", "guardrailConfig", "additionalModelRequestFields")


def _is_own_item(item: Mapping[str, object]) -> bool:
    return any(
        "type" not in block and not _BLOCKS.isdisjoint(block)
        for block in objects_in(item.get("content"))
    )


def _is_own_body(body: Mapping[str, object]) -> bool:
    config = body.get("toolConfig")
    return (
        any(key in body for key in _FIELDS)
        or (is_mapping(config) and "tools" in config)
        or any("type" not in block for block in objects_in(body.get("system")))
    )


FACTS: Final = Facts(
    name=NAME,
    key="messages",
    model_at="modelId",
    names_at=("toolConfig.tools[].toolSpec.name", "toolConfig.toolChoice.tool.name"),
    truncated=frozenset(
        {
            *("max_tokens", "model_context_window_exceeded"),
            *("malformed_tool_use", "malformed_model_output"),
        }
    ),
    refused=frozenset({"guardrail_intervened", "content_filtered"}),
    call_ids=re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
    call_ids_in_words="letters, digits, `_`, `.`, `:` and `-`, at most 64 characters",
    made_ids="tooluse_",
    repeats_own_ids=True,
    empty_is_missing=True,
    # Grammars are compiled as Anthropic's are, of whose models most are that take them.
    strictness=replace(ANTHROPIC, provider="Bedrock"),
    property_keys=PROPERTY_KEYS,
    schemas_at=("toolConfig.tools[].toolSpec.inputSchema.json",),
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)


def _read(block: Any) -> Read | None:
    if len(block) != 1:
        return None
    if "text" in block:
        return block["text"] or "", None, None
    (fields,) = block.values()
    if not is_object(fields):
        return None
    if fields.get("type") is not None:  # which is run by the provider itself
        return NOTHING
    return None, block.get("toolUse"), block.get("toolResult")


def _fix(block: JsonObject, position: str, repairing: Repairing) -> None:
    text = block.get("text", "")
    if not isinstance(text, str):
        problem = f"expected text, got {shorten(text)}"
        repairing.note(f"{position}.text", "not_text", problem, "Send text", "made text of it")
        block["text"] = text_of(text)
    _, _, result = _read(block) or NOTHING
    content = None if result is None else result.get("content")
    if result is None or (is_sequence(content) and all(map(is_object, content))):
        return
    repairing.note(
        f"{position}.toolResult.content",
        "result_content_not_blocks",
        f"expected a list of blocks, got {shorten(content)}",
        'Send a list, as in [{"text": ...}]',
        "put it into a list of blocks",
    )
    listed = content if is_sequence(content) else () if content is None else (content,)
    result["content"] = [each if is_object(each) else {"text": text_of(each)} for each in listed]


def _failed(same: JsonObject, text: str) -> JsonObject:
    return {"toolResult": {**same, "content": [{"text": text}], "status": "error"}}


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"text": text},
    call=lambda fields: {"toolUse": fields},
    result=_failed,
    read=_read,
    is_reasoning=lambda block: "reasoningContent" in block,
    block_looks='an object with one key, as in {"text": ...}',
    call_id="toolUseId",
    answers="toolUseId",
    inside="toolUse.",
    fix=_fix,
    takes_text=False,
    needs_ids=True,
    takes_turns=True,
)


META: Final = "ResponseMetadata"

_FREE: Final = FREE | {UNKNOWN_EVENTS}


def tidy(response: Mapping[str, Any]) -> JsonObject:
    """Copy a response without null fields, without bytes, and without the headers of HTTP."""
    payload: JsonObject = without_nulls(without_bytes(response), _FREE)
    # boto3 puts the headers of the answer here, which would be saved with every turn. The id of the
    # request is what support asks for.
    meta = payload.pop(META, None)
    if is_mapping(meta) and "RequestId" in meta:
        payload[META] = {"RequestId": meta["RequestId"]}
    return payload


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It is an error, has no message, or a field is missing or odd.
    """
    response.raise_error()
    meta = response.get(META)
    request_id = None if meta is None else meta.text_at("RequestId") or None
    finish_reason = response.text_at("stopReason")
    items = list(_items(response.need("output").need("message"), request_id))
    read = DecodedResponse(
        items, finish_reason, request_id, usage_of(response), calls_in(response.value)
    )
    return read.turn(FACTS, response)


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    return BLOCKS.calls_in(payload["output"]["message"]["content"])


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    content, call_in = payload["output"]["message"]["content"], BLOCKS.call_in
    replace_texts(content, text, _is_text, BLOCKS.text, lambda block: call_in(block) is not None)


def _is_text(block: Any) -> bool:
    return "text" in block or "citationsContent" in block


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of the cache are counted apart on this wire."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields = usage.value
    cached = count_at(fields, "cacheReadInputTokens")
    written = count_at(fields, "cacheWriteInputTokens")
    return Usage(
        input_tokens=total(count_at(fields, "inputTokens"), written, cached),
        output_tokens=count_at(fields, "outputTokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def _items(message: Place, request_id: str | None) -> Iterator[AssistantItem]:
    calls = 0
    for block in message.need("content").items():
        fields = block.object()
        # A block is told by its only key; with two it would be a matter of their order which one
        # counts.
        if len(fields) != 1:
            raise block.error(f"expected an object with one key, got {shorten(fields)}")
        (kind,) = fields
        inner = block.need(kind)
        if kind == "text":
            if text := inner.text():
                yield TextItem(text)
        elif kind == "citationsContent":
            yield TextItem(
                "".join(part.text_at("text") or "" for part in inner.items_at("content"))
            )
        elif kind == "reasoningContent":
            shown = inner.get("reasoningText")
            # Where the thinking itself is left out, only its signature comes.
            yield ReasoningItem("" if shown is None else shown.text_at("text") or "")
        # A call with a `type`, as in {"toolUse": {"type": "server_tool_use", ...}}, was run by the
        # provider.
        elif kind not in ("toolUse", "toolResult") or inner.text_at("type") is not None:
            inner.object()
            yield ServerToolItem(kind, fields)
        elif kind == "toolUse":
            call_id = inner.text_at("toolUseId")
            yield ToolCallItem(read_call(inner, "input", call_id, request_id, calls))
            calls += 1
        else:
            raise block.error("a toolResult is the program's answer, which no model sends")
