"""The laws of rules: whoever decides about a call asks them, and nobody can leave them out."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from lutum_py import (
    Complete,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    Skip,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolDef,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
    toolset,
)
from lutum_py.errors import HookError, LifecycleError, ToolDefinitionError
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.round_tools import close

OPEN: list[Any] = []
ASKED: list[str] = []


@pytest.fixture(autouse=True)
def _closed() -> Any:
    ASKED.clear()
    yield
    close(*OPEN)
    OPEN.clear()


@tool_fn
def pay(
    cents: Annotated[int, Field(ge=0)],
    to: str = "acme",
    tags: list[str] | None = None,
    *,
    ctx: ToolContext | None = None,
    bank: Annotated[Any, Skip()] = None,
) -> str:
    """Pay somebody."""
    return f"{cents} to {to} {tags}"


@tool_input(output=str)
class Refund(BaseModel):
    """Pay back."""

    cents: int
    tags: list[str] = []


@tool_fn(input=Refund)
def give_back(refund: Refund) -> str:
    """Pay back, by a function of the whole input."""
    return f"{refund.cents}"


class Where(TypedDict):
    city: str


WEATHER = ToolDef(
    name="weather",
    description="Tell the weather.",
    input_schema={"type": "object", "properties": {"city": {"type": "string"}}},
)


def opened(of: Any, name: str = "pay", **arguments: Any) -> Any:
    outcome = of.read_turn(ScriptedModel.tool_calls(("c1", name, arguments or {"cents": 5})))
    assert isinstance(outcome, NeedsTools)
    OPEN.append(outcome.round)
    return outcome.round


def of_tool(rule: Any, **options: Any) -> Any:
    class Desk(Toolset):
        pay = tool(globals()["pay"], rule=rule, **options)

    return Desk


def cents_at_most(cents: int) -> dict[str, int] | None:
    """Pay a hundred at most."""
    ASKED.append("cents_at_most")
    return {"cents": 100} if cents > 100 else None


# Who asks.

ASK: dict[str, Callable[[Any], Any]] = {
    "plan": lambda round_: round_.plan(),
    "hook set": lambda round_: round_.apply_hooks_sync(round_.toolset.HookSet()),
    "hook set, async": lambda round_: asyncio.run(round_.apply_hooks(round_.toolset.HookSet())),
    "function": lambda round_: round_.apply_hooks_sync(lambda call: call),
    "plan of a plan": lambda round_: round_.plan().apply_hooks_sync(lambda call: call),
}


@over("way", ASK)
def test_whoever_decides_about_a_round_asks(way: str) -> None:
    """Arguments are as the rule left them, and the record says who did what."""
    plan = ASK[way](opened(of_tool(cents_at_most), cents=700))
    (call,) = plan.pending
    assert call.input.cents == 100
    said = [
        (step.by, step.phase, step.verdict) for step in call.steps if step.by == "cents_at_most"
    ]
    assert ("cents_at_most", "execution", "run_normally") in said
    assert call.call_sync().model_text == "100 to acme None"


@over("hooks", ["set", "function"])
def test_a_call_by_itself_is_asked_about_by_its_hook(hooks: str) -> None:
    """`call.hook` asks as a plan does."""
    desk = of_tool(cents_at_most)
    call = desk.parse_tool_call(ToolMetadata(id="c1", name="pay", arguments='{"cents": 700}'))
    asked = call.hook_sync(desk.HookSet() if hooks == "set" else lambda given: given)
    assert asked.call_sync().model_text == "100 to acme None"


@over("answer", ["plan.amend", "store.decide", "resume"])
def test_an_edit_of_a_person_goes_through_it_and_a_yes_does_not(answer: str) -> None:
    """Rules have the last word on arguments; what was shown and approved is run as it was shown."""
    desk = of_tool(cents_at_most, needs_approval=True)
    plan = opened(desk, cents=50).plan()
    (waiting,) = plan.suspended
    ASKED.clear()
    if answer == "resume":
        assert plan.resume(waiting.approve()).input.cents == 50
        assert plan.apply_hooks_sync(desk.HookSet()).pending[0].input.cents == 50
        assert ASKED == []
        return
    edit = waiting.edit({"cents": 900})
    if answer == "plan.amend":
        amended = plan.amend_sync(edit, desk.HookSet())
    else:
        with open_store(":memory:") as store:
            store.save("one", plan, session=Session())
            amended = store.decide("one", edit, desk, hooks=desk.HookSet())
    assert ASKED == ["cents_at_most"]
    assert amended.call.input.cents == 100  # it waits again, for it is not what was decided


# Order.


def test_the_order_is_hooks_then_rules_from_the_inside_out_then_gates_and_the_approval() -> None:
    """Each sees what those before it left, and the person is asked about what comes of it."""
    seen: list[tuple[str, int]] = []

    def own(cents: int) -> dict[str, int]:
        seen.append(("own", cents))
        return {"cents": cents + 1}

    def around(name: str) -> Any:
        def rule(call: Any) -> Any:
            seen.append((name, call.input.cents))
            call.input = call.input.model_copy(update={"cents": call.input.cents + 1})
            return call

        return rule

    class Inner(Toolset, rule=around("inner class")):
        pay = tool(globals()["pay"], rule=own)

    class Middle(Toolset):
        inner = toolset(Inner, rule=around("group"))

    class Base(Toolset, rule=around("base of the class")):
        pass

    class Outer(Base, rule=around("class"), needs_approval=True):
        middle = toolset(Middle)

    hooks = Outer.HookSet()

    @hooks.on(Outer.middle.inner.pay)
    def before_all(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        seen.append(("hook", input.cents))
        return RunNormally(input)

    @hooks.gate(Outer.middle.inner.pay)
    def gate(metadata: ToolMetadata, input: Any) -> None:
        seen.append(("gate", input.cents))

    plan = opened(Outer).apply_hooks_sync(hooks)
    names = ["hook", "own", "inner class", "group", "class", "base of the class", "gate"]
    assert [name for name, _ in seen] == names
    assert [cents for _, cents in seen] == [5, 5, 6, 7, 8, 9, 10]
    (waiting,) = plan.suspended
    assert waiting.arguments["cents"] == 10


def test_what_a_rule_settles_nobody_is_asked_about_any_more() -> None:
    """Neither the rules around it, nor gates, nor the person."""

    def never(call: Any) -> Any:
        raise AssertionError

    class Desk(Toolset, rule=never, needs_approval=True):
        pay = tool(globals()["pay"], rule=lambda: Reject("closed"))

    hooks = Desk.HookSet()
    hooks.gate()(lambda metadata, input: never(input))
    for plan in (opened(Desk).plan(), opened(Desk).apply_hooks_sync(hooks)):
        (rejected,) = plan.rejected
        assert (rejected.reason, rejected.source) == ("closed", "hook")
        assert rejected.by.endswith("<lambda>")


# What a rule of a function tool has and gives.


@over("is_async", [False, True])
def test_it_has_those_parameters_that_it_names(is_async: bool) -> None:
    """By name or by place, a context by its name or type, and no others."""
    seen: list[Any] = []

    def named(to: str, /, *, cents: object, ctx: Any) -> None:
        seen.append((to, cents, type(ctx)))

    async def typed(context: ToolContext, tags: list[str] | None) -> None:
        seen.append((type(context), tags))

    desk = of_tool(typed if is_async else named)
    round_ = opened(desk, cents=5, tags=["a"])
    if is_async:
        asyncio.run(round_.apply_hooks(desk.HookSet()))
        assert seen == [(ToolContext, ["a"])]
    else:
        round_.plan()
        assert seen == [("acme", 5, ToolContext)]


ANSWERS: dict[str, tuple[Any, str, Any]] = {
    "none": (lambda: None, "pending", 5),
    "nothing changed": (lambda cents: {} if cents else None, "pending", 5),
    "the same": (lambda cents: {"cents": cents}, "pending", 5),
    "another": (lambda cents: {"cents": cents + 1}, "pending", 6),
    "complete": (lambda: Complete("done"), "handled", None),
    "reject": (lambda: Reject("no"), "rejected", None),
}


@over("answer", ANSWERS)
def test_what_it_gives_is_done(answer: str) -> None:
    """None and a mapping let the call go on, Complete and Reject answer it."""
    rule, state, cents = ANSWERS[answer]
    plan = opened(of_tool(rule)).plan()
    (row,) = plan.calls
    assert row.state == state
    if cents is not None:
        assert plan.pending[0].input.cents == cents


def test_what_it_changes_in_place_counts() -> None:
    """As that of a hook does, also beside a mapping."""

    def tag(tags: list[str] | None) -> None:
        assert tags is not None
        tags.append("b")

    def tag_and_say(tags: list[str] | None) -> dict[str, int]:
        tag(tags)
        return {"cents": 1}

    plan = opened(of_tool(tag), cents=5, tags=["a"]).plan()
    assert plan.pending[0].call_sync().model_text == "5 to acme ['a', 'b']"
    plan = opened(of_tool(tag_and_say), cents=5, tags=["a"]).plan()
    assert plan.pending[0].call_sync().model_text == "1 to acme ['a', 'b']"


WRONG: dict[str, Any] = {
    "no answer of a rule": lambda: 5,
    "raises": lambda cents: 1 / 0,
    "does not fit": lambda: {"cents": -1},
    "is not an argument": lambda: {"sent": 1},
    "hidden": lambda: {"bank": 1},
    "unfit output": lambda: Complete(5),
    "no reason": lambda: Reject(5),  # type: ignore[arg-type]
}


@over("wrong, way", [(wrong, way) for wrong in WRONG for way in ("plan", "hook set", "function")])
def test_a_rule_that_breaks_is_a_hook_error_and_changes_nothing(wrong: str, way: str) -> None:
    """The error names it, and the round is as it was."""
    round_ = opened(of_tool(WRONG[wrong]))
    (call,) = round_.tool_calls
    before = call.steps
    with pytest.raises(HookError) as caught:
        ASK[way](round_)
    assert caught.value.hook is not None
    assert (caught.value.call_id, call.steps, call.status) == ("c1", before, "new")


def test_a_key_that_is_no_text_is_no_argument() -> None:
    """The error says so, in the same words as of a text."""
    with pytest.raises(HookError, match=r"`5` cannot be changed in a call of tool"):
        opened(of_tool(lambda: {5: 1})).plan()


def test_an_async_rule_needs_an_async_way() -> None:
    """In `plan()` it is a TypeError that says what to write."""

    async def rule(cents: int) -> dict[str, int]:
        return {"cents": cents + 1}

    desk = of_tool(rule)
    with pytest.raises(TypeError, match=r"await round\.apply_hooks\(hooks\)"):
        opened(desk).plan()
    plan = asyncio.run(opened(desk).apply_hooks(lambda call: call))
    assert plan.pending[0].input.cents == 6


# Tools of an input model, and groups.


def test_that_of_an_input_has_the_input_and_gives_another() -> None:
    """Of a model, and of a tool known by its schema; it may say `RunNormally`, as a hook does."""

    def less(input: Refund) -> Refund | None:
        return Refund(cents=1) if input.cents > 100 else None

    def elsewhere(input: Any) -> Any:
        return {"city": "Oslo"} if input["city"] == "Rome" else Complete("sunny")

    class Desk(Toolset):
        refund = tool(Refund, rule=less)
        weather = tool(WEATHER, rule=elsewhere)

    def as_a_hook(input: Any) -> Any:
        return RunNormally(Refund(cents=1)) if input.cents > 100 else RunNormally(input)

    class LikeHooks(Toolset):
        refund = tool(Refund, rule=as_a_hook)

    for desk, cents, left in ((Desk, 500, 1), (Desk, 50, 50), (LikeHooks, 500, 1)):
        plan = opened(desk, "refund", cents=cents).plan()
        assert plan.pending[0].input.cents == left
    assert opened(Desk, "weather", city="Rome").plan().pending[0].input == {"city": "Oslo"}
    assert opened(Desk, "weather", city="Bonn").plan().handled[0].output == "sunny"

    def in_place(input: Refund) -> None:
        input.tags.append("x")

    class Tagged(Toolset):
        refund = tool(Refund, rule=in_place)

    assert opened(Tagged, "refund", cents=1).plan().pending[0].input.tags == ["x"]

    class Broken(Toolset):
        refund = tool(Refund, rule=lambda input: 5)  # type: ignore[arg-type, return-value]

    with pytest.raises(HookError, match="unfit input"):
        opened(Broken, "refund", cents=1).plan()


OF_CALL: dict[str, tuple[Any, str]] = {
    "the call": (lambda call: call, "pending"),
    "handled": (lambda call: call.handled("done"), "handled"),
    "reject": (lambda call: call.reject("no"), "rejected"),
    "suspend": (lambda call: call.suspend(SuspendTicket(message="Sure?")), "suspended"),
}


@over("given, way", [(given, way) for given in OF_CALL for way in ASK])
def test_that_of_a_group_is_a_function_of_the_call(given: str, way: str) -> None:
    """It gives what `apply_hooks` takes of one; what waits for it goes on by a yes."""
    rule, state = OF_CALL[given]
    if (given, way) in {("handled", "plan of a plan"), ("reject", "plan of a plan")}:
        way = "plan"

    class Desk(Toolset, rule=rule):
        pay = tool(globals()["pay"])

    plan = ASK[way](opened(Desk))
    (row,) = plan.calls
    assert row.state == state
    if state == "suspended":
        plan.resume(plan.suspended[0].approve())
        assert plan.pending[0].call_sync().is_success


def asks(call: Any) -> Any:
    """Let each call wait for a person, as a function in place of hooks, or as a rule."""
    ASKED.append("requested")
    return call.suspend(SuspendTicket(message="Sure?"))


class Asks:
    """Be an object in place of hooks."""

    toolset: Any = None

    def hook_tool_call(self, call: Any) -> Any:
        return asks(call)


def of_group(rule: Any) -> Any:
    """A group that asks, within one that has a rule."""

    class Inner(Toolset, rule=asks):
        pay = tool(globals()["pay"])

    class Outer(Toolset):
        inner = toolset(Inner, rule=rule)

    return Outer


def group_at_most(call: Any) -> Any:
    """Do as `cents_at_most`, as the rule of a group."""
    changes = cents_at_most(call.input.cents)
    if changes is not None:
        call.input = changes
    return call


RULES: tuple[Any, ...] = (lambda cents: Reject("never"), cents_at_most)
GROUP_RULES: tuple[Any, ...] = (lambda call: call.reject("never"), group_at_most)
ASKERS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "function": (lambda rule: opened(of_tool(rule), cents=700).apply_hooks_sync(asks), RULES),
    "object": (lambda rule: opened(of_tool(rule), cents=700).apply_hooks_sync(Asks()), RULES),
    "group": (lambda rule: opened(of_group(rule), cents=700).plan(), GROUP_RULES),
    "set": (lambda rule: ASK["hook set"](opened(of_group(rule), cents=700)), GROUP_RULES),
}


@over("asker", ASKERS)
def test_a_call_waits_only_once_all_rules_were_asked(asker: str) -> None:
    """Else the yes of a person would let it go past those that come after the question."""
    decided, (refuses, changes) = ASKERS[asker]
    (refused,) = decided(refuses).calls
    assert (refused.state, refused.reason) == ("rejected", "never")
    ASKED.clear()
    plan = decided(changes)
    (waiting,) = plan.suspended
    assert (waiting.ticket.message, waiting.arguments["cents"]) == ("Sure?", 100)
    assert ASKED == ["requested", "cents_at_most"]
    plan.resume(waiting.approve())
    assert plan.pending[0].call_sync().model_text == "100 to acme None"
    assert ASKED == ["requested", "cents_at_most"]


def test_the_first_question_counts_and_a_later_rule_may_answer() -> None:
    """Of two that ask, the call waits for the first; one that ends the call comes before both."""
    second: Any = lambda call: call.suspend(SuspendTicket(message="And now?"))  # noqa: E731
    (waiting,) = opened(of_group(second)).plan().suspended
    assert waiting.ticket.message == "Sure?"
    (row,) = opened(of_group(lambda call: call.handled("done"))).plan().calls
    assert (row.state, row.result.output) == ("handled", "done")


def test_a_function_that_began_the_call_before_it_asks_lets_it_wait_at_once() -> None:
    """What runs cannot be changed or refused any more."""

    def runs(call: Any) -> Any:
        call.start()
        return asks(call)

    plan = opened(of_tool(cents_at_most), cents=7).plan()
    ASKED.clear()
    (waiting,) = plan.apply_hooks_sync(runs).suspended
    assert (waiting.was_started, ASKED) == (True, ["requested"])


def test_a_call_that_the_program_let_wait_goes_past_no_rule() -> None:
    """A yes is about the arguments that were shown, so a rule cannot change them any more."""
    round_ = opened(of_tool(cents_at_most), cents=700)
    waits = round_.tool_calls[0].suspend(SuspendTicket())
    plan = round_.plan()
    plan.record(waits)
    plan.resume(plan.suspended[0].approve())
    with pytest.raises(LifecycleError, match="the rule has not reviewed it"):
        plan.pending[0].call_sync()
    with pytest.raises(HookError, match="returned another input, and the input is frozen"):
        plan.apply_hooks_sync(round_.toolset.HookSet())


def test_a_gate_that_asks_comes_behind_and_the_yes_stands_for_both() -> None:
    """Once a person approved, the rule is not asked again and the call is run."""
    desk = of_tool(cents_at_most)
    hooks = desk.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(message=f"{input.cents}?")))
    plan = opened(desk, cents=700).apply_hooks_sync(hooks)
    (waiting,) = plan.suspended
    assert waiting.ticket.message == "100?"
    plan.resume(waiting.approve())
    assert plan.pending[0].call_sync().model_text == "100 to acme None"
    assert ASKED == ["cents_at_most"]


# Checked where the toolset is written.


def of_str(cents: str) -> None:
    """Take what the tool has not."""


def of_context_elsewhere(ctx: ToolContext, cents: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Name what has no value here."""


