"""Read a conversation, see what it is, and apply the rules that it is under.

A saved transcript says what it is. The body of a request does not, but most hold something that
only one dialect has; where none does, the user has to say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .._text.json import is_array, is_object, shorten
from .._transcript.transcript import Transcript
from ..dialects.openai_chat import Change, Violation
from ._exact_json import Style, exact_text, read_exact
from ._screen import Failure, safe
from ._transcript_rules import check_transcript, is_transcript, repair_transcript

__all__ = ["Conversation", "Dialect", "dialect_module", "read_conversation"]


class Dialect(StrEnum):
    """The dialects, by name."""

    openai_chat = "openai_chat"
    openai_responses = "openai_responses"
    anthropic_messages = "anthropic_messages"
    gemini_generate_content = "gemini_generate_content"


_LISTS: Final = {
    "contents": {Dialect.gemini_generate_content},
    "input": {Dialect.openai_responses},
    "messages": {Dialect.openai_chat, Dialect.anthropic_messages},
}
"""Where a body holds the conversation, and in which dialects it does so there."""
_TOOL_KEYS: Final = {
    "function": Dialect.openai_chat,
    "functionDeclarations": Dialect.gemini_generate_content,
    "input_schema": Dialect.anthropic_messages,
}
_CALLS: Final = frozenset({"function_call", "function_call_output", "reasoning", "item_reference"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def dialect_module(dialect: Dialect) -> Any:
    """Import the module of a dialect."""
    return import_module(f"lutum_py.dialects.{dialect.value}")


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
    """

    name: str
    data: bytes
    value: Any
    style: Style
    is_saved: bool
    dialect: Dialect | None

    @property
    def what(self) -> str:
        """What it is, in words."""
        if not self.is_saved:
            return f"request body of {self.dialect}"
        return "transcript" if self.dialect is None else f"transcript, for {self.dialect}"

    def check(self) -> list[Violation]:
        """Find what breaks the rules.

        Raises:
            Failure: It is nothing that has rules.
        """
        return self._violations(self.value)

    def repair(self) -> tuple[bytes, list[Change], list[Violation]]:
        """Mend what can be mended.

        Returns:
            The bytes to be written (those that were read where nothing changed), what was changed,
            and what is still wrong.

        Raises:
            Failure: It is nothing that has rules.
        """
        if self.is_saved:
            mended, changes = repair_transcript(self.value)
        else:
            mended, changes = self._by_dialect("repair", self.value)
        data = exact_text(mended, self.style).encode() if changes else self.data
        return data, changes, self._violations(mended)

    def _violations(self, value: Any) -> list[Violation]:
        if self.is_saved:
            found = check_transcript(value)
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
                f"{self.name} is no request body of {self.dialect}: {safe(str(error))}."
            ) from error


def read_conversation(file: str, dialect: Dialect | None) -> Conversation:
    """Read a file, or standard input for `-`.

    Args:
        file: The path.
        dialect: What the user says that it is.

    Raises:
        Failure: It cannot be read, is no JSON, or of another dialect, or of one that cannot be
            recognised.
    """
    name, data = _read(file)
    value, style = read_exact(data, name)
    if is_transcript(value):
        return Conversation(name, data, value, style, True, dialect)
    possible = _possible(value)
    if not possible:
        raise Failure(
            f"{name} is neither a saved transcript nor a request body: it is "
            f"{safe(shorten(value))}."
        )
    if dialect is not None and dialect not in possible:
        raise Failure(
            f"{name} is no request body of {dialect}; it looks like one of "
            f"{' or '.join(sorted(possible))}. Say `--dialect {min(possible)}`."
        )
    if dialect is None and len(possible) > 1:
        raise Failure(
            f"{name} may be a request body of {' or '.join(sorted(possible))}. Say which with "
            "`--dialect`."
        )
    return Conversation(name, data, value, style, False, dialect or next(iter(possible)))


def _read(file: str) -> tuple[str, bytes]:
    name = "standard input" if file == "-" else f"`{safe(file)}`"
    try:
        return name, sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failure(f"{name} cannot be read: {safe(reason).lower()}.") from error


def _possible(value: Any) -> set[Dialect]:
    """Give the dialects that a body, or a list of messages, can be of."""
    if is_array(value):
        return _narrowed(set(Dialect), _marks_of_items(value))
    if not is_object(value):
        return set()
    for key, dialects in _LISTS.items():
        if key in value:
            marks = {*_marks_of_items(value[key]), *_marks_of_body(value)}
            return _narrowed(dialects, marks)
    return _narrowed(set(Dialect), set(_marks_of_body(value)))


def _narrowed(dialects: set[Dialect], marks: set[Dialect]) -> set[Dialect]:
    return dialects & marks or dialects


def _marks_of_items(items: Any) -> set[Dialect]:
    """Give each dialect that something in the items is only of."""
    return {mark for item in _objects(items) for mark in _marks_of_item(item)}


def _objects(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if is_object(item)] if is_array(items) else []


def _marks_of_item(item: dict[str, Any]) -> Iterator[Dialect]:
    role = item.get("role")
    if "parts" in item:
        yield Dialect.gemini_generate_content
    if item.get("type") in _CALLS:
        yield Dialect.openai_responses
    if "tool_calls" in item or "tool_call_id" in item or role in ("tool", "function"):
        yield Dialect.openai_chat
    if any(block.get("type") in _BLOCKS for block in _objects(item.get("content"))):
        yield Dialect.anthropic_messages


def _marks_of_body(body: dict[str, Any]) -> Iterator[Dialect]:
    if "system" in body or "anthropic_version" in body:
        yield Dialect.anthropic_messages
    if "systemInstruction" in body or "generationConfig" in body:
        yield Dialect.gemini_generate_content
    if any(m.get("role") in ("system", "developer") for m in _objects(body.get("messages"))):
        yield Dialect.openai_chat
    for tool in _objects(body.get("tools")):
        yield from (dialect for key, dialect in _TOOL_KEYS.items() if key in tool)
