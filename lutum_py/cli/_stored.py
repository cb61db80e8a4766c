"""A store that is there, and one conversation of it: what was said, and how its calls stand."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from .._round.display import PlanText, plan_text
from .._round.entries import histories_of
from .._session.session import Session
from ..store import Store
from ._conversation_file import Conversation, conversation_of
from ._screen import Failure, failing


def store_at(where: str, key_variable: str | None) -> Store:
    """Open a store that is there; nothing is made.

    Args:
        where: The path of a SQLite database, or the address of a PostgreSQL one.
        key_variable: The environment variable that holds the key of the store, if it has one.

    Raises:
        Failure: There is no such file or no such variable.
        LutumError: The store cannot be opened.
    """
    if "://" not in where and not _is_store(Path(where)):
        raise Failure(f"There is no store at `{where}`. `open_store` makes one in your program.")
    key: bytes | None = None
    if key_variable is not None:
        found = os.environ.get(key_variable)
        if not found:
            raise Failure(f"`--key-env {key_variable}`: there is no such variable, or it is empty.")
        key = found.encode()
    # Whether a pooler is there is not asked: for a few statements, preparing them gains nothing.
    return Store(where, key=key, is_there=True, behind_pooler="://" in where)


def make_store(address: str) -> Store:
    """Open a store, and make its tables if they are not there.

    Raises:
        LutumError: They cannot be made.
    """
    return Store(address, behind_pooler="://" in address)


def _is_store(path: Path) -> bool:
    """Look for the table of a store, and write nothing: it may be the file of somebody else."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            query = "SELECT 1 FROM sqlite_master WHERE name = 'lutum_store'"
            return database.execute(query).fetchone() is not None
    except sqlite3.Error:  # the store itself says what is wrong
        return True


def read_stored(
    where: str, id: str, key_variable: str | None, dialect: str | None
) -> tuple[Conversation, PlanText | None]:
    """Read a conversation, and how the calls of its open round stand.

    Without its tools: each row has to fit its seal, and that is all that is known of it. If no
    session was saved, the conversation is empty.

    Args:
        where: The store, as `store_at` takes it.
        id: Names the conversation.
        key_variable: The environment variable that holds the key of the store.
        dialect: Whose rules apply as well.

    Raises:
        Failure: There is no such conversation, it was edited, or is under another key.
    """
    with failing(), store_at(where, key_variable) as store:
        stored = store.read(id)
        session = stored.session or Session(id=id)
        plan = None
        if stored.record is not None:
            turn, calls = histories_of(stored.record, stored.entries)
            plan = plan_text(turn, calls, stored.waits)
    said = session.transcript.dump_json().encode()
    return conversation_of(f"`{id}`", said, dialect), plan
