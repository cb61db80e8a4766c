"""The law of places: a round ends where it was opened, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import Message, NeedsTools, Session, Toolset, Transcript, tool, tool_fn
from lutum_py.errors import MisuseError
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.round_tools import close


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Sums(Toolset):
    add = tool(add)


TURN = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))


def opened(session: Session) -> Any:
    """A round of the session."""
    outcome = session.text_turn(ScriptedModel([TURN])).tools(Sums).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round


def started(text: str = "Add.") -> Session:
    """A session in which somebody said something."""
    session = Session()
    session.push_user(text)
    return session


def _pushed(session: Session) -> Session:
    session.push_user("And then?")
    return session


def _committed(session: Session) -> Session:
    other = opened(session)
    other.commit(session, [other.plan().pending[0].call_sync()])
    return session


WRONG: dict[str, Callable[[Session], Session]] = {
    "something was pushed": _pushed,
    "another round was committed": _committed,
    "an empty transcript": lambda session: Session(),
    "another conversation": lambda session: started("Subtract."),
    "a longer one": lambda session: _pushed(started("Subtract.")),
}
END: dict[str, Callable[[Any, Session], object]] = {
    "commit": lambda plan, session: plan.commit(session, _results(plan)),
    "commit to a transcript": lambda plan, session: plan.commit(session.transcript, _results(plan)),
    "abort": lambda plan, session: plan.abort(session, "It is late."),
}


def _results(plan: Any) -> list[Any]:
    """Results that were made elsewhere: the calls of the plan stay as they are."""
    return [Sums.parse_tool_call(call.metadata).complete(3) for call in plan.pending]


@over("where, way, kept", [(w, e, k) for w in WRONG for e in END for k in ("here", "saved")])
def test_a_round_does_not_end_in_another_place(where: str, way: str, kept: str) -> None:
    """Nothing changes, and the plan stays open; what was meant can be said."""
    session = started()
    plan = opened(session).plan()
    if kept == "saved":
        plan = Sums.load_plan(plan.dump_json())
    target = WRONG[where](session)
    before, steps = target.transcript.dump_json(), plan.steps
    with pytest.raises(MisuseError, match="Nothing was changed"):
        END[way](plan, target)
    assert (target.transcript.dump_json(), plan.steps) == (before, steps)
    target.transcript.append_round(plan.resolve(_results(plan)))
    assert len(target.transcript) >= 2


def ends_alike(first: str) -> Session:
    """A session whose last item and length are those of others."""
    session = started(first)
    session.transcript.append_turn(ScriptedModel.text("Shall I?"))
    session.push_user("Yes.")
    return session


@over("way, kept", [(e, k) for e in END for k in ("here", "saved with its session")])
def test_a_conversation_that_only_ends_alike_is_another(way: str, kept: str) -> None:
    """All that was said before the round counts, and a reload of just that is the same place."""
    session = ends_alike("Pay Ann.")
    plan: Any = opened(session).plan()
    if kept != "here":
        plan = Sums.load_session(Sums.dump_session(session, plan)).plan
    with pytest.raises(MisuseError, match="belongs to another conversation"):
        END[way](plan, ends_alike("Pay Bob."))
    END[way](plan, ends_alike("Pay Ann."))


def _stored(session: Session) -> Session:
    with open_store(":memory:") as store:
        store.save("a", None, session=session)
        return store.load("a").session


def _ephemeral(session: Session) -> Session:
    session.push_ephemeral_system("Be brief.")
    return session


SAME: dict[str, Callable[[Session], Session]] = {
    "the session": lambda session: session,
    "a branch": lambda session: session.branch(),
    "a reload": lambda session: Session(Transcript.load_json(session.transcript.dump_json())),
    "a store": _stored,
    "ephemeral messages": _ephemeral,
}


@over("where, way, kept", [(w, e, k) for w in SAME for e in END for k in ("here", "saved")])
def test_a_branch_or_reload_is_the_same_place(where: str, way: str, kept: str) -> None:
    """What has the same items is the same place, whoever has it."""
    session = started()
    plan = opened(session).plan()
    if kept == "saved":
        plan = Sums.load_plan(plan.dump_json())
    target = SAME[where](session)
    END[way](plan, target)
    assert len(target.transcript) == 3


def test_a_round_that_was_read_by_itself_has_no_place() -> None:
    """`read_turn` knows no conversation, so its rounds end anywhere."""
    outcome = Sums.read_turn(TURN)
    assert isinstance(outcome, NeedsTools)
    transcript = Transcript()
    transcript.push(Message("user", "Add."))
    plan = Sums.load_plan(outcome.round.plan().dump_json())
    plan.commit(transcript, _results(plan))
    assert len(transcript) == 3


def test_the_first_round_of_an_empty_session_has_its_place() -> None:
    """Where nothing was said, the place is the beginning."""
    session = Session()
    plan = opened(session).plan()
    with pytest.raises(MisuseError):
        plan.commit(started(), _results(plan))
    plan.commit(session, _results(plan))
    close(plan)
