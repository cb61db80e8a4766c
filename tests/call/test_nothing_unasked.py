"""The law of approvals and rules: a tool that has one starts only after a plan or hook asked."""

from __future__ import annotations

import asyncio
import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Handlers,
    NeedsTools,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    Transcript,
    execution,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import CommitError, HookError, LifecycleError
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from lutum_py.tools import MemoryResults, ResultCap
from tests.cases import over
from tests.round_tools import close

RAN: list[int] = []
OPEN: list[Any] = []
"""What was opened, to be closed once all was tried."""


@tool_fn
def pay(cents: int) -> str:
    """Pay an amount."""
    RAN.append(cents)
    return f"paid {cents}"


@tool_fn
async def wire(cents: int) -> str:
    """Send an amount."""
    RAN.append(cents)
    return f"sent {cents}"


@tool_fn
def look() -> str:
    """Look at the balance."""
    RAN.append(0)
    return "3"


@tool_fn
def order(items: list[str]) -> str:
    """Order things."""
    RAN.append(len(items))
    return "ordered"


class Always(Toolset):
    pay = tool(pay, needs_approval=True)
    wire = tool(wire, needs_approval=True)
    look = tool(look)


class Never(Toolset):
    """A condition that says no, whatever it is asked."""

    pay = tool(pay, needs_approval=lambda input: False)
    wire = tool(wire, needs_approval=lambda input: False)
    order = tool(order, needs_approval=lambda input: False)
    look = tool(look)


class Plain(Toolset):
    pay = tool(pay)
    wire = tool(wire)
    look = tool(look)


class Grouped(Toolset):
    bank = toolset(Plain, prefix="bank_", needs_approval=True)


class Whole(Toolset, needs_approval=True):
    pay = tool(pay)
    wire = tool(wire)


class Ruled(Toolset):
    """Rules that let everything pass."""

    pay = tool(pay, rule=lambda: None)
    wire = tool(wire, rule=lambda cents: None)
    order = tool(order, rule=lambda items: None)
    look = tool(look)


class RuledGroup(Toolset):
    bank = toolset(Plain, prefix="bank_", rule=lambda call: call)


class RuledWhole(Toolset, rule=lambda call: call):
    pay = tool(pay)
    wire = tool(wire)


SETS: dict[str, tuple[Any, str]] = {
    "always": (Always, ""),
    "condition": (Never, ""),
    "group": (Grouped, "bank_"),
    "class": (Whole, ""),
    "rule": (Ruled, ""),
    "rule of a group": (RuledGroup, "bank_"),
    "rule of a class": (RuledWhole, ""),
}


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    close(*OPEN)
    OPEN.clear()


def opened(of: Any, *names: str) -> Any:
    """A round of these calls."""
    given: dict[str, Any] = {"look": {}, "order": {"items": ["a"]}}
    calls = [(f"c{at}", name, given.get(name, {"cents": 5})) for at, name in enumerate(names)]
    outcome = of.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(outcome, NeedsTools)
    return kept(outcome.round)


def kept(made: Any) -> Any:
    """A round or plan that is closed in the end."""
    OPEN.append(made)
    return made


def handled(of: Any) -> Handlers[Any]:
    """Handlers that do all tools by the functions of these."""
    return of.Handlers()  # type: ignore[no-any-return]


