"""Who decided what, and when: kept for the page, since a store forgets a round that is over.

A line is written before the store is told, and completed afterwards. So one without an outcome is
of a program that was stopped in between, and says so.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lutum_py import Decision
from lutum_py.store import Waiting

__all__ = ["Entry", "Journal"]

TABLE = """
CREATE TABLE IF NOT EXISTS decided (
    number INTEGER PRIMARY KEY, decision TEXT UNIQUE, conversation TEXT, call TEXT, ticket TEXT,
    digest TEXT, tool TEXT, message TEXT, word TEXT, changed TEXT, reason TEXT, by TEXT, at TEXT,
    outcome TEXT, came_to TEXT)
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision.

    Attributes:
        decision: Its id.
        conversation: The id of the conversation.
        call: The id of the call.
        ticket: The id of the question.
        digest: What was shown.
        tool: The wire name of the tool.
        message: The question.
        word: What was said: `approve`, `answer`, `edit` or `cancel`.
        changed: The names of the arguments that were changed.
        reason: Why, in their words.
        by: Who decided.
        at: When, in ISO 8601.
        outcome: What became of the call: `ready`, `decided`, `rejected` or `waiting`; `refused`
            where the decision did not count; None where the program was stopped in between.
        came_to: What the tool gave, once it was run.
    """

    decision: str
    conversation: str
    call: str
    ticket: str
    digest: str
    tool: str
    message: str
    word: str
    changed: tuple[str, ...]
    reason: str | None
    by: str
    at: str
    outcome: str | None
    came_to: str | None

    @property
    def counts(self) -> bool:
        """Whether the decision was taken in, as far as is known."""
        return self.outcome != "refused"


COLUMNS = ", ".join(Entry.__dataclass_fields__)


class Journal:
    """Keep decisions in a file; one connection a step, so that any thread may take it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._do(TABLE)

    def write(self, waiting: Waiting, decision: Decision, word: str, changed: list[str]) -> None:
        """Note what is about to be decided; the same decision once more is the same line."""
        self._do(
            f"INSERT INTO decided ({COLUMNS}) VALUES ({', '.join('?' * 14)}) "
            "ON CONFLICT (decision) DO UPDATE SET outcome = NULL",
            *(decision.decision_id, waiting.id, waiting.call_id, waiting.ticket.id),
            *(waiting.digest, waiting.tool, waiting.ticket.message or waiting.tool, word),
            *(json.dumps(changed), decision.reason, decision.by or "", decision.at, None, None),
        )

    def complete(self, decision_id: str, outcome: str, came_to: str | None = None) -> None:
        """Note what became of the call by a decision."""
        query = "UPDATE decided SET outcome = ?, came_to = ? WHERE decision = ?"
        self._do(query, outcome, came_to, decision_id)

    def ran(self, conversation: str, call: str, came_to: str) -> None:
        """Note what a call came to that somebody let go on."""
        self._do(
            "UPDATE decided SET came_to = ? WHERE number = (SELECT max(number) FROM decided "
            "WHERE conversation = ? AND call = ? AND outcome = 'ready')",
            *(came_to, conversation, call),
        )

    def of_decision(self, decision_id: str) -> Entry | None:
        """Find a decision by its id."""
        return next(iter(self._read("WHERE decision = ?", decision_id)), None)

    def of_ticket(self, ticket: str) -> Entry | None:
        """Find the last decision about a question that was taken in, as far as is known."""
        found = self._read("WHERE ticket = ? ORDER BY number DESC", ticket)
        return next((entry for entry in found if entry.counts), None)

    def latest(self, count: int) -> list[Entry]:
        """Give the last decisions, the last one first; those that were refused are left out."""
        where = "WHERE outcome IS NOT 'refused' ORDER BY number DESC LIMIT ?"
        return self._read(where, count)

    def _read(self, where: str, *values: object) -> list[Entry]:
        rows = self._do(f"SELECT {COLUMNS} FROM decided {where}", *values)
        names = Entry.__dataclass_fields__
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [Entry(**{**each, "changed": tuple(json.loads(each["changed"]))}) for each in found]

    def _do(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            return connection.execute(sql, values).fetchall()
