"""A provider's own messages become a transcript: what the readers of all dialects share.

A message of the user or an instruction holds one text and then its files, so a message of more
parts becomes several. What is said by the model is kept as it came, by the decoder of the dialect.
"""

from __future__ import annotations

import mimetypes
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from .. import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    Transcript,
)
from .._text.json import compact_json, is_mapping, is_sequence, parse_json
from ..errors import DialectError
from ..typing import MediaType, ResultStatus, Role
from ._facts import Facts
from ._findings import Loss

Part: TypeAlias = str | Attachment
"""What a message says, one after the other: texts and files."""

NOTHING_LEFT: Final = "[What was sent here cannot be shown.]"
"""What stands for a message of the user of which nothing could be held."""

NOTHING_SAID: Final = "empty_conversation"
"""The rule that a conversation of no message breaks."""

_NO_PLACE: Final = "a transcript has no place for it"

T = TypeVar("T")


# A round and not its turn alone: a transcript takes a turn with calls only with all of its results,
# and these are read later. So both are collected here, and put in together in the end.
@dataclass(slots=True)
class _Round:
    """A turn of the model, and the results that were found for it."""

    turn: AssistantTurn
    results: list[ToolResult] = field(default_factory=list[ToolResult])


class History:
    """Collect what was said, as items of a transcript, and what of it they cannot hold.

    Args:
        facts: What is known of the dialect.
        request: A request body, or its list of messages, which the provider would take.
        decode: Reads what the model said, as a response that stands somewhere.
        is_rejoined: Whether the dialect writes the messages between two turns as one, so that
            nothing is lost where one becomes several.

    Attributes:
        body: The request body; empty if only its list was given.
        decode: As above.
    """

    def __init__(
        self,
        facts: Facts,
        request: object,
        *,
        decode: Callable[[object, str], AssistantTurn],
        is_rejoined: bool = False,
    ) -> None:
        self.body: Mapping[str, object] = request if is_mapping(request) else {}
        self.decode = decode
        self._key = facts.key
        self._dialect = facts.name
        self._listed: object = self.body.get(facts.key) if is_mapping(request) else request
        self._is_rejoined = is_rejoined
        self._items: list[Message | _Round] = []
        # The calls whose results are still to come, in order. A request was checked before it is
        # read, so its results stand in the order of the calls, and each belongs to the first that
        # is open.
        self._open: deque[tuple[_Round, ToolMetadata]] = deque()
        self._losses: list[Loss] = []

    def listed(self) -> Iterator[tuple[str, Any]]:
        """Go through the messages; give each with its position."""
        listed = self._listed if is_sequence(self._listed) else (self._listed,)
        for index, message in enumerate(listed):
            if message is not None:
                yield f"{self._key}[{index}]", message

    def as_json(self, read: Callable[[object], T], value: object, where: str) -> T:
        """Read a value with a function that raises where JSON cannot carry it.

        Raises:
            DialectError: JSON cannot; the text says where.
        """
        try:
            return read(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise DialectError(
                f"{self._dialect} at {where}: it is not JSON data ({error}). Give plain JSON data.",
                dialect=self._dialect,
                where=where,
            ) from None

    def lose(self, where: str, text: str = _NO_PLACE) -> None:
        """Note what a transcript cannot hold."""
        self._losses.append(Loss(where, text))

    def rest(self, fields: Mapping[str, Any], known: Collection[str], position: str) -> None:
        """Note the fields of an object that were not read."""
        for key, value in fields.items():
            if key not in known and value is not None:
                self.lose(f"{position}.{key}")

    def file(
        self,
        where: str,
        *,
        url: object = None,
        data: object = None,
        mime_type: object = None,
        media_type: MediaType | None = None,
        name: object = None,
    ) -> Iterator[Attachment]:
        """Yield the attachment that a part of a message is; nothing if it cannot be held.

        Args:
            where: Where the part stands.
            url: The address, which may be a `data:` URL.
            data: The data as base64, in place of the address.
            mime_type: Its type, if the wire says it.
            media_type: What kind of file it is; what the type says, by default.
            name: The name of the file, if the wire says it.
        """
        if isinstance(data, str) and isinstance(mime_type, str):
            url = f"data:{mime_type};base64,{data}"
        if not isinstance(url, str) or not url.startswith(("https:", "data:")):
            self.lose(where, "a file is held by its `https:` address or its data; this has neither")
            return
        if not isinstance(mime_type, str):
            mime_type = _mime_type_of(url, media_type)
        yield Attachment(
            media_type=media_type or Attachment.media_type_of(mime_type),
            mime_type=mime_type,
            url=url,
            name=name if isinstance(name, str) else None,
        )

    def say(self, role: Role, parts: Iterable[str | Attachment], position: str) -> None:
        """Take what anyone but the model says in one message."""
        before = len(self._losses)
        groups = _grouped(parts)
        if not groups:
            if role == "user":
                # Somebody spoke here, which matters to who may speak next.
                lost = len(self._losses) > before
                self._items.append(Message(role, NOTHING_LEFT if lost else ""))
            return
        self._items += [Message(role, text, tuple(files)) for text, files in groups]
        if len(groups) > 1 and not self._is_rejoined:
            what = "a message holds a text and then its files"
            self.lose(position, f"it comes back as {len(groups)} messages, because {what}")

    def respond(self, response: Mapping[str, object], position: str) -> None:
        """Take what the model said, put into a response; results for its calls may follow.

        Raises:
            DialectError: It is broken.
        """
        self.turn(self.decode(response, position))

    def turn(self, turn: AssistantTurn) -> None:
        """Take a turn of the model; results for its calls may follow."""
        made = _Round(turn)
        self._items.append(made)
        self._open.extend((made, call) for call in turn.tool_calls)

    def answer(
        self,
        parts: Iterable[str | Attachment],
        position: str,
        *,
        is_error: bool | None = None,
        call_id: str | None = None,
    ) -> None:
        """Take what the result of the next call says.

        Args:
            parts: What it says.
            position: Where it stands.
            is_error: Whether the wire calls it an error; None if it has no word for that.
            call_id: The id of the call, where results may stand in another order than the calls.
        """
        groups = _grouped(parts)
        if len(groups) > 1:
            self.lose(position, "it comes back as one text, and its files after that")
        text = "\n\n".join(text for text, _ in groups if text)
        files = tuple(file for _, files in groups for file in files)
        said = _json_of_text(text)
        self.answer_json(said, position, is_error=is_error, attachments=files, call_id=call_id)

    def answer_json(
        self,
        result: str,
        position: str,
        *,
        is_error: bool | None = None,
        attachments: tuple[Attachment, ...] = (),
        call_id: str | None = None,
    ) -> None:
        """Take the result of the next call, whose output is known as JSON text."""
        at = next((at for at, (_, call) in enumerate(self._open) if call.id == call_id), 0)
        made, call = self._open[at]
        del self._open[at]
        # Wires know success and error at most. What this library wrote for the model says more, and
        # is read back, so that a rejected call is not an error in the transcript.
        status = _status_said(result, "error" if is_error else "success")
        if is_error is False and status != "success":
            self.lose(position, "it says that the call failed, so that it comes back as an error")
        made.results.append(
            ToolResult(
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                result=result,
                status=status,
                attachments=attachments,
            )
        )
        # Something was said between the call and this result, which then moves before it.
        if self._items[-1] is not made:
            self.lose(position, "it comes back right after the turn that made the call")

    def read(self) -> tuple[Transcript, list[Loss]]:
        """Return the transcript, and what it could not hold."""
        transcript = Transcript()
        for item in self._items:
            if isinstance(item, Message):
                transcript.push(item)
            elif item.turn.tool_calls:
                order = {call.id: at for at, call in enumerate(item.turn.tool_calls)}
                results = sorted(item.results, key=lambda result: order[result.id])
                transcript.append_round(CommittedRound(item.turn, results))
            else:
                transcript.append_turn(item.turn)
        return transcript, self._losses


_SAID: Final[tuple[tuple[str, ResultStatus], ...]] = (
    ("Rejected: ", "rejected"),
    ("Cancelled: ", "cancelled"),
    ("Not executed: ", "cancelled"),
    ("Outcome unknown: ", "indeterminate"),
    ("The tool call was denied.", "rejected"),  # Pydantic AI
    ("Tool execution was not approved.", "rejected"),  # the OpenAI Agents SDK
    ("User rejected the tool call for ", "rejected"),  # LangChain
)
"""How results begin by which this library and others say that a call was not done, or may be."""

_CODE: Final = re.compile(
    r"\[(?:invalid_arguments|execution_failed|denied|not_found|internal|timed_out|cancelled"
    r"|outcome_unknown|tool_error|invalid_output|after_doubt|too_deep|too_many_calls|tool_changed"
    r"|mcp_error|connection_lost|result_too_large|program_error|program_limit|program_changed)\] "
)
"""The codes that this library gives a call that failed, as they stand before what it says."""

_EDITED: Final = "[The arguments of "
"""How a line begins that stands before the result of a call that a person edited."""


def _status_said(result: str, known: ResultStatus) -> ResultStatus:
    """Say what became of a call by the words of its result, if the wire says no more."""
    text: str = parse_json(result) if result.startswith('"') else ""
    # Lines about edits and a code may stand before the words: "[The arguments of this call were
    # edited: id = 3]", and below it "[timed_out] Outcome unknown: the tool did not finish".
    at = 0
    while text.startswith(_EDITED, at):
        at = text.find("\n", at) + 1 or len(text)
    code = _CODE.match(text, at)
    if code is not None:
        at = code.end()
    for words, said in _SAID:
        if text.startswith(words, at):
            return said
    return known if code is None else "error"


def _json_of_text(text: str) -> str:
    """Return the JSON text of a result that the model reads as this text.

    Example:
        >>> _json_of_text('{"sum": 3}'), _json_of_text("It is 3.")
        ('{"sum": 3}', '"It is 3."')
    """
    # Text that looks like a JSON string is taken as text, quotes included: a tool whose output is a
    # text sends it without them.
    if not text.startswith('"'):
        try:
            parse_json(text)
        except ValueError:
            pass
        else:
            return text
    return compact_json(text)


def _grouped(parts: Iterable[Part]) -> list[tuple[str, list[Attachment]]]:
    """Join parts to texts with files after them; a text right before a further file is its caption.

    Example:
        >>> _grouped(["Look:", "and", "tell"])
        [('Look:', []), ('and', []), ('tell', [])]
    """
    # ["Look:", a.png, "the second", b.png, "and tell"] becomes [("Look:", [a.png, b.png,
    # captioned]), ("and tell", [])]: a text begins a group where a text was before it, and is a
    # caption where a file follows. One text is held back until that is known.
    groups: list[tuple[str, list[Attachment]]] = []
    text = ""
    for part in parts:
        if isinstance(part, str):
            if text:
                groups.append((text, []))
            text = part or text
            continue
        is_first = not groups
        if is_first:
            groups.append((text, []))
        captioned = text and not is_first
        groups[-1][1].append(replace(part, caption=text) if captioned else part)
        text = ""
    if text:
        groups.append((text, []))
    return groups


_BY_DEFAULT: Final[Mapping[MediaType | None, str]] = {
    "image": "image/jpeg",
    "audio": "audio/mpeg",
    "video": "video/mp4",
}


def _mime_type_of(url: str, media_type: MediaType | None) -> str:
    """Find the type of a file whose message does not say it."""
    if url.startswith("data:"):
        named = url[5:].partition(",")[0].partition(";")[0]
        return named or "text/plain"
    guessed, _ = mimetypes.guess_type(url.partition("?")[0])
    # A picture at an address that ends in `.pdf` is one all the same: the message says what it is.
    if guessed is not None and media_type in (None, "file", Attachment.media_type_of(guessed)):
        return guessed
    return _BY_DEFAULT.get(media_type, "application/octet-stream")
