"""What the benchmarks of several libraries make of their figures, and what ours are figures of."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest

from tests.benchmarks import bfcl
from tests.benchmarks.databases import Proxy, calls_a_second
from tests.benchmarks.page import own_rows, own_table, peers_table, pythons_rows, pythons_table
from tests.benchmarks.peers import lutum_py_peer
from tests.benchmarks.peers.__main__ import check, requests
from tests.benchmarks.peers.table import ROWS
from tests.benchmarks.peers.work import Peer
from tests.benchmarks.plot import plot


def figures(name: str, ratio: float, *without: str) -> dict[str, Any]:
    rows = {row: {"ratio": ratio} for row in ROWS if row not in without}
    versions = {"python": "3", "pydantic": "2", name: "1"}
    return {"name": name, "versions": versions, "rows": rows, "growth": 4.0, "modules": 7}


PEERS = [figures("all", 3.0), figures("some", 2.0, "request")]


def test_a_dash_stands_where_a_library_has_no_such_thing() -> None:
    """The cell of a row that a library does not have is a dash, and the least is of the others."""
    lines = peers_table(PEERS).splitlines()
    assert "| a request of 1,000 turns | **3.00** | \N{EN DASH} |" in lines
    assert "| one call | 3.00 | **2.00** |" in lines


def test_the_page_names_who_is_ahead_and_in_which_rows() -> None:
    """A library that takes less than ours is named with those rows, and no other library is."""
    slower, quicker = figures("slow", 4.0), figures("quick", 4.0)
    quicker["rows"]["load"] = {"ratio": 2.0}
    quicker["rows"]["call"] = {"ratio": 2.5}
    last = peers_table([figures("ours", 3.0), slower, quicker]).splitlines()[-1]
    assert last == "quick is ahead of ours in: one call; load 1,000 turns."
    assert "slow is" not in peers_table([figures("ours", 3.0), slower, quicker])


def test_the_page_counts_what_is_above_its_goal() -> None:
    """A row shows its ratio and its goal alike, above or not, and a sentence counts those above."""
    rows = {"much": (3.0, 1.5), "little": (1.0, 1.5), "as much": (1.5, 1.5)}
    own = {name: {"floor": 1, "ours": 1, "ratio": r, "goal": g} for name, (r, g) in rows.items()}
    lines = own_table(own).splitlines()
    assert [line.split("|")[4].strip() for line in lines[2:5]] == ["3.00", "1.00", "1.50"]
    assert lines[-1] == "1 of 3 ratios are above their goal."


def test_what_is_measured_for_each_dialect_shares_a_line() -> None:
    """The rows of four dialects are one line of ratios; the data file has each of them."""
    wires = ("chat", "Anthropic", "Responses", "Gemini")
    own = {
        f"a text event, {wire}": {"floor": 1e-6, "ours": 2e-6, "ratio": float(at), "goal": 2}
        for at, wire in enumerate(wires)
    }
    assert "| a text event | 0.00 | 1.00 | 2.00 | 3.00 | 2 |" in own_table(own).splitlines()
    assert list(own_rows(own))[1] == ["a text event, chat", "1e-06", "2e-06", "0.00", "2"]
    assert len(list(own_rows(own))) == 5


def test_other_pythons_are_shown_by_their_median() -> None:
    """The page has the median of each Python, the data file every ratio."""
    pythons = [
        {"python": version, "a": {"ratio": ratio}, "b": {"ratio": 3.0}}
        for version, ratio in (("3.11", 1.0), ("3.12", 2.0))
    ]
    assert pythons_table(pythons).splitlines()[-1] == "| median of 2 ratios | 2.00 | 2.50 |"
    assert list(pythons_rows(pythons))[1:] == [["a", "1.00", "2.00"], ["b", "3.00", "3.00"]]


def test_no_mark_stands_where_a_library_has_no_such_thing() -> None:
    """The picture has a mark for each row that a library has, and for no other."""
    picture = plot(PEERS)
    assert "all: a request of 1,000 turns, 3.00 times" in picture
    assert "some: a request of 1,000 turns" not in picture
    assert picture.count("<title>") == 2 * len(ROWS) - 1


def test_our_own_figures_are_of_work_that_is_done() -> None:
    """Each check of the work of a library finds that of this one done."""
    peer = cast(Peer, lutum_py_peer)
    check(peer)
    assert [name for name, _ in requests(peer, 1)] == ["tools", "request"]


def test_a_benchmark_of_names_says_what_came_of_its_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sets of a folder are offered and called in every dialect; without one nothing is."""
    assert bfcl.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("Skipped: no function sets.")
    numbers = {"type": "array", "items": {"type": "float"}}
    parameters = {"type": "dict", "properties": {"n": numbers, "of": "any"}, "required": ["n"]}
    functions = [{"name": name, "parameters": parameters} for name in ("math.sum", "add")]
    questions = [{"id": "0", "function": functions}, {"id": "1"}, {"id": "2", "function": []}]
    questions.append({"id": "3", "function": functions[:1] * 2})
    lines = "\n".join(map(json.dumps, questions))
    (tmp_path / "BFCL_some.json").write_text(f"{lines}\n{{\n}}", encoding="utf-8")
    assert bfcl.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "| `openai_chat` | 1 | 1 | 1 | 2 | 1 | 2 |" in out
    assert "| `gemini_generate_content` | 1 | 1 | 0 | 2 | 0 | 2 |" in out
    assert out.endswith("because two functions have one name: 1\n")


def an_echo() -> int:
    """Start a server that sends back what it is sent; returns its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as client:
            while data := client.recv(100):
                client.sendall(data)

    Thread(target=serve, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


def test_a_proxy_counts_each_question_with_its_answer() -> None:
    """A round trip is what is sent until something comes back; each of them waits."""
    port = an_echo()
    proxy = Proxy(port, 0.4)
    _, _, behind = proxy.address(f"postgresql://127.0.0.1:{port}/").rpartition(":")
    assert int(behind[:-1]) != port
    with socket.create_connection(("127.0.0.1", int(behind[:-1]))) as client:
        start = time.monotonic()
        for sent in (b"one", b"two", b"three"):
            client.sendall(sent[:1])
            client.sendall(sent[1:])
            answer = b""
            while len(answer) < len(sent):
                answer += client.recv(100)
            assert answer == sent
        assert time.monotonic() - start >= 1.2
    assert proxy.trips == 3
    assert proxy.bytes == 2 * len(b"onetwothree")


def test_a_rate_is_of_calls_that_were_run() -> None:
    """Workers that run out of calls stop, and the time in which there were none does not count."""
    left = iter(range(40))

    def step_of() -> Callable[[], int]:
        def step() -> int:
            time.sleep(0.005)
            return 1 if next(left, None) is not None else 0

        return step

    assert 20 < calls_a_second(2, 5, step_of) < 400
    assert calls_a_second(2, 0.1, step_of) == 0
