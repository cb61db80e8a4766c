"""The laws of what a hook may do with the input: look at it, and return another one."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    Decision,
    NeedsTools,
    RunNormally,
    ToolInput,
    ToolMetadata,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.typing import CallGate
from tests.sample_tools import input_of, opened


class Line(BaseModel):
    cents: int


class OrderArgs(ToolInput[int]):
    payee: str
    lines: list[Line]


@tool_fn
def note(words: list[str], by: tuple[str, int] | None = None) -> int:
    """Note some words."""
    return len(words)


@tool_fn
def look(at: str, times: int = 1) -> str:
    """Look at something."""
    return at * times


class Desk(Toolset):
    order = tool(OrderArgs)
    note = tool(note)
    look = tool(look)


ORDER = ToolMetadata(id="o", name="order", arguments='{"payee":"Ann","lines":[{"cents":1}]}')
NOTE = ToolMetadata(id="n", name="note", arguments='{"words":["a"]}')
LOOK = ToolMetadata(id="l", name="look", arguments='{"at":"x"}')


def round_of(*calls: ToolMetadata) -> ToolRound[Desk]:
    outcome = Desk.read_turn(AssistantTurn(tool_calls=list(calls)))
    assert isinstance(outcome, NeedsTools)
    return outcome.round


def spoil(input: Any) -> None:
    """Change an input in place, as deep as it goes."""
    if isinstance(input, OrderArgs):
        input.lines[0].cents = 1_000_000
    else:
        input.words.append("b")


def hooks_of(phase: str) -> Any:
    """A hook of each phase that changes what it is shown."""

    def hook(metadata: ToolMetadata, input: Any) -> Any:
        spoil(input)
        return RunNormally(input) if phase == "on" else None

    def function(call: AnyToolCall) -> AnyToolCall:
        spoil(call.input)
        return call

    if phase == "function":
        return function
    hooks = Desk.HookSet()
    for selector in (Desk.order, Desk.note):
        getattr(hooks, phase)(selector)(hook)
    return hooks


@pytest.mark.parametrize("phase", ["on", "function"])
@pytest.mark.parametrize("call", [ORDER, NOTE])
def test_an_execution_hook_may_change_its_input_in_place(phase: str, call: ToolMetadata) -> None:
    """It is the call's from then on, as one that is returned; who did it is not known.

    It is looked for once, as the call starts or is saved, and the hook is not asked again.
    """
    asked = round_of(call)
    after = input_of(asked.tool_calls[0]).model_copy(deep=True)
    spoil(after)
    plan = asked.apply_hooks_sync(hooks_of(phase))
    assert plan.pending[0].input == after
    loaded = Desk.load_plan(plan.dump_json()).apply_hooks_sync(Desk.HookSet())
    assert loaded.pending[0].input == after
    loaded.discard()
    changed = ("changed", phase == "on")
    for each in (plan.calls[0], loaded.calls[0]):
        steps = [(step.kind, step.by is None) for step in each.steps[:3]]
        assert steps == [("proposed", True), ("reviewed", False), changed]


@pytest.mark.parametrize("phase", ["gate", "call gate", "condition", "before"])
@pytest.mark.parametrize("call", [ORDER, NOTE])
def test_who_judges_an_input_cannot_change_it(phase: str, call: ToolMetadata) -> None:
    """Gates, conditions and before-hooks each get an input of their own: what one does to it in
    place neither the next one sees, nor the tool, and no error is made of it.
    """
    seen: list[Any] = []

    def judge(input: Any) -> None:
        seen.append(input.model_copy(deep=True))
        spoil(input)

    def condition(input: Any) -> bool:
        judge(input)
        return False

    class Spoiling(CallGate):
        def __call__(self, call: AnyToolCall, decision: Decision | None, /) -> None:
            judge(call.input)

    class Asking(Toolset):
        order = tool(OrderArgs, needs_approval=condition)
        note = tool(note, needs_approval=condition)

    toolset = Asking if phase == "condition" else Desk
    hooks: Any = toolset.HookSet()
    for _ in range(2):
        if phase == "call gate":
            hooks.gate()(Spoiling())
        elif phase != "condition":
            getattr(hooks, phase)()(lambda metadata, input: judge(input))
    with opened(toolset, call) as asked:
        before = input_of(asked.tool_calls[0]).model_copy(deep=True)
        plan = asked.apply_hooks_sync(hooks)
        (pending,) = plan.pending
        assert seen == [before] * (1 if phase == "condition" else 2)
        assert pending.input == before
        assert "changed" not in [step.kind for step in pending.steps]
        if call is NOTE:
            assert pending.call_sync().output == 1


@pytest.mark.parametrize("phase", ["on", "gate", "before", "function"])
def test_what_was_cut_off_after_it_changed_the_input_in_place_changed_nothing(phase: str) -> None:
    """Be it by Ctrl-C or by the end of the task: the round can be decided about anew."""

    def cut_off(input: Any) -> Any:
        spoil(input)
        raise KeyboardInterrupt

    hooks: Any = lambda call: cut_off(call.input)  # noqa: E731
    if phase != "function":
        hooks = Desk.HookSet()
        getattr(hooks, phase)(Desk.note)(lambda metadata, input: cut_off(input))
    asked = round_of(NOTE)
    with pytest.raises(KeyboardInterrupt):
        asked.apply_hooks_sync(hooks)
    plan = asked.apply_hooks_sync(Desk.HookSet())
    of_plan, of_round = input_of(plan.pending[0]), input_of(asked.tool_calls[0])
    plan.discard()
    assert of_plan.words == of_round.words == ["a"]


def test_a_generated_input_of_plain_fields_is_shown_itself() -> None:
    """Nothing is copied for a hook, whether it could be changed in place or not."""
    seen: list[Any] = []
    hooks = Desk.HookSet()

    def look_on(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        seen.append(input)
        return RunNormally(input)

    hooks.on(Desk.look)(look_on)
    hooks.on(Desk.note)(look_on)
    asked = round_of(LOOK, NOTE)
    plan = asked.apply_hooks_sync(hooks)
    assert seen[0] is asked.tool_calls[0].input is plan.pending[0].input
    assert seen[1] is asked.tool_calls[1].input is plan.pending[1].input
    plan.discard()


def test_a_hook_may_return_another_input_of_what_it_was_shown() -> None:
    """A copy that a hook made and changed is an input like any other, and is validated."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.order)
    def cheaper(metadata: ToolMetadata, input: OrderArgs) -> RunNormally[OrderArgs]:
        return RunNormally(input.model_copy(update={"lines": [Line(cents=0)]}))

    plan = round_of(ORDER).apply_hooks_sync(hooks)
    assert input_of(plan.pending[0]).lines == [Line(cents=0)]
    plan.discard()


