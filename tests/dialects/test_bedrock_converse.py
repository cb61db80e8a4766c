"""Converse: what is special to it, judged by botocore's model of the API where that can tell."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    Answer,
    AssistantTurn,
    Attachment,
    Message,
    ToolDef,
    ToolMetadata,
    ToolResult,
    TurnRequest,
)
from lutum_py.dialects import anthropic_messages, bedrock_converse, openai_chat
from lutum_py.errors import DialectError
from lutum_py.streaming import ReasoningDelta
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem, TranscriptItem
from lutum_py.typing import ToolChoice
from lutum_py.window import Cache
from tests.cases import over
from tests.models.said import Said

from .plain import NOT_SHOWN, OUTCOME_UNKNOWN, done
from .test_every_dialect import conversations
from .wire import bedrock_converse as wire

WHY = "boto3 is not installed: pip install -e '.[bedrock]'"
# It has no types.
session: Any = pytest.importorskip("botocore.session", reason=WHY)
validate: Any = pytest.importorskip("botocore.validate", reason=WHY)
parsers: Any = pytest.importorskip("botocore.parsers", reason=WHY)
SERVICE: Any = session.get_session().get_service_model("bedrock-runtime")
INPUT: Any = SERVICE.operation_model("Converse").input_shape
ECHO = ToolDef.from_json_schema(
    name="echo", description="Say it", input_schema={"type": "object", "properties": {}}
)
PNG = base64.b64decode("iVBORw0KGgo=")
ASKED = Message("user", "Go")


def refused(body: dict[str, Any]) -> str:
    """What botocore finds wrong with a body."""
    arguments = {"modelId": "m", **bedrock_converse.with_bytes(body)}
    report: str = validate.ParamValidator().validate(arguments, INPUT).generate_report()
    return report


def response(*content: Any, **more: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(content)}}, **more}


def use(call_id: str | None = "t1", **more: Any) -> dict[str, Any]:
    same = {} if call_id is None else {"toolUseId": call_id}
    return {"toolUse": {**same, "name": "echo", "input": {"b": None}, **more}}


def file(name: str, mime_type: str, media_type: Any = "file") -> Attachment:
    url = f"data:{mime_type};base64,aGk="
    return Attachment(media_type=media_type, mime_type=mime_type, url=url, name=name)


@given(
    items=conversations(),
    choice=st.sampled_from([None, ToolChoice(), ToolChoice("required"), ToolChoice("none")]),
    cache=st.sampled_from([None, Cache(), Cache(ttl="1h", turns=2)]),
    by_format=st.booleans(),
)
def test_botocore_takes_every_request(
    items: Any, choice: ToolChoice | None, cache: Cache | None, by_format: bool
) -> None:
    """What is written of any conversation passes botocore's model of the API, and is JSON."""
    more: dict[str, Any] = {} if choice is None else {"tools": (ECHO,), "tool_choice": choice}
    if by_format:
        more["answer"] = Answer(list[int], by="format").definition
    request = TurnRequest(items=[ASKED, *items], cache=cache, max_output_tokens=9, **more)
    for strict in (False, True):
        body = bedrock_converse.encode_request(request, strict=strict)
        json.dumps(body)
        assert refused(body) == ""
        assert wire.rules(body) == []


class Body:
    """The raw body of an answer, as botocore reads a stream of events from it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def stream(self) -> list[bytes]:
        return [self.raw[at : at + 7] for at in range(0, len(self.raw), 7)]


def parsed(operation: str, body: Any) -> Any:
    """What botocore's parser makes of an answer."""
    answer = {
        "body": body,
        "headers": {"x-amzn-requestid": "r-1"},
        "status_code": 200,
        "context": {"operation_name": operation},
    }
    shape = SERVICE.operation_model(operation).output_shape
    return parsers.create_parser(SERVICE.metadata["protocol"]).parse(answer, shape)


CALLS = st.tuples(
    st.uuids().map(str),
    st.sampled_from(["add", "get_user"]),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-99, 99) | st.text()),
)


