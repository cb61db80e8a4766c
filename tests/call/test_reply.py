"""The laws of `Reply`: what a tool gives besides its output."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    Attachment,
    CallStatus,
    Complete,
    HandledCall,
    Reply,
    RunNormally,
    ToolContext,
    ToolDef,
    ToolInput,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.errors import InvalidValueError, MisuseError, ToolDefinitionError, ToolOutputError
from lutum_py.execution import execute
from tests.declared import call_of, spec_of
from tests.sample_tools import sent

PICTURE = Attachment(media_type="image", mime_type="image/png", url="https://example.org/a.png")


class Hit(BaseModel):
    title: str


class Args(ToolInput[Hit]):
    text: str


@tool_fn
async def look(text: str) -> Reply[Hit]:
    return Reply(Hit(title=text), message="as shown", attachments=[PICTURE])


@tool_fn
def loose(text: str) -> Reply:  # type: ignore[type-arg]
    return Reply(text)


@tool_fn
def broken(text: str) -> Reply[Hit]:
    return Reply(Hit(title=text), "half of it", [PICTURE], status="error", code="partial")


@tool_fn(timeout=60)
def slow(text: str) -> Reply[Hit]:
    return broken(text)


@tool_fn(timeout=60)
async def slow_async(text: str) -> Reply[Hit]:
    return broken(text)


class Tools(Toolset):
    look = tool(look)
    args = tool(Args)


def test_a_reply_declares_the_output_that_it_carries() -> None:
    """The output type is what stands in the brackets, or anything."""
    assert spec_of(look).output.type is Hit
    assert spec_of(loose).output.type is None
    schema = look.definition.output_schema
    assert schema is not None
    assert list(schema["properties"]) == ["title"]


def test_a_type_that_a_reply_is_part_of_declares_what_the_reply_carries() -> None:
    """`int | Reply[int]` declares `int`, of functions and of input models."""

    @tool_fn
    def at_times(text: str) -> int | Reply[int]:
        return Reply(1, "one") if text == "told" else 1

    @tool_fn
    async def or_none(text: str) -> Reply[Hit] | None:
        return None

    @tool_fn
    def of_anything(text: str) -> Reply | None:  # type: ignore[type-arg]
        return Reply(text)

    class Replied(ToolInput[Reply[int] | None]):
        text: str

    assert spec_of(at_times).output.type is int
    assert spec_of(or_none).output.type == Hit | None
    assert spec_of(Replied).output.type == int | None
    results = [call_of(at_times, {"text": text}).call_sync() for text in ("told", "untold")]
    assert [(each.output, each.model_text) for each in results] == [(1, "one"), (1, "1")]
    assert asyncio.run(call_of(or_none, {"text": "a"}).call()).output is None
    assert call_of(of_anything, {"text": "a"}).call_sync().output == "a"
    assert call_of(Replied, {"text": "a"}).complete(Reply(2)).output == 2


@pytest.mark.parametrize(
    "returned",
    [
        list[Reply[int]],
        dict[str, list[Reply[int] | None]],
        Annotated[Reply[int], "a count"],
        Reply[list[Reply[int]]],
        list[Reply[int]] | None,
        list[Reply],  # type: ignore[type-arg]
    ],
)
def test_a_reply_within_an_output_is_refused_where_it_is_declared(returned: Any) -> None:
    """Of functions and input models alike: nothing would read it, and pydantic has no schema."""

    def counts(text: str) -> Any:
        """Give what the test says."""

    counts.__annotations__["return"] = returned
    for declare in (lambda: tool_fn(counts), lambda: tool_input(output=returned)(Hit)):
        with pytest.raises(ToolDefinitionError, match="as in `Reply"):
            declare()


def test_running_a_tool_makes_a_result_of_its_reply() -> None:
    """`call`, `call_sync`, handlers and `execute` say what the reply says."""
    run = Tools.Handlers()
    run.on(Tools.look)(look)
    results: list[Any] = [
        asyncio.run(call_of(look, {"text": "a"}).call()),
        asyncio.run(execute(call_of(look, {"text": "a"}))),
        asyncio.run(run(call_of(look, {"text": "a"}))),
    ]
    for result in results:
        assert (result.output, result.model_text) == ({"title": "a"}, "as shown")
        assert result.attachments == (PICTURE,)
    assert call_of(loose, {"text": "a"}).call_sync().output == "a"
    assert call_of(loose, {"text": "a"}).invoke_sync() == Reply("a")


def test_a_success_keeps_the_code_of_its_reply() -> None:
    """Programs find it in the result, as they do where a reply ends a call otherwise."""
    reply = Reply("a", "half of it", code="partial")
    for result in (
        call_of(loose, {"text": "a"}).complete(reply),
        call_of(loose, {"text": "a"}).finish(reply),
        call_of(loose, {"text": "a"}).handled(reply).result,
    ):
        assert (result.status, result.code) == ("success", "partial")
        assert result.model_text == "[partial] half of it"
        assert ToolResult.load_json(result.dump_json()) == result


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        ("error", CallStatus.FAILED),
        ("indeterminate", CallStatus.FAILED),
        ("cancelled", CallStatus.CANCELLED),
    ],
)
def test_a_reply_that_is_no_success_ends_the_call_so(status: Any, ends: CallStatus) -> None:
    """Output, text and attachments are kept, and the output is not held to the declared type."""
    call = call_of(broken, {"text": "a"})
    call.start()
    result = call.finish(Reply(3, "half", [PICTURE], status=status, code="partial"))
    assert (result.status, result.code, result.output) == (status, "partial", 3)
    assert result.model_text == "[partial] half"
    assert result.attachments == (PICTURE,)
    assert call.status is ends
    assert call_of(broken, {"text": "a"}).call_sync().model_text == "[partial] half of it"
    call = call_of(broken, {"text": "a"})
    call.start()
    plain = call.finish(Reply(None, status=status))
    assert (plain.model_text, plain.attachments) == ("null", ())


@pytest.mark.parametrize("tool", [slow, slow_async])
def test_a_deadline_takes_nothing_from_a_reply(tool: Any) -> None:
    """What a tool replies within its time ends the call as it says, whether or not it succeeded."""
    call = call_of(tool, {"text": "a"})
    result = asyncio.run(call.call())
    assert (result.status, result.model_text) == ("error", "[partial] half of it")
    assert call.status is CallStatus.FAILED


def test_completing_takes_a_success() -> None:
    """`complete`, `handled` and a hook's `Complete` take a reply, and no other than a success."""
    reply = Reply(Hit(title="t"), "said", [PICTURE])
    result = call_of(Args, {"text": "x"}).complete(reply)
    assert (result.model_text, result.attachments) == ("said", (PICTURE,))
    assert call_of(Args, {"text": "x"}).complete(reply, message="mine").model_text == "mine"
    handled = call_of(Args, {"text": "x"}).handled(reply)
    assert (handled.output, handled.result.model_text) == (Hit(title="t"), "said")
    hooks: Any = Tools.HookSet()
    hooks.on(Tools.args)(lambda metadata, input: Complete(reply))
    outcome = Tools.parse_tool_call(sent("args", "c1", text="x")).hook_sync(hooks)
    assert isinstance(outcome, HandledCall)
    assert outcome.result.model_text == "said"
    call = call_of(Args, {"text": "x"})
    with pytest.raises(MisuseError):
        call.complete(Reply(Hit(title="t"), status="error"))
    with pytest.raises(ToolOutputError):
        call.complete(Reply(3))
    assert call.status is CallStatus.NEW


