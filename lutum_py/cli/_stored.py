"""One conversation of a store, read without its tools: what was said, and how its calls stand."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._session.session import Session
from .._transcript.saved import PLAN, Saved, open_saved
from ..errors import LutumError
from ..store._rows import SavedCall
from ..store._said import Said
from ._inbox import store_at
from ._screen import Failure


class StoredText(NamedTuple):
    """What a store has of a conversation, each row of which fits its seal.

    Attributes:
        transcript: The saved transcript; an empty one where no session was saved.
        plan: The plan of the open round, up to what was done since it was saved.
    """

    transcript: str
    plan: Saved | None


def read_stored(where: str, id: str, key_variable: str | None) -> StoredText:
    """Read a conversation.

    Args:
        where: The store, as `store_at` takes it.
        id: Names the conversation.
        key_variable: The environment variable that holds the key of the store.

    Raises:
        Failure: There is no such conversation, it was edited, or is under another key.
    """
    with store_at(where, key_variable) as store:
        try:
            with store._database.read() as rows:
                _, note, text = store._read(rows, id)
                calls = SavedCall.checked(rows, id, store._key)
            session = Said.read(note).opened() or Session(id=id)
            plan = None if text is None else open_saved(text, PLAN)
            for row in calls if plan is not None else ():
                _go_on(plan, row)
        except LutumError as error:
            raise Failure(str(error)) from error
    return StoredText(session.transcript.dump_json(), plan)


def _go_on(plan: Any, row: SavedCall) -> None:
    """Put what a row says was done after the steps that the plan was saved with."""
    said: dict[str, Any] = row.said.data
    for entry in plan.data["calls"]:
        if entry["id"] == said["id"]:
            # As in `store._calls.go_on`, on the JSON: without the toolset there are no calls to
            # bring up. Rows of older releases have neither.
            known = len(entry["steps"]) - said.get("after", len(entry["steps"]))
            entry["steps"] += said.get("steps", [])[known:]
