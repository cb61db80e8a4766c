"""The API generateContent: what its requests come to."""

from __future__ import annotations

import base64
import copy

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolDef,
    TurnRequest,
)
from lutum_py.dialects import (
    gemini_generate_content,
)
from lutum_py.dialects import gemini_generate_content as dialect
from lutum_py.errors import MisuseError
from lutum_py.turns import ReasoningItem, RefusalItem, TextItem
from lutum_py.typing import ToolChoice

from .called import BAD, answers, called
from .gemini_wire import CALL, ECHO, USER, call_of, response, result
from .other_model import sent
from .plain import FOREIGN_SIGNATURE, rejected


def test_a_round_goes_back_as_it_came() -> None:
    """The turn goes back with its signatures, and then one response for each call, in order."""
    called = {"functionCall": {"name": "echo", "args": {}, "id": "g1"}}
    parts = [
        {"text": "Hm", "thought": True},
        CALL,
        called,
        {"text": "", "thoughtSignature": "eA=="},
    ]
    turn = dialect.decode(response(*parts))
    first, second = turn.tool_calls
    done = CommittedRound(turn, [result(first, '{"a":1}'), rejected(second, "no")])
    assert dialect.messages(done) == [
        {"role": "model", "parts": parts},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "echo", "response": {"output": {"a": 1}}}},
                {
                    "functionResponse": {
                        "name": "echo",
                        "id": "g1",
                        "response": {"error": "Rejected: no"},
                    }
                },
            ],
        },
    ]
    said = result(first, "1", message="one")
    answered = dialect.messages([turn, said])[1]["parts"][0]
    assert answered["functionResponse"]["response"] == {"output": "one"}


def test_what_goes_out_is_the_callers_own() -> None:
    """Changing what was rendered never changes the transcript."""
    turn = dialect.decode(response(CALL))
    before = copy.deepcopy(dialect.messages([turn]))
    dialect.messages([turn])[0]["parts"][0]["functionCall"]["args"]["a"] = 2
    assert dialect.messages([turn]) == before


