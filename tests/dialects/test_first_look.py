"""The first look at a request: it is right wherever it finds nothing, and it writes nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from random import Random
from typing import Any, NoReturn

import pytest

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    TurnRequest,
)
from lutum_py.dialects import DIALECTS
from lutum_py.dialects._repair import Form
from tests.profiles import scaled

from .broken_requests import broken_request
from .every_dialect import KEYS, OF_LIBRARY
from .growing import dialect_of
from .plain import is_array, is_object

EVERY = pytest.mark.parametrize("name", OF_LIBRARY)
IDS = ("id", "call_id", "tool_call_id", "tool_use_id")


def form_of(name: str) -> Form:
    form: Form = import_module(DIALECTS[name]).DIALECT.form
    return form


def conversation(name: str, random: Random) -> list[Any]:
    """A conversation as the library writes it, with up to three calls in a turn."""
    items: list[Any] = [Message("user", "Go")]
    for number in range(random.randint(1, 4)):
        calls = [
            ToolMetadata(id=f"c{number}_{at}", name=random.choice("fg"), arguments='{"a":[{}]}')
            for at in range(random.choice((0, 1, 1, 2, 3)))
        ]
        text = random.choice(("Let me see", None)) if calls else "So"
        turn = AssistantTurn(text=text, tool_calls=calls)
        results = [
            ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="3")
            for call in calls
        ]
        items += CommittedRound(turn, results) if calls else [turn]
        items += [Message("user", "And?")] * random.randint(0, 1)
    return said_by(name, items)


def said_by(name: str, items: list[Any]) -> list[Any]:
    body: dict[str, Any] = dialect_of(name).encode_request(TurnRequest(items=items))
    said: list[Any] = body[KEYS[name]]
    return said


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if is_object(value):
        yield value
        for part in value.values():
            yield from objects_in(part)
    elif is_array(value):
        for part in value:
            yield from objects_in(part)


def lists_in(said: list[Any]) -> list[list[Any]]:
    """The conversation, and what its messages hold."""
    inner = [part for each in objects_in(said) for part in each.values() if is_array(part) and part]
    return [said, said, *inner]


def disordered(said: list[Any], random: Random) -> list[Any]:
    """Move, drop and repeat what is said, and change what joins calls and results."""
    said = copy.deepcopy(said)
    for _ in range(random.randint(0, 2)):
        held = random.choice(lists_in(said))
        here, there = random.randrange(len(held)), random.randrange(len(held))
        if random.random() < 0.6:
            _move(held, here, there, random)
        else:
            _change(list(objects_in(said)), random)
        if not said:
            break
    return said


def _move(held: list[Any], here: int, there: int, random: Random) -> None:
    one = held[here]
    match random.randrange(6):
        case 0:
            del held[here]
        case 1:
            held.insert(there, one)  # the same once more
        case 2:
            held[here], held[there] = held[there], one
        case 3:
            held.insert(there, held.pop(here))
        case 4:
            held[there:there] = copy.deepcopy(random.choice(BETWEEN))
        case _ if is_object(one):
            split = {key: part[:1] for key, part in one.items() if is_array(part)}
            held.insert(here, {**one, **split})
        case _:
            held.clear()


ASKED: dict[str, Any] = {"role": "user", "content": "x", "parts": [{"text": "x"}]}
BETWEEN: tuple[list[dict[str, Any]], ...] = (
    [ASKED],
    [{"role": "system", "content": [{"type": "text", "text": "x"}]}],
    [{"role": "assistant", "content": "x"}],
    [{"role": "model", "parts": [{"text": "x"}]}],
    [ASKED, {"role": "assistant", "content": "x"}],
    [ASKED, {"role": "model", "parts": [{"text": "x"}]}],
    [{"type": "reasoning", "summary": []}],
    [{"type": "text", "text": "x"}],
)


def _change(objects: list[dict[str, Any]], random: Random) -> None:
    match random.randrange(6):
        case 0:
            odd = random.choice(("", None, 7, "a b", "c1_0", {"x": 1}))
            _put(objects, dict.fromkeys(IDS, odd), random, 0.3)
        case 1:
            at = random.choice((0, -1))
            for each in objects:
                each.update(
                    {key: each[key][at:][:1] for key in IDS if isinstance(each.get(key), str)}
                )
        case 2:
            every = random.choice((1, 1, 2))
            for number, each in enumerate(objects):
                each["id"] = f"i{number // every}"
        case 3:
            _put(objects, dict.fromkeys(("name", "response", "input", "output"), "f"), random, 0.3)
        case 4:
            for each in objects:
                if "role" in each and random.random() < 0.3:
                    each["name"] = random.choice("fg")
        case _:
            kind = random.choice(("custom_tool_call_output", "tool_result", "text", "reasoning"))
            _put(objects, {"type": kind}, random, 0.1)


def _put(objects: list[dict[str, Any]], odd: dict[str, Any], random: Random, often: float) -> None:
    for each in objects:
        each.update({key: odd[key] for key in odd if key in each and random.random() < often})


def requests(name: str, count: int) -> Iterator[Any]:
    """Requests in order and next to it, and some that are far from it."""
    key, form = KEYS[name], form_of(name)
    for seed in range(count):
        random = Random(seed)
        yield (said := disordered(conversation(name, random), random))
        yield {key: said, "tools": [{"name": random.choice(("f", "no such!"))}]}
        broken = broken_request(name, random)
        yield broken
        repaired, _ = form.repair(broken)
        yield disordered(repaired if is_array(repaired) else repaired[key], random)


@EVERY
def test_the_first_look_hides_nothing(name: str) -> None:
    """What is in order at the first look breaks no rule: `check` and `repair` give what they give
    without it, of many requests, some of them in order.
    """
    form = form_of(name)
    thorough = replace(form, is_in_order=None)
    sound = count = 0
    for request in requests(name, scaled(1_000)):
        before = repr(request)
        violations = form.check(request)
        assert violations == thorough.check(request)
        assert repr(form.repair(request)) == repr(thorough.repair(request))
        assert repr(request) == before
        sound += not violations
        count += 1
    assert 1 / 8 < sound / count < 7 / 8


@EVERY
def test_what_the_library_writes_is_in_order_at_the_first_look(name: str) -> None:
    """No conversation that the library writes has to be copied to be checked."""

    def never(*_: object) -> NoReturn:
        raise AssertionError

    form = replace(form_of(name), fix=never)
    for seed in range(50):
        said = conversation(name, Random(seed))
        declared = {"toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]}}
        body = {KEYS[name]: said, **(declared if name == "bedrock_converse" else {})}
        assert form.check(said) == form.check(body) == []
        repaired, changes = form.repair(said)
        assert repaired == said
        assert repaired is not said
        assert changes == []


@pytest.mark.parametrize("name", ["openai_chat", "anthropic_messages", "gemini_generate_content"])
def test_a_result_that_comes_a_turn_later_is_not_in_order(name: str) -> None:
    """A result belongs right after its turn, even where no other call stands between them."""
    call = ToolMetadata(id="c", name="f", arguments="{}")
    result = ToolResult(id="c", name="f", arguments="{}", result="3")
    turn = CommittedRound(AssistantTurn(tool_calls=[call]), [result])
    asked, called, answered = said_by(name, [Message("user", "Go"), *turn])
    between = said_by(name, [Message("user", "Well?"), AssistantTurn(text="Wait.")])
    late = [asked, called, *between, answered]
    assert [each.rule for each in form_of(name).check(late)] == ["misplaced_result"]


class _Fixed:
    """Refuses to be written to."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("a request was written to")

    __setitem__ = __delitem__ = __iadd__ = __ior__ = _refuse
    append = extend = insert = remove = pop = popitem = clear = update = setdefault = _refuse
    sort = reverse = _refuse


class FixedDict(_Fixed, dict[str, Any]): ...


class FixedList(_Fixed, list[Any]): ...


def fixed(value: Any) -> Any:
    if is_object(value):
        return FixedDict({key: fixed(part) for key, part in value.items()})
    return FixedList(map(fixed, value)) if is_array(value) else value


@EVERY
def test_a_request_is_never_written_to(name: str) -> None:
    """Neither `check` nor `repair` writes to what it is given, even for a moment."""
    form = form_of(name)
    for request in requests(name, 150):
        assert form.check(fixed(request)) == form.check(request)
        assert repr(form.repair(fixed(request))) == repr(form.repair(request))
