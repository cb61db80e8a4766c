"""The laws of availability and requirement: which tools a turn offers, and what it asks."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import ToolAvailability, ToolChoice, ToolRequirement, Toolset, tool, toolset
from lutum_py._declare.offer import (
    Offer,
    offered_definitions,
)
from lutum_py.errors import ToolConstraintError, UnknownToolError
from tests.sample_tools import AppTools, DataTools, PingTools, TwinTools, opened, ping, sent


def names(available: Any, toolset: type[Toolset] = AppTools) -> list[str]:
    return [each.name for each in toolset._offer.resolve(available).selectors]


def choice(requirement: ToolRequirement, available: Any = None) -> ToolChoice:
    return AppTools._offer.choose(AppTools._offer.resolve(available), requirement)


ON = ["web_search", "get_user", "list_orders"]
EVERY = ["web_search", "delete_file", "get_user", "list_orders"]


@pytest.mark.parametrize(
    ("available", "expected"),
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


def test_an_offer_passes_through() -> None:
    """What was worked out once is taken as it is, and the usual answers are kept."""
    offered = AppTools._offer.resolve(None)
    assert AppTools._offer.resolve(offered) is offered is AppTools._offer.default
    assert AppTools._offer.all is AppTools._offer.resolve(ToolAvailability.all())
    assert Offer(DataTools, tuple(DataTools)).default.selectors == tuple(DataTools)
    assert DataTools._offer.default is DataTools._offer.all


def test_an_inner_selector_offers_every_path() -> None:
    """A selector of a nested toolset offers the tool on each path, on or off."""
    assert names([DataTools.get_user], TwinTools) == ["left_get_user", "right_get_user"]
    assert names([TwinTools.right.get_user], TwinTools) == ["right_get_user"]


@pytest.mark.parametrize("given", [["nothing"], [PingTools.ping], [3]])
def test_an_unknown_tool_cannot_be_offered(given: Any) -> None:
    """A name or selector of another toolset is an error that names it."""
    with pytest.raises(UnknownToolError, match="AppTools"):
        names(given)


@pytest.mark.parametrize(
    ("available", "reasons"),
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
    offered = TwinTools._offer.default
    inner = ToolRequirement.specific(DataTools.get_user)
    assert TwinTools._offer.choose(offered, inner) == ToolChoice("specific", "left_get_user")
    with pytest.raises(ToolConstraintError, match="`get_user`, which is there twice"):
        TwinTools._offer.choose(TwinTools._offer.all, inner)


def test_no_tools_on_offer_disables_them() -> None:
    """An empty offer asks for no tools."""
    assert choice(ToolRequirement.optional(), []) == ToolChoice("none")


@pytest.mark.parametrize(
    ("requirement", "available", "text"),
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
    with pytest.raises(ToolConstraintError, match="Availability 'onyl' is none of"):
        ToolAvailability(wrong)
    with pytest.raises(ToolConstraintError, match="Requirement 'onyl' is none of"):
        ToolRequirement(wrong)
    with pytest.raises(ToolConstraintError, match="names a tool where its mode is 'specific'"):
        ToolRequirement("specific")
    with pytest.raises(ToolConstraintError, match="got mode 'optional' and 'web_search'"):
        ToolRequirement("optional", "web_search")


def test_values_compare_and_hash() -> None:
    """Availability and requirement are values."""
    only = ToolAvailability.only([AppTools.web_search])
    assert only == ToolAvailability("only", (AppTools.web_search,))
    assert len({only, ToolAvailability.only([AppTools.web_search]), ToolAvailability.all()}) == 2
    assert ToolRequirement.optional() == ToolRequirement()


def test_the_last_description_of_a_tool_counts() -> None:
    """Descriptions come as pairs or a mapping, an inner selector means each path, the last wins."""
    definitions = TwinTools._offer.all.definitions
    pairs: list[tuple[Any, str]] = [
        (DataTools.get_user, "one"),
        (TwinTools.left.get_user, "two"),
        ("right_get_user", "3"),
    ]
    given: Any
    for given in (pairs, dict(pairs)):
        described = TwinTools._offer.describe(definitions, given)
        assert [each.description for each in described if each.name.endswith("get_user")] == [
            "two",
            "3",
        ]
        assert [each.name for each in described] == [each.name for each in definitions]
        assert described[1] is definitions[1]
    assert TwinTools._offer.describe(definitions, ()) is definitions
    with pytest.raises(UnknownToolError):
        TwinTools._offer.describe(definitions, [("nothing", "x")])


def test_dialects_get_toolsets_or_definitions() -> None:
    """What a dialect renders comes from a toolset, or is given as definitions."""
    assert [each.name for each in offered_definitions(AppTools)] == ON
    assert [each.name for each in offered_definitions(AppTools, ["get_user"])] == ["get_user"]
    changed = offered_definitions(AppTools, None, {AppTools.web_search: "Look."})
    assert changed[0].description == "Look."
    listed = list(PingTools.definitions())
    assert offered_definitions(listed) == tuple(listed)


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
    with pytest.raises(UnknownToolError, match="is no member of"):
        names([AppTools], Db)
    with pytest.raises(UnknownToolError, match="is a whole toolset; name one tool of it"):
        Db._offer.describe((), [(Db.admin, "text")])  # type: ignore[list-item]
