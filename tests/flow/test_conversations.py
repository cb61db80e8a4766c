"""The laws of conversations: each is judged by its own words, wherever it goes on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lutum_py import Labels, Reply, Session, Transcript
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import HookError
from lutum_py.execution import run_sync
from lutum_py.flow import USER, FlowGate, Policy, Trace
from lutum_py.window import View
from tests.cases import over
from tests.flow.desk import Desk, asked_for, faults, told
from tests.profiles import scaled

MAILS = ["ann@a.com", "bob@b.com", "eve@c.com"]


def policy() -> Policy:
    made = Policy(Desk)
    made.fill(Desk.send, ["to"], USER)
    made.text(Desk.send, "body", USER, run=3)
    made.clean(Desk.pay)
    return made


SAID = st.lists(
    st.sampled_from(MAILS) | st.tuples(st.just("read_mail"), st.sampled_from(["a b c d", "x"])),
    max_size=5,
)


@settings(max_examples=scaled(32))
@given(st.lists(st.tuples(st.integers(0, 2), SAID), max_size=6), st.sampled_from(MAILS))
def test_conversations_that_take_turns_are_judged_as_each_alone(
    turns: list[tuple[int, list[Any]]], to: str
) -> None:
    """Whatever is said in between elsewhere, one policy finds in each what it finds in it alone."""
    shared = policy()
    sessions = [Session() for _ in range(3)]
    gates = [shared.gate(session) for session in sessions]
    for number, said in turns:
        told(*said, session=sessions[number])
        with asked_for(sessions[number], "send", to=[to], body="a b c") as asked:
            found = gates[number].trace(asked.expect_one())
            asked.discard()
        alone = told(*(each for of, said_ in turns if of == number for each in said_))
        if len(alone.transcript) == len(sessions[number].transcript):
            with asked_for(alone, "send", to=[to], body="a b c") as asked:
                assert policy().gate(alone).trace(asked.expect_one()) == found
                asked.discard()


def test_one_gate_in_many_threads_finds_the_same() -> None:
    """A gate that is asked for the first time in many threads at once reads each item once."""
    session = told(*MAILS[:2], *(("read_mail", f"{n} a b c") for n in range(20)))
    gate = policy().gate(session)

    def look(_: int) -> tuple[Trace, ...]:
        with asked_for(session, "send", to=[MAILS[2]], body="0 a b c") as asked:
            found = gate.trace(asked.expect_one())
            asked.discard()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert len(set(map(repr, pool.map(look, range(16))))) == 1

    async def together() -> set[str]:
        looks = (asyncio.to_thread(look, number) for number in range(8))
        return set(map(repr, await asyncio.gather(*looks)))

    assert len(asyncio.run(together())) == 1


@over("saves", [False, True])
def test_a_gate_of_another_session_is_refused(saves: bool) -> None:
    """So too for a plan that was saved: it goes on with a gate of its own session."""
    mine, other = told(MAILS[0]), told(MAILS[2])
    asked = asked_for(mine, "send", to=[MAILS[2]])
    text = Desk.dump_session(mine, asked.plan()) if saves else ""
    hooks, own = Desk.HookSet(), Desk.HookSet()
    hooks.gate()(policy().gate(other))
    restored = Desk.load_session(text) if saves else None
    plan = asked.plan() if restored is None else restored.plan
    session = mine if restored is None else restored.session
    assert plan is not None
    with plan:
        with pytest.raises(HookError, match="another conversation"):
            plan.apply_hooks_sync(hooks)
        own.gate()(policy().gate(session))
        assert len(plan.apply_hooks_sync(own).suspended) == 1
        plan.discard()


DIALECTS = [
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
]


@settings(max_examples=scaled(32))
@given(
    st.lists(
        st.tuples(
            st.none() | st.booleans(),
            st.none() | st.lists(st.sampled_from(MAILS), max_size=2),
        ),
        max_size=3,
    ),
    st.lists(st.sampled_from(["branch", "load", "view", "dialect", "edit"]), max_size=4),
)
def test_labels_stay_wherever_a_conversation_goes(
    labels: list[tuple[bool | None, list[str] | None]], ways: list[str]
) -> None:
    """Branched, loaded, cut from view, sent by each dialect or edited: the same is asked about."""
    made = policy()
    made.trust(Desk.more.look)
    made.sink(Desk.send, "to")
    session = told(*MAILS, *(("read_mail", Reply("x", labels=Labels(*each))) for each in labels))
    before = judged(made, session)
    for way in ways:
        if way == "branch":
            session = session.branch()
        elif way == "load":
            session = Session(Transcript.load_json(session.transcript.dump_json()))
        elif way == "view":
            View().clear_results(session, older_than=0)
        elif way == "dialect":
            assert all(each.messages(session.transcript) is not None for each in DIALECTS)
        else:
            session = edited(session)
        assert judged(made, session) == before


def judged(made: Policy, session: Session) -> list[Any]:
    paid = [fault for _, _, fault in faults(made, session, "pay", to="x", cents=1)]
    return [paid, *(faults(made, session, "send", to=[each]) for each in MAILS)]


def edited(session: Session) -> Session:
    """Let a person change the arguments of a call that says nothing, and commit it."""
    hooks = Desk.HookSet()
    always = Policy(Desk)
    always.trust(Desk.more.look)
    always.fill(Desk.more.look, "what")
    gate: FlowGate = always.gate(session)
    hooks.gate()(gate)
    plan = asked_for(session, "more_look", what="this").apply_hooks_sync(hooks)
    waiting = plan.suspended[0]
    plan.amend_sync(waiting.edit({"what": "that"}), hooks)
    run_sync(plan).commit(session)
    return session
