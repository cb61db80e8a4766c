"""Every exception of the library, by whose fault it was.

One file, so that they are read beside each other; half of it is what causes and what fixes each.

```
LutumError
├── DeveloperError                 your code, or the code of a colleague
│   ├── MisuseError                something was called in a way in which it cannot work
│   ├── InvalidValueError          a value that cannot be kept or sent as it is
│   ├── ViewError                  a view of another transcript, or a cut that cannot be made
│   ├── ToolDefinitionError        a declaration that cannot become a tool
│   ├── ToolInputError             your code gave a call an input that does not fit its tool
│   ├── ToolOutputError            a tool returned something else than it declares
│   ├── ToolConstraintError        a turn asks for tools that it does not offer
│   ├── HookError                  a hook raised, or returned something that is not a decision
│   ├── CommitError                the results do not answer the round; see `faults`
│   ├── RoundClosedError           a round or plan used after its end
│   ├── LifecycleError             a call moved to a status that it cannot reach
│   └── MissingExtraError          an optional dependency is not installed
├── ModelError                     the model misbehaved
│   ├── UnknownToolError           a tool name that is not in the toolset
│   ├── InvalidArgumentsError      arguments that do not fit the tool; see `fields`
│   ├── DuplicateToolCallIdError   two calls of one turn share an id
│   └── ToolRoundArityError        more or fewer calls than the loop allows
├── ProviderError                  the provider, or the wire, misbehaved
│   └── DialectError               a payload that is not of the dialect; see `where`
├── SavedDataError                 stored data that this code cannot take
│   ├── TranscriptError            a transcript that is foreign, damaged or invalid
│   ├── HistoryError               messages that their provider would refuse; see `violations`
│   ├── PlanError                  a saved plan that was edited or no longer fits its tools
│   ├── ResumeError                a decision that does not fit the suspended call
│   ├── StoreError                 a store that was edited, is foreign, or whose database failed
│   ├── StaleError                 a step in a store after somebody else has gone on
│   └── HeldError                  a conversation that somebody else goes on with
└── ToolError                      what a tool itself raises; see `code`
    └── InvalidArguments, ExecutionFailed, Denied, NotFound, Internal, TimedOut, Cancelled,
        OutcomeUnknown
```

The examples of the exceptions show the line that causes it and the line that fixes it. They share
one toolset, a function that makes a round of calls, and a session.

Example:
    >>> from lutum_py import Session, Toolset, ToolMetadata, tool, tool_fn
    >>> from lutum_py.testing import ScriptedModel
    >>> @tool_fn
    ... def forecast(city: str, days: int = 1) -> str:
    ...     return f"{city}: sunny"
    >>> class Weather(Toolset):
    ...     forecast = tool(forecast)
    >>> def round_of(*calls):
    ...     return Weather.read_turn(ScriptedModel.tool_calls(*calls)).round
    >>> oslo, rome = ("c1", "forecast", {"city": "Oslo"}), ("c2", "forecast", {"city": "Rome"})
    >>> session = Session()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._text.escaping import LINES, escape_unprintable
from .._text.immutable import dataclass
from .._text.on_demand import on_demand

if TYPE_CHECKING:
    from ._faults import CommitFault as CommitFault
    from ._faults import DuplicateResult as DuplicateResult
    from ._faults import ExtraResult as ExtraResult
    from ._faults import MismatchedArguments as MismatchedArguments
    from ._faults import MismatchedToolName as MismatchedToolName
    from ._faults import MissingResult as MissingResult
    from ._faults import UnresolvedSuspension as UnresolvedSuspension

_FAULTS: Final = (
    *("CommitFault", "DuplicateResult", "ExtraResult", "MismatchedArguments"),
    *("MismatchedToolName", "MissingResult", "UnresolvedSuspension"),
)


class LutumError(Exception):
    """The root of every exception that the library raises on its own account.

    Example:
        >>> try:
        ...     session.push_user(3)
        ... except LutumError as error:
        ...     type(error).__mro__[1:4]
        (<class 'lutum_py.errors.DeveloperError'>, <class 'lutum_py.errors.LutumError'>, ...)
    """

    def __str__(self) -> str:
        # Not that of the next class: an error that is also a KeyError would be in quotes.
        return escape_unprintable(Exception.__str__(self), LINES)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[LutumError], args: tuple[Any, ...], state: dict[str, Any]) -> LutumError:
    # Without `__init__`, which takes more than a message: `UnknownToolError(message, name=...)`.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DeveloperError(LutumError):
    """The code that uses the library is at fault."""


class ModelError(LutumError):
    """The model sent something that cannot be used as it is."""


class ProviderError(LutumError):
    """The provider, or the wire between, sent something that is not of its format."""


class SavedDataError(LutumError):
    """Stored data is foreign, damaged, edited, or older or newer than this code."""


class MisuseError(DeveloperError, TypeError):
    """Something of the library was used in a way in which it cannot work.

    Example:
        >>> session.push_user({"question": "Will it rain?"})
        Traceback (most recent call last):
        lutum_py.errors.MisuseError: A message has a text, not {'question': 'Will it rain?'}. ...
        >>> session.push_user("Will it rain?")
    """

    @classmethod
    def of_field(
        cls, owner: str, field: str, expected: str, received: object, remedy: str = ""
    ) -> MisuseError:
        """Say that a field was given a value of the wrong type.

        Args:
            owner: What has the field, as in `AssistantTurn`.
            field: The name of the field.
            expected: What it takes, with its article, as in "a text or None".
            received: What came instead.
            remedy: A sentence that says what to do, if the expected type does not.
        """
        from .._text.json import shorten  # needs pydantic, which an exception by itself does not

        said = f"{owner} takes {expected} for `{field}`, not {shorten(received)}. {remedy}"
        return cls(said.rstrip())

    @classmethod
    def check(
        cls, owner: str, field: str, expected: str, given: object, kind: Any, remedy: str = ""
    ) -> None:
        """Refuse a value that is no instance of a type; the other arguments are as in `of_field`.

        Args:
            owner: What has the field.
            field: The name of the field.
            expected: What it takes, in words.
            given: The value.
            kind: The type, or a union of types.
            remedy: A sentence that says what to do.

        Raises:
            MisuseError: It is none.
        """
        if not isinstance(given, kind):
            raise cls.of_field(owner, field, expected, given, remedy)

    @classmethod
    def check_flag(cls, name: str, value: object) -> None:
        """Refuse what is neither True nor False: a text such as `"no"` would count as True.

        Raises:
            MisuseError: It is something else.
        """
        from .._text.json import shorten

        if not isinstance(value, bool):
            raise cls(f"{name}={shorten(value)}: pass True or False, or leave it out.")


class InvalidValueError(DeveloperError, ValueError):
    """A value that the program made cannot be kept or sent as it is.

    Example:
        >>> from lutum_py import Message
        >>> Message("assistant", "Hello")
        Traceback (most recent call last):
        lutum_py.errors.InvalidValueError: A message is said by system, developer, user, not by ...
        >>> Message("user", "Hello").role
        'user'
    """


class ViewError(DeveloperError, ValueError):
    """A view of another transcript, or a cut that cannot be: the text names places that would do.

    Example:
        >>> from lutum_py.window import View
        >>> View().drop_rounds(session, span=(0, 9))
        Traceback (most recent call last):
        lutum_py.errors.ViewError: The span from 0 to 9 is empty, or not in this transcript of ...
        >>> View().drop_rounds(session, older_than=3)
        View(cuts=())
    """


class ToolDefinitionError(DeveloperError, TypeError):
    """A declaration cannot become a tool: the text names the place and the remedy.

    Example:
        >>> tool_fn(lambda: "pong")
        Traceback (most recent call last):
        lutum_py.errors.ToolDefinitionError: `@tool_fn` got a function without a name, ...
        >>> tool_fn(name="ping")(lambda: "pong").name
        'ping'
    """


class ToolInputError(DeveloperError, ValueError):
    """An input that the program gave to a call does not fit the tool's input type.

    Attributes:
        tool: The wire name of the tool.
        fields: One entry for each part of the input that does not fit.

    Example:
        >>> call = round_of(oslo).expect_one()
        >>> call.input = {"city": "Oslo", "days": "many"}
        Traceback (most recent call last):
        lutum_py.errors.ToolInputError: This input does not fit tool `forecast`: `days`: Input ...
        >>> call.input = {"city": "Oslo", "days": 3}
    """

    def __init__(self, message: str, *, tool: str, fields: Sequence[FieldIssue] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.fields: tuple[FieldIssue, ...] = tuple(fields)


class ToolOutputError(DeveloperError):
    """An output does not fit the tool's declared output type.

    Attributes:
        tool: The wire name of the tool.
        fields: One entry for each part of the output that does not fit.

    Example:
        >>> call = round_of(oslo).expect_one()
        >>> call.complete({"sky": "blue"})
        Traceback (most recent call last):
        lutum_py.errors.ToolOutputError: The output of tool `forecast` does not fit its output ...
        >>> call.complete("blue sky").result
        '"blue sky"'
    """

    def __init__(self, message: str, *, tool: str, fields: Sequence[FieldIssue] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.fields: tuple[FieldIssue, ...] = tuple(fields)


class ToolConstraintError(DeveloperError):
    """A turn requires a tool that it does not offer, or any tool where it offers none.

    Example:
        >>> turn = session.text_turn(ScriptedModel([])).tools(Weather)
        >>> turn.require_tool("forcast").request()
        Traceback (most recent call last):
        lutum_py.errors.ToolConstraintError: The turn requires a tool that is not there: ...
        >>> turn.require_tool(Weather.forecast).request().tool_choice.name
        'forecast'
    """


class HookError(DeveloperError):
    """A hook raised, returned no decision, or was registered for a tool that is not there.

    Attributes:
        hook: The qualified name of the hook, if there is one.
        tool: The wire name of the tool, if one call was being decided.
        call_id: The id of that call.

    Example:
        >>> from lutum_py import RunNormally
        >>> hooks, round = Weather.HookSet(), round_of(oslo)
        >>> hooks.register_forecast_hook(lambda metadata, input: True)
        >>> round.apply_hooks_sync(hooks)
        Traceback (most recent call last):
        lutum_py.errors.HookError: Hook `<lambda>` for tool `forecast` (call 'c1') returned ...
        >>> hooks = Weather.HookSet()
        >>> hooks.register_forecast_hook(lambda metadata, input: RunNormally(input))
        >>> len(round.apply_hooks_sync(hooks).pending)
        1
    """

    def __init__(
        self,
        message: str,
        *,
        hook: str | None = None,
        tool: str | None = None,
        call_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hook = hook
        self.tool = tool
        self.call_id = call_id

    @classmethod
    def as_error(cls, error: BaseException, who: str) -> Exception:
        """Return what a function of the program raised, which is no interrupt, as an error.

        Args:
            error: What it raised.
            who: Which function that was, to begin a sentence.
        """
        if isinstance(error, Exception):
            return error
        # Passed on, it would look as if somebody had cancelled the task.
        return cls(
            f"{who} let an `asyncio.CancelledError` out, as of a task that it awaited, though "
            "nobody cancelled the run. Catch it there."
        )


class RoundClosedError(DeveloperError):
    """A round or plan was used after it was committed, resolved, aborted, discarded or dumped.

    Example:
        >>> round = round_of(oslo)
        >>> committed = round.commit(session, [round.expect_one().call_sync()])
        >>> round.commit(session, committed.results)
        Traceback (most recent call last):
        lutum_py.errors.RoundClosedError: This round was already committed. ...
        >>> [result.model_text for result in committed.results]
        ['Oslo: sunny']
    """


class LifecycleError(DeveloperError):
    """A call was moved to a status that its present status does not lead to; nothing changed.

    Example:
        >>> call = round_of(oslo).expect_one()
        >>> failed = call.fail("not today")
        >>> call.call_sync()
        Traceback (most recent call last):
        lutum_py.errors.LifecycleError: Call 'c1' of tool 'forecast' is failed and cannot become ...
        >>> call.retry().call_sync().model_text
        'Oslo: sunny'
    """


class MissingExtraError(DeveloperError, ImportError):
    """A feature needs an optional dependency; the text says what to install.

    Example:
        >>> import sys
        >>> from unittest.mock import patch
        >>> with patch.dict(
        ...     sys.modules, {"jsonschema.exceptions": None}
        ... ):  # as if it were not there
        ...     Toolset.from_definitions("Copied", Weather.definitions())
        Traceback (most recent call last):
        lutum_py.errors.MissingExtraError: Checking the arguments of tool 'forecast' needs ...
        >>> # python -m pip install 'lutum-py[jsonschema]'
        >>> Toolset.from_definitions("Copied", Weather.definitions())
        <toolset Copied: forecast>
    """


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """One failing field of a tool's arguments or output.

    Attributes:
        path: Where it is, as in `filters[0].name`; empty for the whole value.
        message: What is wrong, as in "Input should be a valid integer".
        received: What came, shortened; None if values are hidden or nothing came.
    """

    path: str
    message: str
    received: str | None = None

    def __str__(self) -> str:
        where = f"`{self.path}`: " if self.path else ""
        came = "" if self.received is None else f" (got {self.received})"
        return f"{where}{self.message}{came}"


class UnknownToolError(ModelError, KeyError):
    """A tool name is not in the toolset.

    Attributes:
        name: The name that was asked for.
        suggestion: The nearest name that exists, if any is near.

    Example:
        >>> metadata = ToolMetadata(id="c1", name="forcast", arguments='{"city": "Oslo"}')
        >>> Weather.parse_tool_call(metadata)
        Traceback (most recent call last):
        lutum_py.errors.UnknownToolError: Weather has no tool 'forcast'. Did you mean ...
        >>> (issue,) = round_of(("c1", "forcast", {})).recoverable_tool_call_issues
        >>> issue.reason  # in a round the model is told
        'unknown_tool'
    """

    def __init__(self, message: str, *, name: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.suggestion = suggestion


class InvalidArgumentsError(ModelError, ValueError):
    """A call's arguments do not fit the tool's input schema.

    Attributes:
        tool: The wire name of the tool.
        call_id: The id of the call.
        fields: One entry for each failing field.

    Example:
        >>> metadata = ToolMetadata(id="c1", name="forecast", arguments="{}")
        >>> Weather.parse_tool_call(metadata)
        Traceback (most recent call last):
        lutum_py.errors.InvalidArgumentsError: The arguments of tool `forecast` are invalid, ...
        >>> (issue,) = round_of(("c1", "forecast", {})).recoverable_tool_call_issues
        >>> issue.reason  # in a round the model is told
        'invalid_arguments'
    """

    def __init__(
        self, message: str, *, tool: str, call_id: str, fields: Sequence[FieldIssue] = ()
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id
        self.fields: tuple[FieldIssue, ...] = tuple(fields)


class DuplicateToolCallIdError(ModelError):
    """Two calls of one turn share an id, so no result could be told from the other.

    Attributes:
        call_id: The id that appears more than once.

    Example:
        >>> round_of(oslo, oslo)
        Traceback (most recent call last):
        lutum_py.errors.DuplicateToolCallIdError: Two calls of one turn have the id 'c1', ...
        >>> round_of(oslo, rome)
        <round of Weather: 2 calls (forecast, forecast)>
    """

    def __init__(self, message: str, *, call_id: str) -> None:
        super().__init__(message)
        self.call_id = call_id


class ToolRoundArityError(ModelError):
    """A turn has another number of calls than the loop allows.

    Example:
        >>> round = round_of(oslo, rome)
        >>> round.expect_one()
        Traceback (most recent call last):
        lutum_py.errors.ToolRoundArityError: Expected exactly one usable tool call, got 2: ...
        >>> [call.id for call in round.tool_calls]
        ['c1', 'c2']
    """


class DialectError(ProviderError):
    """A payload or stream is broken, or not of the dialect that was asked to read it.

    Attributes:
        dialect: The name of the dialect.
        where: The place in the payload or stream, as in `choices[0].message` or `event 3`.
        turn: The part of an `AssistantTurn` that was read before a stream broke, or None.

    Example:
        >>> from lutum_py.dialects import openai_chat
        >>> openai_chat.decode({"error": {"message": "overloaded"}})
        Traceback (most recent call last):
        lutum_py.errors.DialectError: openai_chat at error: the provider reports an error: ...
        >>> openai_chat.decode(
        ...     {"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}
        ... ).text
        'Hi'
    """

    def __init__(
        self, message: str, *, dialect: str, where: str = "", turn: object | None = None
    ) -> None:
        super().__init__(message)
        self.dialect = dialect
        self.where = where
        self.turn = turn


class TranscriptError(SavedDataError):
    """A transcript is foreign, damaged, of an unknown version, or would be invalid.

    Example:
        >>> from lutum_py import Transcript
        >>> Transcript.load_json("[]")
        Traceback (most recent call last):
        lutum_py.errors.TranscriptError: This is not a saved transcript: it is []. ...
        >>> Transcript.load_json(Transcript().dump_json())
        <Transcript of 0 items>
    """


class HistoryError(SavedDataError):
    """The provider would refuse a list of messages; nothing of it was read.

    Attributes:
        dialect: The name of the dialect.
        violations: Every `Violation`, in the order of the messages, as `check` of the dialect
            gives them.

    Example:
        >>> from lutum_py.dialects import openai_chat
        >>> kept = [{"role": "tool", "tool_call_id": "c1", "content": "sunny"}]
        >>> openai_chat.read_history(kept)
        Traceback (most recent call last):
        lutum_py.errors.HistoryError: openai_chat refuses this conversation: ...
        >>> repaired, changes = openai_chat.repair(kept)
        >>> transcript, losses = openai_chat.read_history(repaired)
    """

    def __init__(self, violations: Sequence[object], *, dialect: str) -> None:
        self.dialect = dialect
        self.violations: tuple[Any, ...] = tuple(violations)
        count = len(self.violations)
        reasons = "" if count == 1 else f", for {count} reasons"
        listed = " ".join(map(str, self.violations))
        super().__init__(
            f"{dialect} refuses this conversation{reasons}: {listed} Fix it first with "
            f"`{dialect}.repair(...)`."
        )


class PlanError(SavedDataError):
    """A saved plan is foreign, was edited, or was made for tools that have changed since.

    Example:
        >>> saved = round_of(oslo).plan().dump_json()
        >>> Weather.load_plan(saved.replace("Oslo", "Rome"))
        Traceback (most recent call last):
        lutum_py.errors.PlanError: This plan was edited after it was saved...
        >>> Weather.load_plan(saved).pending[0].input.city
        'Oslo'
    """


class ResumeError(SavedDataError):
    """A decision is for no suspended call, for another version of it, or has an unfit result.

    Example:
        >>> from lutum_py import Decision, Suspend, SuspendTicket
        >>> hooks = Weather.HookSet()
        >>> hooks.register_forecast_gate(lambda metadata, input: Suspend(SuspendTicket()))
        >>> plan = round_of(oslo).apply_hooks_sync(hooks)
        >>> plan.resume(Decision(call_id="c9", action="resume", decision_id="d1"))
        Traceback (most recent call last):
        lutum_py.errors.ResumeError: Decision 'd1' is for call 'c9', which is not suspended ...
        >>> call = plan.resume(plan.suspended[0].approve())
        >>> [call.id for call in plan.pending]
        ['c1']
    """


class StoreError(SavedDataError):
    """A store cannot be used: what is asked for is not there, was edited, or the database failed.

    If the database failed, its own exception is the cause, and the text says whether anything
    was changed.

    Example:
        >>> from lutum_py.store import open_store
        >>> store = open_store(":memory:")
        >>> store.load("ticket-7")
        Traceback (most recent call last):
        lutum_py.errors.StoreError: There is no conversation 'ticket-7' in the store at ...
        >>> store.save("ticket-7", None, note="")
        1
        >>> store.load("ticket-7").version
        1
    """


class StaleError(SavedDataError):
    """Somebody else has gone on with a conversation or call; nothing was changed by this step.

    Example:
        >>> from lutum_py.store import open_store
        >>> store = open_store(":memory:")
        >>> version = store.save("ticket-7", None, note="")
        >>> store.save("ticket-7", None, note="Hello", version=version)
        2
        >>> store.save("ticket-7", None, note="Goodbye", version=version)
        Traceback (most recent call last):
        lutum_py.errors.StaleError: Conversation 'ticket-7' is at version 2, not at 1: ...
        >>> store.save("ticket-7", None, note="Goodbye", version=store.load("ticket-7").version)
        3
    """


class HeldError(SavedDataError):
    """Somebody else goes on with a conversation, and did not leave it in the time to wait.

    Example:
        >>> from lutum_py import Toolset
        >>> from lutum_py.store import open_store
        >>> store = open_store(":memory:", owner="mia")
        >>> with store.hold("ticket-7", Toolset), store.hold("ticket-7", Toolset, wait=0):
        ...     pass
        Traceback (most recent call last):
        lutum_py.errors.HeldError: Conversation 'ticket-7' is held by mia, ...
        >>> with store.hold("ticket-7", Toolset):
        ...     pass
    """


class CommitError(DeveloperError):
    """The results do not answer the round; nothing was changed, and the plan can be used again.

    Attributes:
        faults: Every fault that was found, in the order of the calls.

    Example:
        >>> round = round_of(oslo, rome)
        >>> round.commit(session, [round.tool_calls[0].call_sync()])
        Traceback (most recent call last):
        lutum_py.errors.CommitError: Cannot commit: call 'c2' of tool 'forecast' has no result. ...
        >>> committed = round.commit(
        ...     session, [call.retry().call_sync() for call in round.tool_calls]
        ... )
    """

    def __init__(self, faults: Sequence[CommitFault]) -> None:
        self.faults: tuple[CommitFault, ...] = tuple(faults)
        count = len(self.faults)
        head = "Cannot commit" if count == 1 else f"Cannot commit, for {count} reasons"
        super().__init__(f"{head}: " + "; ".join(str(fault) for fault in self.faults) + ".")


class ToolError(LutumError):
    """What a tool raises to say why it failed; `execution` turns it into an error result.

    Attributes:
        code: A stable code for programs, which also is in the result that the model reads.
        reason: The message without the kind in front of it.

    Example:
        >>> def find(city):
        ...     raise NotFound(f"no city {city!r}")
        >>> find("Atlantis")
        Traceback (most recent call last):
        lutum_py.errors.NotFound: Not found: no city 'Atlantis'
        >>> call = round_of(oslo).expect_one()
        >>> try:
        ...     find(call.input.city)
        ... except ToolError as error:
        ...     call.fail(error.reason, code=error.code).model_text
        "[not_found] no city 'Oslo'"
    """

    code: ClassVar[str] = "tool_error"
    prefix: ClassVar[str] = ""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"{self.prefix}{reason}")
        self.reason = reason

    def __str__(self) -> str:
        # The tool's own words for the model, and no message of ours: data, left as it is.
        return Exception.__str__(self)


class InvalidArguments(ToolError):
    """The arguments are well formed, but the tool cannot work with them."""

    code = "invalid_arguments"
    prefix = "Invalid arguments: "


class ExecutionFailed(ToolError):
    """The tool tried and did not succeed."""

    code = "execution_failed"
    prefix = "Execution failed: "


class Denied(ToolError):
    """The tool may not do this for this caller."""

    code = "denied"
    prefix = "Denied: "


class NotFound(ToolError):
    """What the tool was asked about does not exist."""

    code = "not_found"
    prefix = "Not found: "


class Internal(ToolError):
    """The tool itself is broken."""

    code = "internal"
    prefix = "Internal error: "


class TimedOut(ToolError):
    """The tool did not finish in time.

    Attributes:
        is_in_doubt: Whether the tool was cut off, so that nobody knows what it did. A tool that
            raises this itself says that nothing happened, and leaves it false; a deadline of the
            library sets it. A tool that does not know raises `OutcomeUnknown`.
    """

    code = "timed_out"
    prefix = "Timeout: "

    def __init__(self, reason: str = "", is_in_doubt: bool = False) -> None:
        super().__init__(reason)
        self.is_in_doubt = is_in_doubt


class Cancelled(ToolError):
    """The tool was cancelled before it finished."""

    code = "cancelled"
    prefix = "Cancelled: "


class OutcomeUnknown(ToolError):
    """The tool did something, and cannot know the outcome: a bank that took no answer home.

    Its result is `indeterminate`, with this text, whatever the tool declares. Out
    of `call.call()` it comes as it is, like every exception, and the call stays `running`.

    Example:
        >>> call = round_of(oslo).expect_one()
        >>> _ = call.start()
        >>> error = OutcomeUnknown("the bank did not answer. Look at the account first.")
        >>> call.indeterminate(error.reason, code=error.code).model_text
        '[outcome_unknown] Outcome unknown: the bank did not answer. Look at the account first.'
    """

    code = "outcome_unknown"
    prefix = "Outcome unknown: "


if not TYPE_CHECKING:  # else every misspelt name would have a type
    __all__ = [name for name in globals() if name.endswith("Error")]
    __all__ += [kind.__name__ for kind in (FieldIssue, *ToolError.__subclasses__())]
    __all__ += list(_FAULTS)

    # Seven more classes of plain values, which Python builds one by one: with the first commit that
    # fails, and not with the first tool that is declared.
    __getattr__, __dir__ = on_demand(globals(), {"errors._faults": _FAULTS})
