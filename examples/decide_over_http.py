"""Decide over HTTP on calls that wait: `python decide_over_http.py FOLDER PORT`.

`POST /conversations` begins one, `GET /waiting` gives what waits, `POST /decisions` takes a
decision, `GET /conversations/ID` tells what became of it. Kill it, and start it again: it goes on.
The model is a script; put one of `lutum_py.models` around your client in its place.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import unquote

from lutum_py import Decision, NeedsTools, Session, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import DeveloperError, PlanError, ResumeError, StaleError, StoreError
from lutum_py.store import Store, Waiting, open_store
from lutum_py.testing import ScriptedModel

if len(sys.argv) != 3 or not sys.argv[2].isdecimal():
    sys.exit(__doc__)
FOLDER: Final = Path(sys.argv[1])


@tool_fn(idempotent=True)  # a service that pays takes the key, and pays once for each
def refund(order: str, cents: int, ctx: ToolContext) -> str:
    """Refund an order."""
    with (FOLDER / "refunds.txt").open("a", encoding="utf-8") as paid:
        paid.write(f"{order} {cents} {ctx.idempotency_key}\n")
    return f"refunded {cents} for {order}"


class Desk(Toolset):
    """What the desk can do."""

    refund = tool(refund, needs_approval=True, approval_message="Refund {cents} cents for {order}?")


SCRIPT: Final = [
    ScriptedModel.tool_calls(
        ("c1", "refund", {"order": "A1", "cents": 9900}),
        ("c2", "refund", {"order": "A2", "cents": 1200}),
    ),
    ScriptedModel.text("Both refunds are dealt with."),
]
MODEL: Final = ScriptedModel(SCRIPT, by_turn=True)


def go_on(store: Store, id: str) -> None:
    """Go on with a conversation until it is answered, or somebody has to decide."""
    with store.hold(id, Desk, lease=5) as desk:  # who comes at once waits here, and finds it done
        while not desk.run_sync():
            desk.commit()
            if desk.session.finished() is not None:
                return
            outcome = desk.session.text_turn(MODEL).tools(Desk).collect_sync()
            if isinstance(outcome, NeedsTools):
                desk.save(outcome.round.plan())


def shown(waiting: Waiting) -> dict[str, Any]:
    """Give what somebody has to see, and what is to be sent back to decide on just that."""
    made = waiting.approve()
    named = ("call_id", "digest", "ticket", "requested_in", "decision_id")
    return {
        "question": waiting.question,
        "tool": waiting.tool,
        "arguments": waiting.arguments,
        "decide": {"id": waiting.id, **{name: getattr(made, name) for name in named}},
    }


class Handler(BaseHTTPRequestHandler):
    """Answer requests with JSON."""

    store: Store

    def do_GET(self) -> None:
        """Show what waits, or what became of a conversation."""
        where, _, id = unquote(self.path).removeprefix("/").partition("/")
        if where == "waiting":
            self.answer(200, [shown(each) for each in self.store.waiting()])
        elif where == "conversations" and id in self.store.ids():
            end = self.store.load(id).session.finished()
            self.answer(200, {"answer": None if end is None else end.answer})
        else:
            self.answer(404, {"error": f"There is no {self.path}."})

    def do_POST(self) -> None:
        """Begin a conversation, or take a decision; then go on with it."""
        try:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            id = said.pop("id")
            if self.path == "/conversations":
                session = Session()
                session.push_user(said.pop("question"))
                self.store.save(id, None, session=session)
            elif self.path == "/decisions":
                who = self.headers["X-User"]  # whoever signs people in says who, never the body
                made = Decision(**said, by=who)
                # An id counts once, and the other button of the same page is another decision.
                made = replace(made, decision_id=f"{made.decision_id}/{made.action}")
                self.store.decide(id, made, Desk)
            else:
                return self.answer(404, {"error": f"There is no {self.path}."})
        except (ResumeError, StaleError, PlanError) as error:
            # It is late, of something else, started before, or its tool has changed since.
            return self.answer(409, {"error": str(error)})
        except KeyError as error:
            return self.answer(400, {"error": f"The body has no {error}."})
        except StoreError as error:
            return self.answer(404, {"error": str(error)})
        except (DeveloperError, ValueError, TypeError, AttributeError) as error:
            return self.answer(400, {"error": str(error)})
        Thread(target=go_on, args=(self.store, id)).start()
        return self.answer(202, {"id": id})

    def answer(self, status: int, said: Any) -> None:
        """Send JSON."""
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_store(FOLDER / "desk.db") as Handler.store:
        for known in Handler.store.ids():  # what a killed process left
            Thread(target=go_on, args=(Handler.store, known)).start()
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
