"""The laws of final answers of a type: how they are asked for, read, committed and saved."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, RootModel, field_validator
from typing_extensions import TypedDict

from lutum_py import (
    Answer,
    AssistantTurn,
    Finished,
    NeedsTools,
    NoAnswer,
    Session,
    Toolset,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import MisuseError, ToolConstraintError, ToolDefinitionError, ToolInputError
from lutum_py.streaming import StreamEvent
from lutum_py.testing import ScriptedModel
from lutum_py.turns import RefusalItem, TextItem
from tests.cases import over


class Invoice(BaseModel):
    """What is to be paid."""

    total: float


class Refund(BaseModel):
    reason: str


class Numbers(RootModel[list[int]]): ...


@dataclass
class Point:
    x: int


class Pair(TypedDict):
    a: int


@tool_fn
def look(text: str) -> str:
    return text.upper()


@tool_fn(name="answer")
def taken() -> str:
    return ""


class Tools(Toolset):
    look = tool(look)


class Taken(Toolset):
    taken = tool(taken)


ANSWER = ("a1", "answer", '{"total": 3.5}')
CALL = ("c1", "look", '{"text": "x"}')


def asked(*calls: tuple[str, str, str], answer: Any = Invoice, tools: Any = Tools) -> Any:
    """What a turn of these calls comes to, with its session."""
    return said(ScriptedModel.tool_calls(*calls), answer=answer, tools=tools)


def said(turn: AssistantTurn, *, answer: Any = Invoice, tools: Any = Tools) -> Any:
    """What a turn comes to that was asked for an answer, with its session."""
    session = Session()
    session.push_user("How much?")
    builder: Any = session.text_turn(ScriptedModel([turn])).tools(tools).answer(answer)
    return builder.collect_sync(), session


def test_a_valid_answer_alone_is_finished() -> None:
    """The value is the answer; the turn and its accepted result are in the transcript."""
    outcome, session = asked(ANSWER)
    assert isinstance(outcome, Finished)
    assert outcome.answer == outcome.result.answer == Invoice(total=3.5)
    committed: Any = outcome.result.committed
    assert [each.result for each in committed.results] == ['"accepted"']
    assert list(session.transcript)[1:] == list(committed)


def test_without_an_answer_the_text_is_it() -> None:
    """Nothing changes for who asks for none: the answer is the text."""
    session = Session()
    session.push_user("Hello")
    outcome = session.text_turn(ScriptedModel([ScriptedModel.text("Hi")])).collect_sync()
    assert isinstance(outcome, Finished)
    assert (outcome.answer, outcome.result.answer, outcome.result.text) == ("Hi", "Hi", "Hi")
    assert outcome.result.committed is None


def test_the_answer_is_the_last_tool_and_no_choice_is_made() -> None:
    """It is offered after the others; requiring any tool counts it, and nothing else is said."""
    session = Session()
    session.push_user("How much?")
    turn = session.text_turn(ScriptedModel([]))
    request = turn.tools(Tools).answer(Invoice).request()
    assert [each.name for each in request.tools] == ["look", "answer"]
    assert request.tools[-1].description == "What is to be paid."
    assert (request.tool_choice.mode, request.answer) == ("auto", None)
    alone = turn.answer(Answer(Invoice, name="bill", description="The bill."))
    assert [(each.name, each.description) for each in alone.request().tools] == [
        ("bill", "The bill.")
    ]
    assert alone.require_any_tool().request().tool_choice.mode == "required"
    specific = turn.tools(Tools).answer(Invoice).require_tool(Tools.look).request()
    assert specific.tool_choice.name == "look"
    with pytest.raises(ToolConstraintError):
        turn.answer(Invoice).require_tool("look").request()
    shown = turn.answer(Answer(Invoice, by="format")).request()
    assert (shown.tools, shown.tool_choice.mode) == ((), "none")
    assert shown.answer is not None
    assert shown.answer.name == "answer"


def test_a_valid_answer_beside_calls_waits_for_them() -> None:
    """The round has the value, the plan the result, and the others are run and committed."""
    outcome, session = asked(CALL, ANSWER)
    assert isinstance(outcome, NeedsTools)
    opened = outcome.round
    assert opened.answer == Invoice(total=3.5)
    assert [call.name for call in opened.tool_calls] == ["look"]
    plan = opened.apply_hooks_sync(lambda call: call)
    assert [each.result for each in plan.finished] == ['"accepted"']
    saved = Tools.load_plan(plan.dump_json())
    assert saved.finished == plan.finished
    assert "look" in saved.__rich__().plain
    saved.commit(session, [call.call_sync() for call in saved.pending])
    assert [item.result for item in list(session.transcript)[2:]] == ['"X"', '"accepted"']


def test_aborting_keeps_the_answer() -> None:
    """An accepted answer stays accepted, whatever becomes of the calls beside it."""
    outcome, session = asked(ANSWER, CALL)
    outcome.round.abort(session, "Enough.")
    statuses = [item.status for item in list(session.transcript)[2:]]
    assert statuses == ["success", "cancelled"]


def test_invalid_or_several_answers_are_issues() -> None:
    """The commit tells the model what is wrong with each, with the fields."""
    outcome, session = asked(("a1", "answer", '{"total": "much"}'))
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert (issue.reason, issue.fields[0].path) == ("invalid_arguments", "total")
    assert outcome.round.answer is None
    outcome.round.commit(session)
    assert list(session.transcript)[2].status == "rejected"
    outcome, _ = asked(ANSWER, CALL, ("a2", "answer", '{"total": 4}'))
    issues = outcome.round.recoverable_tool_call_issues
    assert [each.metadata.id for each in issues] == ["a1", "a2"]
    assert "several answers" in issues[0].text
    assert outcome.round.answer is None
    assert outcome.round.plan().finished == ()
    outcome.round.discard()


def test_an_answer_that_was_cut_off_is_an_issue() -> None:
    """Where the limit on tokens left no arguments, nothing is taken for the answer."""

    class Empty(BaseModel):
        note: str = ""

    turn = ScriptedModel.tool_calls(("a1", "answer", ""))
    cut = AssistantTurn(items=turn.items, finish_reason="length", cut_off="arguments")
    outcome: Any = Toolset.read_turn(cut, answer=Empty)
    assert "cut off by the limit" in outcome.round.recoverable_tool_call_issues[0].text
    outcome.round.discard()


@over(
    "turn, by, reason, text",
    [
        (ScriptedModel.text("Soon."), "tool", "no_call", "by calling `answer`."),
        (ScriptedModel.text("Soon."), "format", "invalid", "The answer is not valid:\n- "),
        (ScriptedModel.text('{"total": 1'), "format", "invalid", "Give the final answer as JSON."),
        (
            AssistantTurn(items=(RefusalItem("No."),), finish_reason="stop"),
            "format",
            "refused",
            "You refused to answer.",
        ),
        (
            AssistantTurn(items=(TextItem('{"total'),), finish_reason="length", cut_off="answer"),
            "format",
            "cut_off",
            "cut off by the limit on tokens",
        ),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(
    turn: AssistantTurn, by: Any, reason: str, text: str
) -> None:
    """The turn is in the transcript, and no request was made that nobody made."""
    outcome, session = said(turn, answer=Answer(Invoice, by=by))
    assert isinstance(outcome, NoAnswer)
    assert outcome.reason == reason
    assert text in outcome.text
    assert bool(outcome.fields) is (reason == "invalid")
    assert list(session.transcript)[1] == outcome.result.turn
    assert outcome.result.answer == turn.text


@over(
    "kind, data, value",
    [
        (Invoice, {"total": 1}, Invoice(total=1)),
        (Point, {"x": 1}, Point(1)),
        (Pair, {"a": 1}, {"a": 1}),
        (Invoice | Refund, {"answer": {"reason": "r"}}, Refund(reason="r")),
        (list[Invoice], {"answer": [{"total": 1}]}, [Invoice(total=1)]),
        (Literal["yes", "no"], {"answer": "yes"}, "yes"),
        (Numbers, {"answer": [1]}, Numbers([1])),
        (int, {"answer": 3}, 3),
    ],
)
def test_any_type_is_an_answer_in_either_form(kind: Any, data: Any, value: Any) -> None:
    """What is no object by itself stands in one field, by tool and by format."""
    text = json.dumps(data)
    outcome, _ = asked(("a1", "answer", text), answer=kind)
    assert outcome.answer == value
    outcome, session = said(ScriptedModel.text(text), answer=Answer(kind, by="format"))
    assert outcome.answer == value
    assert list(session.transcript)[1] == outcome.result.turn


def test_by_format_calls_come_first() -> None:
    """A turn with calls needs tools, whatever its text; the answer is that of a later turn."""
    outcome, session = asked(CALL, answer=Answer(Invoice, by="format"))
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.answer is None
    outcome.round.commit(session, [call.call_sync() for call in outcome.round.tool_calls])


def test_a_tool_of_the_same_name_is_refused_before_any_request() -> None:
    """The answer's tool has a name of its own, in a turn and in `read_turn`."""
    turn = ScriptedModel.tool_calls(ANSWER)
    with pytest.raises(ToolConstraintError):
        said(turn, tools=Taken)
    with pytest.raises(ToolConstraintError):
        Taken.read_turn(turn, answer=Invoice)
    by_format = Taken.read_turn(ScriptedModel.text("{}"), answer=Answer(Invoice, by="format"))
    assert isinstance(by_format, NoAnswer)


