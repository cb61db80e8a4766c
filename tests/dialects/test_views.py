"""The laws of views on the wire: valid in every dialect, steady between cuts, each to its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    Transcript,
    TurnRequest,
)
from lutum_py.errors import InvalidValueError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import Cache
from lutum_py.window import View
from tests.profiles import scaled

from .every_dialect import KEYS, OF_LIBRARY, WIRES
from .format_rules import refused
from .growing import SPOKEN, Tools, closed, cut, dialect_of, grow
from .plain import is_array, is_object
from .recordings import RECORDED_DIALECTS, Recording, answered, recordings

DEFINITIONS = Tools.definitions()
SLOW = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=scaled(60),
)


def started(data: st.DataObject) -> Transcript:
    transcript = Transcript()
    for text in data.draw(st.lists(SPOKEN, max_size=2)):
        transcript.push(Message("system", text))
    transcript.push(Message("user", data.draw(SPOKEN)))
    return transcript


def body_of(
    name: str, view: View, transcript: Transcript, cache: Cache | None = None
) -> dict[str, Any]:
    request = TurnRequest(items=view.of(transcript), tools=DEFINITIONS, cache=cache)
    body: dict[str, Any] = dialect_of(name).encode_request(request)
    return body


MARKERS = {key for wire in WIRES.values() for key in wire.MARKERS}


def without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_markers(v) for k, v in value.items() if k not in MARKERS}
    if not isinstance(value, list):
        return value
    # Where a mark is an object of its own, nothing of it is left.
    return [left for each in value if (left := without_markers(each)) or not each]


@SLOW
@given(data=st.data())
def test_every_view_of_a_valid_transcript_is_valid_in_every_dialect(data: st.DataObject) -> None:
    """Wherever it is cut, and whoever said what, no provider refuses what is sent; a model that
    refuses what a provider would takes it too, and nothing is said in the transcript.
    """
    transcript, view = started(data), View()
    model = ScriptedModel(lambda _: ScriptedModel.text("yes"))
    for number in range(data.draw(st.integers(1, 8))):
        grow(data, transcript, number, instruct=True)
        if data.draw(st.booleans()):
            before = transcript.dump_json()
            view = cut(data, view, transcript)
            assert transcript.dump_json() == before
    model.respond_sync(TurnRequest(items=view.of(transcript)))
    for name in OF_LIBRARY:
        body = body_of(name, view, transcript)
        assert refused(name, body) == []
        assert dialect_of(name).check(body) == []


@pytest.mark.parametrize("name", OF_LIBRARY)
@SLOW
@given(data=st.data())
def test_a_request_is_the_last_one_with_something_at_its_end(
    name: str, data: st.DataObject
) -> None:
    """While the view is the same, what was sent is the beginning of what is sent, byte for byte,
    cache markers aside, and the rest of the body does not change.
    """
    transcript, view = started(data), View()
    cache = data.draw(st.sampled_from([None, Cache(turns=1), Cache(turns=2)]))
    last, last_view = without_markers(body_of(name, view, transcript, cache)), view
    for number in range(data.draw(st.integers(2, 8))):
        for _ in range(data.draw(st.integers(1, 2))):
            grow(data, transcript, number, instruct=False)
        if not data.draw(st.integers(0, 2)):
            view = cut(data, view, transcript)
        body = without_markers(body_of(name, view, transcript, cache))
        if view is last_view:
            assert closed(name, body).startswith(closed(name, last))
            key = next(iter(last))
            assert {k: v for k, v in body.items() if k != key} == {
                k: v for k, v in last.items() if k != key
            }
        last, last_view = body, view


@pytest.mark.parametrize("name", OF_LIBRARY)
@SLOW
@given(data=st.data())
def test_what_is_kept_of_a_rendering_is_what_would_be_rendered(
    name: str, data: st.DataObject
) -> None:
    """However a caller spoils the bodies that it is given, each request is what a transcript that
    was never sent before gives, ephemeral messages included.
    """
    transcript, view = started(data), View()
    for number in range(data.draw(st.integers(1, 6))):
        place = len(transcript)
        grow(data, transcript, number, instruct=True)
        if not data.draw(st.integers(0, 2)):
            view = cut(data, view, transcript)
        asides = [Message("user", "by the way"), Message("system", "by the way")]
        said = [(place, data.draw(st.sampled_from(asides)))] if data.draw(st.booleans()) else []
        items = view.of(transcript, ephemeral=said)
        model = data.draw(st.sampled_from([None, "scripted", "another"]))
        encode = partial(dialect_of(name).encode_request, model=model)
        fresh = encode(TurnRequest(items=list(items)))
        body = encode(TurnRequest(items=items))
        assert body == fresh
        assert len(body.losses) == len(fresh.losses)
        _spoil(body)
        items = view.of(Transcript.load_json(transcript.dump_json()), ephemeral=said)
        assert encode(TurnRequest(items=items)) == fresh


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_no_two_bodies_share_what_can_be_changed(name: str) -> None:
    """However a conversation goes on, no object and no list stands in two of its bodies."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    data = '{"a":[{"b":[1,[2,{}]]},{"c":{}}],"d":{"e":"f"}}'
    bodies: list[dict[str, Any]] = []
    for number in range(5):
        calls = [
            ToolMetadata(id=f"c{number}_{at}", name="search", arguments=data)
            for at in range(number)
        ]
        results = [
            ToolResult(id=call.id, name=call.name, arguments=data, result=data) for call in calls
        ]
        # What is said before a call goes into one content with it in Gemini.
        transcript.append_turn(AssistantTurn(text="So."))
        bodies += [body_of(name, View(), transcript) for _ in range(2)]
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=calls), results))
        bodies += [body_of(name, View(), transcript) for _ in range(2)]
    seen: set[int] = set()
    for body in bodies:
        held = {id(each) for each in _held_by(body[KEYS[name]])}
        assert not held & seen
        seen |= held


