"""The laws of `check_loop` for loops over a provider's own messages."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import AssistantTurn, Finished, NeedsTools, ToolMetadata
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.dialects.authoring import wire_form_of
from lutum_py.testing import LoopFailure, check_loop
from lutum_py.testing._loop import judge
from lutum_py.testing.strategies import CallKind
from lutum_py.turns import ToolCallItem

from . import loops
from .samples import Small


def failure_of(loop: Any, *kinds: CallKind, **options: Any) -> LoopFailure:
    with pytest.raises(LoopFailure) as caught:
        check_loop(loop, Small, *kinds, **options)
    return caught.value


@pytest.mark.parametrize(
    "dialect", [openai_chat, openai_responses, anthropic_messages, gemini_generate_content]
)
def test_the_readmes_second_form_passes_in_every_dialect(dialect: Any) -> None:
    """A loop over a provider's own messages, with this library in it, passes in each dialect."""
    key = {"openai_responses": "input", "gemini_generate_content": "contents"}

    def loop(messages: list[Any], client: Any) -> str:
        while True:
            body = {key.get(dialect.NAME, "messages"): messages}
            response = client.create(model="m", tools=dialect.tools(Small), **body)
            match Small.read_turn(dialect.decode(response.to_dict())):
                case NeedsTools(round):
                    plan = round.plan()
                    committed = plan.resolve([call.call_sync() for call in plan.pending])
                    messages += dialect.messages(committed)
                case Finished(result):
                    return result.text

    check_loop(loop, Small, dialect=dialect, examples=60)

    async def async_loop(messages: list[Any], client: Any) -> str:
        while True:
            body = {key.get(dialect.NAME, "messages"): messages}
            response = await client.create(model="m", **body)
            match Small.read_turn(dialect.decode(response)):
                case NeedsTools(round):
                    messages += dialect.messages(round.resolve(await _run(round.tool_calls)))
                case Finished(result):
                    return result.text

    check_loop(async_loop, Small, dialect=dialect.NAME, examples=20)


async def _run(calls: Any) -> list[Any]:
    return [await call.call() for call in calls]


def test_a_right_loop_by_hand_passes() -> None:
    """A loop that does not use this library passes, if each call gets its answer."""
    check_loop(loops.by_hand, Small, dialect="openai_chat", **loops.PLAIN, examples=60)


@pytest.mark.parametrize("loop", loops.WRONG_BY_HAND, ids=lambda loop: loop.__name__)
def test_a_wrong_loop_by_hand_is_told_its_fault(loop: loops.Loop) -> None:
    """A wrong loop over plain messages fails with its fault and the place in the messages."""
    kind, words = loops.WRONG_BY_HAND[loop]
    failure = failure_of(loop, dialect="openai_chat", **loops.PLAIN)
    assert failure.faults[0].kind == kind
    assert words in str(failure)


@pytest.mark.parametrize(
    "dialect", [openai_chat, openai_responses, anthropic_messages, gemini_generate_content]
)
def test_another_name_is_no_change_where_the_provider_refuses_it(dialect: Any) -> None:
    """Each provider refuses other names; what its dialect writes in their place is taken for it."""
    for name in ("-", "1a", "-a", "a.b", "no such tool!", "a" * 65):
        call = ToolCallItem(ToolMetadata(id="c1", name=name, arguments="{}"))
        form = wire_form_of(dialect.NAME)
        turn = dialect.decode(form.response(AssistantTurn(items=[call]), 1))
        outcome = Small.read_turn(turn)
        assert isinstance(outcome, NeedsTools), name
        kept = list(form.said_in(dialect.messages(outcome.round.resolve())))
        given = [(turn, list(form.said_in(form.messages_of(turn.payload))))]
        assert not list(judge(given, kept, gave_up=False, was_stopped=False)), name


def test_an_odd_name_cannot_be_kept_by_hand() -> None:
    """A turn under a name that providers refuse is an invalid transcript, if it is kept so."""
    failure = failure_of(loops.by_hand, "unknown_tool", dialect="openai_chat", odd_ids=False)
    assert failure.faults[0].kind == "invalid_transcript"
    assert "invalid_tool_name" in str(failure)


def test_a_doubled_id_cannot_be_kept_by_hand() -> None:
    """A turn with two calls under one id is an invalid transcript, however it is answered."""
    failure = failure_of(loops.by_hand, dialect="openai_chat", odd_names=False, examples=2_000)
    assert failure.faults[0].kind == "invalid_transcript"
    assert "duplicate_call_id" in str(failure)


def test_long_conversations_are_cut_in_the_message() -> None:
    """What is left is shown in twenty lines at most, each cut, also what is no JSON."""

    def chatty(messages: list[Any], client: Any) -> None:
        ask = client.create(messages=messages)
        messages += [object(), *[{"role": "user", "content": "x" * 500}] * 30]
        assert ask

    failure = failure_of(chatty, dialect="openai_chat")
    lines = str(failure).split("The conversation afterwards:\n")[1].split("\n")
    assert len(lines) == 21
    assert lines[-1].endswith("and 12 more")
    assert max(map(len, lines)) < 180
    assert "<object object at" in lines[1]
