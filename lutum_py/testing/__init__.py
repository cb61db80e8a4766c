"""Test a tool loop without a provider.

- `ScriptedModel` and `ScriptedClient` answer from a script, and refuse an invalid request.
- `assert_transcript_valid` says everything that is wrong with a conversation.
- `check_loop` drives a loop of yours with everything that a model may send, and fails where it
  loses a call or leaves an invalid transcript. Needs the extra `testing`.
- `strategies` are the Hypothesis strategies behind it. Needs the extra `testing`.
- `pytest_plugin` gives the same as fixtures, and is found by pytest on its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import strategies as strategies
    from ._loop.check import Loop as Loop
    from ._loop.check import check_loop as check_loop
    from ._loop.fault import FaultKind as FaultKind
    from ._loop.fault import LoopFailure as LoopFailure
    from ._loop.fault import LoopFault as LoopFault
    from ._script import ScriptExhausted as ScriptExhausted
    from ._scripted_client import ScriptedAnswer as ScriptedAnswer
    from ._scripted_client import ScriptedClient as ScriptedClient
    from ._scripted_client import ScriptedResponse as ScriptedResponse
    from ._scripted_client import ScriptedStream as ScriptedStream
    from ._scripted_model import ScriptedModel as ScriptedModel
    from ._scripted_model import TurnScript as TurnScript
    from ._strategies.calls import AnyToolset as AnyToolset
    from ._strategies.calls import ArgumentStrategies as ArgumentStrategies
    from ._transcript_valid import Dialect as Dialect
    from ._transcript_valid import assert_transcript_valid as assert_transcript_valid

# Imported on use: pytest loads the plugin beside this in every run, also in those without a loop.
_HOMES = {
    "AnyToolset": "_strategies.calls",
    "ArgumentStrategies": "_strategies.calls",
    "Dialect": "_transcript_valid",
    "FaultKind": "_loop.fault",
    "Loop": "_loop.check",
    "LoopFailure": "_loop.fault",
    "LoopFault": "_loop.fault",
    "ScriptExhausted": "_script",
    "ScriptedAnswer": "_scripted_client",
    "ScriptedClient": "_scripted_client",
    "ScriptedModel": "_scripted_model",
    "ScriptedResponse": "_scripted_client",
    "ScriptedStream": "_scripted_client",
    "TurnScript": "_scripted_model",
    "assert_transcript_valid": "_transcript_valid",
    "check_loop": "_loop.check",
}

__all__ = [
    "AnyToolset",
    "ArgumentStrategies",
    "Dialect",
    "FaultKind",
    "Loop",
    "LoopFailure",
    "LoopFault",
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


if not TYPE_CHECKING:  # else every misspelt name would have a type

    def __getattr__(name: str) -> Any:
        if name in ("pytest_plugin", "strategies"):
            return import_module(f".{name}", __name__)
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{home}", __name__), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
