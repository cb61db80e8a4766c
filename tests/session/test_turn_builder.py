"""The laws of the turn builder: immutable, checked before any request, cheap by the turn."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from lutum_py import Session, ToolAvailability, ToolRequirement, Toolset, TurnRequest, tool
from lutum_py.errors import MisuseError, ToolConstraintError, UnknownToolError
from lutum_py.streaming import StreamEvent, TurnFinished
from lutum_py.testing import ScriptedModel
from lutum_py.typing import ToolChoice
from lutum_py.window import Cache
from tests.cases import over
from tests.round_tools import Shop, add, adds, answer, needs, shout, turn


class Other(Toolset):
    add = tool(add)


Build = Callable[[Any], Any]


def building(model: Any = None) -> Any:
    session = Session()
    session.push_user("Hi")
    return session.text_turn(model or ScriptedModel([])).tools(Shop)


def names(request: TurnRequest) -> list[str]:
    return [definition.name for definition in request.tools]


DEFAULT = ["add", "shout", "pay", "ask"]

OPTIONS: dict[str, tuple[Build, dict[str, Any]]] = {
    "temperature": (lambda b: b.temperature(0.5), {"temperature": 0.5}),
    "max_output_tokens": (lambda b: b.max_output_tokens(9), {"max_output_tokens": 9}),
    "parallel": (lambda b: b.parallel_tool_calls(), {"parallel_tool_calls": True}),
    "not parallel": (lambda b: b.parallel_tool_calls(False), {"parallel_tool_calls": False}),
    "extra": (lambda b: b.extra({"seed": 1}), {"extra": {"seed": 1}}),
    "extras": (
        lambda b: b.extra({"seed": 1, "user": "u"}).extra({"seed": 2}),
        {"extra": {"seed": 2, "user": "u"}},
    ),
    "cache": (lambda b: b.cache(ttl="1h"), {"cache": Cache(ttl="1h")}),
    "plain cache": (lambda b: b.cache(), {"cache": Cache()}),
    "cache value": (lambda b: b.cache(Cache(turns=1)), {"cache": Cache(turns=1)}),
    "no cache": (lambda b: b.cache().cache(None), {"cache": None}),
    "any": (lambda b: b.require_any_tool(), {"tool_choice": ToolChoice("required")}),
    "specific": (
        lambda b: b.require_tool(Shop.pay),
        {"tool_choice": ToolChoice("specific", "pay")},
    ),
    "specific name": (
        lambda b: b.require_tool("pay"),
        {"tool_choice": ToolChoice("specific", "pay")},
    ),
    "requirement": (
        lambda b: b.require_any_tool().require(ToolRequirement.optional()),
        {"tool_choice": ToolChoice("auto")},
    ),
}


def test_the_default_request() -> None:
    """Without a word, the tools that are on are offered, and nothing is asked of the model."""
    request = building().request()
    assert names(request) == DEFAULT
    assert request.tool_choice == ToolChoice("auto")
    assert (request.temperature, request.max_output_tokens) == (None, None)
    assert (request.parallel_tool_calls, dict(request.extra)) == (None, {})


@over("option", OPTIONS)
def test_each_option_is_in_the_request_of_a_new_builder(option: str) -> None:
    """A method gives a new builder whose request has the option; the old one stays as it was."""
    build, expected = OPTIONS[option]
    old = building()
    before = old.request()
    new = build(old)
    assert new is not old
    assert old.request() == before
    request = new.request()
    changed = {
        name: getattr(request, name)
        for name in ("temperature", "max_output_tokens", "parallel_tool_calls", "tool_choice")
        if getattr(request, name) != getattr(before, name)
    }
    assert before.cache is None
    if "cache" in option:
        changed["cache"] = request.cache
    if request.extra != before.extra:
        changed["extra"] = request.extra
    assert changed == ({} if option == "requirement" else expected)
    assert names(request) == DEFAULT


def test_options_of_both_kinds_add_up() -> None:
    """What is said before `.tools`, after it, and of the choice, is all in the request."""
    session = Session()
    first = session.text_turn(ScriptedModel([])).temperature(1).extra({"a": 1})
    request = (
        first.max_output_tokens(5)
        .tools(Shop)
        .require_any_tool()
        .extra({"b": 2})
        .available_tools([Shop.add])
        .request()
    )
    assert (request.temperature, request.max_output_tokens) == (1, 5)
    assert request.extra == {"a": 1, "b": 2}
    assert (names(request), request.tool_choice.mode) == (["add"], "required")
    assert first.request().max_output_tokens is None
    assert first.request().tool_choice == ToolChoice("none")


AVAILABLE: dict[str, tuple[Build, list[str]]] = {
    "all": (lambda b: b.available_tools_all(), [*DEFAULT, "wipe"]),
    "plus": (lambda b: b.available_tools_default_plus([Shop.wipe, Shop.add]), [*DEFAULT, "wipe"]),
    "these": (lambda b: b.available_tools([Shop.wipe, "add"]), ["add", "wipe"]),
    "generator": (lambda b: b.available_tools(s for s in [Shop.pay]), ["pay"]),
    "one": (lambda b: b.available_tools(Shop.wipe), ["wipe"]),
    "one name": (lambda b: b.available_tools("shout"), ["shout"]),
    "none": (lambda b: b.available_tools([]), []),
    "value": (lambda b: b.available_tools(ToolAvailability.only([Shop.add])), ["add"]),
    "default": (lambda b: b.available_tools_all().available_tools(None), DEFAULT),
    "last": (lambda b: b.available_tools([Shop.add]).available_tools([Shop.pay]), ["pay"]),
}


@over("case", AVAILABLE)
def test_which_tools_are_offered(case: str) -> None:
    """A turn offers what was said last, each tool once, in the order of declaration."""
    build, expected = AVAILABLE[case]
    built = build(building())
    assert names(built.request()) == expected
    assert names(built.request()) == expected
    assert built.request().tool_choice.mode == ("auto" if expected else "none")


def test_only_what_was_offered_is_decoded() -> None:
    """A call of a tool that the turn did not offer is not run, though the toolset has it."""
    model = ScriptedModel([turn(*adds(1), ("s", "shout", {"text": "x"}))])
    tool_round = needs(building(model).available_tools([Shop.shout]).collect_sync())
    assert [call.name for call in tool_round.tool_calls] == ["shout"]
    assert [issue.reason for issue in tool_round.recoverable_tool_call_issues] == ["not_available"]
    tool_round.discard()


def test_descriptions_hold_for_one_turn() -> None:
    """A description is in the request of this builder, the last one of a tool, and nowhere else."""
    built = (
        building()
        .describe_tool(Shop.add, "first")
        .describe_many_tools({Shop.add: "Sum up.", "shout": "Be loud."})
        .describe_many_tools((selector, "Pay now.") for selector in [Shop.pay])
    )
    for _ in range(2):
        texts = {definition.name: definition.description for definition in built.request().tools}
        assert (texts["add"], texts["shout"], texts["pay"]) == ("Sum up.", "Be loud.", "Pay now.")
    assert building().request().tools[0].description == "Add two numbers."


def test_what_is_said_of_a_tool_for_one_turn_can_be_sent() -> None:
    """Half of a surrogate pair in it becomes U+FFFD, as in a message."""
    (shown,) = (
        building().available_tools([Shop.add]).describe_tool(Shop.add, "\ud83dx").request().tools
    )
    assert shown.description == "\ufffdx"


def test_values_are_hidden_where_that_is_said() -> None:
    """With `.redact()` the model is not told what it sent of invalid arguments."""
    said = turn(("b", "add", {"a": "hunter2"}))
    model = ScriptedModel([said, said])
    shown = needs(building(model).collect_sync())
    hidden = needs(building(model).redact().collect_sync())
    assert "hunter2" in shown.recoverable_tool_call_issues[0].text
    assert "hunter2" not in hidden.recoverable_tool_call_issues[0].text
    shown.discard()
    hidden.discard()


IMPOSSIBLE: dict[str, tuple[Build, str]] = {
    "off": (lambda b: b.require_tool(Shop.wipe), "wipe.*not among the tools of this turn"),
    "not offered": (
        lambda b: b.available_tools([Shop.add]).require_tool(Shop.pay),
        "pay.*not among",
    ),
    "any of none": (lambda b: b.available_tools([]).require_any_tool(), "offers no tools"),
    "foreign": (
        lambda b: b.require_tool(Other.add),
        "Other.add: 'add'> is no member of Shop|Shop has no tool 'add'",
    ),
    "unknown": (lambda b: b.require_tool("ad"), "Did you mean `add`"),
    "unknown offer": (lambda b: b.available_tools(["nope"]), "Shop has no tool 'nope'"),
    "unknown plus": (lambda b: b.available_tools_default_plus(["nope"]), "no tool 'nope'"),
    "unknown description": (lambda b: b.describe_tool("nope", "x"), "Shop has no tool 'nope'"),
}


@over("case", IMPOSSIBLE)
def test_what_cannot_be_asked_is_refused_before_any_request(case: str) -> None:
    """A constraint that cannot be met is the developer's error, and the model is never asked."""
    build, message = IMPOSSIBLE[case]
    model = ScriptedModel([])
    built = build(building(model))
    for ask in (
        built.request,
        built.collect_sync,
        built.stream,
        built.stream_sync,
        lambda: asyncio.run(built.collect()),
    ):
        with pytest.raises(ToolConstraintError, match=message) as caught:
            ask()
        assert isinstance(caught.value.__cause__, UnknownToolError | None)
    assert model.requests == []


