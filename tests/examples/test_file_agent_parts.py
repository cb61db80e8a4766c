"""The laws of the parts of the file agent: its tools, its policy, its loop."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lutum_py
from lutum_py import (
    AssistantTurn,
    Message,
    RejectedCall,
    Session,
    ToolAvailability,
    ToolMetadata,
    ToolResult,
    Transcript,
)
from lutum_py.errors import ExecutionFailed, HookError, NotFound, ToolError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import RefusalItem
from tests.examples.conftest import EXAMPLES


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, Any]]:
    """The example's modules, found as the script itself finds them."""
    names = ("file_tools", "local_model", "show", "file_agent")
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(EXAMPLES))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture
def agent(modules: dict[str, Any]) -> Any:
    return modules["file_agent"]


@pytest.fixture
def tools(modules: dict[str, Any]) -> Any:
    return modules["file_tools"]


# Its parts.


def decide(agent: Any, root: Path, name: str, ask: Callable[[str], Any], **arguments: Any) -> Any:
    metadata = ToolMetadata(id="c1", name=name, arguments=json.dumps(arguments))
    call = agent.FileTools.parse_tool_call(metadata)
    return call.hook_sync(agent.make_hooks(root.resolve(), ask))


def nobody(question: str) -> None:
    return None


OUTSIDE = [
    "..",
    "../secret.txt",
    "docs/../../secret.txt",
    "out/secret.txt",
    "link",
    "/etc/passwd",
    "a\0b",
]


@pytest.mark.parametrize("name", ["list_files", "read_file", "search_text", "write_file"])
def test_no_tool_reaches_out_of_the_root(agent: Any, root: Path, name: str) -> None:
    """`..`, absolute paths and symbolic links that leave the root are rejected for every tool."""
    (root / "out").symlink_to("..")
    (root / "link").symlink_to(root.parent / "secret.txt")
    more = {"search_text": {"query": "frog"}, "write_file": {"text": "x"}}.get(name, {})
    for path in OUTSIDE:
        decided = decide(agent, root, name, lambda question: True, path=path, **more)
        assert isinstance(decided, RejectedCall), path
        assert decided.reason.startswith("that "), path


@pytest.mark.parametrize("path", ["docs/../README.md", "./README.md", "link", "{root}/README.md"])
def test_a_path_inside_is_passed_on_as_the_real_one(agent: Any, root: Path, path: str) -> None:
    """Whatever way a path goes, the tool gets the real one, and the metadata what was sent."""
    (root / "link").symlink_to("README.md")
    sent = path.format(root=root.resolve())
    decided = decide(agent, root, "read_file", nobody, path=sent)
    assert decided.input.path == "README.md"
    assert json.loads(decided.metadata.arguments)["path"] == sent
    assert "Pond" in decided.call_sync(root=root).result


def test_a_walk_stays_inside_and_ends(agent: Any, tools: Any, root: Path) -> None:
    """Links out of the root are neither listed nor searched, and links in a circle end."""
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "up").symlink_to(root.parent)
    (root / "docs" / "circle").symlink_to(root)
    (root / "same.md").symlink_to("README.md")
    listing = tools.list_files(root.resolve())
    assert listing.files == ["README.md", "same.md", "docs/frogs.txt"]
    assert tools.search_text(root.resolve(), "password").matches == []


def test_what_may_not_be_read_is_an_error_that_the_model_reads(
    tools: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is refused by the system fails to be read, and is skipped in a search."""
    really_open = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777) -> int:
        if Path(path).name == "frogs.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ExecutionFailed, match=r"frogs.txt' cannot be read: permission denied"):
        tools.read_file(root, "docs/frogs.txt")
    found = tools.search_text(root, "frog")
    assert (found.searched, found.skipped) == (1, 1)
    with pytest.raises(ExecutionFailed, match="cannot be written: permission denied"):
        tools.write_file(root, "docs/frogs.txt", "x")


def test_directories_that_may_not_be_opened_are_counted(
    tools: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that is refused by the system is counted, and the rest is listed."""
    really_scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "docs":
            raise PermissionError(13, "Permission denied", str(path))
        return really_scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = tools.list_files(root)
    assert (listing.files, listing.unreadable) == (["README.md"], 1)


def test_reading_is_bounded(tools: Any, root: Path) -> None:
    """Few lines of a file are given, long ones cut, and a place too far away is refused."""
    (root / "many.txt").write_text("".join(f"line {n}\n" for n in range(1, 501)))
    part = tools.read_file(root, "many.txt", 3, 2)
    assert (part.first, part.text, part.more) == (3, "line 3\nline 4", True)
    end = tools.read_file(root, "many.txt", 499, 80)
    assert (end.text, end.more) == ("line 499\nline 500", False)
    (root / "wide.txt").write_text("x" * 5000)
    assert len(tools.read_file(root, "wide.txt").text) == tools.MAX_LINE + 1
    with (root / "huge.txt").open("wb") as file:
        file.write(b"line\n" * 300_000)
    with pytest.raises(ExecutionFailed, match="too large to read that far: 1,500,000 bytes"):
        tools.read_file(root, "huge.txt", 290_000)
    (root / "some.bin").write_bytes(b"\x7fELF\0")
    with pytest.raises(ExecutionFailed, match="is a binary file of 5 bytes"):
        tools.read_file(root, "some.bin")
    os.mkfifo(root / "pipe")
    with pytest.raises(ExecutionFailed, match="it is not a regular file"):
        tools.read_file(root, "pipe")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("list_files", ["none"]), ("read_file", ["none"]), ("search_text", ["frog", "none"])],
)
def test_what_is_not_there_is_not_found(
    tools: Any, root: Path, name: str, arguments: list[str]
) -> None:
    """A path to nothing is a `NotFound` that names it."""
    with pytest.raises(NotFound, match="'none'"):
        getattr(tools, name)(root, *arguments)


