"""The laws of a conversation in which the model loads its tools, in every dialect."""

from __future__ import annotations

import json
import pickle
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    Answer,
    AssistantTurn,
    CommittedRound,
    Finished,
    Message,
    NeedsTools,
    Session,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    toolset,
)
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import MisuseError, ToolConstraintError
from lutum_py.testing import ScriptedModel
from lutum_py.tools import tool_search
from lutum_py.turns import DeferredTools
from tests.cases import over
from tests.many_tools import DEFERRED, ON, CrmTools, ManyTools, answer_all, find_customer, ping

DIALECTS = (openai_chat, openai_responses, anthropic_messages, gemini_generate_content)
QUERIES = ("customer", "money back", "rain", "astrology", "crm", "")


class OtherName(Toolset):
    """The same with the search under the name that the Responses API has for it."""

    ping = tool(ping)
    crm = toolset(CrmTools, deferred=True, prefix="crm_")
    more = tool(tool_search(name="tool_search"))


def asks(*queries: str, name: str = "search_tools") -> list[Any]:
    """A script: a turn for each search, and an answer at the end."""
    calls: list[Any] = [
        ScriptedModel.tool_calls((f"s{number}", name, {"query": query}))
        for number, query in enumerate(queries)
    ]
    return [*calls, ScriptedModel.text("Done.")]


def talk(script: list[Any], toolset: type[Toolset] = ManyTools, **answer: Any) -> list[TurnRequest]:
    """Have a conversation, and give its requests."""
    session, model = Session(), ScriptedModel(script)
    session.push_user("Go")
    while True:
        turn: Any = session.text_turn(model).tools(toolset)
        outcome = turn.answer(answer["answer"]).collect_sync() if answer else turn.collect_sync()
        if not isinstance(outcome, NeedsTools):
            return model.requests
        answer_all(session, outcome)


def names(request: TurnRequest) -> list[str]:
    return [each.name for each in request.tools]


def tools_in(body: Any) -> list[Any]:
    tools: list[Any] = body.get("tools", [])
    inner: list[Any] | None = tools[0].get("functionDeclarations") if tools else None
    return tools if inner is None else inner


SEARCHES = st.lists(st.sampled_from(QUERIES), max_size=6)


@given(queries=SEARCHES)
def test_each_request_offers_what_the_last_one_did_and_more(queries: list[str]) -> None:
    """In every dialect the tools of a request begin with those of the last one, byte for byte."""
    requests = talk(asks(*queries))
    assert names(requests[0]) == ON
    for module in DIALECTS:
        before: list[Any] = []
        for request in requests:
            body = module.encode_request(request)
            assert module.check(body) == []
            tools = tools_in(body)
            assert [each.get("name") or each["function"]["name"] for each in tools] == names(
                request
            )
            assert json.dumps(tools[: len(before)]) == json.dumps(before)
            before = tools


@given(queries=SEARCHES)
def test_the_answer_stands_before_what_was_loaded(queries: list[str]) -> None:
    """Tools that are on, the answer, loaded tools: one that is loaded moves nothing before it."""
    for request in talk([*asks(*queries)[:-1], ScriptedModel.text("No.")], answer=int):
        assert names(request)[:3] == [*ON, "answer"]
        assert request.deferred is not None
        assert names(request)[3:] == list(request.deferred.loaded)
    by_format = talk(asks(*queries), answer=Answer(str, by="format"))
    assert [names(each) for each in by_format] == [names(each) for each in talk(asks(*queries))]


def test_a_call_of_a_deferred_tool_without_a_search_is_told_why() -> None:
    """Where a toolset has no search at all, the issue says that nothing can load the tool."""
    lone = Toolset.of("Lone", tool(find_customer, deferred=True))
    call = ScriptedModel.tool_calls(("c1", "find_customer", {"name": "Ada"}))
    outcome = lone.read_turn(call)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert issue.text == (
        "Tool `find_customer` is not available in this turn, so it was not run. It is deferred, "
        "and there is no search that loads it. Tools on offer: none."
    )
    outcome.round.discard()


