"""A store that is there, and one conversation of it: what was said, and how its calls stand."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from .._session.session import Session
from .._transcript.saved import PLAN, Saved, open_saved
from ..store import Store
from ..store._beside_plan import BesidePlan
from ..store._rows import SavedCall
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
) -> tuple[Conversation, Saved | None]:
    """Read a conversation, and the plan of its open round up to what was done since it was saved.

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
        with store._database.read() as rows:
            _, note, text = store._read(rows, id)
            calls = SavedCall.checked(rows, id)
        session = BesidePlan.read(note).opened() or Session(id=id)
        plan = None if text is None else open_saved(text, PLAN)
        for row in calls if plan is not None else ():
            _go_on(plan, row)
    said = session.transcript.dump_json().encode()
    return conversation_of(f"`{id}`", said, dialect), plan


def _go_on(plan: Any, row: SavedCall) -> None:
    """Put what a row says was done after the steps that the plan was saved with."""
    said = row.parsed_body
    for entry in plan.data["calls"]:
        if entry["id"] == said.get("id", str):
            # As in `store._calls.apply_row`, on the JSON: without the toolset there are no calls to
            # bring up.
            since = [each.data for each in said.each("steps")]
            entry["steps"] += since[len(entry["steps"]) - said.get("after", int) :]
