"""The private names that proofs of races, machines and inputs need, in one place.

They force one move into the middle of another, plant faults that have to be found, and read texts
that no public name shows whole. Whatever is renamed inside is renamed here.
"""

from __future__ import annotations

from lutum_py._call.base_call import BaseCall
from lutum_py._call.history import move
from lutum_py._call.spec import ToolSpec
from lutum_py._hooks import pipeline
from lutum_py._round import plan, plan_json
from lutum_py._round.inner import ask
from lutum_py._round.plan import ToolRoundPlan, as_plan
from lutum_py._round.sorted_calls import RoundState, SortedCalls
from lutum_py._schema.arguments import Arguments
from lutum_py._schema.input_text import NOTHING, Filler, InputText, has_none, same
from lutum_py.execution import _outcome as outcome
from lutum_py.store import _run as store_run

__all__ = [
    "NOTHING",
    "Arguments",
    "BaseCall",
    "Filler",
    "InputText",
    "RoundState",
    "SortedCalls",
    "ToolRoundPlan",
    "ToolSpec",
    "as_plan",
    "ask",
    "has_none",
    "move",
    "outcome",
    "pipeline",
    "plan",
    "plan_json",
    "same",
    "store_run",
]
