"""The API generateContent: calls whose arguments come in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import Toolset
from lutum_py.dialects import gemini_generate_content as dialect
from lutum_py.errors import DialectError
from lutum_py.streaming import ArgumentsDelta, CallCompleted, CallStarted
from tests.cases import over

from .gemini_wire import CALL, response
from .test_gemini_generate_content_stream import chunk, fed


def piece(path: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
    """A piece of an argument."""
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def part(*pieces: Any, more: bool = True, **fields: Any) -> dict[str, Any]:
    """A piece of a call."""
    call: dict[str, Any] = {**fields}
    if pieces:
        call["partialArgs"] = list(pieces)
    return {"functionCall": {**call, "willContinue": True} if more else call}


BEGIN = {**part(name="look", id="g1"), "thoughtSignature": "c2k="}
END = part(more=False)
FINISH = chunk(finishReason="STOP")
ARGUMENTS = {
    "place": {"name": "Berlin, \u00e4", "at": [1, 2.5, True, None]},
    "a b": [{"c": "x"}, {"c": ""}],
    "it's": 'a "b"',
}
PIECES = [
    piece("$.place.name", stringValue="Ber", more=True),
    piece("$.place.name", stringValue="lin, ", more=True),
    piece("$.place.name", stringValue="\u00e4"),
    *(piece("$.place.at[0]", numberValue=1.0), piece("$.place.at[1]", numberValue=2.5)),
    *(piece("$.place.at[2]", boolValue=True), piece("$['place'].at[3]", nullValue="NULL_VALUE")),
    piece("$['a b'][0]['c']", stringValue="x"),
    piece('$["a b"][1].c', more=True),
    piece("$['a b'][1].c"),
    piece("$['it\\'s']", stringValue='a "b"'),
]


@over("size", [1, 2, 5, 20])
@over("as_dumped", [False, True])
def test_a_call_in_pieces_is_the_call_as_a_whole(size: int, as_dumped: bool) -> None:
    """Cut in any way, the turn and its payload are those of the call in one piece, as an SDK dumps
    it too; what comes before and after stays in its place.
    """
    pieces = [part(*PIECES[at : at + size]) for at in range(0, len(PIECES), size)]
    parts = [{"text": "Well."}, BEGIN, *pieces, END, CALL]
    events: list[Any] = [{"responseId": "r1", "modelVersion": "gemini", **chunk()}]
    events += [chunk(each) for each in parts]
    if as_dumped:
        text = json.dumps(events)
        for name, dumped in [
            *(("functionCall", "function_call"), ("partialArgs", "partial_args")),
            *(("jsonPath", "json_path"), ("stringValue", "string_value")),
            *(("numberValue", "number_value"), ("willContinue", "will_continue")),
        ]:
            text = text.replace(f'"{name}"', f'"{dumped}"')
        events = json.loads(text)
    told, decoder = fed(*events, FINISH)
    turn = decoder.finish()
    whole = {"functionCall": {"name": "look", "id": "g1", "args": ARGUMENTS}}
    same = dialect.decode(response({"text": "Well."}, {**whole, "thoughtSignature": "c2k="}, CALL))
    assert turn.tool_calls == same.tool_calls
    assert dialect.messages([turn]) == dialect.messages([same])
    assert dialect.decode(turn.payload) == turn
    of_call = [each for each in told if getattr(each, "index", None) == 0]
    assert [type(each) for each in of_call] == [CallStarted, ArgumentsDelta, CallCompleted]
    assert (of_call[0].id, of_call[0].name) == ("g1", "look")
    assert of_call[2].metadata == turn.tool_calls[0]
    assert [each for each in told if isinstance(each, CallStarted)][1].name == "echo"


def test_a_call_needs_no_end_of_its_own() -> None:
    """Its last piece may hold arguments, or be the only one; `args` may stand beside pieces."""
    last = part(piece("$.a", stringValue="x"), more=False, name="look", args={"b": 1})
    _, decoder = fed(chunk(last), FINISH)
    (call,) = decoder.finish().tool_calls
    assert json.loads(call.arguments) == {"a": "x", "b": 1}
    told, decoder = fed(chunk(part(piece("$.a", stringValue="x"))), chunk(part(name="look")))
    assert [type(each) for each in told] == [CallStarted]
    told, decoder = fed(chunk(part()), chunk(part(name="look", id="g1", more=False)), FINISH)
    assert [(call.id, call.name) for call in decoder.finish().tool_calls] == [("g1", "look")]


def test_the_id_of_a_call_is_the_one_that_it_began_with() -> None:
    """An id that comes after the call was told changes nothing."""
    told, decoder = fed(chunk(part(name="look")), chunk(part(id="late", more=False)), FINISH)
    (call,) = decoder.finish().tool_calls
    assert {each.id for each in told if isinstance(each, CallStarted)} == {call.id}
    assert call.id != "late"


def test_another_candidate_has_pieces_of_its_own() -> None:
    """Only the first candidate is the turn; the pieces of another are kept as they came."""
    other = {"index": 1, "content": {"parts": [part(name="other")]}}
    _, decoder = fed(chunk({"text": "Hi"}), {"candidates": [other]}, FINISH)
    turn = decoder.finish()
    assert (turn.text, turn.tool_calls) == ("Hi", ())


@over("reason", ["MAX_TOKENS", "OTHER", "SAFETY"])
def test_a_call_that_a_limit_or_a_filter_cut_off_stays_and_is_not_run(reason: str) -> None:
    """What came of it is in the turn, as an issue that the model reads."""
    events = [chunk(BEGIN), chunk(part(piece("$.path", stringValue="/srv", more=True)))]
    _, decoder = fed(*events, chunk(finishReason=reason))
    turn = decoder.finish()
    assert json.loads(turn.tool_calls[0].arguments) == {"path": "/srv"}
    assert turn.is_truncated or turn.is_blocked
    outcome: Any = Toolset.read_turn(turn)
    assert [each.metadata.id for each in outcome.round.recoverable_tool_call_issues] == ["g1"]
    outcome.round.discard()


def test_a_call_that_never_ends_breaks_the_stream() -> None:
    """A turn that ends well has no call that is not whole: the error has what came before it."""
    for events in ([FINISH], []):
        _, decoder = fed(chunk({"text": "Well."}), chunk(BEGIN), *events)
        with pytest.raises(DialectError) as caught:
            decoder.finish()
        turn: Any = caught.value.turn
        assert (turn.text, turn.tool_calls) == ("Well.", ())
        assert ("before the call of 'look' is whole" in str(caught.value)) == bool(events)


WRONG = [
    "",
    "$",
    "a",
    "$.",
    "$..a",
    "$.a[",
    "$.a[-1]",
    "$.a[*]",
    "$['a",
    "$['\\x']",
    "$" + ".a" * 300,
]


@over(
    "pieces, problem",
    [
        ([{"stringValue": "x"}], "the field 'jsonPath' is missing"),
        *[([piece(path, stringValue="x")], "is no path to an argument") for path in WRONG],
        ([piece("$[0]", stringValue="x")], "leads nowhere"),
        ([piece("$.a[1]", stringValue="x")], "leads nowhere"),
        ([piece("$.a[999999999]", numberValue=1)], "leads nowhere"),
        ([piece("$.a", stringValue="x"), piece("$.a.b", stringValue="x")], "leads nowhere"),
        ([piece("$.a.b", stringValue="x"), piece("$.a[0]", stringValue="x")], "leads nowhere"),
        ([3], "expected an object"),
    ],
)  # fmt: skip
def test_a_piece_that_leads_nowhere_is_an_error(pieces: list[Any], problem: str) -> None:
    """A path that cannot be followed breaks the stream, and costs no memory."""
    with pytest.raises(DialectError, match=problem):
        fed(chunk(BEGIN), chunk(part(*pieces)))


def test_calls_in_pieces_follow_each_other() -> None:
    """A call that begins before another is whole is an error, since nobody knows whose it is."""
    with pytest.raises(DialectError, match="a call of 'other' begins before that of 'look'"):
        fed(chunk(BEGIN), chunk(part(name="other")))
    _, decoder = fed(chunk(BEGIN, END, part(name="other"), END), FINISH)
    assert [call.name for call in decoder.finish().tool_calls] == ["look", "other"]
