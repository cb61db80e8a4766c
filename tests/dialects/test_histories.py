"""What `read_history` gives: the inverse of `messages`, and losses that name their place."""

from __future__ import annotations

import copy
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import DialectError, HistoryError
from lutum_py.testing.strategies import scripts
from lutum_py.turns import TranscriptItem
from tests.cases import over
from tests.profiles import scaled

from .broken_requests import broken_request
from .every_dialect import DIALECTS, as_response, key_of
from .plain import NOT_SHOWN, NOTHING_LEFT, rejected
from .test_every_dialect import calls_of, conversations

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


def text(item: TranscriptItem) -> str:
    return item.model_text if isinstance(item, ToolResult) else item.text


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_reading_inverts_writing(dialect: ModuleType, conversation: list[TranscriptItem]) -> None:
    """Of a transcript that was written everything is read, in its order, and written the same."""
    written = dialect.messages(conversation)
    before = copy.deepcopy(written)
    transcript, losses = dialect.read_history(written)
    assert (written, losses) == (before, [])
    assert dialect.messages(transcript) == written
    assert said(transcript) == said(dialect.read_history(dialect.messages(transcript))[0])
    turns = [item for item in conversation if isinstance(item, AssistantTurn)]
    read = [item for item in transcript if isinstance(item, AssistantTurn)]
    assert "".join(turn.text for turn in read) == "".join(turn.text for turn in turns)
    calls: list[Any] = [call for turn in turns for call in calls_of(turn)]
    assert [call for turn in read for call in calls_of(turn)] == calls
    results = [item for item in conversation if isinstance(item, ToolResult)]
    answers = [item for item in transcript if isinstance(item, ToolResult)]
    assert [each.name for each in answers] == [each.name for each in results]
    told: list[Any] = [item.text for item in conversation if isinstance(item, Message)]
    kept = [item.text for item in transcript if isinstance(item, Message)]
    assert kept == (told if len(kept) == len(told) else kept)
    assert Transcript.load_json(transcript.dump_json()) == transcript


def said(items: Any) -> list[tuple[str, str]]:
    return [(type(item).__name__, text(item)) for item in items]


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_a_turn_comes_back_as_it_was_sent(
    dialect: ModuleType, conversation: list[TranscriptItem]
) -> None:
    """What the model said is kept as its payload, and a body is read like its list."""
    items = [
        dialect.decode(as_response(dialect, dialect.messages([item])))
        if isinstance(item, AssistantTurn)
        else item
        for item in conversation
    ]
    body = dialect.encode_request(TurnRequest(items=items))
    transcript, losses = dialect.read_history(body)
    assert losses == []
    assert dict(dialect.encode_request(TurnRequest(items=transcript))) == body
    assert all(
        turn.payload and turn.dialect == dialect.NAME
        for turn in transcript
        if isinstance(turn, AssistantTurn)
    )


@tool_fn
def add(a: int, b: int) -> int:
    return a + b


class Sums(Toolset):
    add = tool(add)


