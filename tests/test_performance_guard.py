"""Costs that cannot flake: instructions and bytes are counted, not seconds."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from statistics import median
from time import thread_time
from timeit import repeat
from types import ModuleType
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Finished,
    Message,
    NeedsTools,
    RunNormally,
    Session,
    SuspendedCall,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    Transcript,
    TurnRequest,
    Usage,
    tool,
    tool_fn,
)
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.execution import execute_all, run
from lutum_py.testing import ScriptedModel
from lutum_py.window import View
from tests.benchmarks import floors, ours
from tests.benchmarks.wire import ARGUMENTS, LISTS, WIRES, Wire
from tests.instructions import instructions
from tests.many_tools import ManyTools
from tests.models.said import Said

LISTED = json.dumps(LISTS)
SMALL = '{"query":"hello world","max_results":3}'


@tool_fn
def search(query: str, max_results: int = 5, site: str | None = None) -> str:
    """Search the web."""
    return query * max_results


@tool_fn
def fail() -> str:
    """Fail."""
    raise ValueError("as it should")


class Tools(Toolset):
    search = tool(search)
    fail = tool(fail)


hooks = Tools.HookSet()


@hooks.on(Tools.search)
def pass_on(metadata: ToolMetadata, input: object) -> RunNormally[object]:
    return RunNormally(input)


class Echo:
    """A model that always says the same, and looks at nothing."""

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        return AssistantTurn(text="yes")


@pytest.fixture(autouse=True)
def no_after_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted is a program without after-hooks, whatever other tests have registered."""
    (registered,) = hooks._hooks_for(Tools.search, "execution")
    monkeypatch.setattr(type(registered), "any_after", False)


def metadata(index: int = 0) -> ToolMetadata:
    return ToolMetadata(id=f"c{index}", name="search", arguments=SMALL)


def round_of(size: int) -> None:
    turn = AssistantTurn(tool_calls=[metadata(index) for index in range(size)])
    outcome = Tools.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    plan.commit(Transcript(), [call.call_sync() for call in plan.pending])


def loop_of(turns: int) -> Session:
    asked = iter(range(turns))

    def script(request: object) -> AssistantTurn:
        for index in asked:
            return AssistantTurn(tool_calls=[metadata(index)])
        return AssistantTurn(text="done")

    session = Session()
    session.push_user("go")
    model = ScriptedModel(script)
    while True:
        match session.text_turn(model).tools(Tools).collect_sync():
            case NeedsTools(round):
                plan = round.apply_hooks_sync(hooks)
                plan.commit(session, [call.call_sync() for call in plan.pending])
            case Finished():
                return session


def test_loaded_tools_cost_the_same_however_long_the_conversation() -> None:
    """A turn that offers loaded tools takes as many instructions at 10,000 items as at 1,000."""
    counts: list[int] = []
    for rounds in (500, 5000):
        session = Session()
        session.push_user("go")
        for _ in range(rounds):
            call = ToolMetadata(id="c1", name="search_tools", arguments="{}")
            result = ToolResult(
                id="c1",
                name="search_tools",
                arguments="{}",
                result='["forecast","crm_find_customer"]',
            )
            turn = AssistantTurn(tool_calls=[call])
            session.transcript.append_round(CommittedRound(turn, [result]))
        asked = session.text_turn(Echo()).tools(ManyTools)
        assert len(asked.request().tools) == 4

        def next_turn(session: Session = session, asked: Any = asked) -> None:
            session.push_user("more")
            asked.request()

        counts.append(instructions(next_turn))
    assert counts[1] == counts[0] <= 600


def test_decoding_a_call_takes_few_instructions() -> None:
    """Decoding goes straight to the validator: it cannot grow tenfold unnoticed."""
    assert instructions(partial(Tools.parse_tool_call, metadata())) <= 136


def test_decoding_costs_little_more_than_validating() -> None:
    """What is done in C is no instruction here: of a large text, a second look would show."""
    large = json.dumps({"query": "x y " * 50_000})
    one = ToolMetadata(id="c1", name="search", arguments=large)
    validate, parse = Tools.search.spec.validate_json, Tools.parse_tool_call
    pairs = [
        (
            min(repeat(partial(validate, large), timer=thread_time, number=20, repeat=3)),
            min(repeat(partial(parse, one), timer=thread_time, number=20, repeat=3)),
        )
        for _ in range(5)
    ]
    assert min(ours / floor for floor, ours in pairs) <= 3


def test_running_a_call_takes_few_instructions() -> None:
    """Between the decoded call and its result there is next to nothing."""
    calls = iter([Tools.parse_tool_call(metadata()) for _ in range(2)])
    assert instructions(lambda: next(calls).call_sync()) <= 690


