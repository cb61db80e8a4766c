"""The layers of the package: a module knows what lies below it, and nothing above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

LAYERS: Final[dict[str, tuple[str, ...]]] = {
    "text and errors": (
        "_display_faults",
        "_display_html",
        "_docstring",
        "_faults",
        "_frozen",
        "_json",
        "_lifecycle",
        "_saved",
        "_suggestion",
        "_threads",
        "_version",
        "errors",
    ),
    "values": (
        "_approval",
        "_assistant",
        "_attachment",
        "_cancellation",
        "_capabilities",
        "_committed",
        "_context",
        "_decisions",
        "_definition",
        "_message",
        "_metadata",
        "_progress",
        "_request",
        "_result",
        "_round_state",
        "_state",
        "_stream_events",
        "_suspension",
        "_tool_choice",
    ),
    "functions to schemas": (
        "_arguments",
        "_closed_schema",
        "_exact_data",
        "_input_model",
        "_invocation",
        "_json_schema",
        "_json_schema_check",
        "_mending",
        "_options",
        "_output",
        "_plain_types",
        "_signature",
    ),
    "one tool": (
        "_call",
        "_call_state",
        "_continue_suggestion",
        "_member",
        "_offer",
        "_outcomes",
        "_schema_tool",
        "_selector",
        "_spec",
        "_tool_fn",
        "_tool_input",
    ),
    "deciding": (
        "_call_gate",
        "_capability_gate",
        "_decision_log",
        "_hook_names",
        "_hook_outcome",
        "_hook_pipeline",
        "_hook_places",
        "_hook_set",
        "_registered_hook",
        "_steps",
    ),
    "one round": (
        "_after_results",
        "_commit",
        "_display_calls",
        "_display_transcript",
        "_item_json",
        "_plan",
        "_plan_json",
        "_plan_seal",
        "_resume",
        "_round",
        "_transcript",
        "_transcript_check",
        "_transcript_json",
    ),
    "toolset": (
        "_display_toolset",
        "_runtime_toolset",
        "_selector_type",
        "_toolset",
        "_toolset_meta",
        "_turn_outcome",
    ),
    "running": (
        "_execution_batch",
        "_execution_outcome",
        "_execution_run",
        "execution",
        "sinks",
    ),
    "conversation": ("_model", "_session", "_turn", "_turn_stream"),
    "wire": ("dialects", "dialects.*"),
    "edges": (
        "__main__",
        "_span_attributes",
        "cli",
        "cli.*",
        "models",
        "models.*",
        "otel",
        "testing",
        "testing.*",
    ),
    "façade": ("__init__",),
}
"""From the lowest layer to the highest. A pattern stands for every module of a subpackage."""

WIRE_SEES: Final = ("text and errors", "values", "functions to schemas", "one tool", "wire")
"""The dialects know values and tools; how calls are decided or committed is not their business."""

UPWARD_FOR_TYPES: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("_call", "_hook_outcome"),
        ("_hook_names", "_toolset"),
        ("_hook_places", "_toolset"),
        ("_hook_set", "_toolset"),
        ("_member", "_toolset"),
        ("_offer", "_toolset"),
        ("_plan", "_toolset"),
        ("_plan_json", "_toolset"),
        ("_round", "_toolset"),
        ("_selector", "_toolset"),
    }
)
"""Who names a type from above, under `TYPE_CHECKING` only."""

UPWARD_WHEN_CALLED: Final[frozenset[tuple[str, str]]] = frozenset(
    {("_call", "_hook_pipeline"), ("_member", "_toolset"), ("_result", "_item_json")}
)
"""Whose methods are a shortcut to something above, imported only where they run."""


def find_package() -> Path:
    spec = find_spec("lutum_py")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


PACKAGE: Final = find_package()


def module_name(file: Path) -> str:
    """The dotted name below the package: `_call`, `dialects.openai_chat`, `dialects`."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES: Final = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def layer_of(module: str) -> int | None:
    folder, dot, _ = module.partition(".")
    names = {module, f"{folder}.*"} if dot else {module}
    found = [at for at, members in enumerate(LAYERS.values()) if names.intersection(members)]
    return found[0] if found else None


@dataclass(frozen=True)
class Import:
    """One module of the package that a file imports, and in which way."""

    target: str
    line: int
    for_types: bool
    in_function: bool


