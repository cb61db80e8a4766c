"""The API generateContent: what its responses come to."""

from __future__ import annotations

import base64
import copy
import math
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from lutum_py import (
    Transcript,
    Usage,
)
from lutum_py.dialects import (
    gemini_generate_content,
)
from lutum_py.dialects import gemini_generate_content as dialect
from lutum_py.errors import DialectError
from lutum_py.turns import ReasoningItem, ServerToolItem, TextItem
from tests.cases import over

from .gemini_wire import CALL, response
from .mutations import deep
from .plain import streamed


@over("reason", ["STOP", "NO_IMAGE"])
def test_an_end_of_the_models_own_stops_no_call(reason: str) -> None:
    """A turn that came to its end, if only without its picture, is whole."""
    said = response({"functionCall": CALL})
    said["candidates"][0]["finishReason"] = reason
    turn = dialect.decode(said)
    assert (turn.is_truncated, turn.is_blocked) == (False, False)


def test_a_response_becomes_a_turn() -> None:
    """Each part becomes an item in order; what the provider ran, and grounding, is kept."""
    ran = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "eA=="}
    sent = response(
        {"text": "Hm", "thought": True},
        ran,
        {"text": "Hello"},
        {"text": "", "thoughtSignature": "eQ=="},
        CALL,
        {"functionCall": {"name": "echo", "id": "g1"}},
        {"unknownThing": 3},
        groundingMetadata={"webSearchQueries": ["q"]},
        urlContextMetadata={"urlMetadata": []},
    )
    sent["usageMetadata"] = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3,
    }
    turn = dialect.decode(sent)
    assert turn.items[:3] == (
        ReasoningItem("Hm"),
        ServerToolItem("executableCode", ran),
        TextItem("Hello"),
    )
    assert turn.items[-2:] == (
        ServerToolItem("groundingMetadata", {"webSearchQueries": ["q"]}),
        ServerToolItem("urlContextMetadata", {"urlMetadata": []}),
    )
    first, second = turn.tool_calls
    assert (first.name, first.arguments) == ("echo", '{"b_c":null,"a":1}')
    assert first.id.startswith("lutum_")
    assert (second.id, second.arguments) == ("g1", "{}")
    assert turn.usage == Usage(
        input_tokens=15, output_tokens=10, cached_tokens=4, reasoning_tokens=3
    )
    assert (turn.model, turn.request_id, turn.dialect) == ("gemini", "r1", dialect.NAME)
    assert turn.finish_reason == "STOP"


class Reason(Enum):
    STOP = "STOP"


def test_a_dump_of_any_kind_decodes_to_the_same_turn() -> None:
    """Snake case, nulls, bytes, enumerations and times of an SDK dump are those of the wire."""
    wire = response(CALL, {"inlineData": {"mimeType": "image/png", "data": "++8="}})
    wire["createTime"] = "2026-01-02T03:04:05Z"
    wire["usageMetadata"] = {"promptTokenCount": 1}
    called = {"name": "echo", "id": None, "args": {"b_c": None, "a": 1}}
    dump = {
        "response_id": "r1",
        "model_version": "gemini",
        "create_time": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "sdk_http_response": {"headers": {}},
        "parsed": {},
        "prompt_feedback": None,
        "usage_metadata": {"prompt_token_count": 1},
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": (
                        {
                            "function_call": called,
                            "thought_signature": base64.b64decode("c2k="),
                            "text": None,
                        },
                        {"inline_data": {"mime_type": "image/png", "data": "--8="}},
                    ),
                },
                "finish_reason": Reason.STOP,
            }
        ],
    }
    assert dialect.decode(dump) == dialect.decode(wire)
    assert dialect.decode(wire).payload == wire


def test_the_payload_is_a_copy() -> None:
    """The payload shares nothing with the response."""
    sent = copy.deepcopy(response(CALL))
    turn = dialect.decode(sent)
    sent["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]["a"] = 2
    assert turn == dialect.decode(response(CALL))


def test_a_blocked_prompt_is_a_refusal() -> None:
    """A prompt that the provider blocks gives its reason as finish reason, and its words if any."""
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "No."}
    turn = dialect.decode({"promptFeedback": feedback})
    assert (turn.finish_reason, turn.refusal, turn.usage) == ("SAFETY", "No.", None)
    assert dialect.decode({"promptFeedback": {"blockReason": "OTHER"}}).refusal == ""
    assert dialect.messages([turn]) == []