def test_a_round_costs_the_same_for_each_call() -> None:
    """What a round costs is proportional to its calls, and little for each."""
    small, large = instructions(partial(round_of, 8)), instructions(partial(round_of, 64))
    each = (large - small) / 56
    assert each <= 1535
    assert small <= 8 * each + 1300


def test_what_a_call_is_within_is_found_at_once() -> None:
    """It takes as many instructions where the turn has 1,000 calls as where it has 10."""

    def within(size: int) -> int:
        turn = AssistantTurn(tool_calls=[metadata(index) for index in range(size)])
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        row = outcome.round.apply_hooks_sync(hooks).calls[-1]
        outcome.round.discard()
        assert row.ancestors == ()  # the turn is gone through once
        return instructions(lambda: row.ancestors)

    assert within(1000) == within(10)


def test_inputs_that_can_change_cost_little_more() -> None:
    """Lists, models and mappings are written by pydantic to be compared, not gone through here."""

    def a_call(hooks: int, *, later: bool = False) -> float:
        made = ours.hooks_of(hooks, later=later)

        def round_of_lists(size: int) -> Callable[[], object]:
            return partial(ours.round_async, [LISTED] * size, 1, name="find", hooks=made)

        return each_of(round_of_lists, 8, 24)

    without, with_one = a_call(0), a_call(1)
    assert without <= 1690
    assert with_one <= 2130
    assert a_call(3) - with_one <= 420
    assert a_call(1, later=True) <= 2165


def test_a_call_whose_input_can_change_takes_few_instructions() -> None:
    """Its input is not written down before the tool has it: its text reads the same once more."""

    def calling(times: int) -> Callable[[], object]:
        return partial(ours.call_async, LISTED, times, name="find")

    assert each_of(calling, 10, 30) <= 725


@pytest.mark.parametrize(
    ("loop", "limit"),
    [
        (loop_of, 3790),
        (partial(ours.loop, SMALL), 3115),
        (partial(ours.loop, LISTED, name="find"), 3640),
    ],
    ids=["sync", "async", "lists"],
)
def test_a_turn_costs_the_same_however_long_the_conversation(
    loop: Callable[[int], object], limit: int
) -> None:
    """The six hundredth turn takes as many instructions as the hundredth."""
    counts = [instructions(partial(loop, turns)) for turns in (100, 200, 600)]
    later, earlier = (counts[2] - counts[1]) / 400, (counts[1] - counts[0]) / 100
    assert later <= earlier * 1.01
    assert later <= limit


DIALECTS = [anthropic_messages, gemini_generate_content, openai_chat, openai_responses]


def conversation_of(rounds: int) -> Transcript:
    """Rounds of a call, as a provider that reports its usage has them."""
    transcript = Transcript()
    transcript.push(Message("user", "go"))
    for index in range(rounds):
        call = metadata(index)
        usage = Usage(input_tokens=1000 + 60 * index, output_tokens=20)
        turn = AssistantTurn(text="Let me look.", tool_calls=[call], usage=usage)
        result = ToolResult(
            id=call.id, name=call.name, arguments=call.arguments, result=f'"{index:4}{"x" * 156}"'
        )
        transcript.append_round(CommittedRound(turn, [result]))
    return transcript


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_of_a_view_costs_the_same_however_long_the_transcript(
    dialect: ModuleType,
) -> None:
    """Fitting, and rendering what fits, takes as much of 10,000 items as of 1,000."""
    counts = []
    for rounds in (500, 5000):
        transcript = conversation_of(rounds)
        view = View().drop_rounds(transcript, older_than=100)

        def request(view: View = view, transcript: Transcript = transcript) -> None:
            assert view.fit(transcript, limit_tokens=10**6, at_least=10) is view
            dialect.encode_request(TurnRequest(items=view.of(transcript)))

        counts.append(instructions(request))
    assert counts[1] <= counts[0] * 1.01


