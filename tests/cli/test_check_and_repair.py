"""`lutum check` and `lutum repair`, on bodies, transcripts, recordings and what is neither."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)

from ..dialects.every_dialect import KEYS, OF_LIBRARY, WIRES
from ..dialects.recordings import recordings
from .conftest import Lutum

DIALECTS: dict[str, Any] = {
    module.NAME: module
    for module in (openai_chat, openai_responses, anthropic_messages, gemini_generate_content)
}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURN = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3"}
CHAT: dict[str, Any] = {
    "model": "m",
    "temperature": 0.10,
    "messages": [{"role": "user", "content": "é"}, TURN],
}


def test_a_violation_is_told_with_place_rule_and_remedy(lutum: Lutum, tmp_path: Path) -> None:
    """Violations end with exit code 1; each is told in full, in words and as JSON."""
    file = tmp_path / "body.json"
    file.write_text(json.dumps(CHAT), encoding="utf-8")
    ran = lutum("check", "body.json", "--dialect", "openai_chat")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "`body.json` (request body of openai_chat): 1 violation\n"
        "\n"
        "messages[1].tool_calls[0]  call_without_result\n"
        "  problem: the call 'c1' has no result\n"
        "  remedy:  Send one result for each call, right after the turn that made it\n"
    )
    data = lutum("check", "body.json", "--json")
    assert data.code == 1
    (violation,) = openai_chat.check(CHAT)
    assert json.loads(data.out) == {
        "file": "body.json",
        "is_transcript": False,
        "dialect": "openai_chat",
        "clean": False,
        "violations": [
            {
                "position": violation.position,
                "rule": violation.rule,
                "problem": violation.problem,
                "remedy": violation.remedy,
            }
        ],
    }


def test_what_is_clean_ends_with_zero(lutum: Lutum) -> None:
    """A clean body from standard input gives exit code 0 and one line."""
    body = {**CHAT, "messages": [*CHAT["messages"], RESULT]}
    ran = lutum("check", "-", stdin=json.dumps(body).encode())
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "standard input (request body of openai_chat): clean\n"


def test_hostile_text_commands_no_terminal(lutum: Lutum, tmp_path: Path) -> None:
    """Names and ids of a conversation, and names of files, are shown with their escapes."""
    hostile = "\x1b[2J[red]x\u202e"
    call = {**CALL, "id": hostile, "function": {"name": hostile, "arguments": "{}"}}
    body = {"messages": [{**TURN, "tool_calls": [call]}, {**RESULT, "tool_call_id": hostile * 2}]}
    name = f"{hostile}.json"
    (tmp_path / name).write_text(json.dumps(body), encoding="utf-8")
    for ran in (
        lutum("check", name),
        lutum("check", name, "--json"),
        lutum("repair", name),
        lutum("repair", name, "--json"),
        lutum("check", hostile),
        lutum("inspect", hostile),
        lutum("inspect", f"{hostile}:{hostile}"),
        lutum("lock", "--check", "--file", hostile),
        lutum("check", "-", stdin=json.dumps({"contents": hostile}).encode()),
    ):
        shown = ran.out + ran.err
        assert "[red]" in shown or ran.out.endswith("clean\n")
        assert all(char.isprintable() or char == "\n" for char in shown)


PLAIN = {"messages": [{"role": "user", "content": "Hello"}]}
OF_MESSAGES = [name for name in OF_LIBRARY if KEYS[name] == "messages"]
UNREADABLE: dict[str, tuple[bytes, list[str], str]] = {
    "no json": (b"not json", [], "standard input is not JSON"),
    "no dialect": (json.dumps(PLAIN).encode(), [], "Say which with `--dialect`."),
    "no body": (b"{}", [], "Say which with `--dialect`."),
    "a number": (b"3", [], "neither a saved transcript nor a request body: it is 3"),
    "other dialect": (
        json.dumps(PLAIN).encode(),
        ["--dialect", "gemini_generate_content"],
        "it looks like one of " + " or ".join(sorted(OF_MESSAGES)),
    ),
    "unknown dialect": (b"[]", ["--dialect", "telegraph"], "telegraph"),
    "later transcript": (
        b'{"format": "lutum_py.transcript", "version": 9, "items": []}',
        [],
        "This transcript has format version 9; this release reads 1.",
    ),
    "no items": (
        b'{"format": "lutum_py.transcript", "version": 1}',
        [],
        "Damaged data at $.items: it is missing",
    ),
    "too deep": (b'{"messages": ' + b"[" * 900 + b"]" * 900 + b"}", [], "lutum: "),
}


@pytest.mark.parametrize("command", ["check", "repair"])
def test_what_cannot_be_read_ends_with_two(lutum: Lutum, command: str) -> None:
    """Whatever is no conversation gives exit code 2, nothing on standard output, and the reason."""
    for case, (data, flags, told) in UNREADABLE.items():
        ran = lutum(command, "-", *flags, stdin=data)
        assert (ran.code, ran.out) == (2, ""), case
        assert told in ran.err, (case, ran.err)


def test_a_file_that_is_not_there_ends_with_two(lutum: Lutum, tmp_path: Path) -> None:
    """A missing file and a directory are told with the path."""
    assert lutum("check", "gone.json").err == (
        "lutum: `gone.json` cannot be read: no such file or directory.\n"
    )
    assert lutum("repair", str(tmp_path)).code == 2
    assert "null byte" in lutum("check", "a\0b").err


def test_a_body_that_tells_its_dialect_needs_no_option(lutum: Lutum) -> None:
    """One thing that only one dialect has is enough to recognise it."""
    for dialect in OF_LIBRARY:
        for body in WIRES[dialect].TELLING:
            ran = lutum("check", "-", "--json", stdin=json.dumps(body).encode())
            assert json.loads(ran.out)["dialect"] == dialect, body


def test_a_repair_changes_nothing_else(lutum: Lutum, tmp_path: Path) -> None:
    """Numbers, characters and the order of keys stay; the changes are on standard error."""
    text = json.dumps(CHAT, indent=2, ensure_ascii=False).replace("0.1", "0.10")
    file = tmp_path / "body.json"
    file.write_text(text + "\n", encoding="utf-8")
    ran = lutum("repair", "body.json")
    assert ran.code == 0
    assert ran.err == (
        "`body.json` (request body of openai_chat): 1 change\n"
        "  messages[1].tool_calls[0]: added a result that says that its outcome is unknown"
        " (call_without_result)\n"
    )
    kept, _, added = ran.out.partition('\n    },\n    {\n      "role": "tool"')
    assert text.startswith(kept)
    assert added.endswith("\n    }\n  ]\n}\n")
    assert openai_chat.check(json.loads(ran.out)) == []
    assert file.read_text(encoding="utf-8") == text + "\n"
    again = lutum("repair", "-", stdin=ran.out.encode())
    assert (again.code, again.out) == (0, ran.out)
    assert again.err == "standard input (request body of openai_chat): nothing to repair\n"


def test_programs_read_what_a_repair_changed(lutum: Lutum) -> None:
    """With `--json` the changes stand on standard error as JSON, and the result is the same."""
    printed = lutum("repair", "-", stdin=json.dumps(CHAT).encode())
    ran = lutum("repair", "-", "--json", stdin=json.dumps(CHAT).encode())
    assert (ran.code, ran.out) == (0, printed.out)
    _, (change,) = openai_chat.repair(CHAT)
    assert json.loads(ran.err) == {
        "file": "-",
        "is_transcript": False,
        "dialect": "openai_chat",
        "clean": True,
        "changes": [{"position": change.position, "rule": change.rule, "what": change.what}],
        "violations_left": [],
    }


NUMBERS = '[1.10, 1e400, 0.1000000000000000055, 12345678901234567890123, {"e": 1E+2}]'


def test_numbers_keep_their_text(lutum: Lutum) -> None:
    """Numbers that Python would round, or that are beyond a float, come out as they went in."""
    body = json.dumps({"metadata": "HERE", "messages": [TURN]}).replace('"HERE"', NUMBERS)
    ran = lutum("repair", "-", stdin=body.encode())
    assert ran.code == 0
    assert "".join(NUMBERS.split()) in "".join(ran.out.split())


def test_lone_surrogates_keep_their_escape(lutum: Lutum) -> None:
    """Half of a surrogate pair, which a dialect would replace, stays in a saved transcript."""
    item = {"type": "message", "role": "user", "text": "é\ud800"}
    saved = {"format": "lutum_py.transcript", "version": 1, "items": [item]}
    ran = lutum("repair", "-", stdin=json.dumps(saved).encode())
    assert ran.code == 0
    assert '"é\\ud800"' in ran.out
    assert json.loads(ran.out) == saved


NO_JSON = {
    b"": "is empty",
    b" \n": "is empty",
    b"not json": "is not JSON that can be read: Expecting value",
    b'{"a": NaN}': "NaN is not a value that JSON has",
    b'{"a": 1, "b": 2, "a": 3}': "an object has the key 'a' twice",
    b'["\xff"]': "can't decode byte 0xff in position 2",
    b"[" * 100_000: "is nested too deeply",
    b"9" * 5000: "Exceeds the limit",
}


def test_what_is_no_json_is_told(lutum: Lutum) -> None:
    """Everything that cannot be read is refused, and the reason is given."""
    for data, told in NO_JSON.items():
        ran = lutum("check", "-", stdin=data)
        assert (ran.code, ran.out) == (2, ""), data[:40]
        assert ran.err.startswith("lutum: standard input "), (data[:40], ran.err)
        assert told in ran.err, (data[:40], ran.err)


def test_what_a_dialect_cannot_read_is_told(lutum: Lutum, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that the dialect refuses to look at gives exit code 2, in the dialect's words."""

    def refuse(request: Any) -> Any:
        raise TypeError("expected a request body")

    monkeypatch.setattr(openai_chat, "check", refuse)
    ran = lutum("check", "-", "--dialect", "openai_chat", stdin=b"[]")
    assert ran.code == 2
    assert ran.err == (
        "lutum: standard input is not a request body of openai_chat: expected a request body.\n"
    )


