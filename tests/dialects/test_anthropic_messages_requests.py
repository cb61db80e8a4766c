"""The Messages API: what its requests come to."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from lutum_py import AssistantTurn, Attachment, CommittedRound, Message, ToolDef, TurnRequest
from lutum_py.dialects import (
    anthropic_messages,
)
from lutum_py.dialects import anthropic_messages as dialect
from lutum_py.errors import MisuseError
from lutum_py.turns import ReasoningItem, RefusalItem, TextItem, TranscriptItem
from lutum_py.typing import ToolChoice
from tests.cases import over

from .anthropic_wire import CALL, ECHO, call_of, response, result, turn_of
from .other_model import sent
from .plain import rejected


def test_a_round_goes_back_as_it_came() -> None:
    """The turn goes back block by block, and then the results at the head of one user message."""
    cited = {
        "type": "text",
        "text": "Here",
        "citations": [
            {"type": "char_location", "document_title": None, "file_id": "f1"},
            {"type": "new_location"},
        ],
    }
    thinking = {"type": "thinking", "thinking": "", "signature": "sig"}
    other = {**CALL, "id": "t2", "caller": {"type": "direct"}}
    turn = dialect.decode(response(thinking, cited, {"type": "text", "text": " "}, CALL, other))
    first, second = turn.tool_calls
    done = CommittedRound(turn, [result(first), rejected(second, "no")])
    assert dialect.messages(done) == [
        {
            "role": "assistant",
            "content": [
                thinking,
                {
                    **cited,
                    "citations": [
                        {"type": "char_location", "document_title": None},
                        {"type": "new_location"},
                    ],
                },
                CALL,
                other,
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "done"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": "Rejected: no",
                    "is_error": True,
                },
            ],
        },
    ]


def test_what_goes_out_is_the_callers_own() -> None:
    """Changing what was rendered never changes the transcript."""
    turn = dialect.decode(response(CALL))
    items: list[TranscriptItem] = [turn, result(turn.tool_calls[0])]
    before = copy.deepcopy(dialect.messages(items))
    dialect.messages(items)[0]["content"][0]["input"]["a"].append(2)
    assert dialect.messages(items) == before


def test_results_come_before_what_the_user_says() -> None:
    """Everything between two turns is one user message, results first, blank text left out."""
    call = call_of()
    rendered = dialect.messages(
        [
            Message("user", " "),
            Message("user", "One"),
            Message("user", "Two"),
            turn_of(call, text="Hm"),
            Message("user", "And?"),
            result(call),
        ]
    )
    assert [message["role"] for message in rendered] == ["user", "assistant", "user"]
    assert [block["text"] for block in rendered[0]["content"]] == ["One", "Two"]
    assert [block["type"] for block in rendered[2]["content"]] == ["tool_result", "text"]


def test_a_turn_of_another_dialect_goes_out_in_the_neutral_view() -> None:
    """Text first, then calls with ids that the API takes; what is lost is listed."""
    odd, list_ = call_of("functions.echo:0", "{bad"), call_of("c2", "[1]")
    blank, null = call_of("c3", ""), call_of("c4", "null")
    calls = (odd, list_, blank, null)
    turn = AssistantTurn(
        items=[
            ReasoningItem("secret"),
            RefusalItem("Not this."),
            *turn_of(*calls).items,
            TextItem("But"),
        ],
        dialect="another",
        payload={},
    )
    items: list[Any] = [Message("user", "Go"), turn, *map(result, calls)]
    body = dialect.encode_request(TurnRequest(items=items))
    said = body["messages"][1]["content"]
    assert [block.get("text") for block in said[:2]] == ["Not this.", "But"]
    assert [block["input"] for block in said[2:]] == [
        {"INVALID_JSON": "{bad"},
        {"INVALID_JSON": "[1]"},
        {},
        {},
    ]
    ids = [block["id"] for block in said[2:]]
    assert ids[0].startswith("toolu_")
    assert ids[1:] == ["c2", "c3", "c4"]
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ids
    assert [str(loss).split(":")[0] for loss in body.losses] == [
        "items[1]",
        "items[1].tool_calls[0]",
        "items[1].tool_calls[1]",
    ]


def test_a_result_without_its_turn_keeps_its_id() -> None:
    """A result alone, as for a transcript that was cut, goes out under the id that it has."""
    assert dialect.messages([result(call_of())])[0]["content"][0]["tool_use_id"] == "c1"


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_a_turn_that_said_nothing_is_left_out() -> None:
    """The API refuses an empty message, so a turn without a word has none."""
    items: list[TranscriptItem] = [dialect.decode(response()), Message("user", "Hello?")]
    assert dialect.messages(items) == [said("Hello?")]


def test_an_id_of_ours_never_goes_back() -> None:
    """A call that came without an id is answered without one."""
    turn = dialect.decode(response({"type": "tool_use", "name": "echo", "input": {}}))
    rendered = dialect.messages([turn, result(turn.tool_calls[0])])
    assert rendered[1]["content"] == [{"type": "tool_result", "content": "done"}]


def test_instructions_stand_beside_the_messages() -> None:
    """System and developer go into `system`; one that comes late moves to the front, as a loss."""
    note = Attachment(media_type="file", mime_type="application/pdf", url="https://e.org/a.pdf")
    items = [
        Message("system", "Be brief."),
        Message("system", " "),
        Message("user", "Hello"),
        Message("developer", "Be kind.", (note,)),
    ]
    assert dialect.messages(items) == [said("Hello")]
    body = dialect.encode_request(TurnRequest(items=items))
    assert body["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Be kind."},
    ]
    assert [loss.where for loss in body.losses] == ["items[3]", "items[3].attachments[0]"]
    assert dialect.encode_request(TurnRequest(items=items[:3]))["system"] == "Be brief."


def test_only_transcript_items_are_rendered() -> None:
    """Anything else than a message, turn or result is a type error."""
    with pytest.raises(MisuseError):
        dialect.messages([{"role": "user"}])  # type: ignore[list-item]


def attached(kind: Any, mime_type: str, url: str, caption: str | None = None) -> Attachment:
    return Attachment(media_type=kind, mime_type=mime_type, url=url, caption=caption)


DATA = base64.b64encode(b"hi").decode()


@over(
    "attachment, block",
    [
        (
            attached("image", "image/png", "https://e.org/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
        ),
        (
            attached("image", "image/png", f"data:image/png;base64,{DATA}"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": DATA},
            },
        ),
        *(
            (
                attached("image", name, f"data:{name};base64,{DATA}"),
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/jpeg", "data": DATA},
                },
            )
            for name in ("image/jpg", "IMAGE/JPEG")
        ),
        (attached("image", "image/tiff", f"data:image/tiff;base64,{DATA}"), None),
        (
            attached("file", "application/pdf", "https://e.org/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}},
        ),
        (
            attached("file", "application/pdf", f"data:application/pdf;base64,{DATA}"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
            },
        ),
        (
            attached("file", "text/csv", "data:text/csv,hi"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
            },
        ),
        (attached("file", "text/csv", "https://e.org/a.csv"), None),
        (attached("file", "text/csv", "data:text/csv;base64,plain"), None),
        (attached("file", "application/zip", f"data:application/zip;base64,{DATA}"), None),
        (attached("video", "video/mp4", "https://e.org/a.mp4"), None),
    ],
)
def test_attachments_go_where_the_api_has_a_place(attachment: Attachment, block: Any) -> None:
    """Images, PDF files and plain text become blocks, anything else a loss."""
    call = call_of()
    items: list[TranscriptItem] = [
        Message("user", "See", (attachment,)),
        turn_of(call),
        result(call, attachments=[attachment]),
    ]
    body = dialect.encode_request(TurnRequest(items=items))
    content = body["messages"][0]["content"]
    in_result = body["messages"][2]["content"][0]["content"]
    named = "" if block else f"\n{attachment.described}"
    assert in_result[0] == {"type": "text", "text": f"done{named}"}
    if block is None:
        assert content == said("See")["content"]
        assert [loss.where for loss in body.losses] == [
            "items[0].attachments[0]",
            "items[2].attachments[0]",
        ]
    else:
        assert content[1] == in_result[1] == block
        assert body.losses == ()


def test_a_caption_stands_before_its_file() -> None:
    """The caption of an attachment is a text block before it."""
    picture = attached("image", "image/png", "https://e.org/a.png", "A cat")
    blocks = dialect.messages([Message("user", "", (picture,))])[0]["content"]
    assert blocks[0] == {"type": "text", "text": "A cat"}
    assert blocks[1]["type"] == "image"


def test_a_request_has_what_was_asked_for() -> None:
    """Tools, choice, parameters and extras stand where the API wants them."""
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    body = dialect.encode_request(
        TurnRequest(
            items=[Message("user", "Go")],
            tools=(ECHO,),
            tool_choice=ToolChoice("required"),
            temperature=0.5,
            max_output_tokens=9,
            parallel_tool_calls=False,
            extra={"tools": [hosted], "thinking": {"type": "enabled"}},
        )
    )
    assert body == {
        "messages": [said("Go")],
        "max_tokens": 9,
        "tools": [*dialect.tools([ECHO]), hosted],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "temperature": 0.5,
        "thinking": {"type": "enabled"},
    }
    plain = dialect.encode_request(TurnRequest(items=[Message("user", "Go")]))
    assert plain == {"messages": [said("Go")], "max_tokens": dialect.DEFAULT_MAX_TOKENS}


def test_parallel_calls_are_a_matter_of_the_choice() -> None:
    """The word on parallel calls stands in the choice, where there is something to choose."""
    for parallel, mode, choice in (
        (None, "auto", {"type": "auto"}),
        (True, "auto", {"type": "auto", "disable_parallel_tool_use": False}),
        (False, "none", {"type": "none"}),
    ):
        request = TurnRequest(
            items=[Message("user", "Go")],
            tools=(ECHO,),
            tool_choice=ToolChoice(mode),  # type: ignore[arg-type]
            parallel_tool_calls=parallel,
        )
        assert dialect.encode_request(request)["tool_choice"] == choice


def test_a_choice_is_said_in_the_words_of_the_api() -> None:
    """Each mode of a choice has its word, and one tool its name."""
    assert dialect.tool_choice(ToolChoice("specific", "echo")) == {"type": "tool", "name": "echo"}
    modes = [dialect.tool_choice(ToolChoice(mode)) for mode in ("auto", "required", "none")]
    assert [choice["type"] for choice in modes] == ["auto", "any", "none"]


def test_tools_are_described() -> None:
    """A tool has its name, text and schema; strict mode is said of each."""
    assert dialect.tools([ECHO], strict=True) == [
        {
            "name": "echo",
            "description": "Say it",
            "input_schema": {
                "type": "object",
                "properties": {},
                "required": [],
                "additionalProperties": False,
            },
            "strict": True,
        }
    ]
    assert "description" not in dialect.tools([ECHO.with_description("")])[0]
    assert dialect.compile(ECHO).losses == ()
    assert dialect.tools([ECHO.with_name("no.dots")])[0]["name"] == dialect.wire_name("no.dots")


def test_losses_of_schemas_are_losses_of_the_request() -> None:
    """What a schema loses on the way is on the request's losses, with the tool's name."""
    either = {"anyOf": [{"type": "object", "properties": {key: {}}} for key in "ab"]}
    tool = ToolDef(name="pick", description="", input_schema=either)
    body = dialect.encode_request(TurnRequest(items=[Message("user", "Go")], tools=(tool,)))
    assert [loss.where for loss in body.losses] == ["tools.pick"]


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "aGlk"}
TEXT = {"type": "text", "text": "Let me see."}
USE = {"type": "tool_use", "id": "t1", "name": "echo", "input": {}}


def test_anthropic_forgets_thinking() -> None:
    """Blocks of thinking, shown or hidden, are left out; all others go back as they came."""
    content = [THINKING, REDACTED, TEXT, USE]
    turn = anthropic_messages.decode({"model": "claude-opus-4-5-20251101", "content": content})
    assert sent(anthropic_messages, turn, "claude-opus-4-5")["messages"][1]["content"] == content
    body = sent(anthropic_messages, turn, "claude-sonnet-4-5")
    assert body["messages"][1]["content"] == [TEXT, USE]
    (loss,) = body.losses
    assert str(loss) == (
        "items[1]: the thinking of claude-opus-4-5-20251101 is for that model alone: not sent to "
        "claude-sonnet-4-5"
    )
    plain = anthropic_messages.decode({"model": "claude-opus-4-5", "content": [TEXT, USE]})
    assert sent(anthropic_messages, plain, "claude-sonnet-4-5").losses == ()


def test_only_texts_lose_the_space_at_their_end() -> None:
    """A block of a kind that nobody here knows goes back as it came, space included."""
    note = {"type": "note", "text": "Hm "}
    turn = dialect.decode(response(note))
    items: list[TranscriptItem] = [Message("user", "Go"), turn, Message("user", "So?")]
    body = dialect.encode_request(TurnRequest(items=items))
    assert body["messages"][1]["content"] == [note]
