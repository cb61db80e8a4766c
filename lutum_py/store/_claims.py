"""`Claims`: take a call, put on record that it starts, and how it ended; each in one round trip."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from itertools import chain
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import uuid4

from .. import AnyToolCall, AwaitingCall, HandledCall, RejectedCall, SuspendedCall, ToolResult
from .._text.json import is_array
from ..errors import (
    CommitError,
    ExtraResult,
    LifecycleError,
    LutumError,
    MisuseError,
    PlanError,
    StaleError,
    StoreError,
)
from ..typing import CallEvent, Hooks, NotEnded, ResultLike
from ._claim_order import ClaimOrder, gives_way, lock_shared, release, wake_shared
from ._database import Database, Rows, Statement
from ._records import Conversations, Moved, is_moved
from ._rows import CALL, ENTRY, HEAD, MAY_BE_DUE, Entry, Head, SavedCall, parsed
from ._tree import Change, Tree, late_steps
from ._values import OpenClaim, check_begins

_HEAD_COLUMNS: Final = ", ".join(f"h.{name}" for name in HEAD.split(", "))
_ENTRY_COLUMNS: Final = ", ".join(f"e.{name}" for name in ENTRY.split(", "))
_CALL_CELLS: Final = len(SavedCall._fields)
_CLAIM: Final = SavedCall._fields.index("claim")


class Wanted(NamedTuple):
    """Which calls of one conversation a worker claims.

    Attributes:
        id: The conversation; None for any.
        worker: Whose lease the claims go by; empty if each has its own.
        passed: Calls that are passed over, by conversation and id.
        again: Which calls that were started may be claimed: those of these tools.
        only_again: Whether all others are left out.
    """

    id: str | None = None
    worker: str = ""
    passed: Collection[tuple[str, str]] = ()
    again: Collection[str] | None = None
    only_again: bool = False

    def condition(self) -> tuple[str, list[object]]:
        """Return what holds for the rows, as SQL, and its values."""
        which, values = "", list[object]()
        if self.id is not None:
            which, values = f"{which} AND c.conversation = ?", [*values, self.id]
        if self.passed:
            pairs = ", ".join(["(?, ?)"] * len(self.passed))
            which = f"{which} AND (c.conversation, c.call) NOT IN (VALUES {pairs})"
            values += chain.from_iterable(self.passed)
        if self.again is not None:
            tools = f"c.tool IN ({_marks(self.again)})" if self.again else "1 = 0"
            if self.only_again:
                which = f"{which} AND c.state = 'started' AND {tools}"
            else:
                which = f"{which} AND (c.state <> 'started' OR {tools})"
            values += self.again
        return which, values


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


# In one statement: of the calls whose lease ran out and of those that nobody has started, those
# that have been free for longest. Rows that somebody else looks at are skipped, so that workers do
# not wait for each other. A call whose worker is alive stays with it, and is not looked at before
# that lease ends.
def _claim_statement(
    wanted: Wanted, claim: str, owner: str, lease: int, limit: int, *, is_postgres: bool
) -> Statement:
    which, values = wanted.condition()
    own = wanted.worker or None
    array, gathered = "json_array", "json_group_array"
    if is_postgres:
        array, gathered = "json_build_array", "json_agg"
    sql = f"""
        WITH lost AS MATERIALIZED (
            SELECT c.conversation AS id, c.call AS its, c.due AS at, w.until AS alive
            FROM lutum_call AS c LEFT JOIN lutum_worker AS w
            ON w.id = c.worker AND (w.until > {{now}} OR w.id = ?)
            WHERE c.due <= {{now}} AND {MAY_BE_DUE}{which} ORDER BY c.due LIMIT ? {{skip}}),
        free AS MATERIALIZED (
            SELECT c.conversation AS id, c.call AS its, c.slot AS at,
                CAST(NULL AS BIGINT) AS alive
            FROM lutum_call AS c WHERE c.slot IS NOT NULL{which} ORDER BY c.slot
            LIMIT ? {{skip}}),
        found AS (SELECT * FROM (SELECT * FROM lost UNION ALL SELECT * FROM free) AS both_of
            ORDER BY at LIMIT ?)
        UPDATE lutum_call SET slot = NULL,
            due = CASE WHEN alive IS NULL THEN {{now}} + ?
                WHEN alive > {{now}} + 1000 THEN alive ELSE {{now}} + 1000 END,
            claim = CASE WHEN alive IS NULL THEN ? ELSE claim END,
            token = CASE WHEN alive IS NULL THEN token + 1 ELSE token END,
            worker = CASE WHEN alive IS NULL THEN ? ELSE worker END,
            owner = CASE WHEN alive IS NULL THEN ? ELSE owner END
        FROM found WHERE lutum_call.conversation = found.id AND lutum_call.call = found.its
        RETURNING {CALL},
            CAST((SELECT {array}({_HEAD_COLUMNS}) FROM lutum_conversation AS h
                WHERE h.id = lutum_call.conversation) AS TEXT),
            CAST((SELECT {gathered}({array}({_ENTRY_COLUMNS})) FROM lutum_entry AS e
                WHERE e.conversation = lutum_call.conversation AND e.round = lutum_call.round
                AND e.call = lutum_call.call) AS TEXT)
    """
    return sql, (own, *values, limit, *values, limit, limit, lease, claim, own, owner)


class Claims(Conversations):
    """Let workers take calls, start and finish them."""

    def __init__(self, database: Database, owner: str) -> None:
        super().__init__(database, owner)
        # Calls that could not be claimed here, and until when they are left alone.
        self._unfit: dict[tuple[str, str], float] = {}

    def claim(self, toolset: Any, wanted: Wanted, lease: float, limit: int) -> list[OpenClaim]:
        """Claim calls that are wanted, in one round trip."""
        while True:
            claim = uuid4().hex
            statement = _claim_statement(
                wanted,
                claim,
                self.owner,
                round(1000 * lease),
                limit,
                is_postgres=self.database.is_postgres,
            )
            ((_, found),) = self.database.batch(statement)
            made: list[OpenClaim] = []
            fault: Exception | None = None
            for cells in [each for each in found if each[_CLAIM] == claim]:
                try:
                    made += self._opened(toolset, cells, claim, lease)
                except (LutumError, ValueError) as error:
                    fault = fault or error
                    self._set_aside(cells, claim, lease)
            if fault is not None:
                for each in made:
                    self._give_back(each.id, each.call.id, claim)
                raise fault
            # What was looked at is with workers that are alive, or gives way: look at what is next.
            if made or not found:
                return made

    def _opened(self, toolset: Any, cells: Any, claim: str, lease: float) -> list[OpenClaim]:
        """Make the claim of a row that was taken; none if it gives way to another claim."""
        row = SavedCall.of(cells[:_CALL_CELLS])
        row.check(self.database.key)
        head = Head.of(_list(cells[_CALL_CELLS]), self.database.key)
        if row.shared and not self._is_first(row):
            return []
        if row.root == row.call and row.state != "awaiting" and not _has_inner(row):
            entries = map(Entry.read, _list(cells[_CALL_CELLS + 1]))
            tree = Tree(head, [row], entries, self.database.key)
        else:
            with self.database.read() as rows:
                read = Tree.read(rows, head, row.call)
            if read is None or read.rows[row.call].claim != claim:
                return []
            tree = read
        plan = tree.open_to_run(toolset, row.call)
        # Not by the state of the row, which is not sealed.
        is_in_doubt = any(each.id == row.call for each in plan.in_doubt)
        call = next((c for c in (*plan.pending, *plan.in_doubt) if c.id == row.call), None)
        if call is None:
            raise PlanError(
                f"What is stored of call {row.call!r} in conversation {row.conversation!r} says "
                "that it may be run, and its entries do not. Put the database back as it was, or "
                "give the round up."
            )
        key = call.idempotency_key
        return [OpenClaim(row.conversation, call, key, row.token, is_in_doubt, lease, tree, claim)]

    def _is_first(self, row: SavedCall) -> bool:
        """Whether a claimed call meets no other in what its round shares; else it gives way."""

        def do(rows: Rows) -> bool:
            # Two claims that meet could each look before the other is written. In a statement of
            # its own: what a statement sees is as old as its beginning, and so older than the lock.
            lock_shared(rows, is_postgres=self.database.is_postgres)
            until = gives_way(rows, row)
            if until is None:
                return True
            rows.run(
                "UPDATE lutum_call SET due = ?, claim = NULL, worker = NULL, owner = NULL "
                "WHERE conversation = ? AND call = ? AND claim = ?",
                *(until, row.conversation, row.call, row.claim),
            )
            return False

        return self.database.transact(do)

    # A call that cannot be claimed here is left to others: whoever has another key or other tools
    # must not keep it from those who can run it. So it is remembered in this process alone.

    def _set_aside(self, cells: Any, claim: str, lease: float) -> None:
        id, call = str(cells[0]), str(cells[1])
        self._unfit[id, call] = monotonic() + lease
        self._give_back(id, call, claim)

    def unfit_here(self) -> list[tuple[str, str]]:
        now = monotonic()
        for which in [which for which, until in [*self._unfit.items()] if until <= now]:
            del self._unfit[which]
        return [*self._unfit]

    def _give_back(self, id: str, call: str, claim: str) -> int:
        (count, _), *_ = self.database.batch(
            (
                (
                    "UPDATE lutum_call SET claim = NULL, worker = NULL, owner = NULL, "
                    "token = token + 1, "
                    "due = CASE WHEN state IN ('started', 'ended') THEN {now} END, "
                    "slot = CASE WHEN state IN ('ready', 'awaiting') AND blockers = 0 "
                    "THEN {now} END "
                    "WHERE conversation = ? AND call = ? AND claim = ?"
                ),
                (id, call, claim),
            ),
            wake_shared(),
            self.database.notice,
        )
        return count

    def start(self, claim: OpenClaim) -> AnyToolCall:
        """Put on record that a call starts, and return the call that may run; see `Store.start`."""
        with claim.lock:  # a second thread with the same claim comes after this, and is refused
            self._check_goes_on(claim)
            try:
                check_begins(claim)
            except LutumError:  # but a claim that is over is stale, whatever else is wrong
                self.renew(claim)
                raise
            call = self.hand_out(claim)
            self.write_alone(claim, claim.starting, keeps=round(1000 * claim.lease))
            claim.tree.advance(claim.starting)
            claim.is_started = True
        return call

    def hand_out(self, claim: OpenClaim) -> AnyToolCall:
        """Return the call that may run; that it starts is not on record yet."""
        if claim.given is None:
            claim.given = claim.tree.plan.detach(claim.call.id, owner=self.owner)
            claim.starting = claim.tree.changes()
        return claim.given

    def write_alone(
        self, claim: OpenClaim, changes: list[Change], keeps: int | None = None
    ) -> None:
        """Write what was done to one call, in one round trip; it may be repeated.

        Args:
            claim: The claim.
            changes: The change.
            keeps: How long the claim goes on, in milliseconds; None if it is over.

        Raises:
            StaleError: Somebody else has written since.
        """
        while True:
            is_written, found = self._write_one(claim, changes[0], keeps)
            if is_written:
                return
            newer = self._behind_late(claim, changes)
            if newer is None:
                raise stale(claim, found)
            changes[:] = newer

    def _write_one(
        self, claim: OpenClaim, change: Change, keeps: int | None
    ) -> tuple[bool, SavedCall | None]:
        """Write a change; return whether it is on record, or else the row as it is now."""
        row, before, entries = change
        assert before is not None
        needs_claim = keeps is not None or not claim.is_started or claim.has_ended
        update = row.update(before, claim=claim.claim if needs_claim else None, keeps=keeps)
        last, after = entries[-1], list[Statement]()
        if change.is_end and _is_followed(row):
            after = [*release(row, last.id), self.database.notice]
        elif row.shared and keeps is None:  # it waits, or is given back
            after = [wake_shared(), self.database.notice]
        if self.database.is_postgres and not after:
            step = [Entry.insert_after(update, entries)]
        else:
            step = [update, *(each.insert_if(row) for each in entries), *after]
        if self.database.batch(*step)[0][0]:
            return True, None
        # Written already, if only the answer was lost: an entry is known by its own id.
        with self.database.read() as rows:
            found = SavedCall.at(rows, row.conversation, row.call)
            query = (
                "SELECT id FROM lutum_entry WHERE conversation = ? AND round = ? AND call = ? "
                "AND n = ?"
            )
            ours = rows.one(query, row.conversation, row.round, row.call, last.n)
        is_last = found is not None and (keeps is None or found.n == row.n)
        return ours == (last.id,) and is_last, found

    def _behind_late(self, claim: OpenClaim, changes: list[Change]) -> list[Change] | None:
        """Put changes behind what came too late, or another order: neither makes a claim void.

        Returns:
            The changes; None if nothing came meanwhile, or more than that has happened.
        """
        with self.database.read() as rows:
            own = SavedCall.at(rows, claim.id, claim.call.id)
            if own is None or own.round != claim.tree.head.round:
                return None
            tree = Tree.read(rows, claim.tree.head, own.call)
        assert tree is not None, "its row is there"
        newer = [each for each in (change.behind(tree) for change in changes) if each is not None]
        is_moved = _seals_before(newer) != _seals_before(changes)
        return newer if is_moved and len(newer) == len(changes) else None

    def renew(self, claim: OpenClaim) -> None:
        """Let a lease begin again; see `Store.renew`."""
        ((count, _),) = self.database.beat(
            (
                (
                    "UPDATE lutum_call SET due = {now} + ? "
                    "WHERE conversation = ? AND call = ? AND claim = ?"
                ),
                (round(1000 * claim.lease), claim.id, claim.call.id, claim.claim),
            )
        )
        if count == 0:
            raise self._stale(claim)

    def _stale(self, claim: OpenClaim) -> StaleError:
        with self.database.read() as rows:
            return stale(claim, SavedCall.at(rows, claim.id, claim.call.id))

    def release(self, claim: OpenClaim) -> None:
        """Give back a call that was not started; see `Store.release`."""
        self._check_goes_on(claim)
        if claim.is_started:
            self.renew(claim)  # a claim that is over is stale, whatever else is wrong
            raise MisuseError(
                f"Call {claim.call.id!r} of tool `{claim.call.name}` was started by this "
                "claim, so it cannot be given back. Finish it; if nobody knows what it did, "
                "with `call.indeterminate(reason)`."
            )
        self._check_given_back(claim)

    def _check_given_back(self, claim: OpenClaim) -> None:
        # Another token, so that this claim cannot start the call after all.
        if self._give_back(claim.id, claim.call.id, claim.claim) == 0:
            raise self._stale(claim)

    def take_back(self, claim: OpenClaim) -> None:
        """Give back a call whose tool was not started, though its start may be on record.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        if not claim.is_started or claim.in_doubt:  # in doubt, as it was
            self._check_given_back(claim)
            return
        if claim.ending is None:
            step = {"kind": "retried", "at": datetime.now(UTC).isoformat(timespec="microseconds")}
            if claim.tree.has_requested(claim.call.id):
                step["verdict"] = "continued"
            claim.tree.add(claim.call.id, step)
            claim.ending = claim.tree.changes()
        self.write_alone(claim, claim.ending)

    def finish(self, claim: OpenClaim, outcome: ResultLike | NotEnded, hooks: Hooks | None) -> None:
        """Put on record the outcome of a call; see `Store.finish`."""
        self._check_goes_on(claim)
        if claim.has_ended:  # after-hooks see it again, unless somebody else shows it to them
            self.renew(claim)
        try:
            given = self.take(claim, outcome, hooks, [])
            if hooks is not None and given is not None:
                claim.tree.plan.settle_sync(given, hooks)
        except BaseException as error:
            if isinstance(error, MisuseError):
                error.add_note("`await store.run(id, toolset, hooks=hooks)` takes async hooks.")
            self.keep_ended(claim)
            raise
        self.end(claim)

    def take(
        self,
        claim: OpenClaim,
        outcome: ResultLike | NotEnded,
        hooks: Hooks | None,
        events: list[CallEvent],
    ) -> ToolResult | NotEnded | None:
        """Take an outcome into the plan of the claim, if hooks do not have to see it.

        Args:
            claim: The claim.
            outcome: The outcome.
            hooks: The hooks, if there are any.
            events: What happens to the call is put here.

        Returns:
            The outcome, if it is for `plan.settle`.
        """
        plan, call = claim.tree.plan, claim.call
        given = outcome.result if isinstance(outcome, HandledCall | RejectedCall) else outcome
        if isinstance(given, SuspendedCall | AwaitingCall):
            if given.call.metadata != call.metadata:
                raise LifecycleError(
                    f"The claim is of call {call.id!r} of tool `{call.name}`, and what waits is "
                    f"call {given.call.id!r} of tool `{given.call.name}`. Finish each claim "
                    "with the outcome of its own call."
                )
            if isinstance(given, AwaitingCall) and hooks is not None:
                return given
        elif isinstance(given, ToolResult):
            if given.id != call.id:
                raise CommitError([ExtraResult(given.id, given.name, (call.id,), False)])
            if call.requested_by is not None and hooks is not None:
                return given
        if isinstance(given, AwaitingCall) and call in plan.awaiting:
            return None  # a hook raised before
        plan.record(given)
        if isinstance(given, AwaitingCall) and not call.status.is_terminal:
            plan.notify(events.append, "requested", call)
        return None

    def keep_ended(self, claim: OpenClaim) -> None:
        """Keep a result that an after-hook raised about: it is shown to them again."""
        if claim.kept is None:  # else it is repeated, and known by the ids of its entries
            claim.kept = claim.tree.changes()
        ended = claim.kept
        if claim.is_started and [change.row.state for change in ended] == ["ended"]:
            try:
                self.write_alone(claim, ended, keeps=0)
                claim.tree.advance(ended)
                claim.has_ended = True
                claim.kept = None
            except StaleError:
                self._note_late(claim, ended)

    def end(self, claim: OpenClaim) -> None:
        """Write what became of a call, and what it requested.

        Raises:
            StaleError: The run is over for the store; the outcome is written as `late`.
        """
        if claim.ending is None:
            claim.ending = claim.tree.changes()
        changes = claim.ending
        claim.is_over = True
        try:
            if len(changes) == 1 and not is_moved(changes[0]):
                self.write_alone(claim, changes)
            else:
                self._put_all(claim, changes)
        except StaleError:
            self._note_late(claim, changes)
            raise
        except StoreError:
            claim.is_over = False  # it may be tried again
            raise

    def _put_all(self, claim: OpenClaim, changes: list[Change]) -> None:
        """Write what was done to several calls.

        Raises:
            StaleError: Somebody else has written since.
        """
        while True:
            try:
                return self.put(claim.id, changes)
            except Moved:
                newer = self._behind_late(claim, changes)
                if newer is None:
                    raise self._stale(claim) from None
                changes[:] = newer

    def _check_goes_on(self, claim: OpenClaim) -> None:
        if claim.is_over:
            raise self._stale(claim)

    def asking_trees(self, id: str, is_due: bool) -> list[Tree]:
        """Read what hooks have to decide about.

        Args:
            id: The conversation.
            is_due: Whether that is all calls within others, and not only those nobody reviewed.
        """
        which = "root <> call" if is_due else "state = 'unreviewed'"
        query = f"SELECT DISTINCT root FROM lutum_call WHERE conversation = ? AND {which}"
        with self.database.read() as rows:
            roots = [row[0] for row in rows.all(query, id)]
            head = Head.at(rows, id, locked=False) if roots else None
            trees = [Tree.read(rows, head, root) for root in roots if head is not None]
        return [tree for tree in trees if tree is not None]

    def is_held_up(self, id: str) -> bool:
        """Whether no call of a conversation is claimed or can be, so that decisions are needed."""
        which = (
            "conversation = ? AND state <> 'done' "
            f"AND (slot IS NOT NULL OR due > {{now}} OR due IS NOT NULL AND {MAY_BE_DUE})"
        )
        with self.database.read() as rows:
            return rows.one(f"SELECT 1 FROM lutum_call WHERE {which} LIMIT 1", id) is None

    def _note_late(self, claim: OpenClaim, changes: list[Change]) -> None:
        """Put on record what came of a run that is over, so that nobody forgets what it did."""
        if not claim.is_started:
            return
        while True:
            with self.database.read() as rows:
                row = SavedCall.at(rows, claim.id, claim.call.id)
            own = claim.tree.rows[claim.call.id]
            if row is None or row.round != own.round:
                return
            row.check(self.database.key)
            entry = Entry(
                *(row.conversation, row.round, row.call, row.n, uuid4().hex),
                late_steps(changes, row.call),
            ).sealed(row.last, self.database.key)
            grown = row._replace(n=row.n + 1, last=entry.seal).sealed(self.database.key)
            done = self.database.batch(grown.grow(row), entry.insert_if(grown))
            if done[0][0] == 1:
                return


