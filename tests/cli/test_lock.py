"""`lutum lock`: a file of schemas, and what a change to them breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXAMPLE, REPOSITORY, Lutum


def edit(file: Path, *changes: tuple[str, str]) -> None:
    """Change a module, and let Python see that it did."""
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    # Two writes within one tick of the clock and of equal length would look the same to Python.
    sys.modules.pop(file.stem, None)
    for cached in file.parent.glob("__pycache__/*"):
        cached.unlink()


def test_a_lock_is_written_once(lutum: Lutum, tmp_path: Path) -> None:
    """A lock of the same tools is the same file, and is not written again."""
    ran = lutum("lock", "tools:Tools", "tools:Inner")
    assert (ran.code, ran.out) == (0, "`lutum.lock`: written, 4 tools of 2 toolsets\n")
    file = tmp_path / "lutum.lock"
    text = file.read_bytes()
    lock = json.loads(text)
    assert list(lock) == ["format", "version", "toolsets"]
    assert list(lock["toolsets"]) == ["tools:Inner", "tools:Tools"]
    tools = lock["toolsets"]["tools:Tools"]
    assert list(tools) == ["my_find", "remove", "wait"]
    assert (tools["remove"]["on"], tools["remove"]["strict"]) == (False, True)
    assert tools["remove"]["digest"].startswith("sha256:")
    again = lutum("lock")
    assert again.out == "`lutum.lock`: up to date already, 4 tools of 2 toolsets\n"
    assert file.read_bytes() == text
    told = json.loads(lutum("lock", "--json").out)
    assert told == {
        "file": "lutum.lock",
        "written": False,
        "toolsets": ["tools:Inner", "tools:Tools"],
        "kept": [],
        "dropped": [],
    }


def test_toolsets_that_are_named_join_those_in_the_file(lutum: Lutum, tmp_path: Path) -> None:
    """Those that are not named stay as they were locked, whatever became of them meanwhile."""
    lutum("lock", "tools:Tools")
    before = json.loads((tmp_path / "lutum.lock").read_text())["toolsets"]
    edit(tmp_path / "tools.py", ("Wait.", "Wait a little."))
    ran = lutum("lock", "tools:Inner")
    assert ran.out == (
        "`lutum.lock`: written, 4 tools of 2 toolsets\nLeft as locked: tools:Tools\n"
    )
    after = json.loads((tmp_path / "lutum.lock").read_text())["toolsets"]
    assert list(after) == ["tools:Inner", "tools:Tools"]
    assert after["tools:Tools"] == before["tools:Tools"]
    told = json.loads(lutum("lock", "tools:Empty", "--json").out)
    assert told["written"]
    assert told["kept"] == ["tools:Inner", "tools:Tools"]
    assert told["toolsets"] == ["tools:Empty", "tools:Inner", "tools:Tools"]


def test_a_toolset_can_be_dropped(lutum: Lutum, tmp_path: Path) -> None:
    """`--drop` takes a toolset out of the file without importing it, and needs one that is in."""
    lutum("lock", "tools:Tools", "tools:Inner")
    (tmp_path / "tools.py").rename(tmp_path / "moved.py")
    sys.modules.pop("tools")
    ran = lutum("lock", "--drop", "tools:Inner")
    assert ran.code == 0
    assert ran.out == (
        "`lutum.lock`: written, 3 tools of 1 toolset\nLeft as locked: tools:Tools\n"
        "No longer locked: tools:Inner\n"
    )
    ran = lutum("lock", "--drop", "tools:Inner")
    assert (ran.code, ran.out) == (2, "")
    assert "`lutum.lock` does not lock `tools:Inner`. It locks: tools:Tools." in ran.err
    told = json.loads(lutum("lock", "--drop", "tools:Tools", "moved:Tools", "--json").out)
    assert (told["toolsets"], told["dropped"]) == (["moved:Tools"], ["tools:Tools"])
    assert "No longer locked: moved:Tools" in lutum("lock", "--drop", "moved:Tools").out
    assert "It locks: nothing." in lutum("lock", "--drop", "moved:Tools").err
    assert "`--drop` does not go with `--check`" in lutum("lock", "--check", "--drop", "x:Y").err


def test_a_locked_toolset_that_is_gone_is_told(lutum: Lutum, tmp_path: Path) -> None:
    """Where a name leads nowhere any more, the lock is named, and the command that goes on."""
    lutum("lock", "tools:Tools", "tools:Empty", "--file", "my lock")
    edit(tmp_path / "tools.py", ("class Empty", "class Void"))
    for flags in ([], ["--check"], ["tools:Empty"]):
        ran = lutum("lock", *flags, "--file", "my lock")
        assert (ran.code, ran.out) == (2, "")
        assert "`tools` has no `Empty`." in ran.err
        assert (
            "`my lock` locks it. If it is gone, run `lutum lock --file 'my lock' --drop "
            "tools:Empty`; if it was renamed or moved, put its new name at the end"
        ) in ran.err
    assert "locks it" not in lutum("lock", "tools:Empty", "--file", "other.lock").err
    edit(tmp_path / "tools.py", ("class Void", "1 / 0\nclass Void"))
    ran = lutum("lock", "--check", "--file", "my lock")
    assert "ZeroDivisionError" in ran.err
    assert "locks it" not in ran.err


def test_an_unchanged_toolset_is_up_to_date(lutum: Lutum) -> None:
    """`--check` without toolsets checks those in the file, and writes nothing."""
    lutum("lock", "tools:Tools", "--file", "other.lock")
    ran = lutum("lock", "--check", "--file", "other.lock")
    assert (ran.code, ran.out) == (0, "`other.lock` is up to date: 3 tools of 1 toolset\n")
    data = json.loads(lutum("lock", "--check", "--file", "other.lock", "--json").out)
    assert data == {
        "file": "other.lock",
        "up_to_date": True,
        "toolsets": ["tools:Tools"],
        "changes": [],
    }


CHANGED = """\
`lutum.lock` is out of date: 2 changed, 1 added, 1 removed