def test_what_makes_no_answer_is_refused() -> None:
    """A form that there is not, and a type without a schema, are found where they are written."""
    with pytest.raises(MisuseError):
        Answer(Invoice, by="magic")  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError):
        Answer(object())  # type: ignore[arg-type]
    assert repr(Answer(Invoice)) == "Answer(Invoice, by='tool', name='answer')"


@over("name", ["", " ", "final\nanswer", "answer\x00", "answer\x85", "answer\ud800", 5, None])
def test_a_name_that_no_tool_may_have_is_refused(name: Any) -> None:
    """What is asked for as a tool, or as a format, is named as a tool may be."""
    for by in ("tool", "format"):
        kind: Any = by
        with pytest.raises(ToolDefinitionError, match="name"):
            Answer(Invoice, by=kind, name=name)


@over("by", ["tool", "format"])
@over("kind", [Invoice, list[int]])
def test_streams_show_the_answer_so_far(by: Any, kind: Any) -> None:
    """`partial` grows in either form, and the outcome is the answer."""
    value = [1, 2] if kind == list[int] else {"total": 12.0}
    text = json.dumps({"answer": value} if kind == list[int] else value)
    turn = ScriptedModel.text(text)
    if by == "tool":
        turn = ScriptedModel.tool_calls(CALL, ("a1", "answer", text))
    session = Session()
    session.push_user("How much?")
    answer: Any = Answer(kind, by=by)
    stream: Any = session.text_turn(ScriptedModel([turn])).tools(Tools).answer(answer).stream()

    async def main() -> list[Any]:
        return [stream.partial async for _ in stream]

    seen = asyncio.run(main())
    assert seen[-1] == stream.partial == value
    outcome = stream.outcome
    if by == "tool":
        outcome.round.discard()
    else:
        assert isinstance(outcome, Finished)