def imports_of(module: str, source: str, is_package: bool) -> Iterator[Import]:
    """Every import of the package's own modules, wherever in the file it stands."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    if module == "__init__":
        package = []
    seen: list[tuple[ast.AST, bool, bool]] = [(ast.parse(source), False, False)]
    while seen:
        node, for_types, in_function = seen.pop()
        for target in targets_of(node, package):
            assert isinstance(node, ast.Import | ast.ImportFrom)
            yield Import(target, node.lineno, for_types, in_function)
        in_function = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            seen += [(child, True, in_function) for child in node.body]
            seen += [(child, for_types, in_function) for child in node.orelse]
        else:
            seen += [(child, for_types, in_function) for child in ast.iter_child_nodes(node)]


def targets_of(node: ast.AST, package: list[str]) -> Iterator[str]:
    """The modules of the package that one statement imports."""
    names: list[list[str]] = []
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = node.module.split(".") if node.module else []
        if node.level:
            base = ["lutum_py", *package[: len(package) + 1 - node.level], *base]
        names = [[*base, alias.name] for alias in node.names]
    for name in names:
        if name[0] != "lutum_py":
            continue
        # The last part may be a module or a thing in one.
        inside = [".".join(name[1:]), ".".join(name[1:-1])]
        yield next((one for one in inside if one in FILES), "__init__")


def is_upward(module: str, target: str) -> bool:
    here, there = layer_of(module), layer_of(target)
    assert here is not None, f"{module} is in no layer"
    assert there is not None, f"{target} is in no layer"
    return there > here


IMPORTS: Final = {
    module: list(imports_of(module, file.read_text(encoding="utf-8"), file.name == "__init__.py"))
    for module, file in FILES.items()
}


def test_every_module_has_a_place() -> None:
    """Each module stands in exactly one layer, so a new file forces a decision."""
    members = [name for names in LAYERS.values() for name in names]
    assert len(members) == len(set(members))
    assert [module for module in FILES if layer_of(module) is None] == []
    groups = {f"{module.rpartition('.')[0]}.*" for module in FILES if "." in module}
    assert [name for name in members if name not in {*FILES, *groups}] == []


@pytest.mark.parametrize("module", FILES)
def test_a_module_imports_nothing_from_above(module: str) -> None:
    """A file imports from its own layer and lower ones, but for the exceptions that are listed."""
    allowed = UPWARD_FOR_TYPES | UPWARD_WHEN_CALLED
    breaches = [
        f"{FILES[module].name}:{one.line} imports {one.target}"
        for one in IMPORTS[module]
        if is_upward(module, one.target) and (module, one.target) not in allowed
    ]
    assert breaches == []


def test_exceptions_are_as_they_say() -> None:
    """Each listed exception is needed, and is made in the way that it is listed for."""
    upward = [
        (module, one)
        for module, found in IMPORTS.items()
        for one in found
        if is_upward(module, one.target)
    ]
    for_types = {(module, one.target) for module, one in upward if one.for_types}
    called = {(module, one.target) for module, one in upward if not one.for_types}
    assert for_types == UPWARD_FOR_TYPES
    assert called == UPWARD_WHEN_CALLED
    assert [
        (module, one.target) for module, one in upward if not one.for_types and not one.in_function
    ] == []


@pytest.mark.parametrize("module", [name for name in FILES if name.startswith("dialects")])
def test_a_dialect_knows_only_values_and_tools(module: str) -> None:
    """A dialect imports neither hooks nor rounds nor sessions when it runs."""
    names = list(LAYERS)
    breaches = [
        f"{FILES[module].name}:{one.line} imports {one.target}"
        for one in IMPORTS[module]
        if not one.for_types and names[layer_of(one.target) or 0] not in WIRE_SEES
    ]
    assert breaches == []


def test_imports_are_found_wherever_they_stand() -> None:
    """Relative and absolute imports count, in functions and for types, and each is told apart."""
    source = """
from __future__ import annotations
import typing
import lutum_py.errors
from typing import TYPE_CHECKING
from lutum_py import _json
from ..errors import LutumError
from . import openai_chat
if TYPE_CHECKING:
    from lutum_py import Toolset
else:
    from .._docstring import parse_docstring
class A:
    async def f(self):
        from .._version import __version__
"""
    found = sorted(imports_of("dialects.sample", source, False), key=lambda one: one.line)
    assert found == [
        Import("errors", 4, False, False),
        Import("_json", 6, False, False),
        Import("errors", 7, False, False),
        Import("dialects.openai_chat", 8, False, False),
        Import("__init__", 10, True, False),
        Import("_docstring", 12, False, False),
        Import("_version", 15, False, True),
    ]
