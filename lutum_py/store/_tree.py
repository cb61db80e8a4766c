"""One call of a turn and the calls within it: what a worker reads, and what it writes.

Every step of a store is the same: read the entries of such a tree, open them as a small plan,
change that plan as a program would, and insert the entries that it has then. So what may happen to
a call is decided in one place, its history, and a claim costs the same in a round of ten thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import uuid4

from .. import AnyToolCall, ToolRoundPlan
from .._text.json import shorten
from ..errors import PlanError, StoreError
from ._claim_order import ClaimOrder
from ._database import Rows
from ._rows import ENTRY, Entry, Head, SavedCall, State, dumped

Plan = ToolRoundPlan[Any]


class Change(NamedTuple):
    """What is written about one call.

    Attributes:
        row: Its row as it will be.
        before: The row as it was; None if the call is new.
        entries: Its new entries.
    """

    row: SavedCall
    before: SavedCall | None
    entries: tuple[Entry, ...]

    @property
    def is_end(self) -> bool:
        """Whether the call has its result now."""
        return self.row.state == "done" and self.before is not None and self.before.state != "done"

    def behind(self, tree: Tree) -> Change | None:
        """Return the same change behind what came too late since, and in the present order.

        None if more has happened.

        Args:
            tree: What is on record now.
        """
        own, before, now = self.row, self.before, tree.rows.get(self.row.call)
        if before is None or now is None:
            return self if before is now is None else None
        since = [each for each in tree.entries if each.call == own.call and each.n >= before.n]
        if any(step["kind"] != "late" for each in since for step in each.data()["steps"]):
            return None
        last, entries = now.last, list[Entry]()
        for n, each in enumerate(self.entries, now.n):
            entries.append(each._replace(n=n).sealed(last, tree.key))
            last = entries[-1].seal
        data, present = own.parsed_body.data, now.parsed_body.data
        data.pop("turns", None)
        if "turns" in present:
            data["turns"] = present["turns"]
        own = own._replace(body=dumped(data), shared=now.shared)
        row = own._replace(n=now.n + len(entries), last=last).sealed(tree.key)
        return Change(row, now, tuple(entries))


class Tree:
    """The calls of one plan, which may be a whole round, as a store has them.

    Args:
        head: The conversation, whose round is open.
        rows: The rows of the calls.
        entries: Their entries, in any order.
        key: What rows are sealed with.

    Raises:
        StoreError: Somebody else wrote one of them, or took one away.
    """

    plan: Plan

    def __init__(
        self, head: Head, rows: Iterable[SavedCall], entries: Iterable[Entry], key: bytes | None
    ) -> None:
        self.head = head
        self.rows: dict[str, SavedCall] = {row.call: row.check(key) for row in rows}
        self.entries: list[Entry] = sorted(entries, key=lambda each: each.n)
        self.key = key
        last: dict[str, tuple[int, str]] = {}
        for each in self.entries:
            count, seal = last.get(each.call, (0, ""))
            if each.n != count or each.sealed(seal, key).seal != each.seal:
                raise _edited(head.id, each.call)
            last[each.call] = (count + 1, each.seal)
        for row in self.rows.values():
            if row.round != head.round:
                raise StoreError(
                    f"What is stored of call {row.call!r} is not of an open round of conversation "
                    f"{head.id!r}. Put the database back as it was, or give the round up."
                )
            root = self.rows.get(row.root)
            if root is None or root.root != root.call:
                raise _edited(head.id, row.call)
            if last.pop(row.call, (0, "")) != (row.n, row.last):
                raise _edited(head.id, row.call)
        for call in last:
            raise _edited(head.id, call)

    @classmethod
    def read(cls, rows: Rows, head: Head, call: str) -> Tree | None:
        """Read the tree of a call; None if there is no such call."""
        own = SavedCall.at(rows, head.id, call)
        if own is None:
            return None
        root = own if own.root == own.call else SavedCall.at(rows, head.id, own.root)
        if root is None:
            raise _edited(head.id, own.root)
        within = "conversation = ? AND root = ? AND root <> call"
        found = [root, *SavedCall.where(rows, within, head.id, root.call)]
        marks = ", ".join("?" * len(found))
        entries = rows.all(
            f"SELECT {ENTRY} FROM lutum_entry WHERE conversation = ? AND round = ? "
            f"AND call IN ({marks})",
            *(head.id, root.round, *(row.call for row in found)),
        )
        return cls(head, found, map(Entry.read, entries), rows.key)

    @property
    def root(self) -> SavedCall:
        """The row of the call of the turn."""
        return next(row for row in self.rows.values() if row.call == row.root)

    def open(self, toolset: Any, record: Mapping[str, Any] | None = None) -> Plan:
        """Make the plan.

        Args:
            toolset: The toolset.
            record: The record of the round; left out, that of the one call of the turn.

        Raises:
            PlanError: It does not load, or does not fit the toolset any more.
        """
        if record is None:
            record = self.root.parsed_body.inner("record").data
        version = self.head.version
        stored = {"id": self.head.id, "round": self.head.round, "version": version}
        data = [each.data() for each in self.entries]
        self.plan = toolset.open_plan({**record, "stored": stored}, data)
        self._mark = {row.call: row.n for row in self.rows.values()}
        return self.plan

    def open_to_run(self, toolset: Any, call_id: str) -> Plan:
        """Make the plan for whoever claimed a call: somebody who started it has left it.

        Raises:
            PlanError: It does not load, or does not fit the toolset any more.
        """
        plan = self.open(toolset)
        pending = (call for call in plan.pending if call.id == call_id)
        self.leave([call.id for call in pending if call.status == "running"])
        return plan

    def leave(self, call_ids: Iterable[str]) -> None:
        """Note in the plan that calls were left by whoever started them.

        It is written with what is done next about the call: whoever only looks writes nothing.
        """
        for id in call_ids:
            self.plan.abandon(id)

    def add(self, call_id: str, step: Mapping[str, Any]) -> None:
        """Let one more thing happen to a call of the plan."""
        _, mark = self.plan.entries_since(self._mark)
        self.plan.add_entries([{"call": call_id, "n": mark[call_id], "steps": [step]}])

    def advance(self, changes: Iterable[Change]) -> None:
        """Go on from changes that were written."""
        _, mark = self.plan.entries_since(self._mark)
        for row, _, _ in changes:
            self.rows[row.call] = row
            self._mark[row.call] = mark[row.call]

    def has_requested(self, call_id: str) -> bool:
        """Whether a call has requested others."""
        return any(row.requested_by == call_id for row in self.rows.values())

    def changes(self, order: ClaimOrder | None = None) -> list[Change]:
        """Return what was done to the plan since it was opened."""
        new, _ = self.plan.entries_since(self._mark)
        made = Changes(self.head, self.rows, self.plan, self.key)
        return made.of(new, ClaimOrder.of(self.root) if order is None else order)


def _edited(id: str, call: str) -> StoreError:
    return StoreError(
        f"What is stored of call {call!r} of conversation {id!r} was edited by somebody else: "
        "its entries are not those that were written. Put the database back as it was, or give "
        "the round up."
    )


class Changes:
    """Make rows of what happened to the calls of a plan.

    Args:
        head: The conversation, with the round of the plan.
        rows: The rows that are there, by call.
        plan: The plan.
        key: What rows are sealed with.
    """

    def __init__(
        self, head: Head, rows: Mapping[str, SavedCall], plan: Plan, key: bytes | None
    ) -> None:
        self.head = head
        self.rows = {**rows}
        self.known = Counter(row.requested_by for row in rows.values())
        self.places: dict[str | None, count[int]] = {}
        self.plan = plan
        self.key = key
        self.states = {id: (state, call) for id, state, call in _stands(plan)}
        self.waiting = {each.call.id: each for each in plan.suspended}

    def of(
        self,
        entries: Iterable[Mapping[str, Any]],
        order: ClaimOrder,
        records: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[Change]:
        """Return the changes that new entries make.

        Args:
            entries: The entries.
            order: How the calls of the round are given out.
            records: What is needed to read each tree of a turn that has no row yet, by its root.
        """
        self.records = records
        grouped: dict[str, list[Mapping[str, Any]]] = {}
        for each in entries:
            grouped.setdefault(each["call"], []).append(each)
        self.shown = {row.id: row for row in self.plan.calls} if self.waiting else {}
        return [
            self._change(id, group, order)
            for id, group in grouped.items()
            if any(step["kind"] != "abandoned" for each in group for step in each["steps"])
        ]

    def ordered(self, order: ClaimOrder) -> list[SavedCall]:
        """Return the rows of what is open, for another order of the round."""
        found: list[SavedCall] = []
        for id, (_, call) in self.states.items():
            row = self.rows[id]
            data = row.parsed_body.data
            data.pop("turns", None)
            body = dumped(data | order.row_data(call))
            row = row._replace(body=body, shared=int(bool(order.across)))
            found.append(row.sealed(self.key))
        return found

    def _change(self, id: str, group: Sequence[Mapping[str, Any]], order: ClaimOrder) -> Change:
        before, entries = self.rows.get(id), list[Entry]()
        known, last = (0, "") if before is None else (before.n, before.last)
        # Not by the numbers of the plan: it may not know what came too late from somebody else.
        for n, each in enumerate(group, known):
            body = dumped(each["steps"])
            entry = Entry(self.head.id, self.head.round, id, n, uuid4().hex, body)
            entries.append(entry.sealed(last, self.key))
            last = entries[-1].seal
        state, call = self.states.get(id, _DONE)
        row = self._new(id, group[0], call) if before is None else before
        data = row.parsed_body.data
        if call is not None:
            data |= order.row_data(call)
        for requested in [step["requested"] for each in group for step in _asks(each)]:
            data["requested"] = True
            if self.key is None and "bytes" in requested:
                raise PlanError(
                    f"Call {id!r} left bytes to come back to, as a program leaves its interpreter, "
                    "and without a key anybody could put others in their place. Pass `key=` to "
                    "`open_store`, or let the tool leave a text: `program_tool(tools, "
                    'keep="replay")`.'
                )
        row = row._replace(
            n=known + len(group),
            last=last,
            state=state,
            body=dumped(data),
            shown=self._shown(id, data) if state == "waiting" else "",
            shared=int(bool(order.across)),
        )
        self.rows[id] = row = row.sealed(self.key)
        return Change(row, before, tuple(entries))

    def _new(self, id: str, first: Mapping[str, Any], call: AnyToolCall | None) -> SavedCall:
        """Make the row of a call that another requested, or of one of a new round."""
        by = first["steps"][0].get("by")  # the call that requested it
        if by is None:
            root = root_of(id, self.records)
            data = {"record": self.records[root]}
            items = self.records[root]["turn"]["items"]
            if sum(item["type"] == "tool_call" for item in items) > 1:
                data["requested"] = True  # who reads it reads all calls of the tree
            if program := self.plan.ancestors(id):
                data["ancestors"] = [asdict(each) for each in program]
        else:  # who reads it reads the call of the turn
            root = self.rows[by].root
            data = {"record": self.rows[root].parsed_body.data["record"], "requested_by": by}
        check_call_id(self.head.id, id)
        place = next(self.places.setdefault(by, count(self.known.get(by, 0))))
        name, text = "" if call is None else call.name, dumped(data)
        return SavedCall(
            *(self.head.id, id, root, place, self.head.round, 0, "", text, "", "", "ready"),
            *(name, 0, self.head.changed),
        )

    def _shown(self, id: str, body: Mapping[str, Any]) -> str:
        """Write down what a person is shown: an inbox has neither the tools nor the plan."""
        waiting, row = self.waiting[id], self.shown[id]
        within = [asdict(each) for each in row.ancestors if each.id in self.states]
        steps = [step for step in row.steps if step.kind != "moved"]
        lines = [
            {name: value for name, value in step.model_dump().items() if value is not None}
            for step in steps
        ]
        return dumped(
            {
                "id": id,
                "tool": row.tool,
                "digest": waiting.digest,
                "proposed": row.proposed,
                "arguments": waiting.arguments,
                "ticket": waiting.ticket.to_dict(),
                "ancestors": [*body.get("ancestors", ()), *within],
                "line": lines,
            }
        )


def root_of(id: str, ids: Container[str]) -> str:
    """Return the id of the call in whose tree a call of the turn is: mostly its own.

    Which call `c1/1` the call `c1` requests depends on whether the model named one so itself. So
    these are read together.

    Args:
        id: The call.
        ids: The ids of the turn, or those of its trees.
    """
    ends = (at for at, letter in enumerate(id) if letter == "/")
    return next((id[:at] for at in ends if id[:at] in ids), id)


_LONGEST_KEY = 2600
"""How many bytes PostgreSQL takes in a key of an index, less what is beside the texts."""


def check_call_id(id: str, call: str) -> None:
    """Refuse the id of a call that no database keeps: a model or its server made it up.

    Raises:
        PlanError: It has a NUL, or is too long beside that of the conversation.
    """
    if "\0" in call or len(f"{id}{call}".encode()) > _LONGEST_KEY:
        raise PlanError(
            f"The call id {shorten(call)} of conversation {shorten(id)} has a NUL, or both "
            f"together are longer than {_LONGEST_KEY:,} bytes, so that no store keeps the call. "
            "Give the round up with `plan.discard`, and ask the model again."
        )


_DONE: tuple[State, None] = ("done", None)


def _asks(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for step in entry["steps"] if step["kind"] == "requested"]


def _stands(plan: Plan) -> Iterable[tuple[str, State, AnyToolCall]]:
    for waits in plan.suspended:
        yield waits.call.id, "waiting", waits.call
    for call in plan.awaiting:
        yield call.id, "awaiting", call
    for call in plan.unreviewed:
        yield call.id, "unreviewed", call
    for call in plan.in_doubt:
        yield call.id, "started", call
    for call in plan.pending:
        is_over = call.status.is_terminal
        state: State = "ended" if is_over else "started" if call.status == "running" else "ready"
        yield call.id, state, call


def late_steps(changes: Iterable[Change], call: str) -> str:
    """Write down how a run of a call ended that is over, as the body of an entry.

    Args:
        changes: What would have been written if the run were not over.
        call: The id of the call.
    """
    (own,) = (change for change in changes if change.row.call == call)
    steps = [step for entry in own.entries for step in entry.data()["steps"]]
    end = next(step for step in reversed(steps) if step["kind"] in _ENDS)
    late = {"kind": "late", "at": end["at"], "verdict": end["kind"]}
    if end["kind"] == "ended":
        late |= {"verdict": end["verdict"], "result": end["result"]}
    return dumped([late])


_ENDS = ("ended", "suspended", "requested")
