"""Hosts of OpenAI's formats: a stub of each replays its refusals, and what is sent avoids them."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    Session,
    ToolDef,
    ToolMetadata,
    ToolResult,
    TurnRequest,
)
from lutum_py.dialects import anthropic_messages, hosts, openai_chat, openai_responses
from lutum_py.dialects.hosts import DEEPSEEK, GROQ, MISTRAL, MOONSHOT, VLLM, XAI, Host
from lutum_py.errors import MisuseError
from lutum_py.models import LossWarning, OpenAIChat, OpenAIResponses
from tests.cases import over

HOSTS = {name: host for name, host in vars(hosts).items() if isinstance(host, Host)}
Refusal = tuple[int, str]
TOOL = ToolDef.from_json_schema(
    name="look", description="Look around. " * 200, input_schema={"type": "object"}
)
PICTURE = Attachment.from_bytes(b"\x89PNG", "image/png", name="view.png")


class Refused(Exception):
    """What the client of an SDK raises."""


# What each host refused by the reports that its record cites.


def ids_of_nine(body: dict[str, Any]) -> Refusal | None:
    for call in calls_in(body):
        if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]):
            text = f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
            return 400, text
    return None


def parsed(body: dict[str, Any]) -> Refusal | None:
    for call in calls_in(body):
        try:
            value = json.loads(call["function"]["arguments"])
        except ValueError as error:
            return 400, str(error)
        if not isinstance(value, dict):
            return 400, "'str object' has no attribute 'items'"
    return None


def unknown(*keys: str) -> Callable[[dict[str, Any]], Refusal | None]:
    def refuse(body: dict[str, Any]) -> Refusal | None:
        for at, message in enumerate(body["messages"]):
            for key in keys:
                if key in message:
                    return 400, f"'messages.{at}' : property '{key}' is unsupported"
        return None

    return refuse


def thinking(*empty: str | None) -> Callable[[dict[str, Any]], Refusal | None]:
    def refuse(body: dict[str, Any]) -> Refusal | None:
        for at, message in enumerate(body["messages"]):
            if message.get("tool_calls") and message.get("reasoning_content") in (None, *empty):
                return 400, f"reasoning_content is missing in assistant tool call message {at}"
        return None

    return refuse


def content(body: dict[str, Any]) -> Refusal | None:
    if any(message.get("content") in (None, []) for message in body["messages"]):
        return 400, "Each message must have at least one content element."
    return None


def described(body: dict[str, Any]) -> Refusal | None:
    for tool in body.get("tools", ()):
        length = len(tool["function"].get("description", ""))
        if length > 1024:
            return 400, f"string too long. Expected a string with maximum length 1024, got {length}"
    return None


def limit(body: dict[str, Any]) -> Refusal | None:
    if "max_completion_tokens" in body:
        return 422, "Extra inputs are not permitted"
    return None


def text_alone(body: dict[str, Any]) -> Refusal | None:
    for message in body["messages"]:
        if message["role"] == "tool" and not isinstance(message["content"], str):
            return 400, "Invalid 'messages' in payload."
    return None


def calls_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for each in body["messages"] for call in each.get("tool_calls", ())]


REASONING = unknown("reasoning_content", "reasoning", "reasoning_details")
STUBS: dict[str, list[Callable[[dict[str, Any]], Refusal | None]]] = {
    "VLLM": [parsed, text_alone],
    "LLAMA_CPP": [parsed],
    "OLLAMA": [parsed],
    "LM_STUDIO": [text_alone],
    "SGLANG": [parsed],
    "OPENROUTER": [],
    "GROQ": [unknown("reasoning_content")],
    "CEREBRAS": [unknown("reasoning_content")],
    "MISTRAL": [ids_of_nine, REASONING, limit],
    "DEEPSEEK": [thinking()],
    "MOONSHOT": [thinking("")],
    "QWEN": [parsed],
    "XAI": [content],
    "AZURE": [described],
}


def refusal(name: str, body: dict[str, Any]) -> Refusal | None:
    return next((no for stub in STUBS[name] if (no := stub(body)) is not None), None)


def said(call_id: str, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


TURNS = [
    openai_chat.decode({"choices": [{"message": said("call_abc", "{bad")}]}),
    openai_chat.decode({"choices": [{"message": said("call_abc", "[1]", reasoning="x")}]}),
    openai_chat.decode({"choices": [{"message": said("a_1", "{}", reasoning_content="x")}]}),
    openai_chat.decode({"choices": [{"message": said("Z12345678", '{"a":1}')}]}),
    AssistantTurn(tool_calls=[ToolMetadata(id="toolu_1", name="look", arguments="{}")]),
    anthropic_messages.decode(
        {"content": [{"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"b": 2}}]}
    ),
]


def answered(turn: AssistantTurn, *files: Attachment) -> list[Any]:
    results = [
        ToolResult(
            id=call.id, name=call.name, arguments=call.arguments, result='"x"', attachments=files
        )
        for call in turn.tool_calls
    ]
    return [Message("user", "Go"), turn, *results, Message("user", "And?")]


def request(*turns: AssistantTurn) -> TurnRequest:
    items = [item for turn in turns for item in answered(turn, PICTURE)]
    return TurnRequest(items=items, tools=(TOOL,), max_output_tokens=50)


def test_each_record_has_a_stub() -> None:
    """Every host is tried, and each of its fields is what a stub refuses."""
    assert HOSTS.keys() == STUBS.keys()
    plain = Host(name="")
    for name, host in HOSTS.items():
        own = [
            each.name
            for each in fields(Host)
            if getattr(host, each.name) != getattr(plain, each.name)
        ]
        assert len(own) - 1 == len([stub for stub in STUBS[name] if stub is not text_alone])
        assert pickle.loads(pickle.dumps(host)) == host


@pytest.mark.parametrize("name", STUBS)
@over("turns", [TURNS, *([turn] for turn in TURNS)])
def test_what_is_sent_to_a_host_is_taken(name: str, turns: list[AssistantTurn]) -> None:
    """A rendered request is taken by the host, `check` finds nothing, and `repair` leaves it."""
    host = HOSTS[name]
    sent = request(*turns)
    body = openai_chat.encode_request(sent, host=host)
    assert refusal(name, body) is None
    assert openai_chat.check(dict(body), host=host) == []
    assert openai_chat.repair(dict(body), host=host) == (dict(body), [])
    assert openai_chat.messages(sent.items, host=host) == body["messages"]
    calls = [call["id"] for call in calls_in(body)]
    results = [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]
    assert calls == results
    # What goes out for OpenAI is refused by the host in all that it is refused for here.
    plain = dict(openai_chat.encode_request(sent))
    before = copy.deepcopy(plain)
    found = openai_chat.check(plain, host=host)
    assert bool(found) >= (refusal(name, plain) is not None)
    repaired, changes = openai_chat.repair(plain, host=host)
    assert len(changes) == len(found)
    assert refusal(name, repaired) is None
    assert openai_chat.check(repaired, host=host) == []
    assert plain == before


@over("name", [name for name, stubs in STUBS.items() if set(stubs) - {text_alone}])
def test_the_stub_refuses_what_goes_out_for_openai(name: str) -> None:
    """Without its record, the host refuses one of these requests, as was reported."""
    status, text = refusal(name, openai_chat.encode_request(request(*TURNS))) or (200, "")
    assert (status in (400, 422), bool(text)) == (True, True)


def test_reasoning_goes_back_where_it_is_wanted() -> None:
    """The model's own reasoning is kept; only a turn without any gets the stand-in."""
    body = openai_chat.encode_request(request(*TURNS[2:4]), host=MOONSHOT)
    sent = [each.get("reasoning_content") for each in body["messages"] if "tool_calls" in each]
    assert sent == ["x", " "]
    assert "reasoning_content" not in str(openai_chat.encode_request(request(*TURNS), host=GROQ))
    losses = openai_chat.encode_request(request(TURNS[2]), host=GROQ).losses
    assert "messages[1].reasoning_content" in [loss.where for loss in losses]
    plain = openai_chat.encode_request(request(TURNS[2]))
    empty = openai_chat.repair({**plain, "messages": plain["messages"][:1]}, host=DEEPSEEK)
    assert empty[1] == []