SYNC: dict[str, Callable[[Any], object]] = {
    "start": lambda call: call.start(),
    "call_sync": lambda call: call.call_sync(),
    "invoke_sync": lambda call: call.invoke_sync(),
    "call": lambda call: asyncio.run(call.call()),
    "invoke": lambda call: asyncio.run(call.invoke()),
    "apply": lambda call: call.apply(note),
    "execute": lambda call: asyncio.run(execution.execute(call)),
    "execute_sync": execution.execute_sync,
    "execute_all": lambda call: asyncio.run(execution.execute_all([call])),
    "execute_all_sync": lambda call: execution.execute_all_sync([call]),
    "again": lambda call: call.retry().call_sync(),
    "again twice": lambda call: call.retry().retry().call_sync(),
    "copy": lambda call: copy.copy(call).call_sync(),
    "deepcopy": lambda call: copy.deepcopy(call).call_sync(),
    "handlers": lambda call: asyncio.run(handled(call.selector.toolset)(call)),
    "handlers sync": lambda call: handled(call.selector.toolset).call_sync(call),
    "execute by handlers": lambda call: asyncio.run(
        execution.execute(call, handlers=handled(call.selector.toolset))
    ),
    "in a hook": lambda call: call.hook_sync(lambda given: given.handled(given.invoke_sync())),
    "made by hand": lambda call: by_hand(call).start(),
    "decoded alone": lambda call: call.selector.toolset.parse_tool_call(call.metadata).call_sync(),
}


ALONE = ("decoded alone", "made by hand")
"""Ways that make a call of their own, which nobody was asked about."""


def note(cents: int) -> None:
    """Pay in another way."""
    RAN.append(cents)


def by_hand(call: Any) -> Any:
    """The same call, as a program makes one."""
    return type(call)(call.metadata, call.input, selector=call.selector)


def called(of: Any, prefix: str, way: str) -> Any:
    """The round of one call that this way can run."""
    return opened(of, prefix + ("wire" if way in ("call", "invoke") else "pay"))


@over("way, kind", [(way, kind) for way in SYNC for kind in SETS])
def test_nothing_that_needs_an_approval_begins_unasked(way: str, kind: str) -> None:
    """However a call is run, and whatever its condition would say, somebody asks before."""
    round_ = called(*SETS[kind], way)
    (call,) = round_.tool_calls
    before = call.steps
    with pytest.raises((LifecycleError, HookError)) as caught:
        SYNC[way](call)
    is_rule = kind.startswith("rule")
    why = (
        "`rule=`, and the rule has not reviewed it"
        if is_rule
        else "`needs_approval=`, and nobody reviewed it"
    )
    assert why in str(caught.value)
    assert ("the decision of a person" in str(caught.value)) is not is_rule
    assert "'c0' of tool" in str(caught.value)
    assert (call.steps, call.status, RAN) == (before, "new", [])


@over("kind", SETS)
def test_nothing_of_a_batch_begins_where_one_of_it_was_not_asked_about(kind: str) -> None:
    """A batch is started whole or not at all."""
    of, prefix = SETS[kind]
    free = opened(Plain, "look", "look").tool_calls
    round_ = opened(of, f"{prefix}pay")
    for run in (execution.execute_all_sync, lambda b: asyncio.run(execution.execute_all(b))):
        with pytest.raises(LifecycleError):
            run([*free, *round_.tool_calls])
    assert RAN == []
    assert {call.status for call in (*free, *round_.tool_calls)} == {"new"}


ASK: dict[str, Callable[[Any], AnyToolCall]] = {
    "plan": lambda round_: round_.plan().pending[0],
    "hooks": lambda round_: round_.apply_hooks_sync(round_.toolset.HookSet()).pending[0],
    "hooks, async": lambda round_: asyncio.run(
        round_.apply_hooks(round_.toolset.HookSet())
    ).pending[0],
    "function": lambda round_: round_.apply_hooks_sync(lambda call: call).pending[0],
    "hook": lambda round_: round_.tool_calls[0].hook_sync(round_.toolset.HookSet()),
    "plan of a plan": lambda round_: (
        round_.plan().apply_hooks_sync(round_.toolset.HookSet()).pending[0]
    ),
    "saved": lambda round_: kept(round_.toolset.load_plan(round_.plan().dump_json())).pending[0],
}


FREE = {"condition": Never, "rule": Ruled}
"""Those that ask, and let everything pass."""


