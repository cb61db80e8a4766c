"""The laws of recoverable issues: calls that cannot be used, and what the model is told."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from lutum_py import (
    AssistantTurn,
    NeedsTools,
    RecoverableToolCallIssue,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.errors import DuplicateToolCallIdError
from tests.cases import over
from tests.sample_tools import AppTools, DeepTools, Filter, opened, said, sent


class Wide(ToolInput[str]):
    count: int
    color: Literal["red", "green"]
    filters: tuple[Filter, ...] = ()
    note: str | None = None


class WideTools(Toolset):
    wide = tool(Wide)


@tool_fn
def jot(note: str = "nothing") -> str:
    return note


@tool_fn
def ping() -> str:
    return "pong"


class Notes(Toolset):
    jot = tool(jot)
    ping = tool(ping)


def issue(call: ToolMetadata, toolset: type[Toolset] = AppTools, **options: Any) -> Any:
    with opened(toolset, call, **options) as asked:
        assert asked.tool_calls == ()
        (found,) = asked.recoverable_tool_call_issues
        return found


def raw(name: str, arguments: str) -> ToolMetadata:
    return ToolMetadata(id="c1", name=name, arguments=arguments)


def test_an_unknown_tool_gets_the_names_on_offer() -> None:
    """An unknown name is told what is on offer, and a near one among that."""
    found = issue(sent("web_serch", query="x"))
    assert (found.reason, found.suggestion, found.fields) == ("unknown_tool", "web_search", ())
    assert found.text == (
        "There is no tool `web_serch`, so nothing was run. Did you mean `web_search`? "
        "Tools on offer: `web_search`, `get_user`, `list_orders`."
    )
    far = issue(sent("zzzzzzzz"))
    assert far.suggestion is None
    assert "Did you mean" not in far.text


def test_only_what_is_on_offer_is_suggested() -> None:
    """A tool that is not on offer is not suggested, however near its name is."""
    found = issue(sent("delete_files"))
    assert found.suggestion is None
    assert "delete_file`" not in found.text
    assert issue(sent("delete_files"), available=["delete_file"]).suggestion == "delete_file"
    assert issue(sent("anything"), available=[]).text.endswith("Tools on offer: none.")


def test_a_known_tool_that_is_not_on_offer() -> None:
    """A call of a tool that is off is told that it is not available, and what is."""
    found = issue(sent("delete_file", path="x"))
    assert (found.reason, found.suggestion) == ("not_available", None)
    assert found.text == (
        "Tool `delete_file` is not available in this turn, so it was not run. "
        "Tools on offer: `web_search`, `get_user`, `list_orders`."
    )


def test_invalid_arguments_name_every_failing_field() -> None:
    """The text names the tool, and each failing field with what was expected and what came."""
    found = issue(
        sent("wide", count="many", color="blue", filters=[{"field": 1}, {}], colour=3), WideTools
    )
    assert found.reason == "invalid_arguments"
    assert [field.path for field in found.fields] == [
        "count",
        "color",
        "filters[0].field",
        "filters[1].field",
        "colour",
    ]
    lines = found.text.splitlines()
    assert lines[0] == "The arguments of tool `wide` are invalid, so it was not run:"
    assert "`count`: Input should be a valid integer" in lines[1]
    assert "(got 'many')" in lines[1]
    assert "'red' or 'green' (got 'blue')" in lines[2]
    assert lines[4] == "- `filters[1].field`: this field is required"
    assert "did you mean `color`?" in lines[5]
    assert lines[-1] == "Call it again with corrected arguments."


def test_redact_hides_what_came() -> None:
    """With `redact` the fields and expectations stay, and no value that came is told."""
    call = sent("wide", count="s3cret", color="s3cret", filters=[{"field": ["s3cret"]}])
    assert "s3cret" in issue(call, WideTools).text
    found = issue(call, WideTools, redact=True)
    assert "s3cret" not in found.text
    assert [field.received for field in found.fields] == [None, None, None]
    assert "`count`: Input should be a valid integer" in found.text


@over(
    "arguments",
    [
        "x" * 1_000_000,
        '{"count": "' + "x" * 1_000_000 + '"}',
        '{"count": 1, "color": "red", "filters": [' + ",".join(["{}"] * 5_000) + "]}",
        json.dumps({f"field_{number}" * 50: number for number in range(2_000)}),
        "[" * 10_000,
        '{"count": ' + "9" * 10_000 + "}",
        '{"count": NaN, "color": "red"}',
        '["count"]',
        "3",
        '"\\ud800"',
    ],
)
@over("redact", [False, True])
def test_the_text_is_bounded(arguments: str, redact: bool) -> None:
    """However large or odd the arguments are, the text stays short and the raw text is kept."""
    found = issue(raw("wide", arguments), WideTools, redact=redact)
    assert found.reason == "invalid_arguments"
    assert 0 < len(found.text) < 12_000
    assert len(found.fields) <= 21
    assert found.metadata.arguments == arguments
    assert found.result.arguments == arguments


@over(
    "name, shown",
    [
        ("", "''"),
        ("a\nb", r"`a\nb`"),
        ("\ud800", "`\ufffd`"),
        ("x" * 1_000, "`" + "x" * 80 + "…`"),
        ("\x00", r"`\x00`"),
        ("naïve", "`naïve`"),
        ("__class__", "`__class__`"),
        ("{0}%s", "`{0}%s`"),
    ],
)
def test_a_hostile_name_is_shown_safely(name: str, shown: str) -> None:
    """A name may be anything: it is quoted, shortened, and an issue like any other."""
    found = issue(sent(name))
    assert found.reason == "unknown_tool"
    assert found.text.startswith(f"There is no tool {shown}, so nothing was run.")
    assert found.metadata.name == name.replace("\ud800", "\ufffd")
    found.text.encode()


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.text(max_size=50))
def test_any_call_becomes_a_call_or_an_issue(name: str, arguments: str) -> None:
    """Whatever a model sends, the round opens, and its result can be committed."""
    with opened(AppTools, raw(name, arguments)) as asked:
        assert len(asked.tool_calls) + len(asked.recoverable_tool_call_issues) == 1
        if asked.recoverable_tool_call_issues:
            (result,) = asked.resolve([]).results
            assert result.status == "rejected"


def test_valid_siblings_stay_executable() -> None:
    """Issues leave the other calls of the turn as they are, in order."""
    calls = [
        sent("get_user", "a", user_id="x"),
        sent("nothing", "b"),
        sent("web_search", "c"),
        sent("web_search", "d", query="x"),
        sent("delete_file", "e", path="x"),
    ]
    with opened(AppTools, *calls) as asked:
        assert [call.id for call in asked.tool_calls] == ["a", "d"]
        assert [(each.metadata.id, each.reason) for each in asked.recoverable_tool_call_issues] == [
            ("b", "unknown_tool"),
            ("c", "invalid_arguments"),
            ("e", "not_available"),
        ]
        suggestion = asked.continue_suggestion
        assert suggestion is not None
        assert suggestion.call_ids == ("b", "c", "e")
        assert suggestion.text.startswith("3 tool calls could not be used;")


def test_a_round_of_issues_alone_can_be_committed() -> None:
    """A turn with nothing but issues needs tools, and commits with automatic rejections."""
    with opened(AppTools, sent("nothing")) as asked:
        assert asked.continue_suggestion is not None
        assert asked.continue_suggestion.text.startswith("1 tool call could not be used;")
        (result,) = asked.resolve([]).results
        assert (result.status, result.code) == ("rejected", "unknown_tool")
        assert str(result.rejection_reason).startswith("There is no tool `nothing`")


def test_without_issues_there_is_no_suggestion() -> None:
    """A round whose calls all can be used suggests nothing."""
    with opened(AppTools, sent("web_search", query="x")) as asked:
        assert asked.continue_suggestion is None
        assert asked.apply_hooks_sync(AppTools.HookSet()).continue_suggestion is None


def test_an_issue_gives_its_result() -> None:
    """The automatic result of an issue answers the call as the model sent it."""
    found = issue(sent("nothing", "c9", x=1))
    assert isinstance(found, RecoverableToolCallIssue)
    result = found.result
    assert (result.id, result.name, result.arguments) == ("c9", "nothing", '{"x": 1}')
    assert result.result.startswith('"Rejected: There is no tool')
    assert result.code == "unknown_tool"


@over("arguments", ["", "   ", "null", "{}"])
def test_empty_arguments_mean_an_empty_object(arguments: str) -> None:
    """Nothing, blanks and null mean `{}`, so the missing fields are what is told."""
    found = issue(raw("get_user", arguments))
    assert [str(field) for field in found.fields] == ["`user_id`: this field is required"]


@pytest.mark.parametrize(
    "names", [("get_user", "get_user"), ("get_user", "web_search"), ("x", "y")]
)
def test_two_calls_of_one_id_are_refused(names: tuple[str, str]) -> None:
    """Two calls with one id are an error when the round is opened, also where both are issues."""
    first, second = (sent(name, "same", user_id="x") for name in names)
    with pytest.raises(
        DuplicateToolCallIdError, check=lambda error: error.call_id == "same"
    ) as caught:
        AppTools.read_turn(said(first, sent("web_search", "other", query="x"), second))
    assert caught.value.call_id == "same"


def test_hundreds_of_unknown_calls() -> None:
    """Five hundred unknown calls in one turn are five hundred issues, each with its own text."""
    calls = [sent(f"web_searc{number}", f"c{number}") for number in range(500)]
    outcome = AppTools.read_turn(said(*calls, finish_reason="length"))
    assert isinstance(outcome, NeedsTools)
    issues = outcome.round.recoverable_tool_call_issues
    assert len({each.text for each in issues}) == 500
    assert {each.suggestion for each in issues} == {"web_search"}
    assert len(outcome.round.resolve([]).results) == 500


def test_many_tools_on_offer_are_cut() -> None:
    """A long list of names is cut, and says how many there are beside."""
    from lutum_py import ToolDef

    definitions = [
        ToolDef.from_json_schema(name=f"tool_{number}", input_schema={"type": "object"})
        for number in range(40)
    ]
    many = Toolset.from_definitions("Many", definitions)
    assert issue(sent("zzzzzzzz"), many).text.endswith("`tool_29` and 10 more.")


def test_nested_tools_are_known_by_their_wire_names() -> None:
    """A nested tool under its inner name is unknown, and its wire name is suggested."""
    found = issue(sent("get_user", user_id="x"), DeepTools)
    assert (found.reason, found.suggestion) == ("unknown_tool", "app_get_user")


@over(
    "cut_off, arguments, is_cut_off",
    [
        (None, "", True),
        (None, "  ", True),
        (None, "{}", True),
        ("answer", "{}", True),
        ("answer", "", True),
        ("arguments", "{}", True),
    ],
)
def test_a_call_that_was_cut_off_before_its_arguments_is_not_run(
    cut_off: Literal["answer", "arguments"] | None, arguments: str, is_cut_off: bool
) -> None:
    """Nothing at all is an empty object, but not where the limit on tokens ended the turn: only the
    call of a tool without parameters is whole.
    """
    for name, expected in (("jot", is_cut_off), ("ping", False)):
        turn = AssistantTurn(
            tool_calls=[
                ToolMetadata(id="c0", name="ping", arguments=""),
                ToolMetadata(id="c1", name=name, arguments=arguments),
            ],
            finish_reason="length",
            cut_off=cut_off,
        )
        outcome = Notes.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        issues = outcome.round.recoverable_tool_call_issues
        assert [issue.metadata.id for issue in issues] == (["c1"] if expected else [])
        assert all("was cut off" in issue.text for issue in issues)
        assert all(issue.reason == "invalid_arguments" for issue in issues)
        outcome.round.discard()


class Circle(BaseModel):
    radius: float


class Square(BaseModel):
    side: float


@tool_input(output=str)
class Draw(RootModel[Circle | Square]):
    """Draw a shape."""


def test_a_call_of_a_union_that_was_cut_off_is_told_so() -> None:
    """A tool whose input is one of several models takes arguments as well."""

    class Shapes(Toolset):
        draw = tool(Draw)

    call = ToolMetadata(id="c1", name="draw", arguments="")
    outcome = Shapes.read_turn(AssistantTurn(tool_calls=[call], cut_off="arguments"))
    assert isinstance(outcome, NeedsTools)
    (found,) = outcome.round.recoverable_tool_call_issues
    assert "was cut off" in found.text
    outcome.round.discard()
