"""What tests know of the Messages API, written by hand from its reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.models.said import MODEL, SIGNATURE, Payload, Said, halves, written

from ..broken import IDS, NAMES, fill, listed
from ..plain import bare, content_of

KEY: Final = "messages"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = ["max_tokens", "model_context_window_exceeded"]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = ["refusal"]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z0-9_-]{1,128}"
"""The names of tools that the provider takes."""
TAKEN_IDS: Final = r"[a-zA-Z0-9_-]+"
"""The ids of calls that the provider takes; None where calls are told apart by their order."""
WORDS: Final = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")
"""Words of the wire that may stand where they do not belong."""
CACHE_FIELDS: Final = ("ttl",)
"""The fields of a cache that it has words for."""
TOOLS: Final = "tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ("cache_control",)
"""The keys under which marks of the prompt cache stand."""
BESIDE_ANSWER: Final = {"output_config": {"effort": "low"}}
"""Extras, in the field that asks for an answer where that holds several things."""
HAS_ERRORS: Final = True
"""Whether a result can be called an error."""
HAS_STRICT: Final = True
"""Whether one tool or answer can be held to its schema."""
EMPTY_IS_MISSING: Final = True
"""Whether `{}` may stand for arguments that a limit cut off before they began."""
_THINKING: Final = {"type": "thinking", "thinking": "Hm", "signature": "s"}
_SPOKEN: Final = [
    {"type": "thinking", "thinking": "Hm"},
    {"type": "text", "text": "Hi"},
    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
]
SPOKEN: Final[list[tuple[list[Any], list[tuple[str, ...]]]]] = [
    ([{"role": "assistant", "content": "Hi"}], [("Hi",)]),
    ([{"role": "assistant", "content": _SPOKEN}], [("Hi",), ('{"a":1}', "f", "c1")]),
]
"""Messages, and what the model says in them: texts, and the text, name and id of each call."""
ODD_RESPONSES: Final[list[Payload]] = [
    {"role": "assistant", "content": [_THINKING], "stop_reason": "end_turn"}
]
"""Responses with what no turn of a script has."""
TELLING: Final[list[Any]] = [
    {"messages": [], "system": "Be brief."},
    {"messages": [], "tools": [{"name": "f", "input_schema": {}}]},
    [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}],
]
"""Bodies and lists, each with one thing that only this dialect has."""


def ids_in(messages: list[Any]) -> tuple[list[str], list[str]]:
    """Give the ids of the calls and of the results in a conversation, in order."""
    said = [each["content"] for each in messages if isinstance(each["content"], list)]
    blocks = [block for content in said for block in content]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def answer_fields(strict: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer, with its schema in strict form or as it is declared."""
    return {"output_config": {"format": {"type": "json_schema", "schema": declared}}}


def answered(said: str, *, is_error: bool = False) -> list[Any]:
    """A call of `pay` that was answered with a text, as an error where the wire has a word."""
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {}}
    failed = {"is_error": True} if is_error else {}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": said, **failed}
    asked = {"role": "assistant", "content": [call]}
    return [{"role": "user", "content": "Go"}, asked, {"role": "user", "content": [result]}]


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    return {**response, "stop_reason": reason}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    return {"content": said[0]["content"]}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    return {
        "messages": [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": name, "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}],
            },
        ],
        "tools": [{"name": name, "input_schema": {}}],
        "tool_choice": {"type": "tool", "name": name},
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, result, *_ = bodies("f")[KEY]
    (call,), (answer,) = called["content"], result["content"]
    calls = [{**called, "content": [{**call, "id": each} for each in ids]}]
    results = [{**result, "content": [{**answer, "tool_use_id": each} for each in ids]}]
    return asked, calls, results


def calling(arguments: Any) -> Payload:
    """A response with a call whose arguments are anything."""
    return {"content": [{"type": "tool_use", "id": "c", "name": "add", "input": arguments}]}


