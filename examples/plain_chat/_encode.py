"""From a transcript to messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutum_py import AssistantTurn, Message, ToolResult
from lutum_py.dialects.authoring import Rendering as _Rendering

from ._facts import FACTS


class Rendering(_Rendering):
    """Collect what everybody said."""

    facts = FACTS

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        payload = self.payload_of(turn, position)
        said = _neutral(turn) if payload is None else _replayed(payload["message"])
        self.facts.send_names(said["calls"])
        self.said.append(said)

    def _result(self, result: ToolResult, position: str) -> None:
        self.said.append({"role": "tool", "id": result.id, "content": result.model_text})
        self.lose_files(result.attachments, position, "a result")

    def _message(self, message: Message, position: str) -> None:
        self.said.append({"role": message.role, "content": message.text})
        self.lose_files(message.attachments, position, "a message")


def _neutral(turn: AssistantTurn) -> dict[str, Any]:
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in turn.tool_calls
    ]
    return {"role": "assistant", "content": turn.text, "calls": calls}


def _replayed(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [dict(call) for call in message.get("calls", ())]
    return {"role": "assistant", "content": "", **message, "calls": calls}
