"""Begin the conversation, and go on until a payment waits for its approval."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bank import World
from command import Refusal, go_on, is_started, line_of, parser, run, waiting_calls
from desk import CONVERSATION, QUESTION, Desk

from lutum_py import Session
from lutum_py.store import Store


def pay(store: Store, world: World, options: argparse.Namespace) -> None:
    """Begin, or go on where a process was killed before anything could wait."""
    if not is_started(store):
        session = Session()
        session.push_user(QUESTION)
        store.save(CONVERSATION, None, session=session)
        print(f"> {QUESTION}")
    elif waiting_calls(store, options):
        raise Refusal(f"Started already, and payments wait. Next: {line_of('approve', options)}")
    elif decisions_were_made(store):
        raise Refusal(f"Started already, and all is decided. Next: {line_of('resume', options)}")
    go_on(store, world, options)


def decisions_were_made(store: Store) -> bool:
    """Whether the open round has calls that somebody was asked about."""
    plan = store.load(CONVERSATION, Desk).plan
    return plan is not None and bool(plan.decisions)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run(pay, parser(__doc__ or "").parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
