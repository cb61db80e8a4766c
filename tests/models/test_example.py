"""`examples/file_agent.py --model`: a provider's model in the loop of the example."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import lutum_py

from .loopback import Loopback, Reply
from .said import Said
from .wires import WIRES, Wire

AGENT: Final = Path(__file__).resolve().parents[2] / "examples" / "file_agent.py"
PREFIXES: Final = dict(
    zip(
        (wire.name for wire in WIRES),
        ("openai", "openai-responses", "anthropic", "gemini"),
        strict=True,
    )
)
KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def run(*arguments: str, blocked: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the example without any key; `blocked` is a package that cannot be imported."""
    environment = {key: value for key, value in os.environ.items() if key not in KEYS}
    environment["PYTHONPATH"] = str(Path(lutum_py.__file__).parent.parent)
    environment["PYTHONIOENCODING"] = "utf-8"
    command = [str(AGENT)]
    if blocked is not None:
        code = (
            f"import runpy, sys; sys.modules[{blocked!r}] = None; sys.path.insert(0, "
            f"{str(AGENT.parent)!r}); sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        command = ["-c", code, str(AGENT)]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )


def test_a_provider_answers_the_question(wire: Wire, server: Loopback, tmp_path: Path) -> None:
    """The example runs the calls of a provider's model, and shows its answer."""
    (tmp_path / "pond.txt").write_text("frogs\n", encoding="utf-8")
    pond = {"text": "There is a pond.", "files": ["pond.txt"]}
    calls = (("c1", "list_files", {"path": "."}), ("c2", "read_file", {"path": "../secret"}))
    for said in (Said(calls=calls), Said(calls=(("c3", "answer", pond),))):
        server.replies.append(wire.reply(said, "collect_sync"))
    done = run(
        *("--model", f"{PREFIXES[wire.name]}:model-1", "--root", str(tmp_path)),
        *("--base-url", server.url + ("/v1" if "openai" in wire.name else "")),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "There is a pond.\n  from pond.txt\n" in done.stdout
    assert server.refusals == []
    first, second = wire.results(server.received[1].body)
    assert "pond.txt" in first[1]
    assert "out of the root" in second[1]


def test_an_error_of_the_provider_is_one_line(wire: Wire, server: Loopback) -> None:
    """What the SDK raises ends the example with one line and status 1."""
    server.replies.append(Reply(text='{"error": {"message": "no such model"}}', status=404))
    done = run(
        *("--model", f"{PREFIXES[wire.name]}:model-1"),
        *("--base-url", server.url + ("/v1" if "openai" in wire.name else "")),
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "404" in done.stderr


def test_a_server_that_is_not_there_is_one_line(wire: Wire) -> None:
    """A connection that fails ends the example with one line and status 1."""
    done = run("--model", f"{PREFIXES[wire.name]}:m", "--base-url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "openai:m"], "set OPENAI_API_KEY"),
        (["--model", "openai-responses:m"], "set OPENAI_API_KEY"),
        (["--model", "anthropic:m"], "set ANTHROPIC_API_KEY"),
        (["--model", "gemini:m"], "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (["--model", "openai:"], "'openai:' is none of local, openai:NAME"),
        (["--model", "nobody:m"], "'nobody:m' is none of local, openai:NAME"),
        (["--base-url", "http://127.0.0.1:9"], "add --model"),
    ],
)
def test_a_model_that_cannot_be_made_is_one_line(arguments: list[str], said: str) -> None:
    """A missing key or an unknown model ends the example at once, with one line and status 2."""
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("prefix", "package", "extra"),
    [
        ("openai", "openai", "openai"),
        ("openai-responses", "openai", "openai"),
        ("anthropic", "anthropic", "anthropic"),
        ("gemini", "google.genai", "gemini"),
    ],
)
def test_a_missing_sdk_is_one_line(prefix: str, package: str, extra: str) -> None:
    """Without its SDK a model is refused with the command that installs it, and status 2."""
    done = run("--model", f"{prefix}:m", "--base-url", "http://127.0.0.1:9", blocked=package)
    assert done.returncode == 2
    assert f"pip install 'lutum-py[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
