"""What a model sends: what was asked for, extras untouched, earlier turns as they came."""

from __future__ import annotations

import inspect
import json
import logging
import warnings
from itertools import product
from typing import Annotated, Any

import pytest
from pydantic import Field

from lutum_py import (
    AssistantTurn,
    Attachment,
    Finished,
    NeedsTools,
    Session,
    ToolInput,
    ToolRequirement,
    Toolset,
    TurnRequest,
    tool,
)
from lutum_py.models import LossWarning
from lutum_py.streaming import CallCompleted
from lutum_py.turns import ReasoningItem, TextItem

from .loopback import Loopback
from .said import MODEL, Said
from .sums import Sums
from .wires import MODES, Wire, in_each, outcome_of

CALLS = Said(text="Let me see.", calls=(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2})))
ANSWER = Said(text="Hello.")
NULL_CALL = Said(calls=(("c1", "search", {"query": "frog", "limit": None}),))


class Search(ToolInput[str]):
    query: str
    limit: int = 5


class Searching(Toolset):
    search = tool(Search)


def started() -> Session:
    session = Session()
    session.push_user("Hello")
    return session


def own_turn(wire: Wire, body: dict[str, Any]) -> Any:
    """Find what a request body gives back of the first turn of the model."""
    if wire.name == "openai_responses":
        return body["input"][1:-2]
    if wire.name == "gemini_generate_content":
        return body["contents"][1]
    return body["messages"][1]


def sent_turn(wire: Wire, mode: str) -> Any:
    """Give what the provider had sent, less what it does not take back."""
    whole = wire.whole(CALLS)
    if wire.name == "openai_responses":
        return whole["output"]
    if wire.name == "gemini_generate_content":
        content = whole["candidates"][0]["content"]
        # Gemini ends its streams with an empty text.
        end = [{"text": ""}] if mode.startswith("stream") else []
        return {**content, "parts": [*content["parts"], *end]}
    if wire.name == "anthropic_messages":
        return {"role": "assistant", "content": whole["content"]}
    message = whole["choices"][0]["message"]
    return {key: value for key, value in message.items() if value is not None}


@in_each("mode", MODES)
async def test_a_turn_goes_back_as_it_came(wire: Wire, mode: str, server: Loopback) -> None:
    """Reasoning, signatures and the text of arguments are sent again as the provider sent them."""
    server.replies.extend([wire.reply(CALLS, mode), wire.reply(ANSWER, mode)])
    session = started()
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        match await outcome_of(turn, mode):
            case NeedsTools(round):
                plan = round.plan()
                plan.commit(session, [await call.call() for call in plan.pending])
        await outcome_of(turn, mode)
    assert server.refusals == []
    assert own_turn(wire, server.received[1].body) == sent_turn(wire, mode)


@in_each("mode", MODES)
async def test_what_a_turn_asks_for_is_sent(wire: Wire, mode: str, server: Loopback) -> None:
    """Temperature, bound, required tool and parallel calls stand in the request."""
    server.replies.append(wire.reply(CALLS, mode))
    session = started()
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL)
        turn = session.text_turn(model).tools(Sums).require_tool(Sums.add)
        turn = turn.temperature(0.5).max_output_tokens(77)
        if wire.name != "gemini_generate_content":
            turn = turn.parallel_tool_calls()
        (await outcome_of(turn, mode)).round.discard()
    assert model.losses == ()
    (received,) = server.received
    text = json.dumps(received.body)
    assert "77" in text
    assert "0.5" in text
    assert server.refusals == []
    expected = wire.dialect.tool_choice(ToolRequirement.specific(Sums.add))
    choice = received.body.get("tool_choice") or received.body["toolConfig"]
    assert choice.items() >= expected.items()
    if wire.name == "gemini_generate_content":
        assert MODEL in received.path
    else:
        assert received.body["model"] == MODEL
        assert received.body.get("stream", False) is mode.startswith("stream")


@in_each("mode", MODES)
async def test_extras_arrive_untouched(wire: Wire, mode: str, server: Loopback) -> None:
    """A field that neither the library nor the SDK knows reaches the wire, nulls and all."""
    extra: dict[str, Any] = {
        "future_field": {"snake_case": None, "camelCase": [1, {"x": "ü"}]},
        "timeout": 3,
        "temperature": 0.25,
    }
    server.judge = lambda body: []
    server.replies.append(wire.reply(ANSWER, mode))
    async with wire.client(server.url, mode) as client:
        turn = started().text_turn(wire.model(client, MODEL)).temperature(1.0).extra(extra)
        assert isinstance(await outcome_of(turn, mode), Finished)
    body = server.received[0].body
    assert {key: body[key] for key in extra} == extra


async def test_extras_are_joined_with_what_is_sent_anyway(wire: Wire, server: Loopback) -> None:
    """A provider's own tool among the extras stands after the tools of the turn."""
    own = {"type": "own_search"}
    server.judge = lambda body: []
    server.replies.append(wire.reply(ANSWER, "collect"))
    async with wire.client(server.url, "collect") as client:
        model = wire.model(client, MODEL, strict=True)
        await started().text_turn(model).tools(Sums).extra({"tools": [own]}).collect()
    tools = server.received[0].body["tools"]
    assert tools == [*wire.dialect.tools(Sums, strict=True), own]


