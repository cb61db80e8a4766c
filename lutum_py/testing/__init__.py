"""Test a tool loop without a provider.

- `ScriptedModel` and `ScriptedClient` answer from a script, and refuse an invalid request.
- `assert_transcript_valid` says everything that is wrong with a conversation.
- `check_loop` runs your loop with everything that a model may send, and fails if it loses a call or
  leaves an invalid transcript. Needs the extra `testing`.
- `strategies` are the Hypothesis strategies that it uses. Needs the extra `testing`.
- `pytest_plugin` has the same as fixtures, and is found by pytest by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._text.on_demand import on_demand

if TYPE_CHECKING:
    from . import strategies
    from ._calls import AnyToolset, ArgumentStrategies
    from ._loop import FaultKind, Loop, LoopFailure, LoopFault, LoopSettings, check_loop
    from ._scripted_client import ScriptedAnswer, ScriptedClient, ScriptedResponse, ScriptedStream
    from ._scripted_model import ScriptedModel, ScriptExhausted, TurnScript
    from ._transcript_valid import Dialect, assert_transcript_valid
else:
    # Also because pytest loads the plugin beside this in every run, in those without a loop too.
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "testing._loop": (
                *("FaultKind", "Loop", "LoopFailure"),
                *("LoopFault", "LoopSettings", "check_loop"),
            ),
            "testing._scripted_model": ("ScriptExhausted", "ScriptedModel", "TurnScript"),
            "testing._scripted_client": (
                *("ScriptedAnswer", "ScriptedClient"),
                *("ScriptedResponse", "ScriptedStream"),
            ),
            "testing._calls": ("AnyToolset", "ArgumentStrategies"),
            "testing._transcript_valid": ("Dialect", "assert_transcript_valid"),
        },
        inner=("pytest_plugin", "strategies"),
    )

__all__ = [
    "AnyToolset",
    "ArgumentStrategies",
    "Dialect",
    "FaultKind",
    "Loop",
    "LoopFailure",
    "LoopFault",
    "LoopSettings",
    "ScriptExhausted",
    "ScriptedAnswer",
    "ScriptedClient",
    "ScriptedModel",
    "ScriptedResponse",
    "ScriptedStream",
    "TurnScript",
    "assert_transcript_valid",
    "check_loop",
    "strategies",
]
