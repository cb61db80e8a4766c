"""The public names, and what each takes: `python -m tests.public_api` writes them to a file.

`public_api.txt` has the names that users have: those of the last release. A line is a name and its
parameters; `*` marks one that is given by keyword alone, `/` by position alone, and `=` one that
may be left out. `tests/test_public_api.py` compares.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import lutum_py

FILE: Final = Path(__file__).with_suffix(".txt")
OPTIONAL: Final = {
    "code": "pydantic_monty",
    "mcp": "mcp",
    "otel": "opentelemetry",
    "pytest_plugin": "pytest",
}
"""Modules of which the import needs another package."""
KINDS: Final[dict[int, str]] = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.KEYWORD_ONLY: "*",
    inspect.Parameter.VAR_POSITIONAL: "*...",
    inspect.Parameter.VAR_KEYWORD: "**...",
}


def public_modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for found in pkgutil.iter_modules(package.__path__):
        if found.name.startswith("_"):
            continue
        if (needed := OPTIONAL.get(found.name)) is not None:
            pytest.importorskip(needed, reason=f"{needed} is not installed")
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        if found.ispkg:
            yield from public_modules(module)
        else:
            yield module


def public_names() -> dict[str, Any]:
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in public_modules(lutum_py)
        for name in getattr(module, "__all__", ())
    }


def public_api() -> dict[str, list[str]]:
    """Give each public name with its parameters, the members of classes included."""
    api: dict[str, list[str]] = {}
    for path, value in public_names().items():
        if not isinstance(value, type):
            api[path] = parameters(value)
            continue
        own = [one for one in value.__mro__ if one.__module__.partition(".")[0] == "lutum_py"]
        is_made = any("__init__" in vars(one) or "__new__" in vars(one) for one in own)
        api[path] = parameters(value) if is_made and not issubclass(value, Enum) else []
        for one in own:
            for name in {**vars(one), **inspect.get_annotations(one)}:
                if not name.startswith("_"):
                    member = inspect.getattr_static(value, name, None)
                    bound = getattr(member, "__func__", member)
                    api[f"{path}.{name}"] = parameters(bound)
    return api


def parameters(value: Any) -> list[str]:
    """Write each parameter as a word."""
    if not isinstance(value, type) and not inspect.isroutine(value):
        return []
    try:
        given = [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return []
    if any(one.name.startswith("_") for one in given):  # what only the package makes
        return []
    return [word(one) for one in given if one.name not in ("self", "cls")]


def word(one: inspect.Parameter) -> str:
    is_needed = one.default is inspect.Parameter.empty
    mark = KINDS.get(one.kind, "")
    return mark if mark.endswith("...") else f"{mark}{one.name}{'' if is_needed else '='}"


def read(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def breaks(before: dict[str, list[str]], now: dict[str, list[str]]) -> dict[str, str]:
    """Name what code that was written before cannot use any more, and why."""
    found: dict[str, str] = {}
    for name, old in before.items():
        new = now.get(name)
        if new is None:
            found[name] = "is gone"
            continue
        gone = [one for one in old if one not in new and f"{one}=" not in new]
        asked = [one for one in new if not one.endswith(("=", "...")) and one not in old]
        if gone or asked:
            found[name] = (
                f"took {' '.join(old) or 'nothing'}, and takes {' '.join(new) or 'nothing'}"
            )
    return found


if __name__ == "__main__":
    lines = (" ".join([name, *taken]) for name, taken in sorted(public_api().items()))
    FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
