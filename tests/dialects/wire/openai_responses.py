"""What tests know of OpenAI Responses, written by hand from its reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.models.said import MODEL, SIGNATURE, Payload, Said, halves, written

from ..broken import IDS, NAMES, fill
from ..plain import bare, content_of

KEY: Final = "input"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = ["max_output_tokens", "max_messages", "steered", "incomplete"]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = ["content_filter"]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z0-9_-]{1,64}"
"""The names of tools that the provider takes."""
TAKEN_IDS: Final = r"(?s).{1,64}"
"""The ids of calls that the provider takes; None where calls are told apart by their order."""
WORDS: Final = (
    "message",
    "output_text",
    "function_call",
    "custom_tool_call",
    "tool_search_call",
    "client",
    "function_call_output",
    "item_reference",
    "reasoning",
)
"""Words of the wire that may stand where they do not belong."""
CACHE_FIELDS: Final = ("key", "retention")
"""The fields of a cache that it has words for."""
TOOLS: Final = "tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ()
"""The keys under which marks of the prompt cache stand."""
_ANSWER: Final = {"name": "answer", "description": "Give the final answer."}
BESIDE_ANSWER: Final = {"text": {"verbosity": "low"}}
"""Extras, in the field that asks for an answer where that holds several things."""
HAS_ERRORS: Final = False
"""Whether a result can be called an error."""
HAS_STRICT: Final = True
"""Whether one tool or answer can be held to its schema."""
EMPTY_IS_MISSING: Final = False
"""Whether `{}` may stand for arguments that a limit cut off before they began."""
_CALLED: Final = {"name": "f", "arguments": '{"a":1}'}
SPOKEN: Final[list[tuple[list[Any], list[tuple[str, ...]]]]] = [
    ([{"role": "assistant", "content": "Hi"}], [("Hi",)]),
    (
        [{"role": "assistant", "content": [{"text": "Hi"}]}, {"role": "user", "content": "No"}],
        [("Hi",)],
    ),
    ([{"type": "function_call", "call_id": "c1", **_CALLED}], [('{"a":1}', "f", "c1")]),
]
"""Messages, and what the model says in them: texts, and the text, name and id of each call."""
ODD_RESPONSES: Final[list[Payload]] = [
    {"output": [{"type": "reasoning", "id": "rs1", "summary": []}], "status": "completed"},
    {
        "output": [],
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    },
]
"""Responses with what no turn of a script has."""
TELLING: Final[list[Any]] = [
    {"input": "Hello"},
    [{"type": "function_call_output", "call_id": "c"}],
]
"""Bodies and lists, each with one thing that only this dialect has."""


def ids_in(messages: list[Any]) -> tuple[list[str], list[str]]:
    """Give the ids of the calls and of the results in a conversation, in order."""
    calls = [each["call_id"] for each in messages if each.get("type") == "function_call"]
    return calls, [each["call_id"] for each in messages if "output" in each]


def answer_fields(strict: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer, with its schema in strict form or as it is declared."""
    form = {"type": "json_schema", **_ANSWER, "schema": strict, "strict": True}
    return {"text": {"format": form}}


def answered(said: str, *, is_error: bool = False) -> list[Any]:
    """A call of `pay` that was answered with a text, as an error where the wire has a word."""
    call = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": said}
    return [{"role": "user", "content": "Go"}, call, output]


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    return {**response, "status": "incomplete", "incomplete_details": {"reason": reason}}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    output = [item | {"type": item.get("type", "message")} for item in said]
    for item in output:
        if isinstance(item.get("content"), str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
    return {"output": output, "status": "completed"}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    function = {"name": name, "arguments": "{}"}
    declared = {"name": name, "parameters": {}}
    return {
        "input": [
            {"type": "function_call", "call_id": "a", **function},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "custom_tool_call", "call_id": "b", "name": name, "input": ""},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "1"},
        ],
        "tools": [{"type": "function", **declared}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": name},
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, *_ = bodies("f")[KEY]
    calls = [{**asked, "call_id": each} for each in ids]
    results = [{**called, "call_id": each} for each in ids]
    asked = {"role": "user", "content": "Go"}
    return asked, calls, results


def calling(arguments: Any) -> Payload:
    """A response with a call whose arguments are anything."""
    fields = {"call_id": "c", "name": "add", "arguments": arguments}
    return {"output": [{"type": "function_call", **fields}]}


def call_in_pieces(pieces: list[str]) -> list[Payload]:
    """A stream of one call whose argument text comes in these pieces, where the wire knows such."""
    item = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": ""}
    kind = "response.function_call_arguments.delta"
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": kind, "output_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.completed", "response": {"status": "completed"}},
    ]


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    items = [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": ""},
    ]
    whole = {"id": "r", "status": "completed", "output": items}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        *(
            {"type": f"response.output_item.{step}", "output_index": at, "item": item}
            for at, item in enumerate(items)
            for step in ("added", "done")
        ),
        {"type": "response.completed", "response": whole},
    ]


