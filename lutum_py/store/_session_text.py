"""The text of a session in a store: its id, and its transcript."""

from __future__ import annotations

from .._session.session import Session
from .._transcript.saved import Saved
from .._transcript.transcript import Transcript
from ..errors import StoreError
from ._rows import dumped, parsed


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
