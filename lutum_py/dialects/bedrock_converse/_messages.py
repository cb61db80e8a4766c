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
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, Attachment, Message, ToolResult
from ..._text.json import JsonObject, compact_json, copy_json, is_mapping, is_sequence
from .._blocks.rendering import BlockRendering, read_messages
from .._wire.history import History, Part
from .._wire.reading import send_as_object
from .._wire.rendering import ModelNames
from ._facts import BLOCKS, FACTS, FORMATS, MEDIA, UNNAMED, block_of, distinct_name, without_bytes
from ._rules import documents_alone

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
