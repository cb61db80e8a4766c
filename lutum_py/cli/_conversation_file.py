"""Read a conversation, see what it is, and apply the rules that it is under.

A saved transcript says what it is. The body of a request does not, but most hold something that
only one dialect has; if none does, the user has to say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .._text.json import is_array, is_object, parse_json, shorten
from .._transcript.message import Message
from .._transcript.request import TranscriptItem, TurnRequest
from .._transcript.saved import PLAN, SESSION, TRANSCRIPT, Saved, open_saved, seal_in_words
from .._transcript.transcript import Transcript
from ..dialects import DIALECTS, Change, EncodedRequest, Loss, Violation
from ..dialects.authoring import NOT_SHOWN, Facts, facts_of
from ..errors import DialectError, HistoryError, InvalidValueError, SavedDataError
from ._exact_json import Style, exact_text, read_exact
from ._screen import Failure, system_reason
from ._transcript_rules import examine_transcript, repair_transcript

_OF_THIS_LIBRARY: Final = "lutum_py."


def dialect_module(dialect: str) -> Any:
    """Import the module of a dialect."""
    return import_module(DIALECTS[dialect])


@contextmanager
def reading(name: str) -> Generator[None]:
    """Name the file in what is said about its content.

    Raises:
        HistoryError: The provider would refuse a request; its violations are to be listed.
        Failure: The content cannot be read.
    """
    try:
        yield
    except HistoryError:
        raise
    except (DialectError, SavedDataError) as error:
        raise Failure(f"{name} cannot be read: {error}") from error
    except RecursionError:
        raise Failure(f"{name} is nested too deeply to be read.") from None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it was read.

    Attributes:
        name: What it is called in messages.
        data: Its bytes.
        value: Its JSON, with exact numbers.
        style: How it is laid out.
        is_saved: Whether it is a saved transcript of this library.
        dialect: The dialect whose rules apply; None for a transcript that is checked on its own.
        is_session: Whether it is the transcript in a saved session.
        has_plan: Whether that session has an open round, whose turn is not in the transcript.
    """

    name: str
    data: bytes
    value: Any
    style: Style
    is_saved: bool
    dialect: str | None
    is_session: bool = False
    has_plan: bool = False

    @property
    def what(self) -> str:
        """What it is, in words."""
        if not self.is_saved:
            return f"request body of {self.dialect}"
        what = "session" if self.is_session else "transcript"
        return what if self.dialect is None else f"{what}, for {self.dialect}"

    def check(self) -> list[Violation]:
        """Find what breaks the rules.

        Raises:
            Failure: It is nothing that has rules.
        """
        with reading(self.name):
            return self._violations(self.value)

    def repair(self) -> tuple[bytes, list[Change], list[Violation]]:
        """Fix what can be repaired.

        Returns:
            The bytes to be written (those that were read where nothing changed), what was changed,
            and what is still wrong.

        Raises:
            Failure: It is nothing that has rules, or sealed, so that another text would not load.
        """
        if self.is_session:
            raise Failure(
                f"{self.name} is a saved session, whose seal fits no other text. Load it, and "
                "repair what `session.transcript.dump_json()` gives."
            )
        with reading(self.name):
            if self.is_saved:
                repaired, changes = repair_transcript(self.value)
            else:
                repaired, changes = self._by_dialect("repair", self.value)
            # The very bytes where nothing changed: `lutum repair` in a script then gives the file
            # as it was.
            data = exact_text(repaired, self.style).encode() if changes else self.data
            return data, changes, self._violations(repaired)

    def _violations(self, value: Any) -> list[Violation]:
        if self.is_saved:
            # As a transcript first: what does not load cannot be encoded for a dialect.
            _, found = examine_transcript(value)
            if found or self.dialect is None:
                return found
            transcript = Transcript.load_json(exact_text(value, self.style))
            value = dialect_module(self.dialect).messages(transcript)
        violations: list[Violation] = self._by_dialect("check", value)
        return violations

    def _by_dialect(self, name: str, value: Any) -> Any:
        assert self.dialect is not None
        try:
            return getattr(dialect_module(self.dialect), name)(value)
        except TypeError as error:
            raise Failure(
                f"{self.name} is not a request body of {self.dialect}: {error}."
            ) from error


def read_conversation(file: str, dialect: str | None, option: str = "--dialect") -> Conversation:
    """Read a file, or standard input for `-`.

    Args:
        file: The path.
        dialect: What the user says that it is.
        option: How the command is told so.

    Raises:
        Failure: It cannot be read, is not JSON, or belongs to another dialect, or nobody can tell
            about which.
    """
    return conversation_of(*read_bytes(file), dialect, option)


