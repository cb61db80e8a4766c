"""The laws of adding up what turns cost."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import AssistantTurn, Message, Transcript, Usage
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from tests.cases import over
from tests.dialects.recordings import recordings, whole

FIELDS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cache_write_tokens",
)
counts = st.none() | st.integers(0, 10**9)
usages = st.fixed_dictionaries(dict.fromkeys(FIELDS, counts)).map(lambda each: Usage(**each))


@given(st.lists(usages, min_size=1))
def test_a_sum_counts_what_is_said_and_says_no_more(said: list[Usage]) -> None:
    """Each field of a sum is the sum of what is said in it, and None where nobody says a thing."""
    total = sum(said)
    for field in FIELDS:
        known = [count for each in said if (count := getattr(each, field)) is not None]
        assert getattr(total, field) == (sum(known) if known else None)


@given(usages, usages, usages)
def test_the_order_of_adding_does_not_matter(one: Usage, two: Usage, three: Usage) -> None:
    """Adding is associative and commutative, and nothing said changes nothing."""
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Usage() == one


@over("other", [1, 5, False, None, "5"])
def test_only_a_usage_is_added(other: Any) -> None:
    """Anything but a usage, or the nothing that `sum` begins with, is a TypeError."""
    with pytest.raises(TypeError):
        Usage(input_tokens=1) + other
    with pytest.raises(TypeError):
        other + Usage(input_tokens=1)


def transcript_of(*turns: tuple[str | None, Usage | None]) -> Transcript:
    transcript = Transcript()
    transcript.push(Message("user", "Hello"))
    for model, usage in turns:
        transcript.append_turn(AssistantTurn(text="Hi", model=model, usage=usage))
    return transcript


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.none() | usages)))
def test_the_sums_by_model_make_the_sum(turns: list[tuple[str | None, Usage | None]]) -> None:
    """What each model cost adds up to what the transcript cost, which is None where none says."""
    transcript = transcript_of(*turns)
    by_model = transcript.usage_by_model()
    said = [(model, usage) for model, usage in turns if usage is not None]
    assert list(by_model) == list(dict.fromkeys(model for model, _ in said))
    assert transcript.usage() == (sum(by_model.values(), Usage()) if said else None)
    for model, usage in by_model.items():
        assert usage == sum(each for name, each in said if name == model)


def test_usage_survives_being_saved_and_older_text_still_loads() -> None:
    """Tokens written to a cache come back; text that was saved before they were counted loads."""
    transcript = transcript_of(("a", Usage(input_tokens=9, cache_write_tokens=4)))
    text = transcript.dump_json()
    assert Transcript.load_json(text) == transcript
    data = json.loads(text)
    del data["items"][1]["usage"]["cache_write_tokens"]
    older = Transcript.load_json(json.dumps(data))
    assert older.usage() == Usage(input_tokens=9)


RAW = {
    anthropic_messages: (("usage",), (("cache_creation_input_tokens",),)),
    gemini_generate_content: (("usageMetadata",), ()),
    openai_chat: (("usage",), (("prompt_tokens_details", "cache_write_tokens"),)),
    openai_responses: (("usage",), (("input_tokens_details", "cache_write_tokens"),)),
}


def at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


@pytest.mark.parametrize("dialect", RAW, ids=lambda each: each.NAME)
def test_recorded_usages_add_up(dialect: ModuleType) -> None:
    """The sum over all that was recorded counts each token that a provider reports, once."""
    of_usage, of_writes = RAW[dialect]
    transcript = Transcript()
    written: list[int] = []
    output = 0
    for one in recordings(dialect.NAME, whole):
        if not isinstance(one.response, dict) or at(one.response, of_usage) is None:
            continue
        turn = dialect.decode(one.response)
        output += (turn.usage.output_tokens or 0) if turn.usage else 0
        said = [at(at(one.response, of_usage), path) for path in of_writes]
        written += [count for count in said if isinstance(count, int)]
        transcript.append_turn(AssistantTurn(text="-", model=turn.model, usage=turn.usage))
    total = transcript.usage()
    assert total is not None
    assert total.output_tokens == output > 0
    assert total.cache_write_tokens == (sum(written) if written else None)
    assert sum(transcript.usage_by_model().values(), Usage()) == total
