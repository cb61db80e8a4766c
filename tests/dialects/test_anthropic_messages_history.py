"""What messages of the Messages API hold, read as a transcript, and what of them is lost."""

from __future__ import annotations

from typing import Any

from lutum_py import (
    Attachment,
    Message,
    ToolResult,
)
from lutum_py.dialects import (
    anthropic_messages,
)

from .histories import file, image, read
from .plain import NOTHING_LEFT


def test_instructions_are_read_before_anybody_has_spoken() -> None:
    """A body of instructions and no message yet is a transcript of the instructions."""
    transcript, _ = anthropic_messages.read_history({"system": "Be brief.", "messages": []})
    assert list(transcript) == [Message("system", "Be brief.")]


def test_blocks_of_the_messages_api_are_held() -> None:
    """Documents, pictures, results and errors come back; what has no place is named."""
    system: list[Any] = [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        7,
    ]
    blocks: list[Any] = [
        {"type": "tool_result", "tool_use_id": "a", "is_error": True, "odd": 1},
        {"type": "text", "text": "See"},
        {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
        {
            "type": "document",
            "title": "a.txt",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
        },
        {"type": "document", "source": {"type": "url", "url": "https://e.org/a"}, "context": "x"},
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
        {"type": "container_upload", "file_id": "f"},
    ]
    call: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    said: list[Any] = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": blocks},
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
    ]
    transcript, losses = anthropic_messages.read_history({"system": system, "messages": said})
    items = list(transcript)
    assert items[0] == Message("system", "Be brief.")
    result = items[3]
    assert isinstance(result, ToolResult)
    assert (result.status, result.result) == ("error", '""')
    note = Attachment(
        media_type="file", mime_type="text/plain", url="data:text/plain;base64,aGk=", name="a.txt"
    )
    assert items[4] == Message(
        "user", "See", (image("https://e.org/a.png"), note, file("https://e.org/a"))
    )
    assert items[6] == Message("user", NOTHING_LEFT)
    assert [loss.where for loss in losses] == [
        "system[0].cache_control",
        "system[1]",
        "messages[2].content[0].odd",
        "messages[2].content[4].context",
        "messages[2].content[5]",
        "messages[2].content[6]",
        "messages[4].content[0]",
    ]
    written = anthropic_messages.messages(transcript)
    assert written[2]["content"][1:4] == blocks[1:4]
    assert written[3] == said[3]


def test_calls_of_two_messages_in_a_row_are_one_turn() -> None:
    """The API counts them as one turn, whose results come behind the last message."""
    calls: list[Any] = [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in "ab"]
    answers = [{"type": "tool_result", "tool_use_id": each, "content": "3"} for each in "ab"]
    said: list[Any] = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": calls[:1]},
        {"role": "assistant", "content": "Hm."},
        {"role": "assistant", "content": calls[1:]},
        {"role": "user", "content": answers},
    ]
    items, losses = read(anthropic_messages, *said)
    assert losses == []
    text = {"type": "text", "text": "Hm."}
    assert anthropic_messages.messages(items)[1:] == [
        {"role": "assistant", "content": [calls[0], text, calls[1]]},
        said[4],
    ]


def test_the_texts_of_a_result_are_one() -> None:
    """A result holds one text: what was sent in two comes back in one, and is named."""
    call: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    texts = [{"type": "text", "text": text} for text in ("One", "Two")]
    items, losses = read(
        anthropic_messages,
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": texts}],
        },
    )
    assert isinstance(items[2], ToolResult)
    assert items[2].result == '"One\\n\\nTwo"'
    assert losses == ["messages[2].content[0]: it comes back as one text, and its files after that"]
