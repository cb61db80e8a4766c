"""The laws of the scripted model: it answers, it records, and it refuses what a provider would."""

from __future__ import annotations

import asyncio
import gc
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, Session, ToolMetadata, Transcript, TurnRequest, Usage
from lutum_py.errors import DeveloperError, DialectError, MisuseError
from lutum_py.streaming import ArgumentsDelta
from lutum_py.testing import ScriptedModel, ScriptExhausted
from lutum_py.turns import (
    ReasoningItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    TranscriptFault,
    faults_in,
)
from lutum_py.typing import TranscriptView
from lutum_py.window import View
from tests.round_tools import Shop, adds, answer, done, forged, needs, turn


def test_a_list_is_answered_in_order() -> None:
    """A list of turns is given one by one, to sync and async code alike, and then is at its end."""
    model = ScriptedModel([ScriptedModel.text("one"), ScriptedModel.text("two")])
    request = TurnRequest(items=[])
    assert model.respond_sync(request).text == "one"
    assert asyncio.run(model.respond(request)).text == "two"
    with pytest.raises(ScriptExhausted, match="no turn for request 3") as caught:
        model.respond_sync(request)
    assert isinstance(caught.value, DeveloperError)
    assert model.requests == [request] * 3


def test_what_is_no_item_is_refused() -> None:
    """A request that holds something else than messages, turns and results is refused, as it is."""
    model = ScriptedModel([ScriptedModel.text("one")])
    other: Any = {"role": "user", "content": "Hello"}
    with pytest.raises(DialectError, match=r"items\[0\]: .* is not an item of a transcript"):
        model.respond_sync(TurnRequest(items=[other]))


def test_a_function_is_asked() -> None:
    """A function of the request makes each turn, seeing what was said."""
    model = ScriptedModel(lambda request: ScriptedModel.text(f"{len(request.items)} so far"))
    session = Session()
    session.push_user("a")
    assert answer(session.text_turn(model).collect_sync()) == "1 so far"
    session.push_user("b")
    assert answer(session.text_turn(model).collect_sync()) == "3 so far"


def test_a_script_by_turn_goes_on_in_another_process() -> None:
    """By turn, what holds n turns of the model is answered with entry n, however often asked."""

    def model() -> ScriptedModel:
        return ScriptedModel(
            [ScriptedModel.text("one"), ScriptedModel.text("two"), TimeoutError("slow")],
            by_turn=True,
        )

    session, again = Session(), model()
    for said in ("one", "two"):
        session.push_user("on")
        assert again.respond_sync(session.text_turn(again).request()).text == said
        assert answer(session.text_turn(again).collect_sync()) == said
        with pytest.raises(AssertionError):
            again.assert_exhausted()
        again = model()
    session.push_user("on")
    cut = View().drop_rounds(session, span=(0, 4))
    with pytest.raises(TimeoutError, match="slow"):
        session.text_turn(again).view(cut).collect_sync()
    again.assert_exhausted()
    with pytest.raises(ScriptExhausted, match="for what holds 4 turns of the model, and ends with"):
        again.respond_sync(TurnRequest(items=[ScriptedModel.text("x")] * 4))
    with pytest.raises(MisuseError, match="Leave `by_turn` out"):
        ScriptedModel(lambda request: ScriptedModel.text("x"), by_turn=True)


def test_a_script_by_turn_is_used_up_by_the_conversation_that_went_furthest() -> None:
    """Many conversations may be answered by turn, and one that begins leaves nothing over again."""
    model = ScriptedModel([ScriptedModel.text("one"), ScriptedModel.text("two")], by_turn=True)
    first, second = Session(), Session()
    for session, said in ((first, "one"), (first, "two"), (second, "one")):
        session.push_user("on")
        assert answer(session.text_turn(model).collect_sync()) == said
    model.assert_exhausted()
    wrong = ScriptedModel([ScriptedModel.text("one"), "two"], by_turn=True)  # type: ignore[list-item]
    with pytest.raises(MisuseError, match="Entry 2 of the script is 'two'"):
        wrong.respond_sync(TurnRequest(items=[Message("user", "on"), ScriptedModel.text("one")]))


