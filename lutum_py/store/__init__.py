"""Conversations and their open rounds in a database that any number of workers share.

SQLite needs no server; PostgreSQL goes by psycopg 3 (extra `postgres`). A store asks no model and
decides nothing, and runs tools only when you call `run`. It puts on record what is about to be
done, and then the outcome: after a crash a call was not started, is done, or is in doubt, and
nothing is silently done twice.

Example:
    >>> from lutum_py import Session, Toolset, tool, tool_fn
    >>> from lutum_py.execution import execute_sync
    >>> from lutum_py.store import open_store
    >>> from lutum_py.testing import ScriptedModel
    >>> @tool_fn
    ... def refund(cents: int) -> str:
    ...     return f"refunded {cents}"
    >>> class Desk(Toolset):
    ...     refund = tool(refund, needs_approval=True)
    >>> model = ScriptedModel([ScriptedModel.tool_calls(("c1", "refund", {"cents": 500}))])
    >>> session = Session()
    >>> session.push_user("Refund my order.")
    >>> store = open_store(":memory:", key=b"from your vault")

    Whoever asks the model saves the plan; whoever decides needs no tool and no model:

    >>> plan = session.text_turn(model).tools(Desk).collect_sync().round.plan()
    >>> store.save("ticket-7", plan, session=session)
    1
    >>> (waiting,) = store.waiting()
    >>> waiting.question
    'refund {"cents":500}?'
    >>> call = store.decide(waiting.id, waiting.approve(by="mia"), Desk)

    A worker puts on record that it starts, runs the tool, and puts on record the outcome:

    >>> claim = store.claim(Desk, lease=60)
    >>> call = store.start(claim)
    >>> store.finish(claim, execute_sync(call))

    And whoever has a model goes on:

    >>> store.settled()
    ['ticket-7']
    >>> stored = store.load("ticket-7", Desk)
    >>> [result.model_text for result in stored.plan.commit(stored.session).results]
    ['refunded 500']
    >>> store.save("ticket-7", None, session=stored.session, version=stored.version)
    5
    >>> store.close()
"""

from __future__ import annotations

from ._database import ConnectionPool, StoreLocation
from ._hold import Held, HeldRunOptions, Hold, InDoubt
from ._store import Store, open_store
from ._values import Claim, Stored, StoredRound, Waiting

__all__ = [
    "Claim",
    "ConnectionPool",
    "Held",
    "HeldRunOptions",
    "Hold",
    "InDoubt",
    "Store",
    "StoreLocation",
    "Stored",
    "StoredRound",
    "Waiting",
    "open_store",
]