class Stubborn:
    """A value that refuses to be copied, or to be compared."""

    def __init__(self, *, copies: bool) -> None:
        self.copies = copies

    def __deepcopy__(self, memo: Any) -> Any:
        if not self.copies:
            raise TypeError("not to be copied")
        return Stubborn(copies=True)

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("copies", [True, False])
def test_values_that_refuse_to_be_copied_or_compared_pass(copies: bool) -> None:
    """A field of any type may refuse both; then nothing can be told, and the round goes on."""

    class OddArgs(ToolInput[int]):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        odd: Annotated[Any, BeforeValidator(lambda given: Stubborn(copies=given))]

    class Odd(Toolset):
        odd = tool(OddArgs)

    hooks = Odd.HookSet()
    hooks.on(Odd.odd)(lambda metadata, input: RunNormally(input))
    hooks.on(Odd.odd)(lambda metadata, input: RunNormally(input.model_copy()))
    metadata = ToolMetadata(id="c", name="odd", arguments=json.dumps({"odd": copies}))
    outcome = Odd.read_turn(AssistantTurn(tool_calls=[metadata]))
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    call = plan.pending[0]
    assert isinstance(input_of(call).odd, Stubborn)
    call.complete(1)
    assert [step.kind for step in call.steps] == ["proposed", "reviewed", "reviewed", "ended"]
    plan.discard()