def test_a_text_that_is_no_json_yet_leaves_the_partial_answer() -> None:
    """What cannot be read so far changes nothing."""
    session = Session()
    session.push_user("How much?")
    model = ScriptedModel([ScriptedModel.text("[oops")])
    stream: Any = session.text_turn(model).answer(Answer(int, by="format")).stream_sync()
    for _ in stream:
        assert stream.partial is None
    assert isinstance(stream.outcome, NoAnswer)


@over("kind", [object(), 5, "Missing", Callable, list[Callable[[], int]]])
def test_a_type_without_a_schema_is_no_answer(kind: Any) -> None:
    """What pydantic knows nothing of is refused where the answer is declared, in its own name."""
    with pytest.raises(ToolDefinitionError):
        Answer(kind)


def test_a_text_is_coerced_as_arguments_are() -> None:
    """A list that came as a string in a text answer is read where that leaves no doubt."""
    assert Answer(list[int]).read_text('{"answer": "[1, 2]"}', redact=False) == ([1, 2], ())


class InPieces:
    """A model that gives its turn in small pieces, as a provider's stream comes in."""

    def __init__(self, turn: AssistantTurn) -> None:
        self.turn = turn

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        (call,) = self.turn.tool_calls or (None,)
        text = self.turn.text if call is None else call.arguments
        decoder = openai_chat.StreamDecoder()
        for begin in range(0, len(text), 100):
            piece = text[begin : begin + 100]
            delta: dict[str, Any] = {"content": piece}
            if call is not None:
                function = {"name": call.name, "arguments": piece}
                delta = {"tool_calls": [{"index": 0, "id": call.id, "function": function}]}
            yield from decoder.feed({"choices": [{"index": 0, "delta": delta}]})
        reason = "stop" if call is None else "tool_calls"
        yield from decoder.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        yield from decoder.close()


@pytest.mark.parametrize("by", ["tool", "format"])
def test_a_long_answer_is_shown_whole_at_the_end(by: Any) -> None:
    """`partial` ends with the whole answer, though a long text is not read with every piece."""
    value = [{"total": float(number)} for number in range(2000)]
    text = json.dumps({"answer": value})
    turn = ScriptedModel.text(text)
    if by == "tool":
        turn = ScriptedModel.tool_calls(("a1", "answer", text))
    session = Session()
    session.push_user("How much?")
    answer: Any = Answer(list[Invoice], by=by)
    model: Any = InPieces(turn)
    stream: Any = session.text_turn(model).answer(answer).stream_sync()
    shown = [len(stream.partial or ()) for _ in stream]
    assert shown == sorted(shown)
    assert 10 < len(set(shown)) < 100  # of 340 pieces
    assert stream.partial == value
    assert len(stream.outcome.answer) == len(value)


