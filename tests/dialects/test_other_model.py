"""The laws of another model: what only one model reads goes to that one alone."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import AssistantTurn, Message, TurnRequest
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.turns import TranscriptItem
from tests.cases import over

from .every_dialect import DIALECTS
from .plain import FOREIGN_SIGNATURE, done
from .recordings import answered, recordings

SAME = [
    ("gpt-5", "gpt-5-2025-08-07"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929"),
    ("anthropic/claude-sonnet-4-5", "anthropic/claude-4.5-sonnet-20250929"),
    ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ("projects/p/locations/l/publishers/google/models/gemini-2.0-flash-001", "gemini-2.0-flash"),
    ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview"),
    ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("GPT-5", "gpt-5"),
]
APART = [
    ("gpt-5", "gpt-5-mini"),
    ("gpt-5", "gpt-5.2"),
    ("claude-opus-4-5", "claude-opus-4-1"),
    ("claude-opus-4-5", "claude-sonnet-4-5"),
    ("gemini-2.5-pro", "gemini-3-pro"),
    ("gemini-2.5-pro", "gemini-2.5-pro-preview"),
    # Another host: its fields are others.
    ("deepseek-reasoner", "deepseek/deepseek-reasoner"),
]


def made_by(model: str | None) -> AssistantTurn:
    return AssistantTurn(text="Hi", model=model)


def is_told_apart(made: str | None, *names: str) -> bool:
    """Whether the reasoning of a turn stays behind where these are the names of who is asked."""
    said = {"role": "assistant", "content": "Hi", "reasoning": "Hm."}
    turn = openai_chat.decode({"model": made, "choices": [{"message": said}]})
    body = sent(openai_chat, turn, names)
    assert ("reasoning" in body["messages"][1]) is not bool(body.losses)
    return bool(body.losses)


def test_no_name_takes_long_to_compare() -> None:
    """A name of many revisions, which a host made up, is compared step by step."""
    assert is_told_apart("gpt-5" + "-v1:0" * 200 + "x", "gpt-5")


def test_a_date_makes_no_other_model() -> None:
    """A date, `latest`, a revision and the path of a host are no difference, either way."""
    for one, other in SAME:
        assert not is_told_apart(one, other), (one, other)
        assert not is_told_apart(other, one), (one, other)
        assert not is_told_apart(other, "gpt-x", one), (one, other)


def test_models_of_one_family_are_told_apart() -> None:
    """Another size, another version and another host are another model."""
    for one, other in APART:
        assert is_told_apart(one, other), (one, other)
        assert is_told_apart(other, one), (one, other)


@given(st.text(max_size=12))
def test_what_is_not_known_is_the_same(name: str) -> None:
    """Without a name on either side, and with the very same name, nothing is left out."""
    assert not is_told_apart(None, name)
    assert not is_told_apart(name)
    assert not is_told_apart(name, name)


def answers(turn: AssistantTurn) -> list[TranscriptItem]:
    results = [done(call) for call in turn.tool_calls]
    return [Message("user", "Go"), turn, *results, Message("user", "On")]


def sent(dialect: Any, turn: AssistantTurn, model: Any) -> Any:
    return dialect.encode_request(TurnRequest(items=answers(turn)), model=model)


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "aGlk"}
TEXT = {"type": "text", "text": "Let me see."}
USE = {"type": "tool_use", "id": "t1", "name": "echo", "input": {}}


def test_anthropic_forgets_thinking() -> None:
    """Blocks of thinking, shown or hidden, are left out; all others go back as they came."""
    content = [THINKING, REDACTED, TEXT, USE]
    turn = anthropic_messages.decode({"model": "claude-opus-4-5-20251101", "content": content})
    assert sent(anthropic_messages, turn, "claude-opus-4-5")["messages"][1]["content"] == content
    body = sent(anthropic_messages, turn, "claude-sonnet-4-5")
    assert body["messages"][1]["content"] == [TEXT, USE]
    (loss,) = body.losses
    assert str(loss) == (
        "items[1]: the thinking of claude-opus-4-5-20251101 is for that model alone: not sent to "
        "claude-sonnet-4-5"
    )
    plain = anthropic_messages.decode({"model": "claude-opus-4-5", "content": [TEXT, USE]})
    assert sent(anthropic_messages, plain, "claude-sonnet-4-5").losses == ()


def test_responses_forgets_reasoning_and_ids() -> None:
    """Reasoning goes, with the ids by which the API would ask for it and what needs one."""
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "echo",
        "arguments": "{}",
        "status": "completed",
    }
    parts = [
        {"type": "output_text", "text": "Hi, ", "annotations": []},
        {"type": "refusal", "refusal": "no."},
    ]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}
    silent = {**message, "id": "msg_2", "content": []}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "aGlk"}
    output = [reasoning, search, message, silent, call]
    response = {"model": "gpt-5-2025-08-07", "output": output, "status": "completed"}
    turn = openai_responses.decode(response)
    assert sent(openai_responses, turn, "gpt-5")["input"][1:6] == output
    body = sent(openai_responses, turn, "gpt-5-mini")
    assert body["input"][1:-2] == [
        {"role": "assistant", "content": "Hi, no."},
        {key: value for key, value in call.items() if key != "id"},
    ]
    (loss,) = body.losses
    assert str(loss) == (
        "items[1]: the reasoning, the web_search_call that the provider ran of gpt-5-2025-08-07 "
        "is for that model alone: not sent to gpt-5-mini"
    )
    plain = openai_responses.decode({**response, "output": [message, call]})
    assert sent(openai_responses, plain, "gpt-5-mini").losses == ()


@over("field", ["reasoning", "reasoning_content", "reasoning_details"])
def test_chat_forgets_reasoning(field: str) -> None:
    """Whatever a host calls it, reasoning goes to no other model."""
    value = [{"type": "reasoning.text", "text": "Hm."}] if field.endswith("details") else "Hm."
    said = {"role": "assistant", "content": "Hi", field: value}
    turn = openai_chat.decode({"model": "qwen/qwen3-32b", "choices": [{"message": said}]})
    assert sent(openai_chat, turn, "qwen/qwen3-32b")["messages"][1] == said
    body = sent(openai_chat, turn, "gpt-5")
    assert body["messages"][1] == {"role": "assistant", "content": "Hi"}
    assert len(body.losses) == 1


@over("rest, content", [([{"type": "text", "text": "Hi"}], None), ([], ""), (["Hi"], None)])
def test_chat_forgets_parts_of_thinking(rest: list[Any], content: Any) -> None:
    """Thinking among the parts of a content is left out, and what remains can be sent."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    bare = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
    plain = openai_chat.decode({"model": "magistral-medium", "choices": [{"message": bare}]})
    assert sent(openai_chat, plain, "mistral-large")["messages"][1] == bare
    said = {"role": "assistant", "content": [thinking, *rest]}
    turn = openai_chat.decode({"model": "magistral-medium-2509", "choices": [{"message": said}]})
    message = sent(openai_chat, turn, "mistral-large")["messages"][1]
    assert message["content"] == ([{"type": "text", "text": "Hi"}] if content is None else content)