@given(
    said=st.builds(
        Said,
        text=st.text(st.characters(codec="utf-8")),
        calls=st.lists(CALLS, max_size=3).map(tuple),
        cut_off=st.booleans(),
    )
)
def test_botocore_reads_what_we_read(said: Said) -> None:
    """What botocore's parser gives of an answer, and of the frames of a stream, is the same turn
    that comes of the JSON.
    """
    turn = bedrock_converse.decode(wire.response(said))
    whole = bedrock_converse.decode(parsed("Converse", json.dumps(wire.response(said)).encode()))
    answer = parsed("ConverseStream", Body(wire.framed(wire.events(said))))
    decoder = bedrock_converse.StreamDecoder()
    for event in answer["stream"]:
        decoder.feed(event)
    streamed = decoder.finish()
    for each in (whole, streamed):
        assert each.items == turn.items
        assert (each.finish_reason, each.cut_off) == (turn.finish_reason, turn.cut_off)
        assert each.usage == turn.usage
    assert turn.text == said.text
    assert [(call.id, call.name, json.loads(call.arguments)) for call in turn.tool_calls] == [
        *said.calls
    ]


def test_what_boto3_gives_is_read_as_it_is() -> None:
    """Bytes, times of HTTP and a server's own tools in a response are read, kept and sent back."""
    hidden = {"reasoningContent": {"redactedContent": b"\x00\xff"}}
    shown = {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}}
    ran = use("s1", type="server_tool_use")
    found = {"toolResult": {"toolUseId": "s1", "type": "x", "content": [{"text": "1"}]}}
    cited = {"citationsContent": {"content": [{"text": "It "}, {"text": "is"}], "citations": []}}
    given = response(
        hidden,
        shown,
        {"text": ""},
        {"text": "So"},
        ran,
        found,
        cited,
        use(),
        stopReason="tool_use",
        usage={"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 3, "totalTokens": 10},
        ResponseMetadata={"RequestId": "r1", "HTTPHeaders": {"date": "now"}},
        modelId="nova",
    )
    turn = bedrock_converse.decode(given)
    assert [type(item) for item in turn.items[:-1]] == [
        ReasoningItem,
        ReasoningItem,
        TextItem,
        ServerToolItem,
        ServerToolItem,
        TextItem,
    ]
    assert (turn.text, turn.reasoning, turn.model, turn.request_id) == (
        "SoIt is",
        "Hm",
        "nova",
        "r1",
    )
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.cached_tokens) == (8, 3)
    (call,) = turn.tool_calls
    assert (call.id, call.arguments) == ("t1", '{"b":null}')
    payload: Any = turn.payload
    assert payload["ResponseMetadata"] == {"RequestId": "r1"}
    assert bedrock_converse.decode(payload) == turn
    sent = bedrock_converse.messages([ASKED, turn, done(call)])[1]["content"]
    text = base64.b64encode(b"\x00\xff").decode()
    assert sent == [
        {"reasoningContent": {"redactedContent": text}},
        *(shown, {"text": "So"}, ran, found, cited, use()),
    ]
    assert bedrock_converse.with_bytes(sent)[0] == hidden
    other = bedrock_converse.encode_request(
        TurnRequest(items=[ASKED, turn, done(call)]), model="claude"
    )
    assert "reasoningContent" not in json.dumps(other)
    assert [loss.where for loss in other.losses] == ["items[1]"]
    assert [each["toolSpec"]["name"] for each in other["toolConfig"]["tools"]] == ["echo"]


@pytest.mark.parametrize("reason", ["guardrail_intervened", "content_filtered"])
def test_a_guardrail_refuses(reason: str) -> None:
    """Where a guardrail or a filter spoke, the turn says so beside what was said."""
    turn = bedrock_converse.decode(response({"text": "No."}, stopReason=reason))
    assert turn.items == (TextItem("No."), RefusalItem(""))
    assert turn.finish_reason == reason
    assert bedrock_converse.messages([ASKED, turn])[1]["content"] == [{"text": "No."}]


@pytest.mark.parametrize(
    ("block", "where"),
    [
        ({"text": 7}, "output.message.content[0].text"),
        ({"text": "x", "image": {}}, "output.message.content[0]"),
        ({}, "output.message.content[0]"),
        ({"video": 7}, "output.message.content[0].video"),
        ({"toolResult": {"toolUseId": "a", "content": []}}, "output.message.content[0]"),
        ({"toolUse": {"name": 7}}, "output.message.content[0].toolUse.name"),
    ],
)
def test_a_broken_block_is_told_with_its_place(block: Any, where: str) -> None:
    """What is no block of a model is an error that says where it stands."""
    with pytest.raises(DialectError, check=lambda error: error.where == where):
        bedrock_converse.decode(response(block))


