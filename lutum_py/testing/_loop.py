"""`check_loop`: run a loop with scripts, judge it, and show how it failed."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sysconfig
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias, Unpack, cast

from .. import AssistantTurn, Message, NeedsTools, Session, ToolResult, Toolset, TurnRequest
from .._text.json import compact_json, cut, shorten
from ..dialects.authoring import Said, wire_form_of
from ..errors import DialectError, DuplicateToolCallIdError, MisuseError
from ..schemas import signature_of
from ..turns import TranscriptItem, line_of
from ..typing import Available
from ._calls import (
    PLAIN_NAME,
    AnyToolset,
    check_arguments,
    is_toolset,
    require_count,
)
from ._hypothesis import Flaky, NoSuchExample, Phase, Settings, find, st
from ._scripted_client import Json, ScriptedClient, ScriptedResponse
from ._scripted_model import ScriptedModel
from ._transcript_valid import Dialect, dialect_of, transcript_problems
from .strategies import CallKind, Options, ScriptOptions, scripts_of

FaultKind: TypeAlias = Literal[
    "never_asked",
    "raised",
    "endless",
    "invalid_request",
    "invalid_transcript",
    "lost_call",
    "answered_twice",
    "altered",
    "invented",
    "swallowed_duplicate",
]
"""What a loop can do wrong."""


@dataclass(frozen=True, slots=True)
class LoopFault:
    """One thing that a loop did wrong.

    Attributes:
        kind: A stable word for it, as in `lost_call`.
        text: What happened and what to do about it.
    """

    kind: FaultKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class LoopFailure(AssertionError):
    """A loop did something wrong; the text shows the shortest script that makes it do so.

    Attributes:
        faults: What it did wrong.
        script: The turns of the model, to reproduce it with.
    """

    __module__ = "lutum_py.testing"  # where it is imported from, which pytest shows

    def __init__(
        self, message: str, *, faults: Iterable[LoopFault], script: Sequence[AssistantTurn]
    ) -> None:
        super().__init__(message)
        self.faults: tuple[LoopFault, ...] = tuple(faults)
        self.script: tuple[AssistantTurn, ...] = tuple(script)


_WIDTH = 160
_SHOWN = 20


def report(toolset: type[Toolset], available: Available, failed: Run) -> str:
    """Write the message of a failure.

    Args:
        toolset: The tools of the loop.
        available: Which of them it offers.
        failed: The run that failed.
    """
    unlike = " (not each time: run again with the same turns, it did not fail)"
    sometimes = "" if failed.always else unlike
    said = [line for turn in failed.script for line in _turn_lines(toolset, available, turn)]
    lines = [
        f"The loop went wrong{sometimes}:",
        *(f"- {fault}" for fault in failed.faults),
        "The model said:",
        "    ScriptedModel(",
        "        [",
        *(f"            {line}" for line in said),
        "        ]",
        "    )",
        "The conversation afterwards:",
        *(f"    {at}. {line}" for at, line in enumerate(_left_lines(failed.left), 1)),
    ]
    return "\n".join(lines)


def _turn_lines(toolset: type[Toolset], available: Available, turn: AssistantTurn) -> Iterator[str]:
    """Write a turn as the code that makes it, with what the toolset makes of each call."""
    if not turn.tool_calls:
        yield f"ScriptedModel.text({turn.text!r}),"
        return
    remarks = _remarks(toolset, available, turn)
    yield "ScriptedModel.tool_calls("
    for call, remark in zip(turn.tool_calls, remarks, strict=True):
        yield f"    ({call.id!r}, {call.name!r}, {call.arguments!r}),  # {remark}"
    if turn.text:
        yield f"    text={turn.text!r},"
    if turn.finish_reason != "tool_calls":
        yield f"    finish_reason={turn.finish_reason!r},"
    yield "),"


def _remarks(toolset: type[Toolset], available: Available, turn: AssistantTurn) -> list[str]:
    try:
        outcome = toolset.read_turn(turn, available)
    except DuplicateToolCallIdError as error:
        return [
            "another call has this id" if call.id == error.call_id else ""
            for call in turn.tool_calls
        ]
    assert isinstance(outcome, NeedsTools)  # it has calls
    issues = outcome.round.recoverable_tool_call_issues
    outcome.round.discard()
    reasons = {issue.metadata.id: issue.reason for issue in issues}
    return [reasons.get(call.id, "fits") for call in turn.tool_calls]


def _left_lines(left: Iterable[object]) -> Iterator[str]:
    items = list(left)
    for item in items[:_SHOWN]:
        if isinstance(item, Message | AssistantTurn | ToolResult):
            line = line_of(item)
        else:
            line = _plain(item)
        yield cut(" ".join(line.split()), _WIDTH)
    if len(items) > _SHOWN:
        yield f"and {len(items) - _SHOWN} more"


def _plain(item: object) -> str:
    try:
        return compact_json(item)
    except (TypeError, ValueError):
        return repr(item)


def said_in_turn(turn: AssistantTurn) -> Iterator[Said]:
    """List what a turn of the library says: its text, and its calls."""
    if turn.text:
        yield Said(turn.text)
    for call in turn.tool_calls:
        yield Said(call.arguments, call.name, call.id or None)


def said_in_items(items: Iterable[TranscriptItem]) -> Iterator[Said]:
    """List what the model said in a transcript."""
    for item in items:
        if isinstance(item, AssistantTurn):
            yield from said_in_turn(item)


def judge(
    given: Sequence[tuple[AssistantTurn, Sequence[Said]]],
    kept: Sequence[Said],
    *,
    gave_up: bool,
    was_stopped: bool,
) -> Iterator[LoopFault]:
    """Find what was lost or changed of the turns that a loop got.

    Args:
        given: Each turn, and what it says in the form in which it is kept.
        kept: What the model said in the conversation afterwards, in order.
        gave_up: Whether the loop let out an exception that it may let out.
        was_stopped: Whether it was stopped before its own end.
    """
    # For instance `given` has one turn that says [Said("{}", "forecast", "c1")], and `kept` is what
    # the conversation has of it. Turns are looked for in order, each after the one before:
    # `cursor`.
    left, cursor, is_whole = list(kept), 0, True
    for number, (turn, parts) in enumerate(given, 1):
        # Some providers refuse to take back a text that is blank.
        said = [part for part in parts if part.name is not None or part.text.strip()]
        is_last = number == len(given)
        if not turn.tool_calls or (gave_up and is_last):
            continue
        ids = [call.id for call in turn.tool_calls]
        doubled = [id for at, id in enumerate(ids) if id in ids[:at]]
        if doubled:
            is_ended = is_last and not was_stopped
            yield from (_swallowed(number, doubled[0]),) if is_ended else ()
            continue
        if was_stopped and is_last:
            continue
        at = _found(said, left, cursor)
        if at is None:
            is_whole = False
            yield _unlike(number, said, left)
        else:
            for place in at:
                left[place] = _TAKEN
            cursor = at[-1] + 1
    for each in left if is_whole and not gave_up and not was_stopped else ():
        if each.name is not None:
            text = f"The conversation has {_shown(each)}, which the model did not make."
            yield LoopFault("invented", text)
            return


# Stands where a part was found. The list keeps its length, so that places and `cursor` stay right.
_TAKEN = Said("")


def _found(said: Sequence[Said], left: Sequence[Said], cursor: int) -> list[int] | None:
    """Find where a turn stands: its parts one after another, from a place on."""
    places: list[int] = []
    for one in said:
        # Parts of other turns and of the user's own may be between them, so what does not match
        # is passed over; the order has to hold.
        while cursor < len(left) and not _is_same(one, left[cursor]):
            cursor += 1
        if cursor == len(left):
            return None
        places.append(cursor)
        cursor += 1
    return places


def _is_same(sent: Said, kept: Said) -> bool:
    if sent.name is None or kept.name is None:
        return sent == kept
    # A name that some provider does not take back has to be written otherwise there.
    is_name = sent.name == kept.name or not PLAIN_NAME.fullmatch(sent.name)
    return is_name and sent.text == kept.text and sent.id in (None, kept.id)


def _unlike(number: int, said: Sequence[Said], left: Sequence[Said]) -> LoopFault:
    missing = [one for one in said if not any(_is_same(one, other) for other in left)]
    lost = [one for one in missing if one.name is not None]
    # An id that is there with other words is a call that was changed, and says more than that one
    # is lost and another was made up.
    changed = [
        (one, other)
        for one in lost
        for other in left
        if other.name is not None and one.id is not None and other.id == one.id
    ]
    if changed:
        one, other = changed[0]
        text = f"Turn {number} was changed: the model sent {_shown(one)}, kept was {_shown(other)}."
        return LoopFault("altered", f"{text} {_AS_SENT}")
    if lost:
        what = "nothing of it" if len(missing) == len(said) else "not all of it"
        text = (
            f"Of turn {number} {what} is in the conversation: lost is "
            f"{', '.join(map(_shown, lost))}. {_COMMIT}"
        )
        return LoopFault("lost_call", text)
    if missing:
        text = f"Turn {number} was changed: its text {shorten(missing[0].text)} is gone. {_AS_SENT}"
        return LoopFault("altered", text)
    text = f"Turn {number} was changed: its parts stand in another order, or were taken together."
    return LoopFault("altered", f"{text} {_AS_SENT}")


_AS_SENT = "Keep the turn as it came; `plan.commit` and a dialect's `messages` do."
_COMMIT = (
    "Commit every round, also one whose calls cannot be used: the library has a rejection ready "
    "for each of them."
)


def _swallowed(number: int, id: str) -> LoopFault:
    text = (
        f"Turn {number} has two calls with the id {id!r}, and the loop ended as if nothing had "
        "happened. Ask the model again, or let DuplicateToolCallIdError out."
    )
    return LoopFault("swallowed_duplicate", text)


def _shown(call: Said) -> str:
    return f"call {call.id!r} of {shorten(call.name)} with {shorten(call.text)}"


_PATIENCE: Final = 10
"""So many times more is a loop given the final answer before it counts as endless."""

_NOT_THE_USERS = (Path(__file__).parents[1], *map(Path, sysconfig.get_paths().values()))
_KINDS: Mapping[str, FaultKind] = {
    "call_without_result": "lost_call",
    "duplicate_result": "answered_twice",
}


class Stopped(BaseException):
    """Ends a loop from inside of the model; no `except Exception` of the loop holds it up."""


class Referee:
    """Keep what a loop was given and what it did wrong.

    Args:
        script: The turns; the last, the final answer, is given for every request after them.
        may_raise: What the loop may let out.

    Attributes:
        script: The turns.
        given: The turns that the loop got, as it could read them.
        faults: What it did wrong so far.
        let_out: The exception of `may_raise` that ended the loop, if one did.
        is_stopped: Whether the loop was stopped before its own end.
    """

    def __init__(
        self, script: Sequence[AssistantTurn], may_raise: tuple[type[Exception], ...]
    ) -> None:
        self.script = script
        self._may_raise = may_raise
        self._asked = 0
        self.given: list[AssistantTurn] = []
        self.faults: list[LoopFault] = []
        self.let_out: BaseException | None = None
        self.is_stopped = False

    def next(self, _: object) -> AssistantTurn:
        """Return the next turn of the script."""
        self._asked += 1
        if self._asked > len(self.script) + _PATIENCE:
            text = (
                f"The loop does not end: it asked {_PATIENCE} times more after the model had given "
                "its final answer. Leave the loop when a turn is `Finished`. Where that takes an "
                "answer of a type, pass the turn that gives it as `final=`."
            )
            self.stop(LoopFault("endless", text))
        return self.script[min(self._asked, len(self.script)) - 1]

    def stop(self, *faults: LoopFault) -> NoReturn:
        """End the loop."""
        self.faults += faults
        self.is_stopped = True
        raise Stopped

    @property
    def asked(self) -> str:
        """Which request of the loop this is."""
        return f"request {self._asked + 1}"

    def run(self, call: Callable[[], object]) -> None:
        """Run the loop to its end, an async one in an event loop of its own.

        Raises:
            MisuseError: The loop is async, and an event loop runs here already.
        """
        # `Stopped` is raised in the model, on the loop's own stack: that ends a loop which nobody
        # could stop from outside, and lets its `finally` blocks run.
        outcome: object = None
        try:
            outcome = call()
            if inspect.isawaitable(outcome) and not _is_inside_event_loop():
                asyncio.run(_awaited(outcome))
        except BaseException as error:
            if not self.is_stopped:
                # What else is no `Exception` ends the check: an interrupt, or what pytest raises.
                if not isinstance(error, Exception | SystemExit | asyncio.CancelledError):
                    raise
                self._ended_by(error)
        if inspect.isawaitable(outcome) and _is_inside_event_loop():
            raise _never_run(outcome)
        if not (self._asked or self.faults):
            text = "The loop never asked the model, so nothing was tried. Is it the right function?"
            if inspect.isgenerator(outcome) or inspect.isasyncgen(outcome):
                text += " It gave a generator, which nobody ran: pass a function that runs it."
            self.faults.append(LoopFault("never_asked", text))

    def _ended_by(self, error: BaseException) -> None:
        if all(isinstance(one, self._may_raise) for one in _single(error)):
            self.let_out = error
            return
        when = f"After turn {self._asked}"
        remedy = "Whatever the model sends, answer each call with a result."
        if isinstance(error, Exception):
            remedy = f"{remedy[:-1]}; what the loop may let out is said with `may_raise`."
        if not self._asked:  # the model had no part in it
            when = "Before its first request"
            remedy = (
                "A loop is given a session and a model, or with `dialect=` a list of messages and "
                "a client."
            )
        text = (
            f"{when} the loop let {type(error).__name__} out{_place_of(error)}: "
            f"{cut(str(error), 300).rstrip('.')}. {remedy}"
        )
        self.faults.append(LoopFault("raised", text))


def _is_inside_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _never_run(outcome: Awaitable[object]) -> MisuseError:
    if inspect.iscoroutine(outcome):
        outcome.close()
    return MisuseError(
        "The loop is async, and an event loop runs here already. Call `check_loop` from a sync "
        "test: it runs the loop by itself."
    )


async def _awaited(outcome: Awaitable[object]) -> None:
    await outcome


def _single(error: BaseException) -> Iterator[BaseException]:
    """Take groups of exceptions apart, as task groups raise them."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for inner in cast("ExceptionGroup[Exception]", error).exceptions:
        yield from _single(inner)


