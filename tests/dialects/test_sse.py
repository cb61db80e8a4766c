"""The text of an event stream becomes the JSON of its events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.dialects import openai_chat, sse
from lutum_py.errors import DialectError
from lutum_py.streaming import TextDelta
from tests.cases import over

from .mutations import streams
from .recordings import chunks_of
from .wire_laws import DIALECTS

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.lists(st.dictionaries(st.text(max_size=6), json_values, max_size=4), max_size=5)
cuts = st.lists(st.integers(0, 5_000), max_size=30)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(objects=objects, cuts=cuts, end=ends, done=st.booleans())
def test_events_survive_any_chunking(
    objects: list[Any], cuts: list[int], end: str, done: bool
) -> None:
    """However lines end and wherever the bytes are cut, the events are those that were sent."""
    lines = [f": a comment{end}", f"retry: 10{end}"]
    for number, each in enumerate(objects):
        lines += [f"event: e{end}", f"id: {number}{end}", f"data: {json.dumps(each)}{end}", end]
    lines += [f"data: [DONE]{end}", end] if done else []
    assert list(sse.events(chunks_of("".join(lines), cuts))) == objects


@given(objects=objects, cuts=cuts, indent=st.sampled_from([None, 2]))
def test_a_json_array_is_read_as_it_comes(
    objects: list[Any], cuts: list[int], indent: int | None
) -> None:
    """A stream that is one JSON array gives its objects, wherever the bytes are cut."""
    text = json.dumps(objects, indent=indent, ensure_ascii=False)
    assert list(sse.events(chunks_of(text, cuts))) == objects


@given(objects=objects, cuts=cuts)
def test_one_object_a_line_is_read_as_it_comes(objects: list[Any], cuts: list[int]) -> None:
    """A stream of objects one after the other gives these objects, wherever the bytes are cut."""
    text = "".join(json.dumps(each) + "\n" for each in objects)
    assert list(sse.events(chunks_of(text, cuts))) == objects


def test_events_come_as_soon_as_they_are_whole() -> None:
    """An event is given with the chunk that completes it, and not later."""
    splitter = sse.EventSplitter()
    assert splitter.feed("") == []
    assert splitter.feed('data: {"a": 1}\n') == []
    assert splitter.feed("\n") == [{"a": 1}]
    array = sse.EventSplitter()
    assert array.feed('[{"a": "\\') == []
    assert array.feed('""},') == [{"a": '"'}]


def test_the_data_of_one_event_may_take_several_lines() -> None:
    """The data lines of one event are joined by a line feed, with or without a space in front."""
    assert list(sse.events('data: {"a":\ndata:1}\n\n')) == [{"a": 1}]


def test_a_last_event_needs_no_blank_line() -> None:
    """A stream that ends without a blank line still gives its last event."""
    assert list(sse.events(b'data: {"a": 1}')) == [{"a": 1}]
    assert list(sse.events('data: {"a": 1}\r')) == [{"a": 1}]


def test_a_stream_of_nothing_has_no_events() -> None:
    """An empty stream, or one of comments only, gives no event and no error."""
    assert list(sse.events([])) == []
    assert list(sse.events(["\ufeff \n", ": ping\n\n"])) == []


async def test_events_come_from_asynchronous_chunks_too() -> None:
    """Chunks that come in asynchronously give the same events."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b'data: {"a": 1}\n\nda'
        yield b'ta: {"b": 2}'

    assert [event async for event in sse.aevents(chunks())] == [{"a": 1}, {"b": 2}]


@over(
    "text, problem, where",
    [
        ("<html>502 Bad Gateway</html>", "got a page", "event 0"),
        ('data: {}\n\ndata: {"a"\n\n', "not JSON", "event 1"),
        ("data: {} {}\n\n", "not JSON", "event 0"),
        ("data: 7\n\n", "expected an object", "event 0"),
        ('data: {"a": "b', r"the stream breaks off: '\{\"a\": \"b'", "event 0"),
        ("data: {}\n\ndata: 7", "expected an object", "event 1"),
        ('[{"a": 1}, {"b"', "breaks off", "event 1"),
        ('[{"a": 1}', "breaks off", "event 1"),
        ('{"a": 1', "breaks off", "event 0"),
        ("[1]", "expected an object", "event 0"),
        ('["a"]', "expected an object", "event 0"),
        ("[[{}]]", "expected an object", "event 0"),
        ("[{}]]", "unexpected ']'", "event 1"),
        ("[{}}]", "expected an object, got '}'", "event 1"),
        ("[{}] and so on", "expected an object", "event 1"),
        ("[{}] [{}]", "expected an object", "event 1"),
        ("{]", "not JSON", "event 0"),
        ('{"a": NaN}', "not JSON", "event 0"),
    ],
)
def test_what_is_no_event_is_an_error_that_says_where(text: str, problem: str, where: str) -> None:
    """Broken text is an error that numbers the event, never an event that was not sent."""
    with pytest.raises(DialectError, match=problem) as caught:
        list(sse.events(text))
    assert caught.value.where == where


