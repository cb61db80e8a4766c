"""How a toolset is found by its name, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

from .conftest import Lutum

MISTAKES = {
    "tools": "There are: tools:Inner, tools:Middle, tools:Tools, tools:Empty",
    "below/other.py": "There is: below/other.py:Only.",
    "tools:": "`tools:` names no toolset. Name a toolset as `module:Toolset`",
    "": "An empty text names no toolset. Name a toolset as `module:Toolset`",
    "tools:Tool": "`tools` has no `Tool`. Did you mean `Tools`? There are: tools:Inner",
    "tools:zzz": "`tools` has no `zzz`. There are: tools:Inner",
    "tools:Tools.grop": "`Tools` has no `grop`. Did you mean `group`?",
    "tools:Place": "`tools:Place` is not a toolset: it is a class.",
    "tools:Tools.wait": "`tools:Tools.wait` is not a toolset: it is of type `ToolsSelector`.",
    "toools:Tools": "There is no module `toools`: it is neither installed nor in the current",
    "tools.deeper:Tools": "There is no module `tools.deeper`",
    "no/such.py:Tools": "There is no file `no/such.py`.",
    "one:Tools": "`one` has no `Tools`. There is: one:Only.",
    "none:Tools": "There is no toolset in it. Name a toolset as",
    "broken:Tools": "Importing `broken` failed: ZeroDivisionError: division by zero (broken.py:2).",
    "quits:Tools": "Importing `quits` failed: SystemExit: it ends the program (exit code 3)",
    "grammar:Tools": "Importing `grammar` failed: SyntaxError: ",
    "silent:Tools": "Importing `silent` failed: RuntimeError: no message (silent.py:1).",
    "needs:Tools": "Importing `needs` failed: ModuleNotFoundError: No module named 'not_there'",
    "json.py:Tools": "`json.py` cannot be imported: another module is called `json`",
    "..:Tools": "There is no module `..`: it is neither installed nor in the current directory.",
    ".tools:Tools": "There is no module `.tools`",
}
MODULES = {
    "one": "from lutum_py import Toolset\nclass Only(Toolset): ...\n",
    "none": "x = 1\n",
    "broken": "# The first line.\n1 / 0\n",
    "quits": "raise SystemExit(3)\n",
    "grammar": "def\n",
    "silent": "raise RuntimeError\n",
    "needs": "import not_there\n",
    "json": "",
}


def test_a_mistake_is_told_with_its_remedy(lutum: Lutum, tmp_path: Path) -> None:
    """What names no toolset ends with exit code 2, and one line that says what there is."""
    (tmp_path / "below").mkdir()
    for name, code in {**MODULES, "below/other": MODULES["one"]}.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    for reference, told in MISTAKES.items():
        ran = lutum("inspect", reference)
        assert (ran.code, ran.out) == (2, ""), reference
        assert told in ran.err, (reference, ran.err)
        assert ran.err.startswith("lutum: "), (reference, ran.err)
        assert ran.err.count("\n") == 1, (reference, ran.err)


def test_the_whole_traceback_is_shown_when_asked_for(lutum: Lutum, tmp_path: Path) -> None:
    """`--traceback` adds the traceback of the failing import, and changes nothing else."""
    (tmp_path / "broken.py").write_text(MODULES["broken"], encoding="utf-8")
    ran = lutum("inspect", "broken:Tools", "--traceback")
    assert ran.code == 2
    assert ran.err.startswith("Traceback (most recent call last):\n")
    assert ran.err.endswith(lutum("inspect", "broken:Tools").err)


def test_a_definition_error_comes_through(lutum: Lutum, tmp_path: Path) -> None:
    """The library's own word about a wrong declaration is what the user reads."""
    (tmp_path / "wrong.py").write_text(
        "from lutum_py import tool_fn\n@tool_fn\ndef f(x): ...\n", encoding="utf-8"
    )
    ran = lutum("inspect", "wrong:Tools")
    assert ran.code == 2
    assert "ToolDefinitionError" in ran.err
    assert "(wrong.py:2)" in ran.err


def test_what_a_module_prints_spoils_no_output(lutum: Lutum, tmp_path: Path) -> None:
    """Standard output carries the report alone; the module's own words go to standard error."""
    code = "print('hello')\nfrom tools import Tools\n"
    (tmp_path / "noisy.py").write_text(code, encoding="utf-8")
    ran = lutum("inspect", "noisy:Tools")
    assert ran.err == "hello\n"
    assert ran.out.startswith("Tools (noisy:Tools)\n")


def test_a_file_in_a_package_is_imported_as_part_of_it(lutum: Lutum, tmp_path: Path) -> None:
    """Relative imports work in a file that is named by its path; so does what stands beside it."""
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("", encoding="utf-8")
    (package / "__init__.py").write_text("from .told import Told\n", encoding="utf-8")
    (package / "told.py").write_text(
        "from lutum_py import Toolset\nfrom . import other\nclass Told(Toolset): ...\n",
        encoding="utf-8",
    )
    (package / "other.py").write_text("", encoding="utf-8")
    for place in ("outer/inner/told.py", "outer/inner/__init__.py", "outer.inner.told"):
        assert lutum("inspect", f"{place}:Told").code == 0


def test_an_interrupt_is_no_failure_of_the_module(lutum: Lutum, tmp_path: Path) -> None:
    """Control-C while a module is imported ends the command as an interrupt does."""
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    assert lutum("inspect", "slow:Tools").code in (1, 130)


HOSTILE = [
    ("def __getattr__(name): raise RuntimeError('not \\x1b[2K now')\n", "Tools"),
    ("def __getattr__(name): raise SystemExit(3)\n", "Tools"),
    (
        "class Meta(type):\n def __getattr__(cls, name): 1 / 0\nclass A(metaclass=Meta): ...\n",
        "A.B",
    ),
    ("class Odd:\n @property\n def __class__(self): 1 / 0\nodd = Odd()\n", "Tools"),
    ("class Odd:\n @property\n def __class__(self): 1 / 0\nodd = Odd()\n", "odd"),
    ("class E(Exception):\n def __str__(self): 1 / 0\nraise E\n", "Tools"),
    (
        "class E(Exception):\n def __str__(self): 1 / 0\ndef __getattr__(name): raise E\n",
        "Tools",
    ),
    ("raise SystemExit('\\x1b[2K')\n", "Tools"),
    ("number = 5\n", "number.Tools"),
]


def test_a_hostile_module_is_a_failure_in_words(lutum: Lutum, tmp_path: Path) -> None:
    """Whatever a module or its exceptions do when they are looked at, the user reads why."""
    for number, (source, name) in enumerate(HOSTILE):
        module = f"hostile_module_{number}"
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        for flags in ((), ("--traceback",)):
            ran = lutum("inspect", f"{module}:{name}", *flags)
            assert ran.code == 2, (source, flags, ran)
            assert "error in lutum itself" not in ran.err, (source, flags, ran)
            assert module in ran.err, (source, flags, ran)
            assert all(char.isprintable() or char == "\n" for char in ran.err), (source, flags, ran)