def _place_of(error: BaseException) -> str:
    """Say where in the user's code an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    # The last frame of the user's: an exception mostly comes out of a library that the loop called
    # wrongly, and the line to fix is the one that called it.
    own = [
        frame
        for frame in frames
        if not any(Path(frame.filename).is_relative_to(place) for place in _NOT_THE_USERS)
    ]
    last = own[-1] if own else frames[-1]
    return f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def fault_of(where: str, problem: object) -> LoopFault:
    """Make a fault of a violation that a dialect found, or of a text."""
    kind = _KINDS.get(getattr(problem, "rule", ""), "invalid_transcript")
    return LoopFault(kind, f"{where} is invalid: {problem}")


class JudgedModel(ScriptedModel):
    """Give a loop its turns, and look at each of its requests first."""

    def __init__(self, referee: Referee) -> None:
        super().__init__(referee.next)
        self._referee = referee

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request, or stop the loop."""
        referee = self._referee
        asked = referee.asked
        try:
            turn = super().respond_sync(request)
        except DialectError as error:
            referee.stop(LoopFault("invalid_request", f"In {asked}: {error}"))
        referee.given.append(turn)
        return turn


class JudgedClient(ScriptedClient):
    """The same for a loop over a provider's own messages."""

    def __init__(self, referee: Referee, dialect: Dialect) -> None:
        super().__init__(referee.next, dialect, check=False)
        self._referee = referee

    def _answer(self, body: Json) -> ScriptedResponse:
        referee = self._referee
        where = referee.asked.capitalize()
        if self._key not in body:
            text = f"{where} has no {self._key!r}, so there is nothing to answer."
            referee.stop(LoopFault("invalid_request", text))
        violations = self._dialect.check(body)
        if violations:
            referee.stop(*[fault_of(where, violation) for violation in violations])
        response = super()._answer(body)
        referee.given.append(self._dialect.decode(response))
        return response