@over("way, asked", [(way, asked) for way in SYNC for asked in ASK if way not in ALONE])
def test_what_was_asked_about_is_run(way: str, asked: str) -> None:
    """Once a plan or hook has asked, and nobody has to decide, the call is run in any way."""
    for kind, of in FREE.items():
        call = ASK[asked](called(of, "", way))
        assert call.steps[-1].by == {"condition": "needs_approval", "rule": "rule"}[kind]
        SYNC[way](call)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "assigned": lambda call: setattr(call, "input", order.Input(items=["a", "b"])),
    "in place": lambda call: call.input.items.append("b"),
}


@over("change", CHANGES)
def test_a_call_that_was_changed_since_is_asked_about_anew(change: str) -> None:
    """What was asked about other arguments allows nothing."""
    for of in FREE.values():
        RAN.clear()
        round_ = opened(of, "order")
        plan = round_.plan()
        call: Any = plan.pending[0]
        CHANGES[change](call)
        with pytest.raises(LifecycleError, match="changed since"):
            call.call_sync()
        assert RAN == []
        plan.apply_hooks_sync(of.HookSet()).pending[0].call_sync()
        assert RAN == [2]


ANSWERS: dict[str, Callable[[Any], object]] = {
    "complete": lambda call: call.complete("done"),
    "fail": lambda call: call.fail("closed"),
    "reject": lambda call: call.reject("no"),
    "handled": lambda call: call.handled("done").result,
}


@over("answer", ANSWERS)
def test_a_call_is_answered_by_hand_without_being_asked_about(answer: str) -> None:
    """Only to run it needs the question; the round ends as any."""
    session = Session()
    round_ = opened(Always, "pay")
    round_.commit(session, [ANSWERS[answer](round_.tool_calls[0])])
    assert len(session.transcript) == 2
    assert RAN == []


def test_what_a_store_keeps_was_asked_about() -> None:
    """A plan that is saved was made, so its calls were asked about: workers run them."""
    with open_store(":memory:") as store:
        store.save("a", opened(Never, "pay", "wire").plan(), session=Session())
        asyncio.run(store.run("a", Never))
        assert sorted(RAN) == [5, 5]
        assert store.settled() == ["a"]


STRICT: dict[str, Any] = {
    "block": lambda metadata, input: Block("closed"),
    "suspend": lambda metadata, input: Suspend(SuspendTicket()),
    "complete": lambda metadata, input: Complete("done"),
}
AROUND: dict[str, Callable[[Any, Any], object]] = {
    "the round": lambda round_, plan: round_.tool_calls[0].call_sync(),
    "the round, again": lambda round_, plan: round_.tool_calls[0].retry().call_sync(),
    "a later plan": lambda round_, plan: round_.plan().pending[0].call_sync(),
    "what was rejected": lambda round_, plan: _stopped(plan).retry().call_sync(),
    "a copy": lambda round_, plan: copy.copy(round_.tool_calls[0]).call_sync(),
}


def _stopped(plan: Any) -> Any:
    """The call of a plan that does not go on."""
    for each in (*plan.rejected, *plan.suspended):
        return each.call
    raise LifecycleError("A call that was handled is nowhere to be had.")


@over("decision, way", [(decision, way) for decision in STRICT for way in AROUND])
def test_a_gate_binds_who_was_given_it(decision: str, way: str) -> None:
    """What hooks stopped is not run from the round, by another try, or from a later plan."""
    hooks: Any = Plain.HookSet()
    hooks.gate(Plain.look)(STRICT[decision])
    round_ = opened(Plain, "look")
    plan = round_.apply_hooks_sync(hooks)
    with pytest.raises((LifecycleError, IndexError)):
        AROUND[way](round_, plan)
    assert RAN == []


def test_hooks_that_raised_bind_nobody() -> None:
    """Once `apply_hooks` failed, nothing was decided."""
    hooks: Any = Plain.HookSet()
    hooks.gate(Plain.look)(lambda metadata, input: Block("closed"))
    hooks.gate(Plain.pay)(lambda metadata, input: 1 / 0)
    round_ = opened(Plain, "look", "pay")
    with pytest.raises(HookError):
        round_.apply_hooks_sync(hooks)
    assert round_.tool_calls[0].call_sync().is_success


