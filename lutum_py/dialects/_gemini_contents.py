"""A transcript becomes the contents of generateContent.

A turn of this dialect goes back as it came, with its thought signatures. The results of a turn make
one content with one part for each call, in the order of the calls; files that go with them, and
what the user says, come in a content of their own after it. A call of another provider has no
thought signature, which newer models demand: the one that Google documents for turns of other
models stands in. (Gemini API reference: "Content"; guides to function calling and to
thought signatures.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .._assistant import AssistantTurn, RefusalItem, TextItem
from .._attachment import Attachment
from .._json import copy_json
from .._message import Message
from .._request import TranscriptItem
from .._result import ToolResult
from ._attached import data_of
from ._gemini_turn import DIALECT
from ._losses import Loss
from ._replay import foreign_losses, own_payload
from ._sent_arguments import UNREADABLE, arguments_object

__all__ = ["FOREIGN_SIGNATURE", "Rendering", "render"]

FOREIGN_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Base64 of `skip_thought_signature_validator`."""


class Rendering:
    """Collect contents, the texts that belong beside them, and what was lost.

    Attributes:
        contents: The contents of user and model.
        system: The texts of system and developer, in order.
        losses: What was lost.
    """

    def __init__(self) -> None:
        self.contents: list[dict[str, Any]] = []
        self.system: list[str] = []
        self.losses: list[Loss] = []
        self._results: list[dict[str, Any]] = []
        self._said: list[dict[str, Any]] = []
        self._ids: dict[str, str | None] = {}
        self._begun = False

    def add(self, index: int, item: TranscriptItem) -> None:
        """Take the next item of the transcript."""
        position = f"items[{index}]"
        if isinstance(item, AssistantTurn):
            self.flush()
            self._turn(item, position)
        elif isinstance(item, ToolResult):
            self._result(item)
        elif isinstance(item, Message):
            if item.role != "user":
                self._instruct(item, position)
                return
            self._said += _parts(item.text, item.attachments)
        else:
            raise TypeError(f"expected a message, turn or result, got {item!r}")
        self._begun = True

    def flush(self) -> None:
        """Close the contents that are being collected."""
        for parts in (self._results, self._said):
            if parts:
                self.contents.append({"role": "user", "parts": parts})
        self._results = []
        self._said = []

    def _instruct(self, message: Message, position: str) -> None:
        if message.text:
            self.system.append(message.text)
            if self._begun:
                text = f"{DIALECT} has one place for instructions: this one moves to the front"
                self.losses.append(Loss(position, text))
        for index, attachment in enumerate(message.attachments):
            where = f"{position}.attachments[{index}]"
            text = f"an instruction takes no {attachment.media_type} in {DIALECT}"
            self.losses.append(Loss(where, text))

    def _result(self, result: ToolResult) -> None:
        response: dict[str, Any] = {"name": result.name}
        call_id = self._ids.get(result.id)
        if call_id is not None:
            response["id"] = call_id
        if result.is_error:
            response["response"] = {"error": result.model_text}
        else:
            value = result.output if result.message is None else result.message
            response["response"] = {"output": value}
        self._results.append({"functionResponse": response})
        self._said += _parts("", result.attachments)

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        payload = own_payload(turn, DIALECT)
        self._ids = {}
        if payload is None:
            self.losses.extend(foreign_losses(position, turn, DIALECT))
            content: dict[str, Any] = {"role": "model", "parts": self._neutral(turn, position)}
        else:
            content = _replayed(payload)
            sent = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            for call, fields in zip(turn.tool_calls, sent, strict=False):
                self._ids[call.id] = fields.get("id")
        if content["parts"]:
            self.contents.append(content)

    def _neutral(self, turn: AssistantTurn, position: str) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [
            {"text": item.text}
            for item in turn.items
            if isinstance(item, TextItem | RefusalItem) and item.text
        ]
        for number, call in enumerate(turn.tool_calls):
            value, is_read = arguments_object(call.arguments)
            if not is_read:
                where = f"{position}.tool_calls[{number}]"
                text = f"the arguments are no JSON object; their text goes out as {UNREADABLE}"
                self.losses.append(Loss(where, text))
            part: dict[str, Any] = {"functionCall": {"name": call.name, "args": value}}
            if not number:
                part["thoughtSignature"] = FOREIGN_SIGNATURE
            parts.append(part)
        return parts


def render(items: Iterable[TranscriptItem]) -> Rendering:
    """Render messages, turns and results, and say what was lost.

    Raises:
        TypeError: An item is none of the three.
    """
    rendering = Rendering()
    for index, item in enumerate(items):
        rendering.add(index, item)
    rendering.flush()
    return rendering


def _replayed(payload: Mapping[str, Any]) -> dict[str, Any]:
    content: Any = next((each.get("content") for each in payload.get("candidates", ())), None)
    replayed: dict[str, Any] = {"role": "model", **copy_json(content or {})}
    replayed["parts"] = [part for part in replayed.get("parts", ()) if part]
    return replayed


def _parts(text: str, attachments: Iterable[Attachment]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for attachment in attachments:
        if attachment.caption:
            parts.append({"text": attachment.caption})
        data = data_of(attachment)
        kind = {"mimeType": attachment.mime_type}
        if data is None:
            parts.append({"fileData": {**kind, "fileUri": attachment.url}})
        else:
            parts.append({"inlineData": {**kind, "data": data}})
    return parts
