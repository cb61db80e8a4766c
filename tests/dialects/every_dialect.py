"""What the laws that hold for all dialects begin with: the dialects, and what tests know of each.

That stands in `wire/`, in a file for each.

Beside the dialects of the library stands the one of the page "Write a dialect"; see `conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn
from lutum_py.dialects import DIALECTS as LIST
from lutum_py.testing import ScriptedClient

OF_LIBRARY = list(LIST)
OF_PAGE = "plain_chat"
NAMES = [*OF_LIBRARY, OF_PAGE]


def wire_of(name: str) -> Any:
    """Give what tests know of the wire of a dialect."""
    try:
        return import_module(f"tests.dialects.wire.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"tests.dialects.wire.{name}":
            raise
    path = f"tests/dialects/wire/{name}.py"
    pytest.exit(f"The dialect {name} has no {path}, with what the tests know of its wire.")


WIRES = {name: wire_of(name) for name in NAMES}
KEYS: dict[str, str] = {name: wire.KEY for name, wire in WIRES.items()}
"""The field of a request that holds the conversation."""
TRUNCATED: dict[str, list[str]] = {name: wire.TRUNCATED for name, wire in WIRES.items()}
"""The finish reasons that say that a limit on tokens ended the turn."""
REFUSED: dict[str, list[str]] = {name: wire.REFUSED for name, wire in WIRES.items()}
"""The finish reasons that say that the model refused, or a filter spoke in its place."""
TAKEN_NAMES: dict[str, str] = {name: wire.TAKEN_NAMES for name, wire in WIRES.items()}
"""The names of tools that each provider takes."""
DIALECTS = pytest.mark.parametrize("dialect", NAMES, indirect=True)


def key_of(dialect: ModuleType) -> str:
    """The field of a request that holds the conversation."""
    return KEYS[dialect.NAME]


def response_of(name: str, turn: AssistantTurn, number: int = 1) -> dict[str, Any]:
    """Give a turn as the provider writes it in its response of this number."""
    client = ScriptedClient([turn] * number, name, check=False)
    return [client.create() for _ in range(number)][-1]


def as_response(dialect: ModuleType, said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    made: dict[str, Any] = wire_of(dialect.NAME).as_response(said)
    return made


def bodies(name: str) -> dict[str, dict[str, Any]]:
    """A body of each dialect in which a tool is declared, asked for, called and answered."""
    return {each: wire.bodies(name) for each, wire in WIRES.items()}


def many_calls(
    dialect: ModuleType, count: int, call_id: Callable[[int], str], *, is_answered: bool
) -> list[Any]:
    """A turn with many calls, and their results if any; the ids are made by number."""
    ids = [call_id(number) for number in range(count)]
    asked, calls, results = wire_of(dialect.NAME).many_calls(ids)
    return [asked, *calls, *(results if is_answered else ())]


def streams() -> dict[str, list[dict[str, Any]]]:
    """A stream of each dialect that says something and makes two calls."""
    return {name: wire.stream() for name, wire in WIRES.items()}


def tools_in(dialect: ModuleType, body: dict[str, Any]) -> list[Any]:
    """Give the tools that a body offers."""
    found: Any = body
    for step in wire_of(dialect.NAME).TOOLS.split("."):
        found = found[step]
    offered: list[Any] = found
    return offered