Loop: TypeAlias = Callable[[Any, Any], object]
"""A loop of yours, as `check_loop` drives it."""

_GREETING = "Hello."


class LoopSettings(ScriptOptions, total=False):
    """Say how a loop is tried, beside what its scripts may have.

    Attributes:
        dialect: The provider's format, for a loop over plain messages.
        start: Makes the session, or the list of messages, that a run begins with; by default one
            message of the user.
        may_raise: What the loop may let out, beside `DuplicateToolCallIdError`.
        examples: How many scripts are tried, 100 by default.
        settings: Settings of Hypothesis; they replace `examples`.
    """

    dialect: Dialect | None
    start: Callable[[], Any] | None
    may_raise: tuple[type[Exception], ...]
    examples: int
    settings: Settings | None


@dataclass(frozen=True, kw_only=True)
class _Options(Options):
    dialect: Dialect | None = None
    start: Callable[[], Any] | None = None
    may_raise: tuple[type[Exception], ...] = ()
    examples: int = 100
    settings: Settings | None = None


def check_loop(
    loop: Loop, toolset: AnyToolset, *kinds: CallKind, **settings: Unpack[LoopSettings]
) -> None:
    """Run a loop with scripts of what a model may send, and fail if it goes wrong.

    The tools of the loop are run many times, with any arguments that fit: replace tools that must
    not run in a test. Each script begins with a turn that has calls.

    Args:
        loop: `loop(session, model)`; or, with a dialect, `loop(messages, client)`; sync or async.
        toolset: The tools that the loop offers.
        kinds: What kinds of calls the model sends, as in `strategies.calls`; all by default.
        settings: How it is tried; see `LoopSettings`.

    Raises:
        LoopFailure: The loop went wrong. This `AssertionError` shows the shortest script that was
            found, what went wrong, and what the loop left.
        InvalidValueError: For some tool no arguments were found that fit, or an option is out of
            its range; the text names it.
        MisuseError: An argument is of the wrong type, the loop does not take two arguments, or it
            is async and an event loop runs here already.

    Example:
        >>> from lutum_py import Finished, NeedsTools, Toolset, tool, tool_fn
        >>> @tool_fn
        ... def forecast(city: str) -> str:
        ...     return "sunny"
        >>> class Tools(Toolset):
        ...     forecast = tool(forecast)
        >>> def loop(session, model):
        ...     while True:
        ...         match session.text_turn(model).tools(Tools).collect_sync():
        ...             case NeedsTools(round):
        ...                 round.commit(session, [call.call_sync() for call in round.tool_calls])
        ...             case Finished(result):
        ...                 return result.text
        >>> check_loop(loop, Tools, examples=20)
    """
    __tracebackhide__ = True
    options = _Options(**settings)
    require_usable(loop, toolset, options)
    scripted = scripts_of(toolset, kinds, options)
    check_arguments(toolset, options.available, options.arguments)
    allowed: tuple[type[Exception], ...] = (DuplicateToolCallIdError, *options.may_raise)
    form = _over_a_session() if options.dialect is None else _over_messages(options.dialect)
    if options.start is not None:
        form = replace(form, started=options.start)
    # A loop that goes wrong may drop rounds that are open, which warn: that is told in other words.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            # Kept examples would be those of another loop: one function here runs them all.
            usual = Settings(max_examples=options.examples, deadline=None, database=None)
            failed = _search(
                lambda script: form.run(loop, Referee(script, allowed)),
                scripted,
                options.settings or usual,
            )
        finally:
            gc.collect()
    if failed is not None:
        message = report(toolset, options.available, failed)
        raise LoopFailure(message, faults=failed.faults, script=failed.script)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a loop: what the model said, what went wrong, and the conversation that was left.

    It is not `always` so where nothing went wrong when the same script was run again.
    """

    script: Sequence[AssistantTurn]
    faults: list[LoopFault]
    left: list[object]
    always: bool = True


def _search(
    run: Callable[[Sequence[AssistantTurn]], Run],
    scripted: st.SearchStrategy[tuple[AssistantTurn, ...]],
    chosen: Settings,
) -> Run | None:
    """Look for a script that makes the loop fail, and make it as simple as it can be."""
    # A list of one, which the function below replaces. Hypothesis gives back the shortest script,
    # but not what went wrong with it, and to run it again might go another way.
    found: list[Run] = []

    def fails(script: tuple[AssistantTurn, ...]) -> bool:
        made = run(script)
        # While Hypothesis shrinks, a script that fails otherwise is not a simpler one of the same
        # fault: that is the first, which a simpler script has to have too.
        kinds = [fault.kind for fault in made.faults]
        if kinds and (not found or found[0].faults[0].kind in kinds):
            found[:] = [made]
            return True
        return False

    # Explaining runs the loop many times more, to comment on the source of a test; the report says
    # more.
    phases = [phase for phase in chosen.phases if phase is not Phase.explain]
    try:
        fails(find(scripted, fails, settings=Settings(chosen, phases=phases)))
    except NoSuchExample:
        return None
    except Flaky:
        return replace(found[0], always=False)
    return found[0]


@dataclass(frozen=True, slots=True)
class _Form:
    """What a loop is driven over: a session of the library, or a provider's own messages.

    Attributes:
        started: Makes what a run begins with.
        items: Gives the items of the conversation in it.
        asked: Makes what the loop asks.
        said_by: Gives what a turn says, in the form in which it is kept.
        said_in: Gives what the model says in items.
        problems: Finds what is wrong with the conversation.
    """

    started: Callable[[], Any]
    items: Callable[[Any], Sequence[Any]]
    asked: Callable[[Referee], Any]
    said_by: Callable[[AssistantTurn], Iterable[Said]]
    said_in: Callable[[Sequence[Any]], Iterable[Said]]
    problems: Callable[[Any], Iterable[object]]

    def run(self, loop: Loop, referee: Referee) -> Run:
        """Run a loop once, and judge what it leaves."""
        held = self.started()
        before = len(self.items(held))
        referee.run(lambda: loop(held, self.asked(referee)))
        faults, items = referee.faults, self.items(held)
        if not referee.is_stopped:
            where = "The conversation at the end"
            faults += [fault_of(where, problem) for problem in self.problems(held)]
        faults += judge(
            [(turn, [*self.said_by(turn)]) for turn in referee.given],
            [*self.said_in(items[before:])],
            gave_up=referee.let_out is not None or any(f.kind == "raised" for f in faults),
            was_stopped=referee.is_stopped,
        )
        return Run(referee.script, faults, [*items])


def _over_a_session() -> _Form:
    def started() -> Session:
        session = Session()
        session.push_user(_GREETING)
        return session

    return _Form(
        started=started,
        items=lambda session: session.transcript,
        asked=JudgedModel,
        said_by=said_in_turn,
        said_in=said_in_items,
        problems=transcript_problems,
    )


def _over_messages(dialect: Dialect) -> _Form:
    module = dialect_of(dialect)
    form = wire_form_of(module.NAME)
    return _Form(
        started=lambda: module.messages([Message("user", _GREETING)]),
        items=lambda messages: messages,
        asked=lambda referee: JudgedClient(referee, dialect),
        said_by=lambda turn: form.said_in(form.messages_of(turn.payload)),
        said_in=form.said_in,
        problems=module.check,
    )


def require_usable(loop: object, toolset: object, options: _Options) -> None:
    """Make sure that a loop can be driven as it was asked, before it is blamed.

    Raises:
        MisuseError: Something is of the wrong type, or the loop does not take two arguments.
        InvalidValueError: No script would be tried.
    """
    start: object = options.start
    settings: object = options.settings
    if not is_toolset(toolset):
        raise MisuseError(
            f"check_loop takes the loop and then a Toolset, not {shorten(toolset)}. Call it as in "
            "`check_loop(answer, AppTools)`."
        )
    plain = options.dialect is not None
    _require_two_parameters(loop, "(messages, client)" if plain else "(session, model)")
    if start is not None and not callable(start):
        raise MisuseError(
            f"`start` takes a function that makes the beginning of each run, not {shorten(start)}. "
            "Every run needs its own: write it as in `lambda: Session()`."
        )
    if not _are_exceptions(options.may_raise):
        raise MisuseError(
            "`may_raise` takes a tuple of exception classes, as in `(TimeoutError,)`, not "
            f"{shorten(options.may_raise)}."
        )
    if settings is not None and not isinstance(settings, Settings):
        raise MisuseError(
            f"`settings` takes settings of Hypothesis, not {shorten(settings)}. Make them as in "
            "`hypothesis.settings(max_examples=500)`."
        )
    require_count("examples", options.examples)


def _require_two_parameters(loop: object, given: str) -> None:
    called = f"The loop is called with {given}"
    if not callable(loop):
        raise MisuseError(f"{called}; {shorten(loop)} cannot be called. Pass the function.")
    try:
        signature = signature_of(loop)
    except ValueError:
        return  # some builtins do not tell
    try:
        signature.bind(None, None)
    except TypeError as error:
        name = getattr(loop, "__qualname__", shorten(loop))
        raise MisuseError(
            f"{called}, and `{name}{signature}` does not take that: {error}. Wrap it, as in "
            f"`lambda {given[1:-1]}: answer({given[1:-1]}, limit=5)`."
        ) from None


def _are_exceptions(given: object) -> bool:
    return isinstance(given, tuple | list) and all(
        isinstance(each, type) and issubclass(each, Exception) for each in cast("list[Any]", given)
    )
