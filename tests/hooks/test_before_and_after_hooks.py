"""The laws of the hooks before and after the tools run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Reject,
    RunNormally,
    Suspend,
    ToolMetadata,
    ToolResult,
)
from lutum_py.errors import HookError
from tests.hooks.asked import SEARCH, TICKET, USER, on_user, parse
from tests.sample_tools import (
    ALICE,
    AppTools,
    GetUserArgs,
    User,
    opened,
    sent,
    web_search,
)


class TestBeforeHooks:
    def test_before_hooks_see_calls_that_stay_pending(self) -> None:
        """A before-hook is asked about allowed calls only, with their final input."""
        seen: list[tuple[str, Any]] = []
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: seen.append((metadata.id, input)))
        hooks.on(AppTools.web_search)(
            lambda metadata, input: RunNormally(web_search.Input(query="new"))
        )
        hooks.on(AppTools.data.list_orders)(lambda metadata, input: Complete(["a"]))
        hooks.gate(AppTools.data.get_user)(
            lambda metadata, input: {"u1": Block("no"), "u2": Suspend(TICKET)}.get(metadata.id)
        )
        calls = [SEARCH, sent("list_orders", "l1", user_id="x")]
        calls += [sent("get_user", id, user_id="x") for id in ("u1", "u2", "u3")]
        with opened(AppTools, *calls) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert [call.id for call in plan.pending] == ["s1", "u3"]
        assert seen == [("s1", web_search.Input(query="new")), ("u3", GetUserArgs(user_id="x"))]

    def test_a_before_hook_runs_once_for_each_call(self) -> None:
        """A second pass asks a before-hook about no call again, but other before-hooks it asks."""
        seen: list[str] = []
        hooks = AppTools.HookSet()
        hooks.before(AppTools.web_search)(lambda metadata, input: seen.append(metadata.id))
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks.with_web_search_gate(lambda *_: None))
            assert seen == ["s1", "s2"]
            other = AppTools.HookSet()
            other.before()(lambda metadata, input: seen.append("other"))
            plan.apply_hooks_sync(other)
        assert seen == ["s1", "s2", "other", "other"]

    @pytest.mark.parametrize("answer", [Reject("x"), Block("x"), Complete(1), RunNormally(1)])
    def test_a_before_hook_decides_nothing(self, answer: Any) -> None:
        """A decision of a before-hook is an error rather than passed over; another value is not."""
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: answer)
        with pytest.raises(HookError, match=r"a before-hook decides nothing\. Register a gate"):
            parse().hook_sync(hooks)
        harmless = AppTools.HookSet()
        harmless.before()(lambda metadata, input: 3)
        call = parse()
        assert call.hook_sync(harmless) is call

    def test_a_before_hook_may_be_async_and_may_raise(self) -> None:
        """A before-hook is awaited, and one that raises is a HookError like any other."""
        hooks = AppTools.HookSet()

        async def throttle(metadata: ToolMetadata, input: Any) -> None:
            raise TimeoutError("busy")

        hooks.register_web_search_before_hook(throttle)
        with opened(AppTools, SEARCH) as asked, pytest.raises(HookError, match="busy"):
            asyncio.run(asked.apply_hooks(hooks))


class TestAfterHooks:
    def test_after_hooks_see_executed_and_handled_calls(self) -> None:
        """After-hooks see call and result, however the result came about, but no rejection."""
        seen: list[tuple[str, str, Any]] = []
        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after()(lambda call, result: seen.append((call.id, result.id, call.input)))
        hooks.on(AppTools.data.list_orders)(lambda metadata, input: Reject("no"))
        calls = [USER, SEARCH, sent("list_orders", "l1", user_id="x")]
        with opened(AppTools, *calls) as asked:
            plan = asked.apply_hooks_sync(hooks)
            results = plan.apply_after_hooks_sync(hooks, [plan.pending[0].fail("down")])
            assert [result.status for result in results] == ["error"]
        assert sorted(seen, key=lambda entry: entry[0]) == [
            ("s1", "s1", web_search.Input(query="x")),
            ("u1", "u1", GetUserArgs(user_id="alice")),
        ]

    def test_an_after_hook_may_replace_a_result(self) -> None:
        """A result that an after-hook returns is committed, and the next after-hook sees it."""

        def shout(call: AnyToolCall, result: ToolResult) -> ToolResult:
            return call.again().complete({"hits": [result.output["hits"][0].upper()]})

        async def twice(call: AnyToolCall, result: ToolResult) -> ToolResult:
            return call.again().complete({"hits": result.output["hits"] * 2})

        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after(AppTools.web_search)(shout)
        hooks.register_web_search_after_hook(twice)
        hooks.after(AppTools.data.get_user)(
            lambda call, result: call.again().complete(User(name="Bob"))
        )
        with opened(AppTools, USER, SEARCH) as asked:

            async def run() -> Any:
                plan = await asked.apply_hooks(hooks)
                done = plan.pending[0].complete({"hits": ["x"]})
                return plan, await plan.apply_after_hooks(hooks, [done])

            plan, results = asyncio.run(run())
            committed = plan.resolve(results)
            assert [result.result for result in committed.results] == [
                '{"name":"Bob"}',
                '{"hits":["X","X"]}',
            ]
            assert plan.handled[0].output == {"name": "Bob"}

    @pytest.mark.parametrize("answer", [3, Complete(ALICE), Reject("no")])
    def test_an_after_hook_gives_a_result_or_nothing(self, answer: Any) -> None:
        """Anything but a result or None is a HookError, and so is the result of another call."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: answer)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match="Return a ToolResult or None"):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_an_after_hook_cannot_answer_another_call(self) -> None:
        """A result of another call is refused."""
        other = parse(SEARCH).complete({"hits": []})
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: other)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(
                HookError, match="a result of another call, 's1' of tool 'web_search'"
            ):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_after_hooks_are_those_of_a_hook_set(self) -> None:
        """A plain function has no after-hooks, and says so."""
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match="After-hooks are those of a HookSet"):
                plan.apply_after_hooks_sync(lambda call: call, [plan.pending[0].complete(ALICE)])

    def test_a_raising_after_hook_is_a_hook_error(self) -> None:
        """An after-hook that raises is named, and the plan can be used again."""
        hooks = AppTools.HookSet()

        def broken(call: AnyToolCall, result: ToolResult) -> None:
            raise ValueError("boom")

        hooks.after()(broken)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            result = plan.pending[0].complete(ALICE)
            with pytest.raises(HookError, match="broken` for tool `get_user`"):
                plan.apply_after_hooks_sync(hooks, [result])
            assert plan.resolve([result]).results == (result,)

    def test_every_after_hook_is_asked(self) -> None:
        """After a hook that leaves the result as it is, the next one still may replace it."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        hooks.after()(lambda call, result: call.again().fail("replaced"))
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            (shown,) = plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])
        assert shown.model_text == "replaced"

    def test_a_before_hook_of_a_tool_is_asked_about_no_other(self) -> None:
        """What is registered for one tool is not asked about the calls of another."""
        hooks = AppTools.HookSet()
        seen: list[str] = []
        hooks.before(AppTools.web_search)(lambda metadata, input: seen.append(metadata.name))
        with opened(AppTools, USER, SEARCH) as asked:
            asked.apply_hooks_sync(hooks)
        assert seen == ["web_search"]
