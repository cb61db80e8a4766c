"""The laws of the search for deferred tools, and of the stock tool with which a model does it."""

from __future__ import annotations

import copy
import pickle
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AnyToolCall,
    Complete,
    Reply,
    ToolContext,
    ToolDef,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import MisuseError, ToolDefinitionError, UnknownToolError
from lutum_py.execution import execute, execute_sync, run_sync
from lutum_py.testing import ScriptedModel
from lutum_py.tools import search_tools, tool_search
from tests.cases import over
from tests.many_tools import (
    DEFERRED,
    ON,
    CrmTools,
    ManyTools,
    asked,
    drop_database,
    find_customer,
    ping,
    refund_order,
)
from tests.sample_tools import opened


def names(selectors: Any) -> list[str]:
    return [each.name for each in selectors]


@over(
    "query, expected",
    [
        ("find_customer", ["crm_find_customer"]),
        ("findCustomers", ["crm_find_customer"]),
        ("money", ["crm_refund_order"]),
        ("surname", ["crm_find_customer"]),
        ("order_id", ["crm_refund_order"]),
        ("unhappy buyer", ["crm_refund_order"]),
        ("town", ["forecast"]),
        ("rain", ["forecast"]),
        ("crm", ["crm_find_customer", "crm_refund_order"]),
        ("ping", []),
        ("search", []),
        ("database", []),
        ("", []),
    ],
)
def test_deferred_tools_are_found_by_what_is_said_of_them(query: str, expected: list[str]) -> None:
    """Names, descriptions and parameters count, nested ones too; what is off or on does not."""
    assert names(search_tools(ManyTools, query)) == expected


def test_no_more_are_found_than_were_asked_for() -> None:
    """The limit holds, and the best fit comes first."""
    assert names(search_tools(ManyTools, "crm order refund", 1)) == ["crm_refund_order"]


@given(query=st.text(), limit=st.integers(1, 9))
def test_a_search_gives_deferred_tools_of_the_toolset(query: str, limit: int) -> None:
    """Whatever is looked for, what comes is deferred, each once, and the same the next time."""
    first = search_tools(ManyTools, query, limit)
    assert set(names(first)) <= set(DEFERRED)
    assert len(set(first)) == len(first) <= limit
    assert search_tools(ManyTools, query, limit) == first


@pytest.mark.parametrize(
    "wrong", [(int, "a"), (ManyTools, 3), (ManyTools, "a", 0), (ManyTools, "a", True)]
)
def test_a_search_for_nothing_sensible_is_refused(wrong: tuple[Any, ...]) -> None:
    """What is no toolset, no text or no positive number is a misuse."""
    with pytest.raises(MisuseError):
        search_tools(*wrong)


def test_what_is_deferred_is_neither_on_nor_off() -> None:
    """A deferred tool is left out as one that is off; what is off stays off in a deferred group."""
    assert names(ManyTools.default_selectors()) == ON
    assert names(each for each in ManyTools if each.is_deferred) == DEFERRED
    assert all(each.is_off for each in ManyTools if each.is_deferred)
    hidden = ManyTools.crm.drop_database
    assert (hidden.is_off, hidden.is_deferred) == (True, False)
    assert not CrmTools.find_customer.is_deferred
    assert repr(ManyTools) == (
        "<toolset ManyTools: ping, crm.find_customer (deferred), crm.refund_order (deferred), "
        "crm.drop_database (off), search_tools, forecast (deferred)>"
    )


def test_notebooks_tell_deferred_from_off() -> None:
    """What is shown of a toolset counts both, and marks each tool with its own."""
    shown = cast("Any", ManyTools).__rich__().plain
    assert shown.startswith("ManyTools  toolset of 6 tools, 3 deferred, 1 off\n")
    assert (shown.count("  deferred"), shown.count("  off")) == (3, 1)


def test_a_group_that_is_off_has_nothing_to_find() -> None:
    """Off wins over deferred, from wherever it was said."""

    class Outer(Toolset):
        many = toolset(ManyTools, off=True)

    assert not any(each.is_deferred for each in Outer)
    assert search_tools(Outer, "customer") == ()


def test_off_and_deferred_at_once_is_refused() -> None:
    """A member that is said to be both is a definition error, for the two exclude each other."""
    with pytest.raises(ToolDefinitionError):
        tool(ping, off=True, deferred=True)
    with pytest.raises(ToolDefinitionError):
        toolset(CrmTools, off=True, deferred=True)


