"""`Claims`: take a call, put on record that it starts, and how it ended; each in one round trip."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from random import uniform
from time import monotonic, time
from typing import Any, Final, NamedTuple
from uuid import uuid4

from .. import AnyToolCall, AwaitingCall, SuspendedCall, ToolResult
from .._call.deciding import HookGenerator, drive_sync
from .._call.history import CONTINUED, iso_time
from .._round.ending import as_results
from .._round.events import CallEvent, row_at, tell_asked, tell_row
from .._round.inner import ask, decide_asked
from .._round.record import record
from .._round.record import settle as settled_by_hooks
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
from ..typing import Hooks, NotEnded, ResultLike
from ._claim_order import ClaimOrder, gives_way, lock_shared, release, wake_shared
from ._database import Rows, Statement
from ._records import Moved, Records, is_moved
from ._rows import CALL, ENTRY, HEAD, MAY_BE_DUE, Entry, Head, SavedCall, check_word, parsed
from ._tree import Change, Tree, late_steps
from ._values import (
    Claim,
    check_begins,
    check_claim,
    check_lease,
    check_limit,
    check_seconds,
    check_toolset,
)

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


class Claims(Records):
    """Let workers take calls, start and finish them."""

    def claim(
        self, toolset: type[Any], *, id: str | None = None, lease: float = 60
    ) -> Claim | None:
        """Take the next call that may be run, for the length of a lease.

        That is one that nobody has started, or one that was started and whose lease ran out: it is
        in doubt. Those that have been free for longest come first. A call that cannot be claimed,
        because its row or plan does not fit, raises once, and is then left alone for the length of
        the lease. One whose turn has not come is left out: see `in_order` and `across` of `save`.

        Args:
            toolset: The toolset that the plans belong to.
            id: The conversation; by default any.
            lease: How long it is yours, in seconds. It has to outlast the tool, or be renewed.

        Returns:
            The claim; None if no call may be run now.

        Raises:
            PlanError: The plan of a row does not load, or does not allow that call to run.
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id, or the lease is not a number of seconds.
            MisuseError: It is not a toolset.
        """
        return next(iter(self.claim_many(toolset, 1, id=id, lease=lease)), None)

    def claim_many(
        self, toolset: type[Any], limit: int, *, id: str | None = None, lease: float = 60
    ) -> list[Claim]:
        """Take several calls at once, as `claim` takes one: those that you can start at once.

        Args:
            toolset: The toolset that the plans belong to.
            limit: How many at most.
            id: The conversation; by default any.
            lease: How long they are yours, in seconds, each by itself.

        Returns:
            The claims; none if no call may be run now.

        Raises:
            PlanError: As in `claim`; the other calls are given back.
            StoreError: As in `claim`.
            InvalidValueError: The id is no id, or the lease or limit is not a number that fits.
            MisuseError: It is not a toolset.
        """
        if id is not None:
            check_word("id", id)
        check_toolset(toolset)
        check_lease(lease)
        check_limit(limit)
        wanted = Wanted(id, passed=self._unfit_here())
        return self._claim(toolset, wanted, lease, limit)

    def _claim(self, toolset: Any, wanted: Wanted, lease: float, limit: int) -> list[Claim]:
        """Claim calls that are wanted, in one round trip."""
        while True:
            claim = uuid4().hex
            statement = _claim_statement(
                wanted,
                claim,
                self._owner,
                round(1000 * lease),
                limit,
                is_postgres=self._database.is_postgres,
            )
            ((_, found),) = self._database.batch(statement)
            made: list[Claim] = []
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

    def _opened(self, toolset: Any, cells: Any, claim: str, lease: float) -> list[Claim]:
        """Make the claim of a row that was taken; none if it gives way to another claim."""
        row = SavedCall.of(cells[:_CALL_CELLS])
        row.check(self._key)
        head = Head.of(_list(cells[_CALL_CELLS]), self._key)
        if row.shared and not self._is_first(row):
            return []
        if row.root == row.call and row.state != "awaiting" and not _has_inner(row):
            entries = map(Entry.read, _list(cells[_CALL_CELLS + 1]))
            tree = Tree(head, [row], entries, self._key)
        else:
            with self._database.read() as rows:
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
        return [Claim(row.conversation, call, key, row.token, is_in_doubt, lease, tree, claim)]

    def _is_first(self, row: SavedCall) -> bool:
        """Whether a claimed call meets no other in what its round shares; else it gives way."""

        def do(rows: Rows) -> bool:
            # Two claims that meet could each look before the other is written. In a statement of
            # its own: what a statement sees is as old as its beginning, and so older than the lock.
            lock_shared(rows, is_postgres=self._database.is_postgres)
            until = gives_way(rows, row)
            if until is None:
                return True
            rows.run(
                "UPDATE lutum_call SET due = ?, claim = NULL, worker = NULL, owner = NULL "
                "WHERE conversation = ? AND call = ? AND claim = ?",
                *(until, row.conversation, row.call, row.claim),
            )
            return False

        return self._database.transact(do)

    # A call that cannot be claimed here is left to others: whoever has another key or other tools
    # must not keep it from those who can run it. So it is remembered in this process alone.

    def _set_aside(self, cells: Any, claim: str, lease: float) -> None:
        id, call = str(cells[0]), str(cells[1])
        self._unfit[id, call] = monotonic() + lease
        self._give_back(id, call, claim)

    def _unfit_here(self) -> list[tuple[str, str]]:
        now = monotonic()
        for which in [which for which, until in [*self._unfit.items()] if until <= now]:
            del self._unfit[which]
        return [*self._unfit]

    def _give_back(self, id: str, call: str, claim: str) -> int:
        (count, _), *_ = self._database.batch(
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
            self._database.notice,
        )
        return count

    def start(self, claim: Claim) -> AnyToolCall:
        """Put on record that a call is about to run, and give the call that can be.

        The lease begins again. If this fails, run nothing; it may be tried again.

        Raises:
            MisuseError: The call is in doubt and its tool is not idempotent, or this claim has
                started it already.
            LifecycleError: It has ended already.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "start")
        with claim._lock:  # a second thread with the same claim comes after this, and is refused
            self._check_goes_on(claim)
            try:
                check_begins(claim)
            except LutumError:  # but a claim that is over is stale, whatever else is wrong
                self.renew(claim)
                raise
            call = self._handed_out(claim)
            self._write_alone(claim, claim._starting, keeps=round(1000 * claim.lease))
            claim._tree.advance(claim._starting)
            claim._is_started = True
        return call

    def _handed_out(self, claim: Claim) -> AnyToolCall:
        """Return the call that may run; that it starts is not on record yet."""
        if claim._given is None:
            claim._given = claim._tree.plan.detach(claim.call.id, owner=self._owner)
            claim._starting = claim._tree.changes()
        return claim._given

    def _write_alone(self, claim: Claim, changes: list[Change], keeps: int | None = None) -> None:
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
        self, claim: Claim, change: Change, keeps: int | None
    ) -> tuple[bool, SavedCall | None]:
        """Write a change; return whether it is on record, or else the row as it is now."""
        row, before, entries = change
        assert before is not None
        needs_claim = keeps is not None or not claim._is_started or claim._has_ended
        update = row.update(before, claim=claim._claim if needs_claim else None, keeps=keeps)
        last, after = entries[-1], list[Statement]()
        if change.is_end and _is_followed(row):
            after = [*release(row, last.id), self._database.notice]
        elif row.shared and keeps is None:  # it waits, or is given back
            after = [wake_shared(), self._database.notice]
        if self._database.is_postgres and not after:
            step = [Entry.insert_after(update, entries)]
        else:
            step = [update, *(each.insert_if(row) for each in entries), *after]
        if self._database.batch(*step)[0][0]:
            return True, None
        # Written already, if only the answer was lost: an entry is known by its own id.
        with self._database.read() as rows:
            found = SavedCall.at(rows, row.conversation, row.call)
            query = (
                "SELECT id FROM lutum_entry WHERE conversation = ? AND round = ? AND call = ? "
                "AND n = ?"
            )
            ours = rows.one(query, row.conversation, row.round, row.call, last.n)
        is_last = found is not None and (keeps is None or found.n == row.n)
        return ours == (last.id,) and is_last, found

    def _behind_late(self, claim: Claim, changes: list[Change]) -> list[Change] | None:
        """Put changes behind what came too late, or another order: neither makes a claim void.

        Returns:
            The changes; None if nothing came meanwhile, or more than that has happened.
        """
        with self._database.read() as rows:
            own = SavedCall.at(rows, claim.id, claim.call.id)
            if own is None or own.round != claim._tree.head.round:
                return None
            tree = Tree.read(rows, claim._tree.head, own.call)
        assert tree is not None, "its row is there"
        newer = [each for each in (change.behind(tree) for change in changes) if each is not None]
        is_moved = _seals_before(newer) != _seals_before(changes)
        return newer if is_moved and len(newer) == len(changes) else None

    def renew(self, claim: Claim) -> None:
        """Let a lease begin again.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "renew")
        ((count, _),) = self._database.beat(
            (
                (
                    "UPDATE lutum_call SET due = {now} + ? "
                    "WHERE conversation = ? AND call = ? AND claim = ?"
                ),
                (round(1000 * claim.lease), claim.id, claim.call.id, claim._claim),
            )
        )
        if count == 0:
            raise self._stale(claim)

    def _stale(self, claim: Claim) -> StaleError:
        with self._database.read() as rows:
            return stale(claim, SavedCall.at(rows, claim.id, claim.call.id))

    def release(self, claim: Claim) -> None:
        """Give back a call that was not started by this claim.

        Raises:
            MisuseError: It was started, so that it has to be finished.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        check_claim(claim, "release")
        self._check_goes_on(claim)
        if claim._is_started:
            self.renew(claim)  # a claim that is over is stale, whatever else is wrong
            raise MisuseError(
                f"Call {claim.call.id!r} of tool `{claim.call.name}` was started by this "
                "claim, so it cannot be given back. Finish it; if nobody knows what it did, "
                "with `call.indeterminate(reason)`."
            )
        self._check_given_back(claim)

    def _check_given_back(self, claim: Claim) -> None:
        # Another token, so that this claim cannot start the call after all.
        if self._give_back(claim.id, claim.call.id, claim._claim) == 0:
            raise self._stale(claim)

    def _take_back(self, claim: Claim) -> None:
        """Give back a call whose tool was not started, though its start may be on record.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        if not claim._is_started or claim.in_doubt:  # in doubt, as it was
            self._check_given_back(claim)
            return
        if claim._ending is None:
            step = {"kind": "retried", "at": iso_time(time())}
            if claim._tree.has_requested(claim.call.id):
                step["verdict"] = CONTINUED
            claim._tree.add(claim.call.id, step)
            claim._ending = claim._tree.changes()
        self._write_alone(claim, claim._ending)

    def finish(
        self, claim: Claim, outcome: ResultLike | NotEnded, *, hooks: Hooks | None = None
    ) -> None:
        """Put on record the outcome of a call.

        If the database fails, this may be tried again.

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
                a tool did under this claim is in the steps of the call, as `late`, unless the round
                is over.
            MisuseError: A hook is async; or after-hooks have to see the result of a call within
                another, and no hook set is passed.
            HookError: A hook raised. Nothing changed, except that a result is on record, which
                after-hooks are still to see: by `store.finish` of this claim or the next.
            PlanError: A tool left bytes to come back to, and the store has no key.
            StoreError: The database failed.
        """
        check_claim(claim, "finish")
        self._check_goes_on(claim)
        if claim._has_ended:  # after-hooks see it again, unless somebody else shows it to them
            self.renew(claim)
        settling = self._settling(claim, outcome, hooks, [])
        try:
            drive_sync(settling, "`await store.run(id, toolset, hooks=hooks)`")
        except BaseException:
            self._keep_ended(claim, outcome)
            raise
        self._end(claim, outcome)

    def _settling(
        self,
        claim: Claim,
        outcome: ResultLike | NotEnded,
        hooks: Hooks | None,
        events: list[CallEvent],
    ) -> HookGenerator[ToolResult | NotEnded]:
        """Take an outcome into the plan of the claim; give it as it is then.

        What happens to calls within it is put into `events`.
        """
        plan = claim._tree.plan
        if isinstance(outcome, SuspendedCall | AwaitingCall):
            asked = claim.call.metadata
            if outcome.call.metadata != asked:
                raise LifecycleError(
                    f"The claim is of call {asked.id!r} of tool `{asked.name}`, and what waits is "
                    f"call {outcome.call.id!r} of tool `{outcome.call.name}`. Finish each claim "
                    "with the outcome of its own call."
                )
        if isinstance(outcome, SuspendedCall):
            record(plan._state, outcome)
            return outcome
        if isinstance(outcome, AwaitingCall):
            call = claim.call
            if all(each.id != call.id for each in plan.awaiting):  # else hooks raised before
                settled = ask(plan._state, outcome)
                if isinstance(settled, ToolResult):
                    record(plan._state, settled)
                    return settled
                tell_row(events.append, "requested", row_at(plan._state, call._record))
                tell_asked(plan._state, events.append, call._record)
            if hooks is not None:
                yield from decide_asked(plan._state, hooks, events.append, by=call._record)
            return outcome
        ((result,), _) = as_results([outcome])
        if result.id != claim.call.id:
            raise CommitError([ExtraResult(result.id, result.name, (claim.call.id,), False)])
        if claim._tree.rows[claim.call.id].requested_by is None:
            record(plan._state, result)
            return result
        if hooks is None:
            record(plan._state, result)
        else:
            shown = yield from settled_by_hooks(plan._state, result, hooks)
            assert isinstance(shown, ToolResult)
            result = shown
        return result

    def _keep_ended(self, claim: Claim, outcome: ResultLike | NotEnded) -> None:
        """Keep a result that an after-hook raised about: it is shown to them again."""
        if claim._kept is None:  # else it is repeated, and known by the ids of its entries
            claim._kept = claim._tree.changes()
        ended = claim._kept
        if claim._is_started and [change.row.state for change in ended] == ["ended"]:
            try:
                self._write_alone(claim, ended, keeps=0)
                claim._tree.advance(ended)
                claim._has_ended = True
                claim._kept = None
            except StaleError:
                self._note_late(claim, outcome)

    def _end(self, claim: Claim, outcome: ResultLike | NotEnded) -> None:
        """Write what became of a call, and what it requested.

        Raises:
            StaleError: The run is over for the store; the outcome is written as `late`.
        """
        if claim._ending is None:
            claim._ending = claim._tree.changes()
        changes = claim._ending
        claim._is_over = True
        try:
            if len(changes) == 1 and not is_moved(changes[0]):
                self._write_alone(claim, changes)
            else:
                self._put_all(claim, changes)
        except StaleError:
            self._note_late(claim, outcome)
            raise
        except StoreError:
            claim._is_over = False  # it may be tried again
            raise

    def _put_all(self, claim: Claim, changes: list[Change]) -> None:
        """Write what was done to several calls.

        Raises:
            StaleError: Somebody else has written since.
        """
        while True:
            try:
                return self._put(claim.id, changes)
            except Moved:
                newer = self._behind_late(claim, changes)
                if newer is None:
                    raise self._stale(claim) from None
                changes[:] = newer

    def _check_goes_on(self, claim: Claim) -> None:
        if claim._is_over:
            raise self._stale(claim)

    def _asking_trees(self, id: str, is_due: bool) -> list[Tree]:
        """Read what hooks have to decide about.

        Args:
            id: The conversation.
            is_due: Whether that is all calls within others, and not only those nobody reviewed.
        """
        which = "root <> call" if is_due else "state = 'unreviewed'"
        query = f"SELECT DISTINCT root FROM lutum_call WHERE conversation = ? AND {which}"
        with self._database.read() as rows:
            roots = [row[0] for row in rows.all(query, id)]
            head = Head.at(rows, id, locked=False) if roots else None
            trees = [Tree.read(rows, head, root) for root in roots if head is not None]
        return [tree for tree in trees if tree is not None]

    def _is_held_up(self, id: str) -> bool:
        """Whether no call of a conversation is claimed or can be, so that decisions are needed."""
        which = (
            "conversation = ? AND state <> 'done' "
            f"AND (slot IS NOT NULL OR due > {{now}} OR due IS NOT NULL AND {MAY_BE_DUE})"
        )
        with self._database.read() as rows:
            return rows.one(f"SELECT 1 FROM lutum_call WHERE {which} LIMIT 1", id) is None

    def wait(self, timeout: float = 60) -> None:
        """Return when there may be something to claim, or when the time is over.

        That is at a notice of somebody who wrote, when the next lease ends, and after about a
        second in any case: a notice may be lost. Then try `claim` again.

        Args:
            timeout: How long at most, in seconds.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a number of seconds.
        """
        check_seconds("timeout", timeout)
        with self._database.read() as rows:
            found = rows.one(
                # One that ended before this was there to be claimed, and nobody here wants it.
                f"SELECT MIN(due) - {{now}} FROM lutum_call WHERE due > {{now}} AND {MAY_BE_DUE}"
            )
        until_due = timeout if found is None or found[0] is None else found[0] / 1000
        self._database.wait_for_notice(max(0, min(timeout, until_due, uniform(0.8, 1.2))))

    def _note_late(self, claim: Claim, outcome: ResultLike | NotEnded) -> None:
        """Put on record what came of a run that is over, so that nobody forgets what it did."""
        if not claim._is_started:
            return
        while True:
            with self._database.read() as rows:
                row = SavedCall.at(rows, claim.id, claim.call.id)
            own = claim._tree.rows[claim.call.id]
            if row is None or row.round != own.round:
                return
            row.check(self._key)
            entry = Entry(
                *(row.conversation, row.round, row.call, row.n, uuid4().hex),
                late_steps(outcome),
            ).sealed(row.last, self._key)
            grown = row._replace(n=row.n + 1, last=entry.seal).sealed(self._key)
            done = self._database.batch(grown.grow(row), entry.insert_if(grown))
            if done[0][0] == 1:
                return


def _seals_before(changes: list[Change]) -> list[str]:
    """Return by what it is known that rows were changed meanwhile."""
    return ["" if each.before is None else each.before.seal for each in changes]


def stale(claim: Claim, row: SavedCall | None) -> StaleError:
    """Return the error of a claim that is over."""
    if row is None or row.round != claim._tree.head.round:
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
