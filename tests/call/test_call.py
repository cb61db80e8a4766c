"""The laws of a decoded call: typed input in, one result out, and what the model sent kept."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from lutum_py import (
    AnyToolCall,
    Attachment,
    CallStatus,
    Complete,
    Reject,
    RunNormally,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    Toolset,
    tool_fn,
)
from lutum_py.errors import LifecycleError, MisuseError, ToolInputError, ToolOutputError
from tests.call.calls import FindArgs, Inner, Outer, Sum, add, added, approve, suspended
from tests.cases import over
from tests.declared import call_of, spec_of


def test_a_call_keeps_what_the_model_sent() -> None:
    """Metadata is what came; input is what was made of it."""
    call = call_of(add, '{ "a" : "1" }', id="call_7")
    assert call.metadata == ToolMetadata(id="call_7", name="add", arguments='{ "a" : "1" }')
    assert (call.id, call.name) == ("call_7", "add")
    assert call.parts == (call.metadata, add.Input(a=1))
    assert isinstance(call, add.Call)
    assert isinstance(call, AnyToolCall)
    assert call.status is CallStatus.NEW
    assert (call.approval, call.resume) == (None, None)
    assert (call.suspension_id, call.suspension_reason) == (None, None)
    assert repr(call) == "AddInputCall(id='call_7', name='add', input={\"a\":1,\"b\":1})"
    match call:
        case add.Call(input):
            assert input.a == 1
        case _:
            pytest.fail("not matched")


# Answers.


def test_complete_answers_with_the_output() -> None:
    """The result is of the call, with the output as JSON, a message and attachments."""
    file = Attachment(media_type="file", mime_type="text/plain", url="data:,x")
    call = added()
    result = call.complete(Sum(total=2), message="two", attachments=[file])
    assert (result.id, result.name, result.arguments) == ("c1", "add", '{"a": 1}')
    assert (result.result, result.message, result.model_text) == ('{"total":2}', "two", "two")
    assert result.attachments == (file,)
    assert result.is_success
    assert call.status is CallStatus.SUCCEEDED


def test_an_output_that_does_not_fit_leaves_the_call_open() -> None:
    """After a refused output the call can be completed with another."""
    call = added()
    with pytest.raises(
        ToolOutputError, check=lambda error: [each.path for each in error.fields] == ["total"]
    ):
        call.complete({"total": "many"})  # type: ignore[arg-type]
    assert call.status is CallStatus.NEW
    assert call.complete(Sum(total=1)).is_success


def test_fail_tells_the_model() -> None:
    """A failed call has an error result; a code stands before the message and in the data."""
    call = added()
    result = call.fail("no such shelf")
    assert (result.status, result.result, result.model_text) == ("error", "null", "no such shelf")
    assert call.status is CallStatus.FAILED
    result = added().fail(ValueError("gone"), code="not_found")  # type: ignore[arg-type]
    assert result.model_text == "[not_found] gone"
    assert result.output == {"error": {"code": "not_found", "message": "gone"}}
    assert result.code == "not_found"


def test_reject_and_handled() -> None:
    """A call can be refused, or answered without being run."""
    call = added()
    rejected = call.reject("too dear")
    assert rejected.result.rejection_reason == rejected.reason == "too dear"
    assert rejected.call is call
    assert call.status is CallStatus.CANCELLED
    call = added()
    handled = call.handled(Sum(total=9))
    assert isinstance(handled, add.Handled)
    assert (handled.metadata, handled.input) == call.parts
    assert handled.output == Sum(total=9)
    assert handled.result.result == '{"total":9}'


def test_what_has_ended_stays_ended() -> None:
    """A call that has ended can neither be run nor be answered in another way."""
    call = added()
    call.reject("no")
    for again in (
        lambda: call.complete(Sum(total=1)),
        lambda: call.fail("x"),
        call.call_sync,
        lambda: call.suspend(SuspendTicket(action="ask")),
    ):
        with pytest.raises(LifecycleError):
            again()
    assert call.status is CallStatus.CANCELLED


def find_by_schema() -> AnyToolCall:
    definition = ToolDef.from_json_schema(name="find", input_schema={"type": "object"})
    toolset = Toolset.from_definitions("Found", [definition])
    return toolset.parse_tool_call(ToolMetadata(id="c1", name="find", arguments="{}"))


@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("an input model", lambda: call_of(FindArgs, {"words": []})),
        ("a schema", find_by_schema),
    ],
)
def test_what_has_no_function_is_not_run(what: str, made: Callable[[], Any]) -> None:
    """An input model or a schema without a function is not run, and neither is taken for the other;
    the remedy is named.
    """
    call = made()
    expected = (
        f"Tool `find` (call 'c1') is {what} without a function. Do the work yourself and answer "
        "with `call.complete(output)`."
    )
    for run in (lambda: asyncio.run(call.call()), call.call_sync, call.invoke_sync):
        with pytest.raises(TypeError) as caught:
            run()
        assert str(caught.value) == expected
    assert call.status is CallStatus.NEW


def test_metadata_of_another_tool_is_refused() -> None:
    """A call is answered under the name that its selector has on the wire, and no other."""
    metadata = ToolMetadata(id="c1", name="add", arguments="{}")
    call = Outer.left.add.Call(metadata, add.Input(a=1), selector=Outer.left.add)
    with pytest.raises(ToolOutputError) as caught:
        call.complete(Sum(total=1))
    assert str(caught.value) == (
        "Call 'c1' was made for tool `add`, but is answered as a call of `left_add`. Use the "
        "metadata of the call that you answer."
    )
    made = add.Call(ToolMetadata(id="c1", name="other", arguments="{}"), add.Input(a=1))
    with pytest.raises(ToolOutputError, match="made for tool `other`"):
        made.call_sync()
    assert add.Call(metadata, add.Input(a=1)).call_sync().result == '{"total":2}'


def test_a_selector_knows_its_calls() -> None:
    """A member of an inner set matches through every parent, an outer one on its own path only."""
    call = Outer.parse_tool_call(ToolMetadata(id="c1", name="left_add", arguments='{"a": 1}'))
    matching: list[Any] = [Inner.add, Outer.left.add]
    others: list[Any] = [Outer.right.add, Inner.find]
    for selector in matching:
        assert selector.match(call) is call
        assert selector.matches(call)
    for selector in others:
        assert selector.match(call) is None
        assert not selector.matches(call)
    assert Outer.left.add._reaches(Inner) is Inner.add
    assert Inner.add._reaches(Outer) is None
    assert Outer.left.add < Outer.right.find
    assert not Outer.right.find < Outer.left.add
    with pytest.raises(TypeError, match="'<' not supported"):
        _ = Inner.add < Outer.left.add
    assert repr(Outer.left.add) == "<Selector Outer.left.add: 'left_add'>"
    assert repr(spec_of(add).free_selector) == "<Selector : 'add'>"
    assert repr(spec_of(add)) == "ToolSpec('add')"
    assert str(Inner.find) == "find"
    assert copy.copy(Inner.add) is Inner.add


def test_a_sync_run_of_an_async_function_is_refused() -> None:
    """What runs functions refuses to run an async one here, whoever asks."""

    @tool_fn
    async def slow() -> int:
        return 1

    call = call_of(slow)
    with pytest.raises(MisuseError):
        call.spec.invocation.run_sync(call, call.input, {})


# Hooks on one call.


def test_one_call_goes_through_hooks() -> None:
    """`hook` gives the call itself where it is still to be run, or what became of it."""
    hooks = Inner.HookSet()

    @hooks.on(Inner.add)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        if input.a > 9:
            return Reject("too much")
        return Complete(Sum(total=0)) if input.a == 0 else RunNormally(add.Input(a=input.a, b=5))

    def of(a: int) -> AnyToolCall:
        return Inner.parse_tool_call(ToolMetadata(id="c", name="add", arguments=f'{{"a": {a}}}'))

    pending: Any = asyncio.run(of(1).hook(hooks))
    assert pending.input == add.Input(a=1, b=5)
    handled: Any = of(0).hook_sync(hooks)
    assert handled.output == Sum(total=0)
    rejected: Any = asyncio.run(of(10).hook(hooks))
    assert rejected.reason == "too much"


# Travelling.


def travellers() -> list[AnyToolCall]:
    """Calls of every origin, in several statuses."""
    bound = Outer.parse_tool_call(
        ToolMetadata(id="c1", name="right_find", arguments='{"words": "[\\"w\\"]"}')
    )
    failed = added()
    failed.fail("x")
    approved, plan = suspended("add", {"a": 1}, SuspendTicket(id="s", action="ask"))
    approve(plan)
    plan.discard()
    return [added(), bound, failed, approved, call_of(FindArgs, {"words": ["w"]})]


@over("index", range(5))
@over("way", ["pickle", "deepcopy", "copy"])
def test_calls_pickle_and_copy(index: int, way: str) -> None:
    """A copy is the call itself; a pickled one is as it was, and does not start."""
    call = travellers()[index]
    ways: dict[str, Callable[[AnyToolCall], AnyToolCall]] = {
        "pickle": lambda one: pickle.loads(pickle.dumps(one)),
        "deepcopy": copy.deepcopy,
        "copy": copy.copy,
    }
    back = ways[way](call)
    assert (back is call) is (way != "pickle")
    if way == "pickle":
        with pytest.raises((LifecycleError, MisuseError)):  # it has no function, perhaps
            back.call_sync()
    assert type(back) is type(call)
    assert back.selector is call.selector
    assert back.parts == call.parts
    assert (back.status, back.coerced, back.digest) == (call.status, call.coerced, call.digest)
    assert back.suspension_id == call.suspension_id
    assert back.resume == call.resume
    assert spec_of(add).free_selector is added().selector


def test_outcomes_pickle() -> None:
    """What became of a call travels like the call."""
    for outcome in (
        added().handled(Sum(total=1)),
        added().reject("no"),
        added().suspend(SuspendTicket(action="ask")),
    ):
        back = pickle.loads(pickle.dumps(outcome))
        assert type(back).__name__ in ("HandledCall", type(outcome).__name__)
        assert getattr(back, "metadata", None) == getattr(outcome, "metadata", None)
        assert getattr(back, "digest", None) == getattr(outcome, "digest", None)


def test_the_raw_output_of_an_async_function_needs_await() -> None:
    """`invoke_sync` names the way that an async function is run."""

    @tool_fn
    async def later() -> int:
        return 1

    call = later.Call(ToolMetadata(id="c1", name="later", arguments="{}"), later.Input())
    with pytest.raises(TypeError, match=r"is async: use `await call\.call\(\)`"):
        call.invoke_sync()
    assert call.status == "new"


def test_a_tool_that_raises_stop_iteration_does_not_hang() -> None:
    """A sync tool's StopIteration ends the call with an error, as Python has it for coroutines."""

    @tool_fn
    def first() -> int:
        return next(iter(()))

    call = first.Call(ToolMetadata(id="c1", name="first", arguments="{}"), first.Input())
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(call.call())


