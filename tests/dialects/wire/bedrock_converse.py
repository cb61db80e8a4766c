"""What tests know of Converse, written by hand from its reference."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.models.said import SIGNATURE, Payload, Said, halves, written

from ..broken import IDS, NAMES, fill, listed
from ..plain import bare

KEY: Final = "messages"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = ["max_tokens", "model_context_window_exceeded", "malformed_tool_use"]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = ["guardrail_intervened", "content_filtered"]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z0-9_-]{1,64}"
"""The names of tools that the provider takes."""
TAKEN_IDS: Final = r"[a-zA-Z0-9_.:-]{1,64}"
"""The ids of calls that the provider takes; None where calls are told apart by their order."""
WORDS: Final = ("server_tool_use", "default", "guardrail_intervened", "content_filtered", "error")
"""Words of the wire that may stand where they do not belong."""
CACHE_FIELDS: Final = ("ttl",)
"""The fields of a cache that it has words for."""
TOOLS: Final = "toolConfig.tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ("cachePoint",)
"""The keys under which marks of the prompt cache stand."""
_ANSWER: Final = {"name": "answer", "description": "Give the final answer."}
BESIDE_ANSWER: Final = {"outputConfig": {"effort": "low"}}
"""Extras, in the field that asks for an answer where that holds several things."""
HAS_ERRORS: Final = True
"""Whether a result can be called an error."""
HAS_STRICT: Final = True
"""Whether one tool or answer can be held to its schema."""
EMPTY_IS_MISSING: Final = True
"""Whether `{}` may stand for arguments that a limit cut off before they began."""
_SPOKEN: Final = [
    {"text": "Hi"},
    {"reasoningContent": {}},
    {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}},
]
SPOKEN: Final[list[tuple[list[Any], list[tuple[str, ...]]]]] = [
    ([{"role": "assistant", "content": _SPOKEN}], [("Hi",), ('{"a":1}', "f", "c1")])
]
"""Messages, and what the model says in them: texts, and the text, name and id of each call."""
_REASONED: Final = {"reasoningContent": {"reasoningText": {"text": "Hm"}}}
ODD_RESPONSES: Final[list[Payload]] = [
    {
        "output": {"message": {"role": "assistant", "content": [_REASONED]}},
        "stopReason": "end_turn",
    }
]
"""Responses with what no turn of a script has."""
TELLING: Final[list[Any]] = [
    {"messages": [], "system": [{"text": "Be brief."}]},
    {"messages": [], "toolConfig": {"tools": []}},
    {"messages": [], "inferenceConfig": {}},
    [{"role": "user", "content": [{"text": "Hello"}]}],
]
"""Bodies and lists, each with one thing that only this dialect has."""


def ids_in(messages: list[Any]) -> tuple[list[str], list[str]]:
    """Give the ids of the calls and of the results in a conversation, in order."""
    blocks = [block for each in messages for block in each["content"]]
    calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
    return calls, [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b]


def answer_fields(strict: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer, with its schema in strict form or as it is declared."""
    plain = {key: value for key, value in declared.items() if key != "description"}
    form = {**_ANSWER, "schema": json.dumps(plain, separators=(",", ":"))}
    asked = {"type": "json_schema", "structure": {"jsonSchema": form}}
    return {"outputConfig": {"textFormat": asked}}


def answered(said: str, *, is_error: bool = False) -> list[Any]:
    """A call of `pay` that was answered with a text, as an error where the wire has a word."""
    call = {"toolUse": {"toolUseId": "c1", "name": "pay", "input": {}}}
    status = "error" if is_error else "success"
    result = {"toolUseId": "c1", "content": [{"text": said}], "status": status}
    asked = {"role": "assistant", "content": [call]}
    answer = {"role": "user", "content": [{"toolResult": result}]}
    return [{"role": "user", "content": [{"text": "Go"}]}, asked, answer]


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    return {**response, "stopReason": reason}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    return {"output": {"message": said[0]}, "stopReason": "end_turn"}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    result = {"toolUseId": "a", "content": [{"text": "1"}]}
    return {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Go"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "a", "name": name, "input": {}}}],
            },
            {"role": "user", "content": [{"toolResult": result}]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": {}}}}],
            "toolChoice": {"tool": {"name": name}},
        },
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, result, *_ = bodies("f")[KEY]
    (call,), (answer,) = called["content"], result["content"]
    uses = [{"toolUse": {**call["toolUse"], "toolUseId": each}} for each in ids]
    answers = [{"toolResult": {**answer["toolResult"], "toolUseId": each}} for each in ids]
    return asked, [{**called, "content": uses}], [{**result, "content": answers}]


