"""Each SDK, sync and async, whole and streamed, carries a loop of several turns."""

from __future__ import annotations

from typing import Any

from lutum_py import AssistantTurn, Finished, NeedsTools, Session, Transcript
from lutum_py.streaming import CallCompleted, TextDelta, TurnFinished

from .loopback import Loopback
from .said import MODEL, Said
from .sums import Sums, make_hooks
from .wires import MODES, Wire, in_each, outcome_of

TWO_CALLS = Said(
    text="Let me see.",
    calls=(("c1", "add", {"a": 1, "b": 2}), ("c2", "shout", {"text": "grüß"})),
)
ONE_REJECTED = Said(calls=(("c3", "add", {"a": 13}), ("c4", "add", {"a": 4})))
ANSWER = Said(text="It is 3, and GRÜSS.")


async def take_round(session: Session, outcome: Any) -> None:
    """Decide, run and commit the calls of a turn."""
    assert isinstance(outcome, NeedsTools)
    plan = await outcome.round.apply_hooks(make_hooks())
    plan.commit(session, [await call.call() for call in plan.pending])


@in_each("mode", MODES)
async def test_a_loop_of_three_turns_with_parallel_calls(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """Two rounds of parallel calls and an answer pass a server that refuses disorder."""
    server.replies.extend(wire.reply(turn, mode) for turn in (TWO_CALLS, ONE_REJECTED, ANSWER))
    session = Session()
    session.push_system("Be brief.")
    session.push_user("What is 1 + 2, loudly?")
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        await take_round(session, await outcome_of(turn, mode))
        await take_round(session, await outcome_of(turn, mode))
        outcome = await outcome_of(turn, mode)
    assert server.refusals == []
    assert isinstance(outcome, Finished)
    assert outcome.result.text == ANSWER.text
    assert len(server.received) == 3
    first, second, third, fourth = wire.results(server.received[-1].body)
    assert "3" in first[1]
    assert "GRÜSS" in second[1]
    assert "thirteen is not welcome" in third[1]
    assert "5" in fourth[1]
    saved = session.transcript.dump_json()
    assert Transcript.load_json(saved) == session.transcript


@in_each("mode", MODES)
async def test_a_blocked_turn_runs_nothing(wire: Wire, mode: str, server: Loopback) -> None:
    """The calls of a turn that a filter ended are answered with why, and the loop goes on."""
    blocked = Said(calls=TWO_CALLS.calls, blocked=True)
    server.replies.extend(wire.reply(turn, mode) for turn in (blocked, ANSWER))
    session = Session()
    session.push_user("What is 1 + 2, loudly?")
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        outcome: Any = await outcome_of(turn, mode)
        assert outcome.round.turn.is_blocked
        plan = await outcome.round.apply_hooks(make_hooks())
        assert plan.pending == ()
        plan.commit(session)
        outcome = await outcome_of(turn, mode)
    assert server.refusals == []
    assert outcome.result.text == ANSWER.text
    told = [text for _, text in wire.results(server.received[-1].body)]
    assert ["was refused or filtered" in text for text in told] == [True, True]


@in_each("mode", MODES)
async def test_the_last_call_of_a_turn_at_a_limit_is_not_run(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """Arguments that the SDK may have completed are answered with that; the call before runs."""
    cut = Said(calls=TWO_CALLS.calls, cut_off=True)
    server.replies.extend(wire.reply(turn, mode) for turn in (cut, ANSWER))
    session = Session()
    session.push_user("What is 1 + 2, loudly?")
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        await take_round(session, await outcome_of(turn, mode))
        outcome: Any = await outcome_of(turn, mode)
    assert server.refusals == []
    assert outcome.result.text == ANSWER.text
    told = [text for _, text in wire.results(server.received[-1].body)]
    assert ["may be incomplete" in text for text in told] == [False, True]


async def test_whole_and_streamed_give_the_same_turn(wire: Wire, server: Loopback) -> None:
    """The same turn has the same text, calls, reasoning and usage, however it came in."""
    seen: list[Any] = []
    for mode in ("collect", "collect_sync", "stream", "stream_sync"):
        server.replies.append(wire.reply(TWO_CALLS, mode))
        async with wire.client(server.url, mode) as client:
            session = Session()
            session.push_user("Hello")
            turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
            outcome = await outcome_of(turn, mode)
        said: AssistantTurn = outcome.round.turn
        outcome.round.discard()
        seen.append((said.items, said.usage, said.model, said.request_id, said.dialect))
    assert server.refusals == []
    assert seen == [seen[0]] * 4


async def test_events_come_as_they_are_said(wire: Wire, server: Loopback) -> None:
    """A stream gives text and calls in order, and one finished turn at its end."""
    for mode in ("stream", "stream_sync"):
        server.replies.append(wire.reply(TWO_CALLS, mode))
        session = Session()
        session.push_user("Hello")
        async with wire.client(server.url, mode) as client:
            turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
            if mode == "stream":
                stream = turn.stream()
                events = [event async for event in stream]
                outcome: Any = stream.outcome
            else:
                sync_stream = turn.stream_sync()
                events = list(sync_stream)
                outcome = sync_stream.outcome
        outcome.round.discard()
        texts = [event.text for event in events if isinstance(event, TextDelta)]
        assert "".join(texts) == TWO_CALLS.text
        assert len(texts) == 2
        calls = [event.metadata.name for event in events if isinstance(event, CallCompleted)]
        assert calls == ["add", "shout"]
        assert [isinstance(event, TurnFinished) for event in events].index(True) == len(events) - 1
    assert server.refusals == []