@over(
    "answer, words",
    [
        (lambda call: call.reject(None), "The reason for call 'c1' of tool `add` is None"),
        (lambda call: call.fail("x", code=3), "The code for call 'c1' of tool `add` is 3"),
        (lambda call: call.complete(1, message={}), "The message for call 'c1' of tool `add`"),
        (lambda call: call.complete(1, attachments=["x"]), "Call 'c1' of tool `add` takes an `Att"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_moves(answer: Any, words: str) -> None:
    """An answer that no transcript could hold leaves the call as it was."""
    call = added()
    with pytest.raises(TypeError, match=words):
        answer(call)
    assert call.status == "new"


def test_a_validator_that_breaks_is_named() -> None:
    """An exception that says nothing of the arguments is the developer's, and says where."""

    def broken(value: int) -> int:
        raise ZeroDivisionError("oops")

    @tool_fn
    def guarded(a: Annotated[int, AfterValidator(broken)]) -> int:
        return a

    with pytest.raises(ToolInputError, match=r"validator of tool `guarded` raised ZeroDivision"):
        call_of(guarded, '{"a":1}')


def test_metadata_is_text() -> None:
    """What could be neither stored nor sent back is refused where it is made."""
    with pytest.raises(MisuseError):
        ToolMetadata(id="c1", name="add", arguments={"a": 1})  # type: ignore[arg-type]