@over("wrong", [add, Shop.add, [Shop.add], None, "Shop"])
def test_only_a_toolset_is_offered(wrong: Any) -> None:
    """Offering something else than a toolset is a TypeError at once."""
    with pytest.raises(MisuseError):
        Session().text_turn(ScriptedModel([])).tools(wrong)


class AsyncOnly:
    async def respond(self, request: TurnRequest) -> Any:
        return ScriptedModel.text("async")


class SyncOnly:
    def respond_sync(self, request: TurnRequest) -> Any:
        return ScriptedModel.text("sync")


def test_a_model_may_be_sync_or_async() -> None:
    """A model needs only the method of its kind of code; the other is a TypeError that says so."""
    assert answer(asyncio.run(Session().text_turn(AsyncOnly()).collect())) == "async"
    assert answer(Session().text_turn(SyncOnly()).collect_sync()) == "sync"
    with pytest.raises(TypeError, match=r"AsyncOnly has no `respond_sync`.*await \.collect\(\)"):
        Session().text_turn(AsyncOnly()).collect_sync()
    with pytest.raises(TypeError, match=r"SyncOnly has no `respond`.*\.collect_sync\(\)"):
        asyncio.run(Session().text_turn(SyncOnly()).collect())


def test_a_model_that_is_sync_under_an_async_name_is_told_so() -> None:
    """A method that is async and should not be, or the other way round, is a TypeError."""

    class Swapped:
        def respond(self, request: TurnRequest) -> Any:
            return ScriptedModel.text("sync")

        async def respond_sync(self, request: TurnRequest) -> Any:
            return ScriptedModel.text("async")

    turn = Session().text_turn(Swapped())
    with pytest.raises(MisuseError, match=r"gave Ass.*cannot be awaited.*`\.collect_sync\(\)`"):
        asyncio.run(turn.collect())
    with pytest.raises(MisuseError, match=r"gave <corou.*has to be.*`await \.collect\(\)`"):
        turn.collect_sync()


