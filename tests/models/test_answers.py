"""Final answers of a type, asked for by the real SDKs: by a tool, and by the provider's format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal, TypeAlias

import pytest
from pydantic import BaseModel

from lutum_py import Answer, Finished, NeedsTools, NoAnswer, Session
from tests.dialects.recordings import Recording, answered, recordings, report

from .loopback import Loopback
from .said import MODEL, Payload, Said
from .sums import Sums, make_hooks
from .test_failures import is_told
from .test_recordings import replied
from .wires import MODES, STREAMS, Wire, in_each, outcome_of

Form: TypeAlias = Literal["tool", "format"]

FORMS: Final[tuple[Form, ...]] = ("tool", "format")
EACH_WAY = in_each("mode, by", [*product(MODES, FORMS)])
STREAMED = in_each("mode, by", [*product(STREAMS, FORMS)])


class Line(BaseModel):
    name: str
    count: int = 1


class Invoice(BaseModel):
    """What is to be paid."""

    total: float
    note: str = "none"
    lines: list[Line] = []


class Refund(BaseModel):
    reason: str
    note: str = "sorry"


DATA: Final = {"total": 3.5, "note": "by Friday", "lines": [{"name": "grüße", "count": 2}]}
INVOICE: Final = Invoice.model_validate(DATA)


def saying(
    by: Form, arguments: Payload | str, *calls: tuple[str, str, Payload | str], **said: Any
) -> Said:
    """Say an answer in the form that it was asked for in, beside calls."""
    if by == "tool":
        return Said(calls=(*calls, ("a1", "answer", arguments)), **said)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Said(text=text, calls=calls, **said)


@dataclass(slots=True)
class Asking:
    """A conversation over one wire that ends in an answer."""

    wire: Wire
    mode: str
    server: Loopback
    answer: Answer[Any]
    session: Session
    strict: bool = False

    async def __call__(self, turn: Said) -> Any:
        """Ask, and have the provider say this."""
        self.server.replies.append(self.wire.reply(turn, self.mode))
        async with self.wire.client(self.server.url, self.mode) as client:
            model = self.wire.model(client, MODEL, strict=self.strict)
            builder: Any = self.session.text_turn(model).tools(Sums).answer(self.answer)
            outcome = await outcome_of(builder, self.mode)
        assert self.server.refusals == []
        return outcome

    @property
    def sent(self) -> Payload:
        """The body of the last request."""
        return self.server.received[-1].body

    @property
    def results(self) -> list[tuple[str, str]]:
        """What the last request answered calls with."""
        return self.wire.results(self.sent)


def asking(wire: Wire, mode: str, server: Loopback, by: Form, kind: Any = Invoice) -> Asking:
    session = Session()
    session.push_user("How much is it?")
    return Asking(wire, mode, server, Answer(kind, by=by), session)


async def commit(session: Session, outcome: Any) -> Any:
    """Run and commit the calls of an outcome, and give its round."""
    assert isinstance(outcome, NeedsTools)
    plan = await outcome.round.apply_hooks(make_hooks())
    plan.commit(session, [await call.call() for call in plan.pending])
    return outcome.round


def schema_in(wire: Wire, body: Payload) -> Any:
    """Find the schema that holds the text to a format, or None."""
    if wire.name == "openai_chat":
        return body.get("response_format", {}).get("json_schema", {}).get("schema")
    if wire.name == "openai_responses":
        return body.get("text", {}).get("format", {}).get("schema")
    if wire.name == "anthropic_messages":
        return body.get("output_config", {}).get("format", {}).get("schema")
    return body.get("generationConfig", {}).get("responseJsonSchema")


@EACH_WAY
async def test_an_answer_alone_ends_the_conversation(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """The value comes out, and what was said can be said to the provider again."""
    ask = asking(wire, mode, server, by)
    outcome = await ask(saying(by, DATA))
    assert isinstance(outcome, Finished)
    assert outcome.answer == outcome.result.answer == INVOICE
    assert (schema_in(wire, ask.sent) is not None) is (by == "format")
    assert ('"answer"' in json.dumps(ask.sent.get("tools"))) is (by == "tool")
    ask.session.push_user("And once more?")
    assert (await ask(saying(by, DATA))).answer == INVOICE
    assert [text for _, text in ask.results if "accepted" in text] == (
        [ask.results[0][1]] if by == "tool" else []
    )


@EACH_WAY
async def test_an_invalid_answer_is_told_and_given_again(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """The next request says which field was wrong, and the next answer is the outcome."""
    ask = asking(wire, mode, server, by)
    outcome: Any = await ask(saying(by, {"total": "much"}))
    if by == "tool":
        (issue,) = outcome.round.recoverable_tool_call_issues
        assert [each.path for each in issue.fields] == ["total"]
        assert (await commit(ask.session, outcome)).answer is None
    else:
        assert isinstance(outcome, NoAnswer)
        assert (outcome.reason, [each.path for each in outcome.fields]) == ("invalid", ["total"])
        ask.session.push_user(outcome.text)
    assert (await ask(saying(by, DATA))).answer == INVOICE
    assert "valid number" in json.dumps(ask.sent)


@EACH_WAY
async def test_an_answer_beside_calls_waits_for_them(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """The calls are run and committed; an answer by tool is there already, and one by text not."""
    ask = asking(wire, mode, server, by)
    opened = await commit(ask.session, await ask(saying(by, DATA, ("c1", "add", {"a": 1}))))
    assert opened.answer == (INVOICE if by == "tool" else None)
    assert [call.name for call in opened.tool_calls] == ["add"]
    assert (await ask(saying(by, DATA))).answer == INVOICE
    told = [text for _, text in ask.results]
    assert len(told) == (2 if by == "tool" else 1)
    assert "2" in told[0]
    assert all("accepted" in text for text in told[1:])


@EACH_WAY
async def test_a_refusal_is_no_answer(wire: Wire, mode: str, server: Loopback, by: Form) -> None:
    """Each provider's way to refuse is the reason `refused`, and the session can go on."""
    ask = asking(wire, mode, server, by)
    outcome = await ask(Said(refusal="I would rather not."))
    assert isinstance(outcome, NoAnswer)
    assert (outcome.reason, outcome.fields) == ("refused", ())
    ask.session.push_user(outcome.text)
    assert (await ask(saying(by, DATA))).answer == INVOICE


