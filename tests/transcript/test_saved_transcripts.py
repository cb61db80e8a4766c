"""The laws of transcripts and results that an earlier release saved: each loads whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from lutum_py import AssistantTurn, Attachment, Message, ToolMetadata, ToolResult, Transcript, Usage
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem, ToolCallItem

from ..data.saved import ANTHROPIC, CHAT, GEMINI, RESPONSES, TRANSCRIPTS

FOLDER: Final = Path(__file__).parent.parent / "data" / "release_0_1"
PICTURE: Final = Attachment(
    media_type="image",
    mime_type="image/png",
    url="data:image/png;base64,iVBORw0KGgo=",
    caption="The signature",
    size=8,
)
SOUND: Final = Attachment(media_type="audio", mime_type="audio/wav", url="https://e.org/a.wav")
OPENING: Final = (
    Message("system", "You are the assistant of an office."),
    Message("user", "Go on."),
)


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def loaded(name: str) -> tuple[Any, ...]:
    return tuple(Transcript.load_json(text_of(f"transcript_{name}")))


def facts(turn: AssistantTurn) -> tuple[Any, ...]:
    """What a turn says of itself, but for its parts and its payload."""
    return (turn.finish_reason, turn.usage, turn.model, turn.request_id, turn.dialect)


def without_nulls(value: Any) -> Any:
    """What a payload keeps of a response: a field that is null says nothing."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def test_every_saved_transcript_is_read() -> None:
    """Each transcript is there, of version 1, and survives being saved by this release."""
    names = {path.stem.removeprefix("transcript_") for path in FOLDER.glob("transcript_*.json")}
    assert names == set(TRANSCRIPTS)
    for name in names:
        text = text_of(f"transcript_{name}")
        data = json.loads(text)
        assert (data["format"], data["version"]) == ("lutum_py.transcript", 1)
        again = Transcript.load_json(text)
        assert Transcript.load_json(again.dump_json()) == again


def test_a_chat_comes_back() -> None:
    """Calls keep the text of their arguments, results every field and their files."""
    *opening, turn, first, second = loaded("chat")
    assert tuple(opening) == OPENING
    search = ToolMetadata(id="call_1", name="archive_search", arguments='{ "query":"é" }')
    sign = ToolMetadata(id="call_2", name="sign", arguments='{"paper":"lease"}')
    assert turn.items == (TextItem("Looking it up."), ToolCallItem(search), ToolCallItem(sign))
    assert facts(turn) == (
        "tool_calls",
        Usage(input_tokens=120, output_tokens=30, cached_tokens=100, reasoning_tokens=8),
        "chat-model",
        "chatcmpl-made-1",
        "openai_chat",
    )
    assert turn.payload == without_nulls(CHAT)
    assert first == ToolResult(
        id="call_1",
        name="archive_search",
        arguments='{ "query":"é" }',
        result='["é 0"]',
        message="One file.",
        attachments=(PICTURE, SOUND),
    )
    assert second == ToolResult(
        id="call_2",
        name="sign",
        arguments='{"paper":"lease"}',
        result='"the pen is dry"',
        status="error",
        code="dry_pen",
    )


def test_responses_come_back() -> None:
    """Reasoning, the tool of a server, text and a call stand in their order."""
    *opening, turn, result = loaded("responses")
    assert tuple(opening) == OPENING
    call = ToolMetadata(
        id="call_r1", name="archive_search", arguments='{"query":"lease","limit":1}'
    )
    assert turn.items == (
        ReasoningItem("The lease is old."),
        ServerToolItem("web_search_call", RESPONSES["output"][1]),
        TextItem("I look."),
        ToolCallItem(call),
    )
    assert facts(turn) == (
        "completed",
        Usage(input_tokens=80, output_tokens=40, cached_tokens=0, reasoning_tokens=16),
        "responses-model",
        "resp_made_1",
        "openai_responses",
    )
    assert turn.payload == without_nulls(RESPONSES)
    assert result == ToolResult(
        id="call_r1",
        name="archive_search",
        arguments=call.arguments,
        result="[]",
        status="cancelled",
    )