@in_each("mode, strict", [*product(MODES, [False, True])])
async def test_strict_tools_are_offered_strictly(
    wire: Wire, mode: str, server: Loopback, strict: bool
) -> None:
    """With `strict` the tools are those of the dialect's strict mode, else they are not."""
    server.replies.append(wire.reply(ANSWER, mode))
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL, strict=strict)
        await outcome_of(started().text_turn(model).tools(Sums), mode)
    assert server.refusals == []
    body = server.received[0].body
    assert body["tools"] == wire.dialect.tools(Sums, strict=strict)
    if wire.name == "gemini_generate_content":
        mode_sent = body["toolConfig"]["functionCallingConfig"]["mode"]
        assert mode_sent == ("VALIDATED" if strict else "AUTO")


@in_each("mode", MODES)
async def test_a_null_of_strict_mode_means_left_out(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """A field that strict mode made the model fill with null has its default; replay keeps it."""
    server.replies.extend([wire.reply(NULL_CALL, mode), wire.reply(ANSWER, mode)])
    session = started()
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL, strict=True)
        turn = session.text_turn(model).tools(Searching)
        outcome = await outcome_of(turn, mode)
        plan = outcome.round.plan()
        (call,) = plan.pending
        assert call.input == Search(query="frog", limit=5)
        plan.commit(session, [call.complete("found")])
        await outcome_of(turn, mode)
    assert server.refusals == []
    sent = json.dumps(server.received[1].body)
    assert "null" in sent


async def test_events_of_strict_mode_carry_the_authors_form(wire: Wire, server: Loopback) -> None:
    """A completed call in a stream has the same arguments as the call in the turn at its end."""
    server.replies.append(wire.reply(NULL_CALL, "stream"))
    async with wire.client(server.url, "stream") as client:
        model = wire.model(client, MODEL, strict=True)
        request = TurnRequest(items=started().transcript, tools=Searching.definitions())
        events = [event async for event in model.stream(request)]
    (call,) = [event.metadata for event in events if isinstance(event, CallCompleted)]
    assert call == events[-1].turn.tool_calls[0]  # type: ignore[union-attr]


@in_each("mode", MODES)
async def test_what_a_request_cannot_carry_is_warned_of_once(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """A turn of another provider loses its reasoning: a warning says so, once for a model."""
    foreign = AssistantTurn(
        items=[ReasoningItem("I think."), TextItem("Hello")], dialect="another", payload={}
    )
    session = started()
    session.transcript.append_turn(foreign)
    session.push_user("Go on.")
    server.replies.extend([wire.reply(ANSWER, mode)] * 2)
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL)
        turn = session.text_turn(model)
        with pytest.warns(LossWarning, match="its reasoning") as caught:
            await outcome_of(turn, mode)
        await outcome_of(turn, mode)
    assert len(caught) == 1
    assert caught[0].filename == inspect.getsourcefile(outcome_of)
    assert [loss.where for loss in model.losses] == ["items[1]"]
    assert server.refusals == []


async def test_a_loss_whose_warning_is_an_error_refuses_each_request(
    wire: Wire, server: Loopback
) -> None:
    """Where a `LossWarning` is an error, a request that has the loss is not sent, however often."""
    foreign = AssistantTurn(items=[ReasoningItem("I think.")], dialect="another", payload={})
    session = started()
    session.transcript.append_turn(foreign)
    session.push_user("Go on.")
    async with wire.client(server.url, "collect") as client:
        turn = session.text_turn(wire.model(client, MODEL))
        with warnings.catch_warnings():
            warnings.simplefilter("error", LossWarning)
            for _ in range(2):
                with pytest.raises(LossWarning, match="its reasoning"):
                    await turn.collect()
    assert server.received == []


async def test_a_rule_that_is_checked_here_is_no_warning(
    wire: Wire, server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    """What a provider does not enforce of a schema is in `losses` and in the log at INFO."""

    class Age(ToolInput[str]):
        text: Annotated[str, Field(max_length=3)]

    class Ages(Toolset):
        age = tool(Age)

    server.replies.append(wire.reply(ANSWER, "collect"))
    caplog.set_level(logging.INFO, "lutum.models")
    async with wire.client(server.url, "collect") as client:
        model = wire.model(client, MODEL, strict=True)
        await started().text_turn(model).tools(Ages).collect()
    assert [str(loss) for loss in model.losses] == [record.message for record in caplog.records]


async def test_an_image_reaches_the_wire(wire: Wire, server: Loopback) -> None:
    """An attachment of the user is sent in the form that the provider's types take."""
    session = Session()
    image = Attachment(
        media_type="image", mime_type="image/png", url="data:image/png;base64,iVBORw0KGgo="
    )
    session.push_user("What is this?", [image])
    server.replies.append(wire.reply(ANSWER, "collect"))
    async with wire.client(server.url, "collect") as client:
        await session.text_turn(wire.model(client, MODEL)).collect()
    assert server.refusals == []
    assert "iVBORw0KGgo=" in json.dumps(server.received[0].body)