def texts(*pieces: str) -> AssistantTurn:
    return AssistantTurn(items=tuple(map(TextItem, pieces)), finish_reason="stop")


@pytest.mark.parametrize(
    "pieces",
    [('{"total": 1}', '{"total": 1.0}'), ("I found it.", '{"total": 1}'), ('{"tot', 'al": 1}')],
)
def test_an_answer_among_several_texts_is_found(pieces: tuple[str, ...]) -> None:
    """Said twice, after other words or in pieces, one answer of a turn is the answer."""
    outcome, _ = said(texts(*pieces), answer=Answer(Invoice, by="format"))
    assert outcome.answer == Invoice(total=1)


def test_texts_that_are_several_answers_are_none() -> None:
    """Nobody picks between two answers that differ."""
    two = texts('{"total": 1}', '{"total": 2}')
    outcome, _ = said(two, answer=Answer(Invoice, by="format"))
    assert isinstance(outcome, NoAnswer)
    assert outcome.reason == "invalid"


def test_the_answers_tool_is_on_offer() -> None:
    """What the model is told of a name that is not there counts the answer's tool."""
    outcome, _ = asked(("a1", "Answer", '{"total": 1}'))
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert (issue.reason, issue.suggestion) == ("unknown_tool", "answer")
    assert "Tools on offer: `look`, `answer`." in issue.text
    outcome.round.discard()
    outcome, _ = asked(("a1", "Answer", "{}"), answer=Answer(Invoice, by="format"))
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert "Tools on offer: `look`." in issue.text
    outcome.round.discard()


@over("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@over("kind", [Invoice, list[Invoice], Invoice | Refund, Literal["a"]])
def test_an_answer_can_be_copied_and_pickled(copied: Any, kind: Any) -> None:
    """A copy asks for the same."""
    answer: Answer[Any] = Answer(kind, by="format", name="it", description="The bill.")
    other = copied(answer)
    assert repr(other) == repr(answer)
    assert other.definition == answer.definition
    told = copied(Answer(Invoice))
    assert told.definition.description == "What is to be paid."


class Noted(BaseModel):
    """A type of which every field has a default."""

    note: str = "none"

    @field_validator("note")
    @classmethod
    def not_broken(cls, note: str) -> str:
        if note == "broken":
            raise RuntimeError(f"a secret of {note}")
        return note


@over("text", ["", " \n", "null", '""'])
@over("reason", ["stop", "length"])
def test_nothing_is_no_answer(text: str, reason: str) -> None:
    """A model that says nothing has not answered, though each field of the type has a default."""
    turn = AssistantTurn(
        text=text, finish_reason=reason, cut_off="answer" if reason == "length" else None
    )
    outcome, _ = said(turn, answer=Answer(Noted, by="format"))
    assert isinstance(outcome, NoAnswer)
    assert outcome.reason == ("invalid" if reason == "stop" else "cut_off")
    given, _ = said(ScriptedModel.text("{}"), answer=Answer(Noted, by="format"))
    assert given.answer == Noted()


@over("redact", [False, True])
@over("by", ["tool", "format"])
def test_a_broken_validator_is_named(by: Any, redact: bool) -> None:
    """What breaks in the type is an error of the program in either form, and hides what it must."""
    text = '{"note": "broken"}'
    turn = ScriptedModel.tool_calls(("a1", "answer", text))
    session = Session()
    session.push_user("Well?")
    model = ScriptedModel([turn if by == "tool" else ScriptedModel.text(text)])
    builder: Any = session.text_turn(model).answer(Answer(Noted, by=by))
    with pytest.raises(ToolInputError, match="A validator of tool `answer` raised Run") as caught:
        (builder.redact() if redact else builder).collect_sync()
    assert ("a secret" in str(caught.value)) is not redact


class Called(BaseModel):
    back: Callable[[], int]


def test_what_is_wrong_with_an_answer_is_said_where_it_is() -> None:
    """A name that is none, and a field of a model without a schema, are told as they are."""
    with pytest.raises(ToolDefinitionError, match="Answer `int` needs a name"):
        Answer(int, name=" ")
    with pytest.raises(ToolDefinitionError, match="Answer `Called`: field `back` of type"):
        Answer(Called)
