"""What a running tool tells the world outside: events, and the shape they have on the wire.

Three lanes leave a tool. Snapshots and deltas of an activity are for the program that shows the run
to its user; progress is a snapshot with a content of a fixed form. Observer text is for the
operators of the system, and is never shown to the user. `model_dump()` gives the wire shape of
each: plain JSON data, keys that are not set left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeAlias, cast

from .._text.json import is_number, is_whole, shorten
from ..errors import InvalidValueError

TOOL_CALL_PROGRESS_ACTIVITY_TYPE: Final = "tool-call-progress"
"""The activity type of the snapshots that report progress."""

TOOL_CALL_PROGRESS_SCHEMA: Final = "tool-call-progress.v1"
"""The name and version of what those snapshots hold."""


class ProgressStatus(StrEnum):
    """Say how a tool call is doing, in its own words.

    >>> ProgressStatus("done").is_terminal
    True
    """

    PENDING = "pending"
    """In the queue, not started."""
    RUNNING = "running"
    """At work."""
    DONE = "done"
    """Finished."""
    FAILED = "failed"
    """Finished with an error."""
    CANCELLED = "cancelled"
    """Given up before it finished."""

    @property
    def is_terminal(self) -> bool:
        """Whether the tool will report nothing more."""
        return self not in (ProgressStatus.PENDING, ProgressStatus.RUNNING)


@dataclass(frozen=True, slots=True, init=False)
class ToolCallProgressState:
    """Hold one report of a tool call's progress.

    Attributes:
        call_id: The id of the call.
        tool_name: The wire name of its tool.
        status: How the call is doing.
        progress: How much of it is done, from 0 to 1; None if nobody knows.
        loaded: How many units are done, in the tool's own unit.
        total: How many units there are.
        message: A line for people.
        parent_node_id: The node under which a display puts this one.
        parent_call_id: The call from within which this one was made.

    >>> ToolCallProgressState("c1", "index", "running", progress=0.5).model_dump()["progress"]
    0.5
    """

    schema: ClassVar[str] = TOOL_CALL_PROGRESS_SCHEMA

    call_id: str
    tool_name: str
    status: ProgressStatus
    progress: float | None
    loaded: int | None
    total: int | None
    message: str | None
    parent_node_id: str | None
    parent_call_id: str | None

    def __init__(
        self,
        call_id: str,
        tool_name: str,
        status: ProgressStatus | str,
        *,
        progress: float | None = None,
        loaded: int | None = None,
        total: int | None = None,
        message: str | None = None,
        parent_node_id: str | None = None,
        parent_call_id: str | None = None,
    ) -> None:
        """Check the figures.

        Args:
            call_id: The id of the call.
            tool_name: The wire name of its tool.
            status: A `ProgressStatus` or its name.
            progress: A fraction from 0 to 1.
            loaded: Units done, not negative.
            total: Units in all, not negative.
            message: A line for people.
            parent_node_id: The node above this one.
            parent_call_id: The call that made this one.

        Raises:
            InvalidValueError: The status is unknown, or a figure is out of its range or none.
        """
        check_report(status, message, progress, loaded, total)
        given = (
            *(call_id, tool_name, ProgressStatus(status)),
            *(None if progress is None else float(progress), loaded, total, message),
            *(parent_node_id, parent_call_id),
        )
        for name, value in zip(self.__slots__, given, strict=True):
            object.__setattr__(self, name, value)

    @property
    def node_id(self) -> str:
        """The node of this call in a display, which is the call id."""
        return self.call_id

    def model_dump(self) -> dict[str, Any]:
        """Return the wire shape, keys that are not set left out."""
        known = {name: getattr(self, name) for name in self.__slots__}
        known["status"] = self.status.value
        told = {name: value for name, value in known.items() if value is not None}
        return {"schema": self.schema, "node_id": self.node_id, **told}


class _Event:
    __slots__: tuple[str, ...] = ()

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """The content of a report of progress; None for any other event."""
        return None

    def model_dump(self) -> dict[str, Any]:
        """Return the wire shape."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ActivitySnapshot(_Event):
    """Show an activity as it stands now; it replaces what was shown of it before.

    Attributes:
        message_id: The id of the call that reports.
        activity_type: What kind of activity it is, for the display to choose a form.
        content: Plain JSON data.
        replace: Whether it replaces what came before.

    >>> ActivitySnapshot("c1", "note", "half way").model_dump()["replace"]
    True
    """

    event_type: ClassVar[str] = "activity_snapshot"

    message_id: str
    activity_type: str
    content: Any
    replace: bool = True

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """The content of a report of progress; None for any other activity."""
        content: object = self.content
        if self.activity_type == TOOL_CALL_PROGRESS_ACTIVITY_TYPE and isinstance(content, Mapping):
            return cast("Mapping[str, Any]", content)
        return None


@dataclass(frozen=True, slots=True)
class ActivityDelta(_Event):
    """Change what is shown of an activity.

    Attributes:
        message_id: The id of the call that reports.
        activity_type: What kind of activity it is.
        patch: The operations, such as those of JSON Patch, in order.

    >>> ActivityDelta("c1", "note", [{"op": "remove", "path": "/0"}]).model_dump()["message_id"]
    'c1'
    """

    event_type: ClassVar[str] = "activity_delta"

    message_id: str
    activity_type: str
    patch: list[Any]


@dataclass(frozen=True, slots=True)
class ObserverText(_Event):
    """Report something to the operators of the system, and not to the user.

    Attributes:
        message_id: The id of the call that speaks.
        source: Who speaks: the tool, unless it said otherwise.
        content: What is said.

    >>> ObserverText("c1", "search", "cache is cold").model_dump()["source"]
    'search'
    """

    event_type: ClassVar[str] = "observer_text"

    message_id: str
    source: str
    content: str


ToolEvent: TypeAlias = ActivitySnapshot | ActivityDelta | ObserverText
"""What a sink receives; `event_type` tells the kinds apart."""

Sink: TypeAlias = Callable[[ToolEvent], object]
"""Takes one event, from whichever thread the tool runs in; what it returns is not looked at."""


def check_report(
    status: ProgressStatus | str,
    message: str | None,
    progress: float | None,
    loaded: int | None,
    total: int | None,
) -> None:
    """Check what a report of progress says, without making one.

    Raises:
        InvalidValueError: The status is unknown, a figure is out of its range, or no such thing.
    """
    try:
        ProgressStatus(status)
    except ValueError:
        names = ", ".join(ProgressStatus)
        raise InvalidValueError(
            f"Unknown progress status {status!r}. There are: {names}."
        ) from None
    # NaN is in no range, so the comparison refuses it as well.
    if progress is not None and not (is_number(progress) and 0 <= progress <= 1):
        raise InvalidValueError(
            f"The progress is {shorten(progress)}. Give a number from 0 to 1, or None if it is "
            "not known; counts go into `loaded` and `total`."
        )
    for name, count in (("loaded", loaded), ("total", total)):
        if count is not None and not (is_whole(count) and count >= 0):
            raise InvalidValueError(
                f"`{name}` is {shorten(count)}. Give a whole number that is not negative."
            )
    if not isinstance(message, str | None):
        raise InvalidValueError(f"The message is {shorten(message)}. Give a text.")
