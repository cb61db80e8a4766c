"""What a history says was denied or failed is no success where it is read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from lutum_py.dialects import DIALECTS, gemini_generate_content, openai_responses

from .every_dialect import OF_LIBRARY, WIRES

GEMINI: Any = gemini_generate_content
RESPONSES: Any = openai_responses

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
    for name in OF_LIBRARY:
        wire, read = WIRES[name], import_module(DIALECTS[name]).read_history
        transcript, losses = read(wire.answered(words))
        result = transcript[-1]
        assert result.status == WORDS[words], name
        assert result.model_text == words, name
        assert len(losses) == wire.HAS_ERRORS, name
        assert read(wire.answered(words, is_error=True))[1] == [], name


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
    asked, call, answer = WIRES["gemini_generate_content"].answered("")
    answer["parts"][0]["functionResponse"]["response"] = response
    transcript, found = GEMINI.read_history([asked, call, answer])
    assert transcript[-1].status == "error"
    assert len(found) == losses
    assert "no" in transcript[-1].model_text or "no" not in str(response)


@pytest.mark.parametrize("status", ["incomplete", "failed", "in_progress"])
def test_what_did_not_complete_is_no_success(status: str) -> None:
    """An output of another status than completed is an error, and its place says so."""
    asked, call, output = WIRES["openai_responses"].answered("3")
    request = [asked, call, {**output, "status": status}]
    transcript, (loss,) = RESPONSES.read_history(request)
    assert transcript[-1].status == "error"
    assert loss.where == "input[2].status"
    request = [asked, call, {**output, "status": "completed"}]
    transcript, losses = RESPONSES.read_history(request)
    assert (transcript[-1].status, losses) == ("success", [])