def of_other(input: Where) -> None:
    """Take another input."""


UNFIT: dict[str, tuple[Any, str]] = {
    "misspelt": (lambda cent: None, "takes `cent`, which .* Did you mean `cents`"),
    "hidden": (lambda bank: None, "takes `bank`, which the model does not fill in"),
    "annotation": (of_str, "takes `cents: str`, and the tool has `cents: .*int"),
    "stars": (lambda *args: None, r"takes `\*args`"),
    "no function": (5, "`rule=5` is not a function"),
    "a class": (int, "is not a function"),
    "no signature": (max, "is not a function"),
    "a function of C": (len, "takes `obj`, which the model does not fill in"),
}


@over("unfit", UNFIT)
def test_a_rule_that_takes_what_the_tool_has_not_is_refused(unfit: str) -> None:
    """Both are named, where the toolset is written."""
    rule, said = UNFIT[unfit]
    with pytest.raises(ToolDefinitionError, match=f"Tool `pay`: `rule=.*{said.lstrip('`rule=')}"):
        tool(pay, rule=rule)


@tool_fn
def tag(
    names: typing.List[str],  # noqa: UP006 - as many programs still write it
    by: typing.Optional[typing.Dict[str, typing.List[int]]] = None,  # noqa: UP006, UP045
    cents: Annotated[int, Field(ge=0, description="How many.")] = 0,
) -> str:
    """Tag something."""
    return ",".join(names)