def test_files_of_results_go_where_they_are_taken() -> None:
    """A host that takes files in results gets them; elsewhere they are named, and a loss."""
    mine = replace(VLLM, name="mine", files_in_results=True)
    body = openai_chat.encode_request(request(TURNS[3]), host=mine)
    (result,) = [each for each in body["messages"] if each["role"] == "tool"]
    assert [part["type"] for part in result["content"]] == ["text", "image_url"]
    assert body.losses == ()
    assert openai_chat.check(dict(body), host=mine) == []
    found = openai_chat.check(dict(body))
    assert [each.position for each in found] == ["messages[2].content[1]"]
    repaired, (change,) = openai_chat.repair(dict(body), host=VLLM)
    assert change.rule == "file_in_result"
    assert [part["type"] for part in repaired["messages"][2]["content"]] == ["text", "text"]
    plain = openai_chat.encode_request(request(TURNS[3]))
    assert [loss.where for loss in plain.losses] == ["items[2].attachments[0]"]
    assert "view.png" in plain["messages"][2]["content"]
    alone = openai_chat.messages([answered(TURNS[3])[2]], host=MISTRAL)
    assert alone[0]["tool_call_id"] == "Z12345678"
    text = openai_chat.encode_request(TurnRequest(items=answered(TURNS[3])), host=mine)
    assert text["messages"][2]["content"] == "x"


def test_what_is_cut_is_a_loss() -> None:
    """A description that the host does not take is cut, and that is a loss."""
    body = openai_chat.encode_request(request(TURNS[3]), host=hosts.AZURE)
    assert len(body["tools"][0]["function"]["description"]) == 1024
    assert body["tools"][0]["function"]["description"].endswith("…")
    assert "tools[0].function.description" in [loss.where for loss in body.losses]
    assert openai_chat.encode_request(TurnRequest(items=[Message("user", "Hi")]), host=XAI) == {
        "messages": [{"role": "user", "content": "Hi"}]
    }