def calling(arguments: Any) -> Payload:
    """A response with a call whose arguments are anything."""
    call = {"toolUseId": "c", "name": "add", "input": arguments}
    return {"output": {"message": {"content": [{"toolUse": call}]}}}


def call_in_pieces(pieces: list[str]) -> list[Payload]:
    """A stream of one call whose argument text comes in these pieces, where the wire knows such."""
    return [
        {"messageStart": {"role": "assistant"}},
        _start(0, "c1", "add"),
        *(_delta(0, {"toolUse": {"input": piece}}) for piece in pieces),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    return [
        {"messageStart": {"role": "assistant"}},
        _delta(0, {"text": "Hi"}),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        _start(1, "a", "f"),
        _delta(1, {"toolUse": {"input": '{"x":1}'}}),
        {"contentBlockStop": {"contentBlockIndex": 1}},
        _start(2, "b", "g"),
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def _start(index: int, call_id: str, name: str) -> Payload:
    start = {"toolUse": {"toolUseId": call_id, "name": name}}
    return {"contentBlockStart": {"start": start, "contentBlockIndex": index}}


def _delta(index: int, delta: Payload) -> Payload:
    return {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}


def response(said: Said) -> Payload:
    """Write a turn as a response."""
    message = {"role": "assistant", "content": list(_blocks(said))}
    meta = {"RequestId": "r-1", "HTTPStatusCode": 200}
    return {**_end(said), "output": {"message": message}, "ResponseMetadata": meta}


def events(said: Said) -> list[Payload]:
    """Write a turn as the events of a stream."""
    arguments = {id: written(args) for id, _, args in said.calls}
    made: list[Payload] = [
        {"messageStart": {"role": "assistant"}, "ResponseMetadata": {"RequestId": "r-1"}}
    ]
    for index, block in enumerate(_blocks(said)):
        if "toolUse" in block:
            call = block["toolUse"]
            made.append(_start(index, call["toolUseId"], call["name"]))
            pieces = halves(arguments[call["toolUseId"]])
            deltas: list[Payload] = [{"toolUse": {"input": piece}} for piece in pieces]
        elif "text" in block:
            deltas = [{"text": piece} for piece in halves(block["text"])]
        else:
            shown = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {key: shown[key]}} for key in ("text", "signature")]
        made += [_delta(index, delta) for delta in deltas]
        made.append({"contentBlockStop": {"contentBlockIndex": index}})
    end = _end(said)
    made.append({"messageStop": {"stopReason": end.pop("stopReason")}})
    return [*made, {"metadata": end}]


def framed(events: list[Payload]) -> bytes:
    """Write events as AWS frames them; what only boto3 says of the answer is no part of them."""
    kinds = [(key, event[key]) for event in events for key in event if key[0].islower()]
    return b"".join(_frame(kind, fields) for kind, fields in kinds)


def _frame(kind: str, fields: Payload) -> bytes:
    way = "exception" if kind.endswith("Exception") else "event"
    told = {f":{way}-type": kind, ":content-type": "application/json", ":message-type": way}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value
        for name, value in ((name, value.encode()) for name, value in told.items())
    )
    payload = json.dumps(fields).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _end(said: Said) -> Payload:
    reason = "tool_use" if said.calls else "content_filtered" if said.refusal else "end_turn"
    reason = "guardrail_intervened" if said.blocked else reason
    return {
        "stopReason": "max_tokens" if said.cut_off else reason,
        "usage": {"inputTokens": 20, "outputTokens": 5, "totalTokens": 25},
        "metrics": {"latencyMs": 7},
    }


