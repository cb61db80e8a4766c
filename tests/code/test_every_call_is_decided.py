"""The law that a program does nothing that nobody decided about, over programs drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Reject, RunNormally, ToolContext, ToolMetadata, Toolset, tool, tool_fn, toolset
from lutum_py.code import program_tool
from lutum_py.execution import run_sync
from tests.code.programs import planned, result_of

RAN: list[tuple[str, int]] = []


@tool_fn
def take(amount: int, ctx: ToolContext) -> int:
    """Take an amount."""
    RAN.append((ctx.call_id, amount))
    return amount


class Bank(Toolset):
    """What moves money."""

    take = tool(take)


class Kept(Toolset):
    """Programs that are kept."""

    bank = toolset(Bank, off=True)
    run_program = tool(program_tool(Bank))


class Replay(Toolset):
    """Programs that are run again."""

    bank = toolset(Bank, off=True)
    run_program = tool(program_tool(Bank, keep="replay"))


AMOUNTS = st.lists(st.integers(0, 9) | st.just("much"), min_size=1, max_size=3)
SHAPES = {
    "one by one": "for a in {0}:\n  total += await take(a)",
    "at once": "total += sum(await gather(*[take(a) for a in {0}]))",
    "by name": "f = take\ntotal += await f(**{{'amount': {0}[0]}})",
    "in a function": "async def g(a):\n  return await take(a) + await take(amount=a)\n"
    "total += sum(await gather(*map(g, {0})))",
    "in text": "exec('c = take({0}[0])')\ntotal += await c",
}
PROGRAMS = st.lists(st.tuples(st.sampled_from(sorted(SHAPES)), AMOUNTS, st.booleans()), max_size=4)


def written(steps: list[tuple[str, list[Any], bool]]) -> str:
    """Write a program of such steps; in some of them it goes on whatever its calls raise."""
    lines = ["from asyncio import gather", "total = 0"]
    for shape, amounts, catches in steps:
        body = SHAPES[shape].format(amounts)
        if catches:
            indented = body.replace("\n", "\n  ")
            body = f"try:\n  {indented}\nexcept Exception:\n  total -= 1"
        lines.append(body)
    return "\n".join([*lines, "total"])


@given(PROGRAMS, st.sampled_from([Kept, Replay]), st.sets(st.integers(0, 9)))
def test_each_call_is_shown_to_the_hooks_and_runs_as_they_say(
    steps: list[tuple[str, list[Any], bool]], tools: type[Toolset], refused: set[int]
) -> None:
    """However it is written, each call is decided about once, and runs once or not at all."""
    RAN.clear()
    seen: list[tuple[str, int]] = []
    hooks = tools.HookSet()

    @hooks.on(Bank.take)
    def decide(metadata: ToolMetadata, input: Any) -> RunNormally[Any] | Reject:
        seen.append((metadata.id, input.amount))
        return Reject("no") if input.amount in refused else RunNormally(input)

    plan = run_sync(planned(written(steps), tools), hooks=hooks)
    inner = plan.calls[1:]
    usable = [row for row in inner if row.state != "unusable"]
    assert [id for id, _ in seen] == [row.id for row in usable]
    assert sorted(RAN) == sorted(each for each in seen if each[1] not in refused)
    assert all(row.result is not None for row in inner)
    assert result_of(plan).code in (None, "program_error")