def call_in_pieces(pieces: list[str]) -> list[Payload]:
    """A stream of one call whose argument text comes in these pieces, where the wire knows such."""
    started = {"type": "tool_use", "id": "c1", "name": "add", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": started},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    block = {"type": "content_block_start"}
    use = {"type": "tool_use", "input": {}}
    return [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {**block, "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {**block, "index": 1, "content_block": {**use, "id": "a", "name": "f"}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"x":1}'},
        },
        {"type": "content_block_stop", "index": 1},
        {**block, "index": 2, "content_block": {**use, "id": "b", "name": "g"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


def results(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The results in a body: pairs of the id of a call, or its name, and what the model reads."""
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    found = [block for block in blocks if block["type"] == "tool_result"]
    return [(block["tool_use_id"], _words(block["content"])) for block in found]


def _words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def response(said: Said) -> Payload:
    usage = {"input_tokens": 20, "output_tokens": 5}
    end = "tool_use" if said.calls else "refusal" if said.refusal else "end_turn"
    end = "refusal" if said.blocked else end
    return _message(list(_blocks(said)), "max_tokens" if said.cut_off else end, usage)


def events(said: Said) -> list[Payload]:
    started = _message([], None, {"input_tokens": 20, "output_tokens": 1})
    events: list[Payload] = [{"type": "message_start", "message": started}, {"type": "ping"}]
    arguments = {id: written(args) for id, _, args in said.calls}
    for index, block in enumerate(_blocks(said)):
        start, deltas = _opened(block, arguments)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": response(said)["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
    return [*events, {"type": "message_stop"}]


def _blocks(said: Said) -> Iterator[Payload]:
    if said.calls:
        yield {"type": "thinking", "thinking": "I think.", "signature": SIGNATURE}
    if said.text:
        yield {"type": "text", "text": said.text}
    for id, name, args in said.calls:
        # What does not come to its end is no object.
        whole = {} if isinstance(args, str) else args
        yield {"type": "tool_use", "id": id, "name": name, "input": whole}


def _opened(block: Payload, arguments: dict[str, str]) -> tuple[Payload, list[Payload]]:
    if block["type"] == "thinking":
        said = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [said, signed]
    if block["type"] == "text":
        parts = [{"type": "text_delta", "text": part} for part in halves(block["text"])]
        return {"type": "text", "text": ""}, parts
    pieces = ["", *halves(arguments[block["id"]])]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in pieces]


def _message(content: list[Payload], stop_reason: str | None, usage: Payload) -> Payload:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    return {
        **said,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


def broken(random: Random) -> Any:
    said = fill(random, {}, role=("user", "assistant", "assistant", "system", "x", 7))
    said["content"] = listed(random, _anthropic_block, None, "x", "")
    return said


def _anthropic_block(random: Random) -> Any:
    kind = random.choice(("text", "tool_use", "tool_result", "tool_use", "tool_result", "x", 7))
    block: dict[str, Any] = {"type": kind}
    if kind == "text":
        fill(random, block, text=("", "x", 7))
    elif kind == "tool_use":
        fill(random, block, id=IDS, name=NAMES, input=({}, "x", None))
    elif kind == "tool_result":
        fill(random, block, tool_use_id=IDS, content=("x", None, []))
    return random.choice((*[block] * 9, None, {}))


def rules(body: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    ids: Counter[str] = Counter()
    asked: list[str | None] = []
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        wrong.append("the user does not begin")
    for text in _texts_of(body.get("system", [])):
        if not text.strip():
            wrong.append("a blank instruction")
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            wrong.append(f"{at}: empty")
        if role not in ("user", "assistant"):
            wrong.append(f"{at}: role {role!r}")
        for block in blocks:
            if block["type"] == "text" and not block["text"].strip():
                wrong.append(f"{at}: a blank text")
        follows = [each["role"] for each in messages[at + 1 :] if each["role"] != "system"]
        is_end = role == "assistant" != next(iter(follows), "")
        if is_end and blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            wrong.append(f"{at}: ends with thinking")
        leading = _leading(blocks, "tool_result") if role == "user" else []
        answers = [block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"]
        if len(leading) != len(answers):
            wrong.append(f"{at}: results that are not first")
        if Counter(answers) != Counter(asked):
            wrong.append(f"{at}: answers {answers}, asked was {asked}")
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if uses and role != "assistant":
            wrong.append(f"{at}: calls of the user")
        asked = [use.get("id") for use in uses]
        for use in uses:
            if not ANTHROPIC_NAME.fullmatch(use["name"]):
                wrong.append(f"{at}: the name {use['name']!r}")
            if not isinstance(use["input"], dict):
                wrong.append(f"{at}: the input {use['input']!r}")
            if "id" in use:
                ids[use["id"]] += 1
                if not ANTHROPIC_ID.fullmatch(use["id"]):
                    wrong.append(f"{at}: the id {use['id']!r}")
    wrong += [f"the id {each!r} stands twice" for each, count in ids.items() if count > 1]
    if asked:
        wrong.append("the last calls have no results")
    return wrong


ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def _texts_of(system: str | list[dict[str, Any]]) -> list[str]:
    return [system] if isinstance(system, str) else [block["text"] for block in system]


def _leading(blocks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = []
    for block in blocks:
        if block["type"] != kind:
            break
        found.append(block)
    return found


def pieces(request: dict[str, Any]) -> Iterator[Any]:
    yield from (("system", block) for block in content_of(request.get("system") or []))
    for message in request["messages"]:
        role = message["role"]
        content = message["content"]
        if role == "assistant" and isinstance(content, str):
            yield role, content
        elif role == "assistant":
            yield from ((role, block) for block in bare(content))
        else:
            for block in content_of(content):
                if block["type"] == "tool_result":
                    said = content_of(block.get("content") or [])
                    is_error = block.get("is_error", False)
                    yield "tool_result", block["tool_use_id"], said, is_error
                else:
                    yield role, block
