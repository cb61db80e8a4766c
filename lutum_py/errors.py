"""Every exception of the library, by whose fault it was.

```
LutumError
├── DeveloperError                 your code, or the code of a colleague
│   ├── ToolDefinitionError        a declaration that cannot become a tool
│   ├── ToolInputError             your code gave a call an input that does not fit its tool
│   ├── ToolOutputError            a tool returned something else than it declares
│   ├── ToolConstraintError        a turn asks for tools that it does not offer
│   ├── HookError                  a hook raised, or returned something that is no decision
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
│   ├── PlanError                  a saved plan that was edited or no longer fits its tools
│   └── ResumeError                a decision that does not fit the suspended call
└── ToolError                      what a tool itself raises; see `code`
    └── InvalidArguments, ExecutionFailed, Denied, NotFound, Internal, TimedOut, Cancelled
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ._faults import (
    CommitFault,
    DuplicateResult,
    ExtraResult,
    MismatchedArguments,
    MismatchedToolName,
    MissingResult,
    UnresolvedSuspension,
)

__all__ = [
    "Cancelled",
    "CommitError",
    "CommitFault",
    "Denied",
    "DeveloperError",
    "DialectError",
    "DuplicateResult",
    "DuplicateToolCallIdError",
    "ExecutionFailed",
    "ExtraResult",
    "FieldIssue",
    "HookError",
    "Internal",
    "InvalidArguments",
    "InvalidArgumentsError",
    "LifecycleError",
    "LutumError",
    "MismatchedArguments",
    "MismatchedToolName",
    "MissingExtraError",
    "MissingResult",
    "ModelError",
    "NotFound",
    "PlanError",
    "ProviderError",
    "ResumeError",
    "RoundClosedError",
    "SavedDataError",
    "TimedOut",
    "ToolConstraintError",
    "ToolDefinitionError",
    "ToolError",
    "ToolInputError",
    "ToolOutputError",
    "ToolRoundArityError",
    "TranscriptError",
    "UnknownToolError",
    "UnresolvedSuspension",
]


class LutumError(Exception):
    """The root of every exception that the library raises on its own account."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[LutumError], args: tuple[Any, ...], state: dict[str, Any]) -> LutumError:
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


class ToolDefinitionError(DeveloperError, TypeError):
    """A declaration cannot become a tool: the text names the place and the remedy."""


class ToolInputError(DeveloperError, ValueError):
    """An input that the program gave to a call does not fit the tool's input type.

    Attributes:
        tool: The wire name of the tool.
        fields: One entry for each part of the input that does not fit.
    """

    def __init__(self, message: str, *, tool: str, fields: Sequence[FieldIssue] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.fields = tuple(fields)


class ToolOutputError(DeveloperError):
    """An output does not fit the tool's declared output type.

    Attributes:
        tool: The wire name of the tool.
        fields: One entry for each part of the output that does not fit.
    """

    def __init__(self, message: str, *, tool: str, fields: Sequence[FieldIssue] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.fields = tuple(fields)


class ToolConstraintError(DeveloperError):
    """A turn requires a tool that it does not offer, or any tool where it offers none."""


class HookError(DeveloperError):
    """A hook raised, returned no decision, or was registered for a tool that is not there.

    Attributes:
        hook: The qualified name of the hook, where there is one.
        tool: The wire name of the tool, where one call was being decided.
        call_id: The id of that call.
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


class RoundClosedError(DeveloperError):
    """A round or plan was used after it was committed, resolved, aborted, discarded or dumped."""


class LifecycleError(DeveloperError):
    """A call was moved to a status that its present status does not lead to; nothing changed."""


class MissingExtraError(DeveloperError, ImportError):
    """A feature needs an optional dependency; the text says what to install."""


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """One failing field of a tool's arguments or output.

    Attributes:
        path: Where it is, as in `filters[0].name`; empty for the whole value.
        message: What is wrong, as in "Input should be a valid integer".
        received: What came, shortened; None where values are hidden or nothing came.
    """

    path: str
    message: str
    received: str | None = None

    def __str__(self) -> str:
        where = f"`{self.path}`: " if self.path else ""
        came = "" if self.received is None else f" (got {self.received})"
        return f"{where}{self.message}{came}"


class UnknownToolError(ModelError, LookupError):
    """A tool name is not in the toolset.

    Attributes:
        name: The name that was asked for.
        suggestion: The nearest name that exists, if any is near.
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
    """

    def __init__(
        self, message: str, *, tool: str, call_id: str, fields: Sequence[FieldIssue] = ()
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id
        self.fields = tuple(fields)


class DuplicateToolCallIdError(ModelError):
    """Two calls of one turn share an id, so no result could be told from the other.

    Attributes:
        call_id: The id that appears more than once.
    """

    def __init__(self, message: str, *, call_id: str) -> None:
        super().__init__(message)
        self.call_id = call_id


class ToolRoundArityError(ModelError):
    """A turn has another number of calls than the loop allows."""


class DialectError(ProviderError):
    """A payload or stream is broken, or not of the dialect that was asked to read it.

    Attributes:
        dialect: The name of the dialect.
        where: The place in the payload or stream, as in `choices[0].message` or `event 3`.
        turn: The part of an `AssistantTurn` that was read before a stream broke, or None.
    """

    def __init__(
        self, message: str, *, dialect: str, where: str = "", turn: object | None = None
    ) -> None:
        super().__init__(message)
        self.dialect = dialect
        self.where = where
        self.turn = turn


class TranscriptError(SavedDataError):
    """A transcript is foreign, damaged, of an unknown version, or would be invalid."""


class PlanError(SavedDataError):
    """A saved plan is foreign, was edited, or was made for tools that have changed since."""


class ResumeError(SavedDataError):
    """A decision answers no suspended call, another version of it, or with an unfit result."""


class CommitError(DeveloperError):
    """The results do not answer the round; nothing was changed, and the plan can be used again.

    Attributes:
        faults: Every fault that was found, in the order of the calls.
    """

    def __init__(self, faults: Sequence[CommitFault]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        head = "Cannot commit" if count == 1 else f"Cannot commit, for {count} reasons"
        super().__init__(f"{head}: " + "; ".join(str(fault) for fault in self.faults) + ".")


class ToolError(LutumError):
    """What a tool raises to say why it failed; `execution` turns it into an error result.

    Attributes:
        code: A stable code for programs, which also stands in the result that the model reads.
        reason: The message without the kind in front of it.
    """

    code: ClassVar[str] = "tool_error"
    prefix: ClassVar[str] = ""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"{self.prefix}{reason}")
        self.reason = reason


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
    """The tool did not finish in time."""

    code = "timed_out"
    prefix = "Timeout: "


class Cancelled(ToolError):
    """The tool was cancelled before it finished."""

    code = "cancelled"
    prefix = "Cancelled: "