def test_a_call_without_an_id_goes_out_with_one() -> None:
    """The API demands an id of each call: one that a host left out is ours."""
    turn = bedrock_converse.decode(response(use(None)))
    (call,) = turn.tool_calls
    said = bedrock_converse.messages([ASKED, turn, done(call)])
    assert said[1]["content"][0]["toolUse"]["toolUseId"] == call.id
    assert said[2]["content"][0]["toolResult"]["toolUseId"] == call.id


def test_files_go_as_data() -> None:
    """A file of a known format is a block of its kind, and any other a loss; a document has a name
    that the API takes, and a text beside it.
    """
    files = (
        file("a_b/c (1).pdf", "application/pdf"),
        file("", "text/x-python"),
        file("x.png", "image/png", "image"),
        file("x.mp4", "video/mp4", "video"),
        file("x.mp3", "audio/mpeg", "audio"),
        file("x.bin", "application/octet-stream"),
        Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png"),
    )
    body = bedrock_converse.encode_request(TurnRequest(items=[Message("user", "", files)]))
    assert refused(body) == ""
    content = body["messages"][0]["content"]
    assert content[0] == {"text": "a b c (1), document"}
    assert [(kind, each[kind]["format"]) for each in content[1:] for kind in each] == [
        ("document", "pdf"),
        ("document", "txt"),
        ("image", "png"),
        ("video", "mp4"),
        ("audio", "mp3"),
    ]
    assert [loss.where for loss in body.losses] == [
        "items[0].attachments[5]",
        "items[0].attachments[6]",
    ]


@pytest.mark.parametrize(
    ("mime_type", "form"),
    [
        ("audio/x-wav", "wav"),
        ("audio/wave", "wav"),
        ("audio/vnd.wave", "wav"),
        ("audio/mp3", "mp3"),
        ("Audio/MPEG", "mp3"),
    ],
)
def test_a_sound_goes_by_every_name_of_its_type(mime_type: str, form: str) -> None:
    """A file goes by each name that its type has: that of `.wav` differs between Pythons."""
    items = [Message("user", "", (file("x", mime_type, "audio"),))]
    body = bedrock_converse.encode_request(TurnRequest(items=items))
    assert (body["messages"][0]["content"][-1]["audio"]["format"], body.losses) == (form, ())
    chat = openai_chat.encode_request(TurnRequest(items=items))
    assert chat["messages"][0]["content"][-1]["input_audio"]["format"] == form


def test_results_say_how_they_ended() -> None:
    """A result has its status, its text and its files; those without a block are named, as is what
    the API takes in messages only.
    """
    call = ToolMetadata(id="c1", name="echo", arguments="{}")
    turn = AssistantTurn(tool_calls=[call])
    attachments = (
        file("x.png", "image/png", "image"),
        file("x.bin", "application/zip"),
        file("x.mp3", "audio/mpeg", "audio"),
    )
    result = ToolResult(
        id="c1", name="echo", arguments="{}", result='"no"', status="error", attachments=attachments
    )
    body = bedrock_converse.encode_request(TurnRequest(items=[ASKED, turn, result]))
    assert refused(body) == ""
    assert [loss.where for loss in body.losses] == [
        "items[2].attachments[1]",
        "items[2].attachments[2]",
    ]
    answer = body["messages"][2]["content"][0]["toolResult"]
    assert answer["status"] == "error"
    assert list(map(list, answer["content"])) == [["text"], ["image"]]
    assert "x.bin" in answer["content"][0]["text"]
    assert "x.mp3" in answer["content"][0]["text"]


