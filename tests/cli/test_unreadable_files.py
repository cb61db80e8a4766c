"""Whatever is wrong with a file, the command says which file it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lutum_py import Session
from lutum_py.window import View
from tests.round_tools import Shop, adds, turn

from .conftest import Lutum

COMMANDS: dict[str, list[str]] = {
    "check": ["check", "FILE", "--dialect", "openai_chat"],
    "repair": ["repair", "FILE", "--dialect", "openai_chat"],
    "show": ["show", "FILE", "--dialect", "openai_chat"],
    "show as a page": ["show", "FILE", "--html", "-"],
    "lock --check": ["lock", "--check", "--file", "FILE"],
    "lock": ["lock", "--file", "FILE"],
    "inbox": ["inbox", "FILE"],
    "inspect": ["inspect", "FILE:Tools"],
}


def deep(levels: int, inner: str = "") -> str:
    return "[" * levels + inner + "]" * levels


def within(saved: str, key: str, text: str) -> str:
    """Put JSON text of any kind at a key of a saved object."""
    return json.dumps({**json.loads(saved), key: "HERE"}).replace('"HERE"', text)


def written() -> dict[str, bytes]:
    """Give the bytes of files with something wrong, by what is wrong with them."""
    session = Session()
    session.push_user("Add.")
    transcript = session.transcript.dump_json()
    plan = Shop.read_turn(turn(*adds(1))).round.plan()  # type: ignore[union-attr]
    saved = Shop.dump_session(session, plan)
    entry = {"description": "", "digest": "", "on": True, "strict": False, "input_schema": "HERE"}
    tools = {"m:T": {"f": {**entry, "output_schema": None}}}
    locked = json.dumps({"format": "lutum_py.lock", "version": 1, "toolsets": tools})
    whole: dict[str, str] = {
        "empty": "",
        "cut off": transcript[:40],
        "a session that is cut off": saved[:-40],
        "a number": "3",
        "a long number": "9" * 5000,
        "long numbers": f"[{'9' * 5000}]",
        "a text": '"text"',
        "too deep": deep(100_000),
        "deep": deep(900),
        "a deep message": f'{{"messages": [{{"role": "user", "content": {deep(900)}}}]}}',
        "a deep field": f'{{"messages": [], "metadata": {deep(900)}}}',
        "a deeper field": f'{{"messages": [], "metadata": {deep(5_000)}}}',
        "a transcript with deep items": within(transcript, "items", deep(900)),
        "a transcript without items": within(transcript, "items", "3"),
        "a transcript of a later version": within(transcript, "version", "9" * 5000),
        "a session with a deep plan": within(saved, "plan", deep(900)),
        "a session without a transcript": within(saved, "transcript", "null"),
        "a lock with a deep schema": locked.replace('"HERE"', '{"a":' * 900 + "1" + "}" * 900),
        "a lock with a deeper schema": locked.replace(
            '"HERE"', '{"a":' * 5_000 + "1" + "}" * 5_000
        ),
        "a lock with a long number": locked.replace('"HERE"', f'{{"default": {"9" * 5000}}}'),
    }
    return {"binary": bytes(range(256)), **{name: text.encode() for name, text in whole.items()}}


FILES = written()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_go_on_names_the_file(
    lutum: Lutum, tmp_path: Path, command: str
) -> None:
    """Bytes of any kind are read, or refused with the name of their file, and never break it."""
    for number, (wrong, data) in enumerate(FILES.items()):
        file = tmp_path / f"kept_{number}.json"
        file.write_bytes(data)
        ran = lutum(*(each.replace("FILE", str(file)) for each in COMMANDS[command]))
        assert ran.code in (0, 1, 2), (wrong, ran)
        assert "Traceback" not in ran.err, (wrong, ran)
        assert ran.code != 2 or str(file) in ran.err.replace("\n", ""), (wrong, ran)


def test_a_file_that_is_none_is_named(lutum: Lutum, tmp_path: Path) -> None:
    """A directory, and what is not there, are named too."""
    for command, arguments in COMMANDS.items():
        for file in (tmp_path, tmp_path / "gone" / "kept.json"):
            ran = lutum(*(each.replace("FILE", str(file)) for each in arguments))
            assert ran.code == 2, (command, ran)
            assert str(file) in ran.err.replace("\n", ""), (command, ran)


def test_a_file_of_a_toolset_is_named_as_it_was_given(lutum: Lutum, tmp_path: Path) -> None:
    """A module that lacks the toolset is told by its path, if that is how it was named."""
    file = tmp_path / "lacking.py"
    file.write_text("")
    assert f"`{file}` has no `Tools`." in lutum("inspect", f"{file}:Tools").err.replace("\n", "")


@pytest.mark.parametrize("command", ["check", "repair"])
def test_what_was_saved_and_is_no_conversation_is_told_by_its_name(
    lutum: Lutum, tmp_path: Path, command: str
) -> None:
    """A plan, a view or a lock file is not taken for a request body of some provider."""
    plan = Shop.read_turn(turn(*adds(1))).round.plan()  # type: ignore[union-attr]
    lock = '{"format": "lutum_py.lock", "version": 1, "toolsets": {}}'
    for kind, text in (
        ("plan", plan.dump_json()),
        ("view", View().dump_json()),
        ("lock", lock),
    ):
        (tmp_path / "saved.json").write_text(text, encoding="utf-8")
        ran = lutum(command, "saved.json")
        assert ran.code == 2
        assert f"`saved.json` holds no conversation: its format is 'lutum_py.{kind}'" in ran.err
        assert ("`lutum show` shows" in ran.err) is (kind == "plan")