def test_a_candidate_without_content_says_nothing() -> None:
    """A candidate that only has a reason, such as a malformed call, is a turn without items."""
    turn = dialect.decode(
        {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}], "usageMetadata": {}}
    )
    assert (turn.items, turn.finish_reason) == ((), "MALFORMED_FUNCTION_CALL")
    assert turn.usage == Usage()
    assert dialect.messages([turn]) == []


@over(
    "broken, where, problem",
    [
        ("<html>", "", "expected the JSON object"),
        ({"error": {"code": 400, "message": "Bad"}}, "error", "Bad"),
        ({"error": "bad"}, "error", "bad"),
        ({}, "", "has no candidates"),
        ({"candidates": []}, "", "has no candidates"),
        ({"promptFeedback": {}}, "", "has no candidates"),
        ({"candidates": {}}, "candidates", "expected an array"),
        (response({"text": 3}), "text", "expected a string"),
        (response(3), "parts[0]", "expected an object"),
        (
            response({"functionCall": {"name": "f", "willContinue": True}}),
            "functionCall",
            "come in pieces",
        ),
        (response({"functionCall": {"partialArgs": []}}), "functionCall", "come in pieces"),
    ],
)
def test_a_broken_response_is_an_error(broken: Any, where: str, problem: str) -> None:
    """What is no response says what is wrong with it, and where."""
    with pytest.raises(DialectError, match=problem) as caught:
        dialect.decode(broken)
    assert caught.value.where.endswith(where)


@over("value", [math.nan, 10**5000, deep(900)])
def test_a_part_of_arguments_that_are_no_json_is_an_error(value: Any) -> None:
    """An argument object that holds what is no JSON is refused, whole and in a stream."""
    part = {"functionCall": {"name": "add", "args": {"a": value}}}
    chunk = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    with pytest.raises(DialectError):
        gemini_generate_content.decode(chunk)
    with pytest.raises(DialectError) as caught:
        streamed(gemini_generate_content, [chunk])
    # How deep Python reads at once differs; what it reads is refused with the turn, at the latest.
    assert caught.value.where.startswith("event 0") or isinstance(value, list)


def test_a_model_gives_no_function_responses() -> None:
    """Results among what a model says are refused: nothing stands before them that they answer."""
    part = {"functionResponse": {"name": "f", "response": {}}}
    with pytest.raises(
        DialectError, check=lambda error: error.where == "candidates[0].content.parts[0]"
    ):
        gemini_generate_content.decode({"candidates": [{"content": {"parts": [part]}}]})


def test_arguments_go_back_as_objects() -> None:
    """Arguments of another type than the wire's are decoded, and go back as the API takes them."""
    for args, goes in (('{"x":1}', {"x": 1}), ("odd", {"INVALID_JSON": "odd"}), ([1], None)):
        part = {"functionCall": {"name": "f", "args": args}}
        turn = gemini_generate_content.decode({"candidates": [{"content": {"parts": [part]}}]})
        (content,) = gemini_generate_content.messages([turn])
        assert content["parts"][0]["functionCall"]["args"] == (goes or {"INVALID_JSON": [1]})


@over(
    "own, of_sdk",
    [('"thoughtSignature":"a+/="', '"thoughtSignature":"a-_="'), ('"usageMeta', '"usage_meta')],
)
def test_a_saved_dump_of_the_sdk_is_that_of_the_wire(own: str, of_sdk: str) -> None:
    """Names and base64 that a program wrote as the SDK dumps them are loaded as decoded ones."""
    sent = response({"text": "Hi", "thoughtSignature": "a+/="})
    sent["usageMetadata"] = {"promptTokenCount": 1}
    transcript = Transcript()
    transcript.append_turn(dialect.decode(sent))
    saved = transcript.dump_json()
    assert own in saved
    assert Transcript.load_json(saved.replace(own, of_sdk)) == transcript