@over(
    "model, status",
    [
        (None, "error"),
        ("us.anthropic.claude-sonnet-5-v1:0", "error"),
        ("amazon.nova-2-lite-v1:0", "error"),
        ("us.writer.palmyra-x5-v1:0", None),
        ("arn:aws:bedrock:us-west-2:1:application-inference-profile/a1", None),
    ],
)
def test_a_status_goes_to_the_models_that_take_one(model: str | None, status: str | None) -> None:
    """Only Claude and Nova know that a result is an error, and nobody has to be told of success."""
    calls = [ToolMetadata(id=id, name="echo", arguments="{}") for id in ("c1", "c2")]
    failed = ToolResult(id="c1", name="echo", arguments="{}", result='"no"', status="error")
    items: list[TranscriptItem] = [ASKED, AssistantTurn(tool_calls=calls), failed, done(calls[1])]
    body = bedrock_converse.encode_request(TurnRequest(items=items, tools=(ECHO,)), model=model)
    one, other = [block["toolResult"] for block in body["messages"][2]["content"]]
    assert (one.get("status"), "status" in other) == (status, False)
    assert one["content"] == [{"text": "no"}]


def test_an_empty_result_is_an_empty_text() -> None:
    """Some models refuse a result without content."""
    call = ToolMetadata(id="c1", name="echo", arguments="{}")
    empty = ToolResult(id="c1", name="echo", arguments="{}", result='""')
    said = bedrock_converse.messages([ASKED, AssistantTurn(tool_calls=[call]), empty])
    assert said[2]["content"][0]["toolResult"]["content"] == [{"text": ""}]
    assert bedrock_converse.check(said) == []


@over("model, asked", [("us.deepseek.r1-v1:0", None), (None, "us.deepseek.r1-v1:0")])
def test_deepseek_takes_no_reasoning_back(model: str | None, asked: str | None) -> None:
    """It refuses its own, which is not signed; who else signs nothing takes it back."""
    reasoned = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    content = [reasoned, {"text": "Yes."}]

    def sent(model: str | None, asked: str | None) -> Any:
        response = {"output": {"message": {"content": content}}, "stopReason": "end_turn"}
        turn = bedrock_converse.decode({**response, "modelId": model})
        request = TurnRequest(items=[ASKED, turn])
        return bedrock_converse.encode_request(request, model=asked)["messages"][1]["content"]

    assert sent(model, asked) == [{"text": "Yes."}]
    assert sent("openai.gpt-oss-120b-1:0", "openai.gpt-oss-120b-1:0") == content


def test_cache_points_are_blocks_of_their_own() -> None:
    """Points stand behind the tools, the instructions and the last messages of the user."""
    request = TurnRequest(
        items=[Message("system", "Be brief."), ASKED],
        tools=(ECHO,),
        cache=Cache(ttl="1h"),
    )
    body = bedrock_converse.encode_request(request)
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["toolConfig"]["tools"][-1] == point
    assert body["system"] == [{"text": "Be brief."}, point]
    assert body["messages"][0]["content"] == [{"text": "Go"}, point]
    plain = bedrock_converse.encode_request(TurnRequest(items=[ASKED], cache=Cache()))
    assert plain["messages"][0]["content"][-1] == {"cachePoint": {"type": "default"}}


def test_what_the_api_has_no_word_for_is_a_loss() -> None:
    """The API can neither forbid a call nor say anything of parallel ones."""
    request = TurnRequest(
        items=[ASKED], tools=(ECHO,), tool_choice=ToolChoice("none"), parallel_tool_calls=False
    )
    lost = {loss.where for loss in bedrock_converse.encode_request(request).losses}
    assert lost == {"tool_choice", "parallel_tool_calls"}
    request = TurnRequest(items=[ASKED], tools=(ECHO,), tool_choice=ToolChoice("specific", "echo"))
    body = bedrock_converse.encode_request(request)
    assert body["toolConfig"]["toolChoice"] == {"tool": {"name": "echo"}}
    extra = {"messages": [], "toolConfig": {"toolChoice": {"auto": {}}}}
    body = bedrock_converse.encode_request(TurnRequest(items=[], extra=extra))
    assert body == extra


def test_a_tool_among_the_extras_stands_after_those_of_the_request() -> None:
    """A tool that the provider runs does not take the place of the tools of the program."""
    own = {"systemTool": {"name": "nova_grounding"}}
    extra = {"toolConfig": {"tools": [own]}}
    request = TurnRequest(items=[ASKED], tools=(ECHO,), extra=extra)
    sent = bedrock_converse.encode_request(request)["toolConfig"]
    assert sent == {"tools": [*bedrock_converse.tools([ECHO]), own], "toolChoice": {"auto": {}}}