def test_a_script_may_raise() -> None:
    """An exception in the place of a turn is raised there, and the script goes on after it."""
    model = ScriptedModel([TimeoutError("slow"), ScriptedModel.text("x")])
    request = TurnRequest(items=[])
    with pytest.raises(TimeoutError, match="slow"):
        model.respond_sync(request)
    assert model.respond_sync(request).text == "x"
    asked = ScriptedModel(lambda request: ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        list(asked.stream_sync(request))
    assert len(asked.requests) == 1


ENDS: list[tuple[list[Any], str]] = [
    ([], "no item at all"),
    ([Message("user", "Hello")], "a user message: 'Hello'"),
    ([ScriptedModel.text("Hi")], "a turn of the model: 'Hi'"),
    (
        [turn(*adds(1)), forged(turn(*adds(1)).tool_calls[0], "7")],
        r"the result of call 'c0' \(add\): '7'",
    ),
]


@pytest.mark.parametrize(("items", "end"), ENDS)
def test_an_exhausted_script_says_what_it_was_asked(items: list[Any], end: str) -> None:
    """The error names the last thing that was said, to which there is no answer."""
    with pytest.raises(ScriptExhausted, match=f"request 1, which ends with {end}"):
        ScriptedModel([]).respond_sync(TurnRequest(items=items))


def test_what_is_left_of_a_script_can_be_asked_for() -> None:
    """A loop that ends too early is found, as often as one asks; a function has no end."""
    model = ScriptedModel([ScriptedModel.text("one"), ScriptedModel.text("two")])
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"ended after 0 of 2 turns .*'one'"):
            model.assert_exhausted()
    model.respond_sync(TurnRequest(items=[]))
    model.respond_sync(TurnRequest(items=[]))
    model.assert_exhausted()
    ScriptedModel(lambda request: ScriptedModel.text("x")).assert_exhausted()


@pytest.mark.parametrize("script", ["Hi", b"Hi", None, 5, {"text": "Hi"}, ScriptedModel.text("Hi")])
def test_what_is_no_script_is_refused_at_once(script: Any) -> None:
    """A script is a list of turns or a function; all else is refused when the model is made."""
    with pytest.raises(MisuseError):
        ScriptedModel(script)


def test_what_a_function_gives_is_told_as_such() -> None:
    """A function that gives no turn is named as the one that did, with the request."""
    model = ScriptedModel(lambda request: "Hi")  # type: ignore[arg-type, return-value]
    with pytest.raises(MisuseError, match=r"For request 1 the script's function gave 'Hi'\. It gi"):
        model.respond_sync(TurnRequest(items=[]))


@pytest.mark.parametrize("calls", [("c1", "forecast", {}), [("c1", "forecast")], [None]])
def test_what_is_no_triple_is_refused(calls: Any) -> None:
    """A call that is not written as a triple is refused with a line that is."""
    with pytest.raises(MisuseError) as caught:
        ScriptedModel.tool_calls(*calls)
    assert str(caught.value) == (
        "A scripted call is a triple (id, name, arguments), as in "
        f"tool_calls(('c1', 'forecast', {{...}})), not {calls[0]!r}."
    )


@pytest.mark.parametrize("given", [b"{}", float("nan"), {"city": object()}])
def test_arguments_that_no_model_could_send_are_refused(given: Any) -> None:
    """What is neither text nor JSON data is told where the script is written."""
    with pytest.raises(MisuseError, match=r"scripted call 'c1' are not JSON data: .* Pass plain"):
        ScriptedModel.tool_calls(("c1", "forecast", given))


def test_the_error_at_the_end_is_called_as_it_is_imported() -> None:
    """What a traceback calls the error is where it can be imported from, and it pickles."""
    assert ScriptExhausted.__module__ == "lutum_py.testing"
    assert type(pickle.loads(pickle.dumps(ScriptExhausted("over")))) is ScriptExhausted


