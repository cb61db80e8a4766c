"""Calls that refuse to run until that they run is on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._call.call import AnyToolCall
from .._call.call_state import CallState
from ..errors import LifecycleError

__all__ = ["held", "let_go"]


def held(call: AnyToolCall) -> AnyToolCall:
    """Let a call, and what is copied from it, refuse to run; it can be looked at and answered."""
    kind = type(call)
    members = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__reduce__": _reduce,
        "_lutum_kind": kind,
        "begin": _refuse,
    }
    call.__class__ = type(kind.__name__, (kind,), members)
    return call


def let_go(call: AnyToolCall) -> AnyToolCall:
    """Let a held call run again."""
    call.__class__ = type(call)._lutum_kind  # type: ignore[attr-defined]
    return call


def _refuse(call: AnyToolCall, *_given: object) -> NoReturn:
    raise LifecycleError(
        f"Call {call.id!r} of tool `{call.name}` is kept in a store, and that it runs is not on "
        "record. Claim it with `store.claim(toolset)`, and run what `store.begin(claim)` gives."
    )


def _reduce(call: AnyToolCall) -> tuple[Any, ...]:
    return (_held_again, CallState.__reduce__(call))


def _held_again(rebuild: Callable[..., AnyToolCall], given: tuple[Any, ...]) -> AnyToolCall:
    return held(rebuild(*given))
