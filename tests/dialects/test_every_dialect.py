"""One strategy of conversations and one law for all dialects."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.cli import main
from lutum_py.dialects import DIALECTS as LIST
from lutum_py.dialects import openai_chat
from lutum_py.dialects._facts import facts_of
from lutum_py.dialects.authoring import wire_form_of
from lutum_py.errors import DialectError, MisuseError
from lutum_py.testing import ScriptedClient
from lutum_py.turns import ToolChoice, TranscriptItem
from tests.cases import over
from tests.instructions import instructions
from tests.profiles import scaled

from .every_dialect import (
    DIALECTS,
    KEYS,
    NAMES,
    OF_LIBRARY,
    TRUNCATED,
    as_response,
    bodies,
    key_of,
    response_of,
    wire_of,
)
from .plain import compact, done, rejected

BAD = "no such tool!"
SHARED = {
    "NAME",
    "StreamDecoder",
    "check",
    "compile",
    "decode",
    "encode_request",
    "messages",
    "read_history",
    "repair",
    "tool_choice",
    "tools",
}

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
SPOKEN = TEXTS.filter(str.strip)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
TOOLS = st.sampled_from(["search", "get_user", "x"])


@st.composite
def turns(draw: st.DrawFn, number: int = 0) -> AssistantTurn:
    """A turn that says or asks something; the ids of its calls come nowhere else."""
    calls = [
        ToolMetadata(id=f"call_{number}_{index}", name=name, arguments=compact(arguments))
        for index, (name, arguments) in enumerate(
            draw(st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=3))
        )
    ]
    text = draw(SPOKEN if not calls else st.none() | SPOKEN)
    return AssistantTurn(text=text, tool_calls=calls)


@st.composite
def results(draw: st.DrawFn, call: ToolMetadata) -> ToolResult:
    """A result of any status, in short or at length."""
    status = draw(st.sampled_from(["success", "error", "rejected", "cancelled", "indeterminate"]))
    if status == "rejected":
        return rejected(call, draw(TEXTS))
    return ToolResult(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        result=compact(draw(JSON_VALUES)),
        status=status,  # type: ignore[arg-type]
        message=draw(st.none() | TEXTS),
    )


@st.composite
def conversations(draw: st.DrawFn) -> list[TranscriptItem]:
    """A valid transcript: instructions, then what user and model say, each call answered."""
    items: list[TranscriptItem] = [
        Message(role, draw(SPOKEN))  # type: ignore[arg-type]
        for role in draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    ]
    for number in range(draw(st.integers(1, 4))):
        said = draw(st.lists(SPOKEN, min_size=number == 0, max_size=2))
        items += [Message("user", text) for text in said]
        turn = draw(turns(number))
        items.append(turn)
        items += [draw(results(call)) for call in turn.tool_calls]
    return items


def calls_of(turn: AssistantTurn) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in turn.tool_calls]


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_a_valid_transcript_makes_a_valid_request(
    dialect: ModuleType, conversation: list[TranscriptItem]
) -> None:
    """What is encoded of a valid transcript breaks no rule, whole or as a bare list."""
    body = dialect.encode_request(TurnRequest(items=conversation))
    assert dialect.check(body) == []
    assert dialect.repair(body) == (dict(body), [])
    assert dialect.check(dialect.messages(conversation)) == []
    json.dumps(body)


@DIALECTS
@given(turn=turns())
def test_decoding_inverts_encoding(dialect: ModuleType, turn: AssistantTurn) -> None:
    """A rendered turn, decoded, has the text and calls that it had, and renders the same again."""
    said = dialect.messages([turn])
    decoded = dialect.decode(as_response(dialect, said))
    assert decoded.text == turn.text
    assert calls_of(decoded) == calls_of(turn)
    assert decoded.dialect == dialect.NAME
    again = dialect.messages([decoded])
    assert dialect.decode(as_response(dialect, again)) == decoded


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=scaled(25))
@given(data=st.data())
def test_a_turn_of_any_dialect_goes_to_any_other(dialect: ModuleType, data: st.DataObject) -> None:
    """A round that one dialect decoded is valid in every other, with its text and calls; only its
    own dialect loses nothing.
    """
    said = data.draw(turns())
    for name in NAMES:
        other = import_module(LIST[name])
        turn = other.decode(as_response(other, other.messages([said])))
        items = [Message("user", "Go"), turn]
        items += [data.draw(results(call)) for call in turn.tool_calls]
        body = dialect.encode_request(TurnRequest(items=items))
        assert dialect.check(body) == [], name
        assert bool(body.losses) == (dialect is not other), name
        decoded = dialect.decode(as_response(dialect, dialect.messages([turn])))
        assert (decoded.text, calls_of(decoded)) == (turn.text, calls_of(turn)), name


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations(), data=st.data())
def test_whatever_is_lost_of_a_request_is_repaired(
    dialect: ModuleType, conversation: list[TranscriptItem], data: st.DataObject
) -> None:
    """A valid request of which items are dropped, doubled or moved is repaired to a clean one."""
    items = dialect.messages(conversation)
    kept = data.draw(st.lists(st.sampled_from(range(len(items))), max_size=len(items) + 2))
    broken = [items[index] for index in kept]
    before = copy.deepcopy(broken)
    repaired, changes = dialect.repair(broken)
    assert dialect.check(repaired) == []
    assert bool(changes) == bool(dialect.check(broken))
    assert broken == before


@DIALECTS
@given(conversation=conversations())
def test_what_is_rendered_is_the_callers_own(
    dialect: ModuleType, conversation: list[TranscriptItem]
) -> None:
    """Changing every part of what was rendered never changes what is rendered next."""
    before = copy.deepcopy(dialect.messages(conversation))
    spoil(dialect.messages(conversation))
    assert dialect.messages(conversation) == before
    own = [
        dialect.decode(as_response(dialect, dialect.messages([item])))
        for item in conversation
        if isinstance(item, AssistantTurn)
    ]
    before = copy.deepcopy(dialect.messages(own))
    spoil(dialect.messages(own))
    assert dialect.messages(own) == before


def spoil(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoiled"] = True
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoiled")


@DIALECTS
def test_every_dialect_has_the_same_names(dialect: ModuleType) -> None:
    """A dialect can be exchanged for another: the same public names, with the same signatures."""
    assert set(dialect.__all__) >= SHARED
    for name in SHARED - {"NAME", "StreamDecoder"}:
        assert parameters(getattr(dialect, name)) == parameters(getattr(openai_chat, name))
        assert getattr(dialect, name).__doc__
    for name in ("feed", "close", "finish"):
        ours = getattr(dialect.StreamDecoder, name)
        assert parameters(ours) == parameters(getattr(openai_chat.StreamDecoder, name))
    assert LIST[dialect.NAME] == dialect.__name__


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    signature = inspect.signature(function)
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


@DIALECTS
def test_every_choice_and_tool_has_a_form(dialect: ModuleType) -> None:
    """Each mode of a choice, and a tool, plain or strict, has a form that is JSON."""
    echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
    modes = [ToolChoice(), ToolChoice("required"), ToolChoice("none")]
    for choice in (*modes, ToolChoice("specific", "echo")):
        json.dumps(dialect.tool_choice(choice))
        asked = TurnRequest(items=[Message("user", "Go")], tools=(echo,), tool_choice=choice)
        json.dumps(dialect.encode_request(asked))
    for strict in (False, True):
        described = dialect.tools([echo], descriptions=[("echo", "Repeat")], strict=strict)
        assert "Repeat" in json.dumps(described)


@DIALECTS
def test_what_is_no_toolset_is_told_how_to_choose(dialect: ModuleType) -> None:
    """A single tool, a selector, another class or nothing is refused with what `tools` takes."""

    @tool_fn
    def search(query: str) -> str:
        """Search."""
        return query

    class Web(Toolset):
        web = tool(search)

    for wrong in (search, Web.web, None, 5, int, "search", [search], [Web.web]):
        with pytest.raises(MisuseError) as caught:
            dialect.tools(wrong)
        text = str(caught.value)
        assert text.startswith("tools() takes a Toolset or a list of ToolDefs, not "), text
        assert "choose them with `available=[...]`" in text
    (named,) = dialect.tools(Web, available=[Web.web])
    assert "search" in json.dumps(named)


@DIALECTS
def test_what_is_no_choice_is_told_how_to_make_one(dialect: ModuleType) -> None:
    """Anything else than a requirement or a choice is refused with the line that makes one."""
    with pytest.raises(MisuseError):
        dialect.tool_choice("required")


@pytest.mark.parametrize("dialect", OF_LIBRARY, indirect=True)
def test_what_is_no_message_is_told_how_it_becomes_one(dialect: ModuleType) -> None:
    """The object of an SDK in the place of a message is named with the line that dumps it."""
    (violation,) = dialect.check([*said_by_a_user(dialect), object()])
    assert '`response.to_dict(mode="json")`' in violation.remedy


def said_by_a_user(dialect: ModuleType) -> list[Any]:
    body = dialect.encode_request(TurnRequest(items=[Message("user", "Hello")]))
    said: list[Any] = body[key_of(dialect)]
    return said


def said_by_hand(dialect: ModuleType, turn: AssistantTurn) -> AssistantTurn:
    decoded: AssistantTurn = dialect.decode(response_of(dialect.NAME, turn))
    return decoded


@DIALECTS
def test_what_is_no_request_is_told_how_it_becomes_one(dialect: ModuleType) -> None:
    """Items alone, a transcript, a body of the provider and a type are no request."""
    said = [Message("user", "Hello")]
    cases: list[Any] = [said, Transcript(), {"messages": []}, None, TurnRequest]
    for wrong in cases:
        with pytest.raises(MisuseError, match=r"takes a TurnRequest .*TurnRequest\(items=said\)"):
            dialect.encode_request(wrong)


@DIALECTS
@over("arguments", ["", "{}", '{"a":1}'])
def test_a_turn_that_a_limit_ended_says_so(dialect: ModuleType, arguments: str) -> None:
    """A turn is cut off by its dialect's word alone; where a call of it has arguments for certain,
    they are not missing. It says so after it was saved, too.
    """
    call = ToolMetadata(id="c1", name="search", arguments=arguments)
    assert said_by_hand(dialect, AssistantTurn(tool_calls=[call])).cut_off is None
    said = AssistantTurn(text="Hm", tool_calls=[call], cut_off="answer")
    turn = said_by_hand(dialect, said)
    assert turn.is_truncated
    assert turn.finish_reason in TRUNCATED[dialect.NAME]
    text = turn.tool_calls[0].arguments
    is_empty = wire_of(dialect.NAME).EMPTY_IS_MISSING and text == "{}"
    assert turn.cut_off == ("arguments" if not text or is_empty else "answer")
    assert said_by_hand(dialect, AssistantTurn(text="Hm", cut_off="answer")).cut_off == "answer"
    transcript = Transcript()
    transcript.append_round(CommittedRound(turn, [done(call) for call in turn.tool_calls]))
    assert Transcript.load_json(transcript.dump_json())[0] == turn


def test_the_words_of_saved_turns_are_known() -> None:
    """A turn that was saved without a word on what was cut off is known by its finish reason."""
    for name in OF_LIBRARY:
        for reason in TRUNCATED[name]:
            assert AssistantTurn(text="Hm", finish_reason=reason).is_truncated


@DIALECTS
@given(turn=turns())
def test_the_testing_kit_speaks_every_dialect(dialect: ModuleType, turn: AssistantTurn) -> None:
    """What a model is let say by hand is decoded as it was meant, and found in the messages."""
    form = wire_form_of(dialect.NAME)
    response = form.response(turn, 1)
    decoded = dialect.decode(response)
    assert (decoded.text, calls_of(decoded)) == (turn.text, calls_of(turn))
    decoder = dialect.StreamDecoder()
    for event in form.events(response):
        decoder.feed(event)
    streamed = decoder.finish()
    assert (streamed.text, calls_of(streamed)) == (turn.text, calls_of(turn))
    found = [*form.said_in(dialect.messages([decoded]))]
    assert found == [*form.said_in(form.messages_of(response))]
    assert [said.name for said in found if said.name] == [call.name for call in turn.tool_calls]
    assert "".join(said.text for said in found if said.name is None) == turn.text
    client = ScriptedClient([turn], dialect)
    assert client.create(**{key_of(dialect): dialect.messages([Message("user", "Go")])}) == response


@DIALECTS
def test_the_command_line_speaks_every_dialect(
    dialect: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request of any dialect is checked by its rules, and a name of none is refused."""
    pytest.importorskip("typer", reason="typer is not installed: pip install -e '.[cli]'")
    body = tmp_path / "body.json"
    body.write_text(json.dumps(bodies(BAD)[dialect.NAME]), encoding="utf-8")
    with pytest.raises(SystemExit) as found:
        main(["check", str(body), "--dialect", dialect.NAME])
    assert found.value.code == 1
    out = capsys.readouterr().out
    assert f"request body of {dialect.NAME}" in out
    assert "invalid_tool_name" in out
    with pytest.raises(SystemExit) as refused:
        main(["check", str(body), "--dialect", "smoke_signals"])
    assert refused.value.code == 2
    assert "'smoke_signals' is not one of" in capsys.readouterr().err