class StreamOnly:
    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        yield TurnFinished(ScriptedModel.text("streamed"))


class SyncStreamOnly:
    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        yield TurnFinished(ScriptedModel.text("streamed"))


def test_a_model_may_do_nothing_but_stream() -> None:
    """A model that only streams is a model; `collect` says how it is asked."""
    turn = Session().text_turn(StreamOnly())
    assert answer(asyncio.run(turn.stream().collect())) == "streamed"
    said = r"has no `respond`, so `.collect\(\)` cannot .*`await .stream\(\).collect\(\)`"
    with pytest.raises(MisuseError, match=said):
        asyncio.run(turn.collect())
    with pytest.raises(MisuseError, match=r"or a model with `def respond_sync\(self, request\)`"):
        turn.collect_sync()
    sync_turn = Session().text_turn(SyncStreamOnly())
    assert answer(sync_turn.stream_sync().collect()) == "streamed"
    with pytest.raises(MisuseError, match=r"`.collect_sync\(\)` .*`.stream_sync\(\).collect\(\)`"):
        sync_turn.collect_sync()


def test_one_builder_makes_many_turns() -> None:
    """A builder can be collected again, and each request sees what was said by then."""
    session = Session()
    session.push_user("Hi")
    model = ScriptedModel([ScriptedModel.text("one"), ScriptedModel.text("two")])
    built = session.text_turn(model)
    assert [answer(built.collect_sync()), answer(built.collect_sync())] == ["one", "two"]
    assert [len(request.items) for request in model.requests] == [1, 2]


def test_a_turn_costs_nothing_that_grows() -> None:
    """A request views the transcript instead of copying it, and shares the toolset's tools."""
    session = Session()
    for at in range(50):
        session.push_user(str(at))
    one, two = (session.text_turn(ScriptedModel([])).tools(Shop).request() for _ in range(2))
    assert one.tools is two.tools
    assert one.tool_choice is two.tool_choice
    assert repr(one.items) == "<view of 50 items>"
    all_tools = [building().available_tools_all().request().tools for _ in range(2)]
    assert all_tools[0] is all_tools[1]


def test_a_request_is_a_value() -> None:
    """A request cannot be changed, compares by content, pickles, and has no hash."""
    request = building().extra({"seed": 1}).request()
    again = pickle.loads(pickle.dumps(request))
    assert (again.tools, again.extra) == (request.tools, request.extra)
    assert list(again.items) == list(request.items)
    plain = TurnRequest(items=[])
    assert pickle.loads(pickle.dumps(plain)) == plain
    assert plain.tool_choice == ToolChoice("none")
    assert TurnRequest(items=[], tools=(shout.definition,)).tool_choice == ToolChoice("auto")
    with pytest.raises(AttributeError):
        request.temperature = 1.0
    with pytest.raises(TypeError):
        hash(request)


def test_a_toolset_of_which_nothing_is_on_offers_nothing() -> None:
    """Where every tool is off, the model is asked for none."""

    class Off(Toolset):
        add = tool(add, off=True)

    request = Session().text_turn(ScriptedModel([])).tools(Off).prepare().request
    assert (request.tools, request.tool_choice.mode) == ((), "none")


def test_what_is_no_cache_is_refused() -> None:
    """A builder takes a cache or its fields, not both, and no other word for it."""
    wrong: Any = building()
    with pytest.raises(MisuseError):
        wrong.cache("1h")
    with pytest.raises(MisuseError):
        wrong.cache(Cache(), ttl="1h")
    with pytest.raises(MisuseError):
        TurnRequest(items=[], cache=wrong)
