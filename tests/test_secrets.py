"""A value that a tool declares to be secret is not in what the library shows by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, Secret, SecretStr

from lutum_py import (
    Complete,
    Reject,
    RunNormally,
    Session,
    SuspendTicket,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    errors,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import InvalidArgumentsError
from lutum_py.testing import ScriptedModel
from tests.cases import over

SECRET = "HUNTER2"
MASK = "*" * 10


@tool_fn
def login(user: str, password: SecretStr) -> str:
    """Log in."""
    return user


class Key(BaseModel):
    pin: SecretStr


class UnlockArgs(ToolInput[str]):
    keys: list[Key]


PASSWORD = {"type": "string", "format": "password"}
P = {"$ref": "#/$defs/P"}
LOGIN = ToolDef.from_json_schema(
    name="login",
    input_schema={"type": "object", "properties": {"user": {}, "password": PASSWORD}},
)


class Tools(Toolset):
    login = tool(login)
    unlock = tool(UnlockArgs)


Made: Any = Toolset.from_definitions("Made", [LOGIN])
CALLS: list[Any] = [
    (Tools, "login", {"user": "ada", "password": SECRET}),
    (Tools, "unlock", {"keys": [{"pin": SECRET}]}),
    (Made, "login", {"user": "ada", "password": SECRET}),
]


def _round(toolset: Any, name: str, arguments: Any) -> Any:
    response = ScriptedModel.tool_calls(("c1", name, arguments))
    return toolset.read_turn(response).round


def _shown(value: Any) -> Iterator[str]:
    """Give all that a prompt, a notebook, rich or a failing test would show of a value."""
    yield repr(value)
    if hasattr(value, "__rich__"):
        yield value.__rich__().plain
        yield from value._repr_mimebundle_().values()


@pytest.mark.parametrize(("toolset", "name", "arguments"), CALLS, ids=range(len(CALLS)))
def test_no_representation_of_a_call_or_its_ends_holds_a_secret(
    toolset: Any, name: str, arguments: Any
) -> None:
    """Whatever holds a call shows how long its raw arguments are, and its input masked."""
    round_ = _round(toolset, name, arguments)
    plan = round_.plan()
    call = plan.pending[0]
    result = call.fail("no")
    held = [round_, plan, call, call.metadata, round_.turn, result]
    # A call ends once, so that each end is of a call of its own.
    rejected, suspended = (toolset.parse_tool_call(call.metadata) for _ in range(2))
    held += [rejected.reject("no"), suspended.suspend(SuspendTicket())]
    session = Session()
    held += [plan.commit(session, [result]), session, session.transcript, *session.transcript]
    for each in held:
        for shown in _shown(each):
            assert SECRET not in shown
    assert f"{len(call.metadata.arguments)} characters" in repr(call.metadata)


@over("decision", [RunNormally, Complete, Reject])
@over("toolset, name, arguments", CALLS)
def test_no_display_of_a_decided_plan_holds_a_secret(
    toolset: Any, name: str, arguments: Any, decision: Any
) -> None:
    """A plan shows the input that the tool would get, masked, whoever decided about the call."""
    hooks = toolset.HookSet()

    @hooks.on(toolset[name])  # type: ignore[untyped-decorator]
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        outputs = {"reason": "no"} if toolset is Made else "yes"
        return {RunNormally: RunNormally(input), Complete: Complete(outputs)}.get(
            decision, Reject("no")
        )

    plan = _round(toolset, name, arguments).apply_hooks_sync(hooks)
    for shown in _shown(plan):
        assert SECRET not in shown
    assert MASK in plan.__rich__().plain
    plan.discard()


def test_a_call_that_cannot_be_read_shows_no_secret() -> None:
    """Of arguments that do not fit, or of an unknown tool, a display says how long they are."""
    for call in (("login", {"user": 5, "password": SECRET}), ("lgin", {"password": SECRET})):
        plan = _round(Tools, *call).plan()
        assert all(SECRET not in shown for shown in _shown(plan))
        assert "characters" in plan.__rich__().plain
        plan.discard()


class Card(BaseModel):
    kind: Literal["card"]
    number: SecretStr


class Bank(BaseModel):
    kind: Literal["bank"]
    iban: str


class PayArgs(ToolInput[str]):
    method: Annotated[Card | Bank, Field(discriminator="kind")]


def test_a_union_with_a_secret_names_its_tags_and_not_what_came() -> None:
    """A model that sent another tag is told which there are, since the schema says so anyway."""

    class Till(Toolset):
        pay = tool(PayArgs)

    arguments = json.dumps({"method": {"kind": SECRET, "number": SECRET}})
    with pytest.raises(InvalidArgumentsError) as caught:
        Till.parse_tool_call(ToolMetadata(id="c1", name="pay", arguments=arguments))
    (issue,) = caught.value.fields
    assert str(issue) == "`method`: Input should have 'kind' as one of 'card', 'bank'"
    assert SECRET not in str(caught.value)


def test_what_cannot_be_read_of_a_tool_without_secrets_is_shown() -> None:
    """Where the tool is known to take no secret, its raw arguments help to see what is wrong."""

    @tool_fn
    def count(to: int) -> int:
        """Count."""
        return to

    class Plain(Toolset):
        count_to = tool(count)

    plan = _round(Plain, "count", {"to": "many"}).plan()
    assert "many" in plan.__rich__().plain
    plan.discard()


def test_a_result_with_other_arguments_is_refused_without_showing_them() -> None:
    """The fault says how the arguments differ, and not what they are."""
    round_ = _round(*CALLS[0])
    sent = round_.tool_calls[0].metadata
    other = ToolResult(id="c1", name="login", arguments=sent.arguments + " ", result="null")
    with pytest.raises(errors.CommitError, match="differ from character") as raised:
        round_.commit(Session(), [other])
    assert SECRET not in str(raised.value) + repr(raised.value.faults)
    round_.discard()


def test_the_payload_of_a_turn_is_not_spelled_out() -> None:
    """What the provider sent is kept whole, and its representation is its size."""
    call = {"id": "c1", "type": "function", "function": {"name": "login", "arguments": SECRET}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    turn = openai_chat.decode({"choices": [{"message": message}]})
    assert SECRET not in repr(turn)
    assert SECRET in str(turn.payload)


@over(
    "schema, value, shown",
    [
        ({"properties": {"a": {"writeOnly": True}}}, {"a": 1, "b": 2}, {"a": MASK, "b": 2}),
        ({"additionalProperties": PASSWORD}, {"a": "x"}, {MASK: MASK}),
        ({"patternProperties": {"^a": PASSWORD}}, {"a": "x"}, {MASK: MASK}),
        ({"properties": {"a": {"items": PASSWORD}}}, {"a": ["x", "y"]}, {"a": [MASK, MASK]}),
        (
            {"properties": {"a": {"prefixItems": [{}, PASSWORD]}}},
            {"a": [1, "x", 3]},
            {"a": [1, MASK, 3]},
        ),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, PASSWORD]}}}, {"a": "x"}, {"a": MASK}),
        ({"allOf": [{"then": {"properties": {"a": PASSWORD}}}]}, {"a": "x"}, {"a": MASK}),
        (
            {
                "$defs": {"P": {"properties": {"p": PASSWORD, "q": {"$ref": "#/$defs/P"}}}},
                "$ref": "#/$defs/P",
            },
            {"q": {"q": {"p": "x"}}, "r": 1},
            {"q": {"q": {"p": MASK}}, "r": 1},
        ),
        (
            {"properties": {"a": PASSWORD, "b": {"$ref": "#/properties/a"}}},
            {"b": "x"},
            {"b": MASK},
        ),
        (
            {"$defs": {"P": {"$anchor": "p", **PASSWORD}}, "properties": {"a": {"$ref": "#p"}}},
            {"a": "x"},
            {"a": MASK},
        ),
        ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": "x"}),
    ],
)
def test_what_a_schema_declares_secret_is_masked_wherever_it_stands(
    schema: Any, value: Any, shown: Any
) -> None:
    """References, branches, patterns and items are followed, and nothing else is masked."""
    take = ToolDef.from_json_schema(name="take", input_schema={"type": "object", **schema})
    plan = _round(Toolset.of("Taking", take), "take", value).plan()
    (row,) = plan.calls
    assert row.arguments == shown
    plan.discard()


@tool_fn
def unlock(
    pins: Secret[list[int]],
    codes: Annotated[dict[str, int], Field(json_schema_extra={"writeOnly": True})],
    other: int = 1,
) -> str:
    """Unlock."""
    return "open"


class Locks(Toolset):
    unlock = tool(unlock)


@over(
    "arguments",
    [
        {"pins": ["S3CR3T"], "codes": {}},
        {"pins": [1, [2, "S3CR3T"]], "codes": {}},
        {"pins": [1], "codes": {"door": "S3CR3T"}},
        {"pins": [1], "codes": {"S3CR3T": "x"}},
        {"pins": "S3CR3T", "codes": "S3CR3T"},
    ],
)
def test_what_is_inside_of_a_secret_is_not_repeated_where_it_does_not_fit(arguments: Any) -> None:
    """The parts of a secret list or mapping are secrets, in errors too."""
    call = ToolMetadata(id="c1", name="unlock", arguments=json.dumps(arguments))
    with pytest.raises(InvalidArgumentsError) as caught:
        Locks.parse_tool_call(call)
    shown = [str(caught.value), *map(repr, caught.value.fields)]
    assert not any("S3CR3T" in each for each in shown)
    assert any("pins" in each or "codes" in each for each in shown)
