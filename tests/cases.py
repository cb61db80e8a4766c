"""Many cases of one law as one test, in which each case that fails is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from reprlib import Repr
from typing import Any

import pytest

__all__ = ["over"]

_SHOWN = Repr()  # also shows what raises when it is to show itself
_SHOWN.maxstring = _SHOWN.maxother = 200


def over(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let one test go over all cases, as `pytest.mark.parametrize` makes a test of each.

    Every case is tried; those that fail are raised together, each with its place and its values.
    What a case changes, such as by `monkeypatch`, the next one finds.

    Args:
        names: The parameters that the cases are for, with commas between them.
        cases: A value for each case, or a tuple of them where there are several parameters.
    """
    parameters = [name.strip() for name in names.split(",")]
    rows = [tuple(case) if len(parameters) > 1 else (case,) for case in cases]
    assert rows, "There are no cases."

    def decorate(law: Callable[..., None]) -> Callable[..., None]:
        @wraps(law)
        def over_all(**more: Any) -> None:
            failed: list[Exception] = []
            for place, row in enumerate(rows):
                try:
                    law(**dict(zip(parameters, row, strict=True)), **more)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told
                    values = ", ".join(map(_SHOWN.repr, row))
                    named = AssertionError(f"case {place} ({values}): {error}")
                    failed.append(named.with_traceback(error.__traceback__))
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(rows)} cases fail", failed)

        signature = inspect.signature(law)
        left = [each for name, each in signature.parameters.items() if name not in parameters]
        over_all.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return over_all

    return decorate
