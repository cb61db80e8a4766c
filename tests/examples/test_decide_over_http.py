"""The laws of deciding over HTTP: what was shown is decided, once, and the conversation goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lutum_py import NeedsTools, Session, Toolset, tool
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.inner_tools import pay

from .conftest import EXAMPLES

PROGRAM = EXAMPLES / "decide_over_http.py"
MANY = 10_000
DONE = {"answer": "Both refunds are dealt with."}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run the program until the end of the block, which kills it; give its address."""
    command = [sys.executable, str(PROGRAM), str(folder), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def ask(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"X-User": "ann"}), timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


def until(url: str, wanted: Any) -> None:
    """Ask until the answer is as it is wanted; the program's own threads get there."""
    assert any(ask(url)[1] == wanted for _ in range(MANY))


def waiting(url: str, count: int) -> list[dict[str, Any]]:
    for _ in range(MANY):
        found: list[dict[str, Any]] = ask(f"{url}/waiting")[1]
        if len(found) == count:
            return found
    raise AssertionError(found)


def yes(shown: dict[str, Any]) -> dict[str, Any]:
    return {**shown["decide"], "action": "resume"}


def refunds(folder: Path) -> list[str]:
    lines = (folder / "refunds.txt").read_text(encoding="utf-8").splitlines()
    return sorted(line.rpartition(" ")[0] for line in lines)


def test_two_decisions_at_once_both_count(in_memory: Path) -> None:
    """Two people approve two calls of one turn at once; both run once, and the model answers."""
    with server(in_memory) as url:
        assert ask(f"{url}/conversations", {"id": "t1", "question": "Refund me."})[0] == 202
        both = waiting(url, 2)
        assert both[0]["question"] == "Refund 9900 cents for A1?"
        with ThreadPoolExecutor(2) as people:
            answers = list(people.map(lambda each: ask(f"{url}/decisions", yes(each)), both))
        assert [status for status, _ in answers] == [202, 202]
        until(f"{url}/conversations/t1", DONE)
    assert refunds(in_memory) == ["A1 9900", "A2 1200"]


def test_a_double_click_counts_once_and_a_late_one_is_refused(in_memory: Path) -> None:
    """The same decision twice changes nothing more; another one about an answered call, also by the
    other button of the same page, is a 409.
    """
    with server(in_memory) as url:
        ask(f"{url}/conversations", {"id": "t1", "question": "Refund me."})
        first, second = waiting(url, 2)
        assert [ask(f"{url}/decisions", yes(first))[0] for _ in range(2)] == [202, 202]
        no = {**yes(first), "action": "cancel"}
        for late in (no, {**no, "decision_id": "of another tab"}):
            status, said = ask(f"{url}/decisions", late)
            assert (status, "c1" in said["error"]) == (409, True)
        other = {**yes(second), "digest": first["decide"]["digest"]}
        assert ask(f"{url}/decisions", other)[0] == 409
        stale = {**yes(second), "ticket": first["decide"]["ticket"]}
        assert ask(f"{url}/decisions", stale)[0] == 409
        assert ask(f"{url}/decisions", {**yes(second), "action": "cancel"})[0] == 202
        until(f"{url}/conversations/t1", DONE)
        assert ask(f"{url}/decisions", yes(second))[0] == 409
    assert refunds(in_memory) == ["A1 9900"]


def test_what_waits_outlives_the_program(in_memory: Path) -> None:
    """Killed between the question and the answers, it shows the same, and goes on from there."""
    with server(in_memory) as url:
        ask(f"{url}/conversations", {"id": "t1", "question": "Refund me."})
        shown = waiting(url, 2)
    with server(in_memory) as url:
        assert ask(f"{url}/decisions", yes(shown[0]))[0] == 202
    with server(in_memory) as url:
        (left,) = waiting(url, 1)
        assert left["decide"]["digest"] == shown[1]["decide"]["digest"]
        assert ask(f"{url}/decisions", yes(left))[0] == 202
        until(f"{url}/conversations/t1", DONE)
    assert set(refunds(in_memory)) == {"A1 9900", "A2 1200"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/nothing", None, 404),
        ("/conversations/t9", None, 404),
        ("/decisions", {"id": "t9", "call_id": "c1", "action": "cancel"}, 404),
        ("/decisions", {"id": "t9", "call_id": "c1", "action": "maybe"}, 400),
        ("/decisions", {"id": "t9", "by": "somebody else"}, 400),
        ("/decisions", [], 400),
        ("/nothing", {"id": "t9", "call_id": "c1", "action": "cancel"}, 404),
        ("/conversations", {"id": 5, "question": "Refund me."}, 400),
        ("/conversations", {"id": "", "question": "Refund me."}, 400),
        ("/conversations", {"id": "t9", "question": 5}, 400),
        ("/conversations", {"id": "t9"}, 400),
    ],
)
def test_what_is_no_decision_is_refused(path: str, body: Any, status: int, addressed: str) -> None:
    """What names nothing, or is no decision and no question, is a status that says so, and nothing
    is started.
    """
    assert ask(addressed + path, body)[0] == status
    assert ask(f"{addressed}/waiting") == (200, [])


def test_a_conversation_is_begun_once_and_found_by_its_id(in_memory: Path) -> None:
    """What was accepted is kept, under any id that a store takes; a second question under the same
    id is a 409, and not dropped.
    """
    with server(in_memory / "made") as url:
        assert ask(f"{url}/conversations", {"id": "Ann's 1/2", "question": "Refund me."})[0] == 202
        until(f"{url}/conversations/Ann%27s%201/2", {"answer": None})
        assert ask(f"{url}/conversations", {"id": "Ann's 1/2", "question": "And now?"})[0] == 409
        assert len(waiting(url, 2)) == 2


@pytest.fixture(scope="module")
def addressed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("desk")) as url:
        yield url


def test_a_call_whose_tool_is_gone_is_a_conflict(in_memory: Path) -> None:
    """What waits of an older program is shown, and a decision about it is a 409 with the reason."""

    class Older(Toolset):
        pay_ = tool(pay, needs_approval=True)

    outcome = Older.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    assert isinstance(outcome, NeedsTools)
    with open_store(in_memory / "desk.db") as store:
        store.save("old", outcome.round.plan(), session=Session())
    with server(in_memory) as url:
        (shown,) = waiting(url, 1)
        status, said = ask(f"{url}/decisions", yes(shown))
    assert (status, "has no tool 'pay'" in said["error"]) == (409, True)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("folder", "eighty")])
def test_without_folder_and_port_it_says_how_it_is_run(arguments: tuple[str, ...]) -> None:
    """That is its docstring, and no traceback."""
    command = [sys.executable, str(PROGRAM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("Decide over HTTP")
    assert "FOLDER PORT" in done.stderr


def test_it_has_at_most_120_lines() -> None:
    """That is the whole server, with tools, model and loop."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 120
    with tokenize.open(PROGRAM) as source:
        assert not any(token.string == ";" for token in tokenize.generate_tokens(source.readline))
