"""`lutum inbox`: what waits in a store, and decisions on it."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lutum_py import Toolset
from lutum_py.errors import StoreError
from lutum_py.execution import run_sync
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel

from ..store.beside import others
from ..store.servers import Postgres, server
from .conftest import Lutum

DESK = """
from pydantic import BaseModel, SecretStr

from lutum_py import *
from lutum_py.store import open_store


@tool_fn
def refund(cents: int, to: str = "card") -> str:
    return f"refunded {cents} to {to}"


@tool_fn
def look() -> str:
    return "seen"


@tool_fn
def ask(pin: SecretStr) -> str:
    return "reviewed"


@tool_fn(idempotent=True)
def program(code: str, of: str, ctx: ToolContext) -> str:
    if ctx.inner is None:
        ctx.request_calls([("refund", {"cents": 500})])
    return code


@tool_fn
def choose() -> str:
    return "never run"


class Desk(Toolset):
    refund = tool(refund)
    program = tool(program)
    choose = tool(choose)
    ask = tool(ask)
    look = tool(look)


hooks = Desk.HookSet()


@hooks.gate(Desk.refund)
def wait(metadata, input):
    return Suspend(SuspendTicket(action="approve", message=f"Refund {input.cents}?"))


@hooks.gate(Desk.choose)
def choice(metadata, input):
    mode = ResumeMode.USE_DECISION_AS_TOOL_RESULT
    return Suspend(SuspendTicket(action="choose", resume_mode=mode))


@hooks.gate(Desk.ask)
def question(metadata, input):
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    return Suspend(SuspendTicket(action="ask", response_schema=schema))


limited = Desk.HookSet()


@limited.on(Desk.refund)
def at_most_ten(metadata, input):
    return RunNormally(input.model_copy(update={"cents": min(input.cents, 1000)}))


awaited = Desk.HookSet()


@awaited.gate(Desk.refund)
async def wait_too(metadata, input):
    return Suspend(SuspendTicket(action="approve"))


meddling = Desk.HookSet()


@meddling.gate(Desk.refund)
def a_worker_comes(metadata, input):
    with open_store("desk.db") as store:
        if (claim := store.claim(Desk)) is not None:
            store.finish(claim, store.start(claim).call_sync())


broken = Desk.HookSet()


@broken.gate(Desk.refund)
def break_down(metadata, input):
    raise RuntimeError("out of order")


blocking = Desk.HookSet()


@blocking.gate(Desk.refund)
def block(metadata, input):
    return Block("closed")