def test_the_search_itself_cannot_be_deferred() -> None:
    """A search is a definition error where it would be deferred, and stays on in such a group."""
    with pytest.raises(ToolDefinitionError):
        tool(tool_search(), deferred=True)

    class Outer(Toolset):
        many = toolset(ManyTools, deferred=True)

    assert names(Outer.default_selectors()) == ["search_tools"]
    assert names(search_tools(Outer, "answer")) == ["ping"]


def test_the_stock_tool_says_what_it_found() -> None:
    """Its output is a list of wire names, and the model reads them with their summaries."""
    result = ManyTools.parse_tool_call(asked("customer surname, refund")).call_sync()
    assert result.is_success
    assert result.output == ["crm_find_customer", "crm_refund_order"]
    assert result.model_text == (
        "You can call these tools from your next turn on:\n"
        "- crm_find_customer: Look up who buys from us.\n"
        "- crm_refund_order: Pay money back."
    )


def test_finding_nothing_is_no_failure() -> None:
    """Without a tool that fits the output is empty, and the model is told how to go on."""
    result = ManyTools.parse_tool_call(asked("astrology")).call_sync()
    assert (result.is_success, result.output) == (True, [])
    assert "Try other words" in result.model_text


async def test_it_is_run_like_any_other_tool() -> None:
    """`call`, `call_sync`, `execute` and handlers come to the same result."""

    def call() -> AnyToolCall:
        return ManyTools.parse_tool_call(asked("rain"))

    run = ManyTools.Handlers()
    expected = call().call_sync()
    assert expected.output == ["forecast"]
    assert await call().call() == expected
    assert await execute(call()) == execute_sync(call()) == expected
    assert await run(call()) == run.call_sync(call()) == expected
    assert await call().invoke() == Reply(["forecast"], message=expected.message)


def test_somebody_else_may_do_the_search() -> None:
    """A handler takes its place, so that a search by meaning is one function."""
    run = ManyTools.Handlers()
    assert [each.name for each in run.missing()] == ["forecast"]

    @run.on(ManyTools.search_tools)
    def search(query: str) -> list[str]:
        return ["forecast"] if "sun" in query else []

    assert run.call_sync(ManyTools.parse_tool_call(asked("sunshine"))).output == ["forecast"]


def test_hooks_see_it() -> None:
    """A hook completes the call of a search as that of any other tool."""
    hooks = ManyTools.HookSet()

    @hooks.on(ManyTools.search_tools)
    def known(metadata: ToolMetadata, input: Any) -> Any:
        return Complete(["crm_refund_order"])

    with opened(ManyTools, asked("x")) as opened_round:
        plan = opened_round.apply_hooks_sync(hooks)
        assert plan.handled[0].result.output == ["crm_refund_order"]


def test_it_searches_the_toolset_of_its_call() -> None:
    """A nested search finds what the outer toolset defers, under the names that it has there."""

    class Outer(Toolset):
        many = toolset(ManyTools, prefix="x_")
        other = tool(drop_database, deferred=True)

    result = Outer.parse_tool_call(asked("customer", name="x_search_tools")).call_sync()
    assert result.output == ["x_crm_find_customer", "drop_database"]


def test_the_search_of_an_agent_in_a_tool_finds_what_its_own_toolset_defers() -> None:
    """What the agent may call is off in the toolset of the plan, and its model was offered it."""
    found: list[str] = []

    @tool_fn(idempotent=True)
    def agent(ctx: ToolContext) -> str:
        if ctx.inner is None:
            turn = ScriptedModel.tool_calls(("m1", "search_tools", {"query": "customer"}))
            ctx.request_calls(ManyTools.read_turn(turn).round)  # type: ignore[union-attr]
        found.extend(ctx.inner.results[0].output)
        return "done"

    class Staff(Toolset):
        many = toolset(ManyTools)
        other = tool(drop_database, deferred=True)

    class Office(Toolset):
        staff = toolset(Staff, off=True)
        agent_ = tool(agent)

    with opened(Office, ToolMetadata(id="c1", name="agent", arguments="{}")) as opened_round:
        assert run_sync(opened_round.plan(), hooks=Office.HookSet()).is_settled
    assert found == ["crm_find_customer", "drop_database"]
    alone = Office.parse_tool_call(asked("customer")).call_sync()
    assert alone.output == []


def test_a_search_outside_of_a_toolset_has_nothing_to_search() -> None:
    """Calling the function, or running a call that was made by hand, is a misuse that says so."""
    stock = tool_search()
    with pytest.raises(MisuseError, match="belongs to no toolset"):
        stock("customer")
    call = stock.Call(asked("customer"), stock.Input(query="customer"))
    with pytest.raises(MisuseError, match="belongs to no toolset"):
        call.call_sync()


