"""Names of tools that a provider refuses, on their way out and in requests that have them."""

from __future__ import annotations

import copy
import json
import re
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    NeedsTools,
    Session,
    ToolDef,
    ToolMetadata,
    ToolRequirement,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
)
from lutum_py.dialects import (
    DIALECTS as LIST,
)
from lutum_py.dialects import (
    anthropic_messages,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import MisuseError, TranscriptError
from lutum_py.testing import ScriptedModel
from lutum_py.tools import tool_search
from lutum_py.turns import TranscriptItem
from tests.cases import over

from .called import BAD, answers, called
from .every_dialect import (
    DIALECTS,
    NAMES,
    TAKEN_NAMES,
    as_response,
    bodies,
    key_of,
    tools_in,
    wire_of,
)

USER = Message("user", "Go")
FINE = "x_Y-9"
FOR_FINE = "x_Y_9_1343ebc6b268"
"""What would stand for it where it were refused."""
ANY_NAMES = st.text(min_size=1, max_size=200)


def own(dialect: ModuleType, turn: AssistantTurn) -> AssistantTurn:
    """The same turn as the provider itself would have sent it, by these very names."""
    stand_ins = called(*(f"stand_in_{n}" for n, _ in enumerate(turn.tool_calls)))
    text = json.dumps(as_response(dialect, dialect.messages([stand_ins])))
    for n, call in enumerate(turn.tool_calls):
        text = text.replace(f'"stand_in_{n}"', json.dumps(call.name))
    decoded: AssistantTurn = dialect.decode(json.loads(text))
    assert [call.name for call in decoded.tool_calls] == [call.name for call in turn.tool_calls]
    return decoded


def named(name: str) -> ToolDef:
    return ToolDef.from_json_schema(name=name, input_schema={"type": "object"})


def names_of(transcript: Transcript) -> list[str]:
    turns = (item for item in transcript if isinstance(item, AssistantTurn))
    return [call.name for turn in turns for call in turn.tool_calls]


def names_in(value: Any) -> list[str]:
    """Every name in rendered messages: of calls, and of results where these have one."""
    if isinstance(value, list):
        return [name for item in value for name in names_in(item)]
    if not isinstance(value, dict):
        return []
    own_name = [value["name"]] if isinstance(value.get("name"), str) else []
    return own_name + [name for item in value.values() for name in names_in(item)]


def sent_as(dialect: ModuleType, *names: str) -> list[str]:
    """Give the names under which calls by these names go out."""
    return names_in(dialect.messages([called(*names)]))


def is_taken(dialect: ModuleType, name: str) -> bool:
    return re.fullmatch(TAKEN_NAMES[dialect.NAME], name) is not None


@DIALECTS
@over("is_own", [False, True])
def test_a_refused_name_goes_out_under_another(dialect: ModuleType, is_own: bool) -> None:
    """A name that the provider refuses is another one on the wire, which is no loss; the
    transcript keeps what the model sent.
    """
    turn = called(FINE, BAD)
    turn = own(dialect, turn) if is_own else turn
    payload = copy.deepcopy(turn.payload)
    items: list[TranscriptItem] = [Message("user", "Go"), turn, *answers(turn)]
    body = dialect.encode_request(TurnRequest(items=items))
    sent = names_in(body[key_of(dialect)])
    assert BAD not in sent
    assert FINE in sent
    assert all(is_taken(dialect, name) for name in sent)
    assert dialect.check(body) == []
    assert not any(BAD in each.text for each in body.losses)
    assert turn.tool_calls[1].name == BAD
    assert turn.payload == payload


@DIALECTS
def test_a_fine_name_goes_back_as_it_came(dialect: ModuleType) -> None:
    """The replay of a turn with names that the provider takes is what the provider sent."""
    turn = called("add", "x" * 64, "_a-b")
    said = dialect.messages([own(dialect, turn)])
    assert as_response(dialect, said) == as_response(dialect, dialect.messages([turn]))
    assert names_in(said) == [call.name for call in turn.tool_calls]


@DIALECTS
@given(names=st.lists(ANY_NAMES, min_size=1, max_size=6, unique=True))
def test_no_two_names_meet_on_the_wire(dialect: ModuleType, names: list[str]) -> None:
    """Other names go out as other names, the same each time, and all of them are taken."""
    sent = sent_as(dialect, *names)
    assert len(set(sent)) == len(sent) == len(names)
    assert all(is_taken(dialect, name) for name in sent)
    assert [each for name in names for each in sent_as(dialect, name)] == sent
    pairs = zip(names, sent, strict=True)
    assert [pair for pair in pairs if is_taken(dialect, pair[0]) and len(set(pair)) > 1] == []


def test_a_made_name_is_the_same_for_every_provider() -> None:
    """What stands for a name does not hang on the provider, and every provider takes it."""
    every = [import_module(LIST[name]) for name in NAMES]
    for name in (BAD, "", "9 lives", "日本", "x" * 500, "\ud800", "-"):
        made = {each for dialect in every for each in sent_as(dialect, f"{name}!")}
        assert len(made) == 1, name
        assert all(is_taken(dialect, each) for dialect in every for each in made), name


def test_the_name_on_the_wire_is_that_of_a_text() -> None:
    """A selector in the place of its name would get a stand-in that no tool has."""
    tools: Any = Toolset.from_definitions(
        "Tools", [ToolDef.from_json_schema(name="a.b", input_schema={})]
    )
    with pytest.raises(MisuseError, match="name of a tool"):
        openai_chat.wire_name(tools["a.b"])


@DIALECTS
def test_a_refused_name_is_found_everywhere_and_mended_alike(dialect: ModuleType) -> None:
    """Each place that has a refused name is a violation, and a repair gives all the same name."""
    body = bodies(BAD)[dialect.NAME]
    before = copy.deepcopy(body)
    violations = dialect.check(body)
    assert {each.rule for each in violations} == {"invalid_tool_name"}
    assert len(violations) == json.dumps(body).count(BAD)
    assert len({each.position for each in violations}) == len(violations)
    repaired, changes = dialect.repair(body)
    (made,) = sent_as(dialect, BAD)
    assert repaired == bodies(made)[dialect.NAME]
    assert all(made in change.what and change.is_repaired for change in changes)
    assert dialect.check(repaired) == []
    assert body == before


@DIALECTS
def test_a_declared_name_alone_is_found_at_its_place(dialect: ModuleType) -> None:
    """Where only a declaration is wrong, its position says which, and the messages stay."""
    fine, body = (bodies("f")[dialect.NAME] for _ in range(2))
    tools_in(dialect, body)[:] = tools_in(dialect, bodies(BAD)[dialect.NAME])[:1]
    (violation,) = dialect.check(body)
    assert violation.position.startswith(f"{wire_of(dialect.NAME).TOOLS}[0]")
    assert violation.position.endswith("name")
    repaired, _ = dialect.repair(body)
    assert repaired[key_of(dialect)] == fine[key_of(dialect)]


@DIALECTS
def test_a_call_by_no_name_gets_one(dialect: ModuleType) -> None:
    """Whatever stands where a name belongs, a repair puts a name there that the provider takes."""
    items = bodies("f")[dialect.NAME][key_of(dialect)]
    for name in (None, 7, "", ["f"], "a b", "x" * 300):
        text = json.dumps(items).replace('"name": "f"', f'"name": {json.dumps(name)}')
        broken = [each for each in json.loads(text) if "function_call" not in each]
        broken = [each for each in broken if each.get("role") != "function"]
        assert "invalid_tool_name" in {each.rule for each in dialect.check(broken)}, name
        repaired, _ = dialect.repair(broken)
        assert dialect.check(repaired) == [], name
        assert len(repaired) == len(broken), name


HOSTILE = [
    *("math.factorial", "a b", "a.b", "a_b", "9 lives", "-", "_", "日本.会議", "émoji \U0001f389"),
    *("x" * 65, "x" * 128, "x" * 129, "y" * 500, "a/b:c", "$ref", "__proto__", "def", "None"),
    *("\u202egnp.exe", "a[int]", "\u200b", "\ufeffadd", "Å", "A\u030a"),
]
SAYABLE = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=150).filter(
    str.strip
)