def test_messages_come_back() -> None:
    """Thinking keeps its signature, a null in the arguments stays, and an unknown end is told."""
    *opening, turn, result = loaded("anthropic")
    assert tuple(opening) == OPENING
    arguments = '{"cents":2000,"to":[{"name":"Ann","city":null}]}'
    assert turn.items == (
        ReasoningItem("Sunday?"),
        ReasoningItem(""),
        TextItem("I pay."),
        ToolCallItem(ToolMetadata(id="toolu_1", name="transfer", arguments=arguments)),
    )
    assert facts(turn) == (
        "tool_use",
        Usage(input_tokens=100, output_tokens=25, cached_tokens=45),
        "messages-model",
        "msg_made_1",
        "anthropic_messages",
    )
    # Only what the API itself leaves out is dropped: the input of a call is kept whole.
    assert turn.payload == {k: v for k, v in ANTHROPIC.items() if k != "stop_sequence"}
    assert result == ToolResult(
        id="toolu_1",
        name="transfer",
        arguments=arguments,
        result="null",
        status="indeterminate",
        message="Nobody knows.",
    )


def test_generated_contents_come_back() -> None:
    """Calls that came without ids keep those that were made for them, and so do their results."""
    *opening, turn, first, second = loaded("gemini")
    assert tuple(opening) == OPENING
    ids = ("lutum_8d78e4ac3438bb0d6f2a306a", "lutum_3cbb7e4f9baa320946483494")
    lease, will = (
        ToolMetadata(id=call_id, name="sign", arguments=f'{{"paper":"{paper}"}}')
        for call_id, paper in zip(ids, ("lease", "will"), strict=True)
    )
    assert turn.items == (
        ReasoningItem("Which paper?"),
        TextItem("I sign."),
        ToolCallItem(lease),
        ToolCallItem(will),
    )
    assert facts(turn) == (
        "STOP",
        Usage(input_tokens=33, output_tokens=15, reasoning_tokens=4),
        "gemini-model",
        "gemini-made-1",
        "gemini_generate_content",
    )
    assert turn.payload == GEMINI
    assert [(each.id, each.arguments, each.result) for each in (first, second)] == [
        (ids[0], lease.arguments, '"signed"'),
        (ids[1], will.arguments, '"no \\u2713"'),
    ]
    assert second.output == "no ✓"


def test_messages_of_every_role_come_back() -> None:
    """Messages keep their files, a turn without a dialect has no payload, a refusal is one."""
    system, developer, user, turn, result, empty, refusal = loaded("messages")
    assert (system, empty) == (Message("system", "Be brief."), Message("user", ""))
    assert developer == Message("developer", "Never pay.", (PICTURE,))
    assert user == Message("user", "Pay ✓ \U0001f4b6", (SOUND, PICTURE))
    call = ToolMetadata(id="c1", name="payy", arguments="{")
    assert turn.items == (TextItem("I pay."), ToolCallItem(call))
    assert (*facts(turn), turn.payload) == ("tool_calls", None, None, None, None, None)
    reason = (
        "There is no tool `payy`, so nothing was run. Tools on offer: `transfer`, `sign`, "
        "`archive_search`."
    )
    assert (result.id, result.status, result.code) == ("c1", "rejected", "unknown_tool")
    assert result.rejection_reason == reason
    assert refusal.items == (RefusalItem("I may not."),)
    assert facts(refusal)[0] == "stop"


@pytest.mark.parametrize(
    ("name", "decode", "response"),
    [
        ("chat", openai_chat.decode, CHAT),
        ("responses", openai_responses.decode, RESPONSES),
        ("anthropic", anthropic_messages.decode, ANTHROPIC),
        ("gemini", gemini_generate_content.decode, GEMINI),
    ],
)
def test_a_saved_turn_is_what_its_response_is_read_as(
    name: str, decode: Callable[[Any], AssistantTurn], response: dict[str, Any]
) -> None:
    """A turn that an earlier release read and saved equals what the response decodes to now.

    But for tokens that are written to a cache, which it did not count.
    """
    saved, read = loaded(name)[2], decode(response)
    assert read.usage is not None
    assert saved.usage == replace(read.usage, cache_write_tokens=None)
    for field in ("items", "finish_reason", "model", "request_id", "dialect", "payload", "cut_off"):
        assert getattr(saved, field) == getattr(read, field), field


def test_a_result_comes_back() -> None:
    """A result that was saved by itself has every field."""
    assert ToolResult.load_json(text_of("result")) == ToolResult(
        id="c1",
        name="sign",
        arguments='{"paper":"will"}',
        result='{"ok":false}',
        status="error",
        message="The pen is dry.",
        attachments=(PICTURE, SOUND),
        code="dry_pen",
    )
