"""`lutum inspect`: what a toolset offers, for people and for programs."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from lutum_py.cli import main

from ..dialects.every_dialect import OF_LIBRARY, TAKEN_NAMES
from .conftest import EXAMPLE, Lutum

SHOWN = """\
Tools (tools:Tools)
All of them.

remove  off, about 62 tokens
  Remove a file.
  input     path  string, required
            mode  one of "fast", "slow", default "fast"
  output    null
  effect    delete_file (of `path`), accesses files: irreversible, confirmation always, dry run
            supported
  effect    network_request, accesses network: reversible, confirmation on_risk
  risk      block
  flags     emits_progress
  category  travel
  timeout   2.5 s
  also      idempotent, strict

wait  on, about 29 tokens
  Wait.
  input   nothing
  output  null

group: nested toolset Middle
  In the middle.

  group.deep: nested toolset Inner

    my_find  on, about 116 tokens
      Find a place.
      input   places  list of Place, required         Where to look.
              count   integer, at least 1, default 1
        with  Place = {name: string, height?: number}
      output  Place or null
        with  Place = {name: string, height?: number}
      member  group.deep.find_place

3 tools, 2 on. About 145 tokens for the tools that are on, 207 for all.
Tokens are estimated: the characters of name, description and input schema as compact JSON, divided
by 4.
"""


def test_every_tool_is_shown_with_what_it_declares(lutum: Lutum) -> None:
    """Summary, types, defaults, state, effects and estimates stand in the block of each tool."""
    ran = lutum("inspect", "tools:Tools")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == SHOWN


def test_the_example_is_shown(lutum: Lutum) -> None:
    """The toolset of the file agent is found by the path of its file."""
    ran = lutum("inspect", f"{EXAMPLE}:FileTools")
    assert (ran.code, ran.err) == (0, "")
    for name in ("list_files  on", "read_file  on", "search_text  on", "write_file  off"):
        assert name in ran.out
    assert "edit: nested toolset WriteTools, off" in ran.out
    assert "4 tools, 3 on." in ran.out


def test_a_field_without_descriptions_has_the_line(lutum: Lutum, tmp_path: Path) -> None:
    """Where no field is described, types take the room that descriptions would have."""
    bound = "Annotated[str, Field(min_length=1, max_length=200, pattern='^[a-z]+$')]"
    (tmp_path / "plain.py").write_text(
        "from typing import Annotated\n"
        "from pydantic import BaseModel, Field\n"
        "from lutum_py import Toolset, tool, tool_fn\n"
        "class Tree(BaseModel):\n"
        "    leaves: list['Tree'] = []\n"
        "@tool_fn\n"
        f"def f(word: {bound}, x: int, tree: Tree) -> None: ...\n"
        "class Tools(Toolset):\n"
        "    f = tool(f)\n",
        encoding="utf-8",
    )
    lines = lutum("inspect", "plain:Tools").out.splitlines()
    assert "  input   word  string, 1 to 200 characters, matching ^[a-z]+$, required" in lines
    assert "          x     integer, required" in lines
    assert "          tree  Tree, required" in lines
    assert "    with  Tree = {leaves?: list of Tree}" in lines


def test_caps_on_results_are_shown(lutum: Lutum, tmp_path: Path) -> None:
    """Each tool says how much of its results a model reads, and whether the rest is kept."""
    (tmp_path / "capped.py").write_text(
        "from lutum_py import Toolset, tool, tool_fn\n"
        "from lutum_py.tools import MemoryResults, ResultCap\n"
        "@tool_fn(name='log')\n"
        "def log() -> str: ...\n"
        "@tool_fn(name='page')\n"
        "def page() -> str: ...\n"
        "@tool_fn(name='note')\n"
        "def note() -> str: ...\n"
        "class Tools(Toolset, result_cap=ResultCap(20_000)):\n"
        "    log = tool(log)\n"
        "    page = tool(page, result_cap=ResultCap(400, MemoryResults()))\n"
        "    note = tool(note, result_cap=None)\n",
        encoding="utf-8",
    )
    lines = lutum("inspect", "capped:Tools").out.splitlines()
    shown = [line.strip() for line in lines if line.strip().startswith("results")]
    assert shown == [
        "results  the model reads 20,000 bytes at most",
        "results  the model reads 400 bytes at most, the rest in a store",
    ]
    tools = json.loads(lutum("inspect", "capped:Tools", "--json").out)["tools"]
    assert [tool["result_cap"] for tool in tools] == [
        {"max_bytes": 20_000, "store": False},
        {"max_bytes": 400, "store": True},
        None,
    ]


def test_what_needs_an_approval_is_shown(lutum: Lutum, tmp_path: Path) -> None:
    """Each tool says whether its calls wait for a person, whoever asks for it."""
    (tmp_path / "asking.py").write_text(
        "from lutum_py import Toolset, tool, tool_fn, toolset\n"
        "@tool_fn\n"
        "def pay(cents: int) -> None: ...\n"
        "@tool_fn\n"
        "def large(cents: int) -> None: ...\n"
        "class Inner(Toolset):\n"
        "    free = tool(pay, needs_approval=False)\n"
        "    large = tool(large, needs_approval=lambda i: i.cents > 5)\n"
        "class Tools(Toolset):\n"
        "    asked = toolset(Inner, needs_approval=True, prefix='asked_')\n"
        "    plain = toolset(Inner)\n",
        encoding="utf-8",
    )
    lines = lutum("inspect", "asking:Tools").out.splitlines()
    assert [line.strip() for line in lines if line.strip().startswith("approval")] == [
        "approval  each call",
        "approval  each call",
        "approval  a function of the input says which calls",
    ]
    tools = json.loads(lutum("inspect", "asking:Tools", "--json").out)["tools"]
    assert {tool["name"]: tool["needs_approval"] for tool in tools} == {
        "asked_pay": "always",
        "asked_large": "always",
        "pay": "never",
        "large": "by_input",
    }


def test_rules_are_shown_in_the_order_in_which_they_are_asked(lutum: Lutum, tmp_path: Path) -> None:
    """Each tool names its own rule, and those of what it stands in."""
    (tmp_path / "ruled.py").write_text(
        "from lutum_py import Toolset, tool, tool_fn, toolset\n"
        "@tool_fn\n"
        "def pay(cents: int) -> None: ...\n"
        "@tool_fn\n"
        "def look() -> None: ...\n"
        "def at_most(cents: int) -> None: ...\n"
        "def of_all(call): return call\n"
        "class Inner(Toolset):\n"
        "    pay = tool(pay, rule=at_most)\n"
        "    look = tool(look)\n"
        "class Tools(Toolset):\n"
        "    ruled = toolset(Inner, prefix='ruled_', rule=of_all)\n"
        "    plain = toolset(Inner)\n",
        encoding="utf-8",
    )
    lines = lutum("inspect", "ruled:Tools").out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] == ["rules"]] == [
        "at_most, of_all",
        "of_all",
        "at_most",
    ]
    tools = json.loads(lutum("inspect", "ruled:Tools", "--json").out)["tools"]
    paths = ["ruled.pay", "ruled.look", "plain.pay", "plain.look"]
    assert [tool["path"] for tool in tools] == paths
    assert [tool["rules"] for tool in tools] == [["at_most", "of_all"], ["of_all"], ["at_most"], []]


def test_a_nested_toolset_can_be_shown_alone(lutum: Lutum) -> None:
    """`module:Outer.Inner` shows the nested toolset as it is within the outer one."""
    ran = lutum("inspect", "tools:Tools.group")
    assert ran.code == 0
    assert "deep: nested toolset Middle.deep" in ran.out
    assert "my_find  on" in ran.out
    assert "remove" not in ran.out
    report = json.loads(lutum("inspect", "tools:Tools.group", "--json").out)
    assert [tool["path"] for tool in report["tools"]] == ["deep.find_place"]
    assert [group["path"] for group in report["groups"]] == ["deep"]


def test_an_empty_toolset_has_no_tools(lutum: Lutum) -> None:
    """A toolset without members is no error."""
    ran = lutum("inspect", "tools:Empty")
    assert ran.code == 0
    assert "0 tools, 0 on." in ran.out


def test_the_json_is_complete_and_stable(lutum: Lutum) -> None:
    """`--json` gives all of it as the same text every time."""
    ran = lutum("inspect", "tools:Tools", "--json")
    assert lutum("inspect", "tools:Tools", "--json") == ran
    report = json.loads(ran.out)
    assert (report["format"], report["version"]) == ("lutum_py.inspect", 1)
    assert report["totals"] == {
        "tools": 3,
        "on": 2,
        "deferred": 0,
        "estimated_tokens": 207,
        "estimated_tokens_on": 145,
        "estimated_tokens_deferred": 0,
    }
    found = report["tools"][2]
    assert (found["name"], found["path"], found["on"]) == ("my_find", "group.deep.find_place", True)
    sent = {key: found[key] for key in ("name", "description", "input_schema")}
    characters = len(json.dumps(sent, separators=(",", ":"), ensure_ascii=False))
    assert found["estimated_tokens"] == -(-characters // 4)
    assert found["fields"][1] == {
        "name": "count",
        "type": "integer",
        "bounds": ["at least 1"],
        "required": False,
        "default": 1,
        "description": "",
    }
    assert [group["path"] for group in report["groups"]] == ["group", "group.deep"]


@pytest.mark.parametrize(
    "dialect",
    ["openai_chat", "openai_responses", "anthropic_messages", "gemini_generate_content"],
)
def test_the_wire_definitions_are_those_of_the_dialect(lutum: Lutum, dialect: str) -> None:
    """`--schema` prints what the dialect's own `tools` gives, and nothing else on that stream."""
    for strict in (False, True):
        check_definitions(lutum, dialect, strict)


