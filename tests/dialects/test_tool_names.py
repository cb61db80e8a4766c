"""Names of tools that a provider refuses, on their way out and in requests that have them."""

from __future__ import annotations

import copy
import json
import re
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.dialects import (
    DIALECTS as LIST,
)
from lutum_py.dialects import (
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import ToolDefinitionError
from lutum_py.turns import TranscriptItem
from tests.cases import over

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

BAD = "no such tool!"
FINE = "x_Y-9"
T = TypeVar("T")
ANY_NAMES = st.text(min_size=1, max_size=200)


def called(*names: str) -> AssistantTurn:
    calls = [ToolMetadata(id=f"c{n}", name=name, arguments="{}") for n, name in enumerate(names)]
    return AssistantTurn(tool_calls=calls)


def answers(turn: AssistantTurn) -> list[ToolResult]:
    return [
        ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")
        for call in turn.tool_calls
    ]


def own(dialect: ModuleType, turn: AssistantTurn) -> AssistantTurn:
    """The same turn as the provider itself would have sent it, by these very names."""
    stand_ins = called(*(f"stand_in_{n}" for n, _ in enumerate(turn.tool_calls)))
    text = json.dumps(as_response(dialect, dialect.messages([stand_ins])))
    for n, call in enumerate(turn.tool_calls):
        text = text.replace(f'"stand_in_{n}"', json.dumps(call.name))
    decoded: AssistantTurn = dialect.decode(json.loads(text))
    assert [call.name for call in decoded.tool_calls] == [call.name for call in turn.tool_calls]
    return decoded


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
    """A name that the provider refuses is another one on the wire, with a loss that names both;
    the transcript keeps what the model sent.
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
    (loss,) = [each for each in body.losses if BAD in each.text]
    assert loss.where == "items[1].tool_calls[1]"
    assert sent_as(dialect, BAD)[0] in loss.text
    assert turn.tool_calls[1].name == BAD
    assert turn.payload == payload


def test_a_gemini_result_has_the_name_of_its_call() -> None:
    """Where a result carries the name of the tool, it is the name under which the call went out."""
    turn = called(BAD)
    made, result = gemini_generate_content.messages([turn, *answers(turn)])
    call = made["parts"][0]["functionCall"]
    assert result["parts"][0]["functionResponse"]["name"] == call["name"] != BAD


def test_a_call_of_the_old_form_is_answered_by_its_name_on_the_wire() -> None:
    """The result of a single-function call names the tool as the call does."""
    said = {"role": "assistant", "function_call": {"name": BAD, "arguments": "{}"}}
    turn = openai_chat.decode({"choices": [{"message": said}]})
    call, result = openai_chat.messages([turn, *answers(turn)])
    assert call["function_call"]["name"] == result["name"] != BAD
    assert openai_chat.check([call, result]) == []


def test_a_custom_call_goes_out_under_another_name_too() -> None:
    """Custom calls of both OpenAI dialects are renamed like functions."""
    custom = {"id": "c", "type": "custom", "custom": {"name": BAD, "input": "x"}}
    turn = openai_chat.decode({"choices": [{"message": {"tool_calls": [custom]}}]})
    assert openai_chat.check(openai_chat.messages([turn, *answers(turn)])) == []
    item = {"type": "custom_tool_call", "call_id": "c", "name": BAD, "input": "x"}
    turn = openai_responses.decode({"output": [item]})
    assert openai_responses.check(openai_responses.messages([turn, *answers(turn)])) == []


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


@DIALECTS
def test_a_made_name_never_is_a_tool_on_offer(dialect: ModuleType) -> None:
    """Where a tool on offer has the name that would be made, another is made."""
    (taken,) = sent_as(dialect, BAD)
    tool = ToolDef.from_json_schema(name=taken, input_schema={"type": "object"})
    turn = called(BAD)
    items: list[TranscriptItem] = [Message("user", "Go"), turn, *answers(turn)]
    body = dialect.encode_request(TurnRequest(items=items, tools=(tool,)))
    assert taken not in names_in(body[key_of(dialect)])
    assert dialect.check(body) == []


@DIALECTS
def test_a_made_name_gives_way_when_a_tool_of_that_name_comes(dialect: ModuleType) -> None:
    """A conversation that was sent before is sent with other tools as if for the first time."""
    (taken,) = sent_as(dialect, BAD)
    tool = ToolDef.from_json_schema(name=taken, input_schema={"type": "object"})
    turn = called(BAD)
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_round(CommittedRound(turn, answers(turn)))
    before = dialect.encode_request(TurnRequest(items=transcript.view()))
    assert taken in names_in(before[key_of(dialect)])
    after = dialect.encode_request(TurnRequest(items=transcript.view(), tools=(tool,)))
    assert taken not in names_in(after[key_of(dialect)])
    assert after == dialect.encode_request(TurnRequest(items=[*transcript], tools=(tool,)))


@DIALECTS
def test_a_refused_name_is_found_everywhere_and_mended_alike(dialect: ModuleType) -> None:
    """Each place that has a refused name is a violation, and a repair gives all the same name."""
    body = bodies(BAD)[dialect.NAME]
    before = copy.deepcopy(body)
    violations = dialect.check(body)
    assert {each.rule for each in violations} == {"invalid_tool_name"}
    assert len(violations) == json.dumps(body).count(BAD)
    assert len({each.position for each in violations}) == len(violations)
    mended, changes = dialect.repair(body)
    (made,) = sent_as(dialect, BAD)
    assert mended == bodies(made)[dialect.NAME]
    assert all(made in change.what and change.is_mended for change in changes)
    assert dialect.check(mended) == []
    assert body == before


@DIALECTS
def test_a_declared_name_alone_is_found_at_its_place(dialect: ModuleType) -> None:
    """Where only a declaration is wrong, its position says which, and the messages stay."""
    fine, body = (bodies("f")[dialect.NAME] for _ in range(2))
    tools_in(dialect, body)[:] = tools_in(dialect, bodies(BAD)[dialect.NAME])[:1]
    (violation,) = dialect.check(body)
    assert violation.position.startswith(f"{wire_of(dialect.NAME).TOOLS}[0]")
    assert violation.position.endswith("name")
    mended, _ = dialect.repair(body)
    assert mended[key_of(dialect)] == fine[key_of(dialect)]


@DIALECTS
def test_a_call_by_no_name_gets_one(dialect: ModuleType) -> None:
    """Whatever stands where a name belongs, a repair puts a name there that the provider takes."""
    items = bodies("f")[dialect.NAME][key_of(dialect)]
    for name in (None, 7, "", ["f"], "a b", "x" * 300):
        text = json.dumps(items).replace('"name": "f"', f'"name": {json.dumps(name)}')
        broken = [each for each in json.loads(text) if "function_call" not in each]
        broken = [each for each in broken if each.get("role") != "function"]
        assert "invalid_tool_name" in {each.rule for each in dialect.check(broken)}, name
        mended, _ = dialect.repair(broken)
        assert dialect.check(mended) == [], name
        assert len(mended) == len(broken), name


@tool_fn
def ping() -> None: ...


@tool_fn(name="no name")
def unnamed() -> None: ...


class Inner(Toolset):
    ping = tool(ping)
    unnamed = tool(unnamed, off=True)


class Spaced(Toolset):
    inner = toolset(Inner, prefix="a b ", timeout=2)


class Long(Toolset):
    inner = toolset(Inner, prefix="x" * 130)


class Fine(Toolset):
    inner = toolset(Inner, prefix="fine_")


class Pair(ToolInput[str], Generic[T]):
    """Take two."""

    one: T


class Generics(Toolset):
    pair = tool(Pair[int])


class PairInt(Pair[int]):
    """Take two numbers."""


class Renamed(Toolset):
    pair = tool(PairInt)


REMEDIES: list[tuple[Any, str]] = [
    (Spaced, "Its prefix is 'a b ': change `prefix=` where the toolset is nested or made."),
    (Long, "change `prefix=`"),
    (Toolset.of("Made", ping, prefix="a b "), "change `prefix=`"),
    ([Fine.inner.unnamed.definition], "as in `@tool_fn(name=...)`"),
    ([Spaced.inner.ping.definition.with_name("c d")], "as in `@tool_fn(name=...)`"),
    ([Spaced.inner.ping.definition.with_description("Other.")], "change `prefix=`"),
    (Generics, "for `A[int]`, declare a `class AInt(A[int])`"),
]


@DIALECTS
def test_what_is_to_be_changed_is_what_the_refused_name_comes_from(
    dialect: ModuleType,
) -> None:
    """A refused name comes with the remedy: for its prefix, for a tool, or for a generic model."""
    for tools, remedy in REMEDIES:
        with pytest.raises(ToolDefinitionError, match="is refused by") as raised:
            dialect.tools(tools)
        assert remedy in str(raised.value), tools


@DIALECTS
def test_the_remedy_for_a_generic_model_works(dialect: ModuleType) -> None:
    """A class of its own gives a special case of a generic model a name that providers take."""
    assert "pair_int" in json.dumps(dialect.tools(Renamed))
