"""What the three commands share: where everything is kept, and how they fail."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import TypeAlias

from bank import World
from desk import CONVERSATION, advance, scripted

from lutum_py.errors import LutumError
from lutum_py.sinks import escape_unprintable
from lutum_py.store import Store, Waiting, open_store
from lutum_py.testing import ScriptedModel

DEFAULT_FOLDER = Path("approval-data")

Command: TypeAlias = Callable[[Store, World, argparse.Namespace], None]


class Refusal(Exception):
    """What was asked for cannot be done; the text says why, and what can."""


def parser(description: str) -> argparse.ArgumentParser:
    """Make a parser with what all commands take."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help=f"where everything is kept (default: {DEFAULT_FOLDER}); remove it to begin again",
    )
    return made


def line_of(name: str, options: argparse.Namespace) -> str:
    """Give the command line of another of the three, as it would be typed here."""
    script = Path(sys.argv[0]).with_name(f"{name}.py")
    where = [] if options.folder == DEFAULT_FOLDER else ["--folder", str(options.folder)]
    return shlex.join(["python", str(script), *where])


def run(command: Command, options: argparse.Namespace) -> int:
    """Run a command, and give its exit status: 1 where it was refused, 130 where it was stopped."""
    folder: Path = options.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_store(folder / "desk.db", key=_key_in(folder / "key")) as store:
            world = World(folder / "world.db")
            try:
                command(store, world, options)
            finally:
                world.close()
    except Refusal as refusal:
        print(escape_unprintable(str(refusal)), file=sys.stderr)
        return 1
    except (LutumError, sqlite3.Error, OSError, ValueError) as error:
        print(_said(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing is lost: give the same command again to go on.", file=sys.stderr)
        return 130
    return 0


def _key_in(path: Path) -> bytes:
    """Read the key, or make it up on the first run; a real desk has it from a vault."""
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))
        with suppress(FileExistsError):
            path.hardlink_to(fresh)  # all of it, and of those who come at once only the first
        fresh.unlink()
    return path.read_bytes()


def _said(error: BaseException) -> str:
    """Say what went wrong; a full disk is that, whatever came of it on the way."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_full(cause):
            return "The disk is full. Nothing is lost: make room, and give the same command again."
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {escape_unprintable(' '.join(str(error).split()))}"


def _is_full(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)


def go_on(store: Store, world: World, options: argparse.Namespace) -> None:
    """Run the loop as far as it goes, and say how things stand."""
    answer = advance(store, world, ScriptedModel(scripted))
    if answer is not None:
        print(escape_unprintable(answer, "\n"))
        return
    waiting = store.waiting(CONVERSATION)
    counted = "1 call waits" if len(waiting) == 1 else f"{len(waiting)} calls wait"
    print(f"{counted} for a decision. Next: {line_of('approve', options)}")


def is_started(store: Store) -> bool:
    """Whether there is a conversation here."""
    return CONVERSATION in store.ids()


def waiting_calls(store: Store, options: argparse.Namespace) -> Sequence[Waiting]:
    """List what waits for a decision.

    Raises:
        Refusal: There is no conversation, or it is over.
    """
    if not is_started(store):
        raise Refusal(f"Nothing was started here. First: {line_of('pay', options)}")
    if store.load(CONVERSATION).session.finished():
        raise Refusal(f"This conversation is over. To begin again, remove {options.folder}.")
    return store.waiting(CONVERSATION)


def show(waiting: Waiting) -> None:
    """Show all that an approver should see."""
    # What the model wrote must not repaint the line that somebody approves.
    print(f"{escape_unprintable(waiting.call_id)}  {waiting.question}")
    print(f"    tool       {waiting.tool}")
    print(escape_unprintable(f"    arguments  {waiting.arguments}"))
    print(f"    digest     {waiting.digest}")
