"""The rules of OpenAI's two dialects against requests that real hosts accepted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from lutum_py.dialects import openai_chat, openai_responses

from .openai_recorded import DIALECTS, answer, whole
from .recordings import recordings, report

KEYS = {openai_chat.NAME: "messages", openai_responses.NAME: "input"}


@DIALECTS
def test_every_accepted_request_is_clean(dialect: ModuleType) -> None:
    """A request that a provider accepted has no violation, and a repair changes nothing of it."""
    found = recordings(dialect.NAME, lambda one: one.status == 200)
    good = 0
    for one in found:
        assert dialect.check(one.request) == [], one.id
        listed = one.request[KEYS[dialect.NAME]]
        assert isinstance(listed, str) or bool(dialect.check(listed)) == kept_elsewhere(one.request)
        assert dialect.repair(one.request) == (one.request, []), one.id
        good += 1
    report(dialect.NAME, "accepted requests found clean", good, len(found))


def kept_elsewhere(request: Any) -> bool:
    items = request.get("input", ())
    first = items[0] if items else {}
    return isinstance(first, dict) and first.get("type") == "function_call_output"


@DIALECTS
def test_every_replayed_round_is_clean(dialect: ModuleType) -> None:
    """A recorded turn followed by results for its calls has no violation."""
    found = recordings(dialect.NAME, lambda one: whole(one) and one.has_calls)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        said_back = dialect.messages([turn, *map(answer, turn.tool_calls)])
        assert dialect.check(said_back) == [], one.id
        good += 1
    report(dialect.NAME, "replayed rounds found clean", good, len(found))


Mutation = Callable[[list[Any], int], list[Any]]


def dropped(items: list[Any], at: int) -> list[Any]:
    return [*items[:at], *items[at + 1 :]]


def doubled(items: list[Any], at: int) -> list[Any]:
    return [*items[: at + 1], items[at], *items[at + 1 :]]


def reordered(items: list[Any], at: int) -> list[Any]:
    """Swap with the result before it, or move before the turn that made the call."""
    if is_result(items[at - 1]):
        return [*items[: at - 1], items[at], items[at - 1], *items[at + 1 :]]
    rest = dropped(items, at)
    key = items[at].get("tool_call_id", items[at].get("call_id"))
    made = next(n for n, item in enumerate(rest) if f'"{key}"' in json.dumps(item))
    return [*rest[:made], items[at], *rest[made:]]


def renamed(items: list[Any], at: int) -> list[Any]:
    key = "tool_call_id" if "tool_call_id" in items[at] else "call_id"
    return [*items[:at], {**items[at], key: "call_of_nobody"}, *items[at + 1 :]]


def is_result(item: dict[str, Any]) -> bool:
    kinds = (item.get("role"), item.get("type"))
    return "tool" in kinds or "function_call_output" in kinds


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
        for at in [at for at, item in enumerate(items) if is_result(item)]:
            if kept_elsewhere(one.request) and mutate is not doubled:
                continue  # The call stands on the provider's side: nobody can tell from here.
            tried += 1
            broken = {**one.request, key: mutate(items, at)}
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