def _held_by(value: Any) -> Iterator[Any]:
    if is_object(value) or is_array(value):
        yield value
    for part in value.values() if is_object(value) else value if is_array(value) else ():
        yield from _held_by(part)


def test_what_a_cached_content_covers_is_not_sent_nor_what_was_said_aside_in_it() -> None:
    """Behind a cached content, a request goes on with what is kept, as with a list of the items.

    What was said aside among what the content covers is told as a loss.
    """
    transcript = Transcript()
    for number in range(3):
        transcript.push(Message("user", f"q{number}"))
        transcript.append_turn(AssistantTurn(text=f"a{number}"))
    gemini, cache = (
        dialect_of("gemini_generate_content"),
        Cache(content="cachedContents/1", covers=2),
    )
    aside = Message("user", "by the way")
    bodies = [
        gemini.encode_request(TurnRequest(items=items, cache=cache))
        for items in (
            list(transcript),
            View().of(transcript),
            View().of(transcript, ephemeral=[(1, aside)]),
            View().of(transcript, ephemeral=[(6, aside)]),
        )
    ]
    said = [content["parts"][0]["text"] for content in bodies[0]["contents"]]
    assert said == ["q1", "a1", "q2", "a2"]
    assert bodies[1] == bodies[2] == bodies[0]
    assert [[loss.where for loss in body.losses] for body in bodies] == [
        [],
        [],
        ["ephemeral[0]"],
        [],
    ]
    assert bodies[3]["contents"][:-1] == bodies[0]["contents"]
    assert bodies[3]["contents"][-1]["parts"] == [{"text": "by the way"}]