def test_a_tool_is_called_once_it_was_loaded() -> None:
    """Before its search a call is an issue that says to search first, and afterwards a call."""
    call = ("c1", "crm_find_customer", {"name": "Ada"})
    script = [ScriptedModel.tool_calls(call), *asks("customer")[:1], ScriptedModel.tool_calls(call)]
    session, model = Session(), ScriptedModel([*script, ScriptedModel.text("Ada")])
    session.push_user("Who?")
    turn = session.text_turn(model).tools(ManyTools)
    early = turn.collect_sync()
    assert isinstance(early, NeedsTools)
    (issue,) = early.round.recoverable_tool_call_issues
    assert issue.reason == "not_available"
    assert issue.text == (
        "Tool `crm_find_customer` is not loaded, so it was not run. Search for it first, with "
        "`search_tools`; what is found can be called from the next turn on."
    )
    answer_all(session, early)
    answer_all(session, turn.collect_sync())
    assert [each.output for each in answer_all(session, turn.collect_sync())] == ["Ada"]
    assert isinstance(turn.collect_sync(), Finished)
    assert [each.name for each in ManyTools.loaded_tools(session)] == ["crm_find_customer"]


def test_without_a_search_on_offer_nobody_is_sent_to_one() -> None:
    """The text for a call of a deferred tool names the search only where it can be called."""
    turn = ScriptedModel.tool_calls(("c1", "forecast", {}), ("c2", "forecas", {}))
    outcome = ManyTools.read_turn(turn, available=["ping"])
    assert isinstance(outcome, NeedsTools)
    known, unknown = outcome.round.recoverable_tool_call_issues
    assert known.text == (
        "Tool `forecast` is not available in this turn, so it was not run. Tools on offer: `ping`."
    )
    assert (unknown.reason, unknown.suggestion) == ("unknown_tool", None)
    assert "forecast" not in unknown.text
    outcome.round.discard()


def test_a_conversation_goes_on_where_it_was_saved() -> None:
    """What was loaded is in the transcript: a session made of a saved one offers the same."""
    session, model = Session(), ScriptedModel([*asks("rain"), ScriptedModel.text("Again.")])
    session.push_user("Go")
    turn = session.text_turn(model).tools(ManyTools)
    answer_all(session, turn.collect_sync())
    turn.collect_sync()
    again = Session(Transcript.load_json(session.transcript.dump_json()))
    for each in (session.branch(), again):
        assert each.text_turn(model).tools(ManyTools).request().tools == turn.request().tools
        assert names(turn.request()) == [*ON, "forecast"]


def test_a_loaded_tool_can_be_asked_for() -> None:
    """A turn requires a tool that is loaded, and not one that is not."""
    session, model = Session(), ScriptedModel(asks("rain"))
    session.push_user("Go")
    turn = session.text_turn(model).tools(ManyTools)
    with pytest.raises(ToolConstraintError):
        turn.require_tool("forecast").request()
    answer_all(session, turn.collect_sync())
    assert turn.require_tool(ManyTools.forecast).request().tool_choice.name == "forecast"
    described = turn.describe_tool("forecast", "Rain?").request()
    assert described.tools[-1].description == "Rain?"


def test_naming_a_deferred_tool_offers_it() -> None:
    """`available_tools*` offer deferred tools as those that are off, and loaded ones once."""
    session = Session()
    session.push_user("Go")
    turn = session.text_turn(ScriptedModel([])).tools(ManyTools)
    plus = turn.available_tools_default_plus([ManyTools.crm.find_customer]).request()
    assert names(plus) == [*ON, "crm_find_customer"]
    assert plus.deferred is not None
    only = turn.available_tools(["forecast"]).request()
    assert (names(only), only.deferred) == (["forecast"], None)
    assert len(turn.available_tools_all().request().tools) == len(ManyTools)


@pytest.mark.parametrize("native_search", [False, True])
def test_the_cache_marker_stands_before_what_was_loaded(native_search: bool) -> None:
    """The marker is on the last tool that every request offers, the answer's included."""
    session, model = Session(), ScriptedModel(asks("customer"))
    session.push_user("Go")
    turn = session.text_turn(model).tools(ManyTools).answer(int).cache()
    for _ in range(2):
        body = anthropic_messages.encode_request(turn.request(), native_search=native_search)
        marked = [each["name"] for each in body["tools"] if "cache_control" in each]
        assert marked == ["answer"]
        if not ManyTools.loaded_tools(session):
            answer_all(session, turn.collect_sync())


