"""What public signatures name, and what public names say of themselves."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lutum_py
import lutum_py.typing

from .public_api import public_modules, public_names

ONLY_GIVEN = {"Held", "Hold", "RemoteTools", "ToolRound", "ToolRoundPlan"}
"""What users get of a function, and never make."""
CALLED = ("__init__", "__call__", "__getitem__", "__iter__")
PARAMETERS = {"TypeVar", "ParamSpec", "TypeVarTuple"}


class Source:
    """What one module defines and imports, as it is written."""

    def __init__(self, name: str) -> None:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        path = Path(found.origin)
        self.name = name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.homes: dict[str, tuple[str, str]] = {}
        self.defined: dict[str, ast.AST] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                above = package.split(".")[: -(node.level - 1) or None] if node.level else []
                home = ".".join([*above, *filter(None, [node.module])])
                for alias in node.names:
                    self.homes[alias.asname or alias.name] = (home, alias.name)
        for node in flat(self.tree.body):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.defined[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.defined[node.targets[0].id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.defined[node.target.id] = node


def flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Go into `if TYPE_CHECKING`, and into nothing else."""
    for node in body:
        if isinstance(node, ast.If):
            yield from flat(node.body)
            yield from flat(node.orelse)
        else:
            yield node


@cache
def source(name: str) -> Source:
    return Source(name)


def home_of(module: str, name: str) -> tuple[str, str]:
    """Follow imports to where a name is defined."""
    while (imported := source(module).homes.get(name)) and imported[0].startswith("lutum_py"):
        if imported == (module, name):  # a module of the package
            break
        module, name = imported
    return module, name


def annotations_in(node: ast.AST) -> Iterator[ast.expr]:
    """Give the annotations of a function, or of the public attributes and methods of a class."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        each = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        yield from filter(None, (one.annotation for one in each if one is not None))
        yield from filter(None, [node.returns])
    elif isinstance(node, ast.ClassDef):
        for member in flat(node.body):
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                if not member.target.id.startswith("_"):
                    yield member.annotation
            elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                is_made = member.name != "__init__" or node.name not in ONLY_GIVEN
                if is_made and (not member.name.startswith("_") or member.name in CALLED):
                    yield from annotations_in(member)
    elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        yield from filter(None, [node.value])


def names_in(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            with contextlib.suppress(SyntaxError):
                yield from names_in(ast.parse(node.value, mode="eval").body)


def is_parameter(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in PARAMETERS
    )


def test_every_type_that_a_signature_names_has_a_public_place() -> None:
    """Whatever a public signature names can be imported from a public module."""
    public = {
        home_of(module.__name__, name)
        for module in public_modules(lutum_py)
        for name in getattr(module, "__all__", ())
    }
    hidden: dict[str, str] = {}
    named_only = {home_of("lutum_py.typing", name) for name in vars(lutum_py.typing)["__all__"]}
    for module, name in sorted(public - named_only):
        node = source(module).defined.get(name)
        if node is None:
            continue
        for annotation in annotations_in(node):
            for used in names_in(annotation):
                home, original = home_of(module, used)
                if not home.startswith("lutum_py") or (home, original) in public:
                    continue
                found = source(home).defined.get(original)
                if found is None or is_parameter(found):
                    continue
                hidden.setdefault(f"{home}.{original}", f"{module}.{name}")
    assert hidden == {}


def test_each_public_name_has_one_public_place() -> None:
    """What is public is imported from one module: no two public modules list the same thing."""
    places: dict[tuple[str, str], list[str]] = {}
    for module in public_modules(lutum_py):
        for name in getattr(module, "__all__", ()):
            place = f"{module.__name__}.{name}"
            places.setdefault(home_of(module.__name__, name), []).append(place)
    assert len(places) > 300
    assert [several for several in places.values() if len(several) > 1] == []


def test_checkers_and_interpreter_find_the_same_thing_by_each_name() -> None:
    """What a checker reads of a public module is what the interpreter gives, on demand or not."""
    others, unlisted = [], []
    for module in public_modules(lutum_py):
        for name in getattr(module, "__all__", ()):
            home, original = home_of(module.__name__, name)
            if getattr(module, name) is not getattr(importlib.import_module(home), original):
                others.append(f"{module.__name__}.{name}")
            if name not in dir(module):
                unlisted.append(f"{module.__name__}.{name}")
    assert (others, unlisted) == ([], [])


def test_every_public_class_and_function_says_what_it_is() -> None:
    """An editor has a text to show for each public class and function, and for its methods."""
    silent = []
    for path, value in public_names().items():
        if inspect.isclass(value) and value.__module__.startswith("lutum_py"):
            members = {
                name: member.fget if isinstance(member, property) else member
                for name, member in vars(value).items()
                if not name.startswith("_")
            }
            for name, member in {"": value, **members}.items():
                if (inspect.isroutine(member) or name == "") and not inspect.getdoc(member):
                    silent.append(f"{path}.{name}")
        elif inspect.isroutine(value) and not inspect.getdoc(value):
            silent.append(path)
    assert silent == []
