"""The inbox as a web application on a store: what is asked for, checked and decided.

A page shows one version of one question: its digest, and the id of its ticket. What comes back is
taken for that version or not at all. A decision has its id from the form and what was typed in it,
so the same form sent twice is the same decision.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from edits import Field, answer_field, check, differences, fields_of, masked, read
from guard import COOKIE, Guard, Person, Seals
from journal import Journal
from markup import ago, join
from pages import (
    Shown,
    address,
    call_page,
    edit_page,
    entry_line,
    list_page,
    problem_page,
    review_page,
    takes_edits,
    who_page,
)
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lutum_py import Decision, HandledCall, Message, RejectedCall, SuspendedCall
from lutum_py.errors import HookError, LutumError, PlanError, ResumeError
from lutum_py.store import Store, Waiting

__all__ = ["Inbox"]

HERE: Final = Path(__file__).parent
LARGEST: Final = 200_000
"""Bytes that a form may have."""
LATELY: Final = 12

Form = Mapping[str, str]


class Problem(Exception):
    """What was asked for is not done; the page says why."""

    def __init__(
        self, status: int, title: str, *told: str, link: tuple[str, str] | None = None
    ) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.told = told
        self.link = link


class Inbox:
    """Show what waits in a store, and take decisions into it.

    Args:
        store: The store.
        toolset: The toolset of its plans.
        hooks: What an edit is sent through, as `store.decide` takes it.
        journal: Where decisions are noted.
        key: The secret by which forms are sealed.
        decided: Is told the id of a conversation in which something was decided.
    """

    def __init__(
        self,
        store: Store,
        toolset: type[Any],
        hooks: Any,
        journal: Journal,
        key: bytes,
        decided: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.store = store
        self.toolset = toolset
        self.hooks = hooks
        self.journal = journal
        self.seals = Seals(key)
        self.decided = decided
        # One decision at a time here, so that whoever comes second is told of the first.
        self._deciding = threading.Lock()

    def app(
        self,
        hosts: Iterable[str],
        lifespan: Callable[[Any], AbstractAsyncContextManager[None]] | None = None,
    ) -> Starlette:
        """Give the application.

        Args:
            hosts: What a browser may call it, as `127.0.0.1:8000`.
            lifespan: What goes on while it is served.
        """
        return Starlette(
            routes=[
                Route("/", self._page(self.waiting)),
                Route("/call", self._page(self.call)),
                Route("/edit", self._page(self.edit), methods=["GET", "POST"]),
                Route("/decide", self._page(self.decide), methods=["POST"]),
                Route("/who", self._page(self.who), methods=["GET", "POST"]),
                Route("/style.css", self._file("style.css")),
                Route("/icon.svg", self._file("icon.svg")),
            ],
            middleware=[Middleware(Guard, hosts=list(hosts))],
            lifespan=lifespan,
        )

    def _file(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def send(_: Request) -> Response:
            return FileResponse(HERE / name)

        return send

    def _page(
        self, answer: Callable[[Request, Person | None, Form], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Read a form, and answer in a thread, where a database may be waited for."""

        async def serve(request: Request) -> Response:
            person = self.seals.person(request.cookies.get(COOKIE))
            try:
                form = await _form_of(request) if request.method == "POST" else {}
                return await asyncio.to_thread(answer, request, person, form)
            except Problem as no:
                text = problem_page(person, no.title, *no.told, link=no.link)
                return HTMLResponse(text, no.status)

        return serve

    # Who decides.

    def who(self, request: Request, _: Person | None, form: Form) -> Response:
        """Ask for a name, or take one."""
        if request.method == "GET":
            return HTMLResponse(who_page(_local(request.query_params.get("next", "/"))))
        named = Person.named(form.get("name", ""))
        back = _local(form.get("next", "/"))
        if named is None:
            fault = "Type a name of 1 to 60 characters, without any that cannot be seen."
            return HTMLResponse(who_page(back, fault), 422)
        answer = RedirectResponse(back, 303)
        answer.set_cookie(COOKIE, self.seals.cookie(named), httponly=True, samesite="lax")
        return answer

    # What is shown.

    def waiting(self, request: Request, person: Person | None, _: Form) -> Response:
        """Show what waits."""
        if person is None:
            return _ask_who(request)
        waiting = sorted(self.store.waiting(), key=_since)
        done = self.journal.of_decision(request.query_params.get("done", ""))
        return HTMLResponse(list_page(person, waiting, self.journal.latest(LATELY), done))

    def call(self, request: Request, person: Person | None, _: Form) -> Response:
        """Show one call."""
        if person is None:
            return _ask_who(request)
        waiting = self._asked_for(request.query_params)
        return HTMLResponse(call_page(self._shown(waiting, person), person))

    def edit(self, request: Request, person: Person | None, form: Form) -> Response:
        """Show the arguments to be edited; then what was typed, with its faults or differences."""
        if request.method == "GET":
            if person is None:
                return _ask_who(request)
            waiting = self._asked_for(request.query_params)
            fields, answer = self._fields(waiting)
            return HTMLResponse(edit_page(self._shown(waiting, person), person, fields, answer))
        person = _known(person)
        waiting = self._same(person, form)
        fields, answer = self._fields(waiting)
        filled, changes = read(fields, form)
        typed = [] if answer is None else [answer]
        (answered, given) = read(typed, form)
        faults: list[str] = []
        if not any(field.fault for field in (*filled, *answered)):
            filled, faults = check(self.toolset, waiting, filled, changes)
            if not changes:
                faults = ["Nothing is changed yet."]
        shown = self._shown(waiting, person)
        if "again" in form or faults or any(field.fault for field in (*filled, *answered)):
            faults = [] if "again" in form else faults
            status = 422 if faults or any(field.fault for field in filled) else 200
            asked = answered[0] if answered else None
            return HTMLResponse(edit_page(shown, person, filled, asked, faults), status)
        result = next(iter(given.values()), None)
        shown = self._shown(waiting, person, edit=json.dumps(changes), result=json.dumps(result))
        differ = differences(
            waiting.arguments, masked({**waiting.arguments, **changes}, waiting.arguments)
        )
        again = {field.key: field.text for field in (*filled, *answered)}
        return HTMLResponse(review_page(shown, person, differ, again))

    def _fields(self, waiting: Waiting) -> tuple[list[Field], Field | None]:
        """Give what can be typed for a call.

        Raises:
            Problem: Nobody can edit it.
        """
        known = {one.name: one for one in self.toolset.definitions()}
        if waiting.tool not in known or not takes_edits(waiting):
            raise Problem(409, "This call takes no edit")
        schema = waiting.ticket.response_schema
        answer = None if schema is None else answer_field(schema)
        return fields_of(waiting, known[waiting.tool].input_schema), answer

    def _shown(
        self, waiting: Waiting, person: Person, edit: str = "", result: str = "null"
    ) -> Shown:
        """Put together what a page shows, and what its forms bring back."""
        hidden = {
            "in": waiting.id,
            "id": waiting.call_id,
            "digest": waiting.digest,
            "ticket": waiting.ticket.id,
            "form": secrets.token_urlsafe(16),
            "edit": edit,
            "result": result,
        }
        hidden["seal"] = self.seals.seal("form", person.browser, *hidden.values())
        return Shown(waiting, self._last_words(waiting.id), hidden)

    def _last_words(self, id: str) -> str | None:
        """Give what the user said last, where the store keeps the session."""
        try:
            items = self.store.load(id).session.transcript
        except LutumError:
            return None
        said = (item for item in reversed(items) if isinstance(item, Message))
        return next((item.text for item in said if item.role == "user"), None)

    def _find(self, id: str, call_id: str) -> Waiting | None:
        try:
            found = self.store.waiting(id)
        except LutumError:  # no id of any conversation
            return None
        return next((each for each in found if each.call_id == call_id), None)

    def _asked_for(self, query: Mapping[str, str]) -> Waiting:
        id, call_id = query.get("in", ""), query.get("id", "")
        found = self._find(id, call_id)
        if found is None:
            raise Problem(404, "This does not wait any more", *self._why(id, call_id))
        return found

    # What is decided.

    def decide(self, _: Request, person: Person | None, form: Form) -> Response:
        """Take a decision in, once."""
        person = _known(person)
        with self._deciding:
            return self._decide(person, form)

    def _decide(self, person: Person, form: Form) -> Response:
        word, reason = form.get("word", ""), form.get("reason", "").strip() or None
        made = self.seals.seal("decision", form.get("form"), word, form.get("answer"), reason)[:32]
        self._check_seal(person, form)
        before = self.journal.of_decision(made)
        if before is not None and before.outcome not in (None, "refused"):
            return _done(made)
        waiting = self._same(person, form)
        result = json.loads(form["result"])
        if word == "answer":
            field = answer_field(waiting.ticket.response_schema or {})
            (filled,), given = read([field], form)
            if filled.fault:
                shown = self._shown(waiting, person)
                return HTMLResponse(call_page(shown, person, filled), 422)
            result = next(iter(given.values()), None)
        changes: dict[str, Any] = json.loads(form["edit"]) if form["edit"] else {}
        match word:
            case "approve" | "answer":
                decision = waiting.approve(by=person.name, result=result)
            case "edit" if form["edit"]:
                decision = waiting.edit(changes, by=person.name, result=result)
            case "cancel":
                decision = waiting.cancel(reason, by=person.name)
            case _:
                raise Problem(400, "This form says nothing that could be decided")
        decision = replace(decision, decision_id=made)
        self.journal.write(waiting, decision, word, list(changes))
        try:
            self._take(waiting, decision)
        except (ResumeError, HookError, PlanError) as error:
            self.journal.complete(made, "refused")
            self._same(person, form)  # somebody in another program may have been faster
            shown = self._shown(waiting, person)
            return HTMLResponse(
                call_page(shown, person, fault=str(error), reason=reason or ""), 422
            )
        self.decided(waiting.id)
        return _done(made)

    def _take(self, waiting: Waiting, decision: Decision) -> None:
        """Tell the store, and note what became of the call."""
        hooks = None if decision.edit is None else self.hooks
        made = decision.decision_id
        match self.store.decide(waiting.id, decision, self.toolset, hooks=hooks):
            case SuspendedCall():
                self.journal.complete(made, "waiting")
            case RejectedCall(reason=why):
                self.journal.complete(made, "rejected", why if decision.edit is not None else None)
            case HandledCall():
                self.journal.complete(made, "decided")
            case None if decision.action == "cancel":
                self.journal.complete(made, "rejected")  # taken in before this program was stopped
            case _:
                self.journal.complete(made, "ready")

    def _check_seal(self, person: Person, form: Form) -> None:
        """Make sure that we made a form, for this browser.

        Raises:
            Problem: We did not.
        """
        names = ("in", "id", "digest", "ticket", "form", "edit", "result")
        parts = [form.get(name) for name in names]
        if not self.seals.fits(form.get("seal", ""), "form", person.browser, *parts):
            told = "It was made for another name or browser, or by another inbox."
            raise Problem(403, "This form is not yours", told)

    def _same(self, person: Person, form: Form) -> Waiting:
        """Find the question that a form is about, if it is still the one that was shown.

        Raises:
            Problem: The form is not ours, or what it shows is not how things are.
        """
        self._check_seal(person, form)
        id, call_id = form["in"], form["id"]
        waiting = self._find(id, call_id)
        entry = self.journal.of_ticket(form["ticket"])
        by_ticket = [join(*entry_line(entry, person))] if entry is not None else []
        if waiting is None:
            raise Problem(409, "Already decided", *(by_ticket or self._why(id, call_id)))
        if (waiting.ticket.id, waiting.digest) != (form["ticket"], form["digest"]):
            told = (
                "It is asked again, with other arguments or in another round of the conversation."
            )
            now = address("/call", **{"in": id, "id": call_id})
            raise Problem(
                409,
                "This page is out of date",
                *by_ticket,
                told,
                link=("Look at it as it is now", now),
            )
        return waiting

    def _why(self, id: str, call_id: str) -> list[str]:
        """Say what the plan knows of a call that does not wait: somebody used another program."""
        try:
            plan = self.store.load(id, self.toolset).plan
        except LutumError:
            return ["There is no such conversation here, or its plan cannot be read."]
        if plan is None:
            return ["Its round is over: the conversation went on."]
        with plan:
            row = next((row for row in plan.calls if row.id == call_id), None)
            when = next(
                (c.approval.at for c in plan.pending if c.id == call_id and c.approval), None
            )
            plan.discard()
        if row is None:
            return ["The conversation is in another round by now, and there is no such call in it."]
        word = "cancelled" if row.state == "rejected" else "let go on"
        by = f"{row.by} has" if row.by else "Somebody has"
        since = () if when is None else (", ", ago(when))
        return [join(f"{by} {word} it", *since, ".")]


async def _form_of(request: Request) -> Form:
    """Read what a form sends.

    Raises:
        Problem: It is no form, or too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise Problem(415, "This is not a form of this inbox")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise Problem(413, "This form is too large")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=500)
    except ValueError:
        raise Problem(400, "This form cannot be read") from None
    return dict(pairs)


def _known(person: Person | None) -> Person:
    if person is None:
        raise Problem(403, "Nobody has said who you are", link=("Say it", "/who"))
    return person


def _ask_who(request: Request) -> Response:
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(address("/who", next=back), 303)


def _local(given: str) -> str:
    """Give an address of ours; where it would lead elsewhere, the first page."""
    path = given.partition("?")[0]
    return given if path in ("/", "/call", "/edit") and given.isprintable() else "/"


def _done(decision_id: str) -> Response:
    return RedirectResponse(address("/", done=decision_id), 303)


def _since(waiting: Waiting) -> tuple[str, str, str]:
    """Order by how long somebody has waited."""
    return str(waiting.ticket.parameters.get("asked_at", "")), waiting.id, waiting.call_id
