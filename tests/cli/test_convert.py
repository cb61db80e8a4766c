"""`lutum convert`: a conversation of one dialect as a request of another."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, Session, Transcript
from lutum_py.dialects import DIALECTS
from tests.round_tools import Shop, opened

from .conftest import Lutum

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAID: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "Ann", "content": "Go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "3"},
]


@pytest.mark.parametrize("to", DIALECTS)
def test_a_request_goes_to_every_provider(lutum: Lutum, tmp_path: Path, to: str) -> None:
    """What is written is a clean request of the other; what was lost is told with its place."""
    (tmp_path / "body.json").write_text(json.dumps({"messages": SAID}), encoding="utf-8")
    ran = lutum("convert", "body.json", "--to", to)
    assert ran.code == 0
    body = json.loads(ran.out)
    assert import_module(DIALECTS[to]).check(body) == []
    assert "Be brief." in ran.out
    lost = "  reading messages[1].name: a transcript has no place for it"
    assert lost in ran.err.splitlines()
    count = "1 loss" if to == "openai_chat" else "2 losses"
    assert ran.err.startswith(f"`body.json` (request body of openai_chat) as {to}: {count}\n")
    out = lutum(
        "convert", "body.json", "--from", "openai_chat", "--to", to, "-o", "o.json", "--json"
    )
    assert json.loads((tmp_path / "o.json").read_text(encoding="utf-8")) == body
    report = json.loads(out.err)
    assert (out.out, report["from"], report["to"]) == ("", "openai_chat", to)
    assert report["losses"][0] == {
        "of": "reading",
        "where": "messages[1].name",
        "text": "a transcript has no place for it",
    }


def test_a_saved_transcript_is_converted(lutum: Lutum, tmp_path: Path) -> None:
    """A transcript needs no dialect; where the user has to begin, a message says so."""
    transcript = Transcript()
    transcript.push(Message("system", "Be brief."))
    transcript.append_turn(AssistantTurn(text="Hello"))
    (tmp_path / "t.json").write_text(transcript.dump_json(), encoding="utf-8")
    ran = lutum("convert", "t.json", "--to", "openai_chat")
    assert (ran.code, ran.err) == (0, "`t.json` (transcript) as openai_chat: nothing was lost\n")
    assert [each["role"] for each in json.loads(ran.out)["messages"]] == ["system", "assistant"]
    ran = lutum("convert", "t.json", "--to", "anthropic_messages")
    assert [each["role"] for each in json.loads(ran.out)["messages"]] == ["user", "assistant"]
    assert "  writing items[1]: anthropic_messages wants to hear the user first" in ran.err


def test_the_open_round_of_a_session_is_a_loss(lutum: Lutum, tmp_path: Path) -> None:
    """Its turn is not in the transcript, so it is in no request either."""
    session = Session()
    session.push_user("Go")
    plan = opened(("c1", "add", {"a": 1})).plan()
    lost = "  reading plan: the open round, with its turn and calls, is left out"
    for given, count in ((plan, "1 loss"), (None, "nothing was lost")):
        (tmp_path / "s.json").write_text(Shop.dump_session(session, given), encoding="utf-8")
        ran = lutum("convert", "s.json", "--to", "openai_chat")
        assert ran.code == 0
        assert json.loads(ran.out)["messages"] == [{"role": "user", "content": "Go"}]
        assert ran.err.startswith(f"`s.json` (session) as openai_chat: {count}\n")
        assert (lost in ran.err) is (given is not None)


def test_what_its_provider_would_refuse_is_not_converted(lutum: Lutum, tmp_path: Path) -> None:
    """Violations are told as `check` tells them, with exit code 1, and nothing is written."""
    (tmp_path / "body.json").write_text(json.dumps({"messages": SAID[:3]}), encoding="utf-8")
    ran = lutum("convert", "body.json", "--to", "anthropic_messages")
    assert (ran.code, ran.out) == (1, "")
    assert "would be refused. Repair it first:" in ran.err
    assert "messages[2].tool_calls[0]  call_without_result" in ran.err
    told = lutum("convert", "body.json", "--to", "anthropic_messages", "--json")
    assert (told.code, told.out) == (1, "")
    checked = json.loads(lutum("check", "body.json", "--json").out)
    assert json.loads(told.err) == {
        "file": "body.json",
        "from": "openai_chat",
        "to": "anthropic_messages",
        "violations": checked["violations"],
    }


def test_what_cannot_be_read_is_no_conversation(lutum: Lutum, tmp_path: Path) -> None:
    """A turn that no decoder reads, and a damaged transcript, end with exit code 2."""
    broken = {"role": "assistant", "content": [{"type": "text"}]}
    said = json.dumps([SAID[0], SAID[1], broken])
    (tmp_path / "list.json").write_text(said, encoding="utf-8")
    ran = lutum("convert", "list.json", "--from", "openai_chat", "--to", "openai_responses")
    assert ran.code == 2
    assert ran.err.startswith("lutum: `list.json` cannot be read: openai_chat at messages[2]")
    damaged = json.loads(Transcript().dump_json()) | {"items": [{"type": "odd"}]}
    (tmp_path / "t.json").write_text(json.dumps(damaged), encoding="utf-8")
    ran = lutum("convert", "t.json", "--to", "openai_chat")
    assert ran.code == 2
    assert "`t.json` cannot be read: " in ran.err


def test_a_list_of_any_dialect_is_asked_about_by_the_own_option(
    lutum: Lutum, tmp_path: Path
) -> None:
    """Where a dialect has to be said, or was said wrongly, the message names `--from`."""
    said = json.dumps([{"role": "user", "content": "Hello"}])
    (tmp_path / "list.json").write_text(said, encoding="utf-8")
    ran = lutum("convert", "list.json", "--to", "openai_chat")
    assert (ran.code, ran.err.rstrip().endswith("Say which with `--from`.")) == (2, True)
    (tmp_path / "body.json").write_text(json.dumps({"contents": []}), encoding="utf-8")
    ran = lutum("convert", "body.json", "--from", "openai_chat", "--to", "openai_chat")
    assert (ran.code, "Say `--from gemini_generate_content`." in ran.err) == (2, True)
