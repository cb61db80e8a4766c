"""The laws of another model: what only one model reads goes to that one alone."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import AssistantTurn, Message, TurnRequest
from lutum_py.dialects import (
    openai_chat,
)
from lutum_py.errors import MisuseError
from lutum_py.turns import TranscriptItem
from tests.cases import over

from .every_dialect import DIALECTS, key_of
from .other_model import sent
from .plain import FOREIGN_SIGNATURE, done
from .recordings import RECORDED_DIALECTS, answered, recordings

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


@pytest.mark.parametrize("dialect", RECORDED_DIALECTS, indirect=True)
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
        key = key_of(dialect)
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


@over("wrong", [3, [3], ["gpt-5", None]])
def test_a_model_has_names(wrong: Any) -> None:
    """What is neither a name nor a list of names is refused by its name."""
    request = TurnRequest(items=[Message("user", "Hi")])
    with pytest.raises(MisuseError, match="encode_request takes the name of a model, a list of"):
        openai_chat.encode_request(request, model=wrong)


def test_a_call_of_another_host_goes_as_a_new_host_takes_it() -> None:
    """It has an id, also where its host made none, and one that is not too long; and nothing is in
    it that only its own host reads. The model that made it gets it back as it came.
    """
    signed = {"google": {"thought_signature": "c2ln"}}
    function = {"name": "f", "arguments": "{}", "provider_specific_fields": {"a": 1}}
    calls = [
        {"type": "function", "function": function, "extra_content": signed},
        {"id": "", "type": "function", "function": function},
        {"id": "c" * 90, "type": "function", "function": function},
    ]
    said = {"role": "assistant", "content": None, "tool_calls": calls, "function_call": "odd"}
    response = {"model": "gemini-3", "choices": [{"message": said, "finish_reason": "stop"}]}
    turn = openai_chat.decode(response)
    items: list[TranscriptItem] = [Message("user", "Hi"), turn, *map(done, turn.tool_calls)]
    body = openai_chat.encode_request(TurnRequest(items=items), model="gpt-5")
    (loss,) = body.losses
    assert "the reasoning of gemini-3 is for that model alone" in str(loss)
    sent_calls = body["messages"][1]["tool_calls"]
    assert [call.keys() for call in sent_calls] == [{"id", "type", "function"}] * 3
    assert {*sent_calls[0]["function"]} == {"name", "arguments"}
    ids = [call["id"] for call in sent_calls]
    assert all(0 < len(each) <= 40 for each in ids)
    assert [message["tool_call_id"] for message in body["messages"][2:]] == ids
    assert len({*ids}) == 3
    own = openai_chat.encode_request(TurnRequest(items=items), model="gemini-3")
    assert own["messages"][1]["tool_calls"] == calls