"""

Opened = Callable[..., list[Any]]


@pytest.fixture
def desk(lutum: Lutum, tmp_path: Path) -> type[Toolset]:
    """A desk whose module the command can import."""
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    try:
        found: type[Toolset] = importlib.import_module("desk").Desk
    finally:
        sys.path.remove(str(tmp_path))
    return found


@pytest.fixture
def opened(desk: type[Toolset]) -> Opened:
    """Save a round whose calls wait, and give what a store says of them."""

    def make(*calls: tuple[str, str, Any], key: bytes | None = None, id: str = "t/7") -> list[Any]:
        module = importlib.import_module("desk")

        turn = ScriptedModel.tool_calls(*calls)
        plan = desk.read_turn(turn).round.apply_hooks_sync(module.hooks)  # type: ignore[union-attr]
        with open_store("desk.db", key=key) as store:
            store.save(id, plan, note="x")
            return store.waiting()

    return make


def test_what_waits_is_shown_with_final_arguments(lutum: Lutum, opened: Opened) -> None:
    """Each call is shown with its question, its final arguments, what the model wrote, a digest."""
    (waiting,) = opened(("c1", "refund", {"cents": "500"}))
    ran = lutum("inbox", "desk.db")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[:2] == ["t/7/c1  refund", "Refund 500?"]
    assert lines[2].split(maxsplit=1) == ["arguments", '{"cents":500,"to":"card"}']
    assert lines[3].split(maxsplit=2)[2] == '{"cents":"500"}'
    assert lines[4].split()[1] == waiting.digest.removeprefix("sha256:")[:12]


def test_what_ran_as_it_was_written_is_shown_once(lutum: Lutum, opened: Opened) -> None:
    """Where the final arguments are those of the model, they are not repeated."""
    opened(("c1", "refund", {"cents": 500, "to": "card"}))
    assert "the model" not in lutum("inbox", "desk.db").out


def test_an_empty_inbox_says_so(lutum: Lutum, desk: type[Toolset]) -> None:
    """Where nothing waits, a line says that, and the JSON is an empty list."""
    open_store("desk.db").close()
    assert lutum("inbox", "desk.db").out == "Nothing waits for a decision.\n"
    assert json.loads(lutum("inbox", "desk.db", "--json").out) == []


def test_json_holds_all_of_what_waits(lutum: Lutum, opened: Opened) -> None:
    """Programs read the same as people: all fields of `Waiting`, secrets masked."""
    refund, ask = opened(("c1", "refund", {"cents": 500}), ("c2", "ask", {"pin": "1234"}))
    ran = lutum("inbox", "desk.db", "--json")
    first, second = json.loads(ran.out)
    assert first["arguments"] == refund.arguments
    assert second["digest"] == ask.digest
    assert second["ticket"] == ask.ticket.to_dict()
    assert "1234" not in ran.out


def test_an_approval_names_what_was_shown(lutum: Lutum, opened: Opened) -> None:
    """With eight digits of the digest a call is approved, and who did it is on record."""
    (waiting,) = opened(("c1", "refund", {"cents": 500}))
    digits = waiting.digest.removeprefix("sha256:")[:8].upper()
    given = ("approve", "t/7/c1", "--digest", digits, "--tools", "desk:Desk", "--by", "mia")
    ran = lutum("inbox", "desk.db", *given)
    assert (ran.code, ran.out) == (0, "t/7/c1: approved, to be run by whoever claims it\n")
    module = importlib.import_module("desk")

    with open_store("desk.db") as store:
        plan = store.load("t/7", module.Desk).plan
        assert plan is not None
        (call,) = plan.pending
        assert call.approval is not None
        assert call.approval.by == "mia"
        plan.discard()
        assert store.waiting() == []
    again = lutum("inbox", "desk.db", *given)
    assert (again.code, again.out) == (2, "")
    assert "No call `t/7/c1` waits" in again.err


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("approve", "t/7/c1", "--digest", "00000000"), "not what you were shown"),
    (("approve", "t/7/c1", "--digest", "0000"), "fewer than 8 digits"),
    (("approve", "t/7/c1"), "`--digest`"),
    (("edit", "t/7/c1", "--set", "cents=1", "--hooks", "desk:hooks"), "`--digest`"),
    (("cancel", "t/7/c1", "--digest", "00000000"), "not what you were shown"),
    (("cancel", "t/7/c1", "--ticket", "another"), "waits again since"),
    (("approve", "t/7/c2"), "Did you mean `t/7/c1`?"),
    (("approve",), "CONVERSATION/CALL"),
    (("aprove", "t/7/c1"), "Did you mean `approve`?"),
    (("edit", "t/7/c1"), "Say what the edit changes: `--set NAME=JSON`."),
    (("edit", "t/7/c1", "--set", "cents"), "`--set NAME=JSON`"),
    (("edit", "t/7/c1", "--set", "to=bank"), "is not JSON"),
    (("edit", "t/7/c1", "--set", "pin=HUNTER2"), "`--set pin=`: what is given is not JSON"),
    (("edit", "t/7/c1", "--set", 'pin="HUNTER2'), "`--set pin=`: what is given is not JSON"),
    (("edit", "t/7/c1", "--set", "HUNTER2"), "A `--set` names no argument"),
    (("approve", "t/7/c1", "--result", "HUNTER2"), "`--result`: what is given is not JSON"),
    (("edit", "t/7/c1", "--set", "cents=1"), "`--hooks module:hooks`"),
    (("edit", "t/7/c1", "--set", "cents=1", "--hooks", "desk:nothing"), "has no `nothing`"),
    (("edit", "t/7/c1", "--set", "cents=1", "--hooks", "desk"), "`desk` names no"),
    (("cancel", "t/7/c1", "--result", "1"), "`--result` does not go with"),
    (("cancel", "t/7/c1", "--set", "cents=1"), "goes with `edit` only"),
    (("edit", "t/7/c1", "--set", "cents=1", "--set", "cents=2"), "twice"),
]


def test_what_is_refused_says_why_and_changes_nothing(lutum: Lutum, opened: Opened) -> None:
    """A decision that does not fit ends with 2, says why, and leaves everything as it was."""
    before = opened(("c1", "refund", {"cents": 500}))
    for options, why in REFUSED:
        ran = lutum("inbox", "desk.db", *options, "--tools", "desk:Desk")
        assert (ran.code, ran.out) == (2, ""), options
        assert why in ran.err, (options, ran.err)
        assert "HUNTER2" not in ran.err
        assert ran.err.count("\n") == 1, (options, ran.err)
        with open_store("desk.db") as store:
            assert store.waiting() == before, options


def test_a_decision_needs_the_tools(lutum: Lutum, opened: Opened) -> None:
    """Without the toolset of the plan nothing is decided."""
    opened(("c1", "refund", {"cents": 500}))
    ran = lutum("inbox", "desk.db", "cancel", "t/7/c1")
    assert (ran.code, "`--tools module:Toolset`" in ran.err) == (2, True)


def test_a_call_is_cancelled_with_a_reason(lutum: Lutum, opened: Opened) -> None:
    """A cancelled call will not run, and the model reads why; JSON says what became of it."""
    opened(("c1", "refund", {"cents": 500}))
    options = ("cancel", "t/7/c1", "--reason", "too much", "--tools", "desk:Desk", "--json")
    ran = lutum("inbox", "desk.db", *options)
    outcome = {"call": "t/7/c1", "action": "cancel", "outcome": "rejected"}
    assert (ran.code, json.loads(ran.out)) == (0, outcome)
    module = importlib.import_module("desk")

    with open_store("desk.db") as store:
        plan = store.load("t/7", module.Desk).plan
        assert plan is not None
        assert [each.model_text for each in plan.resolve().results] == ["Cancelled: too much"]


@pytest.mark.parametrize(
    ("cents", "hooks", "outcome", "said"),
    [
        (200, "desk:hooks", "ready", "edited and approved"),
        (200, "desk:awaited", "ready", "edited and approved"),
        (5000, "desk:limited", "waiting", '"cents":1000'),
        (200, "desk:blocking", "rejected", "closed"),
    ],
)
def test_an_edit_goes_through_the_hooks(
    lutum: Lutum, opened: Opened, cents: int, hooks: str, outcome: str, said: str
) -> None:
    """What people change is asked of the hooks: it runs, waits once more, or is blocked."""
    (waiting,) = opened(("c1", "refund", {"cents": 500}))
    digest = waiting.digest
    decided = ("edit", "t/7/c1", "--digest", digest, "--set", f"cents={cents}", "--hooks", hooks)
    ran = lutum("inbox", "desk.db", *decided, "--tools", "desk:Desk")
    assert ran.code == 0, ran.err
    assert said in ran.out
    with open_store("desk.db") as store:
        assert bool(store.waiting()) == (outcome == "waiting")


def edit(lutum: Lutum, waiting: Any, hooks: str) -> Any:
    given = ("edit", "t/7/c1", "--digest", waiting.digest, "--set", "cents=200")
    return lutum("inbox", "desk.db", *given, "--tools", "desk:Desk", "--hooks", hooks)


def test_an_edit_counts_although_a_worker_works(lutum: Lutum, opened: Opened) -> None:
    """Where a worker finishes a sibling while hooks are asked, result and edit both count."""
    (waiting,) = opened(("c1", "refund", {"cents": 500}), ("c2", "look", {}))
    assert edit(lutum, waiting, "desk:meddling").code == 0
    with open_store("desk.db") as store:
        plan = store.load("t/7", importlib.import_module("desk").Desk).plan
        assert plan is not None
        assert [result.id for result in plan.finished] == ["c2"]
        assert [call.id for call in plan.pending] == ["c1"]
        assert [each.final["cents"] for each in plan.edits] == [200]
        plan.discard()


def test_an_edit_that_cannot_count_is_refused(
    lutum: Lutum, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that raises, and a round that ended meanwhile, refuse an edit; nothing changes."""
    (waiting,) = opened(("c1", "refund", {"cents": 500}))
    ran = edit(lutum, waiting, "desk:broken")
    assert (ran.code, "out of order" in ran.err) == (2, True)
    with open_store("desk.db") as store:
        assert store.waiting() == [waiting]
        store.save("t/7", None, note="y", version=1)
    monkeypatch.setattr(Store, "waiting", lambda self: [waiting])
    ran = edit(lutum, waiting, "desk:hooks")
    assert (ran.code, "is open any more" in ran.err) == (2, True)


