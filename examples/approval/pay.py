"""Begin the conversation, and go on until a payment waits for its approval."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bank import World
from command import decisions_were_made, go_on, line_of, parser, run, waiting_calls
from desk import QUESTION
from store import Refusal, Store

from lutum_py import Session


def pay(store: Store, world: World, _options: argparse.Namespace) -> None:
    """Begin, or go on where a process was killed before anything could wait."""
    if store.conversation_id is None:
        session = Session()
        session.push_user(QUESTION)
        store.begin(session)
        print(f"> {QUESTION}")
    elif waiting_calls(store):
        raise Refusal(f"Begun already, and payments wait. Next: {line_of('approve', store)}")
    elif decisions_were_made(store):
        raise Refusal(f"Begun already, and all is decided. Next: {line_of('resume', store)}")
    go_on(store, world)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run(pay, parser(__doc__ or "").parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
