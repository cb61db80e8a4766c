"""`check_loop`: drive a loop with everything that a model may send, and see what it leaves.

What a loop looks like is the user's to say, so that the loop which is tested is the one that runs:

- `loop(session, model)` gets a session to go on with, and a model to ask. The transcript that is
  judged is that session's.
- `loop(messages, client)`, with a `dialect`, gets a list of the provider's own messages, to which
  it appends, and a `ScriptedClient` that stands in for the provider's. This is the form for those
  who own the conversation as plain data. The client and not the library's `Model` is what such a
  loop calls, so it is what is replaced; the list is passed in because it is what is judged.

Either may be async. A loop that takes more, such as hooks or a limit, is wrapped in a lambda.

What is judged is what everyone can see from outside: the requests, the conversation that is left,
and how the loop ended. How it got there (in parallel or not, with which hooks) is its own business.
Rules:

- Every request and the conversation at the end are valid by the library's own checks.
- Every turn with calls is kept as it came, and each of its calls has exactly one result.
- Nothing that the model does wrong gets out as an exception, except for two calls under one id: no
  valid transcript holds such a turn, so a loop lets the library's error out, or asks again.
- The loop asks at least once, and comes to an end when the model answers.

A loop may stop early, after any turn: a limit on turns is not a fault.

Hypothesis looks for a script that makes the loop fail, and takes away what is not needed for that.
A loop that never asks the model and never ends cannot be stopped from outside.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from ..._declare.offer import Available
from ..._declare.toolset_meta import ToolsetMeta
from ..._schema.signature import signature_of
from ..._session.session import Session
from ..._text.json import shorten
from ..._transcript.assistant import AssistantTurn
from ..._transcript.message import Message
from ...dialects._wire_form import Said, wire_form_of
from ...errors import DuplicateToolCallIdError, MisuseError
from .._strategies import Flaky, NoSuchExample, Phase, Settings, find, st
from .._strategies.calls import AnyToolset, ArgumentStrategies, check_arguments, require_count
from .._transcript_valid import Dialect, dialect_of, transcript_problems
from ..strategies import FINAL, CallKind, scripts
from .judgement import judge, said_in_items, said_in_turn
from .referee import JudgedClient, JudgedModel, Referee, fault_of
from .report import LoopFailure, LoopFault, report

Loop: TypeAlias = Callable[[Any, Any], object]
"""A loop of yours, as `check_loop` drives it."""

_GREETING = "Hello."


def check_loop(
    loop: Loop,
    toolset: AnyToolset,
    *kinds: CallKind,
    dialect: Dialect | None = None,
    start: Callable[[], Any] | None = None,
    available: Available = None,
    arguments: ArgumentStrategies | None = None,
    max_turns: int = 3,
    max_calls: int = 3,
    odd_ids: bool = True,
    odd_names: bool = True,
    final: AssistantTurn = FINAL,
    may_raise: tuple[type[Exception], ...] = (),
    examples: int = 100,
    settings: Settings | None = None,
) -> None:
    """Run a loop with scripts of what a model may send, and fail if it goes wrong.

    The tools of the loop are run many times, with any arguments that fit: replace tools that must
    not run in a test. Each script begins with a turn that has calls.

    Args:
        loop: `loop(session, model)`; or, with a dialect, `loop(messages, client)`; sync or async.
        toolset: The tools that the loop offers.
        kinds: What kinds of calls the model sends, as in `strategies.calls`; all by default.
        dialect: The provider's format, for a loop over plain messages.
        start: Makes the session, or the list of messages, that a run begins with; by default one
            message of the user.
        available: Which tools the loop offers; those that are on by default.
        arguments: Strategies of your own for the arguments of some tools.
        max_turns: How many turns with calls a script has at most.
        max_calls: How many calls a turn has at most.
        odd_ids: Whether some ids are empty, or come twice in a turn.
        odd_names: Whether some unknown tools have names that providers refuse to take back.
        final: The turn that ends each script; if the loop asks for an answer of a type, a turn with
            this answer, as in `ScriptedModel.tool_calls(("a1", "answer", {"total": 1}))`.
        may_raise: What the loop may let out, beside `DuplicateToolCallIdError`.
        examples: How many scripts are tried.
        settings: Settings of Hypothesis; they replace `examples`.

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
    require_usable(loop, toolset, dialect is not None, start, may_raise, settings)
    require_count("examples", examples)
    own: ArgumentStrategies = {} if arguments is None else arguments
    scripted = scripts(
        toolset,
        *kinds,
        available=available,
        arguments=own,
        max_turns=max_turns,
        max_calls=max_calls,
        odd_ids=odd_ids,
        odd_names=odd_names,
        final=final,
    )
    check_arguments(toolset, available, own)
    allowed: tuple[type[Exception], ...] = (DuplicateToolCallIdError, *may_raise)
    form = _over_a_session() if dialect is None else _over_messages(dialect)
    if start is not None:
        form = replace(form, started=start)
    # A loop that goes wrong may drop rounds that are open, which warn: that is told in other words.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            # Kept examples would be those of another loop: one function here runs them all.
            usual = Settings(max_examples=examples, deadline=None, database=None)
            failed = _search(
                lambda script: form.run(loop, Referee(script, allowed)),
                scripted,
                settings or usual,
            )
        finally:
            gc.collect()
    if failed is not None:
        script, faults = failed.script, failed.faults
        message = report(toolset, available, script, faults, failed.left, always=failed.always)
        raise LoopFailure(message, faults=faults, script=script)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a loop: what the model said, what went wrong, and the conversation that was left.

    It is not `always` so where nothing went wrong when the same script was run again.
    """

    script: Sequence[AssistantTurn]
    faults: list[LoopFault]
    left: list[Any]
    always: bool = True


def _search(
    run: Callable[[Sequence[AssistantTurn]], _Run],
    scripted: st.SearchStrategy[tuple[AssistantTurn, ...]],
    chosen: Settings,
) -> _Run | None:
    """Look for a script that makes the loop fail, and make it as simple as it can be."""
    # A list of one, which the function below replaces. Hypothesis gives back the shortest script,
    # but not what went wrong with it, and to run it again might go another way.
    found: list[_Run] = []

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

    def run(self, loop: Loop, referee: Referee) -> _Run:
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
        return _Run(referee.script, faults, [*items])


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


def require_usable(
    loop: object, toolset: object, plain: bool, start: object, may_raise: object, settings: object
) -> None:
    """Make sure that a loop can be driven as it was asked, before it is blamed.

    Args:
        loop: The loop.
        toolset: Its tools.
        plain: Whether it is one over a provider's own messages.
        start: What makes the beginning of a run, or None.
        may_raise: What the loop may let out.
        settings: Settings of Hypothesis, or None.

    Raises:
        MisuseError: Something is of the wrong type, or the loop does not take two arguments.
    """
    if not isinstance(toolset, ToolsetMeta):
        raise MisuseError(
            f"check_loop takes the loop and then a Toolset, not {shorten(toolset)}. Call it as in "
            "`check_loop(answer, AppTools)`."
        )
    _require_two_parameters(loop, "(messages, client)" if plain else "(session, model)")
    if start is not None and not callable(start):
        raise MisuseError(
            f"`start` takes a function that makes the beginning of each run, not {shorten(start)}. "
            "Every run needs its own: write it as in `lambda: Session()`."
        )
    if not _are_exceptions(may_raise):
        raise MisuseError(
            "`may_raise` takes a tuple of exception classes, as in `(TimeoutError,)`, not "
            f"{shorten(may_raise)}."
        )
    if settings is not None and not isinstance(settings, Settings):
        raise MisuseError(
            f"`settings` takes settings of Hypothesis, not {shorten(settings)}. Make them as in "
            "`hypothesis.settings(max_examples=500)`."
        )


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
