"""The laws of finding what stands below the attributes of a class."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import itertools
import linecache
import sys
import textwrap
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py._schema.json_schema import attribute_docstrings


class Plain:
    """The docstring of the class is none of an attribute."""

    user_id: str
    """The user's id."""

    limit: int = 5
    """Upper bound.

    In two paragraphs.
    """
    bare: str = ""
    "One line."
    "A second literal belongs to nobody."
    silent: str = ""
    blank: str = ""
    " "

    constant = 1
    """An attribute without annotation is no field."""

    def method(self) -> None:
        """Nor is a method."""

    class Inner(BaseModel):
        user_id: str
        """The inner one."""


class Child(Plain):
    extra: str
    """Only the child's own."""


def test_attributes_are_described_where_they_stand() -> None:
    """A string literal right after an annotated attribute describes it, and nothing else does."""
    assert attribute_docstrings(Plain) == {
        "user_id": "The user's id.",
        "limit": "Upper bound.\n\nIn two paragraphs.",
        "bare": "One line.",
    }


def test_only_the_own_body_counts() -> None:
    """Inherited and nested classes keep their docstrings to themselves."""
    assert attribute_docstrings(Child) == {"extra": "Only the child's own."}
    assert attribute_docstrings(Plain.Inner) == {"user_id": "The inner one."}


def described(cls: type[Any]) -> type[Any]:
    """Read the docstrings while the class is being made, as a decorator does."""
    cls.found = attribute_docstrings(cls)
    return cls


def test_classes_of_one_name_are_told_apart() -> None:
    """Of classes with one qualified name and the same fields, each gets its own docstrings."""

    @described
    class Args:
        x: int
        """First."""

    first = Args

    @described
    class Args:  # type: ignore[no-redef]
        x: int
        """Second."""

    def local() -> type[Any]:
        @described
        class Args:
            x: int
            """Local."""

        return Args

    async def other() -> None:
        class Args:
            x: int
            """Other."""

        assert attribute_docstrings(Args) == {"x": "Other."}

    with pytest.raises(StopIteration):
        other().send(None)

    found = [vars(cls)["found"] for cls in (first, Args, local())]
    assert found == [{"x": "First."}, {"x": "Second."}, {"x": "Local."}]


def load(path: Path, source: str) -> ModuleType:
    """Import a module from a source text."""
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A module of two same-named classes, which tell no line number."""
    module = load(
        tmp_path / "lutum_docstring_sample.py",
        """\
        class Args:
            x: int
            '''First.'''
            y: int

        class Args:
            x: int
            '''Second.'''
        """,
    )
    yield module
    del sys.modules[module.__name__]


def lineless(module: ModuleType, *names: str, **namespace: Any) -> type[Any]:
    """A class of the module that does not know its line, as before Python 3.13."""
    annotations = dict.fromkeys(names, int)
    return type(
        "Args", (), namespace | {"__module__": module.__name__, "__annotations__": annotations}
    )


def test_a_line_number_decides(module: ModuleType) -> None:
    """Where the class knows its line, that decides; a line that no longer fits means no source."""
    assert attribute_docstrings(lineless(module, __firstlineno__=1)) == {"x": "First."}
    assert attribute_docstrings(lineless(module, __firstlineno__=6)) == {"x": "Second."}
    assert attribute_docstrings(lineless(module, __firstlineno__=2)) == {}


def test_field_names_decide_without_a_line_number(module: ModuleType) -> None:
    """Where the class does not know its line, its annotated names tell which statement made it."""
    assert attribute_docstrings(lineless(module, "x", "y")) == {"x": "First."}
    assert attribute_docstrings(lineless(module, "x")) == {"x": "Second."}
    assert attribute_docstrings(lineless(module, "z")) == {}


def test_the_running_statement_decides_between_equals(tmp_path: Path) -> None:
    """Of equal statements, the one being run is meant, and after the fact the last one."""
    source = """\
        from lutum_py._schema.json_schema import attribute_docstrings

        def seen(cls):
            lineless = type("Args", (), {"__module__": __name__, "__annotations__": {"x": int}})
            found.append(attribute_docstrings(lineless))
            return cls

        found = []

        @seen
        class Args:
            x: int
            '''First.'''

        @seen
        class Args:
            x: int
            '''Second.'''

        seen(Args)
    """
    module = load(tmp_path / "lutum_docstring_equals.py", source)
    del sys.modules[module.__name__]
    assert module.found == [{"x": "First."}, {"x": "Second."}, {"x": "Second."}]


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A prompt: what is typed in runs in a `__main__` without a file, and may be kept."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(linecache, "cache", {})
    monkeypatch.setattr(linecache, "_interactive_cache", {}, raising=False)
    names = (f"<cell {number}>" for number in itertools.count())

    def run(source: str, table: dict[str, Any] | None = None) -> Any:
        text, name = textwrap.dedent(source), next(names)
        if table is not None:
            table[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(main))
        return main

    return run


TYPED = """
    class Args(BaseModel):
        days: int
        '''How many {}.'''
