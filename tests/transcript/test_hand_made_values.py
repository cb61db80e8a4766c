"""The laws of values that a program makes by hand: each field is checked where it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Decision,
    Message,
    Reply,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    ToolResult,
    TurnRequest,
    Usage,
)
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem, ToolCallItem
from lutum_py.typing import ToolChoice
from tests.cases import over

SAID: Any = [Message("user", "Hi")]
FILE: Any = {"media_type": "image", "mime_type": "image/png", "url": "data:,x"}
CALL: Any = ToolMetadata(id="c1", name="add", arguments="{}")
ANSWER: Any = {"id": "c1", "name": "add", "arguments": "{}", "result": "3"}
DESCRIBED: Any = {"name": "add", "description": "Add.", "input_schema": {"type": "object"}}
DECIDED: Any = {"call_id": "c1", "action": "resume"}

MISUSES: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (TextItem, {"text": 3}, "TextItem takes a text for `text`, not 3."),
    (ReasoningItem, {"text": None}, "ReasoningItem takes a text for `text`, not None."),
    (RefusalItem, {"text": b"no"}, "RefusalItem takes a text for `text`, not b'no'."),
    (ServerToolItem, {"kind": 3, "payload": {}}, "ServerToolItem takes a text for `kind`, not 3."),
    (
        ServerToolItem,
        {"kind": "k", "payload": [1]},
        "ServerToolItem takes a mapping for `payload`, not [1].",
    ),
    (
        Usage,
        {"output_tokens": "3"},
        "Usage takes a whole number or None for `output_tokens`, not '3'.",
    ),
    (
        Usage,
        {"reasoning_tokens": True},
        "Usage takes a whole number or None for `reasoning_tokens`, not True.",
    ),
    (AssistantTurn, {"text": 3}, "TextItem takes a text for `text`, not 3."),
    (
        AssistantTurn,
        {"items": 3},
        "AssistantTurn takes a list of items such as `TextItem` for `items`, not 3.",
    ),
    (
        AssistantTurn,
        {"items": [TextItem("a"), "b"]},
        "AssistantTurn takes an item such as `TextItem` or `ToolCallItem` for `items[1]`, not 'b'.",
    ),
    (
        AssistantTurn,
        {"items": [ToolCallItem({})]},  # type: ignore[arg-type]
        (
            "AssistantTurn takes a `ToolMetadata` for `tool_calls[0]`, not {}. A dialect's "
            "`decode(response)` makes turns of what a provider sends."
        ),
    ),
    (
        AssistantTurn,
        {"tool_calls": 3},
        "AssistantTurn takes a list of `ToolMetadata` for `tool_calls`, not 3.",
    ),
    (
        AssistantTurn,
        {"tool_calls": [CALL, {"id": "c1"}]},
        (
            "AssistantTurn takes a `ToolMetadata` for `tool_calls[1]`, not {'id': 'c1'}. A "
            "dialect's `decode(response)` makes turns of what a provider sends."
        ),
    ),
    (AssistantTurn, {"usage": {}}, "AssistantTurn takes a `Usage` or None for `usage`, not {}."),
    (
        AssistantTurn,
        {"finish_reason": 3},
        "AssistantTurn takes a text or None for `finish_reason`, not 3.",
    ),
    (AssistantTurn, {"model": 3}, "AssistantTurn takes a text or None for `model`, not 3."),
    (
        AssistantTurn,
        {"request_id": 3},
        "AssistantTurn takes a text or None for `request_id`, not 3.",
    ),
    (AssistantTurn, {"dialect": 3}, "AssistantTurn takes a text or None for `dialect`, not 3."),
    (
        AssistantTurn,
        {"cut_off": ["answer"]},
        "AssistantTurn takes 'answer', 'arguments' or None for `cut_off`, not ['answer'].",
    ),
    (
        AssistantTurn,
        {"items": [TextItem("a")], "text": "a"},
        (
            "AssistantTurn takes either `items`, or `text` and `tool_calls`, not both. Put the "
            "text and the calls among the items."
        ),
    ),
    (
        TurnRequest,
        {"items": None},
        "TurnRequest takes a sequence of messages, turns and results for `items`, not None.",
    ),
    (
        TurnRequest,
        {"items": SAID, "tools": [1]},
        (
            "TurnRequest takes a tuple of `ToolDef`s for `tools`, not [1]. A toolset gives them "
            "with `AppTools.definitions()`."
        ),
    ),
    (
        TurnRequest,
        {"items": SAID, "tools": (1,)},
        (
            "TurnRequest takes a tuple of `ToolDef`s for `tools`, not (1,). A toolset gives them "
            "with `AppTools.definitions()`."
        ),
    ),
    (
        TurnRequest,
        {"items": SAID, "tool_choice": "auto"},
        "TurnRequest takes a `ToolChoice` or None for `tool_choice`, not 'auto'.",
    ),
    (
        TurnRequest,
        {"items": SAID, "temperature": "hot"},
        "TurnRequest takes a number or None for `temperature`, not 'hot'.",
    ),
    (
        TurnRequest,
        {"items": SAID, "temperature": True},
        "TurnRequest takes a number or None for `temperature`, not True.",
    ),
    (
        TurnRequest,
        {"items": SAID, "max_output_tokens": 1.5},
        "TurnRequest takes a whole number or None for `max_output_tokens`, not 1.5.",
    ),
    (
        TurnRequest,
        {"items": SAID, "parallel_tool_calls": 1},
        "TurnRequest takes True, False or None for `parallel_tool_calls`, not 1.",
    ),
    (
        TurnRequest,
        {"items": SAID, "extra": "x"},
        "TurnRequest takes a mapping of request fields for `extra`, not 'x'.",
    ),
    (
        Message,
        {"role": "user", "text": 3},
        "A message has a text, not 3. Encode data first, for instance with `json.dumps`.",
    ),
    (
        Message,
        {"role": "user", "text": "", "attachments": [1]},
        "Message takes a tuple of `Attachment`s for `attachments`, not [1].",
    ),
    (
        Message,
        {"role": "user", "text": "", "attachments": (1,)},
        "Message takes an `Attachment` for `attachments[0]`, not 1.",
    ),
    (
        Attachment,
        {**FILE, "mime_type": None},
        "Attachment takes a text for `mime_type`, not None.",
    ),
    (Attachment, {**FILE, "url": b""}, "Attachment takes a text for `url`, not b''."),
    (Attachment, {**FILE, "caption": 3}, "Attachment takes a text or None for `caption`, not 3."),
    (Attachment, {**FILE, "size": "3"}, "Attachment takes a number or None for `size`, not '3'."),
    (Attachment, {**FILE, "size": True}, "Attachment takes a number or None for `size`, not True."),
    (
        ToolMetadata,
        {"id": 3, "name": "add", "arguments": "{}"},
        "ToolMetadata: `id` is 3, which is not text.",
    ),
    (
        ToolMetadata,
        {"id": "c1", "name": "add", "arguments": {}},
        (
            "ToolMetadata: `arguments` is {}, which is not text. Where a provider sends arguments "
            "as an object, its dialect makes text of it."
        ),
    ),
    (ToolResult, {**ANSWER, "message": 3}, "ToolResult takes a text or None for `message`, not 3."),
    (ToolResult, {**ANSWER, "code": 3}, "ToolResult takes a text or None for `code`, not 3."),
    (
        ToolResult,
        {**ANSWER, "ran_with": 3},
        "ToolResult takes a dict or None for `ran_with`, not 3.",
    ),
    (
        CommittedRound,
        {"turn": None, "results": []},
        "CommittedRound takes an `AssistantTurn` for `turn`, not None.",
    ),
    (
        CommittedRound,
        {"turn": AssistantTurn(text="Hi"), "results": 3},
        "CommittedRound takes a list of `ToolResult`s for `results`, not 3.",
    ),
    (
        CommittedRound,
        {"turn": AssistantTurn(tool_calls=[CALL]), "results": ["3"]},
        "CommittedRound takes a list of `ToolResult`s for `results`, not ['3'].",
    ),
    (
        ToolDef,
        {**DESCRIBED, "timeout": "2s"},
        "ToolDef takes a positive number of seconds or None for `timeout`, not '2s'.",
    ),
    (
        ToolResult,
        {**ANSWER, "attachments": 5},
        "ToolResult takes a list of `Attachment`s for `attachments`, not 5.",
    ),
    (
        ToolResult,
        {**ANSWER, "attachments": ["x"]},
        "ToolResult takes an `Attachment` for `attachments[0]`, not 'x'.",
    ),
    (
        Reply,
        {"output": 1, "attachments": 5},
        "Reply takes a list of `Attachment`s for `attachments`, not 5.",
    ),
    (Decision, {**DECIDED, "call_id": 3}, "Decision takes a text for `call_id`, not 3."),
    (Decision, {**DECIDED, "decision_id": []}, "Decision takes a text for `decision_id`, not []."),
    (Decision, {**DECIDED, "at": None}, "Decision takes a text for `at`, not None."),
    (Decision, {**DECIDED, "reason": 5}, "Decision takes a text or None for `reason`, not 5."),
    (Decision, {**DECIDED, "digest": 5}, "Decision takes a text or None for `digest`, not 5."),
    (Decision, {**DECIDED, "by": 5}, "Decision takes a text or None for `by`, not 5."),
    (SuspendTicket, {"id": 5}, "SuspendTicket takes a text for `id`, not 5."),
    (SuspendTicket, {"action": None}, "SuspendTicket takes a text for `action`, not None."),
    (SuspendTicket, {"message": 5}, "SuspendTicket takes a text or None for `message`, not 5."),
    (SuspendTicket, {"parameters": [1]}, "SuspendTicket takes a dict for `parameters`, not [1]."),
    (
        SuspendTicket,
        {"response_schema": True},
        "SuspendTicket takes a dict for `response_schema`, not True.",
    ),
]


@over("make, fields, said", MISUSES)
def test_a_field_of_a_wrong_type_is_told(
    make: Callable[..., Any], fields: dict[str, Any], said: str
) -> None:
    """The error names the field, what it takes and what came, and is a TypeError for Python."""
    with pytest.raises(MisuseError) as caught:
        make(**fields)
    assert str(caught.value) == said
    assert isinstance(caught.value, TypeError)


UNFIT: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (
        Message,
        {"role": "assistant", "text": ""},
        (
            "A message is said by system, developer, user, not by 'assistant'. What the model "
            "says comes in as a turn."
        ),
    ),
    (Message, {"role": ["user"], "text": ""}, "not by ['user']. What the model"),
    (
        Attachment,
        {**FILE, "media_type": "picture"},
        "Attachment: `media_type` 'picture' is none of image, audio, video, file.",
    ),
    (
        ToolChoice,
        {"mode": "any"},
        "ToolChoice: mode 'any' is none of auto, required, none, specific.",
    ),
    (
        ToolChoice,
        {"mode": "specific"},
        (
            "ToolChoice names a tool where its mode is 'specific', and nowhere else: got mode "
            "'specific' and name None."
        ),
    ),
    (ToolChoice, {"mode": "auto", "name": "add"}, "got mode 'auto' and name 'add'."),
]


@over("make, fields, said", UNFIT)
def test_a_value_that_no_provider_takes_is_told(
    make: Callable[..., Any], fields: dict[str, Any], said: str
) -> None:
    """A value of the right type that cannot be sent is refused, and is a ValueError for Python."""
    with pytest.raises(InvalidValueError) as caught:
        make(**fields)
    assert said in str(caught.value)
    assert isinstance(caught.value, ValueError)


class Count(IntEnum):
    ONE = 1


class Reason(StrEnum):
    STOP = "stop"


class Text(TextItem):
    """A kind of text of the program's own."""