def test_what_hooks_changed_is_run_as_they_changed_it() -> None:
    """There is one call, whoever has it: the round, or the plan that hooks made."""
    hooks: Any = Plain.HookSet()
    hooks.on(Plain.pay)(lambda metadata, input: RunNormally(pay.Input(cents=1)))
    round_ = opened(Plain, "pay")
    plan = round_.apply_hooks_sync(hooks)
    plan.commit(Transcript(), [round_.tool_calls[0].call_sync()])
    assert RAN == [1]


@over("how", ["while it is asked", "by a before-hook"])
def test_what_is_assigned_while_hooks_decide_was_asked_by_nobody(how: str) -> None:
    """An input that takes its place while conditions or before-hooks run is not started."""
    RAN.clear()
    given: list[Any] = []

    def assign() -> bool:
        given[0].tool_calls[0].input = pay.Input(cents=9000)
        return False

    class Rule(Toolset):
        pay = tool(pay, needs_approval=lambda input: how == "while it is asked" and assign())

    hooks: Any = Rule.HookSet()
    if how == "by a before-hook":
        hooks.before()(lambda metadata, input: assign() or None)
    round_ = opened(Rule, "pay")
    given.append(round_)
    with pytest.raises((HookError, LifecycleError), match="was changed while hooks reviewed it"):
        round_.apply_hooks_sync(hooks).pending[0].call_sync()
    assert RAN == []


def stored(plan: Any) -> None:
    """Save a plan in a store, which has it from then on."""
    with open_store(":memory:") as store:
        store.save("a", plan)


def given(plan: Any) -> list[Any]:
    """Results for the calls of a plan that were made elsewhere."""
    of = plan.toolset
    return [of.parse_tool_call(call.metadata).complete("paid") for call in plan.pending]


def left(plan: Any) -> None:
    """Leave the block of a plan."""
    with plan:
        pass


OVER: dict[str, Callable[[Any], object]] = {
    "dumped": lambda plan: plan.dump_json(),
    "session": lambda plan: plan.toolset.dump_session(Session(), plan),
    "stored": stored,
    "committed": lambda plan: plan.commit(Transcript(), given(plan)),
    "resolved": lambda plan: plan.resolve(given(plan)),
    "aborted": lambda plan: plan.abort(Transcript(), "enough"),
    "aborted with results": lambda plan: plan.abort(Transcript(), "enough", given(plan)),
    "discarded": lambda plan: plan.discard(),
    "left": left,
}
"""Every way in which a round ends here while a call of it was not started."""
HOLD: dict[str, Callable[[Any, Any], Any]] = {
    "the plan's": lambda round_, plan: plan.pending[0],
    "the round's": lambda round_, plan: round_.tool_calls[0],
    "another plan's": lambda round_, plan: round_.plan().pending[0],
    "a copy": lambda round_, plan: copy.copy(plan.pending[0]),
    "another try": lambda round_, plan: plan.pending[0].retry(),
    "hooked": lambda round_, plan: plan.pending[0].hook_sync(lambda call: call),
}
"""Who may have the call by then."""
RUN: dict[str, Callable[[Any], object]] = {
    name: run for name, run in SYNC.items() if name not in (*ALONE, "in a hook")
}


@over("end, way, of", [(end, way, of) for end in OVER for way in RUN for of in (Plain, Never)])
def test_nothing_of_a_round_that_is_over_begins(end: str, way: str, of: Any) -> None:
    """Once its round ended, or goes on elsewhere, no call starts that whoever still holds."""
    for held in HOLD.values():
        RAN.clear()
        round_ = called(of, "", way)
        plan = round_.plan()
        call = held(round_, plan)
        OVER[end](plan)
        with pytest.raises(LifecycleError):
            RUN[way](call)
        assert RAN == []
        assert call.status in ("new", "succeeded", "cancelled")
        assert all(step.kind != "started" for step in call.steps)


