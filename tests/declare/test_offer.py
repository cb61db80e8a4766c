"""The laws of availability and requirement: which tools a turn offers, and what it asks."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import ToolAvailability, ToolRequirement, Toolset, tool, toolset
from lutum_py.dialects import openai_chat
from lutum_py.errors import ToolConstraintError, UnknownToolError
from lutum_py.typing import ToolChoice
from tests.cases import over
from tests.sample_tools import (
    AppTools,
    DataTools,
    PingTools,
    TwinTools,
    offered,
    opened,
    ping,
    sent,
    turn_of,
)


def names(available: Any, toolset: type[Toolset] = AppTools) -> list[str]:
    return offered(toolset, available)


def choice(
    requirement: ToolRequirement, available: Any = None, toolset: type[Toolset] = AppTools
) -> ToolChoice:
    asked = turn_of(toolset).available_tools(available).require(requirement)
    made: ToolChoice = asked.request().tool_choice
    return made


ON = ["web_search", "get_user", "list_orders"]
EVERY = ["web_search", "delete_file", "get_user", "list_orders"]


@over(
    "available, expected",
    [
        (None, ON),
        (ToolAvailability.default(), ON),
        (ToolAvailability.all(), EVERY),
        (ToolAvailability.only([AppTools.delete_file]), ["delete_file"]),
        (ToolAvailability.only([]), []),
        (ToolAvailability.only("delete_file"), ["delete_file"]),
        (ToolAvailability.only(AppTools.delete_file), ["delete_file"]),  # type: ignore[arg-type]
        (ToolAvailability.only(AppTools.data), ["get_user", "list_orders"]),
        (ToolAvailability.default_plus([AppTools.delete_file]), EVERY),
        (ToolAvailability.default_plus(["get_user", DataTools.get_user]), ON),
        (ToolAvailability.default_plus("delete_file"), EVERY),
        ([DataTools.list_orders, "web_search", "list_orders"], ["web_search", "list_orders"]),
        ("get_user", ["get_user"]),
        (AppTools, EVERY),
        ([AppTools], EVERY),
        (ToolAvailability.default_plus([AppTools.data]), ON),
        (ToolAvailability.only([DataTools, "web_search"]), ON),
    ],
)
def test_availability_resolves(available: Any, expected: list[str]) -> None:
    """Default leaves out what is off, Only ignores on and off, DefaultPlus doubles nothing."""
    assert names(available) == expected


def test_what_is_read_once_is_read_once() -> None:
    """Tools may be named by a generator, which gives each name a single time."""
    assert names(name for name in ["get_user"]) == ["get_user"]


def test_the_usual_offers_are_kept() -> None:
    """The definitions of all tools, and of those that are on, are put together once."""
    usual = turn_of(AppTools).request().tools
    assert turn_of(AppTools).available_tools(ToolAvailability.default()).request().tools is usual
    every = turn_of(AppTools).available_tools_all().request().tools
    assert every is AppTools.definitions()
    assert DataTools.default_selectors() == tuple(DataTools)
    assert turn_of(DataTools).request().tools is DataTools.definitions()


def test_an_inner_selector_offers_every_path() -> None:
    """A selector of a nested toolset offers the tool on each path, on or off."""
    assert names([DataTools.get_user], TwinTools) == ["left_get_user", "right_get_user"]
    assert names([TwinTools.right.get_user], TwinTools) == ["right_get_user"]


@pytest.mark.parametrize("given", [["nothing"], [PingTools.ping], [3]])
def test_an_unknown_tool_cannot_be_offered(given: Any) -> None:
    """A name or selector of another toolset is an error that names it."""
    with pytest.raises(ToolConstraintError, match="AppTools") as raised:
        names(given)
    assert isinstance(raised.value.__cause__, UnknownToolError)


@over(
    "available, reasons",
    [
        (None, ["not_available"]),
        (ToolAvailability.all(), []),
        (ToolAvailability.only([AppTools.delete_file]), []),
        ([AppTools.delete_file], []),
        ([AppTools.web_search], ["not_available"]),
        ([], ["not_available"]),
    ],
)
def test_a_turn_is_read_with_what_was_on_offer(available: Any, reasons: list[str]) -> None:
    """A call of a known tool that was not offered is an issue; one that was is a call."""
    with opened(AppTools, sent("delete_file", path="x"), available=available) as asked:
        assert [issue.reason for issue in asked.recoverable_tool_call_issues] == reasons
        assert len(asked.tool_calls) == 1 - len(reasons)


@pytest.mark.parametrize(
    ("requirement", "on_the_wire"),
    [
        (ToolRequirement.optional(), ToolChoice("auto")),
        (ToolRequirement.at_least_one(), ToolChoice("required")),
        (ToolRequirement.specific("web_search"), ToolChoice("specific", "web_search")),
        (ToolRequirement.specific(AppTools.web_search), ToolChoice("specific", "web_search")),
    ],
)
def test_a_requirement_becomes_a_choice(
    requirement: ToolRequirement, on_the_wire: ToolChoice
) -> None:
    """Optional is auto, at least one is required, a specific one is its name."""
    assert choice(requirement) == requirement.choice == on_the_wire


def test_a_required_tool_goes_by_its_path() -> None:
    """An inner selector stands for the one path that is on offer."""
    inner = ToolRequirement.specific(DataTools.get_user)
    assert choice(inner, toolset=TwinTools) == ToolChoice("specific", "left_get_user")
    there = r"is there as `left_get_user`, `right_get_user`\. Require one of these"
    with pytest.raises(ToolConstraintError, match=there):
        choice(inner, ToolAvailability.all(), TwinTools)


def test_no_tools_on_offer_disables_them() -> None:
    """An empty offer asks for no tools."""
    assert choice(ToolRequirement.optional(), []) == ToolChoice("none")


@over(
    "requirement, available, text",
    [
        (ToolRequirement.specific("delete_file"), None, "`delete_file`, which is not among"),
        (ToolRequirement.specific(AppTools.web_search), ["get_user"], "`get_user`. Offer it with"),
        (ToolRequirement.at_least_one(), [], "requires a tool call, but offers no tools"),
        (ToolRequirement.specific("nothing"), None, "AppTools has no tool 'nothing'"),
        (ToolRequirement.specific(PingTools.ping), None, "is no member of AppTools"),
    ],
)
def test_what_is_not_offered_cannot_be_required(
    requirement: ToolRequirement, available: Any, text: str
) -> None:
    """A constraint that cannot be met is an error before any request."""
    with pytest.raises(ToolConstraintError, match=text):
        choice(requirement, available)


def test_values_that_say_nothing_are_refused() -> None:
    """An availability or requirement of an unknown mode is an error when it is made."""
    wrong: Any = "onyl"
    with pytest.raises(ToolConstraintError):
        ToolAvailability(wrong)
    with pytest.raises(ToolConstraintError, match="'all' names no tools, and got "):
        ToolAvailability("all", (AppTools.web_search,))
    with pytest.raises(ToolConstraintError):
        ToolRequirement(wrong)
    with pytest.raises(ToolConstraintError):
        ToolRequirement("specific")
    with pytest.raises(ToolConstraintError):
        ToolRequirement("optional", "web_search")


def test_values_compare_and_hash() -> None:
    """Availability and requirement are values."""
    only = ToolAvailability.only([AppTools.web_search])
    assert only == ToolAvailability("only", (AppTools.web_search,))
    assert len({only, ToolAvailability.only([AppTools.web_search]), ToolAvailability.all()}) == 2
    assert ToolRequirement.optional() == ToolRequirement()


def test_the_last_description_of_a_tool_counts() -> None:
    """Descriptions come as pairs or a mapping, an inner selector means each path, the last wins."""
    definitions = TwinTools.definitions()
    asked = turn_of(TwinTools).available_tools_all()
    pairs: list[tuple[Any, str]] = [
        (DataTools.get_user, "one"),
        (TwinTools.left.get_user, "two"),
        ("right_get_user", "3"),
    ]
    given: Any
    for given in (pairs, dict(pairs)):
        described = asked.describe_many_tools(given).request().tools
        assert [each.description for each in described if each.name.endswith("get_user")] == [
            "two",
            "3",
        ]
        assert [each.name for each in described] == [each.name for each in definitions]
        assert described[1] is definitions[1]
    assert asked.describe_many_tools(()).request().tools is definitions
    with pytest.raises(ToolConstraintError):
        asked.describe_many_tools([("nothing", "x")]).request()


def rendered(*args: Any, **options: Any) -> list[dict[str, Any]]:
    return [each["function"] for each in openai_chat.tools(*args, **options)]


def test_dialects_get_toolsets_or_definitions() -> None:
    """What a dialect renders comes from a toolset, or is given as definitions."""
    assert [each["name"] for each in rendered(AppTools)] == ON
    assert [each["name"] for each in rendered(AppTools, available=["get_user"])] == ["get_user"]
    changed = rendered(AppTools, descriptions={AppTools.web_search: "Look."})
    assert changed[0]["description"] == "Look."
    assert rendered(list(PingTools.definitions())) == rendered(PingTools)


def test_a_toolset_stands_for_its_tools_where_tools_are_offered_only() -> None:
    """A group that is off is offered by its name; where one tool is meant, the error says so."""

    class Db(Toolset):
        ping = tool(ping)
        admin = toolset(DataTools, off=True)

    assert names(ToolAvailability.default_plus([Db.admin]), Db) == [
        "ping",
        "get_user",
        "list_orders",
    ]
    assert names([Db.admin, Db.ping], Db) == ["ping", "get_user", "list_orders"]
    with pytest.raises(ToolConstraintError, match="is no member of"):
        names([AppTools], Db)
    with pytest.raises(ToolConstraintError, match="whole toolset"):
        turn_of(Db).describe_many_tools([(Db.admin, "text")]).request()