def test_tools_among_the_extras_are_declared_once() -> None:
    """Where the extras declare tools, no tool that was called is declared a second time."""
    call = {"toolUse": {"toolUseId": "c1", "name": "echo", "input": {}}}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"text": "done"}]}}
    said = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    items = bedrock_converse.read_history([{"role": "user", "content": [{"text": "Go"}]}, *said])[0]

    def names(config: Any) -> list[str]:
        request = TurnRequest(items=items, extra={"toolConfig": config})
        sent = bedrock_converse.encode_request(request)["toolConfig"]
        return [each["toolSpec"]["name"] for each in sent["tools"]]

    assert names({"tools": bedrock_converse.tools([ECHO])}) == ["echo"]
    assert names({"toolChoice": {"auto": {}}}) == ["echo"]


def test_user_and_assistant_take_turns() -> None:
    """What one side says several times in a row is one message, in requests and in repairs."""
    turns = [AssistantTurn(text="a"), AssistantTurn(text=" "), AssistantTurn(text="b")]
    said = bedrock_converse.messages([ASKED, AssistantTurn(text=" "), ASKED, *turns])
    assert said == [
        {"role": "user", "content": [{"text": "Go"}, {"text": "Go"}]},
        {"role": "assistant", "content": [{"text": "a"}, {"text": "b"}]},
    ]
    twice = [{"role": "user", "content": [{"text": text}]} for text in "ab"]
    (violation,) = bedrock_converse.check(twice)
    assert (violation.position, violation.rule) == ("messages[1]", "role_again")
    assert bedrock_converse.repair(twice)[0] == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]}
    ]


def test_what_is_broken_is_repaired() -> None:
    """Text in the place of blocks, ids that are missing or odd, results that are text: a repair
    makes of them what the API takes.
    """
    result = {"toolResult": {"toolUseId": "a b", "content": "done"}}
    broken: list[dict[str, Any]] = [
        {"role": "assistant", "content": [use("a b"), use(None), {"text": 7}]},
        {"role": "user", "content": [result, {"toolResult": {"content": ["x", {"text": "y"}]}}]},
        {"role": "assistant", "content": "So"},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "z", "content": None}}]},
    ]
    assert {each.rule for each in bedrock_converse.check(broken)} == {
        "first_role",
        "invalid_call_id",
        "not_text",
        "result_content_not_blocks",
        "invalid_content",
        "orphan_result",
    }
    repaired, _ = bedrock_converse.repair(broken)
    assert bedrock_converse.check(repaired) == []
    assert repaired[0] == {"role": "user", "content": [{"text": NOT_SHOWN}]}
    first, second, text = repaired[1]["content"]
    ids = [each["toolUse"]["toolUseId"] for each in (first, second)]
    assert [each["toolResult"]["toolUseId"] for each in repaired[2]["content"]] == ids
    contents = [each["toolResult"]["content"] for each in repaired[2]["content"]]
    assert contents == [[{"text": "done"}], [{"text": "x"}, {"text": "y"}]]
    assert (text, repaired[3]["content"]) == ({"text": "7"}, [{"text": "So"}])
    open_call = [{"role": "user", "content": [{"text": "Go"}]}, {**broken[0], "content": [use()]}]
    (answer,) = bedrock_converse.repair(open_call)[0][2]["content"]
    assert answer["toolResult"] == {
        "toolUseId": "t1",
        "content": [{"text": OUTCOME_UNKNOWN}],
        "status": "error",
    }
    long = "a" * 64
    alike = [open_call[0], {"role": "assistant", "content": [use(long), use(long)]}]
    assert bedrock_converse.check(bedrock_converse.repair(alike)[0]) == []


