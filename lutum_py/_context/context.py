"""What a tool is given besides its input: who calls it, what it may read, and where it reports.

A context is made once a call, so making one is cheap and everything that costs waits until it is
used. Reports are plain calls: they check what they are given, build an event only when there is a
sink, and hand it over in the thread of the tool. A sink is an onlooker, and its failure is not the
tool's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeVar

from .._text.escaping import is_interrupt
from .._text.immutable import Immutable
from .._text.json import is_sequence, json_data, shorten
from ..errors import InvalidValueError, MisuseError
from .cancellation import CancellationToken
from .inner import EXAMPLE, CallsRequested, Inner, InnerState, ToolRequestedCalls, pairs_in
from .progress import (
    TOOL_CALL_PROGRESS_ACTIVITY_TYPE,
    ActivityDelta,
    ActivitySnapshot,
    ObserverText,
    ProgressStatus,
    Sink,
    ToolCallProgressState,
    ToolEvent,
    check_report,
)
from .state import State, StateKey

if TYPE_CHECKING:
    from typing import Self

    from .suspension import Decision, SuspendTicket

T = TypeVar("T")


class CallLike(Protocol):
    """What a context needs to know of a call.

    A call that is being resumed may also have `resume`, `ticket`, `suspension_id` and
    `suspension_reason`.
    """

    @property
    def id(self) -> str:
        """The id of the call."""
        ...

    @property
    def name(self) -> str:
        """The wire name of its tool."""
        ...


class ToolSuspended(Exception):
    """Leave a tool that cannot go on before somebody decides.

    Raised by `ToolContext.suspend` and caught by `execution`, which makes a suspended call of it.
    It is not a `ToolError`, since nothing failed: a tool lets it pass.

    Attributes:
        ticket: What is to be decided.
    """

    def __init__(self, ticket: SuspendTicket) -> None:
        super().__init__(ticket)
        self.ticket = ticket

    def __str__(self) -> str:
        return (
            "The tool was left by `ctx.suspend(ticket)`, and waits for a decision. `execution` "
            "lets the call wait by itself; where you run the call, catch this and write "
            "`plan.record(call.suspend(error.ticket))`."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """Say in which run and on whose behalf a tool is called; all of it is the user's to fill.

    Attributes:
        run_id: The id of the run.
        thread_id: The id of the conversation.
        parent_run_id: The run that started this one.
        parent_thread_id: The conversation from which this one was started.
        parent_call_id: The tool call from within which this run was started.
        parent_tool_id: The tool of that call.
        actor: The user or service on whose behalf it runs.
        source: Where it was requested, as in "cli" or "slack".
        execution_scope: "foreground" if a user is present, else "background".

    >>> RunIdentity(run_id="r1", execution_scope="background").is_background
    True
    """

    run_id: str | None = None
    thread_id: str | None = None
    parent_run_id: str | None = None
    parent_thread_id: str | None = None
    parent_call_id: str | None = None
    parent_tool_id: str | None = None
    actor: str | None = None
    source: str | None = None
    execution_scope: Literal["foreground", "background"] = "foreground"

    def __post_init__(self) -> None:
        """Refuse a scope that is not one of the two, with a ValueError."""
        if self.execution_scope not in ("foreground", "background"):
            raise InvalidValueError(
                f"The execution scope is {self.execution_scope!r}. "
                "Give 'foreground' or 'background'."
            )

    @property
    def is_background(self) -> bool:
        """Whether no user is present where it runs."""
        return self.execution_scope == "background"


_NO_RUN: Final = RunIdentity()
_NO_STATE: Final = State()
_OF_RESUMPTION: Final = ("resume", "ticket", "suspension_id", "suspension_reason")
_FAILED: Final = (ProgressStatus.FAILED, ProgressStatus.CANCELLED)


def _checked(field: str, given: T, kind: type[T]) -> T:
    # A dict in place of a `State` has a `get` as well: each key would be None.
    MisuseError.check("ToolContext", field, f"a {kind.__name__}", given, kind)
    return given


class _ContextFields:
    call_id: str
    tool_name: str
    run: RunIdentity
    agent: Any
    cancellation: CancellationToken
    has_failed: bool
    snapshot: State
    resume: Decision | None
    ticket: SuspendTicket | None
    suspension_id: str | None
    suspension_reason: str | None
    _call: CallLike | None
    _inner: Inner | None
    _number: int | None
    _sink: Sink | None
    _sink_failed: bool
    __slots__ = tuple(__annotations__)


class ToolContext(Immutable, _ContextFields):
    """Give a running tool its surroundings; read-only.

    Attributes:
        call_id: The id of the call.
        tool_name: The wire name of the tool.
        run: In which run it is called.
        agent: The user's own object, passed through.
        cancellation: The request to stop, which the tool may look at.
        snapshot: The state as it was when the call started.
        resume: The decision that brought the call back, or None.
        ticket: What that decision is about, or None.
        suspension_id: The id of the suspension that it ends, or None.
        suspension_reason: Why the call had been suspended, or None.
        has_failed: Whether the tool has reported that it failed, or was cancelled.

    >>> events = []
    >>> context = ToolContext("c1", "index", sink=events.append)
    >>> context.report_progress("running", "half way", 0.5)
    >>> events[0].content["message"]
    'half way'
    """

    __slots__ = ()

    def __new__(
        cls,
        call_id: str,
        tool_name: str,
        *,
        sink: Sink | None = None,
        state: State | None = None,
        run: RunIdentity | None = None,
        cancellation: CancellationToken | None = None,
        agent: Any = None,
        resume: Decision | None = None,
        ticket: SuspendTicket | None = None,
        suspension_id: str | None = None,
        suspension_reason: str | None = None,
        inner: Inner | None = None,
    ) -> Self:
        """Put a context together by hand; `for_call` takes the first half from a call.

        Args:
            call_id: The id of the call.
            tool_name: The wire name of the tool.
            sink: Receives what the tool reports; None for nobody.
            state: The snapshot that the tool may read; None for an empty one.
            run: In which run it is called; None for an unnamed one in the foreground.
            cancellation: The request to stop; None for a token of its own.
            agent: Any object that the user's tools want to see.
            resume: The decision that brought the call back.
            ticket: What that decision is about.
            suspension_id: The id of the suspension that it ends.
            suspension_reason: Why the call had been suspended.
            inner: What the tool comes back to, as after `request_calls`, in a test of it.

        Raises:
            MisuseError: The sink is async, or it, the state, run or token is of another type.
        """
        if sink is not None:
            MisuseError.check("ToolContext", "sink", "a function of an event", sink, Callable)
            if iscoroutinefunction(sink):
                raise MisuseError(
                    f"The sink of call {call_id!r} is async, so nobody would await it. Pass an "
                    "`AsyncSink()`, and iterate it where the events are wanted."
                )
        # Filled as the open base, and made immutable by the change of class: see `_text.immutable`.
        self = object.__new__(_ContextFields)
        self.call_id = call_id
        self.tool_name = tool_name
        self.run = _NO_RUN if run is None else _checked("run", run, RunIdentity)
        self.agent = agent
        self.cancellation = (
            CancellationToken()
            if cancellation is None
            else _checked("cancellation", cancellation, CancellationToken)
        )
        self.snapshot = _NO_STATE if state is None else _checked("state", state, State)
        self.resume = resume
        self.ticket = ticket
        self.suspension_id = suspension_id
        self.suspension_reason = suspension_reason
        self._call = None
        self._inner = inner
        self._number = None
        self._sink = sink
        self._sink_failed = False
        self.has_failed = False
        self.__class__ = cls
        return self  # type: ignore[return-value]

    @classmethod
    def for_call(
        cls,
        call: CallLike,
        *,
        sink: Sink | None = None,
        state: State | None = None,
        run: RunIdentity | None = None,
        cancellation: CancellationToken | None = None,
        agent: Any = None,
    ) -> ToolContext:
        """Make the context of one call; what the call knows of its resumption comes along.

        Args:
            call: The call that is about to run.
            sink: Receives what the tool reports; None for nobody.
            state: The snapshot that the tool may read; None for an empty one.
            run: In which run it is called; None for an unnamed one in the foreground.
            cancellation: The request to stop; None for a token of its own.
            agent: Any object that the user's tools want to see.

        >>> from types import SimpleNamespace
        >>> ToolContext.for_call(SimpleNamespace(id="c1", name="search")).tool_name
        'search'
        """
        made = cls(
            call.id,
            call.name,
            sink=sink,
            state=state,
            run=run,
            cancellation=cancellation,
            agent=agent,
            # By `getattr`, because a call of your own need only have an id and a name.
            **{name: getattr(call, name, None) for name in _OF_RESUMPTION},
        )
        object.__setattr__(made, "_call", call)
        return made

    @property
    def idempotency_key(self) -> str:
        """The key of the call, for services that ask for one.

        If a store runs the call, it is the key of the claim, which is the same at every try. If
        not, give the session an id: see `call.idempotency_key`.

        Raises:
            MisuseError: The context was made by hand, of no call.
        """
        key: str | None = getattr(self._call, "idempotency_key", None)
        if key is None:
            raise MisuseError(
                f"The context of tool `{self.tool_name}` was made of no call ({self.call_id!r} is "
                "just a text), so there is no idempotency key. Make it with "
                "`ToolContext.for_call(call)`."
            )
        return key

    @classmethod
    def noop(cls, call: CallLike) -> ToolContext:
        """Make a context that reports to nobody, for a call that was given none."""
        return cls.for_call(call)

    def with_cancellation(self, cancellation: CancellationToken) -> ToolContext:
        """Return the same context under another request to stop.

        Args:
            cancellation: The token that the tool is to look at.
        """
        made = object.__new__(ToolContext)
        own = {name: getattr(self, name) for name in _ContextFields.__slots__}
        new = {"cancellation": cancellation, "has_failed": False}
        for name, value in {**own, **new, "_number": None, "_sink_failed": False}.items():
            object.__setattr__(made, name, value)
        return made

    def state(self, key: StateKey[T]) -> T:
        """Read a typed value from the snapshot, or the key's default."""
        return self.snapshot.get(key)

    def report_progress(
        self,
        status: ProgressStatus | str,
        message: str | None = None,
        progress: float | None = None,
        loaded: int | None = None,
        total: int | None = None,
    ) -> None:
        """Report how far the tool has come; may be called from any thread.

        What a tool reports after its run is over, as after a timeout, reaches nobody.

        Args:
            status: A `ProgressStatus` or its name.
            message: A line for people.
            progress: How much is done, from 0 to 1; None if nobody knows.
            loaded: Units done, not negative.
            total: Units in all, not negative.

        Raises:
            InvalidValueError: An argument is out of its range, with or without a sink.
        """
        # Checked even if nobody listens: a wrong report is found in the test that has no sink,
        # and not in production.
        if self._sink is None:
            check_report(status, message, progress, loaded, total)
        else:
            parent = self.run.parent_call_id
            state = ToolCallProgressState(
                self.call_id,
                self.tool_name,
                status,
                progress=progress,
                loaded=loaded,
                total=total,
                message=message,
                parent_node_id=parent,
                parent_call_id=parent,
            )
            self._emit(ActivitySnapshot, TOOL_CALL_PROGRESS_ACTIVITY_TYPE, state.model_dump())
        # A tool that says itself that it failed is not reported to have failed once more.
        if status in _FAILED:
            self._put(has_failed=True)

    def report_activity(self, activity_type: str, content: object) -> None:
        """Show an activity of the tool's own kind, in place of what was shown of it before.

        Args:
            activity_type: The kind, for the display to choose a form.
            content: Plain JSON data; it is copied.

        Raises:
            InvalidValueError: `activity_type` is not text, or a blank one, or the content is not
                JSON data, with or without a sink.
        """
        _require_text("activity_type", activity_type)
        shown = _json_of("content", content)
        self._emit(ActivitySnapshot, activity_type, shown)

    def report_activity_delta(self, activity_type: str, patch: object) -> None:
        """Change what is shown of an activity.

        Args:
            activity_type: The kind, as it was reported before.
            patch: A list of operations, or a single one; it is copied.

        Raises:
            InvalidValueError: `activity_type` is not text, or a blank one, or the patch is not JSON
                data, with or without a sink.
        """
        _require_text("activity_type", activity_type)
        steps = _json_of("patch", patch if is_sequence(patch) else [patch])
        self._emit(ActivityDelta, activity_type, steps)

    def emit_observer(self, content: str, source: str | None = None) -> None:
        """Report something to the operators of the system, and not to the user.

        Args:
            content: What to tell.
            source: Who speaks; by default the tool's name.

        Raises:
            InvalidValueError: `content` is not text, or `source` is not text or a blank one.
        """
        _require_text("content", content, blank=True)
        if source is not None:
            _require_text("source", source)
        self._emit(ObserverText, source or self.tool_name, content)

    def suspend(self, ticket: SuspendTicket) -> NoReturn:
        """Leave the tool until somebody decides.

        Args:
            ticket: What is to be decided.

        Raises:
            ToolSuspended: Always.
        """
        raise ToolSuspended(ticket)

    @property
    def inner(self) -> Inner | None:
        """The outcomes of the calls that the tool requested; None before it requested any.

        The outcomes of the last time, with the `state` that was left then.
        """
        record = getattr(self._call, "_record", None)
        made: Inner | None = None if record is None else record.inner
        return made if self._inner is None else self._inner

    def request_calls(self, calls: CallsRequested, state: InnerState | None = None) -> NoReturn:
        """Leave the tool until others were called: each is a call of the same plan.

        When each of them has its result, the tool is run again from its first line, and finds the
        results in `inner`. Until then only the `state` that it leaves here is kept. Declare a tool
        that does this as `idempotent`: it only makes calls, so a run that was cut off may be
        repeated.

        Args:
            calls: Pairs of a tool (its wire name or selector) and arguments; or what a model
                requested : a turn, or a round, which is closed by this.
            state: What the tool needs to go on: bytes, a text, or a `Session` of its own.

        Raises:
            ToolRequestedCalls: Always, but for what is no calls.
            MisuseError: There are no calls, or one has another kind.

        >>> from lutum_py.context import ToolRequestedCalls
        >>> try:
        ...     ToolContext("c1", "trip").request_calls(
        ...         [("find_flights", {"to": "Oslo"})], state="began"
        ...     )
        ... except ToolRequestedCalls as asked:
        ...     print(asked.state)
        began
        """
        named = f"Tool `{self.tool_name}` (call {self.call_id!r})"
        # A round has the calls that can be run; its turn has all.
        asked: Any = getattr(getattr(calls, "turn", calls), "tool_calls", None)
        if asked is None:
            asked = calls = pairs_in(calls, named)
        if not asked:
            raise MisuseError(f"{named} requests no calls. Pass at least one, {EXAMPLE}.")
        raise ToolRequestedCalls(calls, state)

    def _emit(self, make: Callable[..., ToolEvent], *said: object) -> None:
        """Hand an event of this call to the sink, if there is one; else none is made."""
        if (sink := self._sink) is None:
            return
        # A tool that was left behind may go on reporting, while another try is shown.
        call: Any = self._call
        if self._number is not None and not call._record.is_in_run(self._number):
            return
        event = make(self.call_id, *said)
        try:
            sink(event)
        except BaseException as error:
            if is_interrupt(error):
                raise
            # Once for a context: a sink that fails at each of a thousand reports would fill the
            # log.
            if not self._sink_failed:
                self._put(_sink_failed=True)
                from logging import getLogger

                getLogger("lutum.progress").exception(
                    "The sink of tool %r, call %r, raised; the tool goes on, and further failures "
                    "of this sink are not logged.",
                    self.tool_name,
                    self.call_id,
                )

    def __repr__(self) -> str:
        return f"<ToolContext of call {self.call_id!r}, tool {self.tool_name!r}>"


def _json_of(name: str, value: object) -> Any:
    try:
        return json_data(value)
    except ValueError as error:
        raise InvalidValueError(
            f"`{name}` is not JSON data: {error}. Give texts, finite numbers, booleans, None, and "
            "lists and dicts of them."
        ) from None


def _require_text(name: str, value: object, *, blank: bool = False) -> None:
    if not isinstance(value, str) or not (blank or value.strip()):
        kind = "text" if blank else "text that is not blank"
        raise InvalidValueError(f"`{name}` is {shorten(value)}. Give a {kind}.")