"""


def test_what_is_typed_in_is_found_where_a_notebook_keeps_it(prompt: Callable[..., Any]) -> None:
    """In a notebook the last cell with the class counts, and while one runs, that one."""
    kept: dict[str, Any] = linecache.cache
    main = prompt("from pydantic import BaseModel", kept)
    for what in ("days", "weeks"):
        prompt(TYPED.format(what), kept)
    kept["broken"] = (9, None, ["class Args("], "broken")
    kept["a file"] = (1, 1.0, ["class Args: ..."], "a file")
    kept["not read yet"] = (lambda: "class Args: ...",)
    assert attribute_docstrings(main.Args) == {"days": "How many weeks."}
    main.found, main.read = [], lambda cls: main.found.append(attribute_docstrings(cls))
    first = TYPED.replace("class", "@read\n    class").format("days")
    prompt(first, kept)
    prompt(TYPED.format("months"), kept)
    assert main.found == [{"days": "How many days."}]


def test_the_prompt_of_asyncio_has_a_file_of_its_own(prompt: Callable[..., Any]) -> None:
    """Under `python -m asyncio` the file of the main module is not where a class was typed in."""
    main = prompt("from pydantic import BaseModel")
    main.__spec__, main.__file__ = ModuleSpec("asyncio.__main__", None), asyncio.__file__
    prompt(TYPED.format("days"), linecache.cache)
    assert attribute_docstrings(main.Args) == {"days": "How many days."}


def test_newer_prompts_keep_it_elsewhere(prompt: Callable[..., Any]) -> None:
    """What Python's own prompt keeps beside the table of files is found as well."""
    prompt("from pydantic import BaseModel")
    main = prompt(TYPED.format("days"), vars(linecache)["_interactive_cache"])
    assert attribute_docstrings(main.Args) == {"days": "How many days."}


def test_a_prompt_that_keeps_no_source_is_warned_of(prompt: Callable[..., Any]) -> None:
    """Where texts under fields cannot be read, that is said; not of fields that have theirs."""
    prompt("from pydantic import BaseModel, Field")
    main = prompt(TYPED.format("days"))
    with pytest.warns(UserWarning, match=r"source of `Args` is not .*`Field\(description=") as told:
        assert attribute_docstrings(main.Args) == {}
    assert len(told) == 1
    main = prompt("class Args(BaseModel):\n    x: int = Field(description='How many.')")
    assert attribute_docstrings(main.Args) == {}


def test_no_source_is_no_docstrings(tmp_path: Path, module: ModuleType) -> None:
    """Builtins, `exec`, a vanished file and a file edited into nonsense describe nothing."""
    namespace: dict[str, Any] = {"__name__": "no_such_module"}
    exec("class Args:\n    x: int\n    'Lost.'", namespace)
    assert attribute_docstrings(namespace["Args"]) == {}
    assert attribute_docstrings(int) == {}

    assert attribute_docstrings(module.Args) == {"x": "Second."}
    assert module.__file__ is not None
    path = Path(module.__file__)
    path.write_text("class Args(:", encoding="utf-8")
    assert attribute_docstrings(module.Args) == {}
    path.write_text("nul = '\0'", encoding="utf-8")
    assert attribute_docstrings(module.Args) == {}
    module.__file__ = str(tmp_path / "vanished.py")
    del module.__loader__, module.__spec__
    assert inspect.getsourcefile(module.Args) is None
    assert attribute_docstrings(module.Args) == {}
