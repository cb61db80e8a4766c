"""What contents of generateContent hold, read as a transcript, and what of them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    Message,
    ToolResult,
)
from lutum_py.dialects import (
    gemini_generate_content,
)
from lutum_py.errors import DialectError
from tests.cases import over

from .histories import file, image


def test_parts_of_gemini_are_held() -> None:
    """Both ways of writing a key are read; a response of another shape is the output, whole.

    What stands in a response or beside it, and has no place, is named.
    """
    answers = [
        {"functionResponse": {"name": "f", "response": {"output": {"a": None}}}},
        {"function_response": {"name": "f", "id": "x", "response": {"error": "no"}}},
        {"functionResponse": {"name": "f", "response": {"result": 3}, "odd": 1}, "beside": 1},
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
            "contents[3].parts[2].beside",
            "contents[3].parts[3].functionResponse.parts[1]",
            "contents[3].parts[3].functionResponse.parts",
            "contents[4].parts[0].thought",
            "contents[4].parts[3]",
            "contents[4].parts[4]",
        ]
    )
    plain: dict[str, Any] = {"systemInstruction": "Be brief.", "contents": contents[:1]}
    assert gemini_generate_content.read_history(plain)[0][0] == Message("system", "Be brief.")


def test_two_calls_of_one_id_are_told_apart() -> None:
    """Gemini tells results by their order; a transcript does by the ids, so each gets its own."""
    calls = [{"functionCall": {"id": "c1", "name": "f", "args": {}}}] * 2
    answers = [
        {"functionResponse": {"id": "c1", "name": "f", "response": {"output": at}}} for at in (1, 2)
    ]
    contents = [
        {"role": "user", "parts": [{"text": "Go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]
    assert gemini_generate_content.check(contents) == []
    transcript, losses = gemini_generate_content.read_history(contents)
    results = [item for item in transcript if isinstance(item, ToolResult)]
    assert [(each.id, each.result) for each in results] == [("c1", "1"), ("c1_2", "2")]
    assert losses == []
    sent = gemini_generate_content.messages(transcript)
    assert [part["functionResponse"]["id"] for part in sent[2]["parts"]] == ["c1", "c1_2"]


@over("output", [float("nan"), {1, 2}, object()])
def test_a_response_that_is_not_json_is_refused_with_its_place(output: Any) -> None:
    """Whoever wrote the history is told where it is wrong, and not what Python says of it."""
    call = {"functionCall": {"name": "f", "args": {}}}
    response = {"functionResponse": {"name": "f", "response": {"output": output}}}
    parts = [("user", {"text": "Hi"}), ("model", call), ("user", response)]
    contents = [{"role": role, "parts": [part]} for role, part in parts]
    with pytest.raises(DialectError) as caught:
        gemini_generate_content.read_history({"contents": contents})
    assert str(caught.value.where).startswith("contents[2]")
