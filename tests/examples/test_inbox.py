"""The inbox in the browser, asked by hand: what it refuses, and that nothing is decided twice."""

from __future__ import annotations

import asyncio
import html
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from lutum_py import NeedsTools, Session, ToolContext, Toolset, tool, tool_fn
from lutum_py.execution import run
from lutum_py.flow import Policy
from lutum_py.store import Store, open_store
from lutum_py.testing import ScriptedModel
from tests.inner_tools import opened as opened_plan
from tests.inner_tools import pay
from tests.instructions import calls

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "inbox"
MODULES: Final = ("edits", "guard", "journal", "markup", "office", "pages", "web")
HOST: Final = "127.0.0.1:8765"
ORIGIN: Final = {"Origin": f"http://{HOST}"}
KEY: Final = b"a key for the tests"
REFUND: Final = {"in": "ann-lee", "id": "call_1"}
MAIL: Final = {"in": "ann-lee", "id": "call_2"}
ACCESS: Final = {"in": "ben-okafor", "id": "call_1"}
FORGED: Final = {"in": "web-form-77", "id": "call_1"}
ANSWER: Final = {"in": "carla-m", "id": "call_1"}


class Desk:
    """The inbox over a store in which five calls wait."""

    def __init__(self, folder: Path) -> None:
        self.modules = {name: importlib.import_module(name) for name in MODULES}
        self.office: Any = self.modules["office"]
        self.store: Store = open_store(folder / "desk.db", key=KEY)
        self.books = self.office.Books(folder / "office.db")
        self.journal = self.modules["journal"].Journal(folder / "inbox.db")
        self.inbox = self.modules["web"].Inbox(
            self.store, self.office.Office, self.office.hooks, self.journal, KEY
        )
        self.app = self.inbox.app([HOST])

    async def go_on(self) -> None:
        """Do what a worker does."""
        for id in self.store.ids():
            await self.office.advance(self.store, id, self.books, lambda event: None)

    def done(self) -> list[str]:
        lines: list[str] = self.books.lines()
        return lines

    def left(self) -> list[str]:
        return [f"{each.id}/{each.call_id}" for each in self.store.waiting()]

    def browser(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.app)
        return httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}")

    async def person(self, name: str) -> httpx2.AsyncClient:
        browser = self.browser()
        answer = await browser.post("/who", data={"name": name, "next": "/"}, headers=ORIGIN)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        return browser


