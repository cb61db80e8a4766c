"""A store that is there: one conversation of it, and what waits for a decision, shown and decided.

A person approves what is on the screen. So a decision names the digest of what was shown, and one
of other arguments is refused; and nothing that a model wrote can move the cursor or hide a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from .. import Decision, HandledCall, RejectedCall, Session, SuspendedCall
from .._text.escaping import LINES, escape_unprintable, meant_by
from .._text.json import compact_json, is_object, read_json, texts_of_lines
from ..errors import StaleError
from ..saved import SavedPlan, read_stored_round
from ..store import Store, Waiting
from ..typing import HookOutcome
from ._conversation_file import Conversation, conversation_of
from ._loading import load_named, load_toolset
from ._screen import Failure, failing, text


def store_at(where: str, key_variable: str | None) -> Store:
    """Open a store that is there; nothing is made.

    Args:
        where: The path of a SQLite database, or the address of a PostgreSQL one.
        key_variable: The environment variable that holds the key of the store, if it has one.

    Raises:
        Failure: There is no such file or no such variable.
        LutumError: The store cannot be opened.
    """
    if "://" not in where and not _is_store(Path(where)):
        raise Failure(f"There is no store at `{where}`. `open_store` makes one in your program.")
    key: bytes | None = None
    if key_variable is not None:
        found = os.environ.get(key_variable)
        if not found:
            raise Failure(f"`--key-env {key_variable}`: there is no such variable, or it is empty.")
        key = found.encode()
    # Whether a pooler is there is not asked: for a few statements, preparing them gains nothing.
    return Store(where, key=key, is_there=True, behind_pooler="://" in where)


def make_store(address: str) -> Store:
    """Open a store, and make its tables if they are not there.

    Raises:
        LutumError: They cannot be made.
    """
    return Store(address, behind_pooler="://" in address)


def _is_store(path: Path) -> bool:
    """Look for the table of a store, and write nothing: it may be the file of somebody else."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            query = "SELECT 1 FROM sqlite_master WHERE name = 'lutum_store'"
            return database.execute(query).fetchone() is not None
    except sqlite3.Error:  # the store itself says what is wrong
        return True


def read_stored(
    where: str, id: str, key_variable: str | None, dialect: str | None
) -> tuple[Conversation, SavedPlan | None]:
    """Read a conversation, and how the calls of its open round stand.

    Without its tools: each row has to fit its seal, and that is all that is known of it. If no
    session was saved, the conversation is empty.

    Args:
        where: The store, as `store_at` takes it.
        id: Names the conversation.
        key_variable: The environment variable that holds the key of the store.
        dialect: Whose rules apply as well.

    Raises:
        Failure: There is no such conversation, it was edited, or is under another key.
    """
    with failing(), store_at(where, key_variable) as store:
        stored = store.read(id)
        session = stored.session or Session(id=id)
        plan = None
        if stored.record is not None:
            plan = read_stored_round(stored.record, stored.entries, stored.waits)
    said = session.transcript.dump_json().encode()
    return conversation_of(f"`{id}`", said, dialect), plan


