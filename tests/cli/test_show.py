"""`lutum show`: all that a file holds is seen, nothing of it is run, faults are beside items."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from lutum_py import (
    Answer,
    AssistantTurn,
    NeedsTools,
    Session,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    Transcript,
    Usage,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.dialects import DIALECTS
from lutum_py.execution import run_sync
from lutum_py.sinks import escape_unprintable
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from lutum_py.turns import ToolCallItem
from tests import inner_tools
from tests.instructions import calls
from tests.models.said import Said

from ..dialects.recordings import RECORDED_DIALECTS, recordings
from ..round_tools import Shop, add, approval, gated, needs, opened
from .conftest import Lutum
from .pages import HOSTILE, LINES, read_page

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "model": "m",
    "temperature": 0.10,
    "messages": [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3"}


def saved(*items: Any) -> bytes:
    """A transcript as it is saved, of items in its own form."""
    data = {"format": "lutum_py.transcript", "version": 1, "items": items}
    return json.dumps(data).encode()


def picture(url: str) -> dict[str, Any]:
    return {"media_type": "image", "mime_type": "image/png", "url": url}


def test_every_item_is_shown_whole(lutum: Lutum) -> None:
    """Of messages, turns and results each text is there, however it is written."""

    @given(HOSTILE)
    def law(words: str) -> None:
        files = [picture(f"https://{words}")]
        call = {"id": words, "name": words, "arguments": json.dumps(words)}
        said = [
            {"type": "text", "text": words},
            {"type": "reasoning", "text": words},
            {"type": "refusal", "text": words},
            {"type": "server_tool", "kind": words, "payload": {"a": words}},
            {"type": "tool_call", **call},
        ]
        ran = lutum(
            *("show", "-", "--html", "-"),
            stdin=saved(
                {"type": "message", "role": "user", "text": words, "attachments": files},
                {"type": "assistant", "items": said, "model": words, "finish_reason": "length"},
                {
                    **call,
                    "type": "tool_result",
                    "result": json.dumps(words),
                    "status": "error",
                    "message": words + "!",
                    "code": words,
                    "attachments": files,
                    "ran_with": {"a": words},
                },
            ),
        )
        assert ran.code == 0, (ran.err, ran.out)
        read = read_page(ran.out)
        shown = escape_unprintable(words, LINES).replace("\n", "\n  ")
        assert read.text.count(shown) + read.text.count(escape_unprintable(words)) >= 12

    law()


def test_files_are_named(lutum: Lutum) -> None:
    """An address is shown as text; data is not shown, whatever it is."""
    urls = ["data:image/png;base64,iVBORw0KGgo=", "https://example.org/a.png"]
    files = [picture(url) for url in urls]
    item = {"type": "message", "role": "user", "text": "", "attachments": files}
    read = read_page(lutum("show", "-", "--html", "-", stdin=saved(item)).out)
    assert "0  user\n  image: image/png" in read.text
    assert "image: image/png, https://example.org/a.png" in read.text
    assert "base64" not in read.text


@pytest.mark.parametrize("dialect", RECORDED_DIALECTS)
def test_every_recorded_request_is_shown(lutum: Lutum, tmp_path: Path, dialect: str) -> None:
    """What a provider accepted is shown whole, on a page and on the terminal, with exit code 0."""
    for number, recording in enumerate(recordings(dialect)):
        if recording.status != 200 or number % 12:
            continue
        (tmp_path / "body.json").write_text(json.dumps(recording.request), encoding="utf-8")
        ran = lutum("show", "body.json", "--dialect", dialect)
        assert (ran.code, ran.err) == (0, "")
        ran = lutum("show", "body.json", "--dialect", dialect, "--html", "-")
        assert ran.code == 0
        assert "turns of the model" in read_page(ran.out).text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_saved_turn_may_hold_fractions(lutum: Lutum, tmp_path: Path, dialect: str) -> None:
    """A response with fractions, such as an average of log probabilities, is read as any other."""
    wire = import_module(f"tests.dialects.wire.{dialect}")
    response = {**wire.response(Said("Hi")), "average": -0.25, "each": [1.10, {"of": 0.5}]}
    transcript = Transcript()
    transcript.append_turn(import_module(DIALECTS[dialect]).decode(response))
    (tmp_path / "saved.json").write_text(transcript.dump_json(), encoding="utf-8")
    for command in ("show", "check", "repair"):
        ran = lutum(command, "saved.json")
        assert ran.code == 0, ran.err


@pytest.mark.parametrize("key", [None, b"a secret of the desk"])
def test_what_was_saved_is_shown_without_tools_and_keys(
    lutum: Lutum, tmp_path: Path, key: bytes | None
) -> None:
    """A plan says that nobody can tell who wrote it, and a transcript counts its tokens."""
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(items=(), usage=Usage(input_tokens=3)))
    texts = {"plan": plan_of_all().dump_json(key=key), "transcript": transcript.dump_json()}
    for name, text in texts.items():
        (tmp_path / "saved.json").write_text(text, encoding="utf-8")
        ran = lutum("show", "saved.json", "--html", "-")
        assert (ran.code, ran.err) == (0, "")
        assert ("Not authenticated" in read_page(ran.out).text) == (name == "plan")
        ran = lutum("show", "saved.json")
        assert ran.code == 0
        assert ran.out.count("tokens 3 in") == (2 if name == "transcript" else 0)


def test_violations_stand_beside_their_items(lutum: Lutum, tmp_path: Path) -> None:
    """A body that would be refused is shown as it stands, with its faults and exit code 1."""
    (tmp_path / "body.json").write_text(json.dumps(CHAT), encoding="utf-8")
    ran = lutum("show", "body.json")
    assert ran.code == 1
    assert "violations 1" in ran.out
    (_, _, item, *_) = ran.out.split("\n\n")
    assert item.startswith("1  assistant")
    assert "the call 'c1' has no result" in item
    assert "0  user\n  content: Hello." in ran.out
    assert "temperature\n  0.1" in ran.out
    read = read_page(lutum("show", "body.json", "--html", "-").out)
    assert item in read.text


def test_a_bare_list_is_shown(lutum: Lutum) -> None:
    """A list of messages from standard input is shown as a body is."""
    ran = lutum("show", "-", stdin=json.dumps([*CHAT["messages"], RESULT]).encode())
    assert ran.code == 0
    assert "2  tool  success\n  result of: f  c1\n  result: 3\n" in ran.out


def test_many_violations_are_counted(lutum: Lutum, tmp_path: Path) -> None:
    """Of very many violations the number is on top; each stands beside its item."""
    orphans = [{**RESULT, "tool_call_id": f"x{at}"} for at in range(30)]
    (tmp_path / "body.json").write_text(json.dumps({"messages": orphans}), encoding="utf-8")
    ran = lutum("show", "body.json")
    assert "violations 30" in ran.out
    assert ran.out.count("  orphan_result: ") == 30


def test_what_no_transcript_holds_is_shown_as_it_stands(lutum: Lutum, tmp_path: Path) -> None:
    """A body that cannot be read as a conversation, though nothing refuses it, is still seen."""
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"text": 5}]},
        ]
    }
    (tmp_path / "body.json").write_text(json.dumps(body), encoding="utf-8")
    ran = lutum("show", "body.json")
    assert "1  model\n" in ran.out
    assert '"text": 5' in ran.out
    assert "expected a string, got 5" in ran.out


def test_a_damaged_transcript_is_shown_as_far_as_it_goes(lutum: Lutum, tmp_path: Path) -> None:
    """A damaged item is shown as it stands, with what is wrong; the others are shown as ever."""
    items = [
        {"type": "message", "role": "user", "text": "Hello."},
        {"type": "message", "role": "nobody", "text": "Who?"},
        7,
    ]
    data = {"format": "lutum_py.transcript", "version": 1, "items": items}
    (tmp_path / "t.json").write_text(json.dumps(data), encoding="utf-8")
    ran = lutum("show", "t.json")
    assert ran.code == 1
    assert "0  user\n  Hello." in ran.out
    assert ran.out.count("damaged_item") == 2
    assert "2  ?\n  7\n" in ran.out


def test_a_transcript_is_judged_for_a_dialect_too(lutum: Lutum, tmp_path: Path) -> None:
    """With `--dialect` the faults are those of the request that it would become."""
    session = Session()
    session.push_system("Be brief.")
    (tmp_path / "t.json").write_text(session.transcript.dump_json(), encoding="utf-8")
    assert lutum("show", "t.json").code == 0
    ran = lutum("show", "t.json", "--dialect", "openai_chat")
    assert ran.code in (0, 1)
    assert "transcript, for openai_chat" in ran.out


def plan_of_all() -> ToolRoundPlan[Any]:
    ticket = SuspendTicket(id="t1", action="approve", message="Really?")
    plan = opened(
        ("c1", "add", {"a": 1}),
        ("c2", "shout", {"text": "x"}),
        ("c3", "nope", {}),
        ("c4", "add", {"a": 2}),
        ("c5", "add", {"a": 3}),
    ).apply_hooks_sync(gated(ticket))
    plan.resume(approval(plan, "c1", decision_id="d1", reason="fine"))
    plan.resume(approval(plan, "c4", decision_id="d2"))
    plan.record(next(call for call in plan.pending if call.id == "c4").call_sync())
    return plan


def test_a_plan_is_shown_without_its_tools(lutum: Lutum, tmp_path: Path) -> None:
    """Each call has its state, arguments, decisions and result; the page says what is not known."""
    (tmp_path / "plan.json").write_text(plan_of_all().dump_json(), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert ran.code == 0
    assert "fits the digest" in ran.out
    assert "c1  add  pending" in ran.out
    assert 'final arguments: {"a":1,"b":0}' in ran.out
    assert "suspended: approve (t1): Really? (+" in ran.out
    assert "decision: resume by d1: fine (+" in ran.out
    assert "c3  nope  unknown tool" in ran.out
    assert "c4  add  finished\n" in ran.out
    assert "result: 2" in ran.out


def test_which_calls_wait_for_which_is_shown(lutum: Lutum, tmp_path: Path) -> None:
    """Of an open call its line says for which others it waits; of a plan that does not know, so."""
    writes = ToolCapabilities(effects=[ToolEffect("write_file", target="path")])

    @tool_fn(capabilities=writes)
    def edit(path: str) -> str:
        return path

    files = Toolset.of("Files", edit)
    turn = ScriptedModel.tool_calls(
        *((f"c{number}", "edit", {"path": path}) for number, path in enumerate("aaba"))
    )
    outcome = files.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    plan.record(plan.pending[0].call_sync())
    (tmp_path / "plan.json").write_text(plan.dump_json(), encoding="utf-8")
    shown = lutum("show", "plan.json").out
    assert shown.count("in order: waits for") == 1
    (waiting,) = [each for each in shown.split("\n\n") if "in order: waits for c1" in each]
    assert waiting.startswith("c3  edit")
    loaded = files.load_plan((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert loaded.order() == {"c1": (), "c2": (), "c3": ("c1",)}
    loaded.resolve([call.complete("done") for call in loaded.pending])


PROGRAM = "# one\x1b[2K\rtwo \u202e\nawait refund()\n"


@tool_fn(idempotent=True)
def write(code: str, ctx: ToolContext) -> str:
    """Ask for a call."""
    ctx.request_calls(
        [("write", {"code": "pass"}), ("gone", {})] if "\n" in code else [("add", {"a": 1})]
    )


def test_calls_within_calls_are_shown_with_their_path(lutum: Lutum, tmp_path: Path) -> None:
    """Each says what it stands within, and a program is to be read as lines, all of it seen."""

    class Desk(Toolset):
        add = tool(add, needs_approval=True)
        write = tool(write)

    made = ToolMetadata(id="c1", name="write", arguments=json.dumps({"code": PROGRAM}))
    plan = needs(Desk.read_turn(AssistantTurn(items=(ToolCallItem(made, "p7"),)))).plan()
    run_sync(plan, hooks=Desk.HookSet())
    assert "within p7 program, c1 write, c1/1 write" in plan.__rich__().plain
    (tmp_path / "plan.json").write_text(plan.dump_json(), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert "c1  write  awaiting  within p7 program" in lines
    assert "c1/2  gone  unknown tool  within p7 program, c1 write" in lines
    at = lines.index("c1/1/1  add  suspended  within p7 program, c1 write, c1/1 write")
    assert lines[at + 1 : at + 3] == ['  {"a":1}', '  final arguments: {"a":1,"b":0}']
    at = lines.index("  code:")
    assert lines[at + 1 : at + 3] == [r"  # one\x1b[2K\rtwo \u202e", "  await refund()"]
    assert "c1/1  write" not in ran.out[: ran.out.index("  code:")]
    page = lutum("show", "plan.json", "--html", "-").out
    assert "within p7 program, c1 write, c1/1 write" in page
    assert not {"\x1b", "\r", "\u202e"} & {*ran.out, *page}


def test_a_final_answer_in_a_plan_is_shown(lutum: Lutum, tmp_path: Path) -> None:
    """An answer beside calls is named as one, with its result."""

    class Total(BaseModel):
        cents: int

    turn = ScriptedModel.tool_calls(("a1", "total", {"cents": 3}), ("c1", "add", {"a": 1}))
    outcome = Shop.read_turn(turn, answer=Answer(Total, name="total"))
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    (tmp_path / "plan.json").write_text(plan.dump_json(), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert ran.code == 0
    assert "a1  total  answer\n" in ran.out
    assert "  result: accepted\n" in ran.out
    assert "c1  add  pending" in ran.out


def test_an_edited_plan_says_so(lutum: Lutum, tmp_path: Path) -> None:
    """A text that does not fit its digest is shown, with what was edited and exit code 1."""
    text = plan_of_all().dump_json().replace("Really?", "Sure!")
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert ran.code == 1
    assert "Edited: This plan was edited" in ran.out


def test_arguments_that_nobody_can_read_are_shown(lutum: Lutum, tmp_path: Path) -> None:
    """Where what the model wrote is no JSON, the final arguments stand behind it."""
    data = json.loads(plan_of_all().dump_json())
    data["round"]["turn"]["items"][0]["arguments"] = "{broken"
    (tmp_path / "plan.json").write_text(json.dumps(data), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert '  {broken\n  final arguments: {"a":1,"b":0}\n' in ran.out


def test_who_edited_arguments_is_shown(lutum: Lutum, tmp_path: Path) -> None:
    """An edit names who changed which arguments, and when."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(action="ask")))
    plan.amend_sync(plan.suspended[0].edit({"a": 7}, by="ann"), Shop.HookSet())
    (tmp_path / "plan.json").write_text(plan.dump_json(), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert "edit: a changed by ann (+" in ran.out
    assert 'final arguments: {"a":7,"b":0}' in ran.out


def test_an_empty_plan_is_shown(lutum: Lutum, tmp_path: Path) -> None:
    """A plan without calls, which nobody saves, is no reason to fail."""
    data = json.loads(plan_of_all().dump_json())
    data["round"]["turn"]["items"], data["entries"] = [], []
    (tmp_path / "plan.json").write_text(json.dumps(data), encoding="utf-8")
    assert lutum("show", "plan.json").code == 1
    assert "no calls" in lutum("show", "plan.json", "--html", "-").out


def test_a_fault_of_the_whole_request_stands_on_top(lutum: Lutum, tmp_path: Path) -> None:
    """What is wrong with no single item is said before the items."""
    session = Session()
    session.push_system("Be brief.")
    (tmp_path / "t.json").write_text(session.transcript.dump_json(), encoding="utf-8")
    ran = lutum("show", "t.json", "--dialect", "anthropic_messages")
    assert ran.code == 1
    top, _, items = ran.out.partition("0  system")
    assert "request" in top or "messages" in top
    assert "remedy" not in items


def damage(data: dict[str, Any], *, remove: str = "", **changes: Any) -> dict[str, Any]:
    entries = [{**data["entries"][0], **changes}, *data["entries"][1:]]
    return {**data, "entries": entries[1:] if remove else entries}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "odd"}, "this release does not know"),
        ({"call": "c9"}, "The first entry of call 'c1' is missing"),
        ({"remove": "c1"}, "The first entry of call 'c1' is missing"),
    ],
)
def test_a_damaged_plan_is_refused(
    lutum: Lutum, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """What is no plan any more is refused with the place, and exit code 2."""
    data = damage(json.loads(plan_of_all().dump_json()), **changes)
    (tmp_path / "plan.json").write_text(json.dumps(data), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_states_of_a_plan_are_named(lutum: Lutum, tmp_path: Path) -> None:
    """What was started is in doubt, and an answer of a hook is handled, in success or not."""
    calls = [(f"c{a}", "add", {"a": a}) for a in (1, 2, 3)]
    asked = opened(*calls)
    read_again: Any = lambda call: asked.toolset.parse_tool_call(call.metadata)  # noqa: E731
    answers: dict[str, Any] = {
        "c2": read_again(asked.tool_calls[1]).complete(9),
        "c3": read_again(asked.tool_calls[2]).fail("broken"),
    }
    hooks = asked.toolset.HookSet()
    hooks.gate()(lambda metadata, input: answers.get(metadata.id))
    plan = asked.apply_hooks_sync(hooks)
    plan.pending[0].start()
    (tmp_path / "plan.json").write_text(plan.dump_json(), encoding="utf-8")
    ran = lutum("show", "plan.json")
    assert "c1  add  in doubt" in ran.out
    assert "c2  add  handled\n" in ran.out
    assert "c3  add  handled, error\n" in ran.out


def test_a_session_is_shown_with_its_plan(lutum: Lutum, tmp_path: Path) -> None:
    """The transcript and the open calls of a saved session stand on one page."""
    session = Session(id="s1")
    session.push_user("Go on.")
    plan = plan_of_all()
    alone = plan.toolset.dump_session(session)
    (tmp_path / "s.json").write_text(plan.toolset.dump_session(session, plan), encoding="utf-8")
    ran = lutum("show", "s.json")
    assert ran.code == 0
    assert "id s1" in ran.out
    assert "0  user\n  Go on." in ran.out
    assert "Calls of the open round" in ran.out
    (tmp_path / "s.json").write_text(alone, encoding="utf-8")
    assert "Calls of" not in lutum("show", "s.json").out
    (tmp_path / "s.json").write_text(plan.toolset.dump_session(Session()), encoding="utf-8")
    ran = lutum("show", "s.json")
    assert (ran.code, "id s1" in ran.out) == (0, False)


def test_what_a_store_has_is_shown_as_it_is_now(
    lutum: Lutum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`STORE ID` shows the conversation and its open calls, with what was done since the save."""
    monkeypatch.setenv("KEY", "k1")
    session = Session(id="s1")
    with open_store(tmp_path / "desk.db", key=b"k1") as store:
        store.save("empty", None, note="a note alone")
        session.push_user("Add.")
        calls = [("c1", "add", {"a": 1, "b": 2}), ("c2", "add", {"a": 1, "b": 3})]
        turn = session.text_turn(ScriptedModel([ScriptedModel.tool_calls(*calls)])).tools(Shop)
        store.save("s1", needs(turn.collect_sync()).plan(), session=session)
        claim = store.claim(Shop, id="s1")
        assert claim is not None
        store.finish(claim, store.start(claim).complete(3))
    ran = lutum("show", "desk.db", "s1", "--key-env", "KEY")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("`s1` (stored conversation)\n")
    assert "0  user\n  Add." in ran.out
    assert "c1  add  finished\n" in ran.out
    assert "c2  add  pending\n" in ran.out
    assert "Calls of" not in lutum("show", "desk.db", "empty", "--key-env", "KEY").out
    ran = lutum("check", "desk.db", "s1", "--key-env", "KEY", "--json")
    assert (ran.code, json.loads(ran.out)["id"], json.loads(ran.out)["clean"]) == (0, "s1", True)
    assert lutum("check", "desk.db", "s1", "--key-env", "KEY").out == "`s1` (transcript): clean\n"


def test_a_stored_call_that_runs_or_follows_is_shown_so(lutum: Lutum) -> None:
    """What was started is in doubt to whoever looks, and what follows it waits for it."""
    calls = [("c1", "add", {"a": 1, "b": 2}), ("c2", "add", {"a": 1, "b": 3})]
    with open_store("desk.db") as store:
        plan = needs(Shop.read_turn(ScriptedModel.tool_calls(*calls))).plan()
        store.save("s1", plan, in_order=True)
        assert lutum("show", "desk.db", "s1").out.count("in order: waits for c1\n") == 1
        claim = store.claim(Shop, id="s1")
        assert claim is not None
        store.start(claim)
        ran = lutum("show", "desk.db", "s1")
        assert "c1  add  in doubt\n" in ran.out
        assert "in order: waits for c1\n" in ran.out
        store.finish(claim, claim.call.complete(3))
    assert "in order" not in lutum("show", "desk.db", "s1").out


def test_calls_within_calls_are_shown_as_a_store_has_them(lutum: Lutum) -> None:
    """What was done to each since the plan was saved is there, under its path."""
    asked = inner_tools.asks([("note", {"text": "a"}), ("pay", {"cents": 2})])
    plan = inner_tools.opened(asked, toolset=inner_tools.Asking)
    with open_store("desk.db") as store:
        store.save("s1", plan)
        done = asyncio.run(store.run("s1", inner_tools.Asking, hooks=inner_tools.let_pass))
        assert done.plan is not None
        done.plan.discard()
    lines = lutum("show", "desk.db", "s1").out.splitlines()
    assert "c1  steps  awaiting" in lines
    assert "c1/1  note  finished  within c1 steps" in lines
    assert "c1/2  pay  suspended  within c1 steps" in lines


@pytest.mark.parametrize("command", ["check", "show"])
def test_what_a_store_does_not_have_is_refused(
    lutum: Lutum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """No such conversation, another key or none, and a key for a file end with exit code 2.

    No other command is named.
    """
    monkeypatch.setenv("KEY", "k1")
    monkeypatch.setenv("OTHER", "k2")
    with open_store(tmp_path / "desk.db", key=b"k1") as store:
        store.save("s1", None, note="a note")
    for arguments, why in (
        (("desk.db", "s2", "--key-env", "KEY"), "no conversation"),
        (("desk.db", "s1", "--key-env", "OTHER"), "key"),
        (("desk.db", "s1"), "key"),
        (("none.db", "s1"), "no store"),
        (("desk.db", "--key-env", "KEY"), "name its ID"),
    ):
        ran = lutum(command, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert why in ran.err
        assert "lutum inbox" not in ran.err


def test_a_session_is_checked_as_its_transcript_is(lutum: Lutum, tmp_path: Path) -> None:
    """`check` reads a saved session, under a dialect as well; `repair` does not break its seal."""
    session, text = Session(id="s1"), tmp_path / "s.json"
    session.push_user("Go on.")
    plan = plan_of_all()
    text.write_text(plan.toolset.dump_session(session, plan), encoding="utf-8")
    ran = lutum("check", "s.json")
    assert (ran.code, ran.out) == (0, "`s.json` (session): clean\n")
    assert "(session, for openai_chat)" in lutum("check", "s.json", "--dialect", "openai_chat").out
    ran = lutum("repair", "s.json")
    assert (ran.code, ran.out) == (2, "")
    assert "whose seal fits no other text" in ran.err
    text.write_text(text.read_text(encoding="utf-8").replace("Go on.", "Stop."), encoding="utf-8")
    ran = lutum("check", "s.json")
    assert (ran.code, "was edited" in ran.err) == (2, True)


@pytest.mark.parametrize("text", ["", "{", "7", '{"format": "lutum_py.plan", "version": 99}'])
def test_what_is_nothing_is_refused(lutum: Lutum, tmp_path: Path, text: str) -> None:
    """What is no JSON, no conversation, or of another version ends with exit code 2."""
    (tmp_path / "f.json").write_text(text, encoding="utf-8")
    ran = lutum("show", "f.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("lutum: ")


def test_the_page_goes_to_a_file_or_the_browser(
    lutum: Lutum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--html` names the file, `--open` makes one where none is named; no browser is an error."""
    opened_pages: list[str] = []

    def go_to(url: str) -> bool:
        opened_pages.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", go_to)
    (tmp_path / "b.json").write_text(json.dumps([*CHAT["messages"], RESULT]), encoding="utf-8")
    ran = lutum("show", "b.json", "--html", "out.html")
    assert (ran.code, ran.out, opened_pages) == (0, "", [])
    assert ran.err == "Written to `out.html`.\n"
    read_page((tmp_path / "out.html").read_text(encoding="utf-8"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert lutum("show", "b.json", "--open").code == 0
    made = Path(opened_pages[0].removeprefix("file://"))
    assert made.parent == tmp_path
    assert made.stat().st_mode & 0o077 == 0
    assert lutum("show", "b.json", "--open", "--html", "-").code == 2
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    assert "no browser" in lutum("show", "b.json", "--open").err
    ran = lutum("show", "b.json", "--html", "no/out.html")
    told = "lutum: `no/out.html` cannot be written: no such file or directory.\n"
    assert (ran.code, ran.out, ran.err) == (2, "", told)


def test_the_page_never_replaces_what_it_shows(lutum: Lutum, tmp_path: Path) -> None:
    """Where the page would be written onto the file that is shown, it is refused."""
    kept = json.dumps([*CHAT["messages"], RESULT])
    (tmp_path / "b.json").write_text(kept, encoding="utf-8")
    (tmp_path / "also.json").symlink_to("b.json")
    for out in ("b.json", "also.json"):
        ran = lutum("show", "b.json", "--html", out)
        assert (ran.code, "is what is shown" in ran.err) == (2, True)
    assert (tmp_path / "b.json").read_text(encoding="utf-8") == kept
    again = [lutum("show", "-", "--html", "out.html", stdin=kept.encode()).code for _ in range(2)]
    assert again == [0, 0]


def test_what_is_missing_is_no_item(lutum: Lutum, tmp_path: Path) -> None:
    """A body without its list of messages has no items; one with another thing there shows that."""
    for body, count in (({"model": "m"}, 0), ({"model": "m", "messages": None}, 1), ({}, 0)):
        (tmp_path / "b.json").write_text(json.dumps(body), encoding="utf-8")
        ran = lutum("show", "b.json", "--dialect", "openai_chat")
        assert (ran.code, f"items {count}" in ran.out) == (1, True)


def test_tokens_are_those_that_were_counted(lutum: Lutum) -> None:
    """What the provider did not count is not spoken of."""
    usage = {"input_tokens": 1200, "cached_tokens": 1000, "output_tokens": None}
    turn = {"type": "assistant", "items": [{"type": "text", "text": "Hi."}]}
    first = lutum("show", "-", stdin=saved({**turn, "usage": usage})).out.splitlines()
    shown = next(line for line in first if line.startswith("0 "))
    assert shown.endswith("  tokens 1,200 in, 1,000 cached")
    second = lutum("show", "-", stdin=saved(turn)).out.splitlines()
    assert shown.removesuffix("  tokens 1,200 in, 1,000 cached") in second


def test_a_terminal_is_shown_the_beginning_of_a_long_text(lutum: Lutum) -> None:
    """What is left out of a long text is counted."""
    messages = [{"role": "user", "content": "line\n" * 300}, *CHAT["messages"][1:], RESULT]
    ran = lutum("show", "-", stdin=json.dumps(messages).encode())
    assert ran.code == 0
    assert ran.out.count("  line\n") == 240
    assert "… (300 more characters)" in ran.out


def test_a_result_the_model_reads_otherwise_is_shown_in_both_ways(lutum: Lutum) -> None:
    """What the model reads comes first; what the program keeps is shown behind it."""
    call = {"id": "c", "name": "f", "arguments": "{}"}
    turn = {"type": "assistant", "items": [{"type": "tool_call", **call}]}
    result = {"type": "tool_result", **call, "result": "[1]", "status": "success"}
    result["message"] = "one"
    out = lutum("show", "-", stdin=saved(turn, result)).out
    _, _, shown = out.partition("\n1  tool")
    labels = [line.strip().partition("  ")[0] for line in shown.splitlines()[1:] if line]
    assert labels == ["result of: f", "the model reads: one", "result: [1]"]


def test_a_page_of_a_long_conversation_is_quick_and_whole(lutum: Lutum) -> None:
    """Two thousand items with long texts make a page soon, each text whole."""
    item = {"type": "message", "role": "user", "text": "<line>\n" * 100}
    lutum("show", "-", "--html", "-", stdin=saved(item))  # Imports what it needs.
    with calls(2_000_000):
        ran = lutum("show", "-", "--html", "-", stdin=saved(*[item] * 2_000))
    assert ran.out.count("&lt;line&gt;") == 2_000 * 100