@DIALECTS
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=scaled(50))
@given(script=scripts(Sums, odd_ids=False))
def test_whatever_a_model_asks_comes_back(
    dialect: ModuleType, script: tuple[AssistantTurn, ...]
) -> None:
    """Calls of any kind, with odd names and broken arguments, are read as they were written."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    for turn in script:
        if turn.tool_calls:
            answers = [rejected(call, "no") for call in turn.tool_calls]
            transcript.append_round(CommittedRound(turn, answers))
        else:
            transcript.append_turn(turn)
    written = dialect.messages(transcript)
    read_again, losses = dialect.read_history(written)
    assert losses == []
    assert dialect.messages(read_again) == written
    assert [type(item) for item in read_again] == [type(item) for item in transcript]


@DIALECTS
def test_whatever_is_given_is_read_or_refused(dialect: ModuleType) -> None:
    """A broken request is refused with all its violations; once it was repaired it is read, or a
    turn of the model in it is named that nobody can read.
    """
    random = Random(17)
    for _ in range(scaled(600)):
        broken = broken_request(dialect.NAME, random)
        found = dialect.check(broken)
        if {each.rule for each in found} - {"empty_conversation"}:
            with pytest.raises(HistoryError) as caught:
                dialect.read_history(broken)
            assert caught.value.dialect == dialect.NAME
            assert list(caught.value.violations) == found
            assert all(str(each) in str(caught.value) for each in found)
        mended, _ = dialect.repair(broken)
        where = key_of(dialect)
        try:
            transcript, losses = dialect.read_history(mended)
        except DialectError as error:
            where = error.where
        else:
            assert all(loss.where and loss.text for loss in losses)
            assert Transcript.load_json(transcript.dump_json()) == transcript
        assert where.startswith(key_of(dialect)), broken


@DIALECTS
@over("given", [None, 5, "text", {}, object()])
def test_what_is_no_request_is_refused(dialect: ModuleType, given: Any) -> None:
    """Anything without a conversation is refused as `check` refuses it."""
    if dialect.check(given):
        with pytest.raises(HistoryError):
            dialect.read_history(given)
    else:
        assert dialect is openai_responses


@DIALECTS
@over("is_body", [False, True])
def test_a_conversation_that_nobody_has_begun_is_an_empty_transcript(
    dialect: ModuleType, is_body: bool
) -> None:
    """What `messages` gives of nothing is read as nothing, though a provider wants to hear more."""
    written: Any = dialect.messages(Transcript())
    request = {key_of(dialect): written} if is_body else written
    assert dialect.check(request)
    assert dialect.read_history(request) == (Transcript(), [])


def test_instructions_are_read_before_anybody_has_spoken() -> None:
    """A body of instructions and no message yet is a transcript of the instructions."""
    transcript, _ = anthropic_messages.read_history({"system": "Be brief.", "messages": []})
    assert list(transcript) == [Message("system", "Be brief.")]


def test_an_empty_conversation_excuses_nothing_else() -> None:
    """Where something else is wrong as well, the error has all of it."""
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "a b"}}]}
    with pytest.raises(HistoryError) as caught:
        openai_chat.read_history(body)
    assert list(caught.value.violations) == openai_chat.check(body)
    assert len(caught.value.violations) == 2


def read(dialect: ModuleType, *said: Any) -> tuple[list[TranscriptItem], list[str]]:
    transcript, losses = dialect.read_history(list(said))
    return list(transcript), [str(loss) for loss in losses]


def image(url: str = PNG, **fields: Any) -> Attachment:
    return Attachment(media_type="image", mime_type="image/png", url=url, **fields)


def file(url: str = PDF, **fields: Any) -> Attachment:
    return Attachment(media_type="file", mime_type="application/pdf", url=url, **fields)


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
        "input[5]: it comes back right behind the turn that made the call",
    ]


def test_a_result_whose_call_the_provider_keeps_is_a_loss() -> None:
    """Nobody here can tell what call it answers, so a message says that something is missing."""
    body: dict[str, Any] = {"previous_response_id": "r1", "input": [output("a"), *ASKED[:1]]}
    transcript, losses = openai_responses.read_history(body)
    assert list(transcript) == [Message("user", NOT_SHOWN), Message("user", "Go")]
    assert [str(each) for each in losses] == [
        "input[0]: it answers a call that the request does not show"
    ]


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


def test_parts_of_gemini_are_held() -> None:
    """Both ways of writing a key are read; a response of another shape is the output, whole."""
    answers = [
        {"functionResponse": {"name": "f", "response": {"output": {"a": None}}}},
        {"function_response": {"name": "f", "id": "x", "response": {"error": "no"}}},
        {"functionResponse": {"name": "f", "response": {"result": 3}, "odd": 1}},
        {
            "functionResponse": {
                "name": "f",
                "response": {"output": None},
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                    {"odd": 1},
                ],
            }
        },
    ]
    calls: list[Any] = [{"functionCall": {"name": "f", "args": {}}} for _ in answers]
    calls[1] = {"function_call": {"name": "f", "args": {}, "id": "x"}}
    told: list[Any] = [
        {"text": "See", "thought": False},
        {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}},
        {"fileData": {"fileUri": "https://e.org/a.pdf", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf"}},
        {"videoMetadata": {}},
    ]
    contents: list[Any] = [
        {"parts": {"text": "Go"}},
        {"role": "model", "parts": calls[:2]},
        {"role": "model", "parts": calls[2:]},
        {"role": "function", "parts": [*answers, {"text": "Well?"}]},
        {"role": "user", "parts": told},
    ]
    body: dict[str, Any] = {
        "system_instruction": {"parts": [{"text": "Be brief."}, "x"]},
        "contents": contents,
    }
    transcript, losses = gemini_generate_content.read_history(body)
    items = list(transcript)
    assert items[:3] == [
        Message("system", "Be brief."),
        Message("system", "x"),
        Message("user", "Go"),
    ]
    results = [item for item in items if isinstance(item, ToolResult)]
    assert [(each.result, each.status) for each in results] == [
        ('{"a":null}', "success"),
        ('"no"', "error"),
        ('{"result":3}', "success"),
        ("null", "success"),
    ]
    assert results[3].attachments == (image(),)
    assert items[-2:] == [
        Message("user", "Well?"),
        Message("user", "See", (image(), file("https://e.org/a.pdf"))),
    ]
    assert sorted(loss.where for loss in losses) == sorted(
        [
            "contents[3].parts[2].functionResponse.response",
            "contents[3].parts[2].functionResponse.odd",
            "contents[3].parts[3].functionResponse.parts[1]",
            "contents[3].parts[3].functionResponse.parts",
            "contents[4].parts[0].thought",
            "contents[4].parts[3]",
            "contents[4].parts[4]",
        ]
    )
    plain: dict[str, Any] = {"systemInstruction": "Be brief.", "contents": contents[:1]}
    assert gemini_generate_content.read_history(plain)[0][0] == Message("system", "Be brief.")


def test_a_turn_that_cannot_be_read_is_named() -> None:
    """What `check` lets pass and no decoder reads is an error with its place in the list."""
    broken = {"role": "assistant", "content": [{"type": "text"}]}
    with pytest.raises(DialectError) as caught:
        openai_chat.read_history([ASKED[0], broken])
    assert caught.value.where == "messages[1].choices[0].message.content[0]"


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
    items, losses = read(openai_responses, ASKED[0], call, found)
    assert isinstance(items[2], ToolResult)
    assert items[2].output == {"tools": []}
    assert losses == ["input[2]: it comes back as the output of a function"]


def test_two_calls_of_one_id_are_refused() -> None:
    """Gemini tells results by their order; a transcript does by the ids, so each has to be one."""
    calls = [{"functionCall": {"id": "c1", "name": "f", "args": {}}}] * 2
    answers = [{"functionResponse": {"id": "c1", "name": "f", "response": {}}}] * 2
    contents = [
        {"role": "user", "parts": [{"text": "Go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]
    assert gemini_generate_content.check(contents) == []
    with pytest.raises(DialectError, check=lambda error: error.where == "contents"):
        gemini_generate_content.read_history(contents)