ACTIONS: Final = ("approve", "edit", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to become of a call that waits.

    Attributes:
        action: What is to become of it: one of `ACTIONS`.
        which: The conversation and the call, with a slash between them.
        digest: At least the first 8 digits of the digest that was shown.
        ticket: The id of the ticket that was shown, or how it begins.
        changes: The arguments that are to change, with their new values.
        result: What the ticket asks for; None if nothing was given.
        reason: Why.
        by: Who decides.
    """

    action: str
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
    **given: str | None,
) -> Wish:
    """Read what somebody wants; `given` are the options that need no reading.

    Raises:
        Failure: The options do not go together, or one is not of its form.
    """
    if action not in ACTIONS:
        raise Failure(f"`{action}` is none of {', '.join(ACTIONS)}.{meant_by(action, ACTIONS)}")
    if which is None:
        raise Failure(f"Say which call to {action}: CONVERSATION/CALL, as it is shown.")
    if action == "edit" and not changes:
        raise Failure("Say what the edit changes: `--set NAME=JSON`.")
    if action != "edit" and changes:
        raise Failure("`--set NAME=JSON` says what an edit changes, and goes with `edit` only.")
    if result is not None and action == "cancel":
        raise Failure("`--result` does not go with `cancel`: a call that is not run has none.")
    return Wish(
        action=action,
        which=which,
        changes=_changes(changes or ()),
        result=None if result is None else _json_of(result, "--result"),
        **given,
    )


def _changes(given: Sequence[str]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise Failure("A `--set` names no argument. Write `--set NAME=JSON`.")
        if name in read:
            raise Failure("`--set` names an argument twice. Give each its value once.")
        read[name] = _json_of(value, f"--set {name}=")
    return read


def _json_of(given: str, option: str) -> Any:
    try:
        return read_json(given)
    except ValueError:  # which may quote it, and it may be a secret
        raise Failure(
            f"`{option}`: what is given is not JSON. Text needs quotes within quotes: '\"text\"'."
        ) from None


_FEWEST_DIGITS = 8
_SHOWN_DIGITS = 12


def waiting_data(waiting: Iterable[Waiting]) -> list[dict[str, Any]]:
    """Return what waits as plain data."""
    plain = ("id", "call_id", "tool", "proposed", "arguments", "digest")
    return [
        {
            **{name: getattr(each, name) for name in plain},
            "ticket": each.ticket.to_dict(),
            "ancestors": list(map(asdict, each.ancestors)),
        }
        for each in waiting
    ]


def waiting_lines(waiting: Sequence[Waiting]) -> list[Text]:
    """Show all that somebody who decides has to see."""
    lines: list[Text] = []
    for each in waiting:
        lines += [text("")] if lines else []
        lines.append(text(f"{_name(each)}  {each.tool}", "bold"))
        if each.ticket.message:
            lines.append(text(f"  {each.ticket.message}"))
        lines.append(text(f"  arguments  {compact_json(each.arguments)}"))
        lines += _numbered(each.arguments)
        if _differs(each):
            lines.append(text(f"  the model  {each.proposed}"))
        if each.ticket.response_schema is not None:
            lines.append(text(f"  asks for   {compact_json(each.ticket.response_schema)}"))
        for outer in each.ancestors:
            lines.append(text(f"  within     {outer.id}  {outer.tool}"))
            given, long = outer.arguments, texts_of_lines(outer.arguments)
            rest = {k: v for k, v in given.items() if k not in long} if is_object(given) else given
            lines += [text(f"             {compact_json(rest)}")] if rest else []
            lines += _numbered(outer.arguments)
        lines.append(text(f"  digest     {_digits(each)[:_SHOWN_DIGITS]}"))
        lines.append(text(f"  ticket     {each.ticket.id}"))
    return lines


def _numbered(arguments: Any) -> Iterator[Text]:
    """Write texts of several lines, such as a program, each line after its number."""
    for name, words in texts_of_lines(arguments).items():
        yield text(f"    {name}")
        for number, line in enumerate(words.removesuffix("\n").split("\n"), 1):
            yield text(f"    {number:4}  {escape_unprintable(line, LINES).expandtabs(4)}")


def _differs(waiting: Waiting) -> bool:
    """Whether the call would not run with just what the model wrote."""
    try:
        return bool(json.loads(waiting.proposed) != waiting.arguments)
    except ValueError:
        return True


def decide(
    store: Store,
    wish: Wish,
    tools: str | None,
    hooks: str | None,
) -> tuple[str, list[Text]]:
    """Take a decision into the store.

    Args:
        store: The store.
        wish: The decision.
        tools: The toolset of the plan, as `load_toolset` takes it.
        hooks: What an edit is sent through, as `load_named` takes it.

    Returns:
        What became of the call, in a word and in lines.

    Raises:
        Failure: The decision was refused; nothing changed.
        LutumError: It was refused by the store, by a hook, or by the tools; nothing changed.
    """
    if tools is None:
        raise Failure("A decision needs the tools of the plan: pass `--tools module:Toolset`.")
    if wish.action == "edit" and hooks is None:
        raise Failure("An edit goes through your hooks: pass `--hooks module:hooks`.")
    toolset = load_toolset(tools)
    asked = None if hooks is None else load_named(hooks)
    waiting = _find(store.waiting(), wish)
    decision = _decision(waiting, wish)
    if decision.edit is None:
        outcome = store.decide(waiting.id, decision, toolset)
    else:
        outcome = _amend(store, waiting.id, decision, toolset, asked)
    name = _name(waiting)
    if isinstance(outcome, SuspendedCall):
        again = [each for each in store.waiting(waiting.id) if each.call_id == waiting.call_id]
        changed = f"{name}: waits again, because a hook changed what was edited:"
        return "waiting", [text(changed), *waiting_lines(again)]
    if isinstance(outcome, RejectedCall):
        return "rejected", [text(f"{name}: will not run: {outcome.reason}")]
    if isinstance(outcome, HandledCall):
        return "handled", [text(f"{name}: handled, and not run")]
    word = "edited and approved" if wish.action == "edit" else "approved"
    return "ready", [text(f"{name}: {word}, to be run by whoever claims it")]


def _amend(
    store: Store, id: str, decision: Decision, toolset: type[Any], hooks: Any
) -> HookOutcome | None:
    """Take in an edit by hooks that may be async, which no store awaits."""
    # Between reading and saving, a worker may have saved its own step of the same conversation.
    while True:
        stored = store.load(id, toolset)
        if stored.plan is None:
            raise Failure(f"No round of `{id}` is open any more, so that no call waits.")
        try:
            outcome = asyncio.run(stored.plan.amend(decision, hooks))
            store.save(id, stored.plan, note=stored.note, version=stored.version)
        except StaleError:  # a worker started or finished another call of the round
            stored.plan.discard()
        except BaseException:
            stored.plan.discard()
            raise
        else:
            return outcome


def _decision(waiting: Waiting, wish: Wish) -> Decision:
    _check_digest(waiting, wish)
    _check_ticket(waiting, wish)
    if wish.action == "cancel":
        return waiting.cancel(wish.reason, by=wish.by)
    if wish.action == "edit":
        return waiting.edit(wish.changes, by=wish.by, result=wish.result, reason=wish.reason)
    return waiting.approve(by=wish.by, result=wish.result, reason=wish.reason)


def _check_digest(waiting: Waiting, wish: Wish) -> None:
    """Make sure that somebody decides on what they were shown."""
    given = _given_digits(wish)
    if given is None:
        # What is cancelled does not run, whatever its arguments are by now.
        if wish.action == "cancel":
            return
        raise Failure(
            f"To {wish.action} a call, say what you were shown: `--digest`, with at least the "
            f"first {_FEWEST_DIGITS} digits of it. `lutum inbox` shows it."
        )
    if len(given) < _FEWEST_DIGITS:
        raise Failure(f"`--digest {wish.digest}` has fewer than {_FEWEST_DIGITS} digits.")
    if not _digits(waiting).startswith(given):
        raise Failure(
            f"{_name(waiting)} is not what you were shown any more: its digest begins with "
            f"{_digits(waiting)[:_SHOWN_DIGITS]}, not with {given}. Look at it again with "
            "`lutum inbox`."
        )


def _check_ticket(waiting: Waiting, wish: Wish) -> None:
    """Make sure that somebody decides about the ticket that they were shown."""
    # Who names no ticket answers whatever is asked: the digest alone says what would run. With one,
    # an answer to a question that was asked before cannot be taken for this one.
    given, own = wish.ticket, waiting.ticket.id
    if given is None or given == own or (len(given) >= _FEWEST_DIGITS and own.startswith(given)):
        return
    raise Failure(
        f"{_name(waiting)} waits again since you were shown it: its ticket is {own}, not "
        f"{given}. Look at it again with `lutum inbox`."
    )


def _find(waiting: Sequence[Waiting], wish: Wish) -> Waiting:
    """Find the one call that is meant: ids may hold slashes, and what is shown escaped."""
    which, given = wish.which, _given_digits(wish)
    found = [each for each in waiting if which in (_name(each), escape_unprintable(_name(each)))]
    # "a/b/c" may be call "c" of conversation "a/b", or "b/c" of "a": ids may hold slashes. Then the
    # digest decides, which the person was shown as well.
    if len(found) > 1 and given:
        found = [each for each in found if _digits(each).startswith(given)] or found
    if len(found) > 1:
        either = " or ".join(
            f"call {each.call_id!r} of conversation {each.id!r} (`{each.tool}`, digest "
            f"{_digits(each)[:_SHOWN_DIGITS]})"
            for each in found
        )
        raise Failure(
            f"`{which}` may be {either}. Name one with `--digest`; if their digests are the same, "
            "decide in your program."
        )
    if not found:
        near = meant_by(which, map(_name, waiting))
        raise Failure(f"No call `{which}` waits in this store.{near}")
    return found[0]


def _given_digits(wish: Wish) -> str | None:
    return None if wish.digest is None else wish.digest.removeprefix("sha256:").lower()


def _name(waiting: Waiting) -> str:
    return f"{waiting.id}/{waiting.call_id}"


def _digits(waiting: Waiting) -> str:
    return waiting.digest.removeprefix("sha256:")
