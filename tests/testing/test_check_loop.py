"""The laws of `check_loop`: right loops pass, and a wrong one is told what it did, at its least."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from lutum_py import Finished, Message, NeedsTools, NoAnswer, Session, Toolset, tool, tool_fn
from lutum_py.dialects import (
    openai_chat,
)
from lutum_py.errors import InvalidValueError, MisuseError, ToolRoundArityError
from lutum_py.testing import LoopFailure, LoopFault, ScriptedModel, check_loop
from lutum_py.testing._loop import Run, _search
from lutum_py.testing.strategies import CallKind

from . import loops
from .samples import EvenArgs, Every, Small

RIGHT = [
    loops.readme,
    loops.careful,
    loops.concurrent,
    loops.streaming,
    loops.asks_again,
    loops.one_turn,
]


def failure_of(loop: Any, *kinds: CallKind, **options: Any) -> LoopFailure:
    with pytest.raises(LoopFailure) as caught:
        check_loop(loop, Small, *kinds, **options)
    return caught.value


@pytest.mark.parametrize("loop", RIGHT, ids=lambda loop: loop.__name__)
def test_a_right_loop_passes(loop: loops.Loop) -> None:
    """A loop that commits every round passes, sync or async, whole or streamed."""
    check_loop(loop, Small, examples=60)


@pytest.mark.parametrize("loop", loops.WRONG, ids=lambda loop: loop.__name__)
def test_a_wrong_loop_is_told_its_fault(loop: loops.Loop) -> None:
    """Each wrong loop fails with a message that names its fault and shows the turns."""
    kind, words = loops.WRONG[loop]
    failure = failure_of(loop)
    assert failure.faults[0].kind == kind
    text = str(failure)
    assert f"- {kind}: " in text
    assert words in text
    assert "ScriptedModel.text('Done.')" in text


def test_the_counterexample_is_the_least() -> None:
    """What is shown is one turn of one call with nothing beside it, and it fails by itself."""
    failure = failure_of(loops.drops_rejected)
    (turn, last) = failure.script
    (call,) = turn.tool_calls
    assert (call.id, turn.text, turn.finish_reason) == ("c1", "", "tool_calls")
    assert len(call.arguments) <= 12
    assert last.text == "Done."
    session = Session()
    loops.drops_rejected(session, ScriptedModel(failure.script))
    assert not any(item.tool_calls for item in session.transcript if hasattr(item, "tool_calls"))


def test_a_simpler_script_fails_in_the_same_way() -> None:
    """A script that is simpler but shows another fault does not take the place of the first."""
    turns = [ScriptedModel.tool_calls(("c1", "forecast", {})) for _ in range(2)]
    script = (*turns, ScriptedModel.text("Done."))

    def run(tried: Any) -> Run:
        return Run(tried, [LoopFault("raised" if len(tried) == 3 else "endless", "")], [])

    chosen = settings(max_examples=5, deadline=None, database=None)
    failed = _search(run, st.just(script), chosen)
    assert failed is not None
    assert (failed.faults[0].kind, len(failed.script)) == ("raised", 3)


def test_the_message_shows_all_that_is_needed() -> None:
    """The message has the fault, the script as code with what each call is, and what was left."""
    failure = failure_of(loops.swallows_duplicates)
    assert str(failure) == (
        "The loop went wrong:\n"
        "- swallowed_duplicate: Turn 1 has two calls with the id 'c1', and the loop ended as if "
        "nothing had happened. Ask the model again, or let DuplicateToolCallIdError out.\n"
        "The model said:\n"
        "    ScriptedModel(\n"
        "        [\n"
        "            ScriptedModel.tool_calls(\n"
        f"                {_call_code(failure, 0)},  # another call has this id\n"
        f"                {_call_code(failure, 1)},  # another call has this id\n"
        "            ),\n"
        "            ScriptedModel.text('Done.'),\n"
        "        ]\n"
        "    )\n"
        "The conversation afterwards:\n"
        "    1. user: Hello."
    )


def _call_code(failure: LoopFailure, at: int) -> str:
    call = failure.script[0].tool_calls[at]
    return repr((call.id, call.name, call.arguments))


def test_a_loop_may_let_out_what_it_says() -> None:
    """An exception that is allowed ends the loop without fault; without leave it is one."""

    def one_at_a_time(session: Session, model: Any) -> None:
        while True:
            match session.text_turn(model).tools(Small).collect_sync():
                case NeedsTools(round):
                    call = round.expect_at_most_one()
                    round.commit(session, [call.call_sync()] if call else [])
                case Finished():
                    return

    check_loop(one_at_a_time, Small, may_raise=(ToolRoundArityError,), examples=60)
    failure = failure_of(one_at_a_time)
    assert failure.faults[0].kind == "raised"
    assert "After turn 1 the loop let ToolRoundArityError out" in str(failure)
    assert "in one_at_a_time)" in str(failure)
    assert len(failure.script[0].tool_calls) == 2


def test_an_exception_before_the_first_request_has_a_place() -> None:
    """A loop that fails at once is told where, and what it is given; the model is not blamed."""

    def broken(session: Session, model: Any) -> None:
        raise KeyError("x")

    failure = failure_of(broken)
    assert [fault.kind for fault in failure.faults] == ["raised"]
    assert "Before its first request the loop let KeyError out (test_check_loop" in str(failure)
    assert "in broken): 'x'. A loop is given a session and a model, or with `dial" in str(failure)
    assert "Whatever the model sends" not in str(failure)


def test_a_finish_reason_that_matters_is_shown() -> None:
    """Where the loop fails only for a turn that was cut off, the script says that it was."""

    def impatient(session: Session, model: Any) -> None:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
                if round.turn.is_truncated:
                    raise KeyError(round.finish_reason)
            case Finished():
                pass

    failure = failure_of(impatient)
    assert failure.faults[0].kind == "raised"
    assert "finish_reason='length',\n" in str(failure)


def test_groups_of_exceptions_are_taken_apart() -> None:
    """What a task group wraps counts as what it is."""

    async def grouped(session: Session, model: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raising(KeyError("a")))

    check_loop(_asking(grouped), Small, may_raise=(KeyError,), examples=5)
    assert failure_of(_asking(grouped)).faults[0].kind == "raised"


def _asking(after: Any) -> Any:
    async def loop(session: Session, model: Any) -> None:
        await model.respond(session.text_turn(model).request())
        await after(session, model)

    return loop


async def _raising(error: Exception) -> None:
    raise error


def test_an_interrupt_is_not_taken_for_a_fault() -> None:
    """A keyboard interrupt inside of a loop ends the check, as it ends any test."""

    def interrupted(session: Session, model: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_loop(interrupted, Small)


@pytest.mark.parametrize("error", [SystemExit("bye"), asyncio.CancelledError("bye")])
def test_a_loop_that_ends_the_program_is_told_with_its_script(error: BaseException) -> None:
    """An end of the program, or of the loop's task, gets out because of what the model sent."""

    async def ending(session: Session, model: Any) -> None:
        raise error

    failure = failure_of(_asking(ending))
    assert failure.faults[0].kind == "raised"
    told = f"After turn 1 the loop let {type(error).__name__} out"
    assert told in str(failure)
    assert "may_raise" not in str(failure)
    assert "ScriptedModel.tool_calls(" in str(failure)