def test_a_question_takes_an_answer(lutum: Lutum, opened: Opened) -> None:
    """A ticket with a schema is answered by `--result`, and one that does not fit is refused."""
    (waiting,) = opened(("c1", "ask", {"pin": "1234"}))
    asked = lutum("inbox", "desk.db").out
    assert '"sure":{"type":"boolean"}' in asked
    given = ("approve", "t/7/c1", "--digest", waiting.digest, "--tools", "desk:Desk", "--result")
    refused = lutum("inbox", "desk.db", *given, '{"sure": "maybe"}')
    assert (refused.code, "sure" in refused.err) == (2, True)
    assert lutum("inbox", "desk.db", *given, '{"sure": true}').code == 0


def test_an_answer_may_stand_for_the_tool(lutum: Lutum, opened: Opened) -> None:
    """Where the person's answer is the result, the call is handled, and nobody runs it."""
    (waiting,) = opened(("c1", "choose", ""))
    assert "the model" in lutum("inbox", "desk.db").out  # no JSON, and so not what would run
    given = ("approve", "t/7/c1", "--digest", waiting.digest, "--tools", "desk:Desk")
    ran = lutum("inbox", "desk.db", *given, "--result", '"the red one"')
    assert (ran.code, ran.out) == (0, "t/7/c1: handled, and not run\n"), ran.err


