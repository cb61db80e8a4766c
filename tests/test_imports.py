"""The laws of imports that no contract of import-linter says: circles, and what is hidden."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

LARGEST_CIRCLE: Final = 4

SLOW: Final = {
    "anthropic": "an SDK",
    "ast": "for classes that document their fields",
    "asyncio": "for async programs",
    "attrs": "comes with the extra jsonschema",
    "concurrent.futures": "for tools that are run in threads",
    "datetime": "for the time of a decision",
    "difflib": "for near misses",
    "google.genai": "an SDK",
    "graphlib": "for schemas with references",
    "hashlib": "for digests",
    "hmac": "for seals",
    "inspect": "loads ast and dis",
    "json": "pydantic reads without it; for what is written",
    "jsonschema": "an extra",
    "linecache": "goes with inspect",
    "logging": "for sinks that log, and for faults of sinks",
    "mcp": "an extra",
    "openai": "an SDK",
    "opentelemetry": "an extra",
    "pydantic.errors": "goes with JSON schemas",
    "psycopg": "an extra",
    "pydantic.fields": "half of pydantic",
    "referencing": "goes with jsonschema",
    "rich": "an extra",
    "string": "for messages of approvals",
    "threading": "for tokens that threads wait for",
    "uuid": "for ids that nobody gave",
    "uvicorn": "goes with mcp",
}
"""What is not ours and slow to import, or not installed everywhere: why a program may spare it."""

OURS: Final = {
    "_call.call": "what declares tools makes no calls",
    "_call.call_state": "what declares tools makes no calls",
    "_call.decisions": "for hooks",
    "_call.outcomes": "what declares tools makes no calls",
    "_call.rules": "for tools that are declared with a rule",
    "_context.context": "for tools that take one",
    "_context.suspension": "few calls wait, and fewer are decided on here",
    "_toolsets.answer": "for final answers of a type",
    "_toolsets.call_type": "for the calls of all tools as one type",
    "_toolsets.display": "for what is looked at",
    "_toolsets.hook_names": "for policies, and for hooks",
    "_toolsets.handlers": "for tools that are done elsewhere",
    "_toolsets.offer": "for what a turn offers",
    "_toolsets.runtime_toolset": "for tools that are known when a program runs",
    "_toolsets.tool_input": "makes a pydantic model, which is as slow as to import pydantic",
    "_hooks.hook_set": "for hooks",
    "_hooks.pipeline": "loads logging",
    "_round": "what declares tools needs no rounds, and few rounds wait, are saved or are shown",
    "_schema.capabilities": "for tools that say what they do to the world",
    "_schema.closed_schema": "for calls: what is only declared validates nothing",
    "_schema.field_issues": "for arguments that do not fit, and outputs",
    "_schema.input_model": "makes a pydantic model, which is as slow as to import pydantic",
    "_schema.json_schema": "loads pydantic's generator of schemas",
    "_schema.schema_reader": "for schemas that pydantic or a user made",
    "_schema.read_back": "for values that are not plain data",
    "_schema.secrets": "what is only declared is shown nowhere",
    "_session": "what declares tools needs no sessions, and few are saved",
    "_text.json": "loads pydantic, which no exception needs",
    "_text.waiting": "for tools that are run in threads",
    "_transcript.assistant": "what declares tools makes no calls",
    "_transcript.check": "for transcripts that are not valid",
    "_transcript.display": "for what is looked at",
    "_transcript.message": "a tool that is only declared needs none",
    "_transcript.result_cap": "for tools whose results are bounded",
    "_transcript.saved": "for what is saved",
    "_transcript.transcript_json": "for what is saved",
    "cli._commands": "needs the extra",
    "errors": "for what is saved",
    "mcp": "needs the extra",
    "testing": "pytest loads the plugin for every project",
}
"""What is ours, and slow to import because of what it loads or makes."""


def find_package() -> Path:
    spec = find_spec("lutum_py")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


PACKAGE: Final = find_package()


def module_name(file: Path) -> str:
    """The dotted name below the package: `_call.call`, `dialects`; nothing for the façade."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES: Final = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@dataclass(frozen=True)
class Import:
    """What a statement imports: a module of ours, named from the package on, or a foreign one."""

    target: str
    is_ours: bool
    line: int
    in_function: bool


