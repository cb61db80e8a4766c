"""A desk that reads mail, and short ways to say what came before a call and what becomes of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretStr

from lutum_py import (
    Reply,
    Session,
    SuspendedCall,
    SuspendTicket,
    ToolRound,
    Toolset,
    flow,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.execution import run_sync
from lutum_py.testing import ScriptedModel
from tests.round_tools import turn


class Person(BaseModel):
    name: str
    email: str


class Event(BaseModel):
    title: str
    guests: list[str]


class File(BaseModel):
    id: str
    filename: str


NO_WORD = SecretStr("")
DATA: dict[str, Any] = {}
"""What each tool gives, by its name; a test says it by `told`."""


@tool_fn
def contacts() -> list[Person]:
    """List the contacts."""
    return DATA["contacts"]  # type: ignore[no-any-return]


@tool_fn
def find_event() -> list[Event]:
    """Find events."""
    return DATA["find_event"]  # type: ignore[no-any-return]


@tool_fn
def find_file() -> list[File]:
    """Find files."""
    return DATA["find_file"]  # type: ignore[no-any-return]


@tool_fn
def read_mail() -> Reply[Any]:
    """Read mail."""
    given = DATA["read_mail"]
    return given if isinstance(given, Reply) else Reply(given)


@tool_fn
def passport() -> str:
    """Read the passport."""
    return "X1234567"


@tool_fn
def send(
    to: list[str],
    body: str = "",
    cc: list[str] | None = None,
    files: list[File] | None = None,
    word: SecretStr = NO_WORD,
) -> str:
    """Send a mail."""
    return "sent"


@tool_fn
def pay(to: str, cents: float) -> str:
    """Pay somebody."""
    return "paid"


@tool_fn
def delete(id: str) -> str:
    """Delete a file."""
    return "gone"


@tool_fn
def look(what: str) -> str:
    """Look at something."""
    return "seen"


class More(Toolset):
    look = tool(look)


class Desk(Toolset):
    contacts = tool(contacts)
    find_event = tool(find_event)
    find_file = tool(find_file)
    read_mail = tool(read_mail)
    passport = tool(passport)
    send = tool(send)
    pay = tool(pay)
    delete = tool(delete)
    more = toolset(More, prefix="more_")


def asked_for(session: Session, name: str, **arguments: Any) -> ToolRound[Any]:
    """The round of a turn with one call."""
    model = ScriptedModel([turn((f"c{len(session.transcript)}", name, arguments))])
    outcome = session.text_turn(model).tools(Desk).collect_sync()
    return outcome.round  # type: ignore[union-attr]


def told(*said: str | tuple[str, Any], session: Session | None = None) -> Session:
    """A session in which these were said: texts of the user, and pairs of a tool and its output."""
    made = Session() if session is None else session
    for each in said:
        if isinstance(each, str):
            made.push_user(each)
            continue
        name, DATA[name] = each
        run_sync(asked_for(made, name).plan()).commit(made)
    return made


def ticket_of(
    policy: flow.Policy, session: Session, name: str, **arguments: Any
) -> SuspendTicket | None:
    """The question that the gate of a policy asks about a call; None where it lets it pass."""
    hooks = Desk.HookSet()
    hooks.gate()(policy.gate(session))
    with asked_for(session, name, **arguments).apply_hooks_sync(hooks) as plan:
        waiting: tuple[SuspendedCall, ...] = plan.suspended
        plan.discard()
    return waiting[0].ticket if waiting else None


def faults(
    policy: flow.Policy, session: Session, name: str, **arguments: Any
) -> list[tuple[str, Any, str]]:
    """What a policy has against a call: place, value and fault of each value."""
    ticket = ticket_of(policy, session, name, **arguments)
    told = [] if ticket is None else ticket.parameters["flow"]
    return [(each["argument"], each["value"], each["fault"]) for each in told]
