"""Read a file, see what it holds, and apply the rules that a conversation is under.

A saved transcript says what it is. The body of a request does not, but most hold something that
only one dialect has; if none does, the user has to say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .. import Transcript
from .._text.json import (
    ExactNumber,
    compact_json,
    is_object,
    refuse_constant,
    shorten,
)
from ..dialects import DIALECTS, Change, Loss, Violation, recognize
from ..errors import DialectError, SavedDataError
from ..saved import (
    PLAN,
    SESSION,
    TRANSCRIPT,
    Saved,
    examine,
    open_saved,
    repair,
    seal_in_words,
)
from ..turns import TranscriptFault
from ._screen import Failure, json_text, system_reason

_OF_THIS_LIBRARY: Final = "lutum_py."


def dialect_module(dialect: str) -> Any:
    """Import the module of a dialect."""
    return import_module(DIALECTS[dialect])


@contextmanager
def reading(name: str) -> Generator[None]:
    """Name the file in what is wrong with its content.

    Raises:
        Failure: The content cannot be read.
    """
    try:
        yield
    except (DialectError, SavedDataError) as error:
        raise Failure(f"{name} cannot be read: {error}") from error
    except RecursionError:
        raise Failure(f"{name} is nested too deeply to be read.") from None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it was read.

    Attributes:
        name: What it is called in messages.
        value: Its JSON.
        is_saved: Whether it is a saved transcript of this library.
        dialect: The dialect whose rules apply; None for a transcript that is checked on its own.
        is_session: Whether it is the transcript in a saved session.
    """

    name: str
    value: Any
    is_saved: bool
    dialect: str | None
    is_session: bool = False

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

    def repair(self) -> tuple[str, list[Change], list[Violation]]:
        """Fix what can be repaired.

        Returns:
            The repaired JSON as text, what was changed, and what is still wrong.

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
                repaired, fixed = repair(self.value)
                changes = [Change(each.position, each.rule, each.fix or "") for each in fixed]
            else:
                repaired, changes = self._by_dialect("repair", self.value)
            return json_text(repaired), changes, self._violations(repaired)

    def transcript(self) -> tuple[Transcript, list[Loss]]:
        """Read the messages of a request, and what a transcript cannot hold of them.

        Raises:
            Failure: They cannot be read.
        """
        with reading(self.name):
            read: tuple[Transcript, list[Loss]] = self._by_dialect("read_history", self.value)
            return read

    def _violations(self, value: Any) -> list[Violation]:
        if self.is_saved:
            # As a transcript first: what does not load cannot be encoded for a dialect.
            found = violations_of(examine(value)[1])
            if found or self.dialect is None:
                return found
            transcript = Transcript.load_json(compact_json(value))
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


def violations_of(faults: Iterable[TranscriptFault]) -> list[Violation]:
    """Give the faults of a transcript the form of those of a request."""
    return [Violation(each.position, each.rule, each.problem, each.remedy) for each in faults]


def read_conversation(file: str, dialect: str | None) -> Conversation:
    """Read a file, or standard input for `-`.

    Args:
        file: The path.
        dialect: What the user says that it is.

    Raises:
        Failure: It cannot be read, is not JSON, or belongs to another dialect, or nobody can tell
            about which.
    """
    return conversation_of(*read_bytes(file), dialect)


def conversation_of(name: str, data: bytes, dialect: str | None) -> Conversation:
    """Find out what was read.

    Raises:
        Failure: As for `read_conversation`.
    """
    value = read_json(data, name)
    form = value.get("format") if is_object(value) else None
    if form == TRANSCRIPT.name:
        return Conversation(name, value, True, dialect)
    if form == SESSION.name:
        with reading(name):
            saved = open_saved(data, SESSION)
            seal_in_words(saved)
            return session_of(name, saved, dialect)
    if isinstance(form, str) and form.startswith(_OF_THIS_LIBRARY):
        hint = " `lutum show` shows a saved plan." if form == PLAN.name else ""
        raise Failure(f"{name} holds no conversation: its format is {shorten(form)}.{hint}")
    possible = recognize(value)
    if not possible:
        raise Failure(
            f"{name} is neither a saved transcript nor a request body: it is {shorten(value)}."
        )
    names = " or ".join(sorted(possible))
    if dialect is not None and dialect not in possible:
        raise Failure(
            f"{name} is not a request body of {dialect}; it looks like one of {names}. Say "
            f"`--dialect {min(possible)}`."
        )
    if dialect is None and len(possible) > 1:
        raise Failure(f"{name} may be a request body of {names}. Say which with `--dialect`.")
    return Conversation(name, value, False, dialect or possible[0])


def session_of(name: str, saved: Saved, dialect: str | None) -> Conversation:
    """Return the conversation in a saved session.

    Raises:
        PlanError: There is none in it.
    """
    return Conversation(name, saved.inner("transcript").data, True, dialect, is_session=True)


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


def write_file(path: Path, data: bytes) -> None:
    """Write a file.

    Raises:
        Failure: It cannot be written.
    """
    try:
        path.write_bytes(data)
    except (OSError, ValueError) as error:
        raise Failure(f"`{path}` cannot be written: {system_reason(error)}.") from error


def read_json(data: bytes, name: str) -> Any:
    """Parse JSON; fractions keep their text, so that a repair writes `1.10` and `1e400` again.

    Raises:
        Failure: It is not JSON, or an object in it has the same key twice.
    """
    if not data.strip():
        raise Failure(f"{name} is empty, so it is not JSON.")
    try:
        with reading(name):
            return json.loads(
                data.decode("utf-8-sig"),
                parse_float=ExactNumber,
                parse_constant=refuse_constant,
                object_pairs_hook=_object,
            )
    except ValueError as error:
        is_more = isinstance(error, json.JSONDecodeError) and error.msg == "Extra data"
        hint = " Of JSON Lines, give one line at a time." if is_more else ""
        raise Failure(f"{name} is not JSON that can be read: {error}.{hint}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON readers keep the last of two equal keys. A repair that did so would drop the other,
    # silently.
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return made