def test_messages_of_boto3_are_read() -> None:
    """A conversation that was kept as boto3 has it becomes a transcript, and comes back equal."""
    picture = {"image": {"format": "png", "source": {"bytes": PNG}}}
    paper = {"document": {"format": "md", "name": "notes", "source": {"text": "# Hi"}}}
    sheet = {"document": {"format": "odd", "name": "document", "source": {"bytes": b"hi"}}}
    point = {"cachePoint": {"type": "default"}}
    far = {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b"}}}}
    structured = {"toolUseId": "t1", "content": [{"json": {"a": 1}}], "status": "success"}
    mixed = {"toolUseId": "t2", "content": [{"text": "x"}, {"json": 1}], "status": "error"}
    kept = {
        "system": [{"text": "Be brief."}, point],
        "messages": [
            {"role": "user", "content": [{"text": "Look"}, picture, paper, sheet, point]},
            {"role": "assistant", "content": [use(), use("t2")]},
            {
                "role": "user",
                "content": [{"toolResult": structured}, {"toolResult": mixed}, {"text": "So?"}],
            },
            {"role": "assistant", "content": [{"text": "So."}]},
            {"role": "user", "content": [far]},
        ],
    }
    transcript, losses = bedrock_converse.read_history(kept)
    assert [loss.where for loss in losses] == [
        "system[1]",
        "messages[0].content[4]",
        "messages[2].content[1].toolResult",
        "messages[4].content[0].image",
    ]
    said = transcript[1]
    assert isinstance(said, Message)
    assert [(each.mime_type, each.name) for each in said.attachments] == [
        ("image/png", None),
        ("text/markdown", "notes.md"),
        ("application/octet-stream", None),
    ]
    results = [item for item in transcript if isinstance(item, ToolResult)]
    assert [(each.result, each.status) for each in results] == [
        ('{"a":1}', "success"),
        ('"x\\n\\n1"', "error"),
    ]
    body = anthropic_messages.encode_request(TurnRequest(items=list(transcript)))
    assert anthropic_messages.check(body) == []


def test_bytes_of_others_stay_as_they_are() -> None:
    """What a model or a user wrote under a name of ours is left alone, and so is odd base64."""
    body = {
        "messages": [{"role": "assistant", "content": [use(input={"bytes": "aGk="})]}],
        "odd": [{"source": {"bytes": "a"}}, {"source": {"bytes": 7}}],
    }
    assert bedrock_converse.with_bytes(body) == body


def start(index: int, **started: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"start": started, "contentBlockIndex": index}}


def delta(index: int, **more: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"delta": more, "contentBlockIndex": index}}


BEGIN = {"messageStart": {"role": "assistant"}, "modelId": "nova"}
STOP = {"messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": {"a": None}}}


def streamed(*events: dict[str, Any]) -> AssistantTurn:
    decoder = bedrock_converse.StreamDecoder()
    for event in (BEGIN, *events, STOP):
        decoder.feed(event)
    return decoder.finish()


def without_index(event: dict[str, Any]) -> dict[str, Any]:
    (kind,) = event
    return {kind: {key: each for key, each in event[kind].items() if key != "contentBlockIndex"}}


def test_a_stream_without_numbers_comes_to_the_same_turn() -> None:
    """A call starts after what came before, and so does a text after a stop; a beginning that is
    sent twice is one.
    """
    call = start(1, toolUse={"toolUseId": "a", "name": "look"})
    stops = [{"contentBlockStop": {"contentBlockIndex": number}} for number in range(5)]
    events = [
        *(delta(0, text="I "), delta(0, text="look."), stops[0]),
        *(call, delta(1, toolUse={"input": '{"at":'}), delta(1, toolUse={"input": "1}"}), stops[1]),
        *(start(2, toolUse={"toolUseId": "b", "name": "look"}), stops[2]),
        *(delta(3, reasoningContent={"text": "So"}), stops[3], delta(4, text="!"), stops[4]),
    ]
    numbered = streamed(*events)
    assert numbered.text == "I look.!"
    assert [(each.id, each.arguments) for each in numbered.tool_calls] == [
        ("a", '{"at":1}'),
        ("b", "{}"),
    ]
    assert streamed(*map(without_index, events)) == numbered
    assert streamed(*events[:4], call, *events[4:]) == numbered


