"""Exchanges with providers: the project's own, and those recorded where they lie beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lutum_py import ToolMetadata, ToolResult

OWN = Path(__file__).resolve().parents[1] / "data" / "wire"
"""A few exchanges, written for the project; the README beside them says how."""
RECORDED = OWN.parents[3] / "shared" / "wire"
"""Where recordings lie if `LUTUM_RECORDINGS` names no other folder; named empty, none are read."""


RECORDED_DIALECTS = sorted(path.stem for path in OWN.glob("*.jsonl"))
"""The dialects of which there are exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One exchange with a real provider.

    Attributes:
        response: The JSON that came back, the raw text of a stream, or None where the recording
            has no body.
        error_event: Whether the stream carries an error event.
    """

    id: str
    host: str
    source: str
    status: int
    request: Any
    response: Any
    stream: bool
    has_calls: bool
    has_results: bool

    @property
    def error_event(self) -> bool:
        return self.stream and "event: error" in self.response


def recordings(
    dialect: str, keep: Callable[[Recording], bool] | None = None, *, at_least: int = 1
) -> list[Recording]:
    """Give the exchanges of a dialect; skip the test where the project's own are too few for it."""
    found = [one for one in exchanges(dialect) if keep is None or keep(one)]
    if len(found) < at_least and not _recorded():
        pytest.skip("recordings of providers are not here: LUTUM_RECORDINGS names their folder")
    assert len(found) >= at_least, "too few exchanges are of the kind that this test is about"
    return found


def exchanges(dialect: str) -> list[Recording]:
    """Give all exchanges of a dialect, the project's own first."""
    if dialect not in RECORDED_DIALECTS:
        return []
    return [one for folder in (OWN, *_recorded()) for one in _read(folder / f"{dialect}.jsonl")]


def answered(one: Recording) -> bool:
    """Whether a provider accepted the request, and its answer was recorded."""
    return one.status == 200 and one.response is not None and not in_background(one)


def in_background(one: Recording) -> bool:
    """Whether the provider had not begun to answer: it was asked to do so later."""
    return isinstance(one.response, dict) and one.response.get("status") == "queued"


def whole(one: Recording) -> bool:
    return answered(one) and not one.stream


def streamed(one: Recording) -> bool:
    return answered(one) and one.stream and not one.error_event


def with_calls(one: Recording) -> bool:
    return whole(one) and one.has_calls


def answer(call: ToolMetadata) -> ToolResult:
    """Answer a recorded call."""
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")


def chunks_of(text: str, cuts: list[int]) -> Iterator[bytes]:
    """Cut the bytes of a text; a cut may fall inside a character."""
    raw = text.encode()
    edges = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]
    for begin, end in pairwise(edges):
        yield raw[begin:end]


def report(dialect: str, what: str, count: int, total: int) -> None:
    """Print a number, and hold that it is all of them."""
    print(f"\n{dialect}: {what}: {count} of {total}")
    assert count == total


def _recorded() -> list[Path]:
    """Name the folder of recordings, if it is there."""
    named = os.environ.get("LUTUM_RECORDINGS", str(RECORDED))
    return [Path(named)] if named and Path(named).is_dir() else []


@cache
def _read(path: Path) -> tuple[Recording, ...]:
    with path.open(encoding="utf-8") as lines:
        return tuple(Recording(**_fields(json.loads(line))) for line in lines)


def _fields(exchange: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in exchange.items() if key in Recording.__slots__}