def spoiled(items: list[Any], at: int) -> dict[str, list[Any]]:
    return {
        "dropped": [*items[:at], *items[at + 1 :]],
        "doubled": [*items[: at + 1], items[at], *items[at + 1 :]],
    }


def result_at(items: Any, dialect: str) -> int | None:
    marks = {
        "openai_chat": '"role": "tool"',
        "openai_responses": '"function_call_output"',
        "anthropic_messages": '"tool_result"',
        "gemini_generate_content": '"functionResponse"',
    }
    places = enumerate(items if isinstance(items, list) else [])
    return next((at for at, item in places if marks[dialect] in json.dumps(item) and at), None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_requests(lutum: Lutum, dialect: str) -> None:
    """What a provider accepted is clean; with a result dropped or doubled it is not, and
    repaired.
    """
    key, tried = KEYS[dialect], 0
    for one in recordings(dialect, lambda one: one.status == 200 and one.has_results)[:12]:
        body = json.dumps(one.request, ensure_ascii=False).encode()
        flags = ["-", "--dialect", dialect]
        assert lutum("check", *flags, stdin=body).code == 0, one.id
        assert json.loads(lutum("repair", *flags, stdin=body).out) == one.request, one.id
        at = result_at(one.request[key], dialect)
        if at is None:
            continue
        for items in spoiled(one.request[key], at).values():
            broken = {**one.request, key: items}
            if DIALECTS[dialect].check(broken):
                tried += 1
                data = json.dumps(broken).encode()
                assert lutum("check", *flags, stdin=data).code == 1
                repaired = lutum("repair", *flags, stdin=data)
                assert repaired.code == 0
                assert json.loads(repaired.out) == DIALECTS[dialect].repair(broken)[0]
    assert tried > 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_requests_are_recognised(lutum: Lutum, dialect: str) -> None:
    """No recorded request is taken for one of another dialect."""
    for one in recordings(dialect):
        ran = lutum("check", "-", "--json", stdin=json.dumps(one.request).encode())
        if ran.code == 2:  # It may be one of several, and the own one is among them.
            assert "may be a request body of " in ran.err, one.id
            assert dialect in ran.err, one.id
        else:
            assert json.loads(ran.out)["dialect"] == dialect, one.id


def test_json_lines_are_called_so(lutum: Lutum) -> None:
    """A file with a value on each line is no conversation, and is told apart from broken JSON."""
    line = json.dumps({"messages": []})
    for end in ("", "\n"):
        ran = lutum("check", "-", stdin=f"{line}\n{line}{end}".encode())
        assert (ran.code, ran.out) == (2, ""), repr(end)
        assert "Of JSON Lines, give one line at a time." in ran.err, repr(end)
    told = lutum("check", "-", stdin=b"{").err
    assert told.startswith("lutum: standard input is not JSON that can be read: ")
    assert "JSON Lines" not in told


def test_another_dialect_is_no_value_error(lutum: Lutum) -> None:
    """A dialect that there is not is told with those that there are, in plain words."""
    ran = lutum("check", "x.json", "--dialect", "foo")
    assert ran.code == 2
    assert "'--dialect': 'foo' is not one of openai_chat, openai_responses," in ran.err
    assert "Value error" not in ran.err


def test_standard_input_that_cannot_be_read_is_told(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the stream is told like that of a file."""

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("tests.cli.conftest.io.BytesIO", Broken)
    ran = lutum("check", "-")
    assert (ran.code, ran.err) == (
        2,
        "lutum: standard input cannot be read: input/output error.\n",
    )


def test_numbers_that_become_text_are_the_numbers_that_were_sent(
    lutum: Lutum, tmp_path: Path
) -> None:
    """An integer of thousands of digits, or one beyond a float, is written as it was."""
    numbers = f'{{"a":{"9" * 4000},"b":1.10,"c":[-1e400]}}'
    call = {**CALL, "function": {"name": "f", "arguments": "HERE"}}
    turn, result = {**TURN, "tool_calls": [call]}, {**RESULT, "content": "HERE"}
    body = json.dumps({"messages": [CHAT["messages"][0], turn, result]})
    body = body.replace('"HERE"', numbers)
    (tmp_path / "body.json").write_text(body, encoding="utf-8")
    ran = lutum("repair", "body.json")
    repaired = json.loads(ran.out)["messages"]
    assert repaired[1]["tool_calls"][0]["function"]["arguments"] == numbers
    assert repaired[2]["content"] == [{"type": "text", "text": numbers}]
    assert ran.code == 0
