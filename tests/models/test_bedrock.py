"""`Bedrock` by a client of boto3: what it sends and reads, against botocore's model of the API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    NeedsTools,
    Session,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import bedrock_converse
from lutum_py.errors import MisuseError
from lutum_py.models import Bedrock
from lutum_py.streaming import ReasoningDelta, TextDelta, TurnFinished
from tests.cases import over
from tests.dialects.wire import bedrock_converse as wire

from .loopback import Loopback, Reply, serving
from .said import Said, outcome_of

WHY = "boto3 is not installed: pip install -e '.[bedrock]'"
# They have no types.
boto3: Any = pytest.importorskip("boto3", reason=WHY)
botocore_config: Any = pytest.importorskip("botocore.config", reason=WHY)
errors: Any = pytest.importorskip("botocore.exceptions", reason=WHY)
botocore_session: Any = pytest.importorskip("botocore.session", reason=WHY)
stub: Any = pytest.importorskip("botocore.stub", reason=WHY)
validate: Any = pytest.importorskip("botocore.validate", reason=WHY)

MODEL = "us.amazon.nova-x-v1:0"
SAID = Said(text="Let me see: 5 · 7", calls=(("c1", "add", {"a": 5, "b": 7}),))
ANSWER = Said(text="12")
MODES = ("collect", "collect_sync", "stream", "stream_sync")
SERVICE = botocore_session.get_session().get_service_model("bedrock-runtime")
INPUT: Any = SERVICE.operation_model("Converse").input_shape
ASKED = TurnRequest(items=[Message("user", "Go")])
PNG = base64.b64decode("iVBORw0KGgo=")


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Tools(Toolset):
    add = tool(add)


def problems(body: dict[str, Any]) -> list[str]:
    """What the dialect's rules and botocore's model of the API find wrong with a body."""
    arguments = {"modelId": MODEL, **bedrock_converse.with_bytes(body)}
    report = validate.ParamValidator().validate(arguments, INPUT).generate_report()
    return [*map(str, bedrock_converse.check(body)), *filter(None, [report])]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(problems) as loopback:
        yield loopback


def client_of(url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=botocore_config.Config(retries={"total_max_attempts": 1}),
    )


def whole(said: Said) -> Reply:
    return Reply(text=json.dumps(wire.response(said)))


def stream_of(events: list[dict[str, Any]]) -> Reply:
    """Write events as AWS frames them."""
    raw = wire.framed(events)
    return Reply(text="", raw=raw, content_type="application/vnd.amazon.eventstream")


def reply(said: Said, mode: str) -> Reply:
    return stream_of(wire.events(said)) if mode.startswith("stream") else whole(said)


@over("mode", MODES)
async def test_a_loop_runs_by_boto3(mode: str) -> None:
    """A loop goes its way over boto3, whole and streamed, sync and async; botocore's own model of
    the API takes what is sent.
    """
    with serving(problems) as server:
        session = Session()
        session.push_system("Be brief.")
        session.push_user("What is 5 + 7?")
        model = Bedrock(client_of(server.url), MODEL)
        server.replies += [reply(SAID, mode), reply(ANSWER, mode)]
        asked = session.text_turn(model).tools(Tools)
        step = await outcome_of(asked, mode)
        assert isinstance(step, NeedsTools)
        turn: AssistantTurn = step.round.turn
        assert turn.reasoning == "I think."
        assert turn.model == MODEL
        assert turn.usage is not None
        assert turn.usage.input_tokens == 20
        (call,) = step.round.tool_calls
        step.round.commit(session, [call.call_sync()])
        step = await outcome_of(session.text_turn(model).tools(Tools), mode)
        assert step.result.text == "12"
        assert server.refusals == []
        last = server.received[-1]
        assert last.path == f"/model/{MODEL.replace(':', '%3A')}/converse" + (
            "-stream" if mode.startswith("stream") else ""
        )
        sent = [block for message in last.body["messages"] for block in message["content"]]
        assert [next(iter(block)) for block in sent] == [
            "text",
            "reasoningContent",
            "text",
            "toolUse",
            "toolResult",
        ]


@over("mode", ["stream", "stream_sync"])
async def test_what_is_streamed_is_told_as_it_comes(mode: str) -> None:
    """Text and reasoning come in the pieces of the wire, and the turn is that of a whole answer."""
    with serving(problems) as server:
        server.replies += [stream_of(wire.events(SAID)), whole(SAID)]
        model = Bedrock(client_of(server.url), MODEL)
        if mode == "stream":
            events = [event async for event in model.stream(ASKED)]
        else:
            events = list(model.stream_sync(ASKED))
        said = [event.text for event in events if isinstance(event, TextDelta)]
        assert "".join(said) == SAID.text
        assert len(said) == 2
        assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["I think."]
        assert isinstance(events[-1], TurnFinished)
        streamed, one = events[-1].turn, model.respond_sync(ASKED)
        assert (streamed.items, streamed.finish_reason, streamed.usage) == (
            one.items,
            one.finish_reason,
            one.usage,
        )


async def test_bytes_go_as_bytes(server: Loopback) -> None:
    """A picture, and reasoning that the provider hides, reach the API as they were, and JSON holds
    them on the way.
    """
    hidden = base64.b64encode(b"\x00\xff").decode()
    response = wire.response(ANSWER)
    content = response["output"]["message"]["content"]
    content.insert(0, {"reasoningContent": {"redactedContent": hidden}})
    server.replies += [Reply(text=json.dumps(response)), whole(ANSWER)]
    look = Message("user", "Look", (Attachment.from_bytes(PNG, mime_type="image/png"),))
    model = Bedrock(client_of(server.url), MODEL)
    turn = model.respond_sync(TurnRequest(items=[look]))
    transcript = Transcript()
    transcript.push(look)
    transcript.append_turn(turn)
    saved = Transcript.load_json(transcript.dump_json())
    model.respond_sync(TurnRequest(items=[*saved, Message("user", "And?")]))
    picture, said = server.received[-1].body["messages"][0:2]
    assert picture["content"][1]["image"]["source"]["bytes"] == base64.b64encode(PNG).decode()
    assert said["content"][0] == {"reasoningContent": {"redactedContent": hidden}}


def test_the_stub_of_botocore_takes_the_request() -> None:
    """Botocore's stub, which validates what it is given and gives, agrees with both ways."""
    client = client_of("http://127.0.0.1:9")
    expected = {
        "modelId": MODEL,
        "messages": [{"role": "user", "content": [{"text": "Go"}]}],
        "inferenceConfig": {"maxTokens": 9},
    }
    with stub.Stubber(client) as stubbed:
        stubbed.add_response("converse", wire.response(ANSWER), expected)
        said = TurnRequest(items=ASKED.items, max_output_tokens=9)
        turn = Bedrock(client, MODEL).respond_sync(said)
        stubbed.assert_no_pending_responses()
    assert turn.text == "12"


