"""Checks of what callers pass to a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, Unpack

from .. import (
    AnyToolCall,
    ResumeMode,
    Session,
    SuspendTicket,
    ToolResult,
    ToolRoundPlan,
)
from .._text.immutable import SetOnce
from .._text.json import is_number, is_whole, shorten
from ..errors import InvalidValueError, LifecycleError, MisuseError
from ..execution import ContextFor, RunOptions, RunSettings
from ..saved import Saved
from ..typing import Ancestor, CallStep, Hooks, OnEvent, PendingDecision
from ._rows import SavedCall, check_word
from ._tree import Change, Tree

_LONGEST = 10**9


def check_lease(lease: object) -> None:
    """Refuse what is not a length of a lease, in seconds."""
    if not is_number(lease) or not 0 < lease < _LONGEST:
        raise InvalidValueError(
            f"lease={shorten(lease)} is not a positive number of seconds below {_LONGEST:,}. Pass "
            "one that outlasts the tool, such as 60."
        )


def check_limit(limit: object) -> None:
    """Refuse what is not a number of calls."""
    if not is_whole(limit) or not 0 < limit < _LONGEST:
        raise InvalidValueError(
            f"limit={shorten(limit)} is not a whole number of calls. Pass as many as you can start "
            "at once, such as 16."
        )


def check_seconds(name: str, seconds: object) -> None:
    """Refuse what is not a time in seconds."""
    if not is_number(seconds) or not 0 <= seconds < _LONGEST:
        raise InvalidValueError(
            f"{name}={shorten(seconds)} is not a number of seconds from 0 to below {_LONGEST:,}."
        )


def check_page(limit: object, after: object = "", *more: object) -> None:
    """Refuse what is not a page of a list.

    Args:
        limit: How many there are on it; None for all.
        after: The text that it comes after, which may be empty.
        more: Other texts.
    """
    if limit is not None and (not is_whole(limit) or not 0 <= limit < _LONGEST):
        raise InvalidValueError(
            f"limit={shorten(limit)} is not a whole number from 0. Pass how many you want, such as "
            "100, or None for all."
        )
    for text in (after, *more):
        if text != "":
            check_word("id or tool", text)


def check_wait(wait: object) -> None:
    """Refuse what is not a time to wait, in seconds, or None."""
    if wait is not None and not (is_number(wait) and wait >= 0):
        raise InvalidValueError(
            f"wait={shorten(wait)} is not a number of seconds, or 0. Leave it out to wait "
            "for as long as it takes."
        )


def checked_run(
    *,
    lease: float = 60,
    limit: int | None = None,
    on_event: OnEvent | None = None,
    hooks: Hooks | None = None,
    context: ContextFor | None = None,
    **options: Unpack[RunOptions],
) -> RunSettings:
    """Refuse what a run of a store cannot mean; give the settings of its calls."""
    check_lease(lease)
    return RunSettings.of(options, limit, context=context, hooks=hooks, on_event=on_event)


def check_toolset(toolset: object) -> None:
    """Refuse what loads no plans."""
    if not hasattr(toolset, "load_plan"):
        raise MisuseError(
            f"A store takes the toolset of its plans, not {shorten(toolset)}. Pass the class, "
            "as in `store.claim(Desk)`."
        )


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Stored(Generic[T_co]):
    """A conversation as a store has it.

    Attributes:
        id: The id of the conversation.
        note: Your own text; empty if there is none.
        plan: The plan of the open round, with every result that is on record, and in `in_doubt`
            what was started and has none: it is run elsewhere, or was cut off. Its calls refuse to
            run before they are claimed. None if no round is open, or no toolset was given.
        version: What `save` wants to see again.
    """

    id: str
    note: str
    plan: ToolRoundPlan[T_co] | None
    version: int
    _session: Session | None = field(default=None, repr=False, compare=False)

    @property
    def session(self) -> Session:
        """The session.

        Raises:
            MisuseError: None was saved.
        """
        if self._session is None:
            raise MisuseError(
                f"Conversation {self.id!r} was saved without a session. Save one with "
                "`store.save(id, plan, session=session)`, or read your own `note`."
            )
        return self._session


class StoredRound(NamedTuple):
    """A conversation and its open round as they are kept, without the tools.

    Attributes:
        session: The session; None if none was saved.
        record: What `plan.round_record()` gave; None if no round is open.
        entries: What `plan.entries_since()` gave since.
        waits: By the id of each call that waits for others in the order of its round: their ids.
    """

    session: Session | None
    record: Mapping[str, Any] | None = None
    entries: Sequence[Mapping[str, Any]] = ()
    waits: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Waiting(PendingDecision):
    """A call that waits for a decision, as plain data.

    Attributes:
        id: The id of the conversation.
        call_id: The id of the call.
        tool: The wire name of the tool.
        proposed: The arguments as the model wrote them; what is secret by the tool's schema is
            masked.
        arguments: The final ones, with defaults, and with secrets masked.
        digest: Names tool, schema and final arguments: what an approval is bound to.
        ticket: What is asked.
        since: When it began to wait, by the clock of the database, in seconds since 1970.
        steps: What happened to the call so far.
        ancestors: The calls that it is within, the outermost first: none, for one of the turn.
    """

    id: str
    call_id: str
    tool: str
    proposed: str
    arguments: Any
    digest: str
    ticket: SuspendTicket
    since: float = field(default=0.0, compare=False)
    steps: tuple[CallStep, ...] = field(default=(), compare=False, repr=False)
    ancestors: tuple[Ancestor, ...] = field(default=(), compare=False, repr=False)
    _round: str = field(default="", compare=False, repr=False)

    def _of(self) -> tuple[str, str, str, str | None]:
        return self.call_id, self.tool, self.digest, self._round or None


def waiting_of(row: SavedCall) -> Waiting:
    """Read a row that waits for a decision."""
    saved = row.parsed_shown
    ticket = saved.inner("ticket").data
    ticket["resume_mode"] = ResumeMode(ticket["resume_mode"])
    return Waiting(
        row.conversation,
        saved.get("id", str),
        saved.get("tool", str),
        saved.get("proposed", str),
        saved.data.get("arguments"),
        saved.get("digest", str),
        SuspendTicket(**ticket),
        row.since / 1000,
        tuple(_shown_step(each) for each in saved.each("line")),
        tuple(
            Ancestor(each.get("id", str), each.get("tool", str), each.data.get("arguments"))
            for each in saved.each("ancestors", optional=True)
        ),
        row.round,
    )


def _shown_step(saved: Saved) -> CallStep:
    fields: Any = map(saved.data.get, CallStep.__slots__)
    return CallStep(*fields)


@dataclass(eq=False, slots=True)
class Claim(SetOnce):
    """A call that is yours for the length of a lease, to be started and finished, or given back.

    Attributes:
        id: The id of the conversation.
        call: The call, to look at and to answer; it refuses to run until `store.start(claim)`.
        key: `<round>/<idempotency key>`, for services that ask for a key: the same at every try of
            this call with these arguments. The id of the round is random.
        token: Grows with each claim of this call, for services that refuse an older one.
        in_doubt: Whether somebody started it and recorded no result: it may have had its effects.
        lease: How long it is yours, in seconds, from the claim, `start` or `renew` on; another one
            that is assigned counts from the next of these.
    """

    _way: ClassVar[str] = "it is what was claimed. Release it, and claim again."
    _open: ClassVar[tuple[str, ...]] = ("lease",)

    id: str
    call: AnyToolCall
    key: str
    token: int
    in_doubt: bool
    lease: float

    @property
    def result(self) -> ToolResult | None:
        """The outcome of the call, if it has ended: after-hooks raised when they were to see it.

        `store.finish` shows it to them again.
        """
        return self.call.result

    @property
    def idempotent(self) -> bool:
        """Whether the tool may be run again with the same key without harm."""
        return self.call.selector.definition.idempotent


@dataclass(eq=False, slots=True, repr=False)
class OpenClaim(Claim):
    """A claim as the store that made it knows it.

    Attributes:
        tree: The call, as it was read.
        claim: The id of the claim.
        lock: Held while the call is started.
        given: The call that may run, once its start was prepared.
        starting: What is written as it starts.
        is_started: Whether that is on record.
        has_ended: Whether a result is on record that after-hooks are still to see.
        is_over: Whether it was finished.
        ending: What is written as it ends.
        kept: What is written of a result that after-hooks are still to see.
    """

    _open: ClassVar[tuple[str, ...]] = (
        *("lease", "given", "starting", "is_started", "has_ended", "is_over", "ending", "kept"),
    )

    tree: Tree
    claim: str
    lock: Any = field(default_factory=Lock)
    given: AnyToolCall | None = None
    starting: list[Change] = field(default_factory=list[Change])
    is_started: bool = False
    has_ended: bool = False
    is_over: bool = False
    ending: list[Change] | None = None
    kept: list[Change] | None = None


def check_claim(claim: object, step: str) -> OpenClaim:
    """Refuse what is not a claim, at a step of a store."""
    if isinstance(claim, OpenClaim):
        return claim
    raise MisuseError.of_field(
        f"store.{step}", "claim", "a claim", claim, "Write `claim = store.claim(toolset)`."
    )


def check_begins(claim: OpenClaim) -> None:
    """Refuse to start a call that its claim holds, and that is not to be run by it."""
    call = claim.call
    if claim.in_doubt and not claim.idempotent:
        raise MisuseError(
            f"Call {call.id!r} of tool `{call.name}` in conversation {claim.id!r} was started "
            "before, its outcome is unknown, and the tool is not idempotent, so it is not run "
            "again. Find out what it did, and finish the claim with that, or with "
            "`claim.call.indeterminate(reason)`."
        )
    if call.status.is_terminal:
        raise LifecycleError(
            f"Call {call.id!r} of tool `{call.name}` is {call.status}: it has its result. "
            "Pass that, `claim.result`, to `store.finish`."
        )
    if claim.is_started:
        raise MisuseError(
            f"Call {call.id!r} of tool `{call.name}` was started by this claim already. "
            "Use the call that `store.start` gave."
        )
