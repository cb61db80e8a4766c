"""The laws of the scripted client: it speaks a provider's JSON, and refuses what that refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, ToolMetadata, Usage
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import DialectError, MisuseError
from lutum_py.testing import ScriptedClient, ScriptedModel, ScriptExhausted

DIALECTS: list[Any] = [
    openai_chat,
    openai_responses,
    anthropic_messages,
    gemini_generate_content,
]
KEYS = {"openai_responses": "input", "gemini_generate_content": "contents"}
TURN = ScriptedModel.tool_calls(("a", "f", {"x": 1}), ("b", "g", {}), text="Hm")


def body_for(dialect: Any) -> dict[str, Any]:
    return {KEYS.get(dialect.NAME, "messages"): dialect.messages([Message("user", "Hello")])}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.NAME)
def test_a_turn_arrives_as_it_was_written(dialect: Any) -> None:
    """What a dialect decodes of the response is the turn of the script: text, calls and its end."""
    cut = ScriptedModel.tool_calls(("c", "f", {}), finish_reason="length")
    client = ScriptedClient([TURN, ScriptedModel.text("Hi"), cut], dialect)
    body = body_for(dialect)
    read = [dialect.decode(client.create(**body)) for _ in range(3)]
    assert (read[0].text, read[0].tool_calls) == (TURN.text, TURN.tool_calls)
    assert (read[1].text, read[1].tool_calls) == ("Hi", ())
    assert [turn.is_truncated for turn in read] == [False, False, True]
    assert client.requests == [body] * 3
    assert dialect.check(body[KEYS.get(dialect.NAME, "messages")]) == []


@pytest.mark.parametrize("dialect", [*DIALECTS, bedrock_converse], ids=lambda each: each.NAME)
def test_what_a_turn_of_a_script_costs_arrives(dialect: Any) -> None:
    """The tokens that a turn reports are in its response and its stream, as the wire counts."""
    usage = Usage(
        input_tokens=9_000,
        output_tokens=40,
        cached_tokens=7_000,
        reasoning_tokens=30,
        cache_write_tokens=500,
    )
    client = ScriptedClient([ScriptedModel.text("Hi", usage=usage)] * 2, dialect)
    whole = dialect.decode(client.create(**body_for(dialect)))
    uncounted: dict[Any, dict[str, Any]] = {
        gemini_generate_content: {"cache_write_tokens": None},
        bedrock_converse: {"reasoning_tokens": None},
    }
    assert whole.usage == replace(usage, **uncounted.get(dialect, {}))
    assert _streamed(dialect, client).usage == whole.usage


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.NAME)
def test_broken_calls_arrive_as_the_wire_can_carry_them(dialect: Any) -> None:
    """Cut argument text stays text, or is the object it began; a call without an id stays one."""
    turn = ScriptedModel.tool_calls(
        ("", "f", '{"a": 1, "b'), ("", "g", "[1]"), ("", "h", "no"), ("", "i", '{"\ud800')
    )
    calls = dialect.decode(ScriptedClient([turn], dialect).create(**body_for(dialect))).tool_calls
    by_object = dialect in (anthropic_messages, gemini_generate_content)
    expected = (
        ['{"a":1}', "{}", "{}", "{}"] if by_object else [c.arguments for c in turn.tool_calls]
    )
    assert [call.arguments for call in calls] == expected
    assert len({call.id for call in calls}) == 4


def test_every_way_to_the_method_leads_there() -> None:
    """The paths of all four SDKs give the same, with `await` or without, and dump as theirs do."""
    client = ScriptedClient([ScriptedModel.text("Hi")] * 6, "openai_chat")
    body = body_for(openai_chat)
    answers = [
        client.create(**body),
        client.chat.completions.create(**body),
        client.responses.create(**body),
        client.messages.create(**body),
        client.models.generate_content(**body),
    ]

    async def ask() -> Any:
        return await client.chat.completions.create(**body)

    answers.append(asyncio.run(ask()))
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == 1
    assert answers[0].to_dict() == answers[0].model_dump(mode="json", by_alias=True) == answers[0]
    assert type(answers[0].to_dict()) is dict
    client.assert_exhausted()


def test_a_script_may_hold_responses_errors_and_functions() -> None:
    """A response goes out as it is, an exception is raised, and a function sees the body."""
    body = body_for(openai_chat)
    raw = {"choices": [{"message": {"role": "assistant", "content": "raw"}}]}
    client = ScriptedClient([raw, TimeoutError("slow")], "openai_chat")
    assert client.create(**body) == raw
    with pytest.raises(TimeoutError, match="slow"):
        client.create(**body)
    with pytest.raises(ScriptExhausted, match=r"no turn for request 3, which ends with .*Hello"):
        client.create(**body)
    counting = ScriptedClient(lambda body: ScriptedModel.text(str(len(body))), "openai_chat")
    assert counting.create(**body)["choices"][0]["message"]["content"] == "1"
    with pytest.raises(MisuseError):
        ScriptedClient([7], "openai_chat").create(**body)  # type: ignore[list-item]
    with pytest.raises(MisuseError):
        ScriptedClient(raw, "openai_chat")  # type: ignore[arg-type]


def _gemini(*parts: dict[str, Any], **beside: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0, **beside}]}


def _chat(reason: str, **message: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **message}
    return {"choices": [{"index": 0, "finish_reason": reason, "message": message}]}


WHOLE: list[tuple[Any, dict[str, Any]]] = [
    (
        gemini_generate_content,
        _gemini(
            {"text": "Hm, so", "thought": True},
            {"text": "Well, Oslo", "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        ),
    ),
    (gemini_generate_content, _gemini({"text": "Oslo."}, groundingMetadata={"chunks": [1]})),
    (gemini_generate_content, {"promptFeedback": {"blockReason": "SAFETY"}}),
    (gemini_generate_content, {"candidates": [{"finishReason": "SAFETY", "index": 0}]}),
    (
        anthropic_messages,
        {
            "content": [
                {"type": "redacted_thinking", "data": "c2ln"},
                {"type": "text", "text": "Oslo."},
            ],
            "stop_reason": "end_turn",
        },
    ),
    (openai_chat, _chat("stop", reasoning_content="Hm, so", content="Oslo.")),
    (openai_chat, _chat("stop", refusal="I will not.")),
    (
        openai_chat,
        _chat(
            "tool_calls",
            reasoning="Hm, so",
            tool_calls=[
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": None}}
            ],
        ),
    ),
]


def _streamed(dialect: Any, client: ScriptedClient) -> AssistantTurn:
    """What a client's next answer says, streamed."""
    if dialect is gemini_generate_content:
        events = client.generate_content_stream(**body_for(dialect))
    else:
        events = client.create(**body_for(dialect), stream=True)
    decoder = dialect.StreamDecoder()
    for event in events:
        decoder.feed(event)
    turn: AssistantTurn = decoder.finish()
    return turn


