"""What tests know of generateContent, written by hand from its reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.models.said import MODEL, SIGNATURE, Payload, Said, halves

from ..broken import IDS, NAMES, fill, listed
from ..plain import in_camel_case

KEY: Final = "contents"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = [
    *("MAX_TOKENS", "CONTINUATION", "TOO_MANY_TOOL_CALLS"),
    *("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"),
    *("OTHER", "IMAGE_OTHER", "FINISH_REASON_UNSPECIFIED", "MISSING_THOUGHT_SIGNATURE"),
]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = [
    *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "MODEL_ARMOR"),
    *("LANGUAGE", "ESCALATION", "PUP_LIMITED_DISABLED"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"
"""The names of tools that the provider takes."""
TAKEN_IDS: Final[str | None] = None
"""The ids of calls that the provider takes; None where calls are told apart by their order."""
WORDS: Final = ("model",)
"""Words of the wire that may stand where they do not belong."""
CACHE_FIELDS: Final = ("content", "covers")
"""The fields of a cache that it has words for."""
TOOLS: Final = "tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ()
"""The keys under which marks of the prompt cache stand."""
BESIDE_ANSWER: Final = {"generationConfig": {"topK": 3}}
"""Extras, in the field that asks for an answer where that holds several things."""
HAS_ERRORS: Final = True
"""Whether a result can be called an error."""
HAS_STRICT: Final = False
"""Whether one tool or answer can be held to its schema."""
EMPTY_IS_MISSING: Final = False
"""Whether `{}` may stand for arguments that a limit cut off before they began."""
_SPOKEN: Final = [
    {"text": "Hi"},
    {"inlineData": {}},
    {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}},
]
SPOKEN: Final[list[tuple[list[Any], list[tuple[str, ...]]]]] = [
    ([{"role": "model", "parts": _SPOKEN}], [("Hi",), ('{"a":1}', "f", "c1")])
]
"""Messages, and what the model says in them: texts, and the text, name and id of each call."""
_RUN: Final = {"parts": [{"executableCode": {"code": "1"}}]}
ODD_RESPONSES: Final[list[Payload]] = [{"candidates": [{"content": _RUN, "finishReason": "STOP"}]}]
"""Responses with what no turn of a script has."""
TELLING: Final[list[Any]] = [
    {"contents": []},
    {"systemInstruction": {"parts": []}},
    {"tools": [{"functionDeclarations": []}]},
    [{"role": "user", "parts": []}],
]
"""Bodies and lists, each with one thing that only this dialect has."""


def answer_fields(strict: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer, with its schema in strict form or as it is declared."""
    form = {"responseMimeType": "application/json", "responseJsonSchema": declared}
    return {"generationConfig": form}


def answered(said: str, *, is_error: bool = False) -> list[Any]:
    """A call of `pay` that was answered with a text, as an error where the wire has a word."""
    call = {"role": "model", "parts": [{"functionCall": {"name": "pay", "args": {}}}]}
    response = {"error" if is_error else "output": said}
    answer = {"functionResponse": {"name": "pay", "response": response}}
    asked = {"role": "user", "parts": [{"text": "Go"}]}
    return [asked, call, {"role": "user", "parts": [answer]}]


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    (candidate,) = response["candidates"]
    return {**response, "candidates": [{**candidate, "finishReason": reason}]}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    return {"candidates": [{"content": said[0], "finishReason": "STOP"}]}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
            {"parts": [{"functionResponse": {"name": name, "response": {}}}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": name}]},
            {"function_declarations": {"name": name}},
        ],
        "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": [name]}},
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, result, *_ = bodies("f")[KEY]
    calls = [{**called, "parts": called["parts"] * len(ids)}]
    results = [{**result, "parts": result["parts"] * len(ids)}]
    return asked, calls, results


def calling(arguments: Any) -> Payload:
    """A response with a call whose arguments are anything."""
    call = {"functionCall": {"name": "add", "args": arguments}}
    return {"candidates": [{"content": {"parts": [call]}}]}