def results(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The results in a body: pairs of the id of a call, or its name, and what the model reads."""
    found = [each for each in body["input"] if each.get("type") == "function_call_output"]
    return [(each["call_id"], each["output"]) for each in found]


def response(said: Said) -> Payload:
    if said.cut_off or said.blocked:
        reason = "max_output_tokens" if said.cut_off else "content_filter"
        details = {"incomplete_details": {"reason": reason}}
        return {**_response("incomplete", list(_output(said))), **details}
    return _response("completed", list(_output(said)))


def events(said: Said) -> list[Payload]:
    events: list[Payload] = [
        {"type": "response.created", "response": _response("in_progress", [])},
    ]
    for index, item in enumerate(_output(said)):
        events += _item_events(index, item)
    end = response(said)
    events.append({"type": f"response.{end['status']}", "response": end})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _output(said: Said) -> Iterator[Payload]:
    thought = {"type": "summary_text", "text": "I think."}
    if said.calls:
        id = f"rs_{said.calls[0][0]}"
        yield {"id": id, "type": "reasoning", "summary": [thought], "encrypted_content": SIGNATURE}
    status = "incomplete" if said.cut_off else "completed"
    part: Payload = {"type": "output_text", "text": said.text, "annotations": []}
    if said.refusal:
        part = {"type": "refusal", "refusal": said.refusal}
    if said.text or said.refusal:
        fields = {"id": "msg_1", "role": "assistant", "status": status}
        yield {"type": "message", **fields, "content": [part]}
    for place, (call_id, name, args) in enumerate(said.calls, 1):
        ended = status if place == len(said.calls) else "completed"  # the limit cuts the last one
        fields = {"id": f"fc_{call_id}", "call_id": call_id, "name": name, "status": ended}
        yield {"type": "function_call", **fields, "arguments": written(args)}


def _item_events(index: int, item: Payload) -> Iterator[Payload]:
    where = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        started = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        for part in halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": part}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}
    elif item["type"] == "message":
        started = {**item, "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        place = {**where, "content_index": 0}
        (part,) = item["content"]
        kind = "refusal" if part["type"] == "refusal" else "text"
        more: Payload = {} if kind == "refusal" else {"logprobs": []}
        started = {**part, kind: ""}
        yield {"type": "response.content_part.added", **place, "part": started}
        event = f"response.{part['type']}"
        for piece in halves(part[kind]):
            yield {"type": f"{event}.delta", **place, "delta": piece, **more}
        yield {"type": f"{event}.done", **place, kind: part[kind], **more}
        yield {"type": "response.content_part.done", **place, "part": part}
    else:
        started = {**item, "summary": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _response(status: str, output: list[Payload]) -> Payload:
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 25,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1778535251,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status == "in_progress" else usage,
    }


def broken(random: Random) -> Any:
    kinds = (
        *("function_call", "function_call", "custom_tool_call", "tool_search_call"),
        *("function_call_output", "function_call_output", "custom_tool_call_output"),
        *("tool_search_output", "reasoning", "message", None, "item_reference", "x", 7),
    )
    said = fill(random, {}, type=kinds, call_id=IDS, name=NAMES)
    fill(random, said, arguments=("{}", {}, None), output=("x", None, [], 7))
    if random.random() < 0.4:
        said["id"] = random.choice(IDS)
    if random.random() < 0.3:
        said["execution"] = random.choice(("client", "server", 7, {}))
    if random.random() < 0.4:
        fill(random, said, role=("user", "assistant", "x", 7), content=("x", None, [], [7]))
    return said


def rules(body: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    calls: Counter[str] = Counter()
    ids: Counter[str] = Counter()
    items = body["input"]
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if isinstance(item.get("id"), str) and kind != "item_reference":
            ids[item["id"]] += 1
        if kind in ("function_call", "custom_tool_call"):
            if not NAME.fullmatch(item["name"]):
                wrong.append(f"{at}: the name {item['name']!r}")
            if not isinstance(item["arguments" if kind == "function_call" else "input"], str):
                wrong.append(f"{at}: arguments that are not text")
            if calls[item["call_id"]]:
                wrong.append(f"{at}: the id {item['call_id']!r} waits already")
            calls[item["call_id"]] += 1
        elif kind == "tool_search_call" and item.get("execution") == "client":
            calls[item["call_id"]] += 1
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if not calls[item["call_id"]]:
                wrong.append(f"{at}: answers no call")
            calls[item["call_id"]] -= 1
            if not isinstance(item["output"], str | list):
                wrong.append(f"{at}: output {item['output']!r}")
        elif kind == "message":
            if item["role"] not in ("system", "developer", "user", "assistant"):
                wrong.append(f"{at}: role {item['role']!r}")
            if not isinstance(item["content"], str | list):
                wrong.append(f"{at}: content {item['content']!r}")
            if item["role"] == "user" and +calls:
                wrong.append(f"{at}: {sorted(+calls)} have no results yet")
        elif kind == "reasoning":
            following = items[at + 1] if at + 1 < len(items) else {}
            if following.get("role") in (None, "user") and "type" not in following:
                wrong.append(f"{at}: reasoning without what it led to")
    wrong += [f"the id {each!r} stands twice" for each, count in ids.items() if count > 1]
    wrong += [f"the call {each!r} has no result" for each in +calls]
    return wrong


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def pieces(request: dict[str, Any]) -> Iterator[Any]:
    if request.get("instructions"):
        yield "system", {"type": "text", "text": request["instructions"]}
    given = request["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("role") in ("user", "system", "developer") and "content" in item:
            for part in content_of(item["content"]):
                kind = "text" if part["type"] == "input_text" else part["type"]
                detail = {"detail": "auto"} if kind == "input_image" else {}
                yield item["role"], detail | part | {"type": kind}
        elif isinstance(item.get("output"), str | list) and "call_id" in item:
            yield item["type"], item["call_id"], content_of(item["output"])
        else:
            yield bare(item)