@pytest.fixture
def desk(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.syspath_prepend(EXAMPLE)
    made = Desk(in_memory)
    made.office.begin(made.store)
    asyncio.run(made.go_on())
    yield made
    made.store.close()
    for name in MODULES:
        del sys.modules[name]


def forms(page: str) -> list[dict[str, str]]:
    """Read what each form of a page would send, buttons aside."""
    found = []
    for form in re.findall(r"<form.*?</form>", page, re.DOTALL):
        fields: dict[str, str] = {}
        for tag in re.findall(r"<input[^>]*>", form):
            named = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            fields[named["name"]] = html.unescape(named.get("value", ""))
        for name, text in re.findall(
            r'<textarea [^>]*name="(\w+)"[^>]*>\n(.*?)</text', form, re.DOTALL
        ):
            fields[name] = html.unescape(text)
        for name, inside in re.findall(r'<select [^>]*name="(\w+)"[^>]*>(.*?)</select>', form):
            chosen = re.findall(r'<option value="([^"]*)" selected', inside)
            fields[name] = html.unescape(chosen[0]) if chosen else ""
        found.append(fields)
    return found


async def opened(browser: httpx2.AsyncClient, which: dict[str, str]) -> dict[str, str]:
    """Open the page of a call, and give what its first form would send."""
    page = await browser.get("/call", params=which)
    assert page.status_code == 200
    return forms(page.text)[0]


async def send(
    browser: httpx2.AsyncClient, form: dict[str, str], to: str = "/decide", **more: str
) -> httpx2.Response:
    return await browser.post(to, data={**form, **more}, headers=ORIGIN)


async def test_another_host_is_answered_nothing(desk: Desk) -> None:
    """A name of another site that leads here shows no page, whichever it asks for."""
    mia = await desk.person("Mia")
    for host in ("evil.example:8765", "127.0.0.1", "127.0.0.1:8766", ""):
        for path in ("/", "/call", "/style.css", "/nowhere"):
            answer = await mia.get(path, headers={"Host": host})
            assert (answer.status_code, "refund" in answer.text) == (421, False)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:8765"},
        {"Origin": "http://127.0.0.1:9999"},
        {**ORIGIN, "Sec-Fetch-Site": "cross-site"},
        {**ORIGIN, "Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_form_of_another_site_decides_nothing(headers: dict[str, str], desk: Desk) -> None:
    """A form counts from our own origin only, even with a seal and a cookie that are right."""
    mia = await desk.person("Mia")
    form = {**await opened(mia, REFUND), "word": "approve"}
    before = desk.left()
    assert (await mia.post("/decide", data=form, headers=headers)).status_code == 403
    assert desk.left() == before


async def test_a_form_is_of_one_browser_and_one_version(desk: Desk) -> None:
    """What a form carries cannot be changed, lent to another browser, or sent without a name."""
    mia, tom = await desk.person("Mia"), await desk.person("Tom")
    form = await opened(mia, REFUND)
    before = desk.left()
    for name in ("in", "id", "digest", "ticket", "form", "edit", "result", "seal"):
        assert (await send(mia, {**form, name: "{}"}, word="approve")).status_code == 403
        short = {key: text for key, text in form.items() if key != name}
        assert (await send(mia, short, word="approve")).status_code == 403
    assert (await send(tom, form, word="approve")).status_code == 403
    assert (await send(desk.browser(), form, word="approve")).status_code == 403
    assert (await send(mia, form, word="pay")).status_code == 400
    assert (await send(mia, form, word="edit")).status_code == 400
    forger = desk.browser()
    forger.cookies.set("lutum_inbox", "WyJhIiwiTWlhIl0.00")
    answer = await forger.post("/decide", data=form, headers=ORIGIN)
    assert answer.status_code == 403
    assert desk.left() == before


async def test_a_policy_says_of_each_value_where_it_was_found(desk: Desk) -> None:
    """A question of `lutum_py.flow` has a short heading, and a row for each value."""
    office, session = desk.office.Office, Session()
    policy, hooks = Policy(office), office.HookSet()
    policy.fill("refund_order", ["order", "cents"])
    session.push_user("Refund order 17")
    hooks.gate()(policy.gate(session))
    wish = {"order": "17", "cents": 99, "reason": "late"}
    turn = ScriptedModel.tool_calls(("c1", "refund_order", wish))
    outcome = session.text_turn(ScriptedModel([turn])).tools(office).collect_sync()
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    desk.store.save("flow", plan, session=session)
    mia = await desk.person("Mia")
    shown = (await mia.get("/call", params={"in": "flow", "id": "c1"})).text
    assert "Where do the values" not in shown + (await mia.get("/")).text
    rows = [re.sub("<[^>]*>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", shown)]
    told = [" ".join(row) for row in rows if "allowed" in row]
    assert told == [
        "order 17 is from no allowed source in a message of the user",
        "cents 99 is from no allowed source found nowhere: the assistant made it up",
    ]


async def test_odd_bodies_are_refused(desk: Desk) -> None:
    """Too much, another type or no UTF-8 is refused without being read."""
    mia = await desk.person("Mia")
    kind = {**ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    for body, headers, status in (
        (b"a=" + b"x" * 300_000, kind, 413),
        (b"{}", {**ORIGIN, "Content-Type": "application/json"}, 415),
        (b"a=\xff", kind, 400),
        (b"a&" * 600, kind, 400),
    ):
        assert (await mia.post("/decide", content=body, headers=headers)).status_code == status


async def test_every_answer_says_what_a_browser_may_do(desk: Desk) -> None:
    """Pages, files, refusals and what is not there forbid scripts, frames and caches."""
    mia = await desk.person("Mia")
    for path in ("/", "/who", "/style.css", "/icon.svg", "/nowhere", "/call?in=x&id=y"):
        policy = (await mia.get(path)).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy
    refused = await mia.post("/decide")
    assert refused.headers["x-frame-options"] == "DENY"
    assert refused.headers["cache-control"] == "no-store"


async def test_a_name_comes_first_and_leads_back_here(desk: Desk) -> None:
    """Whoever has no name is asked for one, and never sent to another site."""
    nobody = desk.browser()
    answer = await nobody.get("/call", params=REFUND)
    assert answer.headers["location"] == "/who?next=%2Fcall%3Fin%3Dann-lee%26id%3Dcall_1"
    for name in ("", "  ", "x" * 61, "Mia\u202eanna"):
        assert (await send(nobody, {"name": name}, "/who")).status_code == 422
    for there in ("//evil.example", "https://evil.example", "/\\evil.example", "/call\r\nX: y"):
        sent = await send(nobody, {"name": "Mia", "next": there}, "/who")
        assert sent.headers["location"] == "/"


async def test_what_others_wrote_is_text_and_shows_what_hides(desk: Desk) -> None:
    """Markup stays text, and an override of the direction of reading is spelled out."""
    mia = await desk.person("Mia")
    for page in (await mia.get("/"), await mia.get("/call", params=FORGED)):
        assert "<script" not in page.text
        assert "<b>" not in page.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
        assert "\u202e" not in page.text
        assert '<span class="odd" title="right-to-left override">\\u202e</span>' in page.text
    edit = await mia.get("/edit", params=FORGED)
    assert forms(edit.text)[0]["a0"] == '"B-77\\u202e0021-A"'


@tool_fn(idempotent=True)
def run_code(code: str, ctx: ToolContext) -> str:
    """Ask for a payment, as a program would."""
    if ctx.inner is None:
        ctx.request_calls([("pay", {"cents": 1})])
    return "done"


class Programs(Toolset):
    """A desk whose model writes programs."""

    pay = tool(pay, needs_approval=True)
    run_code = tool(run_code)


async def test_a_call_within_a_program_is_shown_with_it(desk: Desk, in_memory: Path) -> None:
    """Its path and the program are there as text, and it is decided on as any call."""
    code = "pay(1)  # \x1b[2K\u202e<script>\nraise SystemExit"
    plan = opened_plan(("run_code", {"code": code}), toolset=Programs)
    await run(plan, hooks=Programs.HookSet())
    with open_store(in_memory / "programs.db", key=KEY) as store:
        store.save("ann", plan, session=Session())
        inbox = desk.modules["web"].Inbox(store, Programs, Programs.HookSet(), desk.journal, KEY)
        desk.app = inbox.app([HOST])
        mia = await desk.person("Mia")
        listed = (await mia.get("/")).text
        assert "call <code>c1/1</code> of <code>run_code</code>" in listed
        page = (await mia.get("/call", params={"in": "ann", "id": "c1/1"})).text
        assert "It is a part of <code>run_code</code> c1</h2>" in page
        assert "<script" not in page
        assert not {"\x1b", "\u202e"} & {*page}
        assert re.search(r"pay\(1\)  # .*\\x1b.*&lt;script&gt;\nraise SystemExit</bdi>", page)
        answer = await send(mia, forms(page)[0], word="approve")
        assert answer.status_code == 303
        assert store.waiting() == []


async def test_what_the_user_said_is_shown_of_any_store(desk: Desk) -> None:
    """A conversation that is saved with its session, as stores keep it, is shown with its words."""
    session = Session(id="own")
    session.push_user("Is this the right form?")
    asked = ("call_1", "refund_order", {"order": "C-3", "cents": 4_000, "reason": "Late"})
    model = ScriptedModel([ScriptedModel.tool_calls(asked)])
    turn = await session.text_turn(model).tools(desk.office.Office).collect()
    assert isinstance(turn, NeedsTools)
    plan = await turn.round.apply_hooks(desk.office.hooks)
    desk.store.save("own", plan, session=session)
    ann = await desk.person("Ann")
    page = await ann.get("/call", params={"in": "own", "id": "call_1"})
    assert "Is this the right form?" in page.text


async def test_a_call_whose_tool_is_gone_says_so(desk: Desk) -> None:
    """Whoever approves it reads why that does not count, and the journal has nothing in doubt."""

    class Older(Toolset):
        pay_ = tool(pay, needs_approval=True)

    turn = ScriptedModel.tool_calls(("call_1", "pay", {"cents": 5}))
    outcome = Older.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    desk.store.save("old", outcome.round.plan())
    ann = await desk.person("Ann")
    form = await opened(ann, {"in": "old", "id": "call_1"})
    answer = await send(ann, form, word="approve")
    assert (answer.status_code, "Office has no tool" in answer.text) == (422, True)
    assert desk.journal.latest(1) == []


async def test_the_same_form_twice_decides_once(desk: Desk) -> None:
    """A double click, at once or after the round is over, is one decision with one effect."""
    mia = await desk.person("Mia")
    form = await opened(mia, ACCESS)
    twice = await asyncio.gather(*(send(mia, form, word="approve") for _ in range(4)))
    assert {answer.status_code for answer in twice} == {303}
    assert len({answer.headers["location"] for answer in twice}) == 1
    await desk.go_on()
    late = await send(mia, form, word="approve")
    assert late.headers["location"] == twice[0].headers["location"]
    await desk.go_on()
    assert len(desk.done()) == 1
    assert len(desk.journal.latest(9)) == 1
    assert "Approved" in (await mia.get(late.headers["location"])).text


async def test_whoever_comes_second_is_told_of_the_first(desk: Desk) -> None:
    """Of two people at once one decides; the other reads who and when, and changes nothing."""
    mia, tom = await desk.person("Mia"), await desk.person("Tom")
    yes, no = await opened(mia, REFUND), await opened(tom, REFUND)
    first, second = await asyncio.gather(
        send(mia, yes, word="approve"), send(tom, no, word="cancel", reason="too much")
    )
    assert sorted((first.status_code, second.status_code)) == [303, 409]
    name, told = ("Mia", second) if first.status_code == 303 else ("Tom", first)
    assert "Already decided" in told.text
    assert re.search(rf"by {name}, <time", told.text)
    await send(tom if name == "Mia" else mia, no if name == "Mia" else yes, word="approve")
    await desk.go_on()
    assert len(desk.done()) == (name == "Mia")


async def test_a_decision_of_another_program_is_told_of(desk: Desk) -> None:
    """What was decided at a terminal is told of with who did it; nothing is decided twice."""
    mia = await desk.person("Mia")
    approved, cancelled = await opened(mia, REFUND), await opened(mia, MAIL)
    for each in desk.store.waiting("ann-lee"):
        yes = each.call_id == "call_1"
        desk.store.decide("ann-lee", each.decide(yes, by="Tom"), desk.office.Office)
    told = await send(mia, approved, word="cancel")
    assert told.status_code == 409
    assert "Tom has let go on it, <time" in told.text
    assert "Tom has cancelled it." in (await send(mia, cancelled, word="approve")).text
    await desk.go_on()
    over = await send(mia, approved, word="approve")
    assert (over.status_code, "Its round is over" in over.text) == (409, True)
    assert (await mia.get("/call", params=REFUND)).status_code == 404
    assert [line[:8] for line in desk.done()] == ["refunded"]


async def test_a_page_of_another_version_decides_nothing(desk: Desk) -> None:
    """A page from before an edit that waits again is out of date, and decides nothing."""
    mia, tom = await desk.person("Mia"), await desk.person("Tom")
    old, edit = await opened(mia, MAIL), forms((await tom.get("/edit", params=MAIL)).text)[0]
    review = await send(tom, edit, "/edit", a0="Ann@Example.org")
    (approve, _) = forms(review.text)
    assert (await send(tom, approve, word="edit")).status_code == 303
    (entry,) = desk.journal.latest(9)
    assert (entry.outcome, entry.changed) == ("waiting", ("to",))
    for word in ("approve", "cancel"):
        told = await send(mia, old, word=word)
        assert (told.status_code, "out of date" in told.text) == (409, True)
        assert "by Tom, <time" in told.text
    assert "ann-lee/call_2" in desk.left()
    assert (await send(mia, await opened(mia, MAIL), word="approve")).status_code == 303


async def test_an_edit_is_checked_where_it_was_typed(desk: Desk) -> None:
    """What does not fit is said at its field, with what was typed, and nothing is decided."""
    mia = await desk.person("Mia")
    form = forms((await mia.get("/edit", params=REFUND)).text)[0]
    before = desk.left()
    for typed, said in (
        ("-5", "greater than 0"),
        ("much", "This is not JSON"),
        ("[" * 9000, "This is not JSON"),
        ("NaN", "not a number of JSON"),
    ):
        page = await send(mia, form, "/edit", a1=typed)
        assert page.status_code == 422
        (fault,) = re.findall(r'<p id="a1-fault" class="fault">(.*?)</p>', page.text)
        assert said in fault
        assert forms(page.text)[0]["a1"] == typed
    assert "Nothing is changed yet." in (await send(mia, form, "/edit")).text
    assert desk.left() == before


async def test_an_edit_runs_as_it_was_reviewed(desk: Desk) -> None:
    """The differences are shown, can be gone back on, and are what runs."""
    mia = await desk.person("Mia")
    form = forms((await mia.get("/edit", params=REFUND)).text)[0]
    page = (await send(mia, form, "/edit", a1="6000")).text
    assert '<del><bdi dir="auto"><mark>12900</mark>' in page
    assert '<ins><bdi dir="auto"><mark>6000</mark>' in page
    approve, back = forms(page)
    again = await send(mia, back, "/edit")
    assert (again.status_code, forms(again.text)[0]["a1"]) == (200, "6000")
    assert (await send(mia, approve, word="edit")).status_code == 303
    await desk.go_on()
    assert desk.done() == ["refunded 6000 for A-1042: Both cups arrived broken"]


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        ("pay 12 now", "pay 15 now", ["12", "15"]),
        (
            "and so on " * 20_000,
            "and so on " * 10_000 + "forth " + "and so on " * 10_000,
            ["forth "],
        ),
        ("a\n\n" * 20_000, "b\n" + "a\n\n" * 20_000, ["b"]),
        ("b c " * 20_000, "d c " * 20_000, ["b c " * 19_999 + "b", "d c " * 19_999 + "d"]),
    ],
    ids=["short", "words", "lines", "all of it"],
)
async def test_differences_are_found_soon(
    desk: Desk, before: str, after: str, marked: list[str]
) -> None:
    """However long two texts are, what differs is soon known, and both can be read."""
    with calls(100_000):
        (change,) = desk.modules["edits"].differences({"text": before}, {"text": after})
    for signs, whole in (("- ", before), ("+ ", after)):
        lines = [
            "".join(piece for piece, _ in line) for sign, line in change.lines if sign in signs
        ]
        assert "\n".join(lines) == whole
    assert [piece for _, line in change.lines for piece, differs in line if differs] == marked


async def test_a_rule_refuses_an_edit(desk: Desk) -> None:
    """What hooks refuse is noted with their reason, and does not run."""
    mia = await desk.person("Mia")
    form = forms((await mia.get("/edit", params=REFUND)).text)[0]
    approve, _ = forms((await send(mia, form, "/edit", a1="60000")).text)
    page = await mia.get((await send(mia, approve, word="edit")).headers["location"])
    assert "refused by a rule" in page.text
    assert "nobody here refunds more than 500.00 EUR." in page.text
    await desk.go_on()
    assert desk.done() == []


async def test_secrets_are_never_shown_nor_noted(desk: Desk, in_memory: Path) -> None:
    """The old secret is on no page, a new one only in the form that carries it; both run."""
    mia = await desk.person("Mia")
    for path in ("/call", "/edit"):
        assert "493817" not in (await mia.get(path, params=ACCESS)).text
    form = forms((await mia.get("/edit", params=ACCESS)).text)[0]
    page = (await send(mia, form, "/edit", a3="271828")).text
    assert "(a new secret)" in re.sub(r"<[^>]*>", "", page)
    assert "271828" not in re.sub(r"<input[^>]*>", "", page)
    approve, _ = forms(page)
    assert json.loads(approve["edit"]) == {"pin": "271828"}
    assert (await send(mia, approve, word="edit")).status_code == 303
    assert b"271828" not in (in_memory / "inbox.db").read_bytes()


async def test_a_question_is_answered_in_the_place_of_the_tool(desk: Desk) -> None:
    """An answer has to be one of those asked for; a call that takes no edit offers none."""
    mia = await desk.person("Mia")
    form = await opened(mia, ANSWER)
    assert (await mia.get("/edit", params=ANSWER)).status_code == 409
    wrong = await send(mia, form, word="answer", answer="By boat")
    assert (wrong.status_code, "does not fit" in wrong.text) == (422, True)
    assert "carla-m/call_1" in desk.left()
    assert (await send(mia, form, word="answer", answer="Parcel post")).status_code == 303
    assert desk.store.settled() == ["carla-m"]
    await desk.go_on()
    assert desk.done() == []


async def test_a_cancelled_call_does_not_run(desk: Desk) -> None:
    """The reason is noted, and reaches the model."""
    mia = await desk.person("Mia")
    form = await opened(mia, ACCESS)
    page = await mia.get(
        (await send(mia, form, word="cancel", reason="Not his week")).headers["location"]
    )
    assert "Cancelled" in page.text
    assert "Reason: Not his week" in page.text
    await desk.go_on()
    assert desk.done() == []
    assert "Not his week" in desk.store.load("ben-okafor").session.transcript.dump_json()