def test_ids_are_the_same_in_each_request() -> None:
    """The id that stands for another is made of it alone, and has the form of the host."""
    one = openai_chat.encode_request(request(*TURNS[:3]), host=MISTRAL)
    two = openai_chat.encode_request(request(*TURNS), host=MISTRAL)
    assert [call["id"] for call in calls_in(one)] == [call["id"] for call in calls_in(two)][:3]
    assert len({call["id"] for call in calls_in(two)}) == len(TURNS)


def test_a_host_is_a_record() -> None:
    """Anything else in its place is refused where it is given."""
    wrong: Any = "deepseek"
    with pytest.raises(MisuseError, match="Host"):
        openai_chat.encode_request(request(), host=wrong)
    with pytest.raises(MisuseError, match="Host"):
        OpenAIChat(stub_client("OPENROUTER", []), "m", host=wrong)
    with pytest.raises(MisuseError, match="Host"):
        OpenAIResponses(SimpleNamespace(responses=SimpleNamespace(create=print)), "m", host=wrong)


def stub_client(name: str, asked: list[Any]) -> Any:
    def create(**body: Any) -> dict[str, Any]:
        asked.append(body)
        if (no := refusal(name, body)) is not None:
            raise Refused(*no)
        return {"choices": [{"message": {"role": "assistant", "content": "Done"}}]}

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


@pytest.mark.parametrize("name", STUBS)
@pytest.mark.filterwarnings("ignore::lutum_py.models.LossWarning")
def test_a_model_at_a_host_goes_on(name: str) -> None:
    """`OpenAIChat(..., host=...)` sends what the host takes, whoever made the turns before."""
    asked: list[Any] = []
    client = stub_client(name, asked)
    outcome = OpenAIChat(client, "m", host=HOSTS[name]).respond_sync(request(*TURNS))
    assert outcome.text == "Done"
    if set(STUBS[name]) - {text_alone}:
        with pytest.raises(Refused):
            OpenAIChat(client, "m").respond_sync(request(*TURNS))


def test_what_a_host_costs_is_a_warning() -> None:
    """A loss that a host's ways bring is reported like any other."""
    session = Session()
    session.push_user("Hello")
    model = OpenAIChat(stub_client("GROQ", []), "m", host=GROQ)
    with pytest.warns(LossWarning, match="reasoning_content"):
        model.respond_sync(TurnRequest(items=answered(TURNS[2])))
    assert openai_responses.DIALECT.host is None


def test_a_host_changes_no_other_dialect() -> None:
    """Where there is one host alone, the parameter is without effect."""
    sent = TurnRequest(items=answered(TURNS[3]))
    for dialect in (anthropic_messages, openai_responses):
        assert dialect.encode_request(sent, host=MISTRAL) == dialect.encode_request(sent)
        assert dialect.check([{"role": "user", "content": "Hi"}], host=MISTRAL) == []
    body = openai_responses.encode_request(TurnRequest(items=answered(TURNS[0])), host=VLLM)
    assert body["input"][1]["arguments"] == '{"INVALID_JSON":"{bad"}'
    said = openai_responses.messages(answered(TURNS[0]), host=VLLM)
    assert said == body["input"]


def test_a_host_takes_calls_that_have_its_ids() -> None:
    """Ids of the length that a host wants break no rule; others do, though the pairs are right."""
    found: dict[str, list[str]] = {}
    for id in ("abcdefgh1", "call_1"):
        function = {"name": "look", "arguments": "{}"}
        messages = [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "tool_calls": [{"id": id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": id, "content": "A lake."},
        ]
        found[id] = [each.rule for each in openai_chat.check(messages, host=MISTRAL)]
    assert found == {"abcdefgh1": [], "call_1": ["invalid_call_id"]}


@over("host", [DEEPSEEK, MOONSHOT])
def test_a_host_that_wants_reasoning_gets_what_a_turn_has_under_another_name(host: Host) -> None:
    """Routers and servers of a host's model call it `reasoning`: that text is sent under the name
    that the host reads, and its stand-in only where there is none.
    """
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for reasoning, given, sent in (
        ("I should look.", None, "I should look."),
        ("I should look.", "", "I should look."),
        ("I should look.", "So I do.", "So I do."),
        (" ", None, host.missing_reasoning),
        (None, None, host.missing_reasoning),
        (3, None, host.missing_reasoning),
    ):
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [called]}
        message |= {"reasoning": reasoning} if reasoning is not None else {}
        message |= {"reasoning_content": given} if given is not None else {}
        kept = [{"role": "user", "content": "Look"}, message, {**RESULT}]
        mended, changes = openai_chat.repair(kept, host=host)
        assert mended[1]["reasoning_content"] == sent
        assert openai_chat.check(mended, host=host) == []
        assert len(changes) == (given != sent)
        assert bool(openai_chat.check(kept, host=host)) == (given != sent)
    response = {"choices": [{"message": {**message, "reasoning": "I should look."}}]}
    turn = openai_chat.decode(response)
    assert openai_chat.messages([turn], host=host)[0]["reasoning_content"] == "I should look."


RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a wall"}
