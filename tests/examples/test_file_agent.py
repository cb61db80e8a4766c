"""The laws of the example that runs over real files: `examples/file_agent.py`."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lutum_py
from lutum_py import (
    AssistantTurn,
    RejectedCall,
    Session,
    ToolAvailability,
    ToolMetadata,
    ToolResult,
    Transcript,
)
from lutum_py.errors import ExecutionFailed, HookError, NotFound
from lutum_py.testing import ScriptedModel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPT = EXAMPLES / "file_agent.py"
# A generous bound on a loaded machine; nothing waits for it.
PATIENCE = 120


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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small directory, with something secret beside it."""
    made = tmp_path / "root"
    (made / "docs").mkdir(parents=True)
    (made / "README.md").write_text("# Pond\n\nA place for frogs.\n\nFrogs jump.\n")
    (made / "docs" / "frogs.txt").write_text("one\ntwo\nA frog is green.\nfour\n")
    (tmp_path / "secret.txt").write_text("the frog password")
    return made


def environment() -> dict[str, str]:
    package = str(Path(lutum_py.__file__).parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TERM": "dumb", "COLUMNS": "80"}


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env={**environment(), "PYTHONIOENCODING": "utf-8"},
        cwd=cwd,
        check=False,
    )


def answer_of(shown: str) -> str:
    return shown.partition("\nanswer\n")[2]


