"""`Records`: conversations and their open rounds in a database, for any number of workers.

Every step is one transaction that locks the row of its conversation first. What takes long or is
not ours (decoding, hooks, a tool) happens outside of transactions; a step that read a plan before
makes sure that the plan is still the same.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import time
from typing import Any, ClassVar, Final, Self, TypeVar, overload

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.drivers import drive_sync
from .._call.history import CONTINUED, Step, iso_time
from .._call.outcomes import AwaitingCall, NotEnded, SuspendedCall
from .._context.suspension import Decision
from .._round.ending import ResultLike, as_results, mismatches
from .._round.events import CallEvent, OnEvent, check_listener
from .._round.plan import ToolRoundPlan
from .._round.plan_json import dump_plan, lengths_of, move_on
from .._round.resume import amend, check_decision
from .._round.rows import Ancestry
from .._round.sorted_calls import StoredAs
from .._session.session import Session
from .._text.immutable import Settled
from .._text.json import is_whole, shorten
from .._transcript.result import ToolResult, dump_result
from .._transcript.saved import check_key
from ..errors import (
    CommitError,
    ExtraResult,
    LifecycleError,
    MisuseError,
    PlanError,
    ResumeError,
    StaleError,
    StoreError,
)
from ..execution._settings import check_flag
from ._beside_plan import BesidePlan
from ._calls import (
    catch_up,
    claimed,
    ended,
    is_in,
    places_of,
    row_of_claim,
    rows_of,
    step_data,
    with_result,
    with_steps,
)
from ._checks import check_begins, check_claim, check_lease, check_sees, check_toolset, check_word
from ._claim_order import ClaimOrder, is_unblocked, settle
from ._database import Rows, StoreLocation, database_at
from ._inner import Drive, decide_within, leave, reopen_asking_call, shown
from ._rows import Head, May, SavedCall, held_by_nobody, ids_in, prepare
from ._values import Claim, Stored, Waiting, waiting_of

T = TypeVar("T")
R = TypeVar("R")

_GIVEN: Final = "given to a store"
"""How a plan is closed until it is known that the store has it."""


class _Grown(Exception):
    """Something happened to a call of a plan while its text was saved."""


class Records(Settled):
    """Keep what a store has, and put each step on record; `Store` adds what runs calls."""

    _way: ClassVar[str] = "a store goes by what it was opened with. Call `open_store` again."

    def __setattr__(self, name: str, value: object) -> None:
        # Whoever tests a program may put a function in the place of a method, which then counts.
        if callable(getattr(type(self), name, None)):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)  # there is nothing to take away but such a function

    def __init__(
        self,
        where: StoreLocation,
        *,
        key: bytes | None = None,
        owner: str | None = None,
        behind_pooler: bool = False,
        is_there: bool = False,
    ) -> None:
        check_key(key)
        self._key = key
        self._owner = f"{socket.gethostname()}:{os.getpid()}" if owner is None else owner
        check_word("owner", self._owner)
        check_flag("behind_pooler", behind_pooler)
        self._database = database_at(where, key, behind_pooler)
        # Rows that could not be claimed here, and until when they are left alone. That is not
        # written down: whoever has another key must not touch what they cannot seal.
        self._unfit: dict[tuple[str, int], int] = {}
        # Calls that a worker of this store runs, by conversation and place. A renewal may be late,
        # and they are then not in doubt for the others here, who can see that they run.
        self._running: set[tuple[str, int]] = set()
        try:
            prepare(self._database, is_there=is_there)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection to the database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store at {self._database.name}>"

    # Conversations.

    def save(
        self,
        id: str,
        plan: ToolRoundPlan[Any] | None,
        *,
        session: Session | None = None,
        note: str | None = None,
        version: int | None = None,
        in_order: bool | None = None,
        across: Iterable[str] | None = None,
    ) -> int:
        """Keep a session and the plan of its open round, both or nothing.

        The plan is closed before the transaction ends. If the database fails right then, the plan
        can only be saved again: nobody may know whether it is on record.

        Args:
            id: Names the conversation, in up to 500 characters.
            plan: The plan, which is closed once it is saved; None if no round is open.
            session: The session: its transcript and its id. Left out, the one that is kept stays.
            note: A text of yours, empty at first. Left out, the one that is kept stays.
            version: The version that this one comes after; None makes a conversation.
            in_order: Whether the calls of this round that access the same keep the order of the
                turn, see `plan.order()`: one is given out, in whichever process, once the earlier
                ones that it conflicts with have their results. Left out, it stays as it is for the
                round.
            across: Areas, such as `files`, that this round shares with all conversations that name
                them too: no call is given out while one that accesses the same there is claimed or
                started elsewhere under a live lease. Left out, they stay for the round.

        Returns:
            The version that it is now.

        Raises:
            StaleError: The conversation is there already, or has changed since, or since the plan
                was loaded.
            MisuseError: The plan is kept as another conversation, or something is of a wrong type.
            PlanError: The plan has no JSON form, or a call has ended that was not recorded.
            LifecycleError: Hooks of a newer plan of the round decided about a call.
            TranscriptError: The transcript has no JSON form.
            RoundClosedError: The round has ended.
            StoreError: There is no such conversation, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)
        may = held_by_nobody(id, self._owner)
        return self._save(id, plan, note, session, version, may, in_order, across)

    def _save(
        self,
        id: str,
        plan: ToolRoundPlan[Any] | None,
        note: str | None,
        session: Session | None,
        version: int | None,
        may: May,
        in_order: bool | None,
        across: Iterable[str] | None,
        *,
        stays: bool = False,
    ) -> int:
        """Save, if the hold of the conversation lets us: see `may`.

        If `stays` is true, the open round is left as it is, at whichever version.
        """
        MisuseError.check("store.save", "note", "a text", note, str | None)
        MisuseError.check("store.save", "session", "a Session", session, Session | None)
        if not (version is None or is_whole(version)):
            raise MisuseError.of_field(
                "store.save", "version", "a whole number", version, "Pass that of `store.load(id)`."
            )
        if plan is not None and not isinstance(plan, ToolRoundPlan):
            raise MisuseError.of_field(
                "store.save", "plan", "a plan or None", plan, "Write `round.plan()`."
            )
        # Read and refused before anything is done: an iterator gives its areas once.
        wanted = ClaimOrder().with_changes(in_order, across)
        across = None if across is None else wanted.across
        spoken = None if session is None else (session.id, session.transcript.dump_json())
        while True:
            # Encoding comes before the transaction, which others wait for, and in which nothing may
            # fail that is not of the database.
            length = [] if plan is None else lengths_of(plan)
            text = None if plan is None else self._text(plan, id)
            with suppress(_Grown):
                given = (id, plan, text, length, note, spoken, version, may, in_order, across)
                saved = self._write(*given, stays=stays)
                if plan is not None:
                    plan._state._round.closed_by = "saved"
                return saved

    def _write(
        self,
        id: str,
        plan: ToolRoundPlan[Any] | None,
        text: str | None,
        length: list[int],
        note: str | None,
        spoken: tuple[str | None, str] | None,
        version: int | None,
        may: May,
        in_order: bool | None,
        across: Iterable[str] | None,
        *,
        stays: bool,
    ) -> int:
        """Write what `_save` made, and close the plan."""
        with self._database.write() as rows, may(rows):
            head = self._head(rows, id).next() if stays else self._next(rows, id, version)
            is_new = head.version == 1
            kept = BesidePlan() if is_new else BesidePlan.read(head.note_text(rows))
            beside = kept.with_changes(note, spoken)
            before = None if is_new else head.plan_text(rows)
            if stays:
                head.write_texts(rows, beside.text(), before)
                return head.version
            old: list[SavedCall] = []
            if plan is not None and self._goes_on(plan, head):
                old = SavedCall.checked(rows, id)
            else:
                # The round that was stored is over. Its decisions are remembered from its plan, or
                # one that comes again late would count for the next round.
                beside = beside.after(before)
                head = head._replace(round=head.round + (plan is not None))
            head.write_texts(rows, beside.text(), text)
            order = (ClaimOrder.of(old[0]) if old else ClaimOrder()).with_changes(in_order, across)
            mine = [] if plan is None else rows_of(plan, id, head.round, old, rows.now(), order)
            # All anew, and not row by row: a plan has few open calls, and what is left over of an
            # older round would be claimed.
            rows.run("DELETE FROM lutum_call WHERE conversation = ?", id)
            for row in mine:
                row.insert(rows)
            if order.in_order:
                settle(rows, id)
            # Before it is on record for others: what starts here after that would start twice. All
            # that can fail now is the COMMIT, and nobody may know whether it did.
            if plan is not None:
                if plan._state._closed_by is None:
                    move_on(plan, _GIVEN)
                if lengths_of(plan) != length:
                    raise _Grown
        return head.version

    def _kept(self, rows: Rows, id: str) -> tuple[Head | None, BesidePlan]:
        """Lock a conversation that is there, and read what is kept beside its plan."""
        head = Head.at(rows, id)
        return head, BesidePlan() if head is None else BesidePlan.read(head.note_text(rows))

    def _goes_on(self, plan: ToolRoundPlan[Any], head: Head) -> bool:
        """Tell whether a plan was loaded from here as that of the open round.

        Raises:
            MisuseError: It belongs to another conversation, or store.
            StaleError: The conversation has changed since the plan was loaded.
        """
        stored = plan._state._stored
        if stored is None:
            return False
        if stored.id != head.id:
            raise MisuseError(
                f"This plan is of conversation {stored.id!r}, and a store keeps it there: saved as "
                f"{head.id!r} too, its calls could be run twice. Save it where it came from."
            )
        # `head` is already at the version that is being made.
        if stored[1:] != (head.round, head.version - 1, head.plan_digest):
            raise StaleError(
                f"This plan was loaded at version {stored.version} of conversation {head.id!r}, "
                "which has changed since, or it belongs to another store. Load it again, and "
                "change what you get."
            )
        return True

    def _text(self, plan: ToolRoundPlan[Any], id: str) -> str:
        if plan._state._closed_by != _GIVEN:  # by a save that failed as it ended
            plan._state._check_open()
        return dump_plan(plan, self._key, id)

    def _next(self, rows: Rows, id: str, version: int | None) -> Head:
        """Lock a conversation that is at a version, or make it; give it as of the next version."""
        if version is None:
            made = rows.run(
                "INSERT INTO lutum_conversation VALUES (?, 0, 0, '', '', '', '', NULL) "
                "ON CONFLICT DO NOTHING",
                id,
            )
            if made == 0:
                raise StaleError(
                    f"Conversation {id!r} is there already. Pass the `version=` that you loaded."
                )
            return Head(id, 1, 0, "", "")
        head = self._head(rows, id)
        if head.version != version:
            raise StaleError(
                f"Conversation {id!r} is at version {head.version}, not at {shorten(version)}: "
                "somebody started or finished a call, decided or saved since. Load it again."
            )
        return head.next()

    def _head(self, rows: Rows, id: str, *, locked: bool = True) -> Head:
        head = Head.at(rows, id, locked=locked)
        if head is None:
            raise StoreError(
                f"There is no conversation {id!r} in the store at {self._database.name}. "
                "`store.ids()` lists those that are there."
            )
        return head

    @overload
    def load(self, id: str, toolset: type[T]) -> Stored[T]: ...
    @overload
    def load(self, id: str, toolset: None = None) -> Stored[Any]: ...
    def load(self, id: str, toolset: Any = None) -> Stored[Any]:
        """Return a conversation as it is now.

        Args:
            id: Names the conversation.
            toolset: The toolset that its plan belongs to; without it the plan is left out, so that
                one that no longer loads can be given up with `save(id, None, ...)`.

        Returns:
            The conversation; its plan is open, and may be committed, or changed and saved again.

        Raises:
            StoreError: There is no such conversation, it was edited, or the database failed.
            PlanError: The plan was edited, or does not fit the toolset any more.
            TranscriptError: The transcript was saved by another release.
            InvalidValueError: The id is no id.
            MisuseError: It is not a toolset.
        """
        check_word("id", id)
        if toolset is not None:
            check_toolset(toolset)
        with self._database.read() as rows:
            head, note, text = self._read(rows, id)
            if toolset is None:
                text = None
            calls = [] if text is None else SavedCall.checked(rows, id)
        beside = BesidePlan.read(note)
        session = beside.opened()
        plan = None if text is None else catch_up(self._plan(toolset, head, text), calls)
        return Stored(id, beside.note, plan, head.version, session)

    def _read(self, rows: Rows, id: str) -> tuple[Head, str, str | None]:
        head = self._head(rows, id, locked=False)
        return head, head.note_text(rows), head.plan_text(rows)

    def _plan(self, toolset: Any, head: Head, text: str) -> ToolRoundPlan[Any]:
        loaded: ToolRoundPlan[Any] = toolset.load_plan(text, key=self._key, binding=head.id)
        loaded._state._stored = StoredAs(head.id, head.round, head.version, head.plan_digest)
        return loaded

    def ids(self) -> list[str]:
        """Return the ids of all conversations."""
        with self._database.read() as rows:
            return ids_in(rows.all("SELECT id FROM lutum_conversation"))

    def settled(self) -> list[str]:
        """Return the ids of the conversations whose open round has every result, and may go on."""
        with self._database.read() as rows:
            found = rows.all(
                "SELECT id FROM lutum_conversation WHERE plan IS NOT NULL AND NOT EXISTS (SELECT 1 "
                "FROM lutum_call WHERE conversation = id AND state <> 'done')"
            )
        return ids_in(found)

    # Decisions.

    def waiting(self, id: str | None = None) -> list[Waiting]:
        """Return the calls that wait for a decision.

        Args:
            id: The conversation; by default all of them.

        Raises:
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id.
        """
        if id is not None:
            check_word("id", id)
        with self._database.read() as rows:
            found = SavedCall.waiting(rows, id)
            for row in found:
                row.check(rows)
        return [waiting_of(row) for row in found]

    def decide(
        self,
        id: str,
        decision: Decision,
        toolset: type[Any],
        *,
        hooks: Hooks | None = None,
        on_event: OnEvent | None = None,
    ) -> HookOutcome | None:
        """Take a decision into the stored plan.

        Args:
            id: The conversation.
            decision: The decision; delivered twice, it counts once.
            toolset: The toolset that the plan belongs to.
            hooks: The hooks that an edit is sent through, which have to be sync. For async ones,
                load the conversation, `await plan.amend(decision, hooks)`, and save it.
            on_event: Is told how the call stands then, once that is on record.

        Returns:
            What became of the call, as `plan.resume` says it (a call is to be claimed before it
            runs), or None if this decision was taken in before.

        Raises:
            ResumeError: No call waits for it any more, or another version of it was decided on, or
                the decision's result or edit does not fit; nothing changed.
            MisuseError: It is not a decision; or it edits arguments, and there are no hooks, or one
                of them is async; or `on_event` is not a function.
            HookError: A hook raised; nothing changed.
            ToolDefinitionError: As in `plan.resume`.
            MissingExtraError: As in `plan.resume`.
            PlanError: As in `load`.
            StoreError: There is no such conversation, it was edited, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)
        check_toolset(toolset)
        check_decision(decision)
        if on_event is not None:
            check_listener(on_event)
        if decision.edit is not None and hooks is None:
            raise MisuseError(
                f"Decision {decision.decision_id!r} edits the arguments of call "
                f"{decision.call_id!r}, so they go through hooks once more. Pass the `hooks=` that "
                "decided about the round."
            )

        def take(
            plan: ToolRoundPlan[Any], beside: BesidePlan, _rows: object
        ) -> tuple[list[str] | None, tuple[ToolRoundPlan[Any], HookOutcome | None]]:
            if decision.decision_id in beside.decided:
                raise ResumeError(
                    f"Decision {decision.decision_id!r} was taken by an earlier round of "
                    f"conversation {id!r}, and not about call {decision.call_id!r} of this "
                    "one. Show the call as it is now, and ask again."
                )
            became = (
                plan.resume(decision)
                if hooks is None
                else drive_sync(amend(plan, decision, hooks), _BY_PLAN)
            )
            return None if became is None else [decision.call_id], (plan, became)

        plan, outcome = self._change_plan(id, toolset, take)
        plan._tell_resumed(decision, outcome, on_event)
        if isinstance(outcome, AnyToolCall):
            outcome._hold()
        return outcome

    def _change_plan(
        self,
        id: str,
        toolset: Any,
        change: Callable[
            [ToolRoundPlan[Any], BesidePlan, Sequence[SavedCall]], tuple[list[str] | None, R]
        ],
        claim: Claim | None = None,
    ) -> R:
        """Change what a stored plan says; again, if somebody changed it meanwhile.

        Args:
            id: The conversation.
            toolset: The toolset of the plan.
            change: Changes a plan. It gives the ids of the calls whose rows that is about, the one
                of the claim first, or None if there is nothing to change; and the outcome.
            claim: The claim of the call that is changed, if it is of one.

        Returns:
            What came of the change that was put on record.
        """
        # Hooks may take minutes, so the plan is read, changed without a lock, and put back if it is
        # still what was read. Else all is done again with what is there now, hooks included.
        while True:
            with self._database.read() as rows:
                before, note, text = self._read(rows, id)
                found: list[SavedCall] = []
                if claim is not None:
                    row_of_claim(rows, claim)
                    found = SavedCall.checked(rows, id)
            if text is None:
                raise ResumeError(
                    f"No round of conversation {id!r} is open, so that no call waits. The decision "
                    "comes too late."
                )
            plan = self._plan(toolset, before, text)
            try:
                ids, came_to = change(plan, BesidePlan.read(note), found)
                if ids is None or self._put(before, note, self._text(plan, id), plan, ids, claim):
                    return came_to
            finally:
                plan._state._close("discarded")  # what became of the call is in the database

    def _put(
        self,
        before: Head,
        note: str,
        text: str,
        plan: ToolRoundPlan[Any],
        ids: list[str],
        claim: Claim | None,
    ) -> bool:
        """Put a changed plan in place of what it was read from, if that is still there."""
        places = places_of(plan)
        with self._database.write() as rows:
            head = self._head(rows, before.id)
            # The version does not matter here: it grows whenever another call of the round is
            # started or finished, and the plan stays the same text.
            if head._replace(version=0, seal="") != before._replace(version=0, seal=""):
                return False
            old: list[SavedCall] = []
            for call_id in ids:
                if claim is not None and call_id == claim.call.id:
                    old.append(row_of_claim(rows, claim))
                    continue
                row = SavedCall.at(rows, head.id, places[call_id])
                if claim is None and (row is None or row.state not in ("waiting", "unreviewed")):
                    raise PlanError(
                        f"Call {call_id!r} of conversation {head.id!r} waits by its plan, and its "
                        "row says otherwise. Put the database back as it was, or give the round up."
                    )
                if row is not None:
                    row.check(rows)
                    old.append(row)
            order = ClaimOrder.of(old[0]) if old else ClaimOrder()
            made = rows_of(plan, head.id, head.round, old, rows.now(), order)
            new = {row.place: row for row in made}
            for place in (places[call_id] for call_id in ids):
                rows.run(
                    "DELETE FROM lutum_call WHERE conversation = ? AND place = ?", head.id, place
                )
                if place in new:
                    new[place].insert(rows)
            head.next().write_texts(rows, note, text)
            for row in {row.requested_by: row for row in old if row.place not in new}.values():
                reopen_asking_call(rows, row)
            if order.in_order:
                settle(rows, head.id)
        return True

    # Calls.

    def claim(
        self, toolset: type[Any], *, id: str | None = None, lease: float = 60
    ) -> Claim | None:
        """Take the next call that is to be run, for the length of a lease.

        That is one that nobody has started, or one that was started and whose lease ran out: it is
        in doubt. Those that have been free for longest come first. A call that cannot be claimed,
        because its row or plan does not fit, raises once, and is then left alone for the length of
        the lease. One whose turn has not come is left out: see `in_order` and `across` of `save`.

        Args:
            toolset: The toolset that the plans belong to.
            id: The conversation; by default any.
            lease: How long it is yours, in seconds. It has to outlast the tool, or be renewed.

        Returns:
            The claim; None if no call is to be run now.

        Raises:
            PlanError: The plan of a row does not load, or does not allow that call to run.
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id, or the lease is not a number of seconds.
            MisuseError: It is not a toolset.
        """
        if id is not None:
            check_word("id", id)
        check_toolset(toolset)
        check_lease(lease)
        return self._claim_next(toolset, id, lease)

    def _claim_ready(
        self,
        id: str,
        toolset: Any,
        lease: float,
        left: Collection[tuple[str, int]] = (),
        *,
        in_doubt: bool = False,
    ) -> Claim | None:
        """Claim the next call of a conversation that may be started, and does not run here already.

        Those that are `left` are passed over. If `in_doubt` is true, claim the next one that may
        not be started: it is in doubt, and not idempotent.
        """

        def is_wanted(row: SavedCall) -> bool:
            tool = toolset._by_name.get(row.parsed_body.get("tool", str))
            may_run_again = tool is not None and tool.definition.idempotent
            return (row.state == "started" and not may_run_again) is in_doubt

        return self._claim_next(toolset, id, lease, is_wanted, self._running.union(left))

    def _claim_next(
        self,
        toolset: Any,
        id: str | None,
        lease: float,
        is_wanted: Callable[[SavedCall], bool] | None = None,
        passed: Iterable[tuple[str, int]] = (),
    ) -> Claim | None:
        """Claim the call that has been free for longest, of those that are wanted and not passed.

        Without `is_wanted`, any call is. Then one that cannot be claimed raises once, and is left
        alone for the length of the lease.
        """
        passed = set(passed)
        while True:
            with self._database.read() as rows:
                clock = rows.now()
                self._unfit = {row: until for row, until in self._unfit.items() if until > clock}
                left_out = passed.union(self._unfit if is_wanted is None else ())
                # One more than are left out, so that at least one of them is not left out, if any
                # call is free.
                found = SavedCall.claimable(rows, id, len(left_out) + 1)
            place = next((row for row in found if row not in left_out), None)
            if place is None:
                return None
            taken = self._take(*place, lease, is_wanted)
            if taken is not None:
                break
            passed.add(place)
        row, text, goes_on_from = taken
        plan = toolset.load_plan(text, key=self._key, binding=row.conversation)
        call = claimed(plan, row, goes_on_from)
        outer = Ancestry.of(plan, call.id)
        key = f"{row.conversation}/{row.round}/{call._own_key}"
        return Claim(
            *(row.conversation, call, key, row.token, row.state == "started", lease),
            *(toolset, row, outer, bool(outer.calls) and plan._state._owes_after),
        )

    @contextmanager
    def _at_work(self, claim: Claim) -> Generator[None]:
        """Let nobody else here claim a call while it is run."""
        place = claim._row[:2]
        self._running.add(place)
        try:
            yield
        finally:
            self._running.discard(place)

    def _is_held_up(self, id: str) -> bool:
        """Whether no call of a conversation is claimed or can be, so that decisions are needed."""
        query = "SELECT 1 FROM lutum_call WHERE conversation = ? AND until IS NOT NULL LIMIT 1"
        with self._database.read() as rows:
            return rows.one(query, id) is None

    def _take(
        self, id: str, place: int, lease: float, is_wanted: Callable[[SavedCall], bool] | None
    ) -> tuple[SavedCall, str, list[SavedCall]] | None:
        """Claim one row, if it is wanted, unless somebody else just did.

        Returns:
            The row, the plan that it belongs to, and the rows that it goes on from, itself among
            them.
        """
        taken: tuple[SavedCall, str, list[SavedCall]] | None = None
        fault: StoreError | None = None
        with self._database.write() as rows:
            try:
                head = self._head(rows, id)
                row, clock = SavedCall.at(rows, id, place), rows.now()
                if row is None or row.until is None or row.until > clock:
                    return None
                until = clock + round(1000 * lease)
                row.check(rows)
                if is_wanted is not None and not is_wanted(row):
                    return None
                text = head.plan_text(rows)
                if text is None or row.round != head.round:
                    raise StoreError(
                        f"The row of call {place} is not of an open round of conversation {id!r}. "
                        "Put the database back as it was, or give the round up."
                    )
                if not is_unblocked(rows, row):
                    return None
                row = row._replace(token=row.token + 1, owner=self._owner, until=until)
                row.write(rows)
                # What comes back from calls goes on from the outcomes of these.
                comes_back = row.parsed_body.data.get("requested")
                taken = row, text, SavedCall.checked(rows, id) if comes_back else [row]
            except StoreError as error:
                fault = error
                self._unfit[id, place] = rows.now() + round(1000 * lease)
        if fault is not None:
            raise fault
        return taken

    def start(self, claim: Claim) -> AnyToolCall:
        """Put on record that a call is about to run, and give the call that can be.

        The lease begins again. If this fails, nothing is to be run; it may be tried again.

        Raises:
            MisuseError: The call is in doubt and its tool is not idempotent, or this claim has
                started it already.
            LifecycleError: It has ended already.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "start")
        is_mine = False
        try:
            with self._claimed(claim) as (rows, head, found, clock):
                check_begins(claim)
                # While the row is locked: a second thread with the same claim comes after this, and
                # is refused. It is taken back below if the transaction fails, for then `start`
                # may be tried again.
                claim._is_started = is_mine = True
                row = found._replace(until=clock + round(1000 * claim.lease))
                if row.started != row.token:  # else it is on record, and only the answer was lost
                    # What it requested stays: its tool goes on from there, and asks nobody again.
                    retried = step_data("retried", verdict=CONTINUED)
                    again = (step_data("abandoned"), retried) if claim.in_doubt else ()
                    claim._started = at, by = time(), self._owner
                    started = step_data("started", at=iso_time(at), by=by)
                    claim._started_body = body = with_steps(row, *again, started)
                    row = row._replace(state="started", started=row.token, body=body)
                row.write(rows)
                head.next().write(rows)
        except BaseException:
            if is_mine:
                claim._is_started = False
            raise
        return claim._to_run()

    def renew(self, claim: Claim) -> None:
        """Let a lease begin again.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "renew")
        with self._claimed(claim) as (rows, _, row, clock):
            until = clock + round(1000 * claim.lease)
            row._replace(until=until).write(rows)

    def release(self, claim: Claim) -> None:
        """Give back a call that was not started by this claim.

        Raises:
            MisuseError: It was started, so that it has to be finished.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "release")
        with self._claimed(claim) as (rows, _, row, clock):
            if row.started == row.token:
                raise MisuseError(
                    f"Call {claim.call.id!r} of tool `{claim.call.name}` was started by this "
                    "claim, so it cannot be given back. Finish it; if nobody knows what it did, "
                    "with `call.indeterminate(reason)`."
                )
            # Another token, so that this claim cannot start the call after all.
            back = row._replace(token=row.token + 1, owner=None, until=clock)
            back.write(rows)

    def _take_back(self, claim: Claim) -> None:
        """Give back a call whose tool was not started, though its start may be on record.

        It is as it was when it was claimed. If the start was on record and somebody has saved the
        plan meanwhile, the start is in there, and the call is in doubt.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        with self._claimed(claim) as (rows, head, row, clock):
            back = claim._row if row.body == claim._started_body else row
            back._replace(token=row.token + 1, owner=None, until=clock).write(rows)
            if row.started == row.token:
                head.next().write(rows)

    def finish(
        self, claim: Claim, outcome: ResultLike | NotEnded, *, hooks: Hooks | None = None
    ) -> None:
        """Put on record the outcome of a call.

        Args:
            claim: The claim.
            outcome: A result of this call, or the call that suspended itself, which waits again, or
                that requests others, which may be claimed again once each of these has its result.
            hooks: Of a call that requests others, they decide about these; else these wait for
                `load`, `plan.apply_hooks` and `save`. Of a call within another, their after-hooks
                see the result. They have to be sync.

        Raises:
            CommitError: It is the result of another call.
            LifecycleError: It is another call that waits, or one that does not wait any more.
            StaleError: A later claim was made, the call has its result, or the round is over. What
                a tool did under this claim is in the steps of the call, as `late`, unless the call
                waits by now or the round is over.
            MisuseError: A hook is async; or after-hooks have to see the result of a call within
                another, and no hook set is passed.
            HookError: A hook raised. Nothing changed, except that a result is on record, which
                after-hooks are still to see: by `store.finish` of this claim or the next.
            PlanError: A tool left bytes to come back to, and the store has no key.
            StoreError: The database failed.
        """
        check_claim(claim, "finish")
        self._finish(claim, outcome, hooks, _BY_HAND)

    def _finish(
        self, claim: Claim, outcome: ResultLike | NotEnded, hooks: Hooks | None, drive: Drive
    ) -> tuple[ToolResult | NotEnded, list[CallEvent]]:
        """Do as `finish` does, with any hooks; return what is on record now, and what happened."""
        try:
            return self._finish_claim(claim, outcome, hooks, drive)
        except StaleError:
            self._note_late(claim, outcome)
            raise

    def _note_late(self, claim: Claim, outcome: ResultLike | NotEnded) -> None:
        """Put on record what came of a run that is over, so that nobody forgets what it did."""
        results, waits = as_results([outcome])
        late = [
            step_data("late", verdict=each.status, result=dump_result(each)) for each in results
        ]
        for each in waits:
            kind = "suspended" if isinstance(each, SuspendedCall) else "requested"
            late.append(step_data("late", verdict=kind))
        with self._database.write() as rows:
            head = Head.at(rows, claim.id)
            row = None if head is None else SavedCall.at(rows, claim.id, claim._row.place)
            # Its own outcome is on record already if only the answer was lost.
            if head is None or row is None or row.token == claim.token or not claim._is_started:
                return
            row.check(rows)
            # What is decided about a call that waits goes by the plan, and not by its row.
            is_held = row.state in ("waiting", "awaiting", "unreviewed")
            if row.round == claim._row.round and not is_held and not is_in(row, late[0]):
                row._replace(body=with_steps(row, *late)).write(rows)
                head.next().write(rows)

    def _finish_claim(
        self, claim: Claim, outcome: ResultLike | NotEnded, hooks: Hooks | None, drive: Drive
    ) -> tuple[ToolResult | NotEnded, list[CallEvent]]:
        asked = claim.call.metadata
        events: list[CallEvent] = []
        if isinstance(outcome, SuspendedCall | AwaitingCall):
            if outcome.call.metadata != asked:
                raise LifecycleError(
                    f"The claim is of call {asked.id!r} of tool `{asked.name}`, and what waits is "
                    f"call {outcome.call.id!r} of tool `{outcome.call.name}`. Finish each claim "
                    "with the outcome of its own call."
                )
            waits = outcome
            outcome, events = self._change_plan(
                claim.id,
                claim._toolset,
                lambda plan, _, rows: leave(plan, waits, rows, hooks, drive),
                claim,
            )
            if outcome is waits:
                return waits, events
        ((result,), _) = as_results([outcome])
        if result.id != asked.id:
            raise CommitError([ExtraResult(result.id, result.name, (asked.id,), False)])
        if faults := mismatches(result, asked):
            raise CommitError(faults)
        at, seen = claim._ended_at(result), tuple[Step, ...]()
        if claim._outer.calls:
            check_sees(claim, hooks)
            with self._database.read() as rows:
                row_of_claim(rows, claim)
            try:
                if hooks is not None:
                    result, seen = shown(claim.call, result, hooks, drive)
            except BaseException:  # a hook that raises does not take the outcome away
                with suppress(StaleError), self._claimed(claim) as (rows, head, row, clock):
                    ended(row, result, at, clock).write(rows)
                    head.next().write(rows)
                raise
        with self._claimed(claim) as (rows, head, row, _):
            with_result(row, result, at, seen).write(rows)
            head.next().write(rows)
            reopen_asking_call(rows, row)
            if ClaimOrder.of(row).in_order:
                settle(rows, head.id)
        return result, events

    def _decide_within(
        self, id: str, toolset: Any, hooks: Hooks, drive: Drive, is_due: bool
    ) -> list[CallEvent] | None:
        """Decide about what calls of a conversation requested, and nobody decided about.

        Args:
            id: The conversation.
            toolset: The toolset of its plan.
            hooks: The hooks that decide.
            drive: Runs the generator that calls them.
            is_due: Whether after-hooks have to see what somebody decided within a call.

        Returns:
            What was decided; None if there was nothing to do.
        """
        with self._database.read() as rows:
            query = "SELECT 1 FROM lutum_call WHERE conversation = ? AND state = 'unreviewed'"
            if not is_due and rows.one(query, id) is None:
                return None
        events: list[CallEvent] | None = None
        with suppress(ResumeError):  # the round is over by now
            events = self._change_plan(
                id, toolset, lambda plan, _, __: decide_within(plan, hooks, drive)
            )
        return events

    @contextmanager
    def _claimed(self, claim: Claim) -> Generator[tuple[Rows, Head, SavedCall, int]]:
        """Lock the conversation of a claim that still holds, and read its row and the clock."""
        with self._database.write() as rows:
            head = self._head(rows, claim.id)
            yield rows, head, row_of_claim(rows, claim), rows.now()


_BY_PLAN: Final = "`await stored.plan.amend(decision, hooks)` after `store.load`, and `store.save`"
_BY_HAND: Drive = partial(drive_sync, instead="`await store.run(id, toolset, hooks=hooks)`")