def test_a_request_carries_what_can_be_loaded() -> None:
    """`request.deferred` has all that a search may load, what it has loaded, and the searches."""
    first, second = talk(asks("rain"))
    assert first.deferred is not None
    assert second.deferred is not None
    assert [each.name for each in first.deferred.definitions] == DEFERRED
    assert first.deferred.searches == {"search_tools"}
    assert (first.deferred.loaded, second.deferred.loaded) == ((), ("forecast",))
    assert second.deferred.definitions is first.deferred.definitions
    assert pickle.loads(pickle.dumps(second)).deferred == second.deferred
    with pytest.raises(MisuseError):
        TurnRequest(items=(), deferred=["forecast"])  # type: ignore[arg-type]


NATIVE: list[tuple[ModuleType, type[Toolset], str]] = [
    (anthropic_messages, ManyTools, "search_tools"),
    (anthropic_messages, OtherName, "tool_search"),
    (openai_responses, OtherName, "tool_search"),
]


@pytest.mark.parametrize(("module", "tools", "search"), NATIVE)
@given(queries=SEARCHES)
def test_natively_loading_a_tool_changes_nothing_that_was_sent(
    module: Any, tools: type[Toolset], search: str, queries: list[str]
) -> None:
    """All tools go out in each request, the same bytes; the conversation only gets longer."""
    key = "messages" if module is anthropic_messages else "input"
    before: dict[str, Any] | None = None
    for request in talk(asks(*queries, name=search), tools):
        body = module.encode_request(request, native_search=True)
        assert module.check(body) == []
        if before is not None:
            assert json.dumps(body["tools"]) == json.dumps(before["tools"])
            assert body[key][: len(before[key])] == before[key]
        before = body
    assert before is not None
    deferred = [each["name"] for each in before["tools"] if each.get("defer_loading")]
    assert deferred == [each.name for each in tools if each.is_deferred]


def test_natively_a_result_refers_to_what_it_loads() -> None:
    """Anthropic is sent references, OpenAI the tools; nothing found is text."""
    first, _, last = talk(asks("customer", "astrology", name="tool_search"), OtherName)
    assert anthropic_messages.encode_request(first, native_search=True)["tool_choice"]
    body = anthropic_messages.encode_request(last, native_search=True)
    results = [each["content"][0] for each in body["messages"] if each["role"] == "user"][1:]
    assert results[0] == {
        "type": "tool_result",
        "tool_use_id": "s0",
        "content": [{"type": "tool_reference", "tool_name": "crm_find_customer"}],
    }
    assert "Try other words" in results[1]["content"]

    sent = openai_responses.encode_request(last, native_search=True)
    _, call, output, _, nothing = sent["input"]
    client = {"execution": "client", "status": "completed", "call_id": "s0"}
    assert call == {"type": "tool_search_call", "arguments": {"query": "customer"}, **client}
    (found,) = output.pop("tools")
    assert output == {"type": "tool_search_output", **client}
    assert (found["name"], found["defer_loading"]) == ("crm_find_customer", True)
    assert nothing["type"] == "function_call_output"
    own = sent["tools"][-1] if sent["tools"][-1]["type"] == "tool_search" else sent["tools"][1]
    assert (own["type"], own["execution"], "name" in own) == ("tool_search", "client", False)
    assert list(own["parameters"]["properties"]) == ["query"]


@pytest.mark.parametrize("module", [anthropic_messages, openai_responses])
def test_natively_a_tool_whose_result_is_not_sent_is_offered_as_any_other(module: Any) -> None:
    """Where the items that are sent name no loaded tool, it goes out without `defer_loading`."""
    last = talk(asks("customer", "money", name="tool_search"), OtherName)[-1]
    short = TurnRequest(
        items=[each for each in last.items if not isinstance(each, ToolResult)][:1],
        tools=last.tools,
        deferred=last.deferred,
    )
    body = module.encode_request(short, native_search=True)
    flags = {each.get("name"): each.get("defer_loading", False) for each in body["tools"]}
    assert (flags["crm_find_customer"], flags["crm_refund_order"]) == (False, False)
    whole = module.encode_request(last, native_search=True)
    flags = {each.get("name"): each.get("defer_loading", False) for each in whole["tools"]}
    assert (flags["crm_find_customer"], flags["crm_refund_order"]) == (True, True)


@pytest.mark.parametrize("module", [anthropic_messages, openai_responses])
def test_an_offer_by_name_has_nothing_native(module: Any) -> None:
    """Where a turn names all its tools, none is deferred, and results go out as text."""
    request = talk(asks("customer", name="tool_search"), OtherName)[-1]
    named = TurnRequest(items=request.items, tools=request.tools)
    assert module.encode_request(named, native_search=True) == module.encode_request(named)


