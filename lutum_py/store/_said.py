"""What a store keeps of a conversation beside its plan: your note, and the session.

Both stand in one column: a note alone as a JSON string, with a session as an object.
"""

from __future__ import annotations

import json
from typing import NamedTuple, Self

from .._session.session import Session
from .._transcript.saved import Saved
from .._transcript.transcript import Transcript
from ..errors import StoreError


class Said(NamedTuple):
    """A note, and id and transcript of a session, if one is kept."""

    note: str = ""
    session: tuple[str | None, str] | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `text` gave.

        Raises:
            StoreError: It did not give that.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, str):
            return cls(data)
        saved = Saved(data, "note", StoreError)
        return cls(
            saved.get("note", str), (saved.get("id", str, None), saved.get("transcript", str))
        )

    def text(self) -> str:
        """Give the JSON."""
        if self.session is None:
            return json.dumps(self.note)
        id, transcript = self.session
        return json.dumps({"note": self.note, "id": id, "transcript": transcript})

    def but(self, note: str | None, session: tuple[str | None, str] | None) -> Said:
        """Replace what is given; the rest stays."""
        return Said(
            self.note if note is None else note, self.session if session is None else session
        )

    def opened(self) -> Session | None:
        """Make the session.

        Raises:
            TranscriptError: This release knows another form of transcripts.
        """
        if self.session is None:
            return None
        id, transcript = self.session
        return Session(Transcript.load_json(transcript), id=id)
