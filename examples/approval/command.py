"""What the three commands share: where everything is kept, and how they fail."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from bank import World
from desk import Desk, advance, scripted
from store import Refusal, Store, is_full

from lutum_py import SuspendedCall, visible
from lutum_py.errors import LutumError
from lutum_py.testing import ScriptedModel

DEFAULT_FOLDER = Path("approval-data")

Command: TypeAlias = Callable[[Store, World, argparse.Namespace], None]


def parser(description: str) -> argparse.ArgumentParser:
    """Make a parser with what all commands take."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help=f"where everything is kept (default: {DEFAULT_FOLDER}); remove it to begin anew",
    )
    return made


def line_of(name: str, store: Store) -> str:
    """Give the command line of another of the three, as it would be typed here."""
    script = Path(sys.argv[0]).with_name(f"{name}.py")
    where = "" if store.folder == DEFAULT_FOLDER else f" --folder {store.folder}"
    return f"python {script}{where}"


def run(command: Command, options: argparse.Namespace) -> int:
    """Run a command, and give its exit status: 1 where it was refused, in one line."""
    try:
        store = Store(options.folder)
        try:
            world = World(options.folder / "world.db")
            try:
                command(store, world, options)
            finally:
                world.close()
        finally:
            store.close()
    except Refusal as refusal:
        print(visible(str(refusal)), file=sys.stderr)
        return 1
    except (LutumError, sqlite3.Error, OSError, ValueError) as error:
        print(_said(error), file=sys.stderr)
        return 1
    return 0


def _said(error: BaseException) -> str:
    """Say what went wrong; a full disk is that, whatever came of it on the way."""
    cause: BaseException | None = error
    while cause is not None:
        if is_full(cause):
            return "The disk is full. Nothing is lost: make room, and give the same command again."
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {visible(' '.join(str(error).split()))}"


def go_on(store: Store, world: World) -> None:
    """Run the loop as far as it goes, and say how things stand."""
    advance(store, world, ScriptedModel(scripted))
    if store.answer is not None:
        print(visible(store.answer, "\n"))
        return
    waiting = waiting_calls(store)
    counted = "1 call waits" if len(waiting) == 1 else f"{len(waiting)} calls wait"
    print(f"{counted} for a decision. Next: {line_of('approve', store)}")


def waiting_calls(store: Store) -> Sequence[SuspendedCall]:
    """List what waits for a decision.

    Raises:
        Refusal: There is no conversation, or it is over.
    """
    if store.conversation_id is None:
        raise Refusal(f"Nothing was begun here. First: {line_of('pay', store)}")
    if store.answer is not None:
        raise Refusal(f"This conversation is over. To begin anew, remove {store.folder}.")
    _, plan = store.load(Desk)
    if plan is None:
        return ()
    plan.discard()  # only looked at
    return plan.remaining()


def decisions_were_made(store: Store) -> bool:
    """Whether the open round has calls that somebody was asked about."""
    _, plan = store.load(Desk)
    if plan is None:
        return False
    plan.discard()  # only looked at
    return bool(plan.decisions)


def show(waiting: SuspendedCall) -> None:
    """Show all that an approver should see."""
    call = waiting.call
    # What the model wrote must not repaint the line that somebody approves.
    print(visible(f"{call.id}  {waiting.ticket.message}"))
    print(f"    tool       {call.name}")
    print(visible(f"    arguments  {call.input}"))
    print(f"    digest     {waiting.digest}")