def test_its_words_can_be_chosen() -> None:
    """Name, limit and description are the author's; the stock description asks for a few words."""
    stock = tool_search(name="more", limit=1, description="Get more.")
    assert (stock.name, stock.definition.description, stock.limit) == ("more", "Get more.", 1)
    assert repr(stock) == "<tool_search: 'more'>"
    made = Toolset.of("Made", stock, tool(ping, deferred=True), tool(refund_order, deferred=True))
    asking = asked("answer money", name="more")
    assert len(made.parse_tool_call(asking).call_sync().output) == 1
    assert "tools that you do not see" in tool_search().definition.description
    with pytest.raises(ToolDefinitionError):
        tool_search(limit=0)
    with pytest.raises(ToolDefinitionError):
        tool_search(name="")


def test_long_descriptions_are_told_in_short() -> None:
    """Of each tool that was found the model reads one paragraph, cut to a length."""
    long = ToolDef.from_json_schema(
        name="long", description="word " * 100 + "\n\nMore.", input_schema={"type": "object"}
    )
    bare = ToolDef.from_json_schema(name="bare_word", input_schema={"type": "object"})
    made = Toolset.of("Told", tool_search(), *(tool(x, deferred=True) for x in (long, bare)))
    lines = made.parse_tool_call(asked("word")).call_sync().model_text.splitlines()
    assert sorted(map(len, lines[1:])) == [len("- bare_word"), len("- long: ") + 200]
    assert "- bare_word" in lines


def test_toolsets_of_run_time_defer_too() -> None:
    """`Toolset.of` keeps what was said of its members: made again or unpickled it is the same."""

    def make() -> Any:
        return Toolset.of("Run", tool_search(), tool(find_customer, deferred=True))

    made = make()
    assert make() is made
    assert pickle.loads(pickle.dumps(made)) is made
    assert names(each for each in made if each.is_deferred) == ["find_customer"]
    assert Toolset.of("Run", tool_search(), find_customer) is not made
    assert Toolset.of("Run", tool_search(limit=2), tool(find_customer, deferred=True)) is not made


def test_a_toolset_of_definitions_is_deferred_as_a_group() -> None:
    """Tools that are known by their schemas only, as a server's are, are found too."""
    server = Toolset.from_definitions("Server", [refund_order.definition])

    class App(Toolset):
        search_tools = tool(tool_search())
        server_ = toolset(server, deferred=True, prefix="srv_")

    assert names(search_tools(App, "money")) == ["srv_refund_order"]
    assert not any(each.is_deferred for each in server)


def test_the_stock_tool_can_be_copied() -> None:
    """Copies and pickles of a search are equal to it, and of other words they are not."""
    stock = tool_search(name="more")
    assert pickle.loads(pickle.dumps(stock)) == copy.deepcopy(stock) == stock
    assert stock != tool_search()
    assert stock != cast("Any", "more")
    call = ManyTools.parse_tool_call(asked("rain"))
    again = pickle.loads(pickle.dumps(call))
    assert (again.selector, again.metadata, again.input) == (
        call.selector,
        call.metadata,
        call.input,
    )


def test_saved_plans_have_deferred_calls() -> None:
    """A plan with a call of a loaded tool is saved and taken up, whatever is loaded by then."""
    loaded = ToolMetadata(id="c1", name="crm_find_customer", arguments='{"name": "Ada"}')
    with opened(ManyTools, loaded, available=[ManyTools.crm.find_customer]) as opened_round:
        plan = opened_round.plan()
        again = ManyTools.load_plan(plan.dump_json())
        done = again.pending[0].call_sync()
        assert again.resolve([done]).results[0].output == "Ada"


def test_unknown_names_are_not_told_of_deferred_tools() -> None:
    """The text for a call of an unknown tool names nothing that is deferred; a program's does."""
    with pytest.raises(UnknownToolError) as told:
        ManyTools.parse_tool_call(ToolMetadata(id="c1", name="crm_find_customr", arguments="{}"))
    assert told.value.suggestion is None
    assert not any(name in str(told.value) for name in DEFERRED)
    with pytest.raises(
        UnknownToolError,
        check=lambda error: (
            (error.name, error.suggestion) == ("crm_find_customr", "crm_find_customer")
        ),
    ):
        ManyTools["crm_find_customr"]
