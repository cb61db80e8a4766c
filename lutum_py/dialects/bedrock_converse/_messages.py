"""A transcript becomes the messages of Converse.

User and assistant take turns: what one side says several times in a row becomes one message. A
document is taken beside a text only, so one without any has its name said; no two documents of a
request may have one name. Files go as data.
Models of other makers than Amazon and Anthropic refuse the status of a result ("This model doesn't
support the status field"), and DeepSeek's its own reasoning ("User messages cannot contain
reasoning content"). (Amazon Bedrock API reference: "Message", "ToolResultBlock"; what clients met:
strands-agents/sdk-python#554 and #2122, langchain-ai/langchain-aws#401.)
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, Attachment, Message, ToolResult
from ..._text.json import (
    JsonObject,
    compact_json,
    copy_json,
    is_mapping,
    is_object,
    is_sequence,
    shorten,
)
from .._blocks import BlockRendering, read_messages, rules_of
from .._history import History, Part
from .._reading import objects_in, send_as_object
from .._rendering import ModelNames
from .._repair import Repairing, along, cache_marks, property_keys, text_of
from ._decode import (
    BLOCKS,
    FACTS,
    FORMATS,
    MEDIA,
    UNNAMED,
    allowed_name,
    block_of,
    distinct_name,
    without_bytes,
)

MARKER: Final = "cachePoint"
MARKED: Final = ("toolConfig.tools[]", "system[]", "messages[].content[]")
"""The mark of the prompt cache, and the ways to the blocks that may be one."""

_JSON: Final = "messages[].content[].toolResult.content[].json"
_DOCUMENTS: Final = (
    "messages[].content[].document",
    "messages[].content[].toolResult.content[].document",
)


def _documents(request: JsonObject, repairing: Repairing) -> None:
    taken: dict[str, int] = {}
    for way in _DOCUMENTS:
        for holder, key, position in along(way, request):
            document = holder[key]
            if not is_object(document):
                continue
            name = document.get("name")
            allowed = allowed_name(name)
            made = distinct_name(allowed, taken)
            if name == made:
                continue
            is_odd = name != allowed
            repairing.note(
                f"{position}.name",
                "invalid_document_name" if is_odd else "duplicate_document_name",
                f"the provider does not take the name {shorten(name)}"
                if is_odd
                else f"an earlier document has the name {name!r} too",
                "Give each document of the request a name of its own, of letters, digits, single "
                "spaces, hyphens and brackets",
                f"named it {made!r}",
            )
            document["name"] = made


def _texts(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along("messages[].content", request):
        blocks = list(objects_in(holder[key])) if is_sequence(holder[key]) else []
        names = documents_alone(blocks)
        if names:
            repairing.note(
                position,
                "document_without_text",
                "a document has no text beside it",
                "Say something beside a document",
                "added a text with the name of the document",
            )
            holder[key].append({"text": names})


def documents_alone(blocks: Iterable[JsonObject]) -> str | None:
    """Return what names the documents in a message that has no text; None if nothing has to."""
    documents = [block["document"] for block in blocks if is_mapping(block.get("document"))]
    if not documents or any("text" in block for block in blocks):
        return None
    return ", ".join(str(each.get("name")) for each in documents)


def _blocks(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along("messages[].content[].reasoningContent", request):
        shown = holder[key].get("reasoningText") if is_mapping(holder[key]) else None
        if is_object(shown) and "text" not in shown:
            repairing.note(
                f"{position}.reasoningText.text",
                "missing_field",
                "reasoning needs its text, if only an empty one",
                "Send the text as it came",
                "put the empty text there",
            )
            shown["text"] = ""
    for holder, key, position in along("messages[].content[].toolResult.content[].audio", request):
        repairing.note(
            position,
            "file_in_result",
            "the result of a call takes no audio",
            "Send it in a message of the user",
            "put a note in its place, so that the model does not hear it",
        )
        del holder[key]
        holder["text"] = "[audio: it cannot be shown]"


def _json(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along(_JSON, request):
        value = holder[key]
        if is_mapping(value):
            continue
        repairing.note(
            position,
            "result_json_not_an_object",
            f"expected an object, got {shorten(value)}",
            "Send an object, or the JSON as a text",
            "made a text of it",
        )
        del holder[key]
        holder["text"] = "null" if value is None else text_of(value)


def _declared(request: JsonObject, repairing: Repairing) -> None:
    config = request.get("toolConfig")
    if not repairing.body or (is_mapping(config) and config.get("tools")):
        return
    tools = called(request["messages"])
    if not tools:
        return
    repairing.note(
        "toolConfig",
        "calls_without_tools",
        "the conversation has calls, and the request declares no tools",
        "Send the tools, also where the model should call none",
        "declared the tools that were called, by their names",
    )
    request["toolConfig"] = {**(config if is_mapping(config) else {}), "tools": tools}


def called(said: Iterable[Any]) -> list[JsonObject]:
    """Declare the tools that were called, which the API wants to know of."""
    names: dict[str, None] = {}
    for message in said:
        content = message.get("content") if message.__class__ is dict or is_mapping(message) else ()
        blocks: Any = content if is_sequence(content) else (content,)
        for block in blocks:
            # Asked before it is read: most blocks are something else.
            if (block.__class__ is dict or is_mapping(block)) and "toolUse" in block:
                call = BLOCKS.call_in(block)
                if call is not None:
                    name = call.get("name")
                    names[name if isinstance(name, str) else FACTS.wire_name(name)] = None
    sent = dict.fromkeys(map(FACTS.wire_name, names))
    empty: JsonObject = {"type": "object", "properties": {}}
    return [{"toolSpec": {"name": name, "inputSchema": {"json": dict(empty)}}} for name in sent]


FORM: Final = rules_of(
    BLOCKS,
    _documents,
    _texts,
    _blocks,
    _json,
    cache_marks(MARKER, *MARKED),
    property_keys(FACTS),
    _declared,
)


_OF_STATUS: Final = ("claude", "nova")


class Rendering(BlockRendering):
    """Collect the messages of user and assistant."""

    facts = FACTS
    form = BLOCKS
    growing = (*BlockRendering.growing, "_names")

    def __init__(self, model: ModelNames = None, found: object = None) -> None:
        super().__init__(model, found)
        self._names: dict[str, int] = {}

    def _message(self, message: Message, position: str) -> None:
        blocks = self._named(self.parts_of(message.text, message.attachments, position))
        names = documents_alone(blocks)
        if names:
            blocks.insert(0, {"text": names})
        self._of_user += blocks

    def _named(self, blocks: list[JsonObject]) -> list[JsonObject]:
        """Give each document a name that no other of the request has."""
        for block in blocks:
            if "document" in block:
                document = block["document"]
                document["name"] = distinct_name(document["name"], self._names)
        return blocks

    def _content_of(self, payload: Mapping[str, Any]) -> Any:
        return payload["output"]["message"]["content"]

    def _replayed(self, block: Mapping[str, object]) -> JsonObject:
        replayed: JsonObject = copy_json(block)
        if "toolUse" in replayed and "type" not in replayed["toolUse"]:
            send_as_object(replayed["toolUse"], "input")
        elif "reasoningContent" in replayed:
            shown = replayed["reasoningContent"].get("reasoningText")
            if shown is not None:
                shown.setdefault("text", "")  # which it has to have
        return replayed

    def _result_block(self, result: ToolResult, answers: JsonObject, position: str) -> JsonObject:
        # Some models refuse an empty list, and all take empty text here.
        content = self.parts_of_result(result, position) or [{"text": ""}]
        if result.attachments:
            self._named(content)
        status = {"status": "error"} if result.is_error and self._is_status_known else {}
        return {"toolResult": {**answers, "content": content, **status}}

    @property
    def _is_status_known(self) -> bool:
        """Tell whether the model takes the status of a result, which others refuse."""
        return not self.model or any(maker in name for name in self.model for maker in _OF_STATUS)

    def _is_reasoning_void(self, turn: AssistantTurn) -> bool:
        # It signs nothing, and what is not signed is taken back from it by no request.
        return "deepseek" in (turn.model or "".join(self.model))

    def _attached(self, attachment: Attachment) -> JsonObject | None:
        return block_of(attachment)

    def _attached_to_result(self, attachment: Attachment) -> JsonObject | None:
        # "ToolResultContentBlock" has no audio.
        return None if attachment.media_type == "audio" else block_of(attachment)


def read_history(history: History) -> None:
    """Read a conversation; the `system` of a body becomes the first messages."""
    read_messages(history, BLOCKS, _parts, _answer, _response)


def _response(content: object) -> JsonObject:
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _answer(block: Mapping[str, Any], position: str, history: History) -> None:
    result = block["toolResult"]
    where = f"{position}.toolResult"
    is_error, content = result.get("status") == "error", result["content"]
    # A result of one JSON block is the output itself. As text it would be a string that holds JSON,
    # and a tool that reads it again would get another type.
    if len(content) == 1 and "json" in content[0]:
        text = history.as_json(compact_json, content[0]["json"], f"{where}.content[0].json")
        history.answer_json(text, where, is_error=is_error)
    else:
        history.answer(_parts(content, f"{where}.content", history), where, is_error=is_error)
    history.rest(result, ("toolUseId", "content", "status"), where)


def _parts(content: object, position: str, history: History) -> Iterator[Part]:
    for index, block in enumerate(content if is_sequence(content) else ()):
        where = f"{position}[{index}]"
        kind = next(iter(block), "") if is_mapping(block) else ""
        if isinstance(block.get("text") if kind else None, str):
            yield block["text"]
        elif kind == "json":
            yield history.as_json(compact_json, block["json"], f"{where}.json")
        elif kind in MEDIA and is_mapping(block[kind]):
            yield from _file(kind, block[kind], f"{where}.{kind}", history)
        elif kind != "toolResult":
            history.lose(where)


def _file(
    kind: str, fields: Mapping[str, object], where: str, history: History
) -> Iterator[Attachment]:
    source = fields.get("source")
    held: Mapping[str, Any] = source if is_mapping(source) else {}
    data = without_bytes(held.get("bytes"))
    if isinstance(held.get("text"), str):
        data = base64.b64encode(held["text"].encode()).decode("ascii")
    form, name = fields.get("format", "txt"), fields.get("name")
    known = FORMATS[kind]
    yield from history.file(
        where,
        data=data,
        mime_type=known.get(str(form), "application/octet-stream"),
        media_type=MEDIA[kind],
        name=f"{name}.{form}" if name and name != UNNAMED else None,
    )
    history.rest(fields, ("format", "name", "source"), where)