def test_replies_are_checked_and_compare() -> None:
    """A status that no tool can give, and texts that are none, are refused where they are made."""
    with pytest.raises(InvalidValueError):
        Reply(1, status="rejected")  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        Reply(1, message=3)  # type: ignore[arg-type]
    assert Reply(1, "a") == Reply(1, "a") != Reply(1, "b")
    other: object = 1
    assert Reply(1) != other
    assert repr(Reply(1)) == "Reply(1)"
    assert repr(Reply(1, "a", status="error", code="x")) == (
        "Reply(1, message='a', code='x', status='error')"
    )


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
DEFINITION = ToolDef.from_json_schema(name="twice", input_schema=SCHEMA)


def test_tools_of_schemas_have_functions_of_their_own() -> None:
    """A function takes the arguments as one dict, and what a function tool may take besides."""

    async def twice(arguments: dict[str, Any], context: ToolContext, *, by: int) -> Reply[int]:
        return Reply(arguments["a"] * by, message=context.call_id)

    made = Toolset.from_definitions("Made", [DEFINITION], functions={"twice": twice})
    call: Any = made.parse_tool_call(sent("twice", "c1", a=4))
    result = asyncio.run(call.call(by=2))
    assert (result.output, result.model_text) == (8, "c1")
    assert Toolset.from_definitions("Made", [DEFINITION], functions={"twice": twice}) is not made
    assert Toolset.from_definitions("Made", [DEFINITION]) is not made
    with pytest.raises(MisuseError):
        pickle.dumps(made)


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({"thrice": print}, "there is a function for 'thrice', but no definition"),
        ({"twice": lambda: None}, "it is called with the arguments as one dict, and too many"),
        ({"twice": 3}, "3 cannot be called"),
        ({"twice": int}, "<class 'int'> cannot be called, or does not say what it takes"),
        ([print], r"`functions=` takes a mapping of wire names to functions, not \[<built-in"),
    ],
)
def test_functions_that_fit_no_definition_are_refused(functions: Any, said: str) -> None:
    """A function without a definition, or one that cannot take the dict, is found at once."""
    with pytest.raises(ToolDefinitionError, match=said):
        Toolset.from_definitions("Made", [DEFINITION], functions=functions)


@pytest.mark.parametrize("value", [Reply(3, "three", [PICTURE], code="few"), RunNormally([3])])
def test_a_reply_and_a_decision_are_not_changed_any_more(value: Any) -> None:
    """What is taken for a reply of a wider type is safe from it: nothing is put in."""
    for name in value.__slots__:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