@DIALECTS
@given(data=st.data(), names=st.lists(SAYABLE | st.sampled_from(HOSTILE), max_size=4, unique=True))
def test_a_tool_may_be_called_anything(
    dialect: ModuleType, data: st.DataObject, names: list[str]
) -> None:
    """Whatever tools are called: each goes out under a name that the provider takes, and calls by
    that come back under its own, in the round, in its results, when it is saved and sent again, to
    the same provider byte for byte and to any other in that one's names.
    """
    names = [*dict.fromkeys([*names, data.draw(st.sampled_from(HOSTILE))])]
    tools = Toolset.from_definitions("Hostile", [named(name) for name in names])
    sent = [dialect.wire_name(name) for name in names]
    body = dialect.encode_request(TurnRequest(items=[USER], tools=tools.definitions()))
    assert dialect.check(body) == []
    assert [each.text for each in body.losses if "name" in each.text] == []
    offered = json.dumps(tools_in(dialect, body), ensure_ascii=False)
    for name, out in zip(names, sent, strict=True):
        assert is_taken(dialect, out)
        assert (out == name) is is_taken(dialect, name)
        assert json.dumps(out) in offered
        assert out == name or json.dumps(f"{name}: ", ensure_ascii=False)[:-1] in offered
        choice = json.dumps(dialect.tool_choice(ToolRequirement.specific(name)), ensure_ascii=False)
        assert json.dumps(out) in choice
    said = own(dialect, called(*sent))
    outcome = tools.read_turn(said)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    assert [call.name for call in plan.pending] == names
    committed = plan.resolve([call.complete(1) for call in plan.pending])
    assert [each.name for each in committed.results] == names
    assert committed.turn.payload == said.payload
    transcript = Transcript()
    transcript.push(USER)
    transcript.append_round(committed)
    transcript = Transcript.load_json(transcript.dump_json())
    assert names_of(transcript) == names
    assert dialect.messages([transcript[1]]) == dialect.messages([said])
    assert dialect.check(dialect.messages(transcript)) == []
    other = import_module(LIST[data.draw(st.sampled_from(NAMES))])
    elsewhere = other.encode_request(
        TurnRequest(items=transcript.view(), tools=tools.definitions())
    )
    assert other.check(elsewhere) == []
    found = names_in(elsewhere[key_of(other)])
    assert {other.wire_name(name) for name in names} == set(found)