@pytest.mark.parametrize("script", [[None], [{"text": "Hi"}]])
def test_what_is_no_turn_is_refused(script: Any) -> None:
    """A script of something else than turns is told which entry it is, and what makes a turn."""
    with pytest.raises(MisuseError, match=r"Entry 1 of the script is .* `ScriptedModel\.text`"):
        ScriptedModel(script).respond_sync(TurnRequest(items=[]))


def test_turns_are_made_from_triples() -> None:
    """Calls are given as text or as data, with any text and finish reason beside them."""
    made = ScriptedModel.tool_calls(
        ("a", "add", '{"a": 1}'), ("b", "add", {"a": "é"}), text="Hm", finish_reason=None
    )
    assert made.tool_calls == (
        ToolMetadata(id="a", name="add", arguments='{"a": 1}'),
        ToolMetadata(id="b", name="add", arguments='{"a":"é"}'),
    )
    assert (made.text, made.finish_reason) == ("Hm", None)
    assert ScriptedModel.tool_calls().finish_reason == "tool_calls"
    assert ScriptedModel.text("x", finish_reason="length").finish_reason == "length"


def test_a_turn_reports_the_tokens_that_it_is_given() -> None:
    """What a turn cost is said beside it, and is counted like a provider's."""
    cheap, dear = Usage(input_tokens=10, output_tokens=2), Usage(input_tokens=9_000)
    model = ScriptedModel(
        [
            ScriptedModel.tool_calls(("c1", "add", {"a": 1}), usage=dear),
            ScriptedModel.text("Done.", usage=cheap),
        ]
    )
    session = Session()
    session.push_user("Add.")
    round_ = needs(session.text_turn(model).tools(Shop).collect_sync())
    assert round_.usage == dear
    round_.commit(session, [call.call_sync() for call in round_.tool_calls])
    answer(session.text_turn(model).tools(Shop).collect_sync())
    assert session.transcript.usage() == dear + cheap