@over("mode", MODES)
async def test_errors_of_boto3_come_as_they_are(mode: str) -> None:
    """What AWS refuses is the SDK's error, and nothing is committed."""
    with serving(problems) as server:
        server.replies.append(Reply(text=json.dumps({"message": "slow down"}), status=429))
        session = Session()
        session.push_user("Go")
        with pytest.raises(errors.ClientError):
            await outcome_of(session.text_turn(Bedrock(client_of(server.url), MODEL)), mode)
        assert len(session.transcript) == 1


@over("mode", ["stream", "stream_sync"])
async def test_an_error_in_a_stream_is_that_of_boto3(mode: str) -> None:
    """A stream that AWS breaks off with an error raises that of the SDK."""
    broken = [*wire.events(SAID)[:3], {"throttlingException": {"message": "slow down"}}]
    with serving(problems) as server:
        server.replies.append(stream_of(broken))
        session = Session()
        session.push_user("Go")
        turn = session.text_turn(Bedrock(client_of(server.url), MODEL)).tools(Tools)
        with pytest.raises(errors.EventStreamError):
            await outcome_of(turn, mode)


@over("mode", ["stream", "stream_sync"])
async def test_a_reader_that_stops_closes_the_stream(mode: str) -> None:
    """Where the reader stops early, the SDK's stream is closed; one without `close` is left."""

    class Stream(list[Any]):
        closed = False

        def close(self) -> None:
            self.closed = True

    class Client:
        stream: Any = Stream(wire.events(SAID))

        def converse(self, **request: Any) -> Any:
            raise AssertionError(request)

        def converse_stream(self, **request: Any) -> Any:
            return {"stream": self.stream}

    client = Client()
    for stream in (Stream(wire.events(SAID)), wire.events(SAID)):
        client.stream = stream
        model: Any = Bedrock(client, MODEL)
        if mode == "stream":
            events = model.stream(ASKED)
            await anext(events)
            await events.aclose()
        else:
            events = model.stream_sync(ASKED)
            next(events)
            events.close()
        assert getattr(stream, "closed", True)


def test_what_is_no_client_is_refused() -> None:
    """Another object, and a field that the SDK does not know, are told before anything is sent."""
    with pytest.raises(MisuseError, match=r"boto3\.client"):
        Bedrock(cast("Any", object()), MODEL)
    model = Bedrock(client_of("http://127.0.0.1:9"), MODEL)
    with pytest.raises(errors.ParamValidationError):
        model.respond_sync(TurnRequest(items=ASKED.items, extra={"nonsense": 1}))
