"""The laws of reading on: piece by piece, the whole text comes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Toolset, Transcript, tool, tool_fn
from lutum_py.errors import InvalidValueError, MisuseError, NotFound
from lutum_py.tools import MemoryResults, ResultCap, result_reader
from tests.round_tools import opened

NOTE = re.compile(
    r"\n\[\.\.\. characters (\d+) to (\d+) of (\d+); read on with offset=(\d+) \.\.\.\]$"
)
texts = st.builds(
    lambda text, times: text * times,
    st.text(st.sampled_from('a\n"é€𝄞'), min_size=1, max_size=9),
    st.integers(1, 600),
)


@given(texts, st.integers(400, 1_000))
def test_following_the_offsets_gives_the_whole_text(text: str, bound: int) -> None:
    """Each answer has no more bytes than its bound, and the pieces joined are the text."""
    store = MemoryResults()
    store.put("h", text)
    read_more = result_reader(store, bound)
    offset, joined = 0, ""
    while True:
        piece = read_more("h", offset)
        assert len(piece.encode()) <= bound
        note = NOTE.search(piece)
        if note is None:
            break
        assert [int(each) for each in note.groups()] == [
            offset,
            offset + note.start(),
            len(text),
            offset + note.start(),
        ]
        joined += piece[: note.start()]
        offset += note.start()
    assert joined + piece == text


def test_the_model_reads_on_with_what_the_notice_names() -> None:
    """Handle and offset of a notice are the arguments with which the model calls the tool."""
    store = MemoryResults()
    text = "".join(f"line {at}\n" for at in range(500))

    @tool_fn
    def log() -> str:
        """Give a log."""
        return text

    class App(Toolset, result_cap=ResultCap(600, store)):
        log_ = tool(log)
        read_more = tool(result_reader(store), result_cap=None)

    plan = opened(("c1", "log", "{}"), toolset=App).plan()
    shown = plan.commit(Transcript(), [plan.pending[0].call_sync()]).results[0].model_text
    named = re.search(r'read_more\(handle="(\w+)", offset=(\d+)\)', shown)
    assert named is not None
    arguments = f'{{"handle": "{named[1]}", "offset": {named[2]}}}'
    plan = opened(("c2", "read_more", arguments), toolset=App).plan()
    result = plan.commit(Transcript(), [plan.pending[0].call_sync()]).results[0]
    assert result.model_text == text[int(named[2]) :]
    assert shown.startswith(text[: int(named[2])])


def test_what_is_not_there_is_not_found() -> None:
    """A handle that nobody gave out and a place behind the end are told to the model."""
    store = MemoryResults()
    store.put("h", "text")
    read_more = result_reader(store)
    with pytest.raises(NotFound, match="handle 'g'"):
        read_more("g")
    with pytest.raises(NotFound) as raised:
        read_more("g" * 100_000)
    assert len(str(raised.value)) < 200
    with pytest.raises(NotFound, match="character 4"):
        read_more("h", 4)
    assert read_more.name == "read_more"
    assert read_more.definition.idempotent


def test_readers_that_cannot_work_are_refused() -> None:
    """A reader has a store, and a bound of 400 at least."""
    with pytest.raises(InvalidValueError):
        result_reader(MemoryResults(), max_bytes=10)
    wrong: Any = {}
    with pytest.raises(MisuseError):
        result_reader(wrong)
