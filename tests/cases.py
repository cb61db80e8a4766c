"""Many cases of one law as one test, in which each case that fails is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from reprlib import Repr
from typing import Any, TypeVar

import pytest

__all__ = ["over"]

Law = TypeVar("Law", bound=Callable[..., Any])
_SHOWN = Repr()  # also shows what raises when it is to show itself
_SHOWN.maxstring = _SHOWN.maxother = 200


def over(names: str, cases: Iterable[Any]) -> Callable[[Law], Law]:
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

    def named(place: int, error: BaseException) -> AssertionError:
        values = ", ".join(map(_SHOWN.repr, rows[place]))
        found = AssertionError(f"case {place} ({values}): {error}")
        found.__cause__ = error
        return found.with_traceback(error.__traceback__)

    def told(failed: list[AssertionError]) -> None:
        if failed:
            raise ExceptionGroup(f"{len(failed)} of {len(rows)} cases fail", failed)

    def decorate(law: Law) -> Law:
        made = [dict(zip(parameters, row, strict=True)) for row in rows]

        @wraps(law)
        def over_all(**more: Any) -> None:
            failed: list[AssertionError] = []
            for place, row in enumerate(made):
                try:
                    law(**row, **more)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told
                    failed.append(named(place, error))
            told(failed)

        @wraps(law)
        async def over_all_async(**more: Any) -> None:
            failed: list[AssertionError] = []
            for place, row in enumerate(made):
                try:
                    await law(**row, **more)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told
                    failed.append(named(place, error))
            told(failed)

        one: Any = over_all_async if inspect.iscoroutinefunction(law) else over_all
        signature = inspect.signature(law)
        left = [each for name, each in signature.parameters.items() if name not in parameters]
        one.__signature__ = signature.replace(parameters=left)
        tried: Law = one
        return tried

    return decorate
