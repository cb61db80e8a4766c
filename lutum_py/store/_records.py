"""The text of a session in a store: its id, and its transcript."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar, overload
from uuid import uuid4

from .. import Decision, Session, ToolRoundPlan, Transcript
from .._call.deciding import drive_sync
from .._round.events import CallEvent, check_listener, tell_event, tell_resumed
from .._round.plan_json import check_told
from .._round.resume import amend, check_decision
from .._text.immutable import Settled
from .._text.json import is_whole, shorten
from .._transcript.saved import Saved, check_key
from ..errors import InvalidValueError, MisuseError, ResumeError, StaleError, StoreError
from ..execution._settings import check_flag
from ..typing import HookOutcome, Hooks, OnEvent
from ._claim_order import ClaimOrder, follow, lock_calls, release, reorder, wake_shared
from ._database import LostCommit, Rows, Statement, StoreLocation, database_at
from ._leases import Leases
from ._rows import (
    CLAIMABLE,
    ENTRY,
    IS_CLAIMED,
    Entry,
    Head,
    May,
    SavedCall,
    check_word,
    dumped,
    held_by_nobody,
    ids_in,
    parsed,
    prepare,
)
from ._tree import Change, Changes, Plan, Tree, root_of
from ._values import Stored, Waiting, check_page, check_seconds, check_toolset, waiting_of


def session_text(session: Session) -> str:
    """Write a session down."""
    return dumped({"id": session.id, "transcript": session.transcript.dump_json()})


def opened_session(text: str | None) -> Session | None:
    """Make the session.

    Raises:
        TranscriptError: This release knows another form of transcripts.
    """
    if text is None:
        return None
    saved = Saved(parsed(text, "of the session"), "the session", StoreError)
    transcript = Transcript.load_json(saved.get("transcript", str))
    return Session(transcript, id=saved.get("id", str, None))


T = TypeVar("T")


class Moved(Exception):
    """Something that a step had read was changed before it was written."""


class _Grown(Exception):
    """Something happened to a call of a plan while it was saved."""


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
        # Plans that were closed here, and that nobody may know to be on record: a save of one
        # failed as it ended. Each may be saved again, as the same conversation.
        self._unsure: list[tuple[str, Plan]] = []
        self._leases = Leases(self._database)
        # Calls that could not be claimed here, and until when they are left alone.
        self._unfit: dict[tuple[str, str], float] = {}
        try:
            prepare(self._database, is_there=is_there)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections to the database."""
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
        plan: Plan | None,
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
        order = (in_order, None if across is None else wanted.across)
        texts: dict[str, str | None] = {} if note is None else {"note": dumped(note)}
        if session is not None:
            texts["session"] = session_text(session)
        if plan is None or stays:

            def write(rows: Rows) -> int:
                with may(rows):
                    return self._write_texts(rows, id, version, texts, stays=stays)

            return self._database.transact(write)
        writing = _Writing(self, id, plan, version, order, texts)

        def write_plan(rows: Rows) -> int:
            with may(rows):
                return writing.write(rows)

        while True:
            try:
                saved = self._database.transact(write_plan)
            except _Grown:
                continue
            except BaseException:  # an interrupt, too
                if writing.is_ours and plan.closed_by == "handed over":
                    self._unsure.append((id, plan))
                raise
            self._unsure[:] = [each for each in self._unsure if each[1] is not plan]
            return saved

    def _write_texts(
        self,
        rows: Rows,
        id: str,
        version: int | None,
        texts: Mapping[str, str | None],
        *,
        stays: bool,
    ) -> int:
        """Write a note and a session; the open round, if it does not stay, is over."""
        head = self._at_version(rows, id, version, stays=stays)
        if not stays and head.round:
            self._end_round(rows, id)
            head, texts = head._replace(round="", counted=0), {**texts, "record": None}
        return head.write(rows, **texts).version + (self._count(rows, head) if stays else 0)

    def _count(self, rows: Rows, head: Head) -> int:
        """Return how much the entries since the last save add to the version."""
        query = "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM lutum_call WHERE conversation = ?"
        found = rows.one(query, head.id)
        return int(found[0]) - head.counted if found and head.round else 0

    def _at_version(self, rows: Rows, id: str, version: int | None, *, stays: bool = False) -> Head:
        """Lock a conversation that is at a version, or make it; give it as of the next version."""
        if version is None and not stays:
            made = rows.run(
                "INSERT INTO lutum_conversation VALUES "
                "(?, 0, 0, '', '', '', '', 0, '', '', NULL, NULL) ON CONFLICT DO NOTHING",
                id,
            )
            if made == 0:
                raise StaleError(
                    f"Conversation {id!r} is there already. Pass the `version=` that you loaded."
                )
            head = Head(id, 1, 0, "", "", "", "", rows.now())
            return head.write(rows, note=dumped(""), session=None, record=None)
        head = self._head(rows, id)
        if stays:
            return head._replace(version=head.version + 1, changed=rows.now())
        # Nobody ends, starts or decides a call of it until this transaction ends.
        lock_calls(rows, id)
        now = head.version + self._count(rows, head)
        if now != version:
            raise StaleError(
                f"Conversation {id!r} is at version {now}, not at {shorten(version)}: "
                "somebody started or finished a call, decided or saved since. Load it again."
            )
        return head._replace(version=now + 1, changed=rows.now())

    def _end_round(self, rows: Rows, id: str) -> None:
        tables = ("call", "entry", "follower")
        ended = [(f"DELETE FROM lutum_{table} WHERE conversation = ?", (id,)) for table in tables]
        rows.many([*ended, wake_shared()])

    def _head(self, rows: Rows, id: str, *, locked: bool = True) -> Head:
        head = Head.at(rows, id, locked=locked)
        if head is None:
            raise self._missing(id)
        return head

    def _missing(self, id: str) -> StoreError:
        return StoreError(
            f"There is no conversation {id!r} in the store at {self._database.name}. "
            "`store.ids()` lists those that are there."
        )

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
            head = self._head(rows, id, locked=False)
            note, session, record = head.texts(rows, "note", "session", "record")
            head = head._replace(version=head.version + self._count(rows, head))
            tree = None if toolset is None or record is None else self._round(rows, head)
        plan = None
        if tree is not None:
            plan = tree.open(toolset, _parts(record).inner("record").data)
            tree.leave([call.id for call in plan.pending if call.status == "running"])
        return Stored(id, note_of(note), plan, head.version, opened_session(session))

    def _round(self, rows: Rows, head: Head) -> Tree:
        """Read all calls of the open round."""
        entries = rows.all(
            f"SELECT {ENTRY} FROM lutum_entry WHERE conversation = ? AND round = ?",
            *(head.id, head.round),
        )
        found = SavedCall.where(rows, "conversation = ?", head.id)
        return Tree(head, found, map(Entry.read, entries), self._key)

    def ids(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the ids of conversations, in order.

        Args:
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a page: an id or a number does not fit.
        """
        check_page(limit, after)
        with self._database.read() as rows:
            query = "SELECT id FROM lutum_conversation WHERE id > ?"
            return ids_in(_page(rows, query, limit, after))

    def settled(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the ids of the conversations whose open round has every result, and may go on.

        Args:
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a page: an id or a number does not fit.
        """
        check_page(limit, after)
        query = (
            "SELECT id FROM lutum_conversation WHERE round <> '' AND id > ? AND NOT EXISTS "
            "(SELECT 1 FROM lutum_call WHERE conversation = id AND state <> 'done')"
        )
        with self._database.read() as rows:
            return ids_in(_page(rows, query, limit, after))

    def delete(self, id: str) -> None:
        """Forget a conversation, its id included.

        Raises:
            MisuseError: A call of it is claimed, runs or is in doubt, or it is held by somebody.
            StoreError: There is no such conversation, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)

        def forget(rows: Rows) -> None:
            with held_by_nobody(id, self._owner)(rows):
                self._head(rows, id)
                lock_calls(rows, id)
                which = f"conversation = ? AND (state = 'started' OR {IS_CLAIMED}) ORDER BY call"
                for row in SavedCall.where(rows, which, id):
                    raise MisuseError(
                        f"Conversation {id!r} is not deleted: its call {row.call!r} of tool "
                        f"`{row.tool}` is claimed, runs or is in doubt. Finish it, or give "
                        "the round up with `plan.abort` and save that."
                    )
                self._end_round(rows, id)
                rows.run("DELETE FROM lutum_decision WHERE conversation = ?", id)
                rows.run("DELETE FROM lutum_conversation WHERE id = ?", id)

        self._database.transact(forget)

    def unchanged_since(
        self, seconds: float, *, after: str = "", limit: int | None = None
    ) -> list[str]:
        """Return the ids of conversations that were saved last so many seconds ago, or earlier.

        Args:
            seconds: How long they were left alone at least.
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a number of seconds, or of ids.
        """
        check_seconds("seconds", seconds)
        check_page(limit, after)
        query = "SELECT id FROM lutum_conversation WHERE changed <= {now} - ? AND id > ?"
        with self._database.read() as rows:
            return ids_in(_page(rows, query, limit, round(1000 * seconds), after))

    # Decisions.

    def waiting(
        self,
        id: str | None = None,
        *,
        tool: str | None = None,
        older_than: float | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> list[Waiting]:
        """Return the calls that wait for a decision, by conversation and call.

        Args:
            id: The conversation; by default all of them.
            tool: Only calls of the tool with this wire name.
            older_than: Only calls that have waited for so many seconds.
            after: Only those behind this conversation and call, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id, or it is not a page: a text or number does not fit.
        """
        if id is not None:
            check_word("id", id)
        if older_than is not None:
            check_seconds("older_than", older_than)
        if after is not None and not (isinstance(after, tuple) and len(after) == 2):
            raise InvalidValueError(
                f"after={shorten(after)} is not a conversation and a call. Pass "
                "`(waiting.id, waiting.call_id)` of the last one that you saw."
            )
        check_page(limit, *(after or ()), *(() if tool is None else (tool,)))
        which, values = "state = 'waiting'", list[object]()
        if id is not None:
            which, values = f"{which} AND conversation = ?", [*values, id]
        if tool is not None:
            which, values = f"{which} AND tool = ?", [*values, tool]
        if older_than is not None:
            which = f"{which} AND since <= {{now}} - ?"
            values.append(round(1000 * older_than))
        if after is not None:
            which, values = f"{which} AND (conversation, call) > (?, ?)", [*values, *after]
        which += " ORDER BY conversation, call"
        if limit is not None:
            which, values = f"{which} LIMIT ?", [*values, limit]
        with self._database.read() as rows:
            found = SavedCall.where(rows, which, *values)
        return [waiting_of(row.check(self._key)) for row in found]

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
            on_event: Called with the new state of the call, once that is on record.

        Returns:
            What became of the call, as `plan.resume` returns it (claim a call before it
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
        # Hooks may take minutes, so what is there is read, changed without a lock, and written if
        # it is still what was read. Else all is done again with what is there now.
        while True:
            events: list[CallEvent] = []
            with self._database.read() as rows:
                tree = self._to_decide(rows, id, decision)
            plan = tree.open(toolset)
            if hooks is None:
                became = plan.resume(decision, on_event=events.append)
            else:
                became = drive_sync(amend(plan._state, decision, hooks), _BY_PLAN)
                tell_resumed(plan._state, decision, became, events.append)
            if became is None:
                return None
            try:
                self._put(id, tree.changes(), self._decided(id, decision))
            except Moved:
                continue
            if on_event is not None:
                for event in events:
                    tell_event(on_event, event)
            return became

    def _to_decide(self, rows: Rows, id: str, decision: Decision) -> Tree:
        head = self._head(rows, id, locked=False)
        if not head.round:
            raise ResumeError(
                f"No round of conversation {id!r} is open, so that no call waits. The decision "
                "comes too late."
            )
        tree = Tree.read(rows, head, decision.call_id)
        if tree is None:
            waiting = SavedCall.where(rows, "conversation = ? AND state = 'waiting'", id)
            raise ResumeError(
                f"Decision {decision.decision_id!r} is about call {decision.call_id!r}, which is "
                f"not suspended in conversation {id!r}. Suspended: "
                f"{[row.call for row in waiting]}. Show what waits, and ask again."
            )
        query = "SELECT 1 FROM lutum_decision WHERE conversation = ? AND id = ?"
        taken = rows.one(query, id, decision.decision_id)
        if taken and not _has_decision(tree, decision.decision_id):
            raise ResumeError(
                f"Decision {decision.decision_id!r} was taken by an earlier round of "
                f"conversation {id!r}, and not about call {decision.call_id!r} of this "
                "one. Show the call as it is now, and ask again."
            )
        return tree

    @staticmethod
    def _decided(id: str, decision: Decision) -> Statement:
        # A person may answer late, when the round of the question is over. Its decision is known by
        # its id then, and is not taken for one about a call `c1` of the next round.
        insert = "INSERT INTO lutum_decision VALUES (?, ?) ON CONFLICT DO NOTHING"
        return insert, (id, decision.decision_id)

    def _put(self, id: str, changes: list[Change], *more: Statement) -> None:
        """Write what was done to the plan of a tree; it may be repeated.

        Raises:
            Moved: Somebody has written to one of these calls since they were read.
        """
        is_ordered = any(ClaimOrder.of(row).in_order for row, _, _ in changes)

        def do(rows: Rows) -> None:
            if (
                is_ordered
            ):  # or each has its own call, waits for those of the other, and begins anew
                lock_calls(rows, id)
            done = rows.many([*statements(changes), *more])
            if any(count != 1 for count, _ in done[: len(done) - len(more)]):
                raise Moved
            for change in changes:
                if change.is_end:
                    rows.many(release(change.row, change.entries[-1].id))
                elif change.row.shared:
                    rows.many([wake_shared()])
            if is_ordered:
                reorder(rows, id)
            else:
                rows.many(follow([row for row, before, _ in changes if before is None]))
            if any(change.is_end or change.row.state in CLAIMABLE for change in changes):
                rows.many([self._database.notice])

        try:
            self._database.transact(do)
        except (LostCommit, Moved):
            if not any(map(self._is_written, changes[:1])):
                raise

    def _is_written(self, change: Change) -> bool:
        """Whether an entry is on record, which is known by its own id."""
        last = change.entries[-1]
        query = (
            "SELECT id FROM lutum_entry WHERE conversation = ? AND round = ? AND call = ? AND n = ?"
        )
        with self._database.read() as rows:
            return rows.one(query, last.conversation, last.round, last.call, last.n) == (last.id,)


_BY_PLAN = "`await stored.plan.amend(decision, hooks)` after `store.load`, and `store.save`"


def is_moved(change: Change) -> bool:
    """Whether a call accesses something else than before, in a round whose order is kept."""
    return change.before is not None and (
        ClaimOrder.of(change.row).in_order and change.before.body != change.row.body
    )


def statements(changes: Iterable[Change]) -> Iterator[Statement]:
    """Yield first one for each row, and after that those for the entries."""
    for row, before, _ in changes:
        if before is None:
            # A call within another may be claimed at once; one of a turn in its order.
            slot = row.since + 1000 * row.place if row.state in CLAIMABLE else None
            due = row.since if row.state in ("started", "ended") else None
            yield row._replace(slot=slot, due=due).insert()
        else:
            yield row.update(before)
    for change in changes:
        for entry in change.entries:
            yield entry.insert()


def _page(rows: Rows, query: str, limit: int | None, *values: object) -> list[Any]:
    query = f"{query} ORDER BY id"
    if limit is None:
        return rows.all(query, *values)
    return rows.all(f"{query} LIMIT ?", *values, limit)


def _has_decision(tree: Tree, id: str) -> bool:
    steps = (step for entry in tree.entries for step in entry.data()["steps"])
    return any(step.get("decision", {}).get("decision_id") == id for step in steps)


def note_of(text: str | None) -> str:
    """Read a note, which is kept as JSON: a database does not take each text."""
    note = parsed(text or '""', "of the note")
    return note if isinstance(note, str) else ""


def _parts(record: str | None) -> Saved:
    return Saved(parsed(record or "", "of the round"), "the round", StoreError)


class _Writing:
    """Save a plan.

    Args:
        records: The store.
        id: The conversation.
        plan: The plan.
        version: The version that it comes after; None for a new conversation.
        order: `in_order` and `across`, as they were given.
        texts: What else is written.
    """

    def __init__(
        self,
        records: Records,
        id: str,
        plan: Plan,
        version: int | None,
        order: tuple[bool | None, tuple[str, ...] | None],
        texts: dict[str, str | None],
    ) -> None:
        self.records = records
        self.id = id
        self.plan = plan
        self.version = version
        self.order = order
        self.texts = texts
        self.is_ours = any(own == id and each is plan for own, each in records._unsure)
        # Encoded before the transaction, which others wait for, and in which nothing may fail that
        # is not of the database.
        check_told(plan._state)
        self.record = plan.round_record()
        self.stored: Any = self.record.pop("stored", None)

    def write(self, rows: Rows) -> int:
        """Write it all, and close the plan.

        Raises:
            _Grown: Something happened to a call meanwhile.
        """
        plan, id = self.plan, self.id
        if self.stored is not None and self.stored["id"] != id:
            raise MisuseError(
                f"This plan is of conversation {self.stored['id']!r}, and a store keeps it there: "
                f"saved as {id!r} too, its calls could be run twice. Save it where it came from."
            )
        head = self.records._at_version(rows, id, self.version)
        known: dict[str, SavedCall] = {}
        before = ClaimOrder()
        if self.stored is not None:
            if (self.stored["round"], self.stored["version"]) != (head.round, head.version - 1):
                raise StaleError(
                    f"This plan was loaded at version {self.stored['version']} of conversation "
                    f"{id!r}, which has changed since, or it belongs to another store. Load it "
                    "again, and change what you get."
                )
            (kept,) = head.texts(rows, "record")
            before = ClaimOrder.read(_parts(kept).inner("order"))
            found = SavedCall.where(rows, "conversation = ?", id)
            known = {row.call: row.check(rows.key) for row in found}
        else:
            if head.round:
                self.records._end_round(rows, id)
            head = head._replace(round=uuid4().hex)
        order = before.with_changes(*self.order)
        entries, mark = plan.entries_since({call: row.n for call, row in known.items()})
        made = Changes(head, known, plan, rows.key)
        changes = made.of(entries, order, _records_of(self.record))
        is_other = bool(known) and order != before
        again = made.ordered(order) if is_other else []
        # Who has claimed a call under the old order would write that again as it starts the call.
        moved = [
            row.update(made.rows[row.call])
            if row.state in CLAIMABLE
            else row.grow(made.rows[row.call])
            for row in again
        ]
        done = rows.many([*statements(changes), *moved])
        assert all(count == 1 for count, _ in done), "the rows are locked"
        is_within = any(change.row.root != change.row.call for change in changes)
        if is_other or order.in_order or is_within:
            reorder(rows, id)
        rows.many([wake_shared(), self.records._database.notice])
        counted = sum(mark.values()) - _unwritten(entries, changes)
        text = dumped({"record": self.record, "order": order.data})
        head._replace(counted=counted).write(rows, **self.texts, record=text)
        # Before it is on record for others: what starts here after that would start twice. All
        # that can fail now is the COMMIT, and nobody may know whether it did.
        if plan.closed_by is None:
            self.is_ours = True  # before it is closed: an interrupt may come in between
            plan.hand_over()
        elif not self.is_ours:
            plan.hand_over()  # which raises that the round has ended
        if plan.entries_since(mark)[0]:
            raise _Grown
        return head.version


def _unwritten(entries: Iterable[Any], changes: Iterable[Change]) -> int:
    return sum(1 for _ in entries) - sum(len(change.entries) for change in changes)


def _records_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return what is needed to read each call of the turn without the others."""
    turn = record["turn"]
    # What the provider ran for the model counts for what a policy allows each of the calls.
    beside = [item for item in turn["items"] if item["type"] == "server_tool"]
    by_id = {each["id"]: each for each in record["calls"]}
    asked = {item["id"]: item for item in turn["items"] if item["type"] == "tool_call"}
    trees: dict[str, list[str]] = {}
    for id in asked:
        trees.setdefault(root_of(id, asked), []).append(id)
    return {
        root: {
            **record,
            "turn": {**turn, "items": [*beside, *map(asked.__getitem__, ids)], "payload": None},
            "calls": [by_id[id] for id in ids if id in by_id],
        }
        for root, ids in trees.items()
    }