def test_a_generator_is_told_to_be_one() -> None:
    """A loop that yields does nothing where it is called, and the failure says so."""

    def yields(session: Session, model: Any) -> Iterator[Any]:
        yield model.respond_sync(session.text_turn(model).request())

    async def yields_later(session: Session, model: Any) -> AsyncIterator[Any]:
        yield await model.respond(session.text_turn(model).request())

    for loop in (yields, yields_later):
        failure = failure_of(loop)
        assert failure.faults[0].kind == "never_asked"
        assert "It gave a generator, which nobody ran" in str(failure)


def test_a_loop_cannot_hide_behind_its_own_handlers() -> None:
    """A loop that catches every Exception is stopped all the same."""

    def stubborn(session: Session, model: Any) -> None:
        while True:
            try:
                session.text_turn(model).tools(Small).collect_sync()
            except Exception:  # noqa: BLE001
                continue

    failure = failure_of(stubborn)
    assert "endless" in [fault.kind for fault in failure.faults]


def test_a_flaky_loop_is_told_to_be_one() -> None:
    """A loop that fails only sometimes is reported with what was seen, and as such."""
    seen: list[int] = []

    def flaky(session: Session, model: Any) -> None:
        seen.append(1)
        if len(seen) == 3:
            raise KeyError("once")
        loops.readme(session, model)

    failure = failure_of(flaky)
    assert str(failure).startswith("The loop went wrong (not each time")
    assert failure.faults[0].kind == "raised"


def test_an_async_loop_in_a_running_event_loop_is_refused() -> None:
    """Inside of a running event loop an async loop is refused, and the text says what to do."""

    async def inside() -> None:
        with pytest.raises(MisuseError, match="Call `check_loop` from a sync test"):
            check_loop(loops.concurrent, Small)
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(MisuseError, match="from a sync test"):
            check_loop(lambda *_: future, Small)
        check_loop(loops.readme, Small, examples=5)

    asyncio.run(inside())


def test_a_run_may_begin_with_more() -> None:
    """What `start` makes is where each run begins, and its history is not held against the loop."""

    def begin() -> Session:
        session = Session()
        session.push_system("Be brief.")
        made = Small.read_turn(ScriptedModel.tool_calls(("old", "forecast", {"city": "Rome"})))
        assert isinstance(made, NeedsTools)
        made.round.commit(session, [call.call_sync() for call in made.round.tool_calls])
        return session

    check_loop(loops.readme, Small, start=begin, examples=20)

    def begin_plain() -> list[Any]:
        return openai_chat.messages([Message("system", "Be brief."), *begin().transcript[1:]])

    check_loop(
        loops.by_hand, Small, dialect="openai_chat", start=begin_plain, examples=20, **loops.PLAIN
    )
    failure = failure_of(loops.drops_rejected, start=begin)
    assert "2. assistant: call: forecast old <" in str(failure)
    assert "3. tool: success result of: forecast old result: Rome: sunny for 1 day(s)" in str(
        failure
    )