def copied(value: Any) -> Any:
    """Copy plain JSON data deeply, with as few steps as that takes."""
    if isinstance(value, dict):
        return {
            key: part if part.__class__ in (str, int, bool) else copied(part)
            for key, part in value.items()
        }
    return [copied(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_renders_only_what_is_new(dialect: ModuleType) -> None:
    """What was sent before is not rendered again but copied, by a plan of where to look: it costs
    less than half of a deep copy.
    """
    request = TurnRequest(items=conversation_of(500).view())
    body = dialect.encode_request(request)
    again = instructions(lambda: dialect.encode_request(request))
    assert again <= 0.5 * instructions(lambda: copied(body))


def test_a_turn_copies_nothing_of_the_conversation() -> None:
    """What a turn needs for a moment is no more after 3,000 turns than after 100."""

    def needed_after(turns: int) -> float:
        session = loop_of(turns)
        needed: list[int] = []
        for _ in range(21):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            session.push_user("more")
            assert session.text_turn(Echo()).collect_sync()
            needed.append(tracemalloc.get_traced_memory()[1] - before)
        return median(needed)  # now and then the list itself has to grow

    tracemalloc.start()
    try:
        short, long = needed_after(100), needed_after(3000)
    finally:
        tracemalloc.stop()
    assert long <= short + 1000


def unusable() -> None:
    """A round of calls that cannot be used, each in a way of its own."""
    arguments = ['{"query": 5}', '{"query', '{"query": "x", "max_results": "[1]"}']
    calls = [ToolMetadata(id=text, name="search", arguments=text) for text in arguments]
    calls.append(ToolMetadata(id="c", name="no such tool", arguments="{}"))
    outcome = Tools.read_turn(AssistantTurn(tool_calls=calls))
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(Transcript(), [])


def run_at_once() -> None:
    """Two calls that run at once, and one that fails."""
    loop = asyncio.new_event_loop()
    calls = [Tools.parse_tool_call(metadata(index)) for index in range(2)]
    calls.append(Tools.parse_tool_call(ToolMetadata(id="f", name="fail", arguments="{}")))
    loop.run_until_complete(execute_all(calls))
    loop.close()


@pytest.mark.parametrize("work", [partial(round_of, 4), unusable, run_at_once])
def test_no_call_leaves_a_reference_cycle(work: Callable[[], object]) -> None:
    """With the collector off, all that a round made is gone when the round is."""
    work()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            work()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_decoded_calls_leave_nothing_behind() -> None:
    """Memory does not grow with the number of decoded calls: not one block in a thousand calls."""
    one = metadata()
    parse = Tools.parse_tool_call
    parse(one)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(200_000):
        parse(one)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


def test_a_transcript_holds_at_most_three_times_its_json() -> None:
    """3,000 turns with results of a kilobyte cost memory in proportion to their text."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        session = Session()
        session.push_user("go")
        for index in range(3_000):
            turn = AssistantTurn(tool_calls=[metadata(index)])
            outcome = Tools.read_turn(turn)
            assert isinstance(outcome, NeedsTools)
            call = outcome.round.expect_one()
            outcome.round.commit(session, [call.complete(f"{index:4}" * 256)])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= 3 * len(session.transcript.dump_json())


@pytest.mark.parametrize("workers", [16])
def test_threads_get_the_answers_that_one_gets(workers: int) -> None:
    """Toolsets and hook sets are used from many threads at once, and nobody notices."""
    wanted = loop_of(20).transcript.dump_json()
    start = threading.Barrier(workers)
    answers: list[str] = []

    def work() -> None:
        start.wait()
        for _ in range(5):
            answers.append(loop_of(20).transcript.dump_json())

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [wanted] * (5 * workers)


def each_of(work: Callable[[int], Callable[[], object]], few: int, many: int) -> float:
    """Count the instructions of one more in a piece of work."""
    return (instructions(work(many)) - instructions(work(few))) / (many - few)


def limits(*each: int) -> pytest.MarkDecorator:
    """Give each dialect its limit, in the order of the benchmark."""
    return pytest.mark.parametrize(
        ("wire", "limit"), list(zip(WIRES, each, strict=True)), ids=[wire.name for wire in WIRES]
    )


@limits(515, 625, 645, 730)
def test_a_call_is_decoded_in_few_instructions(wire: Wire, limit: int) -> None:
    """A response is read once: a call costs so many instructions, however many there are."""

    def decoding(calls: int) -> Callable[[], object]:
        return partial(wire.dialect.decode, wire.response(calls))

    early, later = each_of(decoding, 8, 16), each_of(decoding, 64, 128)
    assert later <= early * 1.01
    assert later <= limit


@limits(410, 215, 231, 731)
def test_a_delta_is_read_in_few_instructions(wire: Wire, limit: int) -> None:
    """More text in a stream costs so many instructions, however much there was."""

    def reading(deltas: int) -> Callable[[], object]:
        return partial(ours.events, wire, wire.stream(deltas), 1)

    early, later = each_of(reading, 20, 40), each_of(reading, 150, 250)
    assert later <= early * 1.01
    assert later <= limit


@limits(8640, 9400, 11840, 4630)
def test_a_short_stream_takes_few_instructions(wire: Wire, limit: int) -> None:
    """An answer of one call costs no more than its few events and the turn in the end."""
    events = [*map(json.dumps, wire.events(Said(calls=(("c1", "search", ARGUMENTS),))))]
    assert instructions(partial(ours.events, wire, events, 1)) <= limit


@limits(2830, 2880, 3845, 3480)
def test_a_saved_turn_is_loaded_in_few_instructions(wire: Wire, limit: int) -> None:
    """A turn and its result take so many instructions, however long the transcript."""

    def loading(turns: int) -> Callable[[], object]:
        return partial(ours.load, ours.saved(wire, turns), 1)

    early, later = each_of(loading, 10, 20), each_of(loading, 80, 120)
    assert later <= early * 1.01
    assert later <= limit


@limits(1470, 3710, 1080, 1330)
def test_a_turn_is_checked_in_few_instructions(wire: Wire, limit: int) -> None:
    """The check of a body costs so many instructions a turn, however many there are."""

    def checking(rounds: int) -> Callable[[], object]:
        items = conversation_of(rounds).view()
        return partial(wire.dialect.check, wire.dialect.encode_request(TurnRequest(items=items)))

    early, later = each_of(checking, 10, 20), each_of(checking, 80, 120)
    assert later <= early * 1.01
    assert later <= limit


def test_a_tool_is_declared_in_few_instructions() -> None:
    """A tool with its schema takes less than half of what a model with its schema takes."""
    own, floor = (instructions(partial(each.declare, 1)) for each in (ours, floors))
    assert own <= floor / 2


def test_a_call_among_many_takes_few_instructions() -> None:
    """`execute_all` takes as many instructions for a call among 200 as for one among 20."""

    def running(calls: int) -> Callable[[], object]:
        batch = ours.Batch(calls)

        def run() -> None:
            batch.decode()
            batch.execute(1)

        return run

    early, later = each_of(running, 10, 20), each_of(running, 100, 200)
    assert later <= early * 1.01
    assert later <= 1515


@pytest.mark.parametrize("listens", [False, True])
def test_a_call_of_a_plan_takes_few_instructions(listens: bool) -> None:
    """`run(plan)` takes as many instructions for a call among 200 as for one among 20."""
    told: list[object] = []

    async def run_plan(turn: AssistantTurn) -> None:
        outcome = ours.Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        plan = await run(outcome.round.plan(), on_event=told.append if listens else None)
        plan.resolve()

    def running(calls: int) -> Callable[[], object]:
        asked = [
            ToolMetadata(id=f"c{number}", name="search", arguments=SMALL) for number in range(calls)
        ]
        return lambda: asyncio.run(run_plan(AssistantTurn(tool_calls=asked)))

    early, later = each_of(running, 10, 20), each_of(running, 100, 200)
    assert later <= early * 1.01
    assert later <= (6700 if listens else 3445)
    assert bool(told) is listens


def approve(plan: ToolRoundPlan[Any], waiting: SuspendedCall) -> object:
    return plan.resume(waiting.approve())


def refuse(plan: ToolRoundPlan[Any], waiting: SuspendedCall) -> object:
    return plan.resume(waiting.cancel("no"))


def edit(plan: ToolRoundPlan[Any], waiting: SuspendedCall) -> object:
    return plan.amend_sync(waiting.edit({"query": "more"}), hooks)


def answer(plan: ToolRoundPlan[Any], waiting: SuspendedCall) -> None:
    plan.resume(waiting.approve())
    plan.record(waiting.call.complete("more"))


@pytest.mark.parametrize(
    ("move", "limit"), [(approve, 5780), (refuse, 5730), (edit, 12500), (answer, 6980)]
)
def test_a_call_that_waits_among_many_takes_few_instructions(
    move: Callable[[ToolRoundPlan[Any], SuspendedCall], object], limit: int
) -> None:
    """To let a call wait and to decide about it takes as much among 200 as among 20."""

    def deciding(calls: int) -> Callable[[], object]:
        turn = AssistantTurn(tool_calls=[metadata(index) for index in range(calls)])

        def decide() -> None:
            outcome = Tools.read_turn(turn)
            assert isinstance(outcome, NeedsTools)
            plan = outcome.round.plan()
            for call in plan.pending:
                plan.suspend(call.suspend(SuspendTicket()))
            for waiting in reversed(plan.suspended):
                move(plan, waiting)
            assert not plan.suspended
            plan.discard()

        return decide

    early, later = each_of(deciding, 10, 20), each_of(deciding, 100, 200)
    assert later <= early * 1.01
    assert later <= limit


def test_a_call_among_many_holds_few_objects() -> None:
    """While calls wait, the collector has little to go through, or many would be slow."""
    batch = ours.Batch(500)
    batch.decode()

    async def held() -> float:
        gc.collect()
        before = len(gc.get_objects())
        running = asyncio.ensure_future(execute_all(batch.calls))
        for _ in range(3):
            await asyncio.sleep(0)
        after = len(gc.get_objects())
        await running
        return (after - before) / len(batch.calls)

    gc.disable()
    try:
        assert asyncio.run(held()) < 13
    finally:
        gc.enable()
