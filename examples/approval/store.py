"""What survives the process: one conversation, its open round, and what was begun.

Each method that writes is one statement, which SQLite does as a whole or not at all. The plan is
saved with a key, so that nobody who can only write to the database can change what was approved.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any, TypeVar

from lutum_py import AnyToolCall, Session, ToolResult, ToolRoundPlan, Toolset, Transcript

T = TypeVar("T", bound=Toolset)

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL, transcript TEXT NOT NULL, plan TEXT, answer TEXT);
CREATE TABLE IF NOT EXISTS attempts (
    key TEXT PRIMARY KEY, call_id TEXT NOT NULL, result TEXT, seal TEXT NOT NULL);
"""


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room left on the disk."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)


class Refusal(Exception):
    """What was asked for cannot be done; the text says why, and what can."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that was begun.

    Attributes:
        result: Its result; None where the process ended before there was one.
    """

    result: ToolResult | None


class Store:
    """Keep one conversation in a folder.

    Args:
        folder: Where the database, the key and the lock are; made if it is not there.

    Raises:
        Refusal: Another process is at work there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # The operating system lets this lock go when the process ends, however it ends.
        self._lock = sqlite3.connect(folder / "lock", timeout=0, isolation_level=None)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._lock.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise Refusal(
                f"Another process is at work in {folder}. Wait until it has ended."
            ) from None
        self.folder = folder
        try:
            self._key = _key_in(folder / "key")
            self._db = sqlite3.connect(folder / "desk.db", isolation_level=None)
        except BaseException:
            self._lock.close()
            raise
        try:
            self._db.executescript(SCHEMA)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the database, and let others in."""
        self._db.close()
        self._lock.close()

    # The conversation.

    def begin(self, session: Session) -> None:
        """Store a new conversation."""
        row = (secrets.token_hex(8), session.transcript.dump_json())
        self._db.execute("INSERT INTO conversation VALUES (1, ?, ?, NULL, NULL)", row)

    def _row(self, column: str) -> Any:
        row = self._db.execute(f"SELECT {column} FROM conversation").fetchone()
        return None if row is None else row[0]

    @property
    def conversation_id(self) -> str | None:
        """The id of the conversation, or None where there is none."""
        found: str | None = self._row("id")
        return found

    @property
    def answer(self) -> str | None:
        """The final answer, or None where the conversation is not over."""
        found: str | None = self._row("answer")
        return found

    def load(self, toolset: type[T]) -> tuple[Session, ToolRoundPlan[T] | None]:
        """Load the session and the plan of its open round, if a round is open.

        Raises:
            SavedDataError: The stored text was edited, or does not fit the tools any more.
        """
        session = Session(Transcript.load_json(self._row("transcript")))
        text = self._row("plan")
        return session, None if text is None else toolset.load_plan(text, key=self._key)

    def save(self, session: Session, plan: ToolRoundPlan[Any] | None) -> None:
        """Store session and plan together; the plan is closed here, and goes on when loaded."""
        text = None if plan is None else plan.dump_json(key=self._key)
        self._db.execute(
            "UPDATE conversation SET transcript = ?, plan = ?",
            (session.transcript.dump_json(), text),
        )

    def save_answer(self, session: Session, answer: str) -> None:
        """Store the end of the conversation."""
        self._db.execute(
            "UPDATE conversation SET transcript = ?, plan = NULL, answer = ?",
            (session.transcript.dump_json(), answer),
        )

    # Attempts at calls.

    def attempt(self, key: str, call: AnyToolCall) -> Attempt | None:
        """Look up whether a call was begun, and what came of it."""
        row = self._db.execute("SELECT result, seal FROM attempts WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if not hmac.compare_digest(self._seal(key, call.id, row[0]), row[1]):
            raise Refusal(f"What is stored of call {call.id!r} was not written by this desk.")
        if row[0] is None:
            return Attempt(None)
        sent = call.metadata
        told = json.loads(row[0])
        return Attempt(ToolResult(id=sent.id, name=sent.name, arguments=sent.arguments, **told))

    def start(self, key: str, call: AnyToolCall) -> None:
        """Put on record that a tool is about to be run."""
        row = (key, call.id, self._seal(key, call.id, None))
        self._db.execute("INSERT INTO attempts VALUES (?, ?, NULL, ?)", row)

    def _seal(self, key: str, call_id: str, result: str | None) -> str:
        """Make what only this desk can make of an attempt: whoever forges one has no key."""
        text = json.dumps([key, call_id, result])
        return hmac.new(self._key, text.encode(), "sha256").hexdigest()

    def finish(self, key: str, result: ToolResult) -> ToolResult:
        """Put the result on record, and give it back."""
        text = json.dumps(
            {name: getattr(result, name) for name in ("result", "status", "message", "code")}
        )
        seal = self._seal(key, result.id, text)
        row = (text, seal, key)
        self._db.execute("UPDATE attempts SET result = ?, seal = ? WHERE key = ?", row)
        return result


def _key_in(path: Path) -> bytes:
    """Read the key, or make it up on the first run; a real desk has it from a vault."""
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_bytes(secrets.token_bytes(32))
        fresh.rename(path)  # all of it, or nothing
    return path.read_bytes()