def check_definitions(lutum: Lutum, dialect: str, strict: bool) -> None:
    flags = ["--strict"] if strict else []
    ran = lutum("inspect", "tools:Tools", "--schema", dialect, *flags)
    data = lutum("inspect", "tools:Tools", "--schema", dialect, *flags, "--json")
    everything = lutum("inspect", "tools:Tools", "--schema", dialect, "--all")
    assert ran.code == data.code == everything.code == 0
    whole = json.loads(data.out)
    assert json.loads(ran.out) == whole["tools"]
    assert (whole["dialect"], whole["strict"]) == (dialect, strict)
    assert '"my_find"' in ran.out
    assert '"remove"' not in ran.out
    assert "(--all prints them): remove" in ran.err
    assert '"remove"' in everything.out
    assert "they are off" not in everything.err
    assert ("--strict changes nothing" in ran.err) == (strict and dialect.startswith("gemini"))
    assert ("Not enforced by" in ran.err) == bool(whole["losses"])
    for loss in whole["losses"]:
        assert f"  {loss['tool']}.{loss['path']}: {loss['text']}" in ran.err


def test_a_loss_of_the_whole_schema_names_the_tool(lutum: Lutum, tmp_path: Path) -> None:
    """A root that is a union has losses, or words of its own; the tool is named either way."""
    (tmp_path / "union.py").write_text(
        "from lutum_py import ToolDef, Toolset\n"
        "a = {'type': 'object', 'properties': {'a': {'type': 'string'}}, 'required': ['a']}\n"
        "b = {'type': 'object', 'properties': {'b': {'type': 'string'}}, 'required': ['b']}\n"
        "made = ToolDef.from_json_schema(name='either', input_schema={'anyOf': [a, b]})\n"
        "Tools = Toolset.from_definitions('Tools', [made])\n",
        encoding="utf-8",
    )
    shown = lutum("inspect", "union:Tools")
    assert "either  on, about" in shown.out
    assert "input   {a: string} or {b: string}" in shown.out
    assert "output  not declared" in shown.out
    sent = lutum("inspect", "union:Tools", "--schema", "openai_chat")
    assert sent.code == 0
    assert "  either: " in sent.err


