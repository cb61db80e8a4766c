"""What tests know of Chat Completions, written by hand from its reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.models.said import MODEL, Payload, Said, halves, written

from ..broken import IDS, NAMES, fill, listed
from ..plain import bare, content_of

KEY: Final = "messages"
"""The field of a request that holds the conversation."""
TRUNCATED: Final = ["length", "model_length", "insufficient_system_resource", "error"]
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: Final = ["content_filter", "content_filter: PROHIBITED_CONTENT", "sensitive"]
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: Final = r"[a-zA-Z0-9_-]{1,64}"
"""The names of tools that the provider takes."""
TAKEN_IDS: Final = r"(?s).{1,40}"
"""The ids of calls that the provider takes; None where calls are told apart by their order."""
WORDS: Final = ("function", "custom", "refusal", "content_filter")
"""Words of the wire that may stand where they do not belong."""
CACHE_FIELDS: Final = ("key", "retention")
"""The fields of a cache that it has words for."""
TOOLS: Final = "tools"
"""The way to the tools on offer."""
MARKERS: Final[tuple[str, ...]] = ()
"""The keys under which marks of the prompt cache stand."""
_ANSWER: Final = {"name": "answer", "description": "Give the final answer."}
BESIDE_ANSWER: Final = {"verbosity": "low"}
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
    ([{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}], [("Hi",)]),
    (
        [{"role": "assistant", "tool_calls": [{"id": "c1", "function": _CALLED}]}],
        [('{"a":1}', "f", "c1")],
    ),
    ([{"role": "assistant", "tool_calls": [{"function": 3}]}], [("null", "None")]),
]
"""Messages, and what the model says in them: texts, and the text, name and id of each call."""
ODD_RESPONSES: Final[list[Payload]] = [
    {
        "choices": [{"message": {"role": "assistant", "content": "Hi"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
]
"""Responses with what no turn of a script has."""
TELLING: Final[list[Any]] = [
    {"messages": [{"role": "system", "content": "Be brief."}]},
    {"messages": [{"role": "developer", "content": "Be brief."}]},
    {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
    [{"role": "tool", "tool_call_id": "c9", "content": "3"}],
]
"""Bodies and lists, each with one thing that only this dialect has."""


def ids_in(messages: list[Any]) -> tuple[list[str], list[str]]:
    """Give the ids of the calls and of the results in a conversation, in order."""
    calls = [call["id"] for each in messages for call in each.get("tool_calls", ())]
    return calls, [each["tool_call_id"] for each in messages if each["role"] == "tool"]


def answer_fields(strict: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The fields that ask for an answer, with its schema in strict form or as it is declared."""
    form = {**_ANSWER, "schema": strict, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def answered(said: str, *, is_error: bool = False) -> list[Any]:
    """A call of `pay` that was answered with a text, as an error where the wire has a word."""
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": said}
    return [{"role": "user", "content": "Go"}, asked, result]


def ended(response: dict[str, Any], reason: str) -> dict[str, Any]:
    """Let a response end for a reason."""
    (choice,) = response["choices"]
    return {**response, "choices": [{**choice, "finish_reason": reason}]}


def as_response(said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    return {"choices": [{"message": said[0], "finish_reason": "stop"}]}


def bodies(name: str) -> dict[str, Any]:
    """A body in which a tool is declared, asked for, called and answered."""
    function = {"name": name, "arguments": "{}"}
    declared = {"name": name, "parameters": {}}
    allowed = [{"type": "function", "function": {"name": name}}]
    return {
        "messages": [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "a", "name": name, "content": "1"},
            {"role": "assistant", "function_call": function},
            {"role": "function", "name": name, "content": "1"},
        ],
        "functions": [declared],
        "function_call": {"name": name},
        "tools": [{"function": declared}, {"type": "custom", "custom": {"name": name}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": allowed}},
    }


def many_calls(ids: list[str]) -> tuple[Any, list[Any], list[Any]]:
    """What the user says, a turn with calls of these ids, and their results."""
    asked, called, result, *_ = bodies("f")[KEY]
    (call,) = called["tool_calls"]
    calls = [{**called, "tool_calls": [{**call, "id": each} for each in ids]}]
    results = [{**result, "tool_call_id": each} for each in ids]
    return asked, calls, results


def calling(arguments: Any) -> Payload:
    """A response with a call whose arguments are anything."""
    call = {"id": "c", "function": {"name": "add", "arguments": arguments}}
    return {"choices": [{"message": {"tool_calls": [call]}}]}


def call_in_pieces(pieces: list[str]) -> list[Payload]:
    """A stream of one call whose argument text comes in these pieces, where the wire knows such."""
    functions = [{"name": "add", "arguments": ""}, *({"arguments": piece} for piece in pieces)]
    calls = [{"index": 0, "id": "c1", "function": each} for each in functions]
    choices: list[Any] = [{"index": 0, "delta": {"tool_calls": [call]}} for call in calls]
    return [{"choices": [each]} for each in (*choices, {"delta": {}, "finish_reason": "stop"})]


def stream() -> list[dict[str, Any]]:
    """A stream that says something and makes two calls."""
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    deltas = [{"content": "Hi"}, *({"tool_calls": [call]} for call in calls)]
    return [
        *({"id": "r", "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]


def results(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The results in a body: pairs of the id of a call, or its name, and what the model reads."""
    return [(m["tool_call_id"], m["content"]) for m in body["messages"] if m["role"] == "tool"]


def response(said: Said) -> Payload:
    message: Payload = {"role": "assistant", "content": said.text or None}
    message["refusal"] = said.refusal or None
    if said.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": written(args)},
            }
            for id, name, args in said.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_end(said)}
    return {**_chat("chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def events(said: Said) -> list[Payload]:
    def chunk(delta: Payload, finish_reason: str | None = None) -> Payload:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**_chat("chat.completion.chunk"), "choices": [choice], "usage": None}

    def call(index: int, arguments: str, **fields: Any) -> Payload:
        name = fields.pop("name", None)
        function = {"arguments": arguments, **({} if name is None else {"name": name})}
        return chunk({"tool_calls": [{"index": index, **fields, "function": function}]})

    events = [chunk({"role": "assistant", "content": None if said.calls else ""})]
    events += [chunk({"content": part}) for part in halves(said.text) if part]
    events += [chunk({"refusal": part}) for part in halves(said.refusal) if part]
    for index, (id, name, args) in enumerate(said.calls):
        events.append(call(index, "", id=id, type="function", name=name))
        events += [call(index, part) for part in halves(written(args))]
    usage = {**_chat("chat.completion.chunk"), "choices": [], "usage": _CHAT_USAGE}
    return [*events, chunk({}, _chat_end(said)), usage]


def _chat(kind: str) -> Payload:
    return {"id": "chatcmpl-1", "object": kind, "created": 1770674959, "model": MODEL}


def _chat_end(said: Said) -> str:
    if said.cut_off:
        return "length"
    if said.blocked:
        return "content_filter"
    return "tool_calls" if said.calls else "stop"


_CHAT_USAGE: Final = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def broken(random: Random) -> Any:
    roles = ("user", "assistant", "assistant", "tool", "tool", "function", "system", "x")
    role = random.choice(roles)
    contents: tuple[Any, ...] = ("x", "", None, [{"type": "text", "text": "x"}], ["x"], 7, [])
    said = fill(random, {"role": role}, content=contents)
    if role == "assistant" and random.random() < 0.7:
        said["tool_calls"] = listed(random, _chat_call, None, 7)
    if role == "assistant" and random.random() < 0.2:
        calls: tuple[Any, ...] = ({"name": "f", "arguments": "{}"}, {}, None, 7, {"name": 7})
        said["function_call"] = random.choice(calls)
    if role == "tool":
        fill(random, said, tool_call_id=IDS)
    if role == "function" or random.random() < 0.2:
        fill(random, said, name=(*NAMES, None))
    return said


def _chat_call(random: Random) -> Any:
    kind = random.choice(("function", "function", "custom"))
    inner = fill(random, {"name": random.choice(NAMES)}, arguments=("{}", {}, None))
    call = fill(random, {"type": kind}, id=IDS)
    call[kind] = random.choice((inner, inner, inner, None, 7))
    return random.choice((*[call] * 8, None, 7))


def rules(body: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    asked: Counter[str] = Counter()
    function: str | None = None
    messages = body["messages"]
    if not messages:
        wrong.append("no message")
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if not asked[message["tool_call_id"]]:
                wrong.append(f"{at}: answers no call right before it")
            asked[message["tool_call_id"]] -= 1
            asked = +asked
        elif role == "function":
            if function != message["name"]:
                wrong.append(f"{at}: answers no function call")
            function = None
        else:
            if asked or function is not None:
                wrong.append(f"{at}: {sorted(asked)} have no results yet")
            asked = Counter()
            function = None
        content = message.get("content")
        if role in ("system", "developer", "user", "tool", "function"):
            if not isinstance(content, str | list) or content == []:
                wrong.append(f"{at}: content {content!r}")
        elif role == "assistant":
            calls = message.get("tool_calls")
            if calls == []:
                wrong.append(f"{at}: an empty list of calls")
            if content is None and not any(
                message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
            ):
                wrong.append(f"{at}: says nothing")
            for call in calls or ():
                asked[call["id"]] += 1
                if call["type"] == "function":
                    name, text = call["function"]["name"], call["function"]["arguments"]
                    if not isinstance(text, str):
                        wrong.append(f"{at}: arguments {text!r}")
                else:
                    name = call["custom"]["name"]
                if not NAME.fullmatch(name):
                    wrong.append(f"{at}: the name {name!r}")
            if any(count > 1 for count in asked.values()):
                wrong.append(f"{at}: one id twice")
            if message.get("function_call"):
                function = message["function_call"]["name"]
        else:
            wrong.append(f"{at}: role {role!r}")
    if asked or function is not None:
        wrong.append("the last calls have no results")
    return wrong


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def pieces(request: dict[str, Any]) -> Iterator[Any]:
    for message in request["messages"]:
        role = message["role"]
        if role == "assistant":
            yield role, bare(message)
        elif role == "tool":
            yield role, message["tool_call_id"], content_of(message["content"])
        else:
            yield from ((role, part) for part in content_of(message["content"]))
