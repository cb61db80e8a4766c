"""What the model is told comes from docstrings: all of it, and nothing else."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py._schema.signature import Docstring, parse_docstring
from tests.cases import over

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
    "See :class:`Other` first.\n:class:`Third` too.\n:unknown x: is not a field.",
    "A rule.\n\nNotes\n-----\nThe index is old.",
    "Underlined, but empty.\n\nParameters\n----------",
    "Underlined, but indented.\n\nParameters\n----------\n    x : int\n        Indented.",
    "Dashes.\n\nParameters\n--",
    ":param 1x: no name.",
    "Parameters",
]


@over("text", PROSE)
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


@over(
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


@over(
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


def test_a_numpy_section_may_begin_with_a_blank_line() -> None:
    """Blank lines between the line under a NumPy title and its first entry are passed over."""
    parsed = parse_docstring("Do.\n\nParameters\n----------\n\nx : int\n    A number.")
    assert parsed.parameters == {"x": "A number."}


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