@DIALECTS
def test_rendering_a_turn_takes_few_instructions(dialect: ModuleType) -> None:
    """Each turn that a provider made is rendered in as few steps, however many there are."""
    call = ToolMetadata(id="c1", name="search", arguments='{"query":"weather","limit":3}')
    turn = AssistantTurn(text="Let me look that up.", tool_calls=[call])
    own = dialect.decode(as_response(dialect, dialect.messages([turn])))
    made = own.tool_calls[0]
    result = ToolResult(id=made.id, name=made.name, arguments=made.arguments, result='{"t":1}')

    def steps(count: int) -> int:
        request = TurnRequest(items=[Message("user", "Weather?"), *[own, result] * count])
        assert len(dialect.encode_request(request)[key_of(dialect)]) > 2 * count
        return instructions(lambda: dialect.encode_request(request))

    assert steps(1000) - steps(100) <= 900 * 1500


@DIALECTS
def test_an_error_without_a_message_is_told_as_it_came(dialect: ModuleType) -> None:
    """An error of the provider that has no message stands whole in the text of ours."""
    with pytest.raises(DialectError, check=lambda error: error.where == "error"):
        dialect.decode({"error": {"code": 529}})


@DIALECTS
def test_a_tool_goes_out_as_it_is_written(dialect: ModuleType) -> None:
    """Whatever was offered before, a schema has its own numbers and its own order of fields."""
    one: dict[str, Any] = {"type": "string", "default": 1}
    yes, other = {**one, "default": True}, {"type": "string"}
    for fields in ({"a": one, "b": other}, {"a": yes, "b": other}, {"b": other, "a": one}):
        schema = {"type": "object", "properties": fields}
        tool = ToolDef.from_json_schema(name="written", input_schema=schema)
        sent = dialect.compile(tool).schema["properties"]
        assert list(sent) == list(fields)
        assert sent["a"]["default"] is fields["a"]["default"]