@pytest.mark.parametrize("name", ["list_files", "read_file", "write_file"])
def test_a_name_that_no_file_can_have_is_told_to_the_model(
    agent: Any, tools: Any, root: Path, name: str
) -> None:
    """The rule says so before anybody is asked, and the tool does where it is called without one;
    neither tells where the root is.
    """
    arguments = {"path": "long" * 100, **({"text": "x"} if name == "write_file" else {})}
    rejected = decide(agent, root, name, pytest.fail, **arguments)
    assert isinstance(rejected, RejectedCall)
    assert rejected.reason == "that is not a usable path: file name too long"
    with pytest.raises(ToolError, match="file name too long") as failed:
        getattr(tools, name)(root, **arguments)
    assert str(root) not in str(failed.value)


def test_walks_and_searches_end_at_their_limits(
    tools: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is too much, what was found is given, with the word that it is not all."""
    assert tools.search_text(root, "frog", max_results=1).complete is False
    assert len(tools.search_text(root, "o", max_results=2).matches) == 2
    monkeypatch.setattr(tools, "MAX_WALKED", 1)
    listing = tools.list_files(root)
    assert (listing.files, listing.complete) == (["README.md"], False)


@pytest.mark.parametrize("name", ["plain", "a\\b", "\\x41", "tab\t", "\udce9", "é\u200b", "a b"])
def test_any_file_name_survives_the_model(tools: Any, name: str) -> None:
    """What is shown of a name is printable, valid text, and leads back to the name."""
    shown = tools.shown(name)
    assert shown.isprintable()
    shown.encode()
    assert tools.meant(shown) == name


def test_whoever_is_asked_sees_the_real_path(agent: Any, root: Path) -> None:
    """The question is asked after the path was worked out, and a replacement is called so."""
    asked: list[str] = []
    (root / "link").symlink_to("README.md")
    decided = decide(agent, root, "write_file", asked.append, path="link", text="new")
    assert asked == ["Replace README.md (3 characters)?"]
    assert isinstance(decided, RejectedCall)


def test_a_write_replaces_the_file(tools: Any, root: Path) -> None:
    """What is written is the whole file, and missing directories are made."""
    assert tools.write_file(root, "new/deep/file.txt", "é").size == 2
    tools.write_file(root, "README.md", "new")
    assert (root / "README.md").read_text() == "new"
    assert (root / "new" / "deep" / "file.txt").read_text(encoding="utf-8") == "é"


def test_the_local_model_decides_from_the_transcript_alone(
    modules: dict[str, Any], agent: Any, root: Path
) -> None:
    """The same transcript always gives the same turn, also after it was saved and loaded."""
    decide_turn = modules["local_model"].decide
    session = play(agent, root, modules["local_model"].LocalModel())
    for length in range(2, len(session.transcript)):
        said = list(session.transcript)[:length]
        if isinstance(session.transcript[length], AssistantTurn):
            again = Transcript.load_json(session.transcript.dump_json())[:length]
            assert decide_turn(said) == decide_turn(again) == session.transcript[length]


def play(agent: Any, root: Path, model: Any, **changes: Any) -> Session:
    session = Session()
    session.push_system("Answer.")
    session.push_user('Where is "frog"?')
    hooks = changes.get("hooks") or agent.make_hooks(root.resolve(), nobody)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - no path of ours
        show = agent.Show(nowhere)
        agent.answer(session, model, hooks, root.resolve(), ToolAvailability.default(), show)
    return session


def test_terms_are_the_quoted_phrases_else_the_longest_words(modules: dict[str, Any]) -> None:
    """The local model searches for what the question quotes, else for its rarest-looking words."""
    terms_of = modules["local_model"].terms_of
    assert terms_of('Where is "own the loop" or `Reject`?') == ["own the loop", "Reject"]
    assert terms_of("What does this say about transcripts and hooks?") == ["transcripts", "hooks"]
    assert terms_of("What is here?") == ["TODO"]
    assert terms_of("Where do frogs live? Write it to pond.txt") == ["frogs", "live"]


def test_the_loop_works_with_any_model(agent: Any, root: Path) -> None:
    """A turn that answers at once ends the loop, and a tool's failure is a result like others."""
    model = ScriptedModel(
        [
            ScriptedModel.tool_calls(("c1", "read_file", {"path": "none.txt"})),
            ScriptedModel.text("It is not there."),
            ScriptedModel.tool_calls(
                ("c2", "list_files", {}), ("c3", "answer", {"text": "Not there.", "files": []})
            ),
        ]
    )
    session = play(agent, root, model)
    result = session.transcript[3]
    assert isinstance(result, ToolResult)
    assert (result.status, result.code) == ("error", "not_found")
    assert len(model.requests) == 3
    asked = session.transcript[5]
    assert isinstance(asked, Message)
    assert "by calling `answer`" in asked.text
    assert isinstance(session.transcript[-1], ToolResult)


def test_a_turn_is_as_if_its_calls_had_been_run_one_after_the_other(agent: Any, root: Path) -> None:
    """A read behind a write of the same file finds what was written, and the last write stays."""

    def write(number: int) -> tuple[str, str, dict[str, str]]:
        return (f"w{number}", "write_file", {"path": "notes.txt", "text": f"{number}"})

    def read(number: int) -> tuple[str, str, dict[str, str]]:
        return (f"r{number}", "read_file", {"path": "./notes.txt"})

    calls = [make(number) for number in range(8) for make in (write, read)]
    answer = ("a", "answer", {"text": "Written.", "files": []})
    hooks = agent.make_hooks(root.resolve(), lambda _: True)
    session, everything = Session(), ToolAvailability.all()
    session.push_user("Hello")
    model = ScriptedModel([ScriptedModel.tool_calls(*calls), ScriptedModel.tool_calls(answer)])
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        agent.answer(session, model, hooks, root.resolve(), everything, agent.Show(nowhere))
    results = [item for item in session.transcript if isinstance(item, ToolResult)]
    assert [each.id for each in results[:-1]] == [id for id, _, _ in calls]
    assert [each.output["text"] for each in results[1:-1:2]] == [f"{n}" for n in range(8)]
    assert (root / "notes.txt").read_text(encoding="utf-8") == "7"


def test_a_refusal_ends_the_loop(agent: Any, root: Path) -> None:
    """Who refuses is not asked again."""
    refused = AssistantTurn(items=(RefusalItem("I would rather not."),), finish_reason="stop")
    model = ScriptedModel([refused])
    play(agent, root, model)
    assert len(model.requests) == 1


def test_a_model_that_never_ends_is_stopped(agent: Any, root: Path) -> None:
    """The loop has an end of its own, and leaves a valid transcript."""

    def insist(request: lutum_py.TurnRequest) -> AssistantTurn:
        return ScriptedModel.tool_calls((f"c{len(request.items)}", "list_files", {}))

    session = play(agent, root, ScriptedModel(insist))
    turns = [item for item in session.transcript if isinstance(item, AssistantTurn)]
    assert len(turns) == agent.MAX_TURNS
    assert len(Transcript.load_json(session.transcript.dump_json())) == len(session.transcript)


def test_a_failure_inside_the_round_leaves_a_valid_transcript(agent: Any, root: Path) -> None:
    """Whatever breaks off a round, its calls get honest results, and the error comes through."""
    hooks = agent.make_hooks(root.resolve(), nobody)

    def broken(metadata: ToolMetadata, input: Any) -> Any:
        raise RuntimeError("a bug")

    hooks.on(agent.FileTools.list_files)(broken)
    session = Session()
    session.push_user("Hello")
    model = ScriptedModel([ScriptedModel.tool_calls(("c1", "list_files", {}))])
    with open(os.devnull, "w") as nowhere, pytest.raises(HookError, match="a bug"):  # noqa: PTH123
        agent.answer(session, model, hooks, root, ToolAvailability.default(), agent.Show(nowhere))
    last = session.transcript[-1]
    assert isinstance(last, ToolResult)
    assert (last.id, last.status) == ("c1", "cancelled")
    assert Transcript.load_json(session.transcript.dump_json()) == session.transcript
