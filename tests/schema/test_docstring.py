"""What the model is told comes from docstrings: all of it, and nothing else."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lutum_py._schema.docstring import Docstring, attribute_docstrings, parse_docstring

GOOGLE = """Search the web.

    Only public pages are found.

    Args:
        query (str): What to search for,
            in any language.
        limit (Literal["a:b"], optional): Upper bound.

    Returns:
        A list.

    Raises:
        ValueError: If the query is blank.

    Example:
        >>> search("x")
    """

NUMPY = """Search the web.

    Only public pages are found.

    Parameters
    ----------
    query : str
        What to search for,
        in any language.

    limit : {'a', 'b'}, optional
        Upper bound.

    Returns
    -------
    list
        The hits.

    Examples
    --------
    >>> search("x")
    """

SPHINX = """Search the web.

    Only public pages are found.

    :param str query: What to search for,
        in any language.
    :param limit: Upper
      bound.
    :type limit: int
    :raises ValueError: If the query is blank.
    :returns: A list.
    :rtype: list
    """


def parse(text: str) -> Docstring:
    return parse_docstring(textwrap.dedent(text))


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_say_the_same(text: str) -> None:
    """A docstring means the same in each of the three styles."""
    assert parse_docstring(text) == Docstring(
        "Search the web.\n\nOnly public pages are found.",
        {"query": "What to search for, in any language.", "limit": "Upper bound."},
    )


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_nothing_says_nothing(text: str | None) -> None:
    """No docstring is an empty one."""
    assert parse_docstring(text) == Docstring("", {})


PROSE = [
    "Args: this is a sentence.",
    "Say what the Args: are.",
    "The title alone.\n\nArgs:",
    "The title alone.\n\nArgs:\n\nThen prose.",
    "No entry.\n\nArgs:\n    none at all",
    "A note: it is kept.\n\nNote:\n    The index is old.",
    "A link.\n\nArgs:\n    http://example.org/x",
    "A code block::\n\n    x: int = 1\n\nThe end.",
    "See :class:`Other` first.\n:class:`Third` too.\n:unknown x: is no field.",
    "A rule.\n\nNotes\n-----\nThe index is old.",
    "Underlined, but empty.\n\nParameters\n----------",
    "Underlined, but indented.\n\nParameters\n----------\n    x : int\n        Indented.",
    "Dashes.\n\nParameters\n--",
    ":param 1x: no name.",
    "Parameters",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_never_eaten(text: str) -> None:
    """What only resembles a section stays in the description, as it is."""
    assert parse_docstring(text) == Docstring(text, {})


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    """No text at all makes the parser raise."""
    parse_docstring(text)


LINES = st.sampled_from(
    [
        "",
        " ",
        "x",
        "Args:",
        "Keyword Args:",
        "Returns:",
        "    x: y",
        "    x (int): y",
        "    a, *b : c",
        "        more: of it",
        "  odd",
        "    :bad",
        "Parameters",
        "----------",
        "Returns",
        "-------",
        "x : int",
        "a, b",
        "Note: prose",
        ":param x: y",
        ":param int x, **y: z",
        ":param:",
        ":returns: it",
        ":",
        "    (:",
        "\x0c    x: y",
        "\u2003x: y",
        ".. deprecated:: 1",
        "\\*args",
    ]
)


@given(st.lists(st.one_of(LINES, st.text(max_size=8)), max_size=12).map("\n".join))
def test_any_heap_of_sections_is_taken(text: str) -> None:
    """No order of section pieces makes the parser raise, and a name is never blank or starred."""
    for name in parse_docstring(text).parameters:
        assert name.isidentifier()


WORDS = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), min_size=1, max_size=8)
SENTENCES = WORDS.map(lambda words: " ".join(words) + ".")
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
TYPES = st.sampled_from(["", "int", "dict[str, int]", "str, optional"])


def google(name: str, kind: str, text: str) -> str:
    return f"    {name} ({kind}): {text}" if kind else f"    {name}: {text}"


def numpy(name: str, kind: str, text: str) -> str:
    return f"{name} : {kind}\n    {text}" if kind else f"{name}\n    {text}"


def sphinx(name: str, kind: str, text: str) -> str:
    return f":param {kind} {name}: {text}" if kind else f":param {name}: {text}"


@pytest.mark.parametrize(
    ("title", "entry"),
    [("Args:\n", google), ("Parameters\n----------\n", numpy), ("", sphinx)],
    ids=["google", "numpy", "sphinx"],
)
@given(
    prose=st.lists(SENTENCES, min_size=1, max_size=3),
    entries=st.lists(
        st.tuples(NAMES, TYPES, SENTENCES), min_size=1, max_size=5, unique_by=lambda entry: entry[0]
    ),
)
def test_parsing_inverts_writing(
    title: str,
    entry: Callable[[str, str, str], str],
    prose: list[str],
    entries: list[tuple[str, str, str]],
) -> None:
    """Any names, types and sentences that are written in a style are read back from it."""
    description = "\n\n".join(prose)
    text = f"{description}\n\n{title}" + "\n".join(entry(*one) for one in entries)
    assert parse_docstring(text) == Docstring(description, {name: say for name, _, say in entries})


@pytest.mark.parametrize(
    "title",
    [
        "Keyword Args",
        "Keyword Arguments",
        "Other Parameters",
        "Arguments",
        "Parameters",
        "Params",
        "Attributes",
    ],
)
def test_every_parameter_title_counts(title: str) -> None:
    """Each customary title of a parameter section is known in Google and NumPy style."""
    written = [
        f"Do.\n\n{title}:\n    x: An x.",
        f"Do.\n\n{title}\n{'-' * len(title)}\nx\n    An x.",
    ]
    for text in written:
        assert parse_docstring(text) == Docstring("Do.", {"x": "An x."})


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    a, b (int): Both.",
        "Args:\n    *a: Both.\n    **b: Both.",
        "Args:\n    `a`: Both.\n    \\*\\*b: Both.",
        "Args:\n    a: Both.\n\nKeyword Args:\n    b: Both.",
        "Parameters\n----------\na, b : int\n    Both.",
        "Parameters\n----------\n*a, **b\n    Both.",
        "Parameters\n==========\na\n    Both.\n\nOther Parameters\n----------------\nb\n    Both.",
        ":param a, b: Both.",
        ":param int a, b: Both.",
        ":param \\*a: Both.\n:param \\*\\*b: Both.",
        ":param a: Both.\n:keyword b: Both.",
        ":ivar a: Both.\n:var b: Both.",
    ],
)
def test_names_are_told_apart(text: str) -> None:
    """Several names on one line share its description, and stars are no part of a name."""
    assert parse_docstring(f"Do.\n\n{text}") == Docstring("Do.", {"a": "Both.", "b": "Both."})


def test_prose_goes_on_after_sections() -> None:
    """Paragraphs between and behind sections are kept, in order."""
    parsed = parse(
        """\
        One.

        Args:
            x: An x.

        Two,
            with code.

        Returns:
            It.
        Three.
        :param y: A y
            that goes on

            and on
        :param z: A z
        lazily continued
            :with: a field of its own.

        Four.
        """
    )
    assert parsed.description == "One.\n\nTwo,\n    with code.\n\nThree.\n\nFour."
    assert parsed.parameters == {
        "x": "An x.",
        "y": "A y that goes on and on",
        "z": "A z lazily continued :with: a field of its own.",
    }


def test_a_line_without_a_colon_costs_nothing() -> None:
    """A line without a colon continues the entry above it; before the first entry it is prose."""
    parsed = parse(
        """\
        Do.

        Args:
            All are optional.
            x: An x,
            badly indented.

            y (int): A y (see
                z): or not.
        """
    )
    assert parsed == Docstring(
        "Do.\n\nAll are optional.",
        {"x": "An x, badly indented.", "y": "A y (see z): or not."},
    )


def test_a_description_may_look_like_an_entry() -> None:
    """Colons and parentheses in a description make neither a name nor a type of it."""
    parsed = parse(
        """\
        Args:
            x (int): An x (as
                note: always): more.
            y (int): A y (see x): more.

        Returns:
            It.
        """
    )
    assert parsed.parameters == {"x": "An x (as note: always): more.", "y": "A y (see x): more."}


def test_a_numpy_section_ends_at_prose() -> None:
    """A NumPy section ends where no entry follows: at prose, and at the next title."""
    parsed = parse(
        """\
        Do.

        Parameters
        ----------
        x : int
            An x.
        y

        Note: this is prose.

        Returns
        -------
        int
        Notes
        -----
        Old.
        """
    )
    assert parsed == Docstring(
        "Do.\n\nNote: this is prose.\n\nNotes\n-----\nOld.", {"x": "An x.", "y": ""}
    )


def test_a_title_on_the_first_line_needs_a_second_one() -> None:
    """A lone section on the first line is prose: its indentation looks like that of the code."""
    assert parse_docstring("Args:\n    x: y") == Docstring("Args:\nx: y", {})
    parsed = parse_docstring("Args:\n        x: y\n\n    Returns:\n        It.\n    ")
    assert parsed == Docstring("", {"x": "y"})


def test_the_first_description_counts() -> None:
    """Of two descriptions of one name, the first that is not empty is taken."""
    parsed = parse_docstring(":param x:\n:param x: First.\n:param x: Second.")
    assert parsed.parameters == {"x": "First."}


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
        from lutum_py._schema.docstring import attribute_docstrings

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