def test_a_tool_without_a_form_is_told(lutum: Lutum, tmp_path: Path) -> None:
    """A schema that the provider cannot take ends with exit code 1 and the remedy."""
    (tmp_path / "shapeless.py").write_text(
        "from lutum_py import ToolDef, Toolset\n"
        "parts = [{'pattern': 'a'}, {'pattern': 'b'}]\n"
        "schema = {'type': 'object', 'properties': {'a': {'allOf': parts}}}\n"
        "made = ToolDef.from_json_schema(name='never', input_schema=schema)\n"
        "Tools = Toolset.from_definitions('Tools', [made])\n",
        encoding="utf-8",
    )
    ran = lutum("inspect", "shapeless:Tools", "--schema", "openai_chat", "--strict")
    assert (ran.code, ran.out) == (1, "")
    assert "Tool 'never', at `a`" in ran.err


def test_what_goes_out_for_a_name_stands_beside_it(lutum: Lutum, tmp_path: Path) -> None:
    """Where dialects refuse a tool's name, its stand-in is shown with them; else nothing is."""
    (tmp_path / "named.py").write_text(
        "from lutum_py import Toolset, tool, tool_fn\n"
        "@tool_fn(name='math.factorial')\n"
        "def factorial() -> None: ...\n"
        "@tool_fn(name='9 lives')\n"
        "def lives() -> None: ...\n"
        "@tool_fn\n"
        "def wait() -> None: ...\n"
        "class Tools(Toolset):\n"
        "    factorial = tool(factorial)\n"
        "    lives = tool(lives)\n"
        "    wait = tool(wait)\n",
        encoding="utf-8",
    )
    words = " ".join(lutum("inspect", "named:Tools").out.split())
    refuse = [each for each in OF_LIBRARY if not re.fullmatch(TAKEN_NAMES[each], "math.factorial")]
    some = ", ".join(refuse)
    assert f"sent as math_factorial_ad6b7ebf6789, to {some}" in words
    assert "sent as tool_9_lives_e0f163108945, to openai_chat," in words
    assert words.count("sent as") == 2
    tools = json.loads(lutum("inspect", "named:Tools", "--json").out)["tools"]
    dotted = dict.fromkeys(refuse, "math_factorial_ad6b7ebf6789")
    assert [tool["sent_as"] for tool in tools][::2] == [dotted, {}]
    assert set(tools[1]["sent_as"]) == set(OF_LIBRARY)


