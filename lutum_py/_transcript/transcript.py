"""What was said, append-only and valid at any time.

There are three ways in: a message, a turn that asks for nothing, and a whole round. None of them
can leave a call without its result, so there is nothing to check afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, overload

from .._text.json import shorten
from ..errors import InvalidValueError, MisuseError
from .assistant import AssistantTurn, Usage
from .committed import CommittedRound
from .kept import Growing
from .message import Message
from .request import TranscriptItem
from .transcript_view import TranscriptView


class Transcript(Growing, Sequence[TranscriptItem]):
    """Hold messages, assistant turns and tool results, oldest first.

    Example:
        >>> transcript = Transcript()
        >>> transcript.push(Message("user", "Hello"))
        >>> len(transcript), transcript[0].text
        (1, 'Hello')
        >>> Transcript.load_json(transcript.dump_json()) == transcript
        True
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._items = []
        self._kept = None
        self._last: CommittedRound | None = None

    def push(self, message: Message) -> None:
        """Append what someone other than the model says."""
        if not isinstance(message, Message):
            raise MisuseError(
                f"A transcript takes a Message here, not a {type(message).__name__}. Turns and "
                "results come in by `plan.commit(...)`."
            )
        self._items.append(message)

    def append_turn(self, turn: AssistantTurn) -> None:
        """Append a turn that asks for no tools.

        Raises:
            InvalidValueError: The turn has calls; those need their results, so commit a round.
        """
        if not isinstance(turn, AssistantTurn):
            raise MisuseError(f"A turn is an AssistantTurn, not a {type(turn).__name__}.")
        if turn.tool_calls:
            raise InvalidValueError(
                f"The turn has {len(turn.tool_calls)} tool calls, which need their results. Read "
                "it with `Toolset.read_turn(turn)` and commit the round."
            )
        self._items.append(turn)

    def append_round(self, committed: CommittedRound) -> None:
        """Append a turn together with its results.

        Raises:
            InvalidValueError: It was appended just before.
        """
        if not isinstance(committed, CommittedRound):
            raise MisuseError(
                f"A round comes in as a CommittedRound, not a {type(committed).__name__}. Use "
                "`plan.commit(...)`, or append what `plan.resolve(results)` gives."
            )
        if committed is self._last:
            raise InvalidValueError(
                "This round was appended to the transcript already: `plan.commit(session, ...)` "
                "does that. What it returns is for other uses."
            )
        # One call of `extend` with a ready tuple: all of it is there, or nothing.
        self._items.extend((committed.turn, *committed.results))
        self._last = committed

    def usage(self) -> Usage | None:
        """Add up what the turns cost; None where no turn says.

        What failed or was discarded is in no transcript, and so not in the sum either.
        """
        by_model = self.usage_by_model()
        return sum(by_model.values(), Usage()) if by_model else None

    def usage_by_model(self) -> dict[str | None, Usage]:
        """Add up the same for each model, by the name with which the turns came back."""
        # By the name in the answer, as `gpt-5-2025-08-07`: the name that was asked for is an alias,
        # and prices change after it.
        by_model: dict[str | None, Usage] = {}
        for item in self._items:
            if isinstance(item, AssistantTurn) and item.usage is not None:
                by_model[item.model] = by_model.get(item.model, Usage()) + item.usage
        return by_model

    def view(self) -> TranscriptView:
        """Return what is there now; it stays as it is while the transcript grows."""
        return TranscriptView(self, len(self._items))

    def copy(self) -> Transcript:
        """Return a transcript of its own with the same items."""
        made = Transcript()
        made._items = self._items.copy()
        return made

    def dump_json(self) -> str:
        """Encode the transcript, with the version of the format.

        Raises:
            TranscriptError: A payload is not JSON data.
        """
        from .transcript_json import dump_transcript

        return dump_transcript(self._items)

    @classmethod
    def load_json(cls, text: str | bytes) -> Transcript:
        """Read what `dump_json` gave.

        Raises:
            TranscriptError: The text is not a transcript, of an unknown version, damaged, or would
                be invalid; the error says where.
        """
        from .transcript_json import load_transcript

        made = cls()
        made._items = load_transcript(text)
        return made

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[TranscriptItem]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> TranscriptItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TranscriptItem, ...]: ...
    def __getitem__(self, index: int | slice) -> TranscriptItem | tuple[TranscriptItem, ...]:
        if isinstance(index, slice):
            return tuple(self._items[index])
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self._items == other._items

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        from .display import items_html

        return items_html("Transcript", self)

    def __rich_repr__(self) -> Iterator[str]:
        from .display import items_rich

        return items_rich(self)

    def __repr__(self) -> str:
        return f"<Transcript of {len(self._items)} items>"

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (self._items,))


def _restore(items: list[TranscriptItem]) -> Transcript:
    made = Transcript()
    made._items = list(items)
    return made


class HasTranscript(Protocol):
    """Anything with a transcript, such as a session."""

    @property
    def transcript(self) -> Transcript:
        """The transcript to append to."""
        ...


def transcript_of(target: HasTranscript | Transcript) -> Transcript:
    """Find the transcript that is meant.

    Raises:
        MisuseError: It is neither a transcript nor has one.
    """
    # Not `isinstance(target, ...)`: of an abstract base that is slow, but for its own instances.
    transcript = getattr(target, "transcript", target)
    if not isinstance(transcript, Transcript):
        raise MisuseError(
            f"A round is committed to a Session or a Transcript, not to {shorten(target)}. Without "
            "either, use `plan.resolve(results)`."
        )
    return transcript
