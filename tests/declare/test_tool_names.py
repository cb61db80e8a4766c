"""What the tools of a toolset may be called: anything that a text carries, and no two alike."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    Answer,
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    ToolDef,
    ToolMetadata,
    ToolResult,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.dialects import gemini_generate_content, openai_chat
from lutum_py.errors import ToolConstraintError, ToolDefinitionError, UnknownToolError
from lutum_py.streaming import CallCompleted, CallStarted, TurnFinished
from lutum_py.testing import ScriptedModel
from lutum_py.tools import tool_search
from lutum_py.turns import ToolCallItem
from tests.cases import over

DOTTED = "math.factorial"
wire_name = openai_chat.wire_name
SENT = wire_name(DOTTED)


def named(name: str) -> ToolDef:
    return ToolDef.from_json_schema(name="f", input_schema={"type": "object"}).with_name(name)


def tools_named(*names: str) -> type[Toolset]:
    return Toolset.from_definitions("Named", [named(name) for name in names])


Dotted = tools_named(DOTTED, "add")


def called(name: str, dialect: str | None = None) -> AssistantTurn:
    call = ToolMetadata(id="c1", name=name, arguments="{}")
    return AssistantTurn(tool_calls=[call], dialect=dialect)


def read(tools: type[Toolset], *args: Any, **options: Any) -> ToolRound[Any, Any]:
    """Open a round, look at it, and leave it."""
    outcome: Any = tools.read_turn(*args, **options)
    opened: ToolRound[Any, Any] = outcome.round
    opened.discard()
    return opened


@over("name", ["", " ", "a\nb", "\x1b[2K", "\x7f", "\x9b", "\ud800", "a\x00"])
def test_a_name_that_no_text_carries_is_refused(name: str) -> None:
    """A tool has a name without controls and halves of surrogate pairs, by whatever way it came."""
    with pytest.raises(ToolDefinitionError, match="Toolset `Named`: the name"):
        tools_named("fine", name)


def test_a_prefix_is_part_of_the_name() -> None:
    """What a prefix makes of a name is checked, and goes out under the stand-in of the whole."""

    @tool_fn
    def ping() -> str:
        return "pong"

    with pytest.raises(ToolDefinitionError):
        Toolset.of("Net", ping, prefix="a\n")
    (sent,) = openai_chat.tools(Toolset.of("Net", ping, prefix="a b."))
    assert sent["function"]["name"] == wire_name("a b.ping")


@over("names", [(DOTTED, SENT), (SENT, DOTTED), ("-x", "add", wire_name("-x"))])
def test_two_tools_never_go_out_as_one(names: tuple[str, ...]) -> None:
    """A toolset in which one tool's name is another's stand-in is refused, and both are named."""
    with pytest.raises(ToolDefinitionError) as caught:
        tools_named(*names)
    assert all(repr(name) in str(caught.value) for name in names if name != "add")


def test_two_stand_ins_that_meet_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should two digests ever be alike, the toolset is refused instead of mixing two tools up."""
    monkeypatch.setattr("lutum_py._schema.definition.stand_in", lambda _: "met_0123456789ab")
    with pytest.raises(ToolDefinitionError, match="goes out as 'met_0123456789ab'"):
        tools_named("a.b", "c.d")


def test_names_that_differ_in_what_a_stand_in_leaves_out_stay_apart() -> None:
    """Dots, blanks and `_` may be all that tells two names apart."""
    names = ["a.b", "a_b", "a b", "a-b", "A.b", "a..b"]
    apart = tools_named(*names)
    sent = [each["function"]["name"] for each in openai_chat.tools(apart)]
    assert len(set(sent)) == len(names)
    assert [apart.parse_tool_call(called(each).tool_calls[0]).name for each in sent] == names


@over("name", [DOTTED, SENT])
def test_a_call_is_of_the_tools_own_name_from_there_on(name: str) -> None:
    """Whether its name or its stand-in came: the call, its turn and its result say the name."""
    outcome = Dotted.read_turn(called(name))
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    (call,) = plan.pending
    assert call.name == call.metadata.name == DOTTED
    (result,) = plan.resolve([call.complete(1)]).results
    assert result.name == DOTTED
    assert outcome.round.turn.tool_calls[0].name == DOTTED
    parsed = Dotted.parse_tool_call(called(name).tool_calls[0])
    assert parsed.name == parsed.metadata.name == DOTTED


def test_a_stand_in_of_nothing_is_an_unknown_tool() -> None:
    """A name that is no tool's and no tool's stand-in is unknown, as ever."""
    with pytest.raises(UnknownToolError):
        Dotted.parse_tool_call(called("math_factorial_000000000000").tool_calls[0])
    (issue,) = read(Dotted, called(wire_name("other.tool"))).recoverable_tool_call_issues
    assert issue.reason == "unknown_tool"


