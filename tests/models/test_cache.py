"""Caches, caps and other models by the SDKs' own clients, over a server on the loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import NeedsTools, Session, Toolset, tool
from lutum_py.models import LossWarning
from lutum_py.tools import MemoryResults, ResultCap

from .loopback import Loopback
from .said import MODEL, SIGNATURE, Said
from .sums import Sums, add
from .wires import MODES, Wire, in_each, outcome_of

CALL = Said(text="Let me see.", calls=(("c1", "add", {"a": 1}),))
ANSWER = Said(text="Hello.")
FIELDS: dict[str, dict[str, Any]] = {
    "openai_chat": {"key": "conversation-1", "retention": "24h"},
    "openai_responses": {"key": "conversation-1", "retention": "24h"},
    "anthropic_messages": {"ttl": "1h"},
    "gemini_generate_content": {"content": "cachedContents/abc"},
}


def started() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("Hello")
    return session


@in_each("mode", MODES)
async def test_a_cache_reaches_the_wire(wire: Wire, mode: str, server: Loopback) -> None:
    """The SDK's types and the dialect's rules take what a cache says, and it arrives."""
    server.replies.extend([wire.reply(CALL, mode), wire.reply(ANSWER, mode)])
    session = started()
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL)
        turn = session.text_turn(model).tools(Sums).cache(**FIELDS[wire.name])
        match await outcome_of(turn, mode):
            case NeedsTools(round):
                plan = round.plan()
                plan.commit(session, [await call.call() for call in plan.pending])
        await outcome_of(turn, mode)
    assert server.refusals == []
    assert model.losses == ()
    first, second = (received.body for received in server.received)
    text = json.dumps(second)
    if wire.name == "anthropic_messages":
        marker = {"type": "ephemeral", "ttl": "1h"}
        assert text.count(json.dumps(marker)) == 4
        assert json.dumps(first).count(json.dumps(marker)) == 3
        assert second["messages"][-1]["content"][-1]["cache_control"] == marker
        assert second["messages"][0]["content"][-1]["cache_control"] == marker
    elif wire.name == "gemini_generate_content":
        assert second["cachedContent"] == "cachedContents/abc"
        assert not {"tools", "toolConfig", "systemInstruction"} & second.keys()
        assert second["contents"][: len(first["contents"])] == first["contents"]
    else:
        assert second["prompt_cache_key"] == "conversation-1"
        assert second["prompt_cache_retention"] == "24h"


async def test_a_word_that_the_dialect_lacks_is_warned_of(wire: Wire, server: Loopback) -> None:
    """A field of a cache that goes nowhere is a warning, once."""
    server.replies.extend([wire.reply(ANSWER, "collect"), wire.reply(ANSWER, "collect")])
    lacking = "ttl" if wire.name.startswith(("openai", "gemini")) else "key"
    async with wire.client(server.url, "collect") as client:
        model = wire.model(client, MODEL)
        session = started()
        fields: Any = {lacking: "1h"}
        with pytest.warns(LossWarning, match=rf"cache\.{lacking}: {wire.name} has no word for it"):
            await session.text_turn(model).cache(**fields).collect()
        session.push_user("And?")
        await session.text_turn(model).cache(**fields).collect()
    assert [loss.where for loss in model.losses] == [f"cache.{lacking}"]


@pytest.fixture
def only_their_own(wire: Wire) -> str | None:
    """What the first turn has that only its model reads; None for a wire whose turn has none."""
    return {
        "openai_responses": '"reasoning"',
        "anthropic_messages": '"thinking"',
        "gemini_generate_content": SIGNATURE,
    }.get(wire.name)


@in_each("mode", MODES)
async def test_another_model_goes_on(
    wire: Wire, mode: str, server: Loopback, only_their_own: str | None
) -> None:
    """A conversation goes on with another model, without what only the first one reads."""
    server.replies.extend([wire.reply(CALL, mode), wire.reply(ANSWER, mode)])
    session = started()
    async with wire.client(server.url, mode) as client:
        first = wire.model(client, MODEL)
        match await outcome_of(session.text_turn(first).tools(Sums), mode):
            case NeedsTools(round):
                plan = round.plan()
                plan.commit(session, [await call.call() for call in plan.pending])
        said = session.transcript[2]
        other = wire.model(client, "another-one")
        turn = session.text_turn(other).tools(Sums)
        if only_their_own is None:
            await outcome_of(turn, mode)
        else:
            with pytest.warns(LossWarning, match=f"of {MODEL} is for that model .*another-one"):
                await outcome_of(turn, mode)
    assert server.refusals == []
    sent = json.dumps(server.received[1].body)
    assert only_their_own is None or only_their_own not in sent
    assert only_their_own is None or only_their_own in json.dumps(said.payload)  # type: ignore[union-attr]


@in_each("mode", MODES)
async def test_an_alias_is_the_same_model(wire: Wire, mode: str, server: Loopback) -> None:
    """A model that answers under another name than it was asked by gets its own thoughts back."""
    server.replies.extend([wire.reply(CALL, mode), wire.reply(ANSWER, mode)])
    session = started()
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, "an-alias")  # which answers as `MODEL`
        match await outcome_of(session.text_turn(model).tools(Sums), mode):
            case NeedsTools(round):
                plan = round.plan()
                plan.commit(session, [await call.call() for call in plan.pending])
        await outcome_of(session.text_turn(model).tools(Sums), mode)
    assert server.refusals == []
    assert model.losses == ()


async def test_capped_results_are_what_is_sent(wire: Wire, server: Loopback) -> None:
    """The provider reads the notice of a cap, and never the whole text."""
    store = MemoryResults()

    class Capped(Toolset, result_cap=ResultCap(400, store)):
        add_ = tool(add)

    server.replies.extend([wire.reply(CALL, "collect"), wire.reply(ANSWER, "collect")])
    session = started()
    async with wire.client(server.url, "collect") as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Capped)
        plan = (await outcome_of(turn, "collect")).round.plan()
        plan.commit(session, [plan.pending[0].fail("x" * 10_000)])
        await turn.collect()
    assert server.refusals == []
    ((_, read),) = wire.results(server.received[1].body)
    assert "9" in read
    assert len(read) < 500
    assert "read_more(handle=" in read
    assert len(store) == 1