def _blocks(said: Said) -> Iterator[Payload]:
    if said.calls:
        thought = {"text": "I think.", "signature": SIGNATURE}
        yield {"reasoningContent": {"reasoningText": thought}}
    if said.text:
        yield {"text": said.text}
    for id, name, args in said.calls:
        # What does not come to its end is no object.
        whole = {} if isinstance(args, str) else args
        yield {"toolUse": {"toolUseId": id, "name": name, "input": whole}}


def broken(random: Random) -> Any:
    """Make a message, which may be broken."""
    said = fill(random, {}, role=("user", "assistant", "assistant", "system", "x", 7))
    said["content"] = listed(random, _block, None, "x", "")
    return said


def _block(random: Random) -> Any:
    kind = random.choice(("text", "toolUse", "toolResult", "toolUse", "toolResult", "x", "image"))
    inner: Any = random.choice(("", "x", 7, None, {"a": 1}))
    if kind == "toolUse":
        inner = fill(random, {}, toolUseId=IDS, name=NAMES, input=({}, "x", None))
    elif kind == "toolResult":
        contents: tuple[Any, ...] = ([{"text": "x"}], [], "x", None, [{"json": {}}], ["x"], 7)
        inner = fill(random, {}, toolUseId=IDS, content=contents)
    if kind.startswith("tool") and random.random() < 0.1:
        inner = random.choice((None, 7, {**inner, "type": "server_tool_use"}))
    return random.choice((*[{kind: inner}] * 9, None, {}, {kind: inner, "text": "x"}))


def rules(body: dict[str, Any]) -> list[str]:
    """List what the provider would refuse."""
    wrong: list[str] = []
    asked: list[str] = []
    before = "assistant"
    messages = body["messages"]
    if not messages:
        wrong.append("nobody says anything")
    if any(not block.get("text", "x").strip() for block in body.get("system", [])):
        wrong.append("a blank instruction")
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == before or role not in ("user", "assistant"):
            wrong.append(f"{at}: role {role!r} after {before!r}")
        before = role
        if not content:
            wrong.append(f"{at}: empty")
        kinds = [kind for block in content for kind in block]
        if len(kinds) != len(content):
            wrong.append(f"{at}: a block of several kinds")
        wrong += [f"{at}: blank" for block in content if not block.get("text", "x").strip()]
        if "document" in kinds and "text" not in kinds:
            wrong.append(f"{at}: a document without a text")
        if kinds[-1:] == ["reasoningContent"]:
            wrong.append(f"{at}: ends with reasoning")
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        answers = [block["toolResult"] for block in content if "toolResult" in block]
        if kinds[: len(answers)] != ["toolResult"] * len(answers):
            wrong.append(f"{at}: results that are not first")
        if sorted(answer["toolUseId"] for answer in answers) != sorted(asked):
            wrong.append(f"{at}: {answers} answer {asked}")
        for answer in answers:
            if not isinstance(answer["content"], list):
                wrong.append(f"{at}: the result {answer['content']!r}")
        asked = [use["toolUseId"] for use in uses]
        if uses and role != "assistant":
            wrong.append(f"{at}: calls of the user")
        for use in uses:
            if not re.fullmatch(TAKEN_NAMES, use["name"]):
                wrong.append(f"{at}: the name {use['name']!r}")
            if not isinstance(use["input"], dict):
                wrong.append(f"{at}: the input {use['input']!r}")
            if not re.fullmatch(TAKEN_IDS, use["toolUseId"]) or asked.count(use["toolUseId"]) > 1:
                wrong.append(f"{at}: the id {use['toolUseId']!r}")
        if uses and "toolConfig" not in body:
            wrong.append(f"{at}: calls of tools that are not declared")
    if asked:
        wrong.append("the last calls have no results")
    return wrong


def pieces(request: dict[str, Any]) -> Iterator[Any]:
    """Give what is said, one piece after the other."""
    yield from (("system", block) for block in request.get("system") or [])
    for message in request["messages"]:
        for block in message["content"]:
            if "toolResult" in block:
                result = block["toolResult"]
                is_error = result.get("status") == "error"
                yield "toolResult", result["toolUseId"], result["content"], is_error
            else:
                yield message["role"], bare(block)