def test_hooks_that_cannot_be_looked_at_are_refused(
    lutum: Lutum, opened: Opened, tmp_path: Path
) -> None:
    """A module that raises when it is asked for its hooks is named, and nothing is decided."""
    (waiting,) = opened(("c1", "refund", {"cents": 500}))
    (tmp_path / "odd.py").write_text("def __getattr__(name):\n    raise OSError('no')\n")
    given = ("edit", "t/7/c1", "--digest", waiting.digest, "--set", "cents=1")
    ran = lutum("inbox", "desk.db", *given, "--tools", "desk:Desk", "--hooks", "odd:hooks")
    assert (ran.code, "Looking at `odd:hooks` failed: OSError: no" in ran.err) == (2, True), ran.err


def test_a_store_has_its_key(lutum: Lutum, opened: Opened, monkeypatch: Any) -> None:
    """A sealed store opens with the variable that holds its key, and with no other."""
    opened(("c1", "refund", {"cents": 500}), key=b"right")
    monkeypatch.setenv("LUTUM_KEY", "right")
    assert lutum("inbox", "desk.db", "--key-env", "LUTUM_KEY").code == 0
    ran = lutum("inbox", "desk.db")
    assert (ran.code, "name the variable that holds it with `--key-env`" in ran.err) == (2, True)
    monkeypatch.setenv("LUTUM_KEY", "wrong")
    assert lutum("inbox", "desk.db", "--key-env", "LUTUM_KEY").code == 2
    monkeypatch.setenv("LUTUM_KEY", "")
    ran = lutum("inbox", "desk.db", "--key-env", "LUTUM_KEY")
    assert (ran.code, "no such variable, or it is empty" in ran.err) == (2, True)


