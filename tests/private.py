"""The private names that proofs of races, machines and inputs need, in one place.

They force one move into the middle of another, plant faults that have to be found, and read texts
that no public name shows whole. Whatever is renamed inside is renamed here.
"""

from __future__ import annotations

from lutum_py._call.base_call import CallRecord
from lutum_py._call.call_state import DecodedCall
from lutum_py._call.history import move
from lutum_py._call.spec import ToolSpec
from lutum_py._hooks import pipeline
from lutum_py._round import plan, plan_json
from lutum_py._round.inner import ask
from lutum_py._round.plan import ToolRoundPlan
from lutum_py._round.sorted_calls import RoundState
from lutum_py._schema.arguments import NOTHING, Arguments, Filler, InputText, has_none, same
from lutum_py.store import _backend as store_backend
from lutum_py.store import _database as store_database
from lutum_py.store import _postgres as store_postgres
from lutum_py.store import _run as store_run
from lutum_py.store import _sqlite as store_sqlite
from lutum_py.store._backend import in_thread, interruptible
from lutum_py.store._backend import pause as interruptible_pause
from lutum_py.store._claims import Wanted
from lutum_py.store._database import Database, LostCommit, Rows, database_at

decode = DecodedCall.decode
finish = DecodedCall.finish

__all__ = [
    "NOTHING",
    "Arguments",
    "CallRecord",
    "Database",
    "DecodedCall",
    "Filler",
    "InputText",
    "LostCommit",
    "RoundState",
    "Rows",
    "ToolRoundPlan",
    "ToolSpec",
    "Wanted",
    "ask",
    "database_at",
    "decode",
    "finish",
    "has_none",
    "in_thread",
    "interruptible",
    "interruptible_pause",
    "move",
    "pipeline",
    "plan",
    "plan_json",
    "same",
    "store_backend",
    "store_database",
    "store_postgres",
    "store_run",
    "store_sqlite",
]