def call_in_pieces(pieces: list[str]) -> list[Payload]:
    """A stream of one call whose argument text comes in these pieces, where the wire knows such."""
    call = {"functionCall": {"name": "add", "args": {"a": "".join(pieces)}}}
    return [{"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}]


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    parts = [
        {"text": "Hi"},
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
        {"functionCall": {"id": "b", "name": "g"}},
    ]
    candidates = [{"content": {"role": "model", "parts": [part]}} for part in parts]
    return [
        *({"candidates": [candidate]} for candidate in candidates),
        {"candidates": [{"finishReason": "STOP"}]},
    ]


def results(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The results in a body: pairs of the id of a call, or its name, and what the model reads."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    found = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return [(each["name"], json.dumps(each["response"], ensure_ascii=False)) for each in found]


def response(said: Said) -> Payload:
    if said.refusal:
        return _blocked(said)
    return _generated(list(_parts(said)), _end(said))


def _end(said: Said) -> str:
    return "MAX_TOKENS" if said.cut_off else "SAFETY" if said.blocked else "STOP"


def events(said: Said) -> list[Payload]:
    if said.refusal:
        return [_blocked(said)]
    chunks: list[Payload] = []
    for part in _parts(said):
        texts = halves(part["text"]) if "text" in part else ()
        chunks += [_generated([{**part, "text": text}]) for text in texts]
        chunks += [] if texts else [_generated([part])]
    return [*chunks, _generated([{"text": ""}], _end(said))]


def _blocked(said: Said) -> Payload:
    """Give the answer to a prompt that the provider does not take."""
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": said.refusal}
    return {"promptFeedback": feedback, "modelVersion": MODEL, "responseId": "r-1"}


def _parts(said: Said) -> Iterator[Payload]:
    if said.text:
        yield {"text": said.text}
    # A call that does not come to its end is not sent at all.
    calls = [(name, args) for _, name, args in said.calls if not isinstance(args, str)]
    for number, (name, args) in enumerate(calls):
        # The Gemini API gives calls no id, and signs the first of several.
        signed = {} if number else {"thoughtSignature": SIGNATURE}
        yield {"functionCall": {"name": name, "args": args}, **signed}


def _generated(parts: list[Payload], finish_reason: str | None = None) -> Payload:
    candidate: Payload = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish_reason is not None:
        candidate["finishReason"] = finish_reason
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": MODEL,
        "responseId": "r-1",
    }


def broken(random: Random) -> Any:
    said = fill(random, {}, role=("user", "model", "model", "function", None, "x", 7))
    said["parts"] = listed(random, _gemini_part, None, "x")
    return said


def _gemini_part(random: Random) -> Any:
    part: dict[str, Any] = {}
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        kind = random.choice(
            ("text", "functionCall", "functionResponse", "function_call", "function_response", "x")
        )
        inner = fill(random, {}, name=NAMES, id=IDS)
        if kind.lower().endswith("call"):
            fill(random, inner, args=({}, {"a": 1}, "x", None, [1]))
            part[kind] = random.choice((inner, inner, inner, None, 7))
        elif kind.lower().endswith("response"):
            fill(random, inner, response=({}, "x", None))
            part[kind] = random.choice((inner, inner, inner, None, []))
        else:
            part[kind] = random.choice(("", "x", 7, None, {"data": "x"}))
    return random.choice((*[part] * 9, None, 7, {}))


def rules(body: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    asked: list[str] = []
    before = ""
    contents = body["contents"]
    if not contents:
        wrong.append("no content")
    for at, content in enumerate(contents):
        role, parts = content["role"], content["parts"]
        if role not in ("user", "model"):
            wrong.append(f"{at}: role {role!r}")
        if not parts or not all(parts):
            wrong.append(f"{at}: an empty part")
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if [answer["name"] for answer in answers] != asked:
            wrong.append(f"{at}: {len(answers)} answers to the calls {asked}")
        if answers and len(answers) < len(parts):
            wrong.append(f"{at}: answers beside other parts")
        if calls and (role != "model" or before != "user"):
            wrong.append(f"{at}: calls that do not come right after the user")
        for call in calls:
            if not GEMINI_NAME.fullmatch(call["name"]):
                wrong.append(f"{at}: the name {call['name']!r}")
            if not isinstance(call.get("args", {}), dict):
                wrong.append(f"{at}: the arguments {call['args']!r}")
        for answer in answers:
            if not isinstance(answer["response"], dict):
                wrong.append(f"{at}: the response {answer['response']!r}")
        asked = [call["name"] for call in calls]
        before = role
    if asked:
        wrong.append("the last calls have no results")
    return wrong


GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def pieces(request: dict[str, Any]) -> Iterator[Any]:
    told: dict[str, Any] = request.get("systemInstruction") or {}
    yield from (("system", part) for part in told.get("parts", ()))
    for content in in_camel_case(request["contents"]):
        for part in content["parts"]:
            if "functionResponse" in part:
                yield part
            else:
                yield content["role"], part
