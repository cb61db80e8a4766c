"""One cut of a view, and the items that its cuts send in place of the first ones of a transcript.

These items are computed once for each view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .._text.unicode import sendable
from .._transcript.message import Message
from .._transcript.place import digest_of_item
from .._transcript.request import TranscriptItem
from .._transcript.result import ToolResult, with_message
from .._transcript.result_cap import cut_again, head_of, tail_of
from .._transcript.saved import Saved
from .._transcript.transcript import NO_FRONT, Front, Transcript, kept_of
from ..errors import ViewError
from .ledger import bytes_of

CutKind: TypeAlias = Literal["clear", "cap", "drop", "summary"]

LEAST_BYTES: Final = 200
"""The least that capping leaves of a result: the notice takes a quarter of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Say how what a view sends differs from the transcript.

    Positions are those of the transcript.

    Attributes:
        kind: `clear` and `cap` change what the model reads of results; `drop` and `summary` put a
            user message in place of whole rounds.
        start: The first item that is concerned.
        stop: The first item after them.
        text: What is read instead; None for `cap`.
        at: How long the transcript was when the cut was made.
        freed: How many tokens it freed, estimated; below 0 if its text is longer than what went.
        lost_from: The first item that is sent in another form: a provider's cache is lost from
            there.
        keep: The wire names of tools whose results stay as they are.
        max_bytes: How much stays of a result, for `cap`.
        left: How many tokens were left of the request, as far as a provider's figures tell.
        digest: Identifies the last item concerned, so that another transcript is noticed.

    Example:
        >>> print(Cut(kind="drop", start=1, stop=41, text="...", at=60, freed=52_000, lost_from=1))
        Items 1 to 40 are dropped: about 52,000 tokens less. Caches are lost from item 1 on.
    """

    kind: CutKind
    start: int
    stop: int
    text: str | None
    at: int
    freed: int
    lost_from: int
    keep: tuple[str, ...] = ()
    max_bytes: int | None = None
    left: int | None = None
    # A view is saved apart from its transcript. The digest is what shows, on loading, that somebody
    # put it beside another one.
    digest: str = ""

    def __post_init__(self) -> None:
        """Put U+FFFD for half of a surrogate pair in the text, which could not be sent."""
        if self.text is not None:
            object.__setattr__(self, "text", sendable(self.text))

    @property
    def form(self) -> tuple[object, ...]:
        """What has to be equal for two cuts that are joined into one."""
        return (self.kind, self.text, self.keep, self.max_bytes)

    @property
    def is_span(self) -> bool:
        """Whether a message is in place of the items."""
        return self.kind in ("drop", "summary")

    def __str__(self) -> str:
        last = self.stop - 1
        one = self.start == last
        where = f"item {last}" if one else f"items {self.start} to {last}"
        said = {
            "clear": f"The results in {where} are cleared",
            "cap": f"The long results in {where} are capped",
            "drop": f"I{where[1:]} {'is' if one else 'are'} dropped",
            "summary": f"I{where[1:]} {'is' if one else 'are'} summarised",
        }[self.kind]
        less = "less" if self.freed >= 0 else "more"
        return (
            f"{said}: about {abs(self.freed):,} tokens {less}. Caches are lost from item "
            f"{self.lost_from} on."
        )


def load_cut(saved: Saved) -> Cut:
    """Read the fields of a cut, and refuse one that no view could have."""
    made = Cut(
        kind=saved.member("kind", CutKind),
        text=saved.get("text", str, None),
        keep=saved.texts("keep"),
        digest=saved.get("digest", str),
        **saved.some(int, "start", "stop", "at", "freed", "lost_from"),
        **saved.some(int, "max_bytes", "left", default=None),
    )
    # The rest of the folder indexes with these numbers and never asks again, so saved text that was
    # edited by hand has to fail here.
    if not 0 <= made.start < made.stop <= made.at:
        raise saved.wrong("stop", f"items {made.start} to {made.stop} of {made.at} are not a span")
    if made.kind == "cap":
        if made.max_bytes is None or made.max_bytes < LEAST_BYTES:
            raise saved.wrong("max_bytes", f"a cap leaves {LEAST_BYTES} bytes at least")
    elif not (made.text or "").strip():
        raise saved.wrong("text", "it is blank")
    return made


# What goes out.

_LEFT_OUT: Final = "\n[... {} of {} bytes left out ...]\n"


def front_of(transcript: Transcript, cuts: tuple[Cut, ...]) -> Front:
    """Return what goes out in place of the first items; made once for each tuple of cuts.

    Raises:
        ViewError: The cuts were made for another transcript.
    """
    if not cuts:
        return NO_FRONT
    fronts = kept_of(transcript).fronts
    front: Front | None = fronts.take(cuts)
    if front is None:
        _check_own(transcript, cuts)
        front = _made(transcript, cuts)
    fronts.put(cuts, front)
    return front


def _check_own(transcript: Transcript, cuts: Iterable[Cut]) -> None:
    items = transcript._items
    for cut in cuts:
        if (
            cut.at > len(items)
            or digest_of_item(items[cut.stop - 1]) != cut.digest
            or (cut.is_span and any(is_inside(items, end) for end in (cut.start, cut.stop)))
        ):
            raise ViewError(
                f"This view was made for another transcript: item {cut.stop - 1}, the last one of "
                f"a cut, is not the same in this one of {len(items)} items, or no round ends where "
                "the cut does. Use a view with its transcript, or what that grew into; start with "
                "`View()` for another."
            )


def is_inside(items: Sequence[TranscriptItem], place: int) -> bool:
    """Tell whether a place is inside of a round, if a transcript or view was edited."""
    return place < len(items) and isinstance(items[place], ToolResult)


def _made(transcript: Transcript, cuts: tuple[Cut, ...]) -> Front:
    items = transcript._items
    edits = [cut for cut in cuts if not cut.is_span]
    sent: list[tuple[TranscriptItem, int, int]] = []
    # Rows of an item, its position, and the place that it goes out at. With a drop of items 1 to 8
    # that carries the question at 7, they are (system, 0, 0), (notice, 1, 1), (question, 7, 1).
    start = 0

    def as_they_are(stop: int) -> None:
        for position in range(start, stop):
            sent.append((edited(items[position], position, edits), position, position))

    for span in sorted((cut for cut in cuts if cut.is_span), key=lambda cut: cut.start):
        as_they_are(span.start)
        before, after = carried(items, span)
        sent += ((items[position], position, span.start) for position in before)
        sent.append((Message("user", span.text or ""), span.start, span.start))
        sent += ((items[position], position, span.start) for position in after)
        start = span.stop
    end = max(cut.stop for cut in cuts)
    as_they_are(end)
    one, two, three = zip(*sent, strict=True)
    return Front(one, two, three, end, tuple((cut.start, cut.at) for cut in cuts))


# The question stays because what follows the span may be rounds that work on it: a notice alone
# would leave the model with results and no task. User messages in a row are one question.
def carried(items: Sequence[TranscriptItem], span: Cut) -> tuple[list[int], list[int]]:
    """Return the positions that a span never cuts: what goes before its message, and after it."""
    before: list[int] = []
    asked: list[int] = []
    is_last = False
    for position in range(span.start, span.stop):
        item = items[position]
        if not isinstance(item, Message):
            is_last = False
        elif item.role != "user":
            before.append(position)
        else:
            asked = [*asked, position] if is_last else [position]
            is_last = True
    if span.kind == "summary" or _asks(items, span):
        asked = []
    return before, asked


def _asks(items: Sequence[TranscriptItem], span: Cut) -> bool:
    """Tell whether a question stood right after a span when the cut was made."""
    # Up to `at` only: would it look further, a question that is asked later would take away what an
    # older request carried, and the front of the same view would change.
    for position in range(span.stop, span.at):
        item = items[position]
        if not isinstance(item, Message):
            return False
        if item.role == "user":
            return True
    return False


def edited(item: TranscriptItem, position: int, edits: Iterable[Cut]) -> TranscriptItem:
    """Return an item as cuts leave it; what is not a result, or kept, stays the same object."""
    if not isinstance(item, ToolResult):
        return item
    for cut in edits:
        if cut.start <= position < cut.stop and item.name not in cut.keep:
            if cut.max_bytes is not None:
                item = _capped(item, cut.max_bytes)
            elif bytes_of(item.model_text) > bytes_of(cut.text or "") or item.attachments:
                item = with_message(item, cut.text or "", ())
    return item


def _capped(result: ToolResult, most: int) -> ToolResult:
    text = result.model_text
    total = bytes_of(text)
    if total <= most:
        return result
    again = None if result.message is None else cut_again(text, most)
    if again is not None:
        return with_message(result, again)
    room = most - len(_LEFT_OUT.format(total, total))
    head, tail = head_of(text, room - room // 2), tail_of(text, room // 2)
    left_out = total - bytes_of(head) - bytes_of(tail)
    return with_message(result, f"{head}{_LEFT_OUT.format(left_out, total)}{tail}")