def imports_of(module: str, source: str, is_package: bool) -> Iterator[Import]:
    """Every import of a file, wherever in it: for types and in functions as well."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    seen: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while seen:
        node, hidden = seen.pop()
        for name in names_in(node, [part for part in package if part]):
            assert isinstance(node, ast.Import | ast.ImportFrom)
            if name[0] != "lutum_py":
                yield Import(".".join(name), False, node.lineno, hidden)
                continue
            # The last part may be a module or a thing in one.
            inside = (".".join(name[1:]), ".".join(name[1:-1]))
            target = next(one for one in inside if one in FILES)
            yield Import(target, True, node.lineno, hidden)
        hidden = hidden or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        seen += [(child, hidden) for child in ast.iter_child_nodes(node)]


def names_in(node: ast.AST, package: list[str]) -> list[list[str]]:
    """The full names that one statement imports, taken apart."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module.split(".") if node.module else []
    if node.level:
        base = ["lutum_py", *package[: len(package) + 1 - node.level], *base]
    return [[*base, alias.name] for alias in node.names]


IMPORTS: Final = {
    module: list(imports_of(module, file.read_text(encoding="utf-8"), file.name == "__init__.py"))
    for module, file in FILES.items()
}


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Every largest group of modules in which each leads to each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, following = set[str](), [start]
        while following:
            new = graph.get(following.pop(), set()) - seen
            seen |= new
            following += new
        reached[start] = seen
    groups = (
        frozenset(one for one in reached[start] if start in reached[one])
        for start in graph
        if start in reached[start]
    )
    return set(groups)


def known(name: str, listed: dict[str, str]) -> str | None:
    """Which entry of a list a name falls under: its own, or its package's."""
    return next((one for one in listed if name == one or name.startswith(f"{one}.")), None)


def test_no_circle_is_large() -> None:
    """No more than four files import each other in a circle, imports for types included.

    What goes through the façade is left out: it names all others, and loads what is asked for.
    """
    graph = {
        module: {one.target for one in found if one.is_ours and one.target not in ("", module)}
        for module, found in IMPORTS.items()
    }
    assert [sorted(group) for group in circles(graph) if len(group) > LARGEST_CIRCLE] == []


def test_no_import_is_hidden_but_what_is_slow() -> None:
    """An import stands at the head of its file, but for what is listed as slow, with the reason."""
    hidden = [
        f"{FILES[module].relative_to(PACKAGE)}:{one.line} imports {one.target or 'lutum_py'}"
        for module, found in IMPORTS.items()
        for one in found
        if one.in_function and known(one.target, OURS if one.is_ours else SLOW) is None
    ]
    assert hidden == []


def test_what_is_listed_as_slow_is_hidden_somewhere() -> None:
    """Each listed module is imported in some function: the lists hold nothing that is past."""
    hidden = [one for found in IMPORTS.values() for one in found if one.in_function]
    assert {known(one.target, SLOW) for one in hidden if not one.is_ours} >= SLOW.keys()
    assert {known(one.target, OURS) for one in hidden if one.is_ours} >= OURS.keys()


def test_circles_are_found_whole() -> None:
    """A circle is found with all of its members, and what only leads to it is none of them."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e"}, "f": set[str]()}
    assert circles(graph) == {frozenset("abc"), frozenset("e")}


def test_imports_are_found_wherever_they_stand() -> None:
    """Relative and absolute imports count, for types and in functions, and those are told apart."""
    source = """
from __future__ import annotations
import lutum_py.errors
from typing import TYPE_CHECKING
from ..errors import LutumError
from . import openai_chat
if TYPE_CHECKING:
    from lutum_py import Toolset
class A:
    async def f(self):
        from .._text.json import compact_json
        import rich.table
"""
    found = [one for one in imports_of("dialects.sample", source, False) if one.line > 2]
    assert sorted(found, key=lambda one: one.line) == [
        Import("errors", True, 3, False),
        Import("typing.TYPE_CHECKING", False, 4, False),
        Import("errors", True, 5, False),
        Import("dialects.openai_chat", True, 6, False),
        Import("", True, 8, False),
        Import("_text.json", True, 11, True),
        Import("rich.table", False, 12, True),
    ]
