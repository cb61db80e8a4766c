"""Programs that two providers run themselves, on the wire: what they call, and how it is streamed.

Both begin with the same turn: the model wrote a program, which calls `refund` and waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import pytest

from lutum_py import AssistantTurn, Toolset, tool, tool_fn
from lutum_py.dialects import anthropic_messages, openai_responses
from lutum_py.turns import ToolCallItem

Payload = dict[str, Any]
CODE: Final = "await refund({order: 'A1', cents: 9900})"
ARGUMENTS: Final = '{"order":"A1","cents":9900}'


@tool_fn
def refund(order: str, cents: int) -> str:
    """Refund an order."""
    return f"refunded {cents}"


@tool_fn
def orders(customer: str) -> list[dict[str, int]]:
    """Find the orders of a customer."""
    return [{"cents": 9900}]


@tool_fn
def note(text: str) -> str:
    """Write something down."""
    return text


class Shop(Toolset):
    """What programs may call, what both may, and what the model alone may."""

    orders = tool(orders, callers=("program",))
    refund = tool(refund, needs_approval=True, callers=("model", "program"))
    note = tool(note)


@dataclass(frozen=True)
class Wire:
    """One provider.

    Attributes:
        dialect: Its dialect.
        item: The item that its program is.
        caller: What a call says of it.
        name: What its program is called.
        given: What the model gave it.
        tool: The provider's tool that runs programs.
    """

    dialect: ModuleType
    item: Payload
    caller: Payload
    name: str
    given: Payload
    tool: Payload

    @property
    def id(self) -> str:
        """The id by which calls name the program."""
        id: str = self.item.get("call_id") or self.item["id"]
        return id

    def response(
        self, call_id: str = "c1", *, begins: bool = True, name: str = "refund"
    ) -> Payload:
        """The response in which the program calls; a later one does not repeat the program."""
        started = [self.item] if begins else []
        if self.dialect is openai_responses:
            call: Payload = {"type": "function_call", "call_id": call_id, "name": name}
            made = {**call, "arguments": ARGUMENTS, "caller": self.caller}
            return {"id": "r", "model": "m", "status": "completed", "output": [*started, made]}
        input = {"order": "A1", "cents": 9900}
        call = {"type": "tool_use", "id": call_id, "name": name, "input": input}
        return {
            "id": "r",
            "model": "m",
            "content": [*started, {**call, "caller": self.caller}],
            "stop_reason": "tool_use",
            "container": {"id": "box", "expires_at": "2026-01-01T00:00:00Z"},
        }

    def direct(self) -> Payload:
        """The response of a model that calls without a program."""
        made = self.response()
        (key,) = {"output", "content"} & made.keys()
        made[key] = [{**made[key][1], "caller": {"type": "direct"}}]
        return made

    def done(self) -> Payload:
        """The response in which the program has ended, and the model answers."""
        if self.dialect is openai_responses:
            ended: Payload = {"type": "program_output", "id": "po", "call_id": self.id}
            said: list[Payload] = [{"type": "output_text", "text": "Done.", "annotations": []}]
            message: Payload = {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "status": "completed",
            }
            output: list[Payload] = [
                {**ended, "result": "{}", "status": "completed"},
                {**message, "content": said},
            ]
            return {"id": "r2", "model": "m", "status": "completed", "output": output}
        came = {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0}
        ended = {"type": "code_execution_tool_result", "tool_use_id": self.id}
        content: list[Payload] = [
            {**ended, "content": {**came, "content": []}},
            {"type": "text", "text": "Done."},
        ]
        return {"id": "r2", "model": "m", "content": content, "stop_reason": "end_turn"}

    def events(self) -> list[Payload]:
        """The first response as a stream."""
        whole = self.response()
        if self.dialect is openai_responses:
            started: Payload = {**whole, "status": "in_progress", "output": []}
            program, call = whole["output"]
            added = {**call, "arguments": ""}
            event = "response.function_call_arguments.delta"
            return [
                {"type": "response.created", "response": started},
                {"type": "response.output_item.done", "output_index": 0, "item": program},
                {"type": "response.output_item.added", "output_index": 1, "item": added},
                {"type": event, "output_index": 1, "delta": ARGUMENTS},
                {"type": "response.output_item.done", "output_index": 1, "item": call},
                {"type": "response.completed", "response": whole},
            ]
        program, call = whole.pop("content")
        container = whole.pop("container")
        started = {**whole, "content": [], "stop_reason": None}
        made: list[Payload] = [{"type": "message_start", "message": started}]
        texts = ('{"code":"await refund({order: \'A1\', cents: 9900})"}', ARGUMENTS)
        for at, (block, text) in enumerate(zip((program, call), texts, strict=True)):
            delta = {"type": "input_json_delta", "partial_json": text}
            made += [
                {
                    "type": "content_block_start",
                    "index": at,
                    "content_block": {**block, "input": {}},
                },
                {"type": "content_block_delta", "index": at, "delta": delta},
                {"type": "content_block_stop", "index": at},
            ]
        ended = {"stop_reason": "tool_use", "container": container}
        return [*made, {"type": "message_delta", "delta": ended}, {"type": "message_stop"}]


OPENAI: Final = Wire(
    openai_responses,
    {"type": "program", "id": "pr_1", "call_id": "p1", "code": CODE, "fingerprint": "x"},
    {"type": "program", "caller_id": "p1"},
    "program",
    {"code": CODE},
    {"type": "programmatic_tool_calling"},
)
ANTHROPIC: Final = Wire(
    anthropic_messages,
    {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": CODE}},
    {"type": "code_execution_20260120", "tool_id": "s1"},
    "code_execution",
    {"code": CODE},
    {"type": "code_execution_20260521", "name": "code_execution"},
)
BOTH = pytest.mark.parametrize(
    "wire", [pytest.param(OPENAI, id="openai"), pytest.param(ANTHROPIC, id="anthropic")]
)


def callers(turn: AssistantTurn) -> list[str | None]:
    """Who made each call of a turn."""
    return [item.caller for item in turn.items if isinstance(item, ToolCallItem)]