def test_gemini_forgets_thoughts_and_signatures() -> None:
    """Thoughts go, and signatures; the one that is documented for this stands in at a call."""
    call = {"name": "echo", "args": {}}
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "Hi", "thoughtSignature": "c2ln"},
        {"functionCall": call, "thoughtSignature": "c2ln"},
        {"functionCall": call},
        {"text": "", "thoughtSignature": "c2ln"},
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    turn = gemini_generate_content.decode(
        {"modelVersion": "gemini-2.5-pro", "candidates": [candidate]}
    )
    same = sent(gemini_generate_content, turn, "models/gemini-2.5-pro-001")
    assert same["contents"][1]["parts"] == parts
    body = sent(gemini_generate_content, turn, "gemini-3-pro")
    assert body["contents"][1]["parts"] == [
        {"text": "Hi"},
        {"functionCall": call, "thoughtSignature": FOREIGN_SIGNATURE},
        {"functionCall": call},
    ]
    (loss,) = body.losses
    assert "the thoughts of gemini-2.5-pro" in loss.text
    assert "gemini-3-pro" in loss.text


def test_gemini_has_a_signature_at_a_call_of_a_model_that_signs_nothing() -> None:
    """The stand-in is at the first call also where the other model signed none; nothing is lost."""
    content = {"role": "model", "parts": [{"functionCall": {"name": "echo", "args": {}}}]}
    turn = gemini_generate_content.decode(
        {"modelVersion": "gemini-2.0-flash", "candidates": [{"content": content}]}
    )
    body = sent(gemini_generate_content, turn, "gemini-3-pro")
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == FOREIGN_SIGNATURE
    assert body.losses == ()