def test_a_content_of_responses_holds_nothing_else() -> None:
    """What the user says, and files of results, come in a content of their own after them."""
    call = call_of()
    picture = Attachment(
        media_type="image", mime_type="image/png", url="https://e.org/a.png", caption="A cat"
    )
    data = Attachment(media_type="file", mime_type="text/plain", url="data:,hi")
    rendered = dialect.messages(
        [
            Message("user", ""),
            Message("user", "One", (data,)),
            AssistantTurn(tool_calls=[call]),
            Message("user", "And?"),
            result(call, attachments=[picture]),
        ]
    )
    silence, *rendered = rendered
    assert silence == {"role": "user", "parts": [{"text": ""}]}
    assert [content["role"] for content in rendered] == ["user", "model", "user", "user"]
    assert rendered[0]["parts"] == [
        {"text": "One"},
        {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
    ]
    assert [list(part) for part in rendered[2]["parts"]] == [["functionResponse"]]
    assert rendered[3]["parts"] == [
        {"text": "And?"},
        {"text": "A cat"},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://e.org/a.png"}},
    ]


def test_a_file_goes_by_the_usual_name_of_its_type() -> None:
    """A name that the API does not list becomes the one that it does; others go as they are."""
    names = ("audio/x-wav", "image/jpg", "Image/PNG", "audio/mp3", "audio/mpeg", "text/x-odd")
    files = tuple(Attachment.from_bytes(b"hi", name) for name in names)
    (content,) = dialect.messages([Message("user", "", files)])
    assert [part["inlineData"]["mimeType"] for part in content["parts"]] == [
        *("audio/wav", "image/jpeg", "image/png", "audio/mp3", "audio/mpeg", "text/x-odd"),
    ]


def test_a_turn_of_another_dialect_goes_out_in_the_neutral_view() -> None:
    """Text first, then calls without ids; the first is signed as Google says for such turns."""
    calls = (call_of("c1", '{"a":1}'), call_of("c2", "{bad"), call_of("c3", ""))
    turn = AssistantTurn(
        items=[
            ReasoningItem("secret"),
            *AssistantTurn(tool_calls=calls).items,
            RefusalItem("Not this."),
            TextItem(""),
        ],
        dialect="another",
        payload={},
    )
    body = dialect.encode_request(
        TurnRequest(items=[Message("user", "Go"), turn, *map(result, calls)])
    )
    assert body["contents"][1]["parts"] == [
        {"text": "Not this."},
        {
            "functionCall": {"name": "echo", "args": {"a": 1}},
            "thoughtSignature": FOREIGN_SIGNATURE,
        },
        {"functionCall": {"name": "echo", "args": {"INVALID_JSON": "{bad"}}},
        {"functionCall": {"name": "echo", "args": {}}},
    ]
    assert all("id" not in part["functionResponse"] for part in body["contents"][2]["parts"])
    assert [loss.where for loss in body.losses] == ["items[1]", "items[1].tool_calls[1]"]
    signature = base64.b64decode(FOREIGN_SIGNATURE)
    assert signature == b"skip_thought_signature_validator"


def test_instructions_stand_beside_the_contents() -> None:
    """System and developer go into one instruction; one that comes late is a loss."""
    note = Attachment(media_type="file", mime_type="application/pdf", url="https://e.org/a.pdf")
    items = [
        Message("system", "Be brief."),
        Message("system", ""),
        Message("user", "Go"),
        Message("developer", "Be kind.", (note,)),
    ]
    assert dialect.messages(items) == [USER]
    body = dialect.encode_request(TurnRequest(items=items))
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert [loss.where for loss in body.losses] == ["items[3]", "items[3].attachments[0]"]


def test_only_transcript_items_are_rendered() -> None:
    """Anything else than a message, turn or result is a type error."""
    with pytest.raises(MisuseError):
        dialect.messages([{"role": "user"}])  # type: ignore[list-item]


def test_a_request_has_what_was_asked_for() -> None:
    """Tools, choice, parameters and extras stand where the API wants them."""
    body = dialect.encode_request(
        TurnRequest(
            items=[Message("user", "Go")],
            tools=(ECHO,),
            tool_choice=ToolChoice("specific", "echo"),
            temperature=0.5,
            max_output_tokens=9,
            parallel_tool_calls=False,
            extra={
                "tools": [{"googleSearch": {}}],
                "generationConfig": {"topK": 3},
                "toolConfig": None,
                "labels": {"a": "b"},
            },
        )
    )
    assert body == {
        "contents": [USER],
        "tools": [*dialect.tools([ECHO]), {"googleSearch": {}}],
        "toolConfig": None,
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 9, "topK": 3},
        "labels": {"a": "b"},
    }
    assert [loss.where for loss in body.losses] == ["parallel_tool_calls"]
    plain = dialect.encode_request(TurnRequest(items=[Message("user", "Go")]))
    assert plain == {"contents": [USER]}
    either = {"anyOf": [{"type": "object", "properties": {key: {}}} for key in "ab"]}
    tool = ToolDef(name="pick", description="", input_schema=either)
    asked = dialect.encode_request(TurnRequest(items=[Message("user", "Go")], tools=(tool,)))
    assert [loss.where for loss in asked.losses] == ["tools.pick"]
    assert asked["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}


def test_a_choice_is_said_in_the_words_of_the_api() -> None:
    """Each mode of a choice has its word, and one tool its name."""
    words = [dialect.tool_choice(ToolChoice(mode)) for mode in ("auto", "required", "none")]
    assert [word["functionCallingConfig"]["mode"] for word in words] == ["AUTO", "ANY", "NONE"]
    named = dialect.tool_choice(ToolChoice("specific", "echo"))["functionCallingConfig"]
    assert named == {"mode": "ANY", "allowedFunctionNames": ["echo"]}


def test_tools_are_described() -> None:
    """All tools stand in one object; without tools there is none."""
    assert dialect.tools([ECHO, ECHO.with_name("a.b")], strict=True) == [
        {
            "functionDeclarations": [
                {
                    "name": name,
                    "description": "Say it",
                    "parametersJsonSchema": {"type": "object", "properties": {}},
                }
                for name in ("echo", "a.b")
            ]
        }
    ]
    assert dialect.tools([]) == []
    assert dialect.compile(ECHO).losses == ()
    (offer,) = dialect.tools([ECHO.with_name("1st")])
    assert offer["functionDeclarations"][0]["name"] == dialect.wire_name("1st") != "1st"


def test_gemini_forgets_thoughts_and_signatures() -> None:
    """Thoughts go, and signatures; the one that is documented for this stands in at a call, which
    stays also where it is marked as a thought.
    """
    call = {"name": "echo", "args": {}}
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "Hi", "thoughtSignature": "c2ln"},
        {"functionCall": call, "thoughtSignature": "c2ln"},
        {"functionCall": call, "thought": True},
        {"text": "", "thoughtSignature": "c2ln"},
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    turn = gemini_generate_content.decode(
        {"modelVersion": "gemini-2.5-pro", "candidates": [candidate]}
    )
    same = sent(gemini_generate_content, turn, "models/gemini-2.5-pro-001")
    assert same["contents"][1]["parts"] == parts
    body = sent(gemini_generate_content, turn, "gemini-3-pro")
    assert body["contents"][1]["parts"] == [
        {"text": "Hi"},
        {"functionCall": call, "thoughtSignature": FOREIGN_SIGNATURE},
        {"functionCall": call},
    ]
    (loss,) = body.losses
    assert "the thoughts of gemini-2.5-pro" in loss.text
    assert "gemini-3-pro" in loss.text


def test_gemini_has_a_signature_at_a_call_of_a_model_that_signs_nothing() -> None:
    """The stand-in is at the first call also where the other model signed none; nothing is lost."""
    content = {"role": "model", "parts": [{"functionCall": {"name": "echo", "args": {}}}]}
    turn = gemini_generate_content.decode(
        {"modelVersion": "gemini-2.0-flash", "candidates": [{"content": content}]}
    )
    body = sent(gemini_generate_content, turn, "gemini-3-pro")
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == FOREIGN_SIGNATURE
    assert body.losses == ()


def test_a_gemini_result_has_the_name_of_its_call() -> None:
    """Where a result carries the name of the tool, it is the name under which the call went out."""
    turn = called(BAD)
    made, result = gemini_generate_content.messages([turn, *answers(turn)])
    call = made["parts"][0]["functionCall"]
    assert result["parts"][0]["functionResponse"]["name"] == call["name"] != BAD
