"""What a history says was denied or failed is no success where it is read."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)

USER = {"role": "user", "content": "Go"}


def chat(said: str) -> Any:
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    return openai_chat, [USER, asked, {"role": "tool", "tool_call_id": "c1", "content": said}]


def responses(said: str, **more: Any) -> Any:
    call = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": said, **more}
    return openai_responses, [USER, call, output]


def anthropic(said: str, **more: Any) -> Any:
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": said, **more}
    asked = {"role": "assistant", "content": [call]}
    return anthropic_messages, [USER, asked, {"role": "user", "content": [result]}]


def gemini(response: Any) -> Any:
    call = {"role": "model", "parts": [{"functionCall": {"name": "pay", "args": {}}}]}
    answer = {"functionResponse": {"name": "pay", "response": response}}
    asked = {"role": "user", "parts": [{"text": "Go"}]}
    return gemini_generate_content, [asked, call, {"role": "user", "parts": [answer]}]


WORDS = {
    "__lutum_rejected__: too much": "rejected",
    "Cancelled: no": "cancelled",
    "Outcome unknown: the line was cut.": "indeterminate",
    "The tool call was denied.": "rejected",
    "Tool execution was not approved.": "rejected",
    "User rejected the tool call for `pay` with id c1": "rejected",
}


@pytest.mark.parametrize("words", WORDS)
def test_a_result_that_says_it_was_denied_is_no_success(words: str) -> None:
    """The words by which this library, and those that are known, say so are read in every body."""
    for module, request in (
        chat(words),
        responses(words),
        anthropic(words),
        gemini({"output": words}),
    ):
        transcript, losses = module.read_history(request)
        result = transcript[-1]
        assert result.status == WORDS[words]
        assert result.model_text == words
        assert len(losses) == (module in (anthropic_messages, gemini_generate_content))
    assert anthropic_messages.read_history(anthropic(words, is_error=True)[1])[1] == []


@pytest.mark.parametrize(
    ("response", "losses"),
    [
        ({"error": "no"}, 0),
        ({"error": {"code": 3}}, 1),
        ({"error": 7}, 1),
        ({"error": "no", "code": 3}, 1),
        ({"output": None, "error": ["a"]}, 1),
    ],
)
def test_an_error_of_any_shape_is_one(response: Any, losses: int) -> None:
    """A function response of Gemini that has an error is no success, and nothing of it is lost."""
    module, request = gemini(response)
    transcript, found = module.read_history(request)
    assert transcript[-1].status == "error"
    assert len(found) == losses
    assert "no" in transcript[-1].model_text or "no" not in str(response)


@pytest.mark.parametrize("status", ["incomplete", "failed", "in_progress"])
def test_what_did_not_complete_is_no_success(status: str) -> None:
    """An output of another status than completed is an error, and its place says so."""
    module, request = responses("3", status=status)
    transcript, (loss,) = module.read_history(request)
    assert transcript[-1].status == "error"
    assert loss.where == "input[2].status"
    module, request = responses("3", status="completed")
    transcript, losses = module.read_history(request)
    assert (transcript[-1].status, losses) == ("success", [])