def of_lists(names: list[str], by: dict[str, list[int]] | None, cents: int) -> Any:
    """Name the same types as they are written today."""
    return {"names": [*names, "new"]}


def of_other_lists(by: dict[str, list[str]] | None) -> None:
    """Take other values."""


def of_one_list(names: typing.List) -> None:  # type: ignore[type-arg]  # noqa: UP006
    """Say less than the tool does."""


def of_bytes(cents: bytes) -> None:
    """Take another type than one with a bound."""


def test_a_type_is_the_same_however_it_is_written() -> None:
    """`List` is `list` and `Optional[T]` is `T | None`, at any depth; a bound is no part of it."""

    class Tags(Toolset):
        tag = tool(globals()["tag"], rule=of_lists)

    said = ScriptedModel.tool_calls(("c1", "tag", {"names": ["a"]}))
    outcome: Any = Tags.read_turn(said)
    OPEN.append(outcome.round)
    (call,) = outcome.round.plan().pending
    assert call.call_sync().output == "a,new"
    for rule, names in (
        (of_other_lists, "by: "),
        (of_one_list, "names: "),
        (of_bytes, "cents: bytes`, and the tool has `cents: int`"),
    ):
        with pytest.raises(ToolDefinitionError, match=f"takes `{names}"):
            tool(tag, rule=rule)