def test_what_is_tried_can_be_narrowed() -> None:
    """Kinds, turns, calls, odd ids and settings are the caller's to choose."""
    check_loop(loops.drops_rejected, Small, "valid", "coerced", odd_ids=False, examples=40)
    seen: list[int] = []

    def counting(session: Session, model: Any) -> None:
        loops.readme(session, model)
        seen.append(len(model.requests))
        assert all(len(turn.tool_calls) <= 1 for turn in _turns(session))

    chosen = settings(max_examples=15, deadline=None, database=None)
    check_loop(counting, Small, "valid", max_turns=1, max_calls=1, settings=chosen)
    assert set(seen) == {2}
    assert len(seen) <= 15


def _turns(session: Session) -> list[Any]:
    return [item for item in session.transcript if hasattr(item, "tool_calls")]


def test_tools_that_are_off_are_called_when_they_are_offered() -> None:
    """With `available`, a tool that is off counts as one to be called."""
    called: list[str] = []

    def loop(session: Session, model: Any) -> None:
        while True:
            turn = session.text_turn(model).tools(Small).available_tools_all()
            match turn.collect_sync():
                case NeedsTools(round):
                    called.extend(call.name for call in round.tool_calls)
                    round.commit(session, [call.call_sync() for call in round.tool_calls])
                case Finished():
                    return

    check_loop(loop, Small, "valid", available=["forecast", "wipe"], examples=30)
    assert set(called) == {"forecast", "wipe"}


@tool_fn
def picky(args: EvenArgs) -> int:
    """Take an even number."""
    return args.number


@tool_fn
def choosy(code: str) -> str:
    """Take one code."""
    return code


class Picky(Toolset):
    picky = tool(picky)


def test_a_validator_is_respected() -> None:
    """What a validator refuses is not sent as valid."""

    def loop(session: Session, model: Any) -> None:
        while True:
            match session.text_turn(model).tools(Picky).collect_sync():
                case NeedsTools(round):
                    assert not round.recoverable_tool_call_issues
                    round.commit(session, [call.call_sync() for call in round.tool_calls])
                case Finished():
                    return

    check_loop(loop, Picky, "valid", odd_ids=False, examples=30)


def test_a_tool_that_nothing_fits_is_named() -> None:
    """Where no arguments are found, the error names the tool and the remedy, which works."""
    from typing import Annotated

    from pydantic import AfterValidator

    def secret(code: str) -> str:
        if code != "open sesame":
            raise ValueError("wrong")
        return code

    @tool_fn
    def vault(code: Annotated[str, AfterValidator(secret)]) -> str:
        """Open the vault."""
        return code

    class Vault(Toolset):
        door = tool(vault)

    def loop(session: Session, model: Any) -> None:
        while True:
            match session.text_turn(model).tools(Vault).collect_sync():
                case NeedsTools(round):
                    round.commit(session, [call.call_sync() for call in round.tool_calls])
                case Finished():
                    return

    with pytest.raises(
        InvalidValueError, match=r"tool `vault` takes.*arguments=\{'vault': strategy\}"
    ):
        check_loop(loop, Vault)
    own = st.just({"code": "open sesame"})
    check_loop(loop, Vault, arguments={"vault": own}, examples=20)
    check_loop(loop, Vault, arguments={Vault.door: own}, examples=20)


def test_a_toolset_of_every_kind_of_argument_is_driven() -> None:
    """Containers, unions, formats and recursive inputs reach the loop, and it passes."""
    names: set[str] = set()

    def loop(session: Session, model: Any) -> None:
        while True:
            match session.text_turn(model).tools(Every).collect_sync():
                case NeedsTools(round):
                    names.update(call.name for call in round.tool_calls)
                    round.commit(session, [call.call_sync() for call in round.tool_calls])
                case Finished():
                    return

    repeatable = settings(max_examples=400, derandomize=True, deadline=None, database=None)
    check_loop(loop, Every, settings=repeatable)
    assert names == {selector.name for selector in Every}


GIVEN = ScriptedModel.tool_calls(("a1", "answer", {"answer": 3}))


def asks_for_a_number(session: Session, model: Any) -> int:
    """End in an answer of a type."""
    while True:
        match session.text_turn(model).tools(Small).answer(int).collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished(result):
                return result.answer
            case NoAnswer(text=text):
                session.push_user(text)


def test_a_loop_that_ends_in_an_answer_is_given_one() -> None:
    """`final` is the turn that ends each script, an answer of a type for a loop that asks so."""
    check_loop(asks_for_a_number, Small, final=GIVEN, examples=60)
    failure = failure_of(asks_for_a_number)
    assert [fault.kind for fault in failure.faults] == ["endless"]
    assert "an answer of a type, pass the turn that gives it as `final=`" in str(failure)
    forgets = failure_of(loops.drops_rejected, final=ScriptedModel.text("Bye."))
    assert forgets.script[-1].text == "Bye."
    with pytest.raises(MisuseError):
        check_loop(asks_for_a_number, Small, final=3)  # type: ignore[arg-type]
