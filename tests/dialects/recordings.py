"""The recorded traffic of real providers, where it lies beside the repository."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lutum_py import ToolMetadata, ToolResult

WIRE = Path(__file__).resolve().parents[2].parent / "shared" / "wire"


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


def recordings(dialect: str, keep: Callable[[Recording], bool] | None = None) -> list[Recording]:
    """Give the recordings of a dialect, and skip the test where there are none to read."""
    found = [one for one in _read(dialect) if keep is None or keep(one)]
    assert found, "no recording is of the kind that this test is about"
    return found


def answered(one: Recording) -> bool:
    """Whether a provider accepted the request, and its answer was recorded."""
    return one.status == 200 and one.response is not None


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


@cache
def _read(dialect: str) -> tuple[Recording, ...]:
    path = WIRE / f"{dialect}.jsonl"
    if not path.exists():
        pytest.skip(f"the recorded provider traffic is not here: {path}")
    with path.open(encoding="utf-8") as lines:
        return tuple(Recording(**_fields(json.loads(line))) for line in lines)


def _fields(exchange: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in exchange.items() if key in Recording.__slots__}
