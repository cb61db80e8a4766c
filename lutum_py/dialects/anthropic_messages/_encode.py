"""A transcript becomes the messages of the Messages API.

A turn of this dialect goes back block by block as it came: thinking with its signature, what the
server ran, the order of all. The thinking of another model is left out: a model reads its own and
that of few others, and the API drops or refuses the rest. (Guide "Preserved thinking", on switching
models; what clients met: anomalyco/opencode#25005, flexion/opencode#17.) So is thinking before
which a view has cut something since: newer models sign it with all that was sent before, and refuse
it where that has changed; what they think after the cut is valid again. (Guide "Prefix checks on
thinking blocks"; earendil-works/pi#9391.) Only manual thinking keeps it: the models that have that
sign no prefix, and refuse a last turn that does not begin with its thinking. (Guide "Thinking", on
tool use.) Empty text, which a model may send and the API refuses, is left out. Everything between
two turns becomes one user message, results first. (Anthropic API reference: "Messages"; guide to
tool use: "Handle tool calls".)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import copy_json, is_mapping
from ..._transcript.assistant import AssistantTurn, RefusalItem, TextItem
from ..._transcript.message import Message
from ..._transcript.result import ToolResult
from .._wire.front_rendering import FrontRendering
from .._wire.native_search import NativeSearch
from .._wire.other_model import kept_back, told_apart
from .._wire.reading import objects_in
from .._wire.rendered_items import send_as_object
from .._wire.replay import foreign_losses, own_payload
from ._encode_blocks import blocks_of, references, result_block
from ._facts import FACTS, NAME

# Citations come with these set to null, and the API takes them only if they are there.
_NULLABLE: Final = {
    "char_location": "document_title",
    "page_location": "document_title",
    "content_block_location": "document_title",
    "web_search_result_location": "title",
    "search_result_location": "title",
}


_THINKING: Final = ("thinking", "redacted_thinking")


class Rendering(FrontRendering):
    """Collect the messages of user and assistant."""

    facts = FACTS
    found: NativeSearch | None

    def _is_refused_first(self, said: dict[str, Any]) -> bool:
        return bool(said["role"] == "assistant")

    def _result(self, result: ToolResult, position: str) -> None:
        answers = self._answers.get(result.id)
        if answers is None:
            answers = {"tool_use_id": self.ids.of(result.id)}
        found = [] if self.found is None else self.found.found_by(result)
        if found:
            self.loaded.update(found)
            self._results.append({"type": "tool_result", **answers, "content": references(found)})
        else:
            self._results.append(result_block(result, answers, position, self.losses))

    def _user(self, message: Message, position: str) -> None:
        self._of_user += blocks_of(message.text, message.attachments, position, self.losses)

    def _write(self, results: list[dict[str, Any]], of_user: list[dict[str, Any]]) -> None:
        if results or of_user:
            self.said.append({"role": "user", "content": results + of_user})

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        payload = own_payload(turn, NAME)
        if payload is None:
            self.losses.extend(foreign_losses(position, turn, NAME))
            blocks = self._neutral(turn, position)
        elif isinstance(payload["content"], str):
            self.said.append({"role": "assistant", "content": payload["content"]})
            return
        else:
            sent_back = [block for block in payload["content"] if not _is_blank(block)]
            if told_apart(turn, self.model):
                others = [block for block in sent_back if block["type"] not in _THINKING]
                if len(others) < len(sent_back):
                    self.losses.append(kept_back(position, turn, self.model, "the thinking"))
                sent_back = others
            elif self.is_changed_before and not self.whole and _binds_thinking(turn):
                sent_back = [block for block in sent_back if block["type"] not in _THINKING]
            blocks = [_replayed(block) for block in sent_back]
        sent = [block for block in blocks if block["type"] == "tool_use"]
        for block in sent:
            self.ids.send(block, "id", is_own=payload is not None)
        self._answers = {
            call.id: {"tool_use_id": block["id"]} if block.get("id") else {}
            for call, block in zip(turn.tool_calls, sent, strict=False)
        }
        self.names.send(sent, position, self.losses)
        if blocks:
            self.said.append({"role": "assistant", "content": blocks})

    def _neutral(self, turn: AssistantTurn, position: str) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": item.text}
            for item in turn.items
            if isinstance(item, TextItem | RefusalItem) and item.text.strip()
        ]
        for call, value in self._called_with(turn, position):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": value}
            blocks.append(block)
        return blocks


def is_manual(extra: Mapping[str, Any]) -> bool:
    """Tell whether a request asks for thinking with a budget, which newer models do not take."""
    thinking = extra.get("thinking")
    return is_mapping(thinking) and thinking.get("type") == "enabled"


def _binds_thinking(turn: AssistantTurn) -> bool:
    """Tell whether thinking may be bound to what was sent before it: other vendors sign nothing."""
    return turn.model is None or "claude" in turn.model.lower()


def _is_blank(block: Mapping[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _replayed(block: Mapping[str, Any]) -> dict[str, Any]:
    replayed: dict[str, Any] = copy_json(block)
    for citation in objects_in(replayed.get("citations")):
        nullable = _NULLABLE.get(str(citation.get("type")))
        if nullable is not None:
            citation.setdefault(nullable, None)
        citation.pop("file_id", None)
    if replayed["type"] == "tool_use":
        send_as_object(replayed, "input")
    return replayed