tools:Tools
  ~ my_find: changed (breaking)
      tool: description changed
      input.places[].width: added: number, optional, default 1
      input.count: default 1 → 2
      input.count: maximum none → 5 (breaking)
      output.width: added: number, optional, default 1
  + stay: added
  ~ wait: changed
      tool: on yes → no
  - remove: removed (breaking)

Breaking: a call that was accepted before may be refused now, or a result may have another form.
If this is as it should be, run `lutum lock` and commit the file.
"""


def test_a_change_is_told_field_by_field(lutum: Lutum, tmp_path: Path) -> None:
    """Tools that were added, removed and changed end with exit code 1, each field in words."""
    lutum("lock", "tools:Tools", "tools:Empty")
    edit(
        tmp_path / "tools.py",
        ("height: float = 0\n", "height: float = 0\n    width: float = 1\n"),
        ("Find a place.", "Find places."),
        ("count: Annotated[int, Field(ge=1)] = 1", "count: Annotated[int, Field(ge=1, le=5)] = 2"),
        (
            "    remove = tool(remove, off=True)\n    wait = tool(wait)",
            "    wait = tool(wait, off=True)\n    stay = tool(stay)",
        ),
        ("class Inner", "@tool_fn\ndef stay() -> None: ...\n\n\nclass Inner"),
    )
    ran = lutum("lock", "--check")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == CHANGED
    data = json.loads(lutum("lock", "--check", "--json").out)
    assert [(c["tool"], c["kind"], c["effect"]) for c in data["changes"]] == [
        ("my_find", "changed", "breaking"),
        ("stay", "added", "compatible"),
        ("wait", "changed", "compatible"),
        ("remove", "removed", "breaking"),
    ]
    assert data["changes"][0]["changes"][3] == {
        "path": "input.count",
        "kind": "bound",
        "text": "maximum none → 5",
        "effect": "breaking",
    }
    assert lutum("lock").code == 0
    assert lutum("lock", "--check").code == 0


def test_a_changed_description_is_said_to_be_no_more(lutum: Lutum, tmp_path: Path) -> None:
    """Where only texts changed, the heading says so."""
    lutum("lock", "tools:Inner")
    edit(tmp_path / "tools.py", ("Where to look.", "Where to search."))
    ran = lutum("lock", "--check")
    assert ran.code == 1
    assert "  ~ find: changed, descriptions only\n" in ran.out
    assert "      input.places: description changed\n" in ran.out


def test_an_output_may_come_and_go(lutum: Lutum, tmp_path: Path) -> None:
    """A tool that declares an output now is changed; one that no longer does breaks its readers."""
    file = tmp_path / "made.py"
    file.write_text(
        "from lutum_py import ToolDef, Toolset\n"
        "schema = {'type': 'object'}\n"
        "made = ToolDef.from_json_schema(name='t', input_schema=schema, output_schema=schema)\n"
        "Tools = Toolset.from_definitions('Tools', [made])\n",
        encoding="utf-8",
    )
    lutum("lock", "made:Tools")
    edit(file, ("name='t'", "name='t', description='Do.'"))
    assert lutum("lock", "--check").out.count("\n      ") == 1
    edit(file, (", output_schema=schema", ""))
    assert "output: no longer declared (breaking)\n" in lutum("lock", "--check").out
    lutum("lock")
    edit(file, ("'Do.'", "'Do it.'"))
    assert "descriptions only" in lutum("lock", "--check").out
    edit(file, ("input_schema=schema", "input_schema=schema, output_schema=schema"))
    assert "output: declared now\n" in lutum("lock", "--check").out


def test_a_renamed_tool_is_recognized(lutum: Lutum, tmp_path: Path) -> None:
    """A tool of the same text and schemas under another name is renamed, which breaks old calls."""
    lutum("lock", "tools:Tools")
    edit(tmp_path / "tools.py", ("def wait", "def rest"), ("tool(wait)", "tool(rest)"))
    ran = lutum("lock", "--check")
    assert ran.code == 1
    assert "out of date: 1 renamed\n" in ran.out
    assert "  > rest: renamed from wait (breaking)\n" in ran.out
    (change,) = json.loads(lutum("lock", "--check", "--json").out)["changes"]
    assert (change["tool"], change["was"]) == ("rest", "wait")
    edit(tmp_path / "tools.py", ('"""Wait."""', '"""Rest."""'))
    assert "1 added, 1 removed" in lutum("lock", "--check").out


def test_a_stricter_tool_is_breaking(lutum: Lutum, tmp_path: Path) -> None:
    """A tool that takes no "1" for 1 any more breaks calls; one that takes it again breaks none."""
    lutum("lock", "tools:Tools")
    edit(tmp_path / "tools.py", ("strict=True", "strict=False"))
    assert "tool: strict yes → no\n" in lutum("lock", "--check").out
    lutum("lock")
    edit(tmp_path / "tools.py", ("strict=False", "strict=True"))
    assert "tool: strict no → yes (breaking)\n" in lutum("lock", "--check").out


def test_what_no_rule_covers_is_said(lutum: Lutum, tmp_path: Path) -> None:
    """A change that cannot be classified is printed with its path and both texts."""
    edit(tmp_path / "tools.py", ("Field(ge=1)] = 1", "Field(multiple_of=4)] = 8"))
    lutum("lock", "tools:Inner")
    edit(tmp_path / "tools.py", ("Field(multiple_of=4)", "Field(multiple_of=2)"))
    ran = lutum("lock", "--check")
    assert ran.code == 1
    assert "  ~ find: changed (unclassified)\n" in ran.out
    assert "      input.count: multipleOf 4 → 2 (unclassified)\n" in ran.out
    assert "\n\nUnclassified: no rule covers the change" in ran.out


def test_a_corrected_title_is_written_and_is_no_change(lutum: Lutum, tmp_path: Path) -> None:
    """What concerns no call is not reported, but the file is kept as the tools are."""
    lutum("lock", "tools:Inner")
    edit(tmp_path / "tools.py", ("Field(ge=1)", "Field(ge=1, title='How many')"))
    assert lutum("lock", "--check").code == 0
    assert ": written, " in lutum("lock").out


def test_a_toolset_that_is_not_locked_is_new(lutum: Lutum) -> None:
    """`--check` of a toolset that the file does not know calls each of its tools added."""
    lutum("lock", "tools:Inner")
    ran = lutum("lock", "--check", "tools:Inner", "tools:Middle")
    assert ran.code == 1
    assert "tools:Middle (not locked yet)\n  + find: added" in ran.out
    assert "run `lutum lock tools:Inner tools:Middle` and commit the file." in ran.out
    lutum("lock", "--file", "other.lock", "tools:Inner")
    ran = lutum("lock", "--check", "--file", "other.lock", "tools:Middle")
    assert "run `lutum lock --file other.lock tools:Middle` and commit the file." in ran.out


GOOD_TOOL: dict[str, Any] = {
    "description": "",
    "digest": "sha256:0",
    "input_schema": {},
    "output_schema": None,
    "on": True,
    "strict": False,
}


def lock_with(**tool: Any) -> dict[str, Any]:
    entry = {**GOOD_TOOL, **tool}
    return {"format": "lutum_py.lock", "version": 1, "toolsets": {"a:b": {"t": entry}}}


DAMAGED = {
    "no json": ("<<<<<<< ours", "expected value at line 1 column 1"),
    "a list": ("[]", "Input should be a dictionary"),
    "other format": ('{"format": "x"}', "format: Input should be 'lutum_py.lock'"),
    "later version": (json.dumps({**lock_with(), "version": 2}), "version: Input should be 1"),
    "no flag": (
        json.dumps(lock_with(on="x")),
        "toolsets: a:b: t: on: Input should be a valid bool",
    ),
    "edited": (json.dumps(lock_with()), "a:b: t: its input schema was edited"),
    "no number": (
        json.dumps(lock_with(input_schema={"maximum": 0})).replace("0}", "1e999}"),
        "is not a lock file",
    ),
    "too deep": ("[" * 10_000, "recursion limit exceeded"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_lock_is_refused_and_kept(lutum: Lutum, tmp_path: Path, case: str) -> None:
    """A file that was edited, merged badly or is from elsewhere gives exit code 2, and stays."""
    text, told = DAMAGED[case]
    (tmp_path / "lutum.lock").write_text(text, encoding="utf-8")
    for arguments in (["--check"], ["--check", "tools:Inner"], [], ["tools:Inner"]):
        ran = lutum("lock", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert told in ran.err
        assert ran.err.endswith("delete it, and write it again: `lutum lock module:Toolset`.\n")
    assert (tmp_path / "lutum.lock").read_text(encoding="utf-8") == text
    (tmp_path / "y.lock").write_text(text, encoding="utf-8")
    ran = lutum("lock", "--file", "y.lock")
    assert ran.err.endswith(" write it again: `lutum lock --file y.lock module:Toolset`.\n")


def test_a_lock_that_is_not_there(lutum: Lutum, tmp_path: Path) -> None:
    """Without a lock file, or with a directory of its name, the remedy is told."""
    for flags in ([], ["--check"]):
        ran = lutum("lock", *flags)
        assert ran.code == 2
        assert "There is no `lutum.lock`. Write it with `lutum lock module:Toolset`" in ran.err
    (tmp_path / "lutum.lock").mkdir()
    assert "cannot be read: is a directory" in lutum("lock").err


def test_a_set_is_locked_in_one_order(lutum: Lutum, tmp_path: Path) -> None:
    """The order of a default that is a set does not differ from one process to the next."""
    (tmp_path / "sets.py").write_text(
        "from lutum_py import Toolset, tool, tool_fn\n"
        "@tool_fn\n"
        "def f(x: frozenset[str] = frozenset('abcdefgh')) -> None: ...\n"
        "class Tools(Toolset):\n"
        "    f = tool(f)\n",
        encoding="utf-8",
    )
    for seed in ("1", "2", "3"):
        subprocess.run(
            [sys.executable, "-m", "lutum_py", "lock", "sets:Tools", "--file", f"{seed}.lock"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)},
            check=True,
            capture_output=True,
        )
    lutum("lock", "sets:Tools", "--file", "0.lock")
    locks = {(tmp_path / f"{seed}.lock").read_text(encoding="utf-8") for seed in "0123"}
    assert len(locks) == 1


def test_the_order_of_a_set_is_no_change(lutum: Lutum, tmp_path: Path) -> None:
    """A default of different items is a set, so that its order does not count."""
    file = tmp_path / "made.py"
    file.write_text(
        "from lutum_py import ToolDef, Toolset\n"
        "tags = {'type': 'array', 'uniqueItems': True, 'default': ['b', 'a']}\n"
        "schema = {'type': 'object', 'properties': {'tags': tags}}\n"
        "made = ToolDef.from_json_schema(name='t', input_schema=schema)\n"
        "Tools = Toolset.from_definitions('Tools', [made])\n",
        encoding="utf-8",
    )
    lutum("lock", "made:Tools")
    edit(file, ("['b', 'a']", "['a', 'b']"))
    assert lutum("lock", "--check").code == 0


def test_the_example_can_be_locked(lutum: Lutum) -> None:
    """The file agent's toolset is locked by the path of its file, and is up to date after."""
    assert lutum("lock", f"{EXAMPLE}:FileTools").code == 0
    assert lutum("lock", "--check").code == 0
