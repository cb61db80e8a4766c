"""What is exported, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import lutum_py
from tests.cases import over

NAMES: list[str] = vars(lutum_py)["__all__"]
_SOURCE = ast.parse(Path(lutum_py.__file__).read_text())


def _imported_for_checkers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(_SOURCE):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


HOMES = _imported_for_checkers()


def test_checkers_and_interpreter_find_each_name_in_the_same_module() -> None:
    """What a checker reads of the façade is what the interpreter does."""
    others = [
        (home, name)
        for home, names in HOMES.items()
        for name in names
        if getattr(lutum_py, name) is not getattr(import_module(f"lutum_py.{home}"), name)
    ]
    assert others == []


FACADE = """
    tool_fn tool_input ToolInput tool toolset Toolset Skip Reply ToolDef Handlers Selector
    FnSelector HookSet RunNormally Complete Reject ToolDecision Block Suspend SuspendTicket
    Decision ResumeMode ToolContext ToolCall AnyToolCall CallStatus ToolResult HandledCall
    RejectedCall SuspendedCall AwaitingCall RecoverableToolCallIssue Labels ToolRound ToolRoundPlan
    CommittedRound NeedsTools Finished NoAnswer Answer ToolAvailability ToolRequirement
    ToolMetadata Session Transcript Message Attachment AssistantTurn TurnRequest Usage
    errors __version__
"""
MOST = 60
"""So many names the façade may have: what a person can hold."""


def test_the_facade_holds_what_a_loop_a_hook_or_a_tool_mentions() -> None:
    """The names of the façade are these, and no more than a person can hold."""
    assert sorted(NAMES) == sorted(FACADE.split())
    assert len(NAMES) <= MOST


def test_every_public_name_is_there_and_sorted() -> None:
    """The façade exports exactly what it lists, in order."""
    names = {name for names in HOMES.values() for name in names}
    assert set(NAMES) == names | {"errors", "__version__"}
    assert set(NAMES) <= set(dir(lutum_py))
    assert all(getattr(lutum_py, name) is not None for name in NAMES)


# One process that forgets the package before each import, and says what failed.
_EACH_FIRST = """
import sys, traceback
for statement in sys.argv[1:]:
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "lutum_py"]:
        del sys.modules[loaded]
    try:
        exec(statement)
    except BaseException:
        print(statement, traceback.format_exc())
"""


def _failing_first(statements: list[str]) -> str:
    """What fails of statements that each are the first to import the package."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", _EACH_FIRST, *statements],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def test_any_module_may_be_the_first() -> None:
    """Whichever name a program asks for first, its import succeeds."""
    assert len(HOMES) > 20
    assert _failing_first([f"from lutum_py import {min(names)}" for names in HOMES.values()]) == ""


MODULES = {
    "capabilities",
    "code",
    "context",
    "dialects",
    "errors",
    "execution",
    "flow",
    "mcp",
    "models",
    "otel",
    "policy",
    "saved",
    "sinks",
    "store",
    "streaming",
    "testing",
    "turns",
    "typing",
    "window",
}


def test_public_modules_are_attributes() -> None:
    """`lutum_py.errors` and its siblings need no import of their own."""
    pytest.importorskip("mcp", reason="mcp is not installed: pip install -e '.[mcp]'")
    extra = "pydantic_monty is not installed: pip install -e '.[code]'"
    pytest.importorskip("pydantic_monty", reason=extra)
    assert set(dir(lutum_py)) >= MODULES
    named = [
        f"import lutum_py; assert lutum_py.{each}.__name__ == 'lutum_py.{each}'" for each in MODULES
    ]
    assert _failing_first(sorted(named)) == ""


def test_what_fails_first_is_told() -> None:
    """An import that fails is named with what it raised, and the others are tried all the same."""
    said = _failing_first(
        ["from lutum_py import tool_fm", "import lutum_py", "raise SystemExit(2)"]
    )
    assert "from lutum_py import tool_fm Traceback" in said
    assert "raise SystemExit(2) Traceback" in said
    assert said.count("Traceback") == 2