class Terminal:
    """Runs the script as somebody at a terminal does."""

    def __init__(self, *arguments: str | Path) -> None:
        self.master, slave = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(),
        )
        os.close(slave)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            assert self._read(), f"ended without {text!r}: {self.seen}"

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(timeout=PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        assert ready, self.seen
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux says so where the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


# The whole script.


def test_the_default_run_needs_nothing(tmp_path: Path) -> None:
    """Without arguments, from any directory, it looks at its own repository and answers."""
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"root      {SCRIPT.parent.parent}" in done.stdout
    assert '"own the loop" is in ' in answer_of(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_run_shows_every_kind_of_call(root: Path) -> None:
    """Several turns, parallel calls, a rejected call and a mended one are there to be seen."""
    shown = run("--root", root, "--question", 'Where is "frog"?').stdout
    turns = re.findall(r"^turn \d+  (\d+) calls?", shown, re.MULTILINE)
    assert len(turns) >= 3
    assert int(turns[0]) > 1
    assert re.search(
        r"^  2 rejected by stay_inside: that leads out of the root$", shown, re.MULTILINE
    )
    assert "3 unusable `max_result`: there is no such field; did you mean `max_results`?" in shown
    first, second = shown.split("\nturn ")[1:3]
    assert 'search_text query="frog"  max_result=12' in first
    assert 'search_text query="frog"  max_results=12' in second
    assert re.search(r"^  1 result   \d lines? in 2 files; 2 searched$", second, re.MULTILINE)


def test_the_answer_comes_from_the_files(root: Path) -> None:
    """What the answer says is what the tools gave, and what was refused is not in it."""
    answer = answer_of(run("--root", root, "--question", 'Where is "frog"?').stdout)
    assert "There are 2 files: 1 .md, 1 .txt." in answer
    assert "README.md begins: Pond - A place for frogs." in answer
    assert "docs/frogs.txt:3" in answer
    assert "A frog is green." in answer
    assert "password" not in answer
    (root / "docs" / "frogs.txt").write_text("A toad is brown.\n")
    again = answer_of(run("--root", root, "--question", 'Where is "toad"?').stdout)
    assert "A toad is brown." in again


def test_output_fits_a_terminal_and_is_plain_in_a_pipe(root: Path) -> None:
    """No line is wider than 80 columns, and no colour is printed where nobody sees it."""
    (root / ("long" * 40)).write_text("frog " * 5000)
    shown = run("--root", root, "--question", 'Where is "frog"?').stdout
    assert max(map(len, shown.partition("\nturn 1")[2].splitlines())) <= 80
    assert "\x1b" not in shown


def test_a_reader_who_has_seen_enough_is_no_failure(root: Path) -> None:
    """Output that nobody reads any more, as behind `head`, ends the run quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-X", "dev", str(SCRIPT), "--root", str(root)],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            env=environment(),
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_empty_directory_is_said_to_be_empty(tmp_path: Path) -> None:
    """A directory without files gives an answer, not an error."""
    done = run("--root", tmp_path, "--question", "What is here?")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The directory holds no files that I can see." in done.stdout


def test_ten_thousand_files_are_counted(tmp_path: Path) -> None:
    """Many files are all counted and searched, and few of them are named."""
    for folder in range(10):
        (tmp_path / str(folder)).mkdir()
        for number in range(1000):
            (tmp_path / str(folder) / f"{number}.txt").touch()
    (tmp_path / "9" / "999.txt").write_text("the needle")
    save = tmp_path / "9" / "transcript.json"
    done = run("--root", tmp_path, "--question", 'Where is "needle"?', "--save", save)
    assert (done.returncode, done.stderr) == (0, "")
    assert "There are 10,000 files: 10,000 .txt." in done.stdout
    assert "9/999.txt:1" in answer_of(done.stdout)
    assert len(save.read_text()) < 100_000


def test_odd_files_do_no_harm(root: Path) -> None:
    """Binary, huge and unreadable files, loops, pipes and odd names are lived with."""
    odd = os.fsencode(root / "docs") + b"/caf\xe9\n\x1b[31m.txt"
    with open(odd, "wb") as file:  # noqa: PTH123 - a name that is no text
        file.write(b"a frog\n\x1b]0;owned\x07 frog")
    (root / "frog.bin").write_bytes(b"frog\0frog")
    with (root / "huge.log").open("wb") as file:
        file.write(b"frog\n")
        file.truncate(3_000_000_000)
    (root / "loop").symlink_to("loop")
    (root / "docs" / "again").symlink_to("..")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(root)  # a socket's path is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
        closed = root / "closed.txt"
        closed.write_text("frog")
        closed.chmod(0)
        done = run("--root", root, "--question", 'Where is "frog"?')
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert r"docs/caf\xe9\x0a\x1b[31m.txt:1" in answer_of(done.stdout)
    assert "frog.bin:" not in done.stdout


def test_a_saved_transcript_loads(root: Path, tmp_path: Path) -> None:
    """What `--save` writes is a valid transcript with every call and its result."""
    save = tmp_path / "saved.json"
    done = run("--root", root, "--question", 'Where is "frog"?', "--save", save)
    assert done.stdout.splitlines()[-1].startswith(f"saved     {save}"[:80])
    transcript = Transcript.load_json(save.read_text(encoding="utf-8"))
    calls = [c for item in transcript if isinstance(item, AssistantTurn) for c in item.tool_calls]
    results = [item for item in transcript if isinstance(item, ToolResult)]
    assert [c.id for c in calls] == [r.id for r in results]
    assert {r.status for r in results} == {"success", "rejected"}
    assert [r.code for r in results].count("invalid_arguments") == 1
    last = transcript[-1]
    assert isinstance(last, AssistantTurn)
    assert last.text.splitlines()[0] in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--root", "/no/such/place"], "--root: '/no/such/place': no such file or directory"),
        (["--root", str(SCRIPT)], "not a directory"),
        (["--save", "/no/such/place/t.json"], "--save: '/no/such/place/t.json' cannot be written"),
        (["--save", "/"], "--save: '/' cannot be written"),
        (["--question", " "], "--question: it is empty"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(arguments: list[str], complaint: str) -> None:
    """What cannot work is refused before anything is done, in one line, with status 2."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


# Writing.

WRITE = 'Where is "frog"? Write it to docs/notes.md.'


def test_nothing_is_written_unless_it_is_allowed(root: Path) -> None:
    """Without `--allow-write` the tool is not on offer, whatever the model tries."""
    done = run("--root", root, "--question", WRITE)
    assert "unusable Tool `write_file` is not available in this turn" in done.stdout
    assert not (root / "docs" / "notes.md").exists()


def test_nothing_is_written_where_nobody_can_be_asked(root: Path) -> None:
    """With `--allow-write`, but without a terminal, each write is rejected."""
    done = run("--root", root, "--question", WRITE, "--allow-write")
    assert "rejected by ask_first: there is nobody at a terminal" in done.stdout
    assert not (root / "docs" / "notes.md").exists()


@pytest.mark.parametrize(("reply", "agreed"), [("y\n", True), ("n\n", False), ("\x04", False)])
def test_the_terminal_decides_about_a_write(root: Path, reply: str, agreed: bool) -> None:
    """Somebody at a terminal is asked, with the file's name; only a yes writes it."""
    terminal = Terminal("--root", root, "--question", WRITE, "--allow-write")
    terminal.wait_for("[y/N] ")
    assert "Write docs/notes.md (" in terminal.seen
    terminal.type(reply)
    assert terminal.end() == 0
    notes = root / "docs" / "notes.md"
    assert notes.exists() is agreed
    if agreed:
        assert "docs/frogs.txt:3" in notes.read_text()
        assert "Written to docs/notes.md." in terminal.seen
    else:
        assert "rejected by ask_first: the user does not want it" in terminal.seen


def test_a_stop_ends_the_round_honestly(root: Path, tmp_path: Path) -> None:
    """After Ctrl-C the transcript is saved, and says that the write was not executed."""
    save = tmp_path / "saved.json"
    terminal = Terminal("--root", root, "--question", WRITE, "--allow-write", "--save", save)
    terminal.wait_for("[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.type("\n")  # a signal just before the read begins does not end it
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert "1 aborted  cancelled: Not executed: the user stopped it" in terminal.seen
    last = Transcript.load_json(save.read_text())[-1]
    assert isinstance(last, ToolResult)
    assert (last.name, last.status) == ("write_file", "cancelled")
    assert not (root / "docs" / "notes.md").exists()


# Its parts.


def decide(agent: Any, root: Path, name: str, ask: Callable[[str], Any], **arguments: Any) -> Any:
    metadata = ToolMetadata(id="c1", name=name, arguments=json.dumps(arguments))
    call = agent.FileTools.parse_tool_call(metadata)
    return call.hook_sync(agent.make_hooks(root.resolve(), ask))


def nobody(question: str) -> None:
    return None


@pytest.mark.parametrize("name", ["list_files", "read_file", "search_text", "write_file"])
@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "docs/../../secret.txt",
        "out/secret.txt",
        "link",
        "/etc/passwd",
        "a\0b",
    ],
)
def test_no_tool_reaches_out_of_the_root(agent: Any, root: Path, name: str, path: str) -> None:
    """`..`, absolute paths and symbolic links that leave the root are rejected for every tool."""
    (root / "out").symlink_to("..")
    (root / "link").symlink_to(root.parent / "secret.txt")
    more = {"search_text": {"query": "frog"}, "write_file": {"text": "x"}}.get(name, {})
    decided = decide(agent, root, name, lambda question: True, path=path, **more)
    assert isinstance(decided, RejectedCall)
    assert decided.reason.startswith("that ")


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
    with pytest.raises(ExecutionFailed, match="it is no regular file"):
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
        ]
    )
    session = play(agent, root, model)
    result = session.transcript[3]
    assert isinstance(result, ToolResult)
    assert (result.status, result.code) == ("error", "not_found")
    assert len(model.requests) == 2


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