@over("end", OVER)
def test_an_outcome_that_comes_after_the_end_of_its_round_is_on_record_as_late(end: str) -> None:
    """What the end of the round said of the call stays; that the tool finished is in its steps."""

    @tool_fn
    def slow(cents: int) -> str:
        """Pay, while the round ends."""
        with suppress(CommitError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a block that is left
            OVER[end](plan)
        return "paid"

    class Slow(Toolset):
        pay = tool(slow)

    plan = kept(opened(Slow, "slow").plan())
    (call,) = plan.pending
    with pytest.raises(LifecycleError):
        call.call_sync()
    assert (call.steps[-1].kind, call.steps[-1].verdict) == ("late", "success")


def test_an_end_that_fails_closes_no_call() -> None:
    """Where a commit or abort finds a fault, what is pending begins as before."""
    plan = kept(opened(Plain, "pay", "look").plan())
    foreign = Plain.parse_tool_call(ToolMetadata(id="x", name="look", arguments="{}"))
    wrong = [foreign.complete("3")]
    ends: list[Callable[[], object]] = [
        lambda: plan.commit(Transcript(), wrong),
        lambda: plan.resolve(wrong),
        lambda: plan.abort(Transcript(), "enough", wrong),
    ]
    for end in ends:
        with pytest.raises(CommitError):
            end()
    plan.commit(Transcript(), (call.call_sync() for call in plan.pending))
    assert RAN == [5, 0]


def test_what_is_run_as_it_is_passed_to_an_abort_was_run() -> None:
    """Results may be made while an abort takes them; what it tells of the others holds."""
    plan = opened(Plain, "pay", "look").plan()
    first, second = plan.pending
    made = plan.abort(Transcript(), "enough", (each.call_sync() for each in (first,)))
    assert [each.status for each in made.results] == ["success", "cancelled"]
    with pytest.raises(LifecycleError, match=r"its round was aborted"):
        second.call_sync()
    assert RAN == [5]


class Late(MemoryResults):
    """Begins a call while its round is given up."""

    tried = False

    def put(self, handle: str, text: str, /) -> None:
        with pytest.raises(LifecycleError, match="its round was aborted"):
            LATE[0].call_sync()
        Late.tried = True
        super().put(handle, text)


LATE: list[AnyToolCall] = []


def test_nothing_begins_while_an_abort_says_what_was_not_executed() -> None:
    """Whoever begins a call while it is given up is too late, and its result says the truth."""

    class Capped(Toolset):
        pay = tool(pay, result_cap=ResultCap(400, Late()))
        look = tool(look)

    plan = opened(Capped, "pay", "look").plan()
    first, second = plan.pending
    LATE[:] = [second]
    made = plan.abort(Transcript(), "enough", [first.complete("x" * 9000)])
    assert [each.status for each in made.results] == ["success", "cancelled"]
    assert (Late.tried, RAN) == (True, [])


# What was approved is what runs, whoever kept the input that he was given.


class Named(BaseModel):
    name: str


@tool_fn
def wipe(paths: list[str]) -> list[str]:
    """Wipe folders."""
    return paths


@tool_fn
def wipe_named(paths: list[Named]) -> list[str]:
    """Wipe folders by their names."""
    return [each.name for each in paths]


class Wipes(Toolset):
    wipe = tool(wipe, needs_approval=True)
    wipe_named = tool(wipe_named, needs_approval=True)


class Unasked(Toolset):
    wipe = tool(wipe)
    wipe_named = tool(wipe_named)


def _keeping(tools: Any, kept: list[Any]) -> Any:
    hooks = tools.HookSet()

    def keep(metadata: ToolMetadata, input: Any) -> Any:
        kept.append(input)
        return RunNormally(input)

    for each in (tools.wipe, tools.wipe_named):
        hooks.on(each)(keep)
    return hooks


def _by_hooks(tools: Any, tool_round: Any, kept: list[Any]) -> Any:
    return tool_round.apply_hooks_sync(_keeping(tools, kept))


def _by_gate(tools: Any, tool_round: Any, kept: list[Any]) -> Any:
    hooks = _keeping(tools, kept)

    def ask(metadata: ToolMetadata, input: Any) -> Suspend:
        kept.append(input)
        return Suspend(SuspendTicket())

    hooks.gate()(ask)
    return tool_round.apply_hooks_sync(hooks)


def _by_program(tools: Any, tool_round: Any, kept: list[Any]) -> Any:
    (call,) = tool_round.tool_calls
    kept.append(call.input)
    plan = tool_round.plan()
    if call.status == "new":
        plan.suspend(call.suspend(SuspendTicket()))
    return plan


def _by_function(tools: Any, tool_round: Any, kept: list[Any]) -> Any:
    def ask(call: AnyToolCall) -> Any:
        kept.append(call.input)
        return call.suspend(SuspendTicket())

    return tool_round.apply_hooks_sync(ask)


ASKERS: dict[str, Any] = {
    "needs_approval": (Wipes, _by_hooks),
    "program": (Wipes, _by_program),
    "gate": (Unasked, _by_gate),
    "suspend": (Unasked, _by_program),
    "function": (Unasked, _by_function),
}


@pytest.mark.parametrize("way", ["here", "detached", "loaded", "edited"])
@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("name", ["wipe", "wipe_named"])
def test_who_kept_the_input_does_not_change_what_was_approved(
    name: str, asker: str, way: str
) -> None:
    """Neither before the decision nor after it, whatever is done to what was lent."""
    tools, ask = ASKERS[asker]
    sent = ["a"] if name == "wipe" else [{"name": "a"}]
    kept: list[Any] = []
    needed: Any = tools.read_turn(ScriptedModel.tool_calls(("c1", name, {"paths": sent})))
    plan = ask(tools, needed.round, kept)

    def spoil() -> None:
        for each in kept:
            each.paths.append("evil" if name == "wipe" else Named(name="evil"))
            if name != "wipe":
                each.paths[0].name = "evil"

    spoil()
    (waiting,) = plan.suspended
    assert waiting.arguments == {"paths": sent}
    if way == "edited":
        edit = {"paths": ["b"] if name == "wipe" else [{"name": "b"}]}
        plan.amend_sync(waiting.edit(edit), tools.HookSet())
    else:
        plan.resume(waiting.approve())
    spoil()
    if way == "loaded":
        plan = tools.load_plan(plan.dump_json())
    call = plan.detach("c1") if way == "detached" else plan.pending[0]
    spoil()
    assert call.call_sync().output == (["b"] if way == "edited" else ["a"])
    plan.discard()


@pytest.mark.parametrize("assigns", [True, False])
def test_a_function_does_not_run_another_input_than_was_approved(assigns: bool) -> None:
    """A function that runs the draft of an approved call runs what was approved, or nothing."""
    needed: Any = Wipes.read_turn(ScriptedModel.tool_calls(("c1", "wipe", {"paths": ["a"]})))
    plan = needed.round.plan()
    plan.resume(plan.suspended[0].approve())

    def run_another(call: AnyToolCall) -> Any:
        if assigns:
            call.input = {"paths": ["evil"]}
        call.input.paths.append("evil")  # type: ignore[attr-defined]
        return call.call_sync()

    if assigns:
        with pytest.raises(HookError, match="frozen: a decision is bound to it"):
            plan.apply_hooks_sync(run_another)
        assert plan.pending[0].status == "resuming"
    else:
        plan.apply_hooks_sync(run_another)
        assert plan.finished[0].output == ["a"]
    plan.discard()