def _seals_before(changes: list[Change]) -> list[str]:
    """Return by what it is known that rows were changed meanwhile."""
    return ["" if each.before is None else each.before.seal for each in changes]


def stale(claim: OpenClaim, row: SavedCall | None) -> StaleError:
    """Return the error of a claim that is over."""
    if row is None or row.round != claim.tree.head.round:
        what = "is not open any more: its round is over, or was saved again"
    elif row.state == "done":
        what = "has its result already"
    elif row.owner is None:
        what = "was given back, decided on or saved again"
    else:
        what = f"was claimed again since, by {row.owner}, after its lease ran out"
    return StaleError(
        f"Call {claim.call.id!r} of tool `{claim.call.name}` in conversation {claim.id!r} "
        f"{what}. Drop this claim. What its tool did, if it was started, `store.finish` keeps in "
        "the steps of the call, as `late`, unless the round is over."
    )


def _list(text: object) -> list[Any]:
    """Read cells that came as one text."""
    read: Any = parsed(text if isinstance(text, str) else "", "that was claimed")
    return read if is_array(read) else []


def _has_inner(row: SavedCall) -> bool:
    return bool(row.parsed_body.data.get("requested"))


def _is_followed(row: SavedCall) -> bool:
    return row.root != row.call or ClaimOrder.of(row) != ClaimOrder()