def test_a_subclass_of_the_right_type_is_right() -> None:
    """Fields take what is a text or an item by inheritance, and any mapping and sequence."""
    turn = AssistantTurn(items=[Text("a")], finish_reason=Reason.STOP, model="m")
    assert (turn.text, turn.finish_reason) == ("a", "stop")
    assert Usage(input_tokens=Count.ONE).input_tokens == 1
    extra = MappingProxyType({"seed": 1})
    request = TurnRequest(items=(turn,), temperature=0, max_output_tokens=9, extra=extra)
    assert (request.temperature, request.extra) == (0, {"seed": 1})
    assert TurnRequest(items=SAID, temperature=0.5, parallel_tool_calls=False).extra == {}


class Derived(ToolMetadata):
    """A kind of call of the program's own."""


def test_a_call_takes_texts_of_derived_classes_and_may_be_derived_itself() -> None:
    """Metadata keeps what is a text by inheritance, and a turn what is metadata by it."""
    call = Derived(id="c1", name=Reason.STOP, arguments="{}")
    assert (call.name, AssistantTurn(tool_calls=[call]).tool_calls) == ("stop", (call,))
    assert AssistantTurn(items=[ToolCallItem(call)]).tool_calls == (call,)
    assert replace(call, id="c\udce9").id == "c\ufffd"
