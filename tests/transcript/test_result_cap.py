"""The laws of caps: what the model reads fits, what the program keeps is whole."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Attachment, ToolResult
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.tools import MemoryResults, ResultCap
from lutum_py.typing import ResultStatus
from tests.hostile import texts

# Characters of one to four bytes, and what JSON escapes.
letters = st.sampled_from('a "\\\n\u0000é€𝄞')
long_texts = st.builds(
    lambda start, middle, times, end: start + middle * times + end,
    st.text(letters, max_size=300),
    st.text(letters, min_size=1, max_size=5),
    st.integers(0, 400),
    st.text(letters, max_size=300),
)
statuses = st.sampled_from(get_args(ResultStatus))
bounds = st.integers(400, 1_500)
NOTICE = re.compile(
    r"\n\[\.\.\. (\d+) to (\d+) of (\d+) characters left out"
    r'(?:; read them with read_more\(handle="([0-9a-f]{32})", offset=(\d+)\))? \.\.\.\]\n'
)


def result_of(data: Any, **fields: Any) -> ToolResult:
    return ToolResult(id="c1", name="log", arguments="{}", result=json.dumps(data), **fields)


results = st.builds(
    result_of,
    long_texts | st.lists(long_texts, max_size=3),
    status=statuses,
    message=st.none() | long_texts,
    code=st.none() | st.just("odd"),
)


@given(results, bounds, st.booleans())
def test_what_the_model_reads_fits(result: ToolResult, bound: int, stored: bool) -> None:
    """A capped text has no more bytes than the cap allows, and nothing else is changed."""
    store = MemoryResults()
    capped = ResultCap(bound, store if stored else None).apply(result)
    assert len(capped.model_text.encode()) <= bound
    kept = ["id", "name", "arguments", "result", "status", "code", "output"]
    if isinstance(result.output, str):
        kept.append("rejection_reason")  # of other data it is the message that tells the reason
    assert [getattr(capped, each) for each in kept] == [getattr(result, each) for each in kept]
    if len(result.model_text.encode()) <= bound:
        assert capped is result
        assert len(store) == 0


@given(long_texts.filter(lambda text: len(text.encode()) > 400), bounds, st.booleans())
def test_head_and_tail_are_those_of_the_text(text: str, bound: int, stored: bool) -> None:
    """Around the notice stand the beginning and the end, whole characters, and it counts right."""
    capped = ResultCap(bound, MemoryResults() if stored else None).apply(result_of(text))
    if capped.model_text == text:
        return
    found = list(NOTICE.finditer(capped.model_text))
    assert len(found) == 1  # no text that is drawn has one
    head, tail = capped.model_text[: found[0].start()], capped.model_text[found[0].end() :]
    start, stop, total = map(int, found[0].groups()[:3])
    assert (text[:start], text[stop:], len(text)) == (head, tail, total)
    # Of the room that the notice leaves, at most a character on each side is wasted.
    assert bound - len(capped.model_text.encode()) < 30
    assert abs(len(head.encode()) - len(tail.encode())) <= 8
    assert (found[0][4] is not None) is stored
    assert not stored or int(found[0][5]) == start


@given(results, bounds)
def test_a_cap_is_applied_once(result: ToolResult, bound: int) -> None:
    """What was capped is not cut again by the same cap."""
    cap = ResultCap(bound, MemoryResults())
    capped = cap.apply(result)
    assert cap.apply(capped) is capped


@given(long_texts.filter(lambda text: len(text.encode()) > 400))
def test_the_store_has_the_whole_text_under_the_handle(text: str) -> None:
    """What the notice names gives the text that the model would have read; the same text once."""
    store = MemoryResults()
    cap = ResultCap(400, store)
    capped = cap.apply(result_of(text))
    cap.apply(result_of(text, status="error"))
    found = NOTICE.search(capped.model_text)
    assert found is not None
    assert store.get(found[4]) == text
    assert len(store) == 1
    assert repr(store) == "<1 results in memory>"


@given(texts)
def test_hostile_text_is_cut_into_text_that_can_be_sent(text: str) -> None:
    """Whatever a message holds, what is left of it is valid UTF-8."""
    capped = ResultCap(400).apply(result_of(1, message=text * 200))
    assert len(capped.model_text.encode()) <= 400


def test_attachments_stay() -> None:
    """A cap is about text: files go on as they are."""
    picture = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
    capped = ResultCap(400).apply(result_of("x" * 999, attachments=(picture,)))
    assert capped.attachments == (picture,)


def test_caps_that_cannot_work_are_refused() -> None:
    """A bound below 400 or of another type, and a store without its methods, are refused."""
    with pytest.raises(InvalidValueError):
        ResultCap(399)
    for bound in ("400", 400.0, True, None):
        with pytest.raises(MisuseError):
            ResultCap(bound)  # type: ignore[arg-type]
    for store in ({}, MemoryResults, object()):
        with pytest.raises(MisuseError):
            ResultCap(400, store)  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        ResultCap(400).apply("x")  # type: ignore[arg-type]


def test_caps_are_values() -> None:
    """Caps are equal by bound and store, and hash also where a store does not."""

    class Store(dict[str, str]):
        put = dict.__setitem__

    store: Any = Store()
    assert ResultCap(400) == ResultCap(400) != ResultCap(401)
    assert ResultCap(400, store) != ResultCap(400)
    assert hash(ResultCap(400, store)) == hash(ResultCap(400, Store()))