def test_looking_makes_no_store(lutum: Lutum, tmp_path: Path) -> None:
    """A path where no store is, or another file is, is refused, and nothing is written there."""
    ran = lutum("inbox", "none.db")
    assert (ran.code, "There is no store at `none.db`" in ran.err) == (2, True)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other").write_text("no database, but a text\n" * 100)
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "theirs")) as theirs:
        theirs.execute("CREATE TABLE visits (day TEXT)")
    for name in ("other", "empty", "theirs"):
        before = (tmp_path / name).read_bytes()
        ran = lutum("inbox", name)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert (tmp_path / name).read_bytes() == before


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A server of its own."""
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: python -m pip install -e '.[postgres]'"
    )
    running = server()
    yield running
    running.remove()


def test_looking_makes_no_tables_on_a_server(lutum: Lutum, postgres: Postgres) -> None:
    """A server's database in which there is no store is refused, and stays as it was."""
    where = postgres.fresh()
    ran = lutum("inbox", where)
    assert (ran.code, "lutum_store" in ran.err) == (2, True)
    assert lutum("inbox", where).err == ran.err
    open_store(where).close()
    assert lutum("inbox", where).code == 0


def test_tables_are_made_by_who_may(lutum: Lutum, postgres: Postgres) -> None:
    """With the tables of `lutum store init` and the rights that its page names, a role that may
    create nothing uses a store; without them the command is named.
    """
    where = postgres.fresh()
    schema = where.partition("search_path%3D")[2].partition(",")[0]
    page = (Path(__file__).parents[2] / "docs/how-to/command-line.md").read_text(encoding="utf-8")
    rights = page.partition("```sql\n")[2].partition("```")[0]
    app = where.replace("lutum@", "app@")
    with others(where) as rows:
        rows.run("CREATE ROLE app LOGIN")
        rows.run(f"GRANT USAGE ON SCHEMA {schema} TO app")
    with pytest.raises(StoreError, match="lutum store init"):
        open_store(app)
    ran = lutum("store", "init", app)
    assert (ran.code, "denied for schema" in ran.err) == (2, True)
    for _ in range(2):
        ran = lutum("store", "init", where)
        assert (ran.code, ran.out.startswith("The tables of the store are there: ")) == (0, True)
    with others(where) as rows:
        for statement in rights.split(";")[:-1]:
            rows.run(statement.replace("SCHEMA public", f"SCHEMA {schema}"))
    with open_store(app) as store:
        version = store.save("t", None, note="a")
        store.save("t", None, note="b", version=version)
        store.delete("t")


def test_tables_are_made_in_a_file(lutum: Lutum) -> None:
    """`lutum store init` makes a SQLite store, and says for programs where it is."""
    ran = lutum("store", "init", "new.db", "--json")
    assert (ran.code, "new.db" in json.loads(ran.out)["store"]) == (0, True)
    assert lutum("inbox", "new.db").out == "Nothing waits for a decision.\n"
    Path("text.db").write_text("not a database, and long enough to be one" * 100)
    ran = lutum("store", "init", "text.db")
    assert (ran.code, "not a database" in ran.err) == (2, True)