HOSTILE = "\x1b[2J\x9b31m[red]not[/red] \u202egnp\u3000x\nmore"
HOSTILE_NAME = "[red]not[/red] \u202egnp\u3000x"


def test_hostile_text_is_shown_and_commands_nothing(lutum: Lutum, tmp_path: Path) -> None:
    """Escapes of a terminal come out as text, markup as it stands, in every format."""
    (tmp_path / "hostile.py").write_text(
        "from lutum_py import ToolDef, Toolset\n"
        f"text = {HOSTILE!r}\n"
        "schema = {'type': 'object', 'properties': {text: {'enum': [text], 'default': text}}}\n"
        f"name = {HOSTILE_NAME!r}\n"
        "made = ToolDef.from_json_schema(name=name, description=text, input_schema=schema)\n"
        "Tools = Toolset.from_definitions('Tools', [made])\n",
        encoding="utf-8",
    )
    for flags in ([], ["--json"]):
        ran = lutum("inspect", "hostile:Tools", *flags)
        assert ran.code == 0
        assert all(char.isprintable() or char == "\n" for char in ran.out)
        assert "[red]not[/red]" in ran.out
    assert json.loads(ran.out)["tools"][0]["name"] == HOSTILE_NAME


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(lutum: Lutum, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colours and its own width, unless `NO_COLOR` is set; a pipe gets neither."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown: list[str] = []
    for _ in range(2):
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        with pytest.raises(SystemExit):
            main(["inspect", "tools:Tools"])
        shown.append(terminal.getvalue())
        monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;36mwait" in shown[0]
    assert "\x1b[36m" not in shown[1]
    assert all(len(line) <= 60 for line in shown[1].splitlines() if "\x1b" not in line)


def test_deferred_tools_are_told_from_those_that_are_off(lutum: Lutum, tmp_path: Path) -> None:
    """Their state, that of a group of them, and what they would cost stand in the report."""
    (tmp_path / "deferred.py").write_text(
        "from lutum_py import Toolset, tool, toolset\nfrom lutum_py.tools import tool_search\n"
        "from tools import Inner, wait\n"
        "class Many(Toolset):\n"
        "    search_tools = tool(tool_search())\n"
        "    inner = toolset(Inner, deferred=True)\n"
        "    wait_ = tool(wait, off=True)\n",
        encoding="utf-8",
    )
    ran = lutum("inspect", "deferred:Many")
    assert (ran.code, ran.err) == (0, "")
    assert "inner: nested toolset Inner, deferred" in ran.out
    assert "find  deferred, about" in ran.out
    assert "wait  off, about" in ran.out
    assert "3 tools, 1 on, 1 deferred." in ran.out
    report = json.loads(lutum("inspect", "deferred:Many", "--json").out)
    states = {each["name"]: (each["on"], each["deferred"]) for each in report["tools"]}
    assert states == {
        "search_tools": (True, False),
        "find": (False, True),
        "wait": (False, False),
    }
    tokens = report["totals"]["estimated_tokens_deferred"]
    assert f"{tokens} for those that are deferred" in " ".join(ran.out.split())
    told = lutum("inspect", "deferred:Many", "--schema", "openai_chat").err.splitlines()
    assert told[:2] == [
        "Left out, because they are off (--all prints them): wait",
        "Left out, because they are deferred (--all prints them): find",
    ]
    assert lutum("lock", "deferred:Many").code == 0
    file = tmp_path / "deferred.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("deferred=True", "off=True"), encoding="utf-8")
    sys.modules.pop("deferred", None)
    for cached in file.parent.glob("__pycache__/deferred*"):
        cached.unlink()
    ran = lutum("lock", "--check")
    assert (ran.code, "deferred yes → no" in ran.out) == (1, True)
    assert "on yes" not in ran.out
