"""Arguments that are no JSON: hosts parse them, and refuse each request that has such."""

from __future__ import annotations

from typing import Any

from lutum_py import AssistantTurn, ToolMetadata
from lutum_py.dialects import openai_chat, openai_responses
from tests.cases import over

from .chat_wire import function
from .chat_wire import response as chat
from .responses_wire import call
from .responses_wire import response as responses

CASES = [
    ('{"a": 1}', '{"a": 1}'),
    (' {"a":1}\n', ' {"a":1}\n'),
    ('{"a":', '{"INVALID_JSON":"{\\"a\\":"}'),
    ('{"a":1}</tool_call>', '{"INVALID_JSON":"{\\"a\\":1}</tool_call>"}'),
    ("[1]", "[1]"),
    ("null", "null"),
    (" ", "{}"),
]


@over("text, sent", CASES)
def test_arguments_go_back_as_json(text: str, sent: str) -> None:
    """What a model wrote goes back as it came, or inside of an object; a host reads it either way.
    The turn itself keeps the text.
    """
    turn = openai_chat.decode(chat({"tool_calls": [function("c1", arguments=text)]}))
    old = openai_chat.decode(chat({"function_call": {"name": "f", "arguments": text}}))
    item = openai_responses.decode(responses(call("c1", text)))
    assert turn.tool_calls[0].arguments == item.tool_calls[0].arguments == text
    by_hand = AssistantTurn(tool_calls=[ToolMetadata(id="c1", name="f", arguments=text)])
    for each in (turn, by_hand, item):
        (said,) = openai_chat.messages([each])
        assert said["tool_calls"][0]["function"]["arguments"] == sent
        (called,) = openai_responses.messages([each])
        assert called["arguments"] == sent
    (said,) = openai_chat.messages([old])
    assert said["function_call"]["arguments"] == sent


def test_free_text_goes_back_as_it_came() -> None:
    """The input of a custom tool is no JSON, and a host that sends no arguments gets none back."""
    custom: dict[str, Any] = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "{"}}
    for calls in ([custom], [function("c1", arguments="")]):
        (said,) = openai_chat.messages([openai_chat.decode(chat({"tool_calls": calls}))])
        assert said["tool_calls"] == calls