def test_a_stream_is_put_together_as_a_whole_response() -> None:
    """Hidden reasoning, citations and what a server's tool gave come in pieces, and stand in the
    turn as a whole response has them.
    """
    turn = streamed(
        delta(0, reasoningContent={"redactedContent": b"\xff"}),
        delta(1, text="It is"),
        delta(1, citation={"title": "a"}),
        delta(1, citation={"title": "b"}),
        start(2, toolUse={"toolUseId": "s", "name": "web", "type": "server_tool_use"}),
        delta(2, toolUse={"input": '{"q":1}'}),
        {"contentBlockStop": {"contentBlockIndex": 2}},
        start(3, toolResult={"toolUseId": "s", "type": "web_result"}),
        delta(3, toolResult=[{"text": "x"}]),
        delta(3, toolResult=[{"text": "y"}]),
        start(4, image={"format": "png"}),
        delta(4, image={"source": {"bytes": b"hi"}}),
        start(5),
        delta(6, odd=7),
    )
    payload: Any = turn.payload
    content = payload["output"]["message"]["content"]
    cited = {"content": [{"text": "It is"}], "citations": [{"title": "a"}, {"title": "b"}]}
    ran = {"toolUseId": "s", "name": "web", "type": "server_tool_use", "input": {"q": 1}}
    found = {"toolUseId": "s", "type": "web_result", "content": [{"text": "x"}, {"text": "y"}]}
    assert content == [
        {"reasoningContent": {"redactedContent": "/w=="}},
        {"citationsContent": cited},
        {"toolUse": ran},
        {"toolResult": found},
        {"image": {"format": "png", "source": {"bytes": "aGk="}}},
        {"odd": {}},
    ]
    assert (turn.text, turn.model, turn.finish_reason) == ("It is", "nova", "end_turn")
    assert payload["additionalModelResponseFields"] == {"a": None}
    assert bedrock_converse.decode(payload) == turn


def test_reasoning_is_signed_in_a_stream() -> None:
    """A signature comes behind the text that it signs, and goes back with it."""
    decoder = bedrock_converse.StreamDecoder()
    decoder.feed(BEGIN)
    (told,) = decoder.feed(delta(0, reasoningContent={"text": "Hm"}))
    assert told == ReasoningDelta("Hm")
    assert decoder.feed(delta(0, reasoningContent={"signature": "s"})) == []
    decoder.feed(delta(1, text="Yes"))
    decoder.feed(STOP)
    shown = {"reasoningText": {"text": "Hm", "signature": "s"}}
    assert bedrock_converse.messages([ASKED, decoder.finish()])[1]["content"] == [
        {"reasoningContent": shown},
        {"text": "Yes"},
    ]


def test_reasoning_may_be_a_signature_alone() -> None:
    """Where the thinking is left out, its signature goes back beside an empty text."""
    events = (delta(0, reasoningContent={"signature": "s"}), delta(1, text="Yes"))
    signed = {"reasoningContent": {"reasoningText": {"signature": "s"}}}
    output = {"message": {"content": [signed, {"text": "Yes"}]}}
    whole = bedrock_converse.decode({"output": output, "stopReason": "end_turn"})
    for turn in (streamed(*events), whole):
        assert turn.items == (ReasoningItem(""), TextItem("Yes"))
        assert bedrock_converse.messages([ASKED, turn])[1]["content"] == [
            {"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}},
            {"text": "Yes"},
        ]


def test_a_stream_that_breaks_says_what_came() -> None:
    """An error in a stream is told, with what had been read; events out of place are errors."""
    decoder = bedrock_converse.StreamDecoder()
    for event in (BEGIN, delta(0, text="Hi"), start(1, toolUse={"toolUseId": "a", "name": "f"})):
        decoder.feed(event)
    with pytest.raises(DialectError, match="slow down") as caught:
        decoder.feed({"throttlingException": {"message": "slow down"}})
    assert isinstance(caught.value.turn, AssistantTurn)
    assert (caught.value.turn.text, caught.value.turn.tool_calls) == ("Hi", ())
    for event in (delta(0, text="x"), STOP, {"contentBlockStop": {}}):
        with pytest.raises(DialectError, match="has not started"):
            bedrock_converse.StreamDecoder().feed(event)
    with pytest.raises(DialectError, match="the content block 0 has not started"):
        streamed({"contentBlockStop": {}})
    assert streamed({"ResponseMetadata": 7}, start(0, toolUse={"name": "f"})).tool_calls