@over(
    "dialect, name",
    [
        (None, DOTTED),
        ("no_dialect", DOTTED),
        ("openai_chat", SENT),
        ("gemini_generate_content", DOTTED),
    ],
)
def test_the_model_is_told_names_as_they_went_out(dialect: str | None, name: str) -> None:
    """What a model may have meant has the name under which the model got to know it."""
    for near in ("math.factorail", "math_factorial_ad6b7ebf6780"):
        (issue,) = read(Dotted, called(near, dialect)).recoverable_tool_call_issues
        assert issue.suggestion == name
        assert f"Tools on offer: `{name}`, `add`." in issue.text
    (issue,) = read(Dotted, called(SENT, dialect), ["add"]).recoverable_tool_call_issues
    assert issue.reason == "not_available"
    assert f"Tool `{name}` is not available" in issue.text


def test_an_answer_may_be_called_anything_too() -> None:
    """The tool of an answer goes out under its stand-in, and is known by it."""
    answer = Answer(int, name="the answer!")
    outcome = Dotted.read_turn(
        AssistantTurn(
            tool_calls=[
                ToolMetadata(id="c", name=wire_name("the answer!"), arguments='{"answer":7}')
            ]
        ),
        answer=answer,
    )
    assert isinstance(outcome, Finished)
    assert outcome.answer == 7
    assert outcome.result.committed is not None
    assert outcome.result.committed.results[0].name == "the answer!"
    text = Answer(int, by="format", name="the answer!")
    form = openai_chat.answer_format(text)["response_format"]["json_schema"]
    assert form["name"] == wire_name("the answer!")


@over(
    "tool, answer",
    [("f", "f"), (wire_name("a.b"), "a.b"), ("a.b", wire_name("a.b"))],
)
def test_an_answer_and_a_tool_never_go_out_as_one(tool: str, answer: str) -> None:
    """The answer's name is no tool's name, nor does either stand for the other."""
    with pytest.raises(ToolConstraintError, match="could not tell them apart"):
        tools_named(tool).read_turn(called("g"), answer=Answer(int, name=answer))
    assert read(tools_named(tool), called("g"), answer=Answer(int, by="format", name=answer))


def test_a_stream_says_the_tools_own_names() -> None:
    """Events of a session's stream name tools as everything after it does."""
    answer = Answer(int, name="the answer!")
    said = AssistantTurn(
        tool_calls=[
            *called(SENT).tool_calls,
            ToolMetadata(id="c2", name=wire_name("the answer!"), arguments='{"answer": 7}'),
        ]
    )
    session = Session()
    session.push_user("Go")
    stream = session.text_turn(ScriptedModel([said])).tools(Dotted).answer(answer).stream_sync()
    events = list(stream)
    names = [event.name for event in events if isinstance(event, CallStarted)]
    names += [event.metadata.name for event in events if isinstance(event, CallCompleted)]
    assert isinstance(events[-1], TurnFinished)
    names += [call.name for call in events[-1].turn.tool_calls]
    assert names == [DOTTED, "the answer!"] * 3
    assert stream.partial == 7
    assert isinstance(stream.outcome, NeedsTools)
    stream.outcome.round.discard()


def test_a_search_loads_by_either_name() -> None:
    """A search, and what it names, are known by their names and by what stands for these."""

    class Desk(Toolset):
        search = tool(tool_search(name="tools.search"))
        dotted = tool(named(DOTTED), deferred=True)

    for search in ("tools.search", wire_name("tools.search")):
        for found in (DOTTED, SENT):
            result = ToolResult(id="c", name=search, arguments="{}", result=f'["{found}", "no"]')
            assert Desk.loaded_tools([result]) == (Desk.dotted,)


def test_the_text_of_a_tool_begins_with_its_name_where_another_goes_out() -> None:
    """The model reads what users call the tool; digests and the definition are as they were."""
    definition = named(DOTTED).with_description("Multiply.")
    digest = definition.digest
    (sent,) = openai_chat.tools([definition])
    assert sent["function"]["description"] == f"{DOTTED}: Multiply."
    (offer,) = gemini_generate_content.tools([definition])
    assert offer["functionDeclarations"][0]["description"] == "Multiply."
    assert (definition.name, definition.digest) == (DOTTED, digest)


def test_a_turn_keeps_what_is_no_call() -> None:
    """Only names of calls change where a turn is read: the rest of it, and its payload, stay."""
    turn = AssistantTurn(
        items=called(SENT).items, finish_reason="x", model="m", request_id="r", payload={"a": 1}
    )
    kept = read(Dotted, turn).turn
    assert isinstance(kept.items[0], ToolCallItem)
    assert (kept.finish_reason, kept.model, kept.request_id) == ("x", "m", "r")
    assert kept.payload == {"a": 1}
    assert turn.tool_calls[0].name == SENT