def test_a_tool_that_is_always_on_offer_is_not_deferred() -> None:
    """A deferred tool that a turn names beside the default is offered as one that is on."""
    session = Session()
    session.push_user("Go")
    turn = session.text_turn(ScriptedModel([])).tools(ManyTools)
    request = turn.available_tools_default_plus(["forecast"]).request()
    body = anthropic_messages.encode_request(request, native_search=True)
    flags = [(each["name"], each.get("defer_loading", False)) for each in body["tools"]]
    assert flags == [
        *((name, False) for name in [*ON, "forecast"]),
        *((name, True) for name in ("crm_find_customer", "crm_refund_order")),
    ]


def test_responses_knows_the_native_search_by_one_name() -> None:
    """Another name, or two searches, are refused with the remedy."""
    request = talk(asks())[0]
    with pytest.raises(MisuseError, match=r"tool_search\(name='tool_search'\)"):
        openai_responses.encode_request(request, native_search=True)


def test_a_search_with_broken_arguments_stays_a_function_call() -> None:
    """What a model of another provider wrote is no object: then it goes back as it was written."""
    script = [ScriptedModel.tool_calls(("s0", "tool_search", "[1]")), ScriptedModel.text("Oh.")]
    last = talk(script, OtherName)[-1]
    body = openai_responses.encode_request(last, native_search=True)
    assert body["input"][1]["type"] == "function_call"
    assert openai_responses.check(body) == []


def test_natively_only_the_search_of_another_provider_becomes_one() -> None:
    """In a turn of another provider the call of a tool stays what it is, beside the search."""
    calls = ScriptedModel.tool_calls(("s0", "tool_search", {"query": "crm"}), ("p0", "ping", {}))
    last = talk([calls, ScriptedModel.text("Done.")], OtherName)[-1]
    body = openai_responses.encode_request(last, native_search=True)
    assert [item["type"] for item in body["input"][1:3]] == ["tool_search_call", "function_call"]
    assert openai_responses.check(body) == []


def test_requests_are_made_by_hand_too() -> None:
    """`DeferredTools` is a value: a request that was put together without a session is native."""
    definitions = (find_customer.definition,)
    request = TurnRequest(
        items=talk(asks())[0].items,
        tools=(tool_search().definition, *definitions),
        deferred=DeferredTools(definitions, ("find_customer",), frozenset({"search_tools"})),
    )
    body = anthropic_messages.encode_request(request, native_search=True)
    assert [each["name"] for each in body["tools"]] == ["search_tools", "find_customer"]


def by_hand(arguments: str, search: str) -> TurnRequest:
    """A request of another provider's conversation, in which a search was called by its name."""
    call = ToolMetadata(id="s0", name=search, arguments=arguments)
    transcript = Transcript()
    transcript.push(Message("user", "Who buys?"))
    turn = AssistantTurn(text="I look.", tool_calls=[call])
    result = ToolResult(id="s0", name=search, arguments=arguments, result="[]")
    transcript.append_round(CommittedRound(turn, [result]))
    return TurnRequest(
        items=transcript,
        tools=(find_customer.definition, tool_search(name=search).definition),
        deferred=DeferredTools((find_customer.definition,), (), frozenset({search})),
    )


@over("arguments, kind", [("{}", "tool_search_call"), ("{no JSON", "function_call")])
def test_a_search_goes_out_natively_if_it_can_be_read(arguments: str, kind: str) -> None:
    """Beside a text, a search without readable arguments stays the call of a function."""
    body = openai_responses.encode_request(by_hand(arguments, "tool_search"), native_search=True)
    assert body["input"][1] == {"role": "assistant", "content": "I look."}
    assert body["input"][2]["type"] == kind


def test_a_tool_that_is_on_offer_is_sent_once() -> None:
    """A tool that can be loaded, and was on offer from the start, is not deferred as well."""
    body = openai_responses.encode_request(by_hand("{}", "tool_search"), native_search=True)
    assert [each.get("name", each["type"]) for each in body["tools"]] == [
        "find_customer",
        "tool_search",
    ]


def test_the_responses_api_takes_a_search_by_its_own_name_only() -> None:
    """A search of another name is refused before anything is sent, with what to do."""
    with pytest.raises(MisuseError, match=r"by `tool_search\(name='tool_search'\)`"):
        openai_responses.encode_request(by_hand("{}", "search_tools"), native_search=True)