@over("text", ["data: {}\n\ndata: 7\n\n", "[{}, 7]", "{} 7"])
def test_what_was_whole_before_a_broken_event_is_given(text: str) -> None:
    """An event that came before a broken one is given, also out of the same chunk."""
    stream = sse.events([text])
    assert next(stream) == {}
    with pytest.raises(DialectError):
        next(stream)


@pytest.mark.parametrize("raw", [b"data: \xff\xff", b"data: {}\n\n\xe2\x82"])
def test_bytes_that_are_no_text_are_an_error(raw: bytes) -> None:
    """Bytes that are not UTF-8, or break off inside a character, are an error."""
    with pytest.raises(DialectError, match="not UTF-8"):
        list(sse.events([raw]))


def raw_lines(events: list[Any]) -> list[str]:
    """A response of events, line by line, with all that may stand between them."""
    lines = [": started", "retry: 10"]
    for number, event in enumerate(events):
        lines += ["event: e", f"id: {number}", f"data: {json.dumps(event)}", "", ": alive", ""]
    return [*lines, "event", "data: [DONE]", "", "data:"]


@DIALECTS
@over("end", ["", "\n", "\r\n"])
@over("is_text", [True, False])
def test_a_stream_is_read_line_by_line(dialect: ModuleType, end: str, is_text: bool) -> None:
    """The lines of a response, as text or bytes, give what their events give."""
    for events in streams(dialect.NAME):
        lines = [line + end for line in raw_lines(events)]
        decoder, other = dialect.StreamDecoder(), dialect.StreamDecoder()
        read = [
            one for line in lines for one in decoder.feed_line(line if is_text else line.encode())
        ]
        assert [*read, *decoder.close()] == [
            *(one for event in events for one in other.feed(event)),
            *other.close(),
        ]
        assert decoder.finish() == other.finish()


@DIALECTS
@over("line", ["<html>", "data: {", '{"a"', "What?", b"data: \xff"])
def test_a_line_that_is_no_event_is_told(dialect: ModuleType, line: str | bytes) -> None:
    """A line that is neither JSON nor of an event stream is an error that says where it stood."""
    with pytest.raises(DialectError, check=lambda error: error.where == "event 0"):
        dialect.StreamDecoder().feed_line(line)


@over("cut", ["\u2028", "\u2029", "\x85"])
@over("keepends", [True, False])
@over("prefix", ["data: ", ""])
@over("said", ["one%stwo", "%s%sid: x%s: }", "%s"])
def test_a_line_that_was_cut_in_a_text_is_joined(
    cut: str, keepends: bool, prefix: str, said: str
) -> None:
    """`splitlines` and `iter_lines` of httpx cut at U+2028 and its like: no text is lost there."""
    text = said.replace("%s", cut)
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    body = f"{prefix}{json.dumps(chunk, ensure_ascii=False)}\n\n{prefix}[DONE]\n"
    decoder = openai_chat.StreamDecoder()
    for line in body.splitlines(keepends):
        decoder.feed_line(line)
    # Without its end, a line does not say what it was cut at.
    assert decoder.finish().text == (text if keepends else text.replace(cut, "\u2028"))


@over("after", [['data: {"choices": []}'], ["data: [DONE]"], [b': "'], []])
def test_a_line_that_stays_cut_is_an_error(after: list[str | bytes]) -> None:
    """A text that no later line completes is an error of that event; bytes are cut nowhere."""
    decoder = openai_chat.StreamDecoder()
    assert decoder.feed_line('data: {"choices": [{"delta": {"content": "one') == []
    with pytest.raises(DialectError, match="event 0: the event is not JSON"):
        for _ in [*map(decoder.feed_line, after), decoder.close()]:
            pass
    with pytest.raises(DialectError, match="event 0: the event is not JSON"):
        decoder.feed_line("data: {}")
    with pytest.raises(DialectError, match="event 0: the event is not JSON"):
        openai_chat.StreamDecoder().feed_line('data: {"choices": "one\n')


@over("line", [None, 3, ["data: {}"]])
def test_what_is_no_line_is_told(line: Any) -> None:
    """It is no event either; an event that was parsed already is read as one."""
    with pytest.raises(DialectError, match="expected an object"):
        openai_chat.StreamDecoder().feed_line(line)
    said: Any = {"id": "r", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
    assert openai_chat.StreamDecoder().feed_line(said) == [TextDelta("Hi")]


def test_an_object_on_a_line_of_its_own_is_an_event() -> None:
    """Hosts that stream one object a line, without the form of an event stream, are understood."""
    decoder = openai_chat.StreamDecoder()
    said = {"id": "r", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
    assert decoder.feed_line(json.dumps(said) + "\n") == [TextDelta("Hi")]