THOUGHTS: list[tuple[Any, dict[str, Any], list[str]]] = [
    (
        anthropic_messages,
        {
            "content": [
                {"type": "thinking", "thinking": "Hm, so", "signature": "c2ln"},
                {"type": "thinking", "thinking": "Well"},
                {"type": "text", "text": "Oslo."},
            ],
            "stop_reason": "end_turn",
        },
        [*["thinking_delta"] * 2, "signature_delta", *["thinking_delta"] * 2],
    ),
    (
        bedrock_converse,
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": each}}
                        for each in ({"text": "Hm, so", "signature": "c2ln"}, {"text": "Well"})
                    ]
                    + [{"reasoningContent": {"redactedContent": "aGk="}}, {"text": "Oslo."}],
                }
            },
            "stopReason": "end_turn",
        },
        ["text", "text", "signature", "text", "text", "redactedContent"],
    ),
]


@pytest.mark.parametrize(("dialect", "response", "kinds"), THOUGHTS)
def test_thoughts_are_streamed_in_the_providers_pieces(
    dialect: Any, response: dict[str, Any], kinds: list[str]
) -> None:
    """Thoughts come in halves with their signature behind, and are the same in the end."""
    whole, client = dialect.decode(response), ScriptedClient([response] * 2, dialect)
    assert _streamed(dialect, client).items == whole.items
    told: list[str] = []
    for event in client.create(**body_for(dialect), stream=True):
        delta = event.get("delta") or event.get("contentBlockDelta", {}).get("delta", {})
        told += [*delta.get("reasoningContent", {}), delta.get("type", "")]
    assert [kind for kind in told if kind in kinds] == kinds


@pytest.mark.parametrize(("dialect", "response"), WHOLE)
def test_a_stream_says_all_that_its_response_says(dialect: Any, response: dict[str, Any]) -> None:
    """Streamed, a response of a script is the turn that it is whole: reasoning, refusals, ends."""
    whole = dialect.decode(response)
    turn = _streamed(dialect, ScriptedClient([response], dialect))
    assert (turn.items, turn.finish_reason) == (whole.items, whole.finish_reason)


@pytest.mark.parametrize("dialect", DIALECTS[:3], ids=lambda each: each.NAME)
def test_an_error_of_a_provider_is_one_in_a_stream_too(dialect: Any) -> None:
    """What comes in place of a turn is told as what it is, and is no fault of the kit."""
    error: dict[str, Any] = {"error": {"type": "overloaded", "code": "busy", "message": "Later."}}
    said = {"type": "error", **error} if dialect is anthropic_messages else error
    if dialect is openai_responses:
        said = {**error, "status": "failed", "output": []}
    client = ScriptedClient([said, said], dialect)
    with pytest.raises(DialectError, match="Later"):
        dialect.decode(client.create(**body_for(dialect)))
    with pytest.raises(DialectError, match="Later"):
        _streamed(dialect, client)


def test_what_a_provider_refuses_is_refused() -> None:
    """A body without messages, or with broken ones is an error that says so."""
    client = ScriptedClient([TURN] * 4, "openai_chat")
    with pytest.raises(DialectError, check=lambda error: error.where == "messages") as caught:
        client.create(model="m")
    assert (caught.value.dialect, caught.value.where) == ("openai_chat", "messages")
    orphan = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    with pytest.raises(DialectError, check=lambda error: error.where == "messages[0]") as caught:
        client.create(messages=[orphan])
    assert caught.value.where == "messages[0]"
    lenient = ScriptedClient([TURN], "openai_chat", check=False)
    assert lenient.create(messages=[orphan])["choices"]
    assert lenient.requests == [{"messages": [orphan]}]


def test_requests_stay_as_they_came() -> None:
    """What was recorded does not change with the list that was sent."""
    client = ScriptedClient([ScriptedModel.text("Hi")], "openai_chat")
    messages = openai_chat.messages([Message("user", "Hello")])
    client.create(messages=messages)
    messages.append({"role": "user", "content": "More"})
    assert len(client.requests[0]["messages"]) == 1


def test_a_bare_request_has_no_end() -> None:
    """Where nothing was said, the message of an exhausted script says that."""
    client = ScriptedClient([], "openai_chat", check=False)
    with pytest.raises(ScriptExhausted, match="ends with 'no message'"):
        client.create(messages=[])
    assert ToolMetadata(id="a", name="f", arguments="").name == "f"
