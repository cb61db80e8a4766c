"""What somebody says to a call that waits, as the options of `lutum inbox` have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .._text.json import read_json
from .._text.suggestion import meant_by
from ._screen import Failure

Action: TypeAlias = Literal["approve", "edit", "cancel"]
ACTIONS: tuple[Action, ...] = ("approve", "edit", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody says to a call that waits.

    Attributes:
        action: What is to become of it.
        which: The conversation and the call, with a slash between them.
        digest: At least the first 8 digits of the digest that was shown.
        ticket: The id of the ticket that was shown, or how it begins.
        changes: The arguments that are to be others.
        result: What the ticket asks for; None where nothing was given.
        reason: Why.
        by: Who says so.
    """

    action: Action
    which: str
    digest: str | None
    ticket: str | None
    changes: Mapping[str, Any]
    result: Any
    reason: str | None
    by: str | None


def wish_of(
    action: str,
    which: str | None,
    changes: list[str] | None,
    result: str | None,
    **said: str | None,
) -> Wish:
    """Read what somebody says; `said` is what a wish takes as it is.

    Raises:
        Failure: The options do not go together, or one is not of its form.
    """
    known: dict[str, Action] = {each: each for each in ACTIONS}
    if action not in known:
        raise Failure(f"`{action}` is none of {', '.join(ACTIONS)}.{meant_by(action, known)}")
    if which is None:
        raise Failure(f"Say which call to {action}: CONVERSATION/CALL, as it is shown.")
    if bool(changes) != (action == "edit"):
        raise Failure("`--set NAME=JSON` says what an edit changes, and goes with `edit` only.")
    if result is not None and action == "cancel":
        raise Failure("`--result` does not go with `cancel`: a call that is not run has none.")
    return Wish(
        action=known[action],
        which=which,
        changes=_changes(changes or ()),
        result=None if result is None else _json_of(result, "--result"),
        **said,
    )


def _changes(given: Sequence[str]) -> dict[str, Any]:
    read = dict(map(_change, given))
    if len(read) < len(given):
        raise Failure("`--set` names an argument twice. Give each its value once.")
    return read


def _change(given: str) -> tuple[str, Any]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise Failure("A `--set` names no argument. Write `--set NAME=JSON`.")
    return name, _json_of(value, f"--set {name}=")


def _json_of(given: str, option: str) -> Any:
    try:
        return read_json(given)
    except ValueError:  # which may quote it, and it may be a secret
        raise Failure(
            f"`{option}`: what is given is no JSON. Text needs quotes within quotes: '\"text\"'."
        ) from None
