"""What may be rendered, and what is said of anything else."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Message,
    NeedsTools,
    Session,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    TurnRequest,
)
from lutum_py.dialects import anthropic_messages, openai_chat, openai_responses
from lutum_py.errors import MisuseError
from lutum_py.typing import ToolChoice

from .every_dialect import DIALECTS, key_of, tools_in

OPTIONAL = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}
ECHO = ToolDef.from_json_schema(name="echo", input_schema=OPTIONAL)


def round_of_one() -> NeedsTools[Any]:
    tools = Toolset.from_definitions("Tools", [ECHO])
    turn = AssistantTurn(tool_calls=[ToolMetadata(id="c", name="echo", arguments="{}")])
    needs = tools.read_turn(turn)
    assert isinstance(needs, NeedsTools)
    return needs


@DIALECTS
def test_a_plan_is_refused_with_what_to_pass(dialect: ModuleType) -> None:
    """A round without results is a type error that names both ways to results."""
    needs = round_of_one()
    plan = needs.round.plan()
    for without_results in (needs, needs.round, plan):
        with pytest.raises(TypeError, match=r"plan\.resolve\(results\).*plan\.commit\(session"):
            dialect.messages(without_results)
    call = plan.pending[0]
    assert dialect.messages(plan.resolve([call.fail("no")]))


@DIALECTS
def test_what_holds_items_or_is_one_is_told_apart(dialect: ModuleType) -> None:
    """A session, a single item, a text and anything else are each a type error of their own."""
    with pytest.raises(MisuseError):
        dialect.messages(Session())
    with pytest.raises(MisuseError):
        dialect.messages(Message("user", "Hi"))
    with pytest.raises(MisuseError):
        dialect.messages("Hi")
    with pytest.raises(MisuseError):
        dialect.messages(7)
    with pytest.raises(MisuseError):
        dialect.encode_request(TurnRequest(items=[Message("user", "Hi"), 7]))  # type: ignore[list-item]


@DIALECTS
def test_a_number_that_python_cannot_hold_is_sent(dialect: ModuleType) -> None:
    """However large a number is in what was called or answered, its body is JSON."""
    for number in ("1e999", "-1E+400", "9" * 400 + ".0", "1e-999", "1e308"):
        call = ToolMetadata(id="c", name="echo", arguments=f'{{"n":{number}}}')
        result = ToolResult(id="c", name="echo", arguments=call.arguments, result=number)
        items: list[Any] = [Message("user", "Go"), AssistantTurn(tool_calls=[call]), result]
        body = dialect.encode_request(TurnRequest(items=items))
        assert "NaN" not in json.dumps(body, allow_nan=False), number
        assert not dialect.check(body), number


@DIALECTS
def test_a_request_offers_tools_as_they_are_offered_alone(dialect: ModuleType) -> None:
    """With and without strict mode, a request has the very tools that `tools` gives, and the losses
    of that mode.
    """
    request = TurnRequest(items=[Message("user", "Go")], tools=(ECHO,), tool_choice=ToolChoice())
    for strict in (False, True):
        body = dialect.encode_request(request, strict=strict)
        assert tools_in(dialect, body) == dialect.tools([ECHO], strict=strict)
        lost = [loss for loss in body.losses if loss.where.startswith("tools.")]
        assert len(lost) == len(dialect.compile(ECHO, strict=strict).losses)
    assert dialect.encode_request(request) == dialect.encode_request(request, strict=False)
    assert dialect.check(body) == []
    assert body[key_of(dialect)]


@pytest.mark.parametrize("dialect", [openai_chat, openai_responses, anthropic_messages])
def test_strict_mode_reaches_the_wire(dialect: ModuleType) -> None:
    """A request that is asked to be strict says so of each tool."""
    request = TurnRequest(items=[Message("user", "Go")], tools=(ECHO,))
    assert '"strict": true' in _json(dialect.encode_request(request, strict=True))
    assert '"strict": true' not in _json(dialect.encode_request(request))


def _json(body: Any) -> str:
    import json

    return json.dumps(body)
