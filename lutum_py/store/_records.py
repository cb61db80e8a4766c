"""The conversations of a store: save, load and decide, each in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from .. import Decision, Session, ToolRoundPlan, Transcript
from .._text.json import is_whole, shorten
from ..errors import InvalidValueError, MisuseError, ResumeError, StaleError, StoreError
from ..saved import Saved
from ..typing import CallEvent, HookOutcome, Hooks, OnEvent
from ._claim_order import ClaimOrder, follow, lock_calls, release, reorder, wake_shared
from ._database import Database, LostCommit, Rows, Statement
from ._leases import Leases
from ._rows import CLAIMABLE, ENTRY, Entry, Head, May, SavedCall, check_word, dumped, parsed
from ._tree import Change, Changes, Plan, Tree, root_of
from ._values import Stored, StoredRound, Waiting, check_page, check_seconds, waiting_of


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


class Saving(NamedTuple):
    """What `store.save` was called with; see there.

    Attributes:
        stays: Whether the open round is left as it is, at whichever version.
    """

    id: str
    plan: Plan | None
    note: str | None
    session: Session | None
    version: int | None
    in_order: bool | None = None
    across: Iterable[str] | None = None
    stays: bool = False


class Conversations:
    """What a store keeps, and how it puts each step on record.

    Attributes:
        database: Where it is kept.
        owner: Who claims calls here.
        leases: The leases of the workers of this process.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self.database = database
        self.owner = owner
        self.leases: Leases = Leases(database)
        # Plans that were closed here, and that nobody may know to be on record: a save of one
        # failed as it ended. Each may be saved again, as the same conversation.
        self.unsure: list[tuple[str, Plan]] = []

    # Conversations.

    def save(self, what: Saving, may: May) -> int:
        """Save, if the hold of the conversation lets us: see `may`."""
        id, plan, note, session, version, in_order, across, stays = what
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

            return self.database.transact(write)
        writing = _Writing(self, id, plan, version, order, texts)

        def write_plan(rows: Rows) -> int:
            with may(rows):
                return writing.write(rows)

        while True:
            try:
                saved = self.database.transact(write_plan)
            except _Grown:
                continue
            except BaseException:  # an interrupt, too
                if writing.is_ours and plan.closed_by == "handed over":
                    self.unsure.append((id, plan))
                raise
            self.unsure[:] = [each for each in self.unsure if each[1] is not plan]
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
        head = self.at_version(rows, id, version, stays=stays)
        if not stays and head.round:
            end_round(rows, id)
            head, texts = head._replace(round="", counted=0), {**texts, "record": None}
        return head.write(rows, **texts).version + (count_since(rows, head) if stays else 0)

    def at_version(self, rows: Rows, id: str, version: int | None, *, stays: bool = False) -> Head:
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
        head = self.head(rows, id)
        if stays:
            return head._replace(version=head.version + 1, changed=rows.now())
        # Nobody ends, starts or decides a call of it until this transaction ends.
        lock_calls(rows, id)
        now = head.version + count_since(rows, head)
        if now != version:
            raise StaleError(
                f"Conversation {id!r} is at version {now}, not at {shorten(version)}: "
                "somebody started or finished a call, decided or saved since. Load it again."
            )
        return head._replace(version=now + 1, changed=rows.now())

    def head(self, rows: Rows, id: str, *, locked: bool = True) -> Head:
        head = Head.at(rows, id, locked=locked)
        if head is None:
            raise self.missing(id)
        return head

    def missing(self, id: str) -> StoreError:
        return StoreError(
            f"There is no conversation {id!r} in the store at {self.database.name}. "
            "`store.ids()` lists those that are there."
        )

    def load(self, id: str, toolset: Any) -> Stored[Any]:
        """Read a conversation; without a toolset its plan is left out."""
        with self.database.read() as rows:
            head = self.head(rows, id, locked=False)
            note, session, record = head.texts(rows, "note", "session", "record")
            head = head._replace(version=head.version + count_since(rows, head))
            tree = None if toolset is None or record is None else self.round(rows, head)
        plan = None
        if tree is not None:
            plan = tree.open(toolset, _parts(record).inner("record").data)
            tree.leave([call.id for call in plan.pending if call.status == "running"])
        return Stored(id, note_of(note), plan, head.version, opened_session(session))

    def read(self, id: str) -> StoredRound:
        """Read a conversation without its tools."""
        with self.database.read() as rows:
            head = self.head(rows, id, locked=False)
            session, record = head.texts(rows, "session", "record")
            tree = None if record is None else self.round(rows, head)
            query = "SELECT follower, call FROM lutum_follower WHERE conversation = ?"
            edges = rows.all(f"{query} ORDER BY follower, call", id)
        if tree is None:
            return StoredRound(opened_session(session))
        waits: dict[str, list[str]] = {}
        for call, before in edges:
            if call in tree.rows and tree.rows[before].requested_by != call:
                waits.setdefault(call, []).append(before)
        entries = [each.data() for each in tree.entries]
        kept = _parts(record).inner("record").data
        return StoredRound(opened_session(session), kept, entries, waits)

    def round(self, rows: Rows, head: Head) -> Tree:
        """Read all calls of the open round."""
        entries = rows.all(
            f"SELECT {ENTRY} FROM lutum_entry WHERE conversation = ? AND round = ?",
            *(head.id, head.round),
        )
        found = SavedCall.where(rows, "conversation = ?", head.id)
        return Tree(head, found, map(Entry.read, entries), self.database.key)

    # Decisions.

    def waiting(
        self,
        id: str | None,
        tool: str | None = None,
        older_than: float | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> list[Waiting]:
        """Read what waits for a decision; see `Store.waiting`."""
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
        with self.database.read() as rows:
            found = SavedCall.where(rows, which, *values)
        return [waiting_of(row.check(self.database.key)) for row in found]

    def decide(
        self,
        id: str,
        decision: Decision,
        toolset: type[Any],
        hooks: Hooks | None,
        on_event: OnEvent | None,
    ) -> HookOutcome | None:
        """Take a decision into the stored plan; see `Store.decide`."""
        way = "Make one with `waiting.approve()`, `waiting.cancel(reason)` or `waiting.edit(...)`."
        MisuseError.check("store.decide", "decision", "a decision", decision, Decision, way)
        MisuseError.check("store.decide", "on_event", "a function", on_event, Callable | None)
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
            with self.database.read() as rows:
                tree = self._to_decide(rows, id, decision)
            plan = tree.open(toolset)
            if hooks is None:
                became = plan.resume(decision, on_event=events.append)
            else:
                try:
                    became = plan.amend_sync(decision, hooks, on_event=events.append)
                except MisuseError as error:
                    way = "`await stored.plan.amend(decision, hooks)` after `store.load`"
                    error.add_note(f"{way}, and `store.save`, take async hooks.")
                    raise
            if became is None:
                return None
            try:
                self.put(id, tree.changes(), self._decided(id, decision))
            except Moved:
                continue
            if on_event is not None:
                for event in events:
                    event.send(on_event)
            return became

    def _to_decide(self, rows: Rows, id: str, decision: Decision) -> Tree:
        head = self.head(rows, id, locked=False)
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

    def put(self, id: str, changes: list[Change], *more: Statement) -> None:
        """Write what was done to the plan of a tree; it may be repeated.

        Raises:
            Moved: Somebody has written to one of these calls since they were read.
        """
        is_ordered = any(ClaimOrder.of(row).in_order for row, _, _ in changes)

        def do(rows: Rows) -> None:
            if is_ordered:  # or each has its own call, waits for the other's, and begins anew
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
                rows.many([self.database.notice])

        try:
            self.database.transact(do)
        except (LostCommit, Moved):
            if not any(map(self._is_written, changes[:1])):
                raise

    def _is_written(self, change: Change) -> bool:
        """Whether an entry is on record, which is known by its own id."""
        last = change.entries[-1]
        query = (
            "SELECT id FROM lutum_entry WHERE conversation = ? AND round = ? AND call = ? AND n = ?"
        )
        with self.database.read() as rows:
            return rows.one(query, last.conversation, last.round, last.call, last.n) == (last.id,)


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


def count_since(rows: Rows, head: Head) -> int:
    """Return how much the entries since the last save add to the version."""
    query = "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM lutum_call WHERE conversation = ?"
    found = rows.one(query, head.id)
    return int(found[0]) - head.counted if found and head.round else 0


def end_round(rows: Rows, id: str) -> None:
    """Delete what is kept of the open round of a conversation."""
    tables = ("call", "entry", "follower")
    ended = [(f"DELETE FROM lutum_{table} WHERE conversation = ?", (id,)) for table in tables]
    rows.many([*ended, wake_shared()])


def page(rows: Rows, query: str, limit: int | None, *values: object) -> list[Any]:
    """Read one page of the ids that a query finds, in order."""
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
        records: Conversations,
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
        self.is_ours = any(own == id and each is plan for own, each in records.unsure)
        # Encoded before the transaction, which others wait for, and in which nothing may fail that
        # is not of the database.
        plan.check_recorded()
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
        head = self.records.at_version(rows, id, self.version)
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
                end_round(rows, id)
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
        rows.many([wake_shared(), self.records.database.notice])
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