def conversation_of(
    name: str, data: bytes, dialect: str | None, option: str = "--dialect"
) -> Conversation:
    """Say what was read.

    Raises:
        Failure: As for `read_conversation`.
    """
    value, style = read_exact(data, name)
    form = value.get("format") if is_object(value) else None
    if form == TRANSCRIPT.name:
        return Conversation(name, data, value, style, True, dialect)
    if form == SESSION.name:
        with reading(name):
            saved = open_saved(data, SESSION)
            seal_in_words(saved, "session")
            return session_of(name, saved, dialect)
    if isinstance(form, str) and form.startswith(_OF_THIS_LIBRARY):
        hint = " `lutum show` shows a saved plan." if form == PLAN.name else ""
        raise Failure(f"{name} holds no conversation: its format is {shorten(form)}.{hint}")
    possible = _possible(value)
    if not possible:
        raise Failure(
            f"{name} is neither a saved transcript nor a request body: it is {shorten(value)}."
        )
    if dialect is not None and dialect not in possible:
        raise Failure(
            f"{name} is not a request body of {dialect}; it looks like one of "
            f"{' or '.join(sorted(possible))}. Say `{option} {min(possible)}`."
        )
    if dialect is None and len(possible) > 1:
        raise Failure(
            f"{name} may be a request body of {' or '.join(sorted(possible))}. Say which with "
            f"`{option}`."
        )
    return Conversation(name, data, value, style, False, dialect or next(iter(possible)))


def session_of(name: str, saved: Saved, dialect: str | None) -> Conversation:
    """Return the conversation in a saved session.

    Raises:
        PlanError: There is none in it.
    """
    # Written and read once more, because `read_exact` keeps numbers as text, as all that follows
    # expects them.
    inner = json.dumps(saved.inner("transcript").data).encode()
    value, style = read_exact(inner, name)
    has_plan = saved.inner_or_none("plan") is not None
    return Conversation(
        name, inner, value, style, True, dialect, is_session=True, has_plan=has_plan
    )


def read_bytes(file: str) -> tuple[str, bytes]:
    """Return what a file is called in messages, and its bytes; standard input for `-`.

    Raises:
        Failure: It cannot be read.
    """
    name = "standard input" if file == "-" else f"`{file}`"
    try:
        return name, sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise Failure(f"{name} cannot be read: {system_reason(error)}.") from error


def _possible(value: Any) -> set[str]:
    """Return the dialects that a body, or a list of messages, can be of."""
    if not is_array(value) and not is_object(value):
        return set()
    # First by the key of the messages: `contents` is of one dialect, `messages` of several. Then by
    # what only one of them has in a body or an item. An empty list of messages may be of any.
    every = [facts_of(name) for name in DIALECTS]
    if is_object(value):
        every = [facts for facts in every if facts.key in value] or every
    marked = {facts.name for facts in every if _is_marked(value, facts)}
    return marked or {facts.name for facts in every}


def _is_marked(value: Any, facts: Facts) -> bool:
    """Whether something in a body, or in a list of messages, is only of one dialect."""
    if is_object(value) and facts.is_own_body(value):
        return True
    items = value.get(facts.key) if is_object(value) else value
    listed = items if is_array(items) else ()
    return any(is_object(item) and facts.is_own_item(item) for item in listed)


def read_transcript(conversation: Conversation) -> tuple[Transcript, list[Loss]]:
    """Read a saved transcript, or the messages of a request.

    Raises:
        HistoryError: The provider would refuse the request.
        Failure: It cannot be read.
    """
    with reading(conversation.name):
        text = exact_text(conversation.value, conversation.style)
        if conversation.dialect is None or conversation.is_saved:
            return Transcript.load_json(text), []
        try:
            body = parse_json(text)
        except ValueError as error:  # such as a number that is too long for Python
            raise Failure(f"{conversation.name} cannot be read: {error}.") from error
        read: tuple[Transcript, list[Loss]] = dialect_module(conversation.dialect).read_history(
            body
        )
        return read


def encoded_for(dialect: str, items: Sequence[TranscriptItem]) -> EncodedRequest:
    """Make the conversation of a request; if the user has to begin, let the user begin."""
    encode = dialect_module(dialect).encode_request
    try:
        body: EncodedRequest = encode(TurnRequest(items=items))
    # Tried first without: only the encoder of a dialect knows whether its provider lets the model
    # begin.
    except InvalidValueError:
        told = (
            at
            for at, item in enumerate(items)
            if not isinstance(item, Message) or item.role == "user"
        )
        first = next(told, len(items))
        started = [*items[:first], Message("user", NOT_SHOWN), *items[first:]]
        body = encode(TurnRequest(items=started))
        why = f"{dialect} wants to hear the user first: a message says that the beginning is lost"
        return EncodedRequest(body, (Loss(f"items[{first}]", why), *body.losses))
    return body
