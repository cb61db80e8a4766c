"""A turn that a program changes: its payload says the same, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import AssistantTurn, CommittedRound, Message, ToolMetadata, Transcript
from lutum_py.dialects import openai_chat, openai_responses
from lutum_py.errors import MisuseError
from lutum_py.turns import TextItem, ToolCallItem
from tests.cases import over

from .chat_wire import response as chat_response
from .chat_wire import result
from .every_dialect import OF_LIBRARY, response_of
from .growing import dialect_of
from .test_streams_like_wholes import WIRES, Said

CALLS = [("c1", "f", '{"a":"x"}'), ("c2", "f", '{"a":"y"}')]
SAID = AssistantTurn(text="Well.", tool_calls=[ToolMetadata(id="c1", name="f", arguments="{}")])
ALL = pytest.mark.parametrize("name", OF_LIBRARY)


def goes_on(turn: AssistantTurn) -> Transcript:
    """Append a turn with its results, save, and load again."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    results = [result(call) for call in turn.tool_calls]
    transcript.append_round(CommittedRound(turn, results))
    loaded = Transcript.load_json(transcript.dump_json())
    assert loaded == transcript
    return loaded


@pytest.mark.parametrize("wire", WIRES)
@over("text", ['{"a": "changed"}', "{}", "{a: no JSON"])
def test_other_arguments_go_back_too(wire: Callable[..., Said], text: str) -> None:
    """What `with_arguments` writes is what the turn says, what goes back, and what is loaded."""
    dialect, whole, _ = wire(CALLS)
    turn = dialect.decode(whole)
    changed = turn.with_arguments("c2", text)
    first, second = changed.tool_calls
    assert (first, second.id) == (turn.tool_calls[0], "c2")
    assert "".join(second.arguments.split()) == "".join(text.split())
    assert dialect.decode(changed.payload).tool_calls == changed.tool_calls
    sent = dialect.messages(goes_on(changed))
    assert '"y"' not in json.dumps(sent)
    assert turn.tool_calls[1].arguments == CALLS[1][2]
    assert dialect.decode(whole) == turn


@ALL
@over("text", ["Hello.", ""])
@over("before", ["Well.", ""])
def test_another_text_goes_back_too(name: str, text: str, before: str) -> None:
    """What `with_text` writes is what the turn says, what goes back, and what is loaded."""
    dialect = dialect_of(name)
    made = AssistantTurn(text=before, tool_calls=SAID.tool_calls)
    turn = dialect.decode(response_of(name, made))
    changed = turn.with_text(text)
    assert (changed.text, changed.tool_calls) == (text, turn.tool_calls)
    if text:
        kinds = [type(item) for item in changed.items]
        assert kinds.index(TextItem) < kinds.index(ToolCallItem)
    assert dialect.decode(changed.payload).text == text
    sent = json.dumps(dialect.messages(goes_on(changed)))
    assert ("Well." in sent, "Hello." in sent) == (False, bool(text))


ONE, TWO = ({"type": "text", "text": text} for text in ("One.", "Two."))
CITED = {"citationsContent": {"content": [{"text": "Two."}], "citations": []}}
TWO_TEXTS: dict[str, Any] = {
    "openai_chat": chat_response({"content": [ONE, TWO]}),
    "openai_responses": {
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "One."}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Two."}]},
        ]
    },
    "anthropic_messages": {"content": [ONE, TWO]},
    "gemini_generate_content": {"candidates": [{"content": {"parts": [ONE, {"text": "Two."}]}}]},
    "bedrock_converse": {"output": {"message": {"content": [{"text": "One."}, CITED]}}},
}


@ALL
def test_several_texts_become_one(name: str) -> None:
    """The first text is where the other stands, and the rest is as it was."""
    dialect = dialect_of(name)
    turn = dialect.decode(TWO_TEXTS[name])
    assert turn.text == "One.Two."
    changed = turn.with_text("Three.")
    assert changed.text == dialect.decode(changed.payload).text == "Three."


@ALL
def test_a_changed_turn_with_the_old_payload_is_refused(name: str) -> None:
    """Such a turn could be saved and never loaded; the error names the right way."""
    dialect = dialect_of(name)
    turn = dialect.decode(response_of(name, SAID))
    same = {"dialect": turn.dialect, "payload": turn.payload}
    other = ToolMetadata(id="c1", name="f", arguments='{"a": 2}')
    for change in (
        {"text": turn.text, "tool_calls": [other]},
        {"text": "Other.", "tool_calls": turn.tool_calls},
        {"text": turn.text},
    ):
        with pytest.raises(MisuseError, match=r"turn\.with_arguments\(call_id, text\)"):
            AssistantTurn(**same, **change)
    with pytest.raises(MisuseError, match="is not a response of"):
        AssistantTurn(text="Hi", dialect=name, payload={"what": 1})
    assert AssistantTurn(items=turn.items, **same).items == turn.items


def test_a_turn_without_a_payload_is_changed_as_well() -> None:
    """Neither method needs a payload, and each names what is wrong with its arguments."""
    own = AssistantTurn(text="Well.", tool_calls=SAID.tool_calls, dialect="mine", payload=[1])
    assert own.with_text("Hi").with_arguments("c1", "[]").tool_calls[0].arguments == "[]"
    assert own.with_text("Hi").payload == [1]
    with pytest.raises(MisuseError, match=r"no call 'c2'. Its calls are \['c1'\]"):
        own.with_arguments("c2", "{}")
    odd: Any = {}
    with pytest.raises(MisuseError, match="text"):
        own.with_arguments("c1", odd)
    with pytest.raises(MisuseError, match="text"):
        own.with_text(odd)


def test_parts_beside_a_text_stay() -> None:
    """Reasoning in a content stays where it was, and so does a refusal in a message."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    parts = [thought, {"type": "text", "text": "a"}, "b"]
    turn = openai_chat.decode(chat_response({"content": parts})).with_text("c")
    said = turn.payload["choices"][0]["message"]["content"]
    assert said == [thought, {"type": "text", "text": "c"}]
    no = {"type": "refusal", "refusal": "No."}
    said = {"type": "message", "content": [{"type": "output_text", "text": "a"}, no]}
    turn = openai_responses.decode({"status": "completed", "output": [said]}).with_text("")
    assert turn.payload["output"] == [{**said, "content": [no]}]
    whole = {"output": [{"role": "assistant", "content": "a"}]}
    assert openai_responses.decode(whole).with_text("b").text == "b"


def test_a_call_of_the_older_form_takes_other_arguments() -> None:
    """A host may answer with the one `function_call` of the old form, which is changed in place."""
    old = {"function_call": {"name": "f", "arguments": "{}"}}
    turn = openai_chat.decode(chat_response(old))
    changed = turn.with_arguments(turn.tool_calls[0].id, '{"a":1}')
    assert changed.tool_calls[0].arguments == '{"a":1}'
    assert openai_chat.decode(changed.payload).tool_calls[0].arguments == '{"a":1}'
