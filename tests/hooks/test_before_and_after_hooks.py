"""The laws of the hooks before and after the tools run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    CommittedRound,
    Complete,
    Reject,
    RunNormally,
    Suspend,
    ToolMetadata,
    ToolResult,
    Transcript,
)
from lutum_py.errors import CommitError, HookError, LifecycleError, MisuseError
from tests.hooks.asked import SEARCH, TICKET, USER, dry_run_of, on_user, parse, returned
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
        """A before-hook reviews allowed calls only, with their final input."""
        seen: list[tuple[str, Any]] = []
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: seen.append((metadata.id, input)))
        hooks.on(AppTools.web_search)(
            lambda metadata, input: RunNormally(web_search.Input(query="new"))
        )
        hooks.on(AppTools.data.list_orders)(lambda metadata, input: Complete(["a"]))
        answers: dict[str, Any] = {"u1": Block("no"), "u2": Suspend(TICKET)}
        hooks.gate(AppTools.data.get_user)(lambda metadata, input: answers.get(metadata.id))
        calls = [SEARCH, sent("list_orders", "l1", user_id="x")]
        calls += [sent("get_user", id, user_id="x") for id in ("u1", "u2", "u3")]
        with opened(AppTools, *calls) as asked:
            plan = asked.apply_hooks_sync(hooks)
            assert [call.id for call in plan.pending] == ["s1", "u3"]
        assert seen == [("s1", web_search.Input(query="new")), ("u3", GetUserArgs(user_id="x"))]

    def test_a_before_hook_runs_once_for_each_call(self) -> None:
        """A second pass asks a before-hook about no call again, but other before-hooks it asks."""
        seen: list[str] = []
        hooks: Any = AppTools.HookSet()

        def count(metadata: ToolMetadata, input: Any) -> None:
            seen.append(metadata.id)

        def another(metadata: ToolMetadata, input: Any) -> None:
            seen.append("other")

        hooks.before(AppTools.web_search)(count)
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks)
            plan = plan.apply_hooks_sync(hooks.with_web_search_gate(lambda *_: None))
            assert seen == ["s1", "s2"]
            other = AppTools.HookSet()
            other.before()(another)
            plan.apply_hooks_sync(other)
        assert seen == ["s1", "s2", "other", "other"]

    @pytest.mark.parametrize("answer", [Reject("x"), Block("x"), Complete(1), RunNormally(1), 3])
    def test_a_before_hook_decides_nothing(self, answer: Any) -> None:
        """What a before-hook returns is an error rather than passed over, unless it is None."""
        hooks = AppTools.HookSet()
        hooks.before()(lambda metadata, input: answer)
        with pytest.raises(HookError, match=returned(answer, "nothing: a before-hook decides")):
            parse().hook_sync(hooks)

    def test_a_before_hook_may_be_async_and_may_raise(self) -> None:
        """A before-hook is awaited, and one that raises is a HookError like any other."""
        hooks: Any = AppTools.HookSet()

        async def throttle(metadata: ToolMetadata, input: Any) -> None:
            raise TimeoutError("busy")

        hooks.register_web_search_before_hook(throttle)
        with opened(AppTools, SEARCH) as asked, pytest.raises(HookError):
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
            return dry_run_of(call).complete({"hits": [result.output["hits"][0].upper()]})

        async def twice(call: AnyToolCall, result: ToolResult) -> Complete[Any]:
            return Complete({"hits": result.output["hits"] * 2})

        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after(AppTools.web_search)(shout)
        hooks.register_web_search_after_hook(twice)
        hooks.after(AppTools.data.get_user)(lambda call, result: Complete(User(name="Bob")))
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

    def test_an_after_hook_may_refuse_a_result(self) -> None:
        """The model reads the reason in its place; the call keeps the status that the tool reached,
        and the refusal has one of its own.
        """
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: Reject("not for you"))
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(hooks)
            (call,) = plan.pending
            (shown,) = plan.apply_after_hooks_sync(hooks, [call.complete(ALICE)])
            assert isinstance(shown, ToolResult)
            assert (shown.status, shown.rejection_reason) == ("rejected", "not for you")
            assert call.status == "succeeded"
            assert plan.resolve([shown]).results == (shown,)

    @pytest.mark.parametrize("answer", [Complete({"name": 3}), Reject(3)])  # type: ignore[arg-type]
    def test_what_an_after_hook_answers_has_to_fit(self, answer: Any) -> None:
        """An unfit output and a reason that is no text are a HookError, and nothing is written."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: answer)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            result = plan.pending[0].complete(ALICE)
            steps = plan.pending[0].steps
            with pytest.raises(HookError, check=lambda error: error.call_id == "u1"):
                plan.apply_after_hooks_sync(hooks, [result])
            assert plan.pending[0].steps == steps

    @pytest.mark.parametrize("answer", [3, RunNormally(1), Block("no")])
    def test_an_after_hook_gives_a_result_or_nothing(self, answer: Any) -> None:
        """Anything else is a HookError that lists what it may give."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: answer)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match=returned(answer, "a ToolResult, Complete(")):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_an_after_hook_cannot_answer_another_call(self) -> None:
        """A result of another call is refused."""
        other = parse(SEARCH).complete({"hits": []})
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: other)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError):
                plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])

    def test_after_hooks_are_those_of_a_hook_set(self) -> None:
        """A plain function has no after-hooks, and says so."""
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            with pytest.raises(HookError, match="After-hooks are those of a HookSet"):
                plan.apply_after_hooks_sync(lambda call: call)

    def test_what_is_recorded_while_hooks_are_awaited_is_kept(self) -> None:
        """A result that comes to the plan while an after-hook is awaited is not lost."""
        hooks = AppTools.HookSet()

        @hooks.after()
        async def slow(call: AnyToolCall, result: ToolResult) -> None:
            if call.id == "s1":
                plan.record(plan.pending[0].complete({"hits": []}))
            await asyncio.sleep(0)

        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan.record(plan.pending[0].complete({"hits": []}))
            asyncio.run(plan.apply_after_hooks(hooks))
            assert [result.id for result in plan.finished] == ["s1", "s2"]
            with pytest.raises(MisuseError):
                plan.resolve()
            asyncio.run(plan.apply_after_hooks(hooks))
            plan.resolve()

    def test_a_result_of_a_call_that_waits_ends_no_other(self) -> None:
        """The result is refused where it is recorded, and the others are as they were."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.plan()
            first, second = plan.pending
            made = [AppTools.parse_tool_call(each.metadata) for each in (first, second)]
            results = [each.complete({"hits": []}) for each in made]
            second.suspend(TICKET)
            steps = second.steps
            one, two = plan.apply_after_hooks_sync(hooks, [*results, results[0]])[:2]
            assert (first.status, second.steps) == ("succeeded", steps)
            plan.record(one)
            with pytest.raises(CommitError, match="s2"):
                plan.record(two)

    def test_a_raising_after_hook_is_a_hook_error(self) -> None:
        """An after-hook that raises is named, and the plan can be used again."""
        hooks = AppTools.HookSet()

        def broken(call: AnyToolCall, result: ToolResult) -> None:
            raise ValueError("boom")

        hooks.after()(broken)
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            result = plan.pending[0].complete(ALICE)
            with pytest.raises(HookError, check=lambda error: error.tool == "get_user"):
                plan.apply_after_hooks_sync(hooks, [result])
            assert plan.resolve([result]).results == (result,)

    def test_every_after_hook_is_asked(self) -> None:
        """After a hook that leaves the result as it is, the next one still may replace it."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        hooks.after()(lambda call, result: Complete(User(name="replaced")))
        with opened(AppTools, USER) as asked:
            plan = asked.plan()
            (shown,) = plan.apply_after_hooks_sync(hooks, [plan.pending[0].complete(ALICE)])
        assert shown.model_text == '{"name":"replaced"}'

    def test_a_before_hook_of_a_tool_is_asked_about_no_other(self) -> None:
        """What is registered for one tool is not asked about the calls of another."""
        hooks = AppTools.HookSet()
        seen: list[str] = []
        hooks.before(AppTools.web_search)(lambda metadata, input: seen.append(metadata.name))
        with opened(AppTools, USER, SEARCH) as asked:
            asked.apply_hooks_sync(hooks)
        assert seen == ["web_search"]

    def test_a_commit_without_asking_is_refused(self) -> None:
        """A commit names an after-hook that was not asked, and the line."""
        hooks = AppTools.HookSet()
        seen: list[str] = []

        @hooks.after(AppTools.web_search)
        def audit(call: AnyToolCall, result: ToolResult) -> None:
            seen.append(result.result)

        hooks.on(AppTools.data.get_user)(lambda metadata, input: Complete(ALICE))
        with opened(AppTools, USER, SEARCH) as asked:
            plan = asked.apply_hooks_sync(hooks)
            with pytest.raises(CommitError):  # faults come first
                plan.resolve()
            results = [plan.pending[0].complete({"hits": []})]
            with pytest.raises(MisuseError) as caught:
                plan.resolve(results)
            text = str(caught.value)
            assert "audit` has not seen the result of call 's1' of tool `web_search`" in text
            assert "Write `results = await plan.apply_after_hooks(hooks, results)`" in text
            assert plan.resolve(plan.apply_after_hooks_sync(hooks, results)).results
        assert seen == ['{"hits":[]}']

    @pytest.mark.parametrize("how", ["passed", "recorded", "handled"])
    @pytest.mark.parametrize("end", ["commit", "resolve", "abort"])
    def test_no_end_of_a_round_goes_around_after_hooks(self, how: str, end: str) -> None:
        """A result that no after-hook has seen, wherever it stands, ends no round: neither by a
        commit nor by giving the round up. Nothing has changed then.
        """
        seen: list[str] = []
        hooks = AppTools.HookSet()
        if how == "handled":
            hooks = on_user(lambda metadata, input: Complete(ALICE))

        @hooks.after()
        def mask(call: AnyToolCall, result: ToolResult) -> ToolResult:
            seen.append(call.id)
            return dry_run_of(call).fail("masked")

        transcript = Transcript()
        with opened(AppTools, USER if how == "handled" else SEARCH) as asked:
            plan = asked.apply_hooks_sync(hooks)
            results = [call.complete({"hits": ["secret"]}) for call in plan.pending]
            if how == "recorded":
                plan.record(results.pop())

            def ended(given: list[Any]) -> CommittedRound:
                if end == "commit":
                    return plan.commit(transcript, given)
                if end == "resolve":
                    return plan.resolve(given)
                return plan.abort(transcript, "stop", given)

            with pytest.raises(MisuseError):
                ended(results)
            assert (seen, len(transcript)) == ([], 0)
            shown = plan.apply_after_hooks_sync(hooks, results)
            assert [each.model_text for each in ended(shown).results] == ["masked"]
        assert len(seen) == 1

    @pytest.mark.parametrize("end", ["commit", "abort", "record"])
    @pytest.mark.parametrize("passed", [0, 1])
    def test_a_result_that_an_after_hook_replaced_is_not_taken(self, end: str, passed: int) -> None:
        """What a hook put another in the place of, as to hide a secret, goes into no transcript:
        neither what the tool gave, nor what an earlier hook made of it.
        """
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: Complete({"hits": ["half"]}))
        masks = AppTools.HookSet()

        @masks.after()
        def mask(call: AnyToolCall, result: ToolResult) -> Complete[Any]:
            return Complete({"hits": ["masked"]})

        transcript = Transcript()
        with opened(AppTools, SEARCH) as asked:
            plan = asked.apply_hooks_sync(hooks)
            made = [plan.pending[0].complete({"hits": ["secret"]})]
            made += plan.apply_after_hooks_sync(hooks, made)
            (last,) = plan.apply_after_hooks_sync(masks, made[1:])

            def ended(result: ToolResult) -> CommittedRound:
                if end == "record":
                    plan.record(result)
                    return plan.commit(transcript)
                if end == "commit":
                    return plan.commit(transcript, [result])
                return plan.abort(transcript, "stop", [result])

            with pytest.raises(MisuseError, match=r"mask` put another result of call 's1'"):
                ended(made[passed])
            assert (len(transcript), [call.id for call in plan.pending]) == (0, ["s1"])
            assert [each.result for each in ended(last).results] == ['{"hits":["masked"]}']

    def test_a_result_that_nobody_showed_the_hooks_is_taken(self) -> None:
        """What the program made of what the hooks gave, or of another try, is its own word."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: Complete({"hits": ["masked"]}))
        with opened(AppTools, SEARCH) as asked:
            plan = asked.plan()
            call = plan.pending[0]
            plan.apply_after_hooks_sync(hooks, [call.complete({"hits": ["secret"]})])
            own = call.retry().complete({"hits": ["nothing"]})
            assert plan.resolve([own]).results == (own,)

    def test_what_after_hooks_said_of_one_try_is_no_look_at_the_next(self) -> None:
        """A call that is tried again while they look has nothing of it, and they are owed."""
        hooks, seen = AppTools.HookSet(), list[str]()

        @hooks.after()
        async def look(call: AnyToolCall, result: ToolResult) -> None:
            if not seen and call.id == "s1":
                call.retry()
                call.start()
            seen.append(call.id)

        with opened(AppTools, SEARCH, sent("web_search", "s2", query="b")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            results = [call.complete({"hits": []}) for call in plan.pending]
            with pytest.raises(LifecycleError, match="'s1' of tool `web_search` was tried again"):
                asyncio.run(plan.apply_after_hooks(hooks, results))
            # The others have what was said of them.
            tells = [[step.kind for step in row.steps][-1] for row in plan.calls]
            assert tells == ["started", "reviewed"]
            results[0] = plan.pending[0].complete({"hits": ["last"]})
            with pytest.raises(MisuseError, match="has not seen the result of call 's1'"):
                plan.resolve(results)
            shown = asyncio.run(plan.apply_after_hooks(hooks, results))
            assert plan.resolve(shown).results[0].result == '{"hits":["last"]}'

    def test_what_all_after_hooks_said_of_a_result_is_one_entry(self) -> None:
        """Nobody sees what the first one left, and the second one would have masked."""
        hooks, read = AppTools.HookSet(), list[str]()
        hooks.after()(lambda call, result: Complete({"hits": ["first"]}))

        @hooks.after()
        def second(call: AnyToolCall, result: ToolResult) -> Complete[Any]:
            return Complete({"hits": ["second"]})

        class Watched(dict[int, Any]):
            def setdefault(self, number: int, entry: Any = None) -> Any:
                kept = super().setdefault(number, entry)
                read.extend(each.result for each in plan.finished)
                return kept

        with opened(AppTools, SEARCH) as asked:
            plan = asked.apply_hooks_sync(hooks)
            (call,) = plan.pending
            plan.record(call.complete({"hits": ["secret"]}))
            call._record.entries = Watched(call._record.entries)
            plan.apply_after_hooks_sync(hooks)
            assert read == ['{"hits":["second"]}']
            assert plan.resolve().results[0].result == '{"hits":["second"]}'

    @pytest.mark.parametrize("end", ["commit", "resolve", "abort"])
    @pytest.mark.parametrize("by", ["round", "older plan", "newer plan", "plan of other hooks"])
    def test_no_other_plan_goes_around_after_hooks(self, by: str, end: str) -> None:
        """What the hooks of one plan are owed is owed by the round, whoever ends it."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        transcript = Transcript()
        with opened(AppTools, SEARCH) as asked:
            older = asked.plan()
            plan = older.apply_hooks_sync(hooks)
            results = [call.complete({"hits": []}) for call in plan.pending]
            enders = {"round": asked, "older plan": older, "newer plan": asked.plan()}
            if by == "plan of other hooks":
                enders[by] = asked.apply_hooks_sync(AppTools.HookSet())
            ender: Any = enders[by]
            given = {"resolve": (), "commit": (transcript,), "abort": (transcript, "stop")}[end]
            with pytest.raises(MisuseError, match="has not seen the result"):
                getattr(ender, end)(*given, results)
            assert len(transcript) == 0
            assert plan.resolve(plan.apply_after_hooks_sync(hooks, results)).results

    @pytest.mark.parametrize("is_saved", [False, True])
    def test_a_round_without_results_is_given_up_without_asking(self, is_saved: bool) -> None:
        """What the library says of calls that nobody ran is nothing that an after-hook is owed."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        transcript = Transcript()
        with opened(AppTools, SEARCH) as asked:
            plan = asked.apply_hooks_sync(hooks)
            text = plan.dump_json() if is_saved else None
            if text is None:
                plan.abort(transcript, "stop")
        if text is not None:
            AppTools.load_plan(text).abort(transcript, "stop")
        assert [item.status for item in transcript[1:]] == ["cancelled"]  # type: ignore[union-attr]

    def test_a_handled_result_is_shown_before_the_commit(self) -> None:
        """The results of hooks are owed to the after-hooks like any other."""
        hooks = on_user(lambda metadata, input: Complete(ALICE))
        hooks.after()(lambda call, result: None)
        with opened(AppTools, USER) as asked:
            plan = asked.apply_hooks_sync(hooks)
            with pytest.raises(MisuseError):
                plan.commit(Transcript())
            plan.apply_after_hooks_sync(hooks)
            plan.commit(Transcript())

    def test_a_recorded_result_is_shown_once_and_replaced_in_place(self) -> None:
        """The plan keeps what a hook put in the place of a recorded result, and asks it once."""
        seen: list[str] = []

        def sign(call: AnyToolCall, result: ToolResult) -> Complete[Any]:
            seen.append(call.id)
            return Complete({"hits": ["signed"]})

        hooks = AppTools.HookSet()
        hooks.after(AppTools.web_search)(sign)
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan.record(plan.pending[0].complete({"hits": []}))
            assert plan.apply_after_hooks_sync(hooks) == []
            plan.record(plan.pending[0].complete({"hits": []}))
            with pytest.raises(MisuseError):
                plan.resolve()
            plan.apply_after_hooks_sync(hooks)
            results = plan.resolve().results
            assert [each.result for each in results] == ['{"hits":["signed"]}'] * 2
        assert seen == ["s1", "s2"]

    def test_a_saved_plan_knows_what_its_after_hooks_have_seen(self) -> None:
        """Loaded, a plan shows its hooks what comes later, and nothing twice."""
        hooks = AppTools.HookSet()
        seen: list[str] = []

        def note(call: AnyToolCall, result: ToolResult) -> None:
            seen.append(call.id)

        hooks.after()(note)
        with opened(AppTools, SEARCH, sent("web_search", "s2", query="y")) as asked:
            plan = asked.apply_hooks_sync(hooks)
            plan.record(plan.pending[0].complete({"hits": []}))
            plan.apply_after_hooks_sync(hooks)
            text = plan.dump_json()
        plan = AppTools.load_plan(text)
        plan.record(plan.pending[0].complete({"hits": []}))
        plan.apply_after_hooks_sync(hooks)
        assert seen == ["s1", "s2"]
        plan.resolve()

    def test_what_came_after_the_first_look_is_owed_too(self) -> None:
        """Asking a loaded plan's hooks once does not let later results pass unseen."""
        hooks = AppTools.HookSet()
        hooks.after()(lambda call, result: None)
        with opened(AppTools, SEARCH) as asked:
            text = asked.apply_hooks_sync(hooks).dump_json()
        plan = AppTools.load_plan(text)
        plan.apply_after_hooks_sync(hooks)
        plan.record(plan.pending[0].complete({"hits": []}))
        with pytest.raises(MisuseError):
            plan.resolve()
        plan.discard()


class TestOnce:
    def test_of_two_who_ask_at_once_one_counts(self) -> None:
        """Both ask, since neither can know what the other will hear. What the first wrote counts,
        the second is told so, and nobody is asked about the call again.
        """
        seen: list[str] = []
        hooks = AppTools.HookSet()

        @hooks.before()
        async def count(metadata: ToolMetadata, input: Any) -> None:
            seen.append(metadata.id)
            await asyncio.sleep(0)

        async def both(asked: Any) -> Any:
            passes = asked.apply_hooks(hooks), asked.apply_hooks(hooks)
            return await asyncio.gather(*passes, return_exceptions=True)

        with opened(AppTools, SEARCH) as asked:
            plan, error = asyncio.run(both(asked))
            assert isinstance(error, LifecycleError)
            assert "Call 's1' of tool `web_search` was reviewed by `" in str(error)
            assert seen == ["s1", "s1"]
            asyncio.run(asked.apply_hooks(hooks))
            assert [step.phase for step in plan.pending[0].steps[1:]] == ["before"]
        assert seen == ["s1", "s1"]

    def test_one_that_raised_is_asked_again(self) -> None:
        """A before-hook that raised is unmarked: the next pass asks it, and then no more."""
        answers: list[Any] = [None, None, OSError("busy")]
        hooks = AppTools.HookSet()

        @hooks.before()
        def count(metadata: ToolMetadata, input: Any) -> None:
            answer = answers.pop()
            if answer is not None:
                raise answer

        with opened(AppTools, SEARCH) as asked:
            with pytest.raises(HookError):
                asked.apply_hooks_sync(hooks)
            asked.apply_hooks_sync(hooks)
            asked.apply_hooks_sync(hooks)
        assert answers == [None]

    def test_it_is_known_by_its_name_in_another_process(self) -> None:
        """A loaded plan asks no before-hook of a name that was asked; two of one name are two."""
        seen: list[str] = []

        def made() -> Any:
            hooks = AppTools.HookSet()
            for place in ("first", "second"):

                def count(metadata: ToolMetadata, input: Any, place: str = place) -> None:
                    seen.append(place)

                hooks.before()(count)
            return hooks

        with opened(AppTools, SEARCH) as asked:
            text = asked.apply_hooks_sync(made()).dump_json()
        plan = AppTools.load_plan(text).apply_hooks_sync(made())
        plan.discard()
        assert seen == ["first", "second"]
