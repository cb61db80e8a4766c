"""`examples/file_agent.py --model`: a provider's model in the loop of the example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

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


DRIVER: Final = """
import contextlib, io, json, runpy, sys
agent, ended = sys.argv[1], []
for arguments, blocked in json.loads(sys.stdin.read()):
    sys.argv = [agent, *arguments]
    if blocked:
        sys.modules[blocked] = None
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(agent, run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
    sys.modules.pop(blocked, None)
    ended.append([code, out.getvalue(), err.getvalue()])
json.dump(ended, sys.stdout)
"""


class Ended(NamedTuple):
    """What the example left behind: its exit status, and what it wrote."""

    status: int
    out: str
    err: str


def run(*runs: list[str], blocked: str = "") -> list[Ended]:
    """Run the example in one process without any key, once for each list of arguments.

    `blocked` is a package that cannot be imported.
    """
    environment = {key: value for key, value in os.environ.items() if key not in KEYS}
    paths = (Path(lutum_py.__file__).parent.parent, AGENT.parent)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment["PYTHONIOENCODING"] = "utf-8"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(AGENT)],
        input=json.dumps([(each, blocked) for each in runs]),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [Ended(*each) for each in json.loads(done.stdout)]


def test_a_provider_answers_the_question(wire: Wire, server: Loopback, tmp_path: Path) -> None:
    """The example runs the calls of a provider's model, and shows its answer. What the SDK raises
    then, and a connection that fails, end it with one line and status 1.
    """
    (tmp_path / "pond.txt").write_text("frogs\n", encoding="utf-8")
    pond = {"text": "There is a pond.", "files": ["pond.txt"]}
    calls = (("c1", "list_files", {"path": "."}), ("c2", "read_file", {"path": "../secret"}))
    for said in (Said(calls=calls), Said(calls=(("c3", "answer", pond),))):
        server.replies.append(wire.reply(said, "collect_sync"))
    server.replies.append(Reply(text='{"error": {"message": "no such model"}}', status=404))
    model = ["--model", f"{PREFIXES[wire.name]}:model-1"]
    here = ["--base-url", server.url + ("/v1" if "openai" in wire.name else "")]
    answered, refused, unreachable = run(
        [*model, "--root", str(tmp_path), *here],
        [*model, *here],
        [*model, "--base-url", "http://127.0.0.1:9"],
    )
    assert (answered.status, answered.err) == (0, "")
    assert "There is a pond.\n  from pond.txt\n" in answered.out
    assert server.refusals == []
    first, second = wire.results(server.received[1].body)
    assert "pond.txt" in first[1]
    assert "out of the root" in second[1]
    assert (refused.status, len(refused.err.splitlines())) == (1, 1)
    assert "404" in refused.err
    assert (unreachable.status, len(unreachable.err.splitlines())) == (1, 1)


def test_a_model_that_cannot_be_made_is_one_line() -> None:
    """A missing key or an unknown model ends the example at once, with one line and status 2."""
    cases = [
        (["--model", "openai:m"], "set OPENAI_API_KEY"),
        (["--model", "openai-responses:m"], "set OPENAI_API_KEY"),
        (["--model", "anthropic:m"], "set ANTHROPIC_API_KEY"),
        (["--model", "gemini:m"], "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (["--model", "openai:"], "'openai:' is none of local, openai:NAME"),
        (["--model", "nobody:m"], "'nobody:m' is none of local, openai:NAME"),
        (["--base-url", "http://127.0.0.1:9"], "add --model"),
    ]
    ended = run(*(arguments for arguments, _ in cases))
    for (arguments, said), done in zip(cases, ended, strict=True):
        assert (done.status, done.out) == (2, ""), arguments
        assert said in done.err, arguments
        assert len(done.err.splitlines()) == 1, arguments


@pytest.mark.parametrize(
    ("prefixes", "package", "extra"),
    [
        (["openai", "openai-responses"], "openai", "openai"),
        (["anthropic"], "anthropic", "anthropic"),
        (["gemini"], "google.genai", "gemini"),
    ],
    ids=["openai", "anthropic", "gemini"],
)
def test_a_missing_sdk_is_one_line(prefixes: list[str], package: str, extra: str) -> None:
    """Without its SDK a model is refused with the command that installs it, and status 2."""
    runs = [["--model", f"{each}:m", "--base-url", "http://127.0.0.1:9"] for each in prefixes]
    for prefix, done in zip(prefixes, run(*runs, blocked=package), strict=True):
        assert done.status == 2, prefix
        assert f"pip install 'lutum-py[{extra}]'" in done.err, prefix
        assert len(done.err.splitlines()) == 1, prefix
