"""The command as a process: exit codes, pipes, what it imports, and life without the extra."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

import lutum_py
import lutum_py.cli
from lutum_py.cli import main
from lutum_py.dialects import openai_chat

from .conftest import EXAMPLE, REPOSITORY, Lutum, Ran

BODY = {
    "messages": [
        {"role": "user", "content": "Go"},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ]
}


def run(
    *arguments: str, cwd: Path, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m lutum_py` and wait for its end."""
    return subprocess.run(
        [sys.executable, "-m", "lutum_py", *arguments],
        cwd=cwd,
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
        | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_exit_codes_of_a_process(tmp_path: Path) -> None:
    """Zero, one and two reach the shell, each with its output where it belongs."""
    (tmp_path / "body.json").write_text(json.dumps(BODY), encoding="utf-8")
    shown = run("inspect", f"{EXAMPLE}:FileTools", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    found = run("check", "body.json", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (1, "")
    assert "orphan_result" in found.stdout
    repaired = run("repair", "body.json", cwd=tmp_path)
    assert repaired.returncode == 0
    assert run("check", "-", "--dialect", "openai_chat", cwd=tmp_path, stdin=repaired.stdout)
    unread = run("check", "-", cwd=tmp_path, stdin="not json")
    assert (unread.returncode, unread.stdout) == (2, "")
    assert unread.stderr.startswith("lutum: standard input is not JSON")
    usage = run("check", cwd=tmp_path)
    assert usage.returncode == 2
    assert "Usage: lutum check" in usage.stderr


def test_the_installed_command_is_the_module(tmp_path: Path) -> None:
    """The command `lutum`, where it is installed, and `python -m lutum_py` say the same."""
    command = f"import sys; sys.argv = ['lutum', '--version']; {ENTRY}"
    entry = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert entry.stdout == run("--version", cwd=tmp_path).stdout
    assert entry.stdout == f"lutum_py {lutum_py.__version__}\n"


ENTRY = "from lutum_py.cli import main; main()"


def test_a_reader_that_leaves_gets_no_traceback(tmp_path: Path) -> None:
    """A pipe that is closed early, as by `head`, ends the command quietly."""
    for arguments in (["inspect", f"{EXAMPLE}:FileTools"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            ran = subprocess.run(
                [sys.executable, "-m", "lutum_py", *arguments],
                cwd=REPOSITORY,
                stdout=pipe,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert ran.stderr == b""


FULL = Path("/dev/full")
ON_A_FULL_DISK = [
    ["inspect", f"{EXAMPLE}:FileTools"],
    ["repair", "body.json"],
    ["check", "--help"],
    ["--version"],
]


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """Output that cannot be written ends with exit code 2 and one line that says why."""
    (tmp_path / "body.json").write_text(json.dumps(BODY), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    told = b"lutum: the output cannot be written: no space left on device.\n"
    for arguments in ON_A_FULL_DISK:
        for unbuffered in ("", "1"):
            environment["PYTHONUNBUFFERED"] = unbuffered
            with FULL.open("w") as full:
                ran = subprocess.run(
                    [sys.executable, "-m", "lutum_py", *arguments],
                    cwd=tmp_path,
                    env=environment,
                    stdout=full,
                    stderr=subprocess.PIPE,
                    check=False,
                )
            assert ran.returncode == 2, (arguments, unbuffered, ran.stderr)
            assert ran.stderr.endswith(told), (arguments, unbuffered, ran.stderr)
            assert b"Traceback" not in ran.stderr, (arguments, unbuffered, ran.stderr)


class Full(io.StringIO):
    """A stream that takes nothing, over a file of its own."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self.handle = handle

    def write(self, words: str) -> int:
        raise OSError(ENOSPC, "No space left on device")

    def fileno(self) -> int:
        return self.handle


def test_help_on_a_full_disk_is_no_error_of_the_command(
    lutum: Lutum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another library could not write is told as the command's own output is."""
    with (tmp_path / "out").open("w") as file:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Full(file.fileno()))
            ran = lutum("check", "--help")
        assert os.path.samestat(os.fstat(file.fileno()), Path(os.devnull).stat())
    told = "lutum: the output cannot be written: no space left on device.\n"
    assert (ran.code, ran.err) == (2, told)


def test_a_plain_locale_is_enough(tmp_path: Path) -> None:
    """Where the output takes ASCII only, what is beyond it is escaped."""
    (tmp_path / "named.py").write_text(
        'from lutum_py import Toolset\nclass Tools(Toolset):\n    "Für alle."\n', encoding="utf-8"
    )
    ran = run("inspect", "named:Tools", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert "F\\xfcr alle." in ran.stdout


def test_no_sdk_is_imported() -> None:
    """The command starts without any provider's SDK, and without `jsonschema`."""
    code = (
        "import sys\n"
        "from lutum_py.cli import main\n"
        "try:\n"
        "    main(['--version'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(sorted({'openai', 'anthropic', 'google.genai', 'jsonschema'} & {*sys.modules}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"lutum_py {lutum_py.__version__}", "[]"]


@pytest.mark.parametrize("missing", ["rich", "typer"])
def test_without_the_extra_one_line_names_it(missing: str) -> None:
    """Without its packages the command says how to install them, and ends with exit code 2."""
    code = f"import sys; sys.modules[{missing!r}] = None; {ENTRY}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"lutum: the command line needs the package `{missing}`. "
        'Install it with: python -m pip install "lutum-py[cli]"\n'
    )


def test_the_extra_is_told_within_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package of the extra that is missing is told; any other is an error as usual."""
    for missing, told in (("typer", "needs the package `typer`"), ("lutum_py.dialects", "")):
        with monkeypatch.context() as patch:
            for name in [each for each in sys.modules if each.startswith("lutum_py.cli.")]:
                patch.delitem(sys.modules, name)
                inner = name.removeprefix("lutum_py.cli.")
                if "." not in inner:
                    patch.delattr(lutum_py.cli, inner)
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(SystemExit if told else ModuleNotFoundError):
                main([])
        assert told in capsys.readouterr().err


def test_help_tells_the_exit_codes(lutum: Lutum) -> None:
    """Every command documents its exit codes in `--help`."""
    for command in ("inspect", "check", "repair", "lock"):
        ran = lutum(command, "--help")
        assert ran.code == 0
        assert "Exit codes: 0 " in ran.out
        assert "; 2" in " ".join(ran.out.split())
    assert lutum().code in (0, 2)
    assert lutum("--version").out == f"lutum_py {lutum_py.__version__}\n"


def test_errors_that_nobody_foresaw_are_no_findings(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error within the command ends with exit code 2, for 1 says that something was found."""

    def fail(request: object) -> None:
        raise error

    def checked() -> Ran:
        return lutum("check", "-", "--dialect", "openai_chat", stdin=b"[]")

    monkeypatch.setattr(openai_chat, "check", fail)
    error: BaseException = RuntimeError("unforeseen")
    ran = checked()
    assert ran.code == 2
    assert "RuntimeError: unforeseen" in ran.err
    assert ran.err.endswith("lutum: this is an error in lutum itself.\n")
    error = OSError("of no number")
    assert "lutum: this is an error in lutum itself.\n" in checked().err
    error = SystemExit("text")
    assert checked().code == 2
    error = SystemExit(None)
    assert checked().code == 0


def test_what_is_nested_too_deeply_is_told(lutum: Lutum) -> None:
    """Where Python gives up on the depth of the input, one line says so."""

    class Deep(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise RecursionError

    ran = lutum("check", "-", stdin=io.TextIOWrapper(Deep()))
    assert (ran.code, ran.err) == (2, "lutum: the input is nested too deeply.\n")