@pytest.mark.parametrize("dialect", OF_LIBRARY, indirect=True)
def test_no_body_is_claimed_by_another_dialect(dialect: ModuleType) -> None:
    """What a dialect writes, and what its provider takes, is taken for its own and no other's."""
    call = ToolMetadata(id="c1", name="echo", arguments="{}")
    items: list[TranscriptItem] = [
        Message("system", "Be brief."),
        Message("user", "Go"),
        AssistantTurn(text="Hm", tool_calls=[call]),
        done(call),
    ]
    echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
    plain = dialect.encode_request(TurnRequest(items=items))
    full = dialect.encode_request(TurnRequest(items=items, tools=(echo,), temperature=0.5))
    for body in (plain, full, bodies("f")[dialect.NAME]):
        claimed = {name for name in OF_LIBRARY if claims(name, body)}
        assert claimed <= {dialect.NAME}, (claimed, body)
    # The field of the conversation tells as much where no other dialect has it.
    assert claims(dialect.NAME, full) or list(KEYS.values()).count(key_of(dialect)) == 1


def claims(name: str, body: dict[str, Any]) -> bool:
    """Whether a dialect takes a body for one that no other has."""
    return facts_of(name).key in body and facts_of(name).is_own_body(body)


@DIALECTS
def test_a_function_of_a_dialect_is_shown_by_name(dialect: ModuleType) -> None:
    """What a console shows of a function of a dialect is a line that names both."""
    name = dialect.__name__.rpartition(".")[2]
    assert repr(dialect.decode) == f"<bound method Dialect.decode of <dialect {name}>>"


@DIALECTS
def test_a_function_of_a_dialect_is_pickled_by_name(dialect: ModuleType) -> None:
    """What holds a function of a dialect can be pickled and copied: the same comes back."""
    for function in (dialect.decode, dialect.check):
        assert pickle.loads(pickle.dumps(function)) == function
    assert copy.deepcopy(dialect.DIALECT) is dialect.DIALECT