def test_a_public_module_is_imported_when_it_is_asked_for() -> None:
    """A module that nothing has touched yet comes with its first mention."""
    vars(lutum_py).pop("sinks", None)
    assert lutum_py.sinks.ListSink().events == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name is refused as Python does."""
    with pytest.raises(AttributeError, match=r"has no attribute 'tool_fm'$"):
        _ = lutum_py.tool_fm  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no attribute '__wrapped__'$"):
        _ = lutum_py.__wrapped__  # type: ignore[attr-defined]


HINT = "It is in lutum_py.streaming: write `from lutum_py.streaming import TextDelta`."


def test_a_name_that_is_elsewhere_says_where() -> None:
    """A name of another public module is refused with the import that finds it, however asked."""
    with pytest.raises(ImportError, match=HINT):
        from lutum_py import TextDelta  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match=HINT):
        _ = lutum_py.TextDelta  # type: ignore[attr-defined]
    assert not hasattr(lutum_py, "TextDelta")


def test_a_module_that_cannot_be_imported_has_no_name_to_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where an extra is missing, what it holds is told as any missing name is."""
    monkeypatch.setitem(sys.modules, "lutum_py.mcp", None)
    with pytest.raises(AttributeError, match=r"has no attribute 'RemoteTools'$"):
        _ = lutum_py.RemoteTools  # type: ignore[attr-defined]


def _modules_after(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


_FIRST_TOOL = '''
from lutum_py import Toolset, tool, tool_fn

@tool_fn
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b

class Sums(Toolset):
    add = tool(add)
'''


def test_the_first_tool_loads_nothing_that_it_does_not_need() -> None:
    """Declaring a tool loads no transcript, session, execution, dialect, SDK, or event loop."""
    loaded = _modules_after(_FIRST_TOOL)
    unwanted = {
        "asyncio",
        "jsonschema",
        "lutum_py._call.call",
        "lutum_py._toolsets.offer",
        "lutum_py._hooks",
        "lutum_py._round",
        "lutum_py._schema.input_model",
        "lutum_py._session.session",
        "lutum_py._transcript.transcript",
        "lutum_py._session.turn",
        "lutum_py.dialects",
        "lutum_py.execution",
        "lutum_py.models",
        "lutum_py.sinks",
        "lutum_py.testing",
        "rich",
    }
    floor = _modules_after("from pydantic import BaseModel, TypeAdapter, create_model")
    assert (loaded - floor) & unwanted == set()


@over(
    "statement, unwanted",
    [
        ("from lutum_py.capabilities import ToolCapabilities", {"lutum_py._hooks"}),
        ("from lutum_py.window import View", {"lutum_py._declare.tool_search"}),
        ("from lutum_py.models import Model", {"lutum_py.dialects", "lutum_py._session.session"}),
        ("from lutum_py.models import OpenAIChat", {"lutum_py.dialects.anthropic_messages"}),
        (
            "from lutum_py.typing import TextResult",
            {"asyncio", "lutum_py.dialects", "lutum_py.execution", "lutum_py._schema.input_model"},
        ),
    ],
)
def test_a_name_waits_for_no_other_of_its_module(statement: str, unwanted: set[str]) -> None:
    """Of a public module that also has what is slow to import, that comes with its own names."""
    assert _modules_after(statement) & unwanted == set()


def test_what_declares_a_tool_is_some_forty_modules() -> None:
    """What a program needs before its first tool stays small, and needs no model of pydantic's."""
    code = "from lutum_py import Toolset, tool, tool_fn"
    floor = _modules_after("from pydantic import BaseModel, TypeAdapter, create_model")
    added = _modules_after(code) - floor
    own = {name for name in added if name.partition(".")[0] == "lutum_py"}
    assert len(own) <= 41
    # From Python 3.13 on, `urllib.parse` comes with what the standard library loads.
    assert added - own <= {"urllib", "urllib.parse"}


def test_importing_the_package_loads_no_module_of_it() -> None:
    """`import lutum_py` alone costs one small module."""
    assert {name for name in _modules_after("import lutum_py") if "lutum_py" in name} == {
        "lutum_py"
    }


def test_every_public_module_is_there_as_an_attribute() -> None:
    """After `import lutum_py`, whatever module has a public path is reached by it."""
    package = Path(lutum_py.__file__).parent
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        if names and not any(name.startswith("_") for name in names):
            found.append(".".join(["lutum_py", *names]))
    assert "lutum_py.dialects.sse" in found
    for name in found:
        code = (
            f"import lutum_py\ntry:\n    assert {name}.__name__ == {name!r}\n"
            "except ImportError as error:\n"  # an extra
            "    missing = type(error).__name__ == 'MissingExtraError'\n"
            "    assert missing or not error.name.startswith('lutum_py')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_a_dialect_that_is_none_is_no_attribute() -> None:
    """What is no module of the dialects is told as any missing name is."""
    with pytest.raises(AttributeError, match="no attribute 'carrier_pigeon'"):
        getattr(import_module("lutum_py.dialects"), "carrier_pigeon")  # noqa: B009