def test_what_is_said_aside_does_not_move_what_a_cached_content_covers() -> None:
    """A content ends where a round does or does not, whatever else this one request says."""
    call = ToolMetadata(id="c1", name="search", arguments='{"query":"x"}')
    result = ToolResult(id="c1", name="search", arguments=call.arguments, result='"y"')
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))
    transcript.push(Message("user", "On"))
    gemini = dialect_of("gemini_generate_content")
    for covers, is_inside in ((0, False), (1, False), (2, True), (3, False)):
        for place in (0, 1, 3, 4):
            items = View().of(transcript, ephemeral=[(place, Message("user", "by the way"))])
            cache = Cache(content="cachedContents/1", covers=covers)
            request = TurnRequest(items=items, cache=cache)
            if is_inside:
                with pytest.raises(InvalidValueError, match=r"inside of a round: items\[2\]"):
                    gemini.encode_request(request)
                continue
            said = gemini.encode_request(request)["contents"]
            answers = sum("functionResponse" in part for each in said for part in each["parts"])
            assert answers == (covers < 3)
    too_far = Cache(content="cachedContents/1", covers=5)
    with pytest.raises(InvalidValueError, match="covers=5, but the request has 4 items"):
        gemini.encode_request(TurnRequest(items=items, cache=too_far))


def _spoil(value: Any) -> None:
    for part in list(value.values() if isinstance(value, dict) else value):
        if isinstance(part, dict | list):
            _spoil(part)
    value.clear()


@pytest.mark.parametrize("home", RECORDED_DIALECTS)
def test_recorded_traffic_joined_to_one_conversation_can_be_cut(home: str) -> None:
    """What real models said, joined to a conversation of hundreds of items, is valid in every
    dialect however it is cut, steady between cuts, and whole again without a view.
    """
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    view = View()
    last: dict[str, str] = {}
    cuts = 0
    for number, one in enumerate(recordings(home, answered, at_least=100)):
        committed = _round_of(home, one, number)
        if committed is None:
            continue
        if committed.results:
            transcript.append_round(committed)
        else:
            transcript.append_turn(committed.turn)
        transcript.push(Message("user", f"Go on, {number}"))
        before = view
        view = view.fit(transcript, limit_tokens=2_500, at_least=1_000, keep_last=2)
        if number % 50 == 7:
            view = view.cap_results(transcript, max_bytes=300)
        if number % 90 == 31:
            stop = next(at for at in range(len(transcript) - 4, 0, -1) if _begins(transcript, at))
            start = max((cut.stop for cut in view.cuts if cut.is_span), default=1)
            if start < stop and _begins(transcript, start):
                view = view.summarise(transcript, (start, stop), "They talked.")
        cuts += view is not before
        if number % 5 and view is before:
            continue
        for name in OF_LIBRARY:
            body = body_of(name, view, transcript)
            assert refused(name, body) == []
            assert dialect_of(name).check(body) == []
            if view is before and name in last:
                assert closed(name, body).startswith(last[name])
            last[name] = closed(name, body)
    print(f"\n{home}: {len(transcript)} items, {cuts} cuts, {len(view.of(transcript))} sent")
    assert len(transcript) > 200
    assert cuts >= 3
    assert len(view.of(transcript)) < len(transcript)


def _begins(transcript: Transcript, at: int) -> bool:
    return not isinstance(transcript[at], ToolResult)


def _round_of(home: str, one: Recording, number: int) -> CommittedRound | None:
    """Give what a provider said, with results of all sizes; None where that is a stream or error.

    Ids that come in more than one recording are left to the recording that had them first.
    """
    if one.stream:
        return None
    turn = dialect_of(home).decode(copy.deepcopy(one.response))
    ids = {call.id for call in turn.tool_calls}
    if len(ids) < len(turn.tool_calls) or _SEEN.setdefault(home, set()) & ids:
        return None
    _SEEN[home] |= ids
    results = [
        ToolResult(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            result=json.dumps("word " * (number % 100)),
        )
        for call in turn.tool_calls
    ]
    return CommittedRound(turn, results)


_SEEN: dict[str, set[str]] = {}
