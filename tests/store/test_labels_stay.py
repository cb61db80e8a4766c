"""The law of labels in stores: what was on record before a kill is judged the same after it."""

from __future__ import annotations

import os
import signal
from typing import Any

from lutum_py import Labels, NeedsTools, Reply, Session, Toolset, tool, tool_fn
from lutum_py.flow import Policy
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel


@tool_fn
def read(what: str) -> Reply[str]:
    """Read something that only Ann may read."""
    return Reply(what, labels=Labels(trusted=False, readers=["ann@a.com"]))


@tool_fn
def send(to: str) -> str:
    """Send it."""
    return "sent"


class Desk(Toolset):
    read = tool(read)
    send = tool(send)


POLICY = Policy(Desk)
POLICY.trust("read")
POLICY.clean("send")
POLICY.sink("send", "to")


def plan_of(session: Session, *call: Any) -> Any:
    turn = ScriptedModel.tool_calls((f"c{len(session.transcript)}", *call))
    outcome = session.text_turn(ScriptedModel([turn])).tools(Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    hooks = Desk.HookSet()
    hooks.gate()(POLICY.gate(session))
    return outcome.round.apply_hooks_sync(hooks)


def test_what_a_killed_worker_put_on_record_is_judged_the_same(where: str) -> None:
    """A process reads, and is killed; another commits what was read, edits, and asks about it."""
    if (child := os.fork()) == 0:
        try:
            with open_store(where, key=b"k" * 32) as store:
                session = Session(id="one")
                session.push_user("Go on")
                store.save("one", plan_of(session, "read", {"what": "x"}), session=session)
                claim = store.claim(Desk)
                assert claim is not None
                store.finish(claim, store.start(claim).call_sync())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with open_store(where, key=b"k" * 32) as store:
        stored = store.load("one", Desk)
        assert stored.plan is not None
        session = stored.session
        stored.plan.commit(session)
        assert session.transcript[-1].labels == Labels(False, ["ann@a.com"])  # type: ignore[union-attr]
        with plan_of(session, "send", {"to": "eve@b.com"}) as plan:
            told = plan.suspended[0].ticket.parameters["flow"]
            plan.discard()
    assert [(each["argument"], each["fault"]) for each in told] == [
        ("", "something untrusted is in the conversation"),
        ("to", "may not read what is in the conversation"),
    ]
