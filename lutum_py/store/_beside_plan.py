"""What a store keeps of a conversation beside its plan: note, session, and old decisions.

A decision that was taken in a round that is over is remembered by its id, so that it is not taken
for one about a later round. All are in one column: a note alone as a JSON string, with something
beside it as an object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Self, TypeAlias

from .._session.session import Session
from .._text.json import is_array, is_object
from .._transcript.saved import Saved
from .._transcript.transcript import Transcript
from ..errors import StoreError

SessionText: TypeAlias = tuple[str | None, str]
"""The id of a session, and its transcript as text."""


class BesidePlan(NamedTuple):
    """A note, id and transcript of a session if one is kept, and the ids of old decisions."""

    note: str = ""
    session: SessionText | None = None
    decided: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `text` gave.

        Raises:
            StoreError: No store wrote this.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, str):
            return cls(data)
        saved = Saved(data, "note", StoreError)
        transcript: Any = saved.get("transcript", str, None)
        session = None if transcript is None else (saved.get("id", str, None), transcript)
        decided = saved.texts("decided") if "decided" in saved.data else ()
        return cls(saved.get("note", str), session, decided)

    def text(self) -> str:
        """Return the JSON."""
        # Either "a note", or {"note": "", "id": "s1", "transcript": "{...}", "decided": ["d1"]}.
        # The short form is that of the first release, which kept nothing else.
        if self.session is None and not self.decided:
            return json.dumps(self.note)
        data: dict[str, Any] = {"note": self.note}
        if self.session is not None:
            data["id"], data["transcript"] = self.session
        if self.decided:
            data["decided"] = self.decided
        return json.dumps(data)

    def with_changes(self, note: str | None, session: SessionText | None) -> BesidePlan:
        """Replace what is given; the rest stays."""
        return self._replace(
            note=self.note if note is None else note,
            session=self.session if session is None else session,
        )

    def after(self, plan: str | None) -> BesidePlan:
        """Add the decisions in the plan of a round that is over now."""
        # A person may answer late, when the round of the question is over. Its decision is known by
        # its id then, and is not taken for one about a call `c1` of the next round.
        found: list[str] = []
        with suppress(ValueError, RecursionError):  # the text of a plan may have been edited
            found = [] if plan is None else list(_decisions_in(json.loads(plan)))
        return self._replace(decided=tuple(dict.fromkeys((*self.decided, *found))))

    def opened(self) -> Session | None:
        """Make the session.

        Raises:
            TranscriptError: This release knows another form of transcripts.
        """
        if self.session is None:
            return None
        id, transcript = self.session
        return Session(Transcript.load_json(transcript), id=id)


def _decisions_in(plan: Any) -> Iterator[str]:
    """Find the ids of the decisions in the text of a plan."""
    entries = _objects(plan, "calls")
    found = (step.get("decision") for entry in entries for step in _objects(entry, "steps"))
    for decision in found:
        if is_object(decision) and isinstance(decision.get("decision_id"), str):
            yield decision["decision_id"]


def _objects(data: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list, if there is one: the text may have been edited."""
    found = data.get(name) if is_object(data) else None
    return [each for each in found if is_object(each)] if is_array(found) else []
