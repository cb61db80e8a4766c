"""What input items of Responses hold, read as a transcript, and what of them is lost."""

from __future__ import annotations

from typing import Any, Final

from lutum_py import (
    Message,
    ToolResult,
    Transcript,
)
from lutum_py.dialects import (
    openai_responses,
)

from .histories import PNG, file, image, read
from .plain import NOT_SHOWN

ASKED: Final = {"role": "user", "content": "Go"}


def test_what_stands_in_the_input_of_responses_is_held() -> None:
    """Files, text in place of a list, instructions and references come back where they stood."""
    body: dict[str, Any] = {"instructions": "Be brief.", "input": "Hello"}
    transcript, losses = openai_responses.read_history(body)
    assert list(transcript) == [Message("system", "Be brief."), Message("user", "Hello")]
    assert losses == []
    assert openai_responses.read_history({"previous_response_id": "r1"})[0] == Transcript()
    content: list[Any] = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": PNG, "detail": "high"},
        {"type": "input_file", "file_url": "https://e.org/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "odd"},
    ]
    items, lost = read(openai_responses, {"type": "message", "role": "user", "content": content})
    assert items == [Message("user", "See", (image(), file("https://e.org/a.pdf")))]
    where = "input[0].content"
    assert [loss.partition(":")[0] for loss in lost] == [
        f"{where}[1].detail",
        f"{where}[3]",
        f"{where}[4]",
    ]
    said: list[Any] = [
        {"role": "user", "content": "Go"},
        {"id": "msg_1"},
        {"type": "message", "id": "m1", "role": "assistant", "content": ""},
        {"type": "message", "id": "m2", "role": "assistant", "content": "Hello"},
    ]
    items, lost = read(openai_responses, *said)
    assert lost == []
    assert openai_responses.messages(items) == [
        said[0],
        {"type": "item_reference", "id": "msg_1"},
        *said[2:],
    ]


def function_call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, said: Any = "3") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


def test_a_late_result_goes_to_its_call() -> None:
    """A result behind what others said comes back right behind its turn, which is told."""
    said: list[Any] = [
        {"role": "user", "content": "Go"},
        function_call("a"),
        function_call("b"),
        output("a"),
        {"role": "assistant", "content": "Hm."},
        output("b", [{"type": "input_image", "image_url": PNG}]),
    ]
    items, losses = read(openai_responses, *said)
    assert openai_responses.messages(items)[:4] == [*said[:4]]
    assert openai_responses.check(openai_responses.messages(items)) == []
    assert losses == [
        "input[5]: it comes back right after the turn that made the call",
    ]


def test_a_result_whose_call_the_provider_keeps_is_a_loss() -> None:
    """Nobody here can tell what call it answers, so a message says that something is missing."""
    body: dict[str, Any] = {"previous_response_id": "r1", "input": [output("a"), ASKED]}
    transcript, losses = openai_responses.read_history(body)
    assert list(transcript) == [Message("user", NOT_SHOWN), Message("user", "Go")]
    assert [str(each) for each in losses] == [
        "input[0]: it answers a call that the request does not show"
    ]


def test_a_search_that_the_program_ran_is_held() -> None:
    """What it found has no text of its own, and comes back as the output of a function."""
    call: dict[str, Any] = {
        "type": "tool_search_call",
        "call_id": "s",
        "execution": "client",
        "arguments": {},
    }
    found: dict[str, Any] = {
        "type": "tool_search_output",
        "call_id": "s",
        "execution": "client",
        "tools": [],
    }
    items, losses = read(openai_responses, ASKED, call, found)
    assert isinstance(items[2], ToolResult)
    assert items[2].output == {"tools": []}
    assert losses == ["input[2]: it comes back as the output of a function"]
