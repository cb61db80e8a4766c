"""What a history says was denied or failed is no success where it is read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Message,
    NeedsTools,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    execution,
    tool_fn,
)
from lutum_py.dialects import DIALECTS, gemini_generate_content, openai_responses
from lutum_py.errors import (
    Cancelled,
    Denied,
    ExecutionFailed,
    Internal,
    InvalidArguments,
    NotFound,
    OutcomeUnknown,
    TimedOut,
    ToolError,
)

from .every_dialect import OF_LIBRARY, WIRES

GEMINI: Any = gemini_generate_content
RESPONSES: Any = openai_responses

TOOL_ERRORS = [
    InvalidArguments,
    ExecutionFailed,
    Denied,
    NotFound,
    Internal,
    TimedOut,
    Cancelled,
    OutcomeUnknown,
]

WORDS = {
    "Rejected: too much": "rejected",
    "Cancelled: no": "cancelled",
    "Not executed: the user left": "cancelled",
    "Outcome unknown: the line was cut.": "indeterminate",
    "[not_found] no such bill": "error",
    "[program_limit] Execution failed: no seconds left": "error",
    "[after_doubt] Cancelled: an earlier call": "cancelled",
    "[timed_out] Outcome unknown: it did not finish": "indeterminate",
    '[The arguments of this call were edited: to = "Bo"]\n[denied] Denied: no': "error",
    "[The arguments of call c1/1 were edited: a = 1]\n[The arguments of this call were edited: "
    "b = [1]]\nOutcome unknown: it was started": "indeterminate",
    "The tool call was denied.": "rejected",
    "Tool execution was not approved.": "rejected",
    "User rejected the tool call for `pay` with id c1": "rejected",
}


def status_of(transcript: Transcript) -> str:
    result = transcript[-1]
    assert isinstance(result, ToolResult)
    return result.status


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
    "words", ["[note] denied", "[12] Not executed: x.", "[denied]", "[The arguments of ", ""]
)
def test_what_only_looks_like_these_words_is_a_success(words: str) -> None:
    """A text in brackets is a code only if it is one of those that results of this library have."""
    for name in OF_LIBRARY:
        transcript, losses = import_module(DIALECTS[name]).read_history(WIRES[name].answered(words))
        assert (transcript[-1].status, losses) == ("success", []), name


@pytest.mark.parametrize("error", TOOL_ERRORS)
def test_how_a_tool_failed_is_read_from_every_body(error: type[ToolError]) -> None:
    """The result of a tool that raised has, where it is read, the status that it had."""

    @tool_fn
    def pay() -> str:
        """Pay."""
        raise error("the bank is closed")

    shop = Toolset.of("Shop", pay)
    call = ToolMetadata(id="c1", name="pay", arguments="{}")
    round_ = shop.read_turn(AssistantTurn(tool_calls=[call]))
    assert isinstance(round_, NeedsTools)
    plan = round_.round.plan()
    said = Transcript()
    said.push(Message("user", "Pay!"))
    plan.commit(said, execution.execute_all_sync(plan.pending))
    for name in OF_LIBRARY:
        dialect = import_module(DIALECTS[name])
        read, _ = dialect.read_history(dialect.messages(said))
        assert status_of(read) == status_of(said), name


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