@EACH_WAY
async def test_an_answer_that_is_cut_off_is_none(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """Half an answer is never taken for one; the model is told of the limit."""
    ask = asking(wire, mode, server, by)
    outcome = await ask(saying(by, '{"total": 3.5, "no', cut_off=True))
    if isinstance(outcome, NeedsTools):
        assert outcome.round.recoverable_tool_call_issues
        assert (await commit(ask.session, outcome)).answer is None
    else:
        # A call that did not come to its end is not sent by every provider.
        assert isinstance(outcome, NoAnswer)
        assert outcome.reason == "cut_off"
        assert "limit on tokens" in outcome.text
        ask.session.push_user(outcome.text)
    assert (await ask(saying(by, DATA))).answer == INVOICE


@in_each(
    "mode, by, kind",
    [*product(MODES, FORMS, [Invoice | Refund, list[Line], Literal["yes", "no"]])],
)
async def test_what_is_no_object_travels_in_one_field(
    wire: Wire, mode: str, server: Loopback, by: Form, kind: Any
) -> None:
    """A union, a list and a literal are read as any answer is, in strict mode as well."""
    data, value = {
        Invoice | Refund: ({"reason": "broken"}, Refund(reason="broken")),
        list[Line]: ([{"name": "x"}], [Line(name="x")]),
    }.get(kind, ("yes", "yes"))
    for strict in (False, True):
        ask = asking(wire, mode, server, by, kind)
        ask.strict = strict
        assert (await ask(saying(by, {"answer": data}))).answer == value


@EACH_WAY
async def test_null_stands_for_what_was_left_out(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """Where a strict schema makes every field required, the defaults of the type are kept."""
    ask = asking(wire, mode, server, by, Refund | Invoice)
    ask.strict = True
    lines = [{"name": "x", "count": None}]
    sent = {"answer": {"total": 1, "note": None, "lines": lines}}
    assert (await ask(saying(by, sent))).answer == Invoice(total=1, lines=[Line(name="x")])


@STREAMED
async def test_a_stream_shows_the_answer_so_far(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """`partial` is a beginning of the answer, then all of it; other calls leave it alone."""
    reply = wire.reply(saying(by, DATA, ("c1", "add", {"a": 1})), mode)
    seen, stream = await parts_of(wire, mode, server, by, reply)
    assert stream.partial == seen[-1] == DATA
    stream.outcome.round.discard()
    started = [json.dumps(each) for each in seen if each]
    lengths = [len(each) for each in started]
    assert lengths == sorted(lengths)
    # Gemini sends arguments whole.
    is_whole = by == "tool" and wire.name == "gemini_generate_content"
    assert (len(set(started)) == 1) is is_whole


@STREAMED
async def test_a_stream_that_breaks_leaves_nothing_but_what_was_shown(
    wire: Wire, mode: str, server: Loopback, by: Form
) -> None:
    """The error comes out, the transcript is as it was, and asking again gives the answer."""
    events = wire.events(saying(by, DATA))
    reply = wire.stream(events[: len(events) // 2 + 1], missing=100, whole=False)
    session = Session()
    session.push_user("How much is it?")
    with pytest.raises(Exception, match=r".") as caught:
        await parts_of(wire, mode, server, by, reply, session)
    assert is_told(caught.value)
    assert len(session.transcript) == 1
    ask = Asking(wire, mode, server, Answer(Invoice, by=by), session)
    assert (await ask(saying(by, DATA))).answer == INVOICE


@in_each("mode", STREAMS)
async def test_extras_leave_the_format(wire: Wire, mode: str, server: Loopback) -> None:
    """What goes out beside a field that the user gave still holds the text to the schema."""
    extras: dict[str, Payload] = {
        "openai_chat": {"verbosity": "low"},
        "openai_responses": {"text": {"verbosity": "low"}},
        "anthropic_messages": {"output_config": {"effort": "low"}},
        "gemini_generate_content": {"generationConfig": {"topK": 3}},
    }
    extra = extras[wire.name]
    server.replies.append(wire.reply(saying("format", DATA), mode))
    session = Session()
    session.push_user("How much is it?")
    async with wire.client(server.url, mode) as client:
        builder: Any = session.text_turn(wire.model(client, MODEL)).extra(extra)
        outcome = await outcome_of(builder.answer(Answer(Invoice, by="format")), mode)
    assert server.refusals == []
    assert outcome.answer == INVOICE
    (received,) = server.received
    assert schema_in(wire, received.body) is not None
    assert json.dumps(extra)[1:-1].rpartition("{")[2].rstrip("}") in json.dumps(received.body)


async def parts_of(
    wire: Wire, mode: str, server: Loopback, by: Form, reply: Any, session: Session | None = None
) -> tuple[list[Any], Any]:
    """Read a stream; give what `partial` was after each event, and the stream."""
    if session is None:
        session = Session()
        session.push_user("How much is it?")
    server.replies.append(reply)
    seen: list[Any] = []
    async with wire.client(server.url, mode) as client:
        builder: Any = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        stream: Any = getattr(builder.answer(Answer(Invoice, by=by)), mode)()
        if mode == "stream":
            async for _ in stream:
                seen.append(stream.partial)
        else:
            for _ in stream:
                seen.append(stream.partial)
    assert server.refusals == []
    return seen, stream


class BookSummary(BaseModel):
    author: str
    pages: int
    publication_year: int
    title: str


class City(BaseModel):
    city: str
    country: str
    population: int = 0


def asked_for(wire: Wire, one: Recording) -> type[BaseModel] | None:
    """Give the type that a recorded request asked for by format, if it is one of these."""
    schema = schema_in(wire, one.request) or {}
    fields = schema.get("properties", {}).keys()
    kinds = [kind for kind in (BookSummary, City) if fields and fields <= kind.model_fields.keys()]
    return kinds[0] if kinds and answered(one) else None


async def test_recorded_answers_are_read(wire: Wire, server: Loopback) -> None:
    """What real providers sent for a schema is an answer of the type, or asks for tools first."""
    found = recordings(wire.name, lambda one: asked_for(wire, one) is not None)
    read = 0
    for one in found:
        kind = asked_for(wire, one)
        assert kind is not None
        mode = "stream_sync" if one.stream else "collect_sync"
        server.replies.append(replied(wire, one))
        session = Session()
        session.push_user("Tell me.")
        async with wire.client(server.url, mode) as client:
            builder: Any = session.text_turn(wire.model(client, MODEL)).tools(Sums)
            outcome = await outcome_of(builder.answer(Answer(kind, by="format")), mode)
        if one.has_calls:
            assert isinstance(outcome, NeedsTools), one.id
            outcome.round.discard()
        else:
            assert isinstance(outcome, Finished), (one.id, outcome)
            assert isinstance(outcome.answer, kind)
        read += 1
    report(wire.name, "recorded answers by format were read", read, len(found))