def test_a_call_within_a_program_is_shown_with_it(lutum: Lutum, desk: type[Toolset]) -> None:
    """The program stands in numbered lines, with nothing hidden; a path names one call, or none."""
    module = importlib.import_module("desk")
    written = {"code": "x = 1\x1b[2K\r\n\tawait refund()\u202e\n", "of": "ann"}
    turn = ScriptedModel.tool_calls(("c1", "program", written))
    plan = desk.read_turn(turn).round.apply_hooks_sync(module.hooks)  # type: ignore[union-attr]
    with open_store("desk.db") as store:
        store.save("t", run_sync(plan, hooks=module.hooks))
        (waiting,) = store.waiting()
    digits = waiting.digest.removeprefix("sha256:")[:12]
    assert lutum("inbox", "desk.db").out.splitlines() == [
        "t/c1/1  refund",
        "  Refund 500?",
        '  arguments  {"cents":500,"to":"card"}',
        '  the model  {"cents":500}',
        "  within     c1  program",
        '             {"of":"ann"}',
        "    code",
        r"       1  x = 1\x1b[2K\r",
        r"       2      await refund()\u202e",
        f"  digest     {digits}",
        f"  ticket     {waiting.ticket.id}",
    ]
    (shown,) = json.loads(lutum("inbox", "desk.db", "--json").out)
    assert shown["ancestors"] == [{"id": "c1", "tool": "program", "arguments": written}]
    other = desk.read_turn(ScriptedModel.tool_calls(("1", "refund", {"cents": 500})))
    with open_store("desk.db") as store:
        store.save("t/c1", other.round.apply_hooks_sync(module.hooks))  # type: ignore[union-attr]
    refused = lutum("inbox", "desk.db", "cancel", "t/c1/1", "--tools", "desk:Desk")
    assert refused.code == 2
    assert "call 'c1/1' of conversation 't' (`refund`" in refused.err
    assert "call '1' of conversation 't/c1' (`refund`" in refused.err
    given = ("approve", "t/c1/1", "--tools", "desk:Desk", "--digest", digits)
    assert lutum("inbox", "desk.db", *given).code == 0
    with open_store("desk.db") as store:
        assert [each.id for each in store.waiting()] == ["t/c1"]


def test_an_address_that_is_refused_is_not_shown(lutum: Lutum) -> None:
    """What is wrong with an address is said without the password that is in it."""
    ran = lutum("inbox", "postgresql://mia:se@cret@localhost/desk")
    assert (ran.code, ran.err.count("\n"), "cret" in ran.err) == (2, 1, False)


def test_names_that_look_alike_are_told_apart(lutum: Lutum, opened: Opened) -> None:
    """Where ids hold slashes, two calls may have one name, and the digest says which is meant."""
    (first,) = opened(("b/c", "refund", {"cents": 1}), id="a")
    (second,) = opened(("c", "refund", {"cents": 2}), id="a/b")[1:]
    refused = lutum("inbox", "desk.db", "cancel", "a/b/c", "--tools", "desk:Desk")
    assert (refused.code, refused.out) == (2, "")
    for named, waiting in (
        ("'b/c' of conversation 'a'", first),
        ("'c' of conversation 'a/b'", second),
    ):
        digits = waiting.digest.removeprefix("sha256:")[:12]
        assert f"call {named} (`refund`, digest {digits})" in refused.err
    given = ("cancel", "a/b/c", "--tools", "desk:Desk", "--digest")
    assert lutum("inbox", "desk.db", *given, "0" * 8).code == 2
    assert lutum("inbox", "desk.db", *given, second.digest).code == 0
    with open_store("desk.db") as store:
        assert store.waiting() == [first]


def test_a_call_is_named_as_it_is_shown(lutum: Lutum, opened: Opened) -> None:
    """A name in which control characters are shown escaped is given as it stands there."""
    opened(("c\x1b[1A", "refund", {"cents": 500}))
    given = ("cancel", r"t/7/c\x1b[1A", "--tools", "desk:Desk")
    assert lutum("inbox", "desk.db", *given).code == 0


def test_what_a_model_wrote_moves_nothing_on_the_screen(lutum: Lutum, opened: Opened) -> None:
    """Ids, arguments and questions show control characters, and obey none."""
    wipe = "card\x1b[2K\r\u202e"
    opened(("c1", "refund", {"cents": 500, "to": wipe}), id="t\x1b[1A")
    out = lutum("inbox", "desk.db").out
    assert all(char.isprintable() or char == "\n" for char in out)
    assert "\\x1b[1A" in out
