"""One cut of a view: what is sent in another form, or not at all, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from .._transcript.saved import Saved

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
        freed: How many tokens it freed, estimated.
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

    @property
    def form(self) -> tuple[object, ...]:
        """What two cuts share that are joined into one."""
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
        return (
            f"{said}: about {self.freed:,} tokens less. Caches are lost from item "
            f"{self.lost_from} on."
        )


_NAMES: Final = tuple(field.name for field in fields(Cut))


def dump_cut(cut: Cut) -> dict[str, Any]:
    """Return a cut as plain data."""
    return {name: getattr(cut, name) for name in _NAMES}


def load_cut(saved: Saved) -> Cut:
    """Read what `dump_cut` gave, and refuse a cut that no view could have."""
    made = Cut(
        kind=saved.member("kind", CutKind),
        text=saved.get("text", str, None),
        keep=saved.texts("keep"),
        max_bytes=saved.get("max_bytes", int, None),
        left=saved.get("left", int, None),
        digest=saved.get("digest", str),
        **{name: saved.get(name, int) for name in _PLACES},
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


_PLACES: Final = ("start", "stop", "at", "freed", "lost_from")