def test_rules_of_inputs_and_groups_are_checked_as_well() -> None:
    """By how many they take, by the type of the input, and by what can be called."""
    two: Any = lambda input, other: None  # noqa: E731
    other: Any = of_other
    with pytest.raises(ToolDefinitionError, match="called with the input alone"):
        tool(Refund, rule=two)
    with pytest.raises(ToolDefinitionError, match="`input: Where`, and the tool has `input: Ref"):
        tool(Refund, rule=other)
    with pytest.raises(ToolDefinitionError, match="`input: Where`, and the tool has `input: Ref"):
        tool(give_back, rule=other)
    assert tool(WEATHER, rule=other)
    assert tool(pay, rule=of_context_elsewhere)
    unfit: tuple[Any, ...] = (5, int)
    for wrong in unfit:
        with pytest.raises(ToolDefinitionError, match="takes a function of a call"):
            toolset(of_tool(None), rule=wrong)


def test_a_rule_is_no_part_of_what_an_approval_is_bound_to() -> None:
    """The digest of a call is that of the tool without it."""
    plain, ruled = of_tool(None), of_tool(lambda: None)
    assert plain["pay"].definition.digest == ruled["pay"].definition.digest
    calls = [opened(each).plan().pending[0] for each in (plain, ruled)]
    assert calls[0].digest == calls[1].digest


@over("name", ["payee", "to", "recipient"])
def test_a_rule_of_an_input_that_names_a_field_is_refused(name: str) -> None:
    """It would be called with the whole input, which is equal to no payee."""

    class Pay(ToolInput[str]):
        payee: str = Field(validation_alias=AliasChoices("recipient", "to"))

        model_config = ConfigDict(populate_by_name=True)

    names: dict[str, Any] = {"Reject": Reject, "Pay": Pay}
    exec(f"def rule({name}):\n    return Reject('no') if {name} == 'evil' else None", names)
    with pytest.raises(ToolDefinitionError, match=f"look at `input.{name}`"):
        type("Tools", (Toolset,), {"pay": tool(Pay, rule=names["rule"])})
    exec(f"def rule({name}: Pay):\n    return Reject('no')", names)
    exec("def whole(input):\n    return Reject('no')", names)
    for rule in (names["rule"], names["whole"]):
        tool(Pay, rule=rule)