tool_round = turn(*adds(1))
BROKEN: dict[str, list[Any]] = {
    "an open call": [Message("user", "a"), tool_round],
    "a result of nothing": [forged(tool_round.tool_calls[0])],
    "a message between": [tool_round, Message("user", "a"), forged(tool_round.tool_calls[0])],
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_invalid_transcript_is_refused(case: str) -> None:
    """A request that a provider would refuse is refused, unless checking is off."""
    request = TurnRequest(items=BROKEN[case])
    model = ScriptedModel([ScriptedModel.text("x")])
    with pytest.raises(DialectError, check=lambda error: error.where == "items") as caught:
        model.respond_sync(request)
    assert (caught.value.dialect, caught.value.where) == ("scripted", "items")
    assert model.requests == [request]
    lenient = ScriptedModel([ScriptedModel.text("x")], check=False)
    assert lenient.respond_sync(request).text == "x"


def corrupted(transcript: Transcript, *items: Any) -> Transcript:
    transcript._items.extend(items)
    return transcript


def test_a_transcript_that_was_tampered_with_is_refused() -> None:
    """A call that was pushed past the checks into a transcript is found, again and again."""
    session = Session()
    session.push_user("a")
    model = ScriptedModel(lambda request: ScriptedModel.text("x"))
    session.text_turn(model).collect_sync()
    corrupted(session.transcript, tool_round)
    for _ in range(2):
        with pytest.raises(DialectError, check=lambda error: error.where == "items"):
            session.text_turn(model).collect_sync()


def test_an_earlier_view_is_judged_by_itself() -> None:
    """What is wrong with a later part of a transcript does not count against an earlier view."""
    transcript = Transcript()
    transcript.push(Message("user", "a"))
    early = transcript.view()
    model = ScriptedModel([ScriptedModel.text("x")])
    corrupted(transcript, tool_round)
    with pytest.raises(DialectError, check=lambda error: error.where == "items"):
        model.respond_sync(TurnRequest(items=transcript.view()))
    assert model.respond_sync(TurnRequest(items=early)).text == "x"


def test_a_side_remark_between_call_and_result_is_refused() -> None:
    """An ephemeral item that parts a call from its result makes the request invalid."""
    transcript = Transcript()
    corrupted(transcript, tool_round, forged(tool_round.tool_calls[0]))
    model = ScriptedModel([ScriptedModel.text("x")] * 3)
    aside = Message("user", "aside")
    for place in (0, 2):
        view = TranscriptView(transcript, 2, ((place, aside),))
        assert model.respond_sync(TurnRequest(items=view)).text == "x"
    view = TranscriptView(transcript, 2, ((1, aside),))
    with pytest.raises(DialectError, check=lambda error: error.where == "items"):
        model.respond_sync(TurnRequest(items=view))


def test_checking_costs_no_more_in_a_long_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item of a transcript is checked once, however many requests it is in."""
    looked_at: list[int] = []

    def counting(items: Sequence[Any]) -> list[TranscriptFault]:
        looked_at.append(len(items))
        return faults_in(items)

    monkeypatch.setattr("lutum_py.testing._scripted_model.faults_in", counting)
    session = Session()
    model = ScriptedModel(lambda request: turn((f"c{len(request.items)}", "add", {"a": 1})))
    for at in range(30):
        session.push_user("Go")
        if at % 2:
            session.push_ephemeral_user("aside")
        tool_round = needs(session.text_turn(model).tools(Shop).collect_sync())
        tool_round.commit(session, done(tool_round.tool_calls))
    assert looked_at == [1] + [3] * 29


def test_transcripts_are_told_apart() -> None:
    """Each transcript is checked for itself, and one that is gone is forgotten."""
    model = ScriptedModel(lambda request: ScriptedModel.text("x"))
    first, second = Session(), Session()
    for session in (first, second, first):
        session.push_user("a")
        session.text_turn(model).collect_sync()
    early = first.transcript.view()
    first.push_user("b")
    assert model.respond_sync(TurnRequest(items=first.transcript.view())).text == "x"
    assert model.respond_sync(TurnRequest(items=early)).text == "x"
    assert len(model._taken) == 2
    model.requests.clear()
    del first, second, session, early
    gc.collect()
    assert model._taken == {}


def test_a_stream_has_every_part_of_a_turn() -> None:
    """Texts, reasoning, calls and usage come as events, in their order."""
    call = ToolMetadata(id="c", name="add", arguments='{"a":1}')
    whole = AssistantTurn(
        items=[
            ReasoningItem("Hm"),
            ReasoningItem(""),
            ServerToolItem("search", {}),
            TextItem("Hi"),
            ToolCallItem(call),
        ],
        usage=Usage(input_tokens=1),
    )
    events = list(ScriptedModel([whole]).stream_sync(TurnRequest(items=[])))
    assert [type(event).__name__ for event in events] == [
        "ReasoningDelta",
        "TextDelta",
        "CallStarted",
        "ArgumentsDelta",
        "ArgumentsDelta",
        "CallCompleted",
        "UsageReported",
        "TurnFinished",
    ]


def test_arguments_that_are_no_json_are_streamed_too() -> None:
    """What cannot be read of the arguments so far is shown as nothing, and the text comes whole."""
    model = ScriptedModel([ScriptedModel.tool_calls(("c", "add", "no json"))])
    events = list(model.stream_sync(TurnRequest(items=[])))
    pieces = [event for event in events if isinstance(event, ArgumentsDelta)]
    assert "".join(piece.text for piece in pieces) == "no json"
    assert [piece.partial for piece in pieces] == [{}, {}]


def test_a_stream_can_be_read_without_a_session() -> None:
    """The scripted model's own stream ends with the finished turn."""

    async def read() -> list[str]:
        model = ScriptedModel([ScriptedModel.text("Hi")])
        return [type(event).__name__ async for event in model.stream(TurnRequest(items=[]))]

    assert asyncio.run(read()) == ["TextDelta", "TurnFinished"]
