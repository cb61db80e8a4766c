"""The rules of the four formats once more, written from the providers' references alone.

`check` of a dialect is part of the library, so it cannot be the judge of what the library renders.
Each function lists what its provider would refuse in a request body.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def refused(dialect: str, body: dict[str, Any]) -> list[str]:
    """List what a provider would refuse."""
    json.dumps(body, allow_nan=False).encode()
    return RULES[dialect](body)


def _chat(body: dict[str, Any]) -> list[str]:
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


def _responses(body: dict[str, Any]) -> list[str]:
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
                wrong.append(f"{at}: arguments that are no text")
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


def _anthropic(body: dict[str, Any]) -> list[str]:
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


def _gemini(body: dict[str, Any]) -> list[str]:
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


def _texts_of(system: str | list[dict[str, Any]]) -> list[str]:
    return [system] if isinstance(system, str) else [block["text"] for block in system]


def _leading(blocks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = []
    for block in blocks:
        if block["type"] != kind:
            break
        found.append(block)
    return found


RULES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _anthropic,
    "gemini_generate_content": _gemini,
}