@DIALECTS
def test_a_stand_in_of_a_name_that_is_taken_agrees_with_its_result(dialect: ModuleType) -> None:
    """Where a call came by a stand-in that was not needed, its result has the name of the call."""
    tools = Toolset.from_definitions("Fine", [named(FINE)])
    said = own(dialect, called(FOR_FINE))
    outcome = tools.read_turn(said)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    committed = plan.resolve([plan.pending[0].complete(1)])
    again = dialect.messages([USER, *committed])
    assert set(names_in(again)) == {FOR_FINE}
    assert dialect.check(again) == []


def test_a_payload_of_another_call_is_still_refused() -> None:
    """A saved turn and its payload agree by name or stand-in, and by nothing else."""
    transcript = Transcript()
    transcript.push(USER)
    said = own(openai_chat, called(openai_chat.wire_name(BAD)))
    transcript.append_round(CommittedRound(said, answers(said)))
    text = transcript.dump_json()
    for name, is_same in (
        (BAD, True),
        ("other tool", False),
        (openai_chat.wire_name("x y"), False),
    ):
        turn, result = (json.loads(text)["items"][at] for at in (1, 2))
        turn["items"][0]["name"] = result["name"] = name
        edited = json.loads(text) | {"items": [json.loads(text)["items"][0], turn, result]}
        if is_same:
            assert names_of(Transcript.load_json(json.dumps(edited))) == [name]
        else:
            with pytest.raises(TranscriptError, match="its payload makes"):
                Transcript.load_json(json.dumps(edited))


@over("native", [anthropic_messages, openai_responses])
def test_deferred_tools_are_referred_to_as_they_go_out(native: ModuleType) -> None:
    """What a search found is named as the tools of the request are, and its call is answered so."""

    class Desk(Toolset):
        search = tool(tool_search(name="tool_search"))
        dotted = tool(named("math.factorial"), deferred=True)

    out = openai_chat.wire_name("math.factorial")
    for found in ("math.factorial", out):
        call = ToolMetadata(id="c1", name="tool_search", arguments='{"query": "x"}')
        transcript = Transcript()
        transcript.push(USER)
        turn = AssistantTurn(tool_calls=[call])
        result = ToolResult(
            id="c1", name="tool_search", arguments=call.arguments, result=json.dumps([found])
        )
        transcript.append_round(CommittedRound(turn, [result]))
        session = Session(transcript=transcript)
        model = ScriptedModel([ScriptedModel.text("Done.")])
        session.text_turn(model).tools(Desk).collect_sync()
        body = native.encode_request(model.requests[0], native_search=True)
        assert json.dumps(body).count(json.dumps(out)) == 2, found
        assert "math.factorial: " in json.dumps(body)
        assert '"math.factorial"' not in json.dumps(body[key_of(native)])
