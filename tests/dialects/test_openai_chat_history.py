"""What messages of Chat Completions hold, read as a transcript, and what of them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    Attachment,
    Message,
    ToolResult,
)
from lutum_py.dialects import (
    openai_chat,
)
from lutum_py.errors import DialectError, HistoryError
from tests.cases import over

from .histories import PDF, PNG, file, image, read


def test_an_empty_conversation_excuses_nothing_else() -> None:
    """Where something else is wrong as well, the error has all of it."""
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "a b"}}]}
    with pytest.raises(HistoryError) as caught:
        openai_chat.read_history(body)
    assert list(caught.value.violations) == openai_chat.check(body)
    assert len(caught.value.violations) == 2


def test_what_a_user_says_in_chat_is_held() -> None:
    """Text, pictures, sound and files come back in their order, and nothing else goes unsaid."""
    parts: list[Any] = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        {"type": "text", "text": "and"},
        {"type": "image_url", "image_url": "https://e.org/a.png", "odd": 1},
        {"type": "text", "text": "", "cache_control": {}},
        {"type": "input_audio", "input_audio": {"data": "AAA=", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "AAA=", "format": "wav"}},
        {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": PDF, "filename": "attachment.pdf"}},
        {"type": "video_url", "video_url": {"url": "https://e.org/film"}},
        {"type": "document_url", "document_url": "https://e.org/a?b=c"},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "image_url", "image_url": {"url": "http://e.org/a.png", "detail": "auto"}},
        {"type": "odd", "odd": {}},
        {"type": "odder"},
        {"type": "text", "text": "Well?"},
    ]
    items, losses = read(openai_chat, {"role": "user", "name": "Ann", "content": parts})
    audio = {"media_type": "audio", "url": "data:audio/mpeg;base64,AAA="}
    assert items == [
        Message(
            "user",
            "Look:",
            (
                image(),
                image("https://e.org/a.png", caption="and"),
                Attachment(**audio, mime_type="audio/mpeg"),  # type: ignore[arg-type]
                Attachment(
                    media_type="audio", mime_type="audio/wav", url="data:audio/wav;base64,AAA="
                ),
                file(name="a.pdf"),
                file(),
                Attachment(media_type="video", mime_type="video/mp4", url="https://e.org/film"),
                Attachment(
                    media_type="file",
                    mime_type="application/octet-stream",
                    url="https://e.org/a?b=c",
                ),
            ),
        ),
        Message("user", "Well?"),
    ]
    no_place, no_file = "a transcript has no place for it", "a file is held by its `https:` address"
    content, held = "messages[0].content", "a message holds a text and then its files"
    assert [loss.partition("; ")[0] for loss in losses] == [
        f"{content}[1].image_url.detail: {no_place}",
        f"{content}[3].odd: {no_place}",
        f"{content}[4].cache_control: {no_place}",
        f"{content}[11]: {no_file} or its data",
        f"{content}[12]: {no_file} or its data",
        f"{content}[13]: {no_place}",
        f"{content}[14]: {no_place}",
        f"messages[0]: it comes back as 2 messages, because {held}",
        f"messages[0].name: {no_place}",
    ]


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED: list[Any] = [{"role": "user", "content": "Go"}, {"role": "assistant", "tool_calls": [CALL]}]


@over(
    "content, result, model_text, files",
    [
        ("3", "3", "3", ()),
        ('{"a": 1}', '{"a": 1}', '{"a": 1}', ()),
        ('"3"', r'"\"3\""', '"3"', ()),
        ("It is 3.", '"It is 3."', "It is 3.", ()),
        ("", '""', "", ()),
        ([{"type": "text", "text": "It is 3."}], '"It is 3."', "It is 3.", ()),
        (
            [{"type": "image_url", "image_url": {"url": PNG}}, {"type": "text", "text": "A cat"}],
            '"A cat"',
            "A cat",
            (image(),),
        ),
    ],
)
def test_a_result_in_chat_is_read_as_the_model_read_it(
    content: Any, result: str, model_text: str, files: tuple[Attachment, ...]
) -> None:
    """A result is JSON for the program where it is JSON, and for the model what it was."""
    answer: dict[str, Any] = {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "f",
        "content": content,
        "odd": 1,
    }
    items, losses = read(openai_chat, *ASKED, answer)
    found = items[2]
    assert isinstance(found, ToolResult)
    assert (found.result, found.model_text, found.attachments) == (result, model_text, files)
    assert found.arguments == "{}"
    moved = ["messages[2]: it comes back as one text, and its files after that"] if files else []
    assert losses == [*moved, "messages[2].odd: a transcript has no place for it"]


def test_the_old_form_of_a_call_is_read() -> None:
    """A call of the single-function form is answered by a message of the function."""
    call: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    answer: dict[str, Any] = {"role": "function", "name": "f", "content": "3"}
    items, losses = read(openai_chat, ASKED[0], call, answer)
    assert losses == []
    assert openai_chat.messages(items) == [ASKED[0], call, answer]


def test_a_turn_that_cannot_be_read_is_named() -> None:
    """What `check` lets pass and no decoder reads is an error with its place in the list."""
    broken = {"role": "assistant", "content": [{"type": "text"}]}
    with pytest.raises(DialectError) as caught:
        openai_chat.read_history([ASKED[0], broken])
    assert caught.value.where == "messages[1].choices[0].message.content[0]"