def of_model(value: Any, found: list[str]) -> list[str]:
    """Collect what only one model reads in a body."""
    if isinstance(value, dict):
        if value.get("type") in ("thinking", "redacted_thinking", "reasoning"):
            found.append(value["type"])
        if value.get("thought"):
            found.append("thought")
        for key in ("reasoning", "reasoning_content", "reasoning_details"):
            if value.get(key):
                found.append(key)
        if value.get("thoughtSignature", FOREIGN_SIGNATURE) != FOREIGN_SIGNATURE:
            found.append("thoughtSignature")
        for each in value.values():
            of_model(each, found)
    elif isinstance(value, list):
        for each in value:
            of_model(each, found)
    return found


RECORDED = [anthropic_messages, gemini_generate_content, openai_chat, openai_responses]


@pytest.mark.parametrize("dialect", RECORDED, ids=lambda each: each.NAME)
def test_recorded_turns_go_to_another_model(dialect: ModuleType) -> None:
    """Of all that was recorded, nothing that one model reads goes to another, and all is valid."""
    lost = 0
    for one in recordings(dialect.NAME, lambda one: answered(one) and not one.stream):
        if not isinstance(one.response, dict):
            continue
        turn = dialect.decode(one.response)
        whole = sent(dialect, turn, None)
        assert sent(dialect, turn, turn.model) == whole
        if turn.model is None:
            continue
        body = sent(dialect, turn, "some-other-model")
        key = "contents" if "contents" in body else "input" if "input" in body else "messages"
        assert of_model(body[key], []) == []
        assert dialect.check(body) == []
        told = [loss for loss in body.losses if "some-other-model" in loss.text]
        assert bool(told) is (bool(of_model(whole[key], [])) or _ran_itself(whole[key]))
        assert all(turn.model in loss.text for loss in told)
        lost += len(told)
    print(f"\n{dialect.NAME}: {lost} turns go to another model without what only theirs reads")
    assert lost > 0


def _ran_itself(said: list[dict[str, Any]]) -> bool:
    """Whether some item of Responses is one that the provider ran."""
    own = ("message", "function_call", "custom_tool_call", "tool_search_call", "tool_search_output")
    kinds = [item["type"] for item in said if "type" in item]
    return any(kind not in own and not kind.endswith("_output") for kind in kinds)


@DIALECTS
def test_a_turn_that_says_nothing_of_its_model_goes_to_any(dialect: ModuleType) -> None:
    """A turn without a model, or with nothing that only one model reads, is the same for all."""
    request = TurnRequest(items=[Message("user", "Go"), made_by("a"), Message("user", "On")])
    plain = dialect.encode_request(request)
    for model in (None, "a", "b", ("a", "b")):
        body = dialect.encode_request(request, model=model)
        assert (body, body.losses) == (plain, plain.losses)
