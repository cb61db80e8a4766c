"""What the rules of the Messages API and generateContent find in recorded traffic."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from lutum_py._transcript.result import ToolResult
from lutum_py.dialects import anthropic_messages, gemini_generate_content

from .recordings import Recording, answered, recordings, report

DIALECTS = pytest.mark.parametrize(
    "dialect", [anthropic_messages, gemini_generate_content], ids=lambda module: module.NAME
)
KEYS = {anthropic_messages.NAME: "messages", gemini_generate_content.NAME: "contents"}
PARTS = {anthropic_messages.NAME: "content", gemini_generate_content.NAME: "parts"}
# What models and programs wrote: a null in it means something.
FREE = ("input", "args", "response", "input_schema", "parametersJsonSchema")


def whole(one: Recording) -> bool:
    return answered(one) and not one.stream


def streamed(one: Recording) -> bool:
    return answered(one) and one.stream


def with_calls(one: Recording) -> bool:
    return whole(one) and one.has_calls


@DIALECTS
def test_every_accepted_request_is_clean(dialect: ModuleType) -> None:
    """A request that a provider accepted has no violation, and a repair changes nothing of it."""
    found = recordings(dialect.NAME, lambda one: one.status == 200)
    good = 0
    for one in found:
        assert dialect.check(one.request) == [], one.id
        assert dialect.check(one.request[KEYS[dialect.NAME]]) == [], one.id
        assert dialect.repair(one.request) == (one.request, []), one.id
        good += 1
    report(dialect.NAME, "accepted requests found clean", good, len(found))


@DIALECTS
def test_every_replayed_round_is_clean(dialect: ModuleType) -> None:
    """A recorded turn followed by results for its calls has no violation."""
    found = recordings(dialect.NAME, with_calls)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        asked = one.request[KEYS[dialect.NAME]]
        said_back = dialect.messages([turn, *map(answer, turn.tool_calls)])
        assert dialect.check([*asked, *said_back]) == [], one.id
        good += 1
    report(dialect.NAME, "replayed rounds found clean", good, len(found))


def answer(call: Any) -> Any:
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")


@DIALECTS
def test_no_id_of_ours_goes_back(dialect: ModuleType) -> None:
    """A call that came without an id is answered without one, and its own id is stable."""
    found = recordings(dialect.NAME, with_calls)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        assert turn.tool_calls == dialect.decode(one.response).tool_calls
        rendered = json.dumps(dialect.messages([turn, *map(answer, turn.tool_calls)]))
        sent = json.dumps(one.response)
        good += all((call.id in rendered) == (call.id in sent) for call in turn.tool_calls)
    report(dialect.NAME, "rounds without an id of ours", good, len(found))


Mutation = Callable[[list[Any], int, int], list[Any]]


def parts_of(message: Any) -> list[Any]:
    content = message.get("content", message.get("parts"))
    return content if isinstance(content, list) else []


def with_parts(items: list[Any], at: int, parts: list[Any]) -> list[Any]:
    key = "content" if "content" in items[at] else "parts"
    changed = [{**items[at], key: parts}] if parts else []
    return [*items[:at], *changed, *items[at + 1 :]]


def is_result(part: Any) -> bool:
    return part.get("type") == "tool_result" or bool(
        part.keys() & {"functionResponse", "function_response"}
    )


def dropped(items: list[Any], at: int, place: int) -> list[Any]:
    parts = parts_of(items[at])
    return with_parts(items, at, [*parts[:place], *parts[place + 1 :]])


def doubled(items: list[Any], at: int, place: int) -> list[Any]:
    parts = parts_of(items[at])
    return with_parts(items, at, [*parts[: place + 1], *parts[place:]])


def reordered(items: list[Any], at: int, place: int) -> list[Any]:
    """Swap with the result before it, or put it before the turn that made the call."""
    parts = list(parts_of(items[at]))
    before = parts[place - 1] if place else {}
    if is_result(before) and name_of(before) != name_of(parts[place]):
        parts[place - 1 : place + 1] = reversed(parts[place - 1 : place + 1])
        return with_parts(items, at, parts)
    moved = parts[place]
    key = "content" if "content" in items[at] else "parts"
    rest = dropped(items, at, place)
    made = at
    while made and items[made - 1]["role"] != "user":
        made -= 1
    return [*rest[:made], {"role": "user", key: [moved]}, *rest[made:]]


def renamed(items: list[Any], at: int, place: int) -> list[Any]:
    parts = list(parts_of(items[at]))
    parts[place] = copy.deepcopy(parts[place])
    named = inner(parts[place])
    named["tool_use_id" if "tool_use_id" in named else "name"] = "call_of_nobody"
    return with_parts(items, at, parts)


def inner(part: Any) -> Any:
    return part.get("functionResponse", part.get("function_response", part))


def name_of(part: Any) -> Any:
    named = inner(part)
    return named.get("tool_use_id", (named.get("id"), named.get("name")))


@DIALECTS
@pytest.mark.parametrize(
    "mutate", [dropped, doubled, reordered, renamed], ids=lambda mutation: mutation.__name__
)
def test_every_broken_round_is_found_and_mended(dialect: ModuleType, mutate: Mutation) -> None:
    """A dropped, doubled, reordered or renamed result is found, and mended to a clean request."""
    key = KEYS[dialect.NAME]
    tried = good = 0
    for one in recordings(dialect.NAME, lambda one: one.status == 200 and one.has_results):
        items = one.request[key]
        places = [
            (at, place)
            for at, item in enumerate(items)
            for place, part in enumerate(parts_of(item))
            if is_result(part)
        ]
        for at, place in places:
            tried += 1
            broken = {**one.request, key: mutate(items, at, place)}
            before = copy.deepcopy(broken)
            assert dialect.check(broken), (one.id, at)
            mended, changes = dialect.repair(broken)
            assert changes, (one.id, at)
            assert all(change.position and change.rule and change.what for change in changes)
            assert dialect.check(mended) == [], (one.id, at)
            assert broken == before
            if mutate is doubled:
                assert mended == one.request
            good += 1
    report(dialect.NAME, f"{mutate.__name__} results found and mended", good, tried)
