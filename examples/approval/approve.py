"""Show what waits for a decision, and decide: at the prompt, or by options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bank import World
from command import Refusal, line_of, parser, run, show, waiting_calls
from desk import CONVERSATION, Desk

from lutum_py import Decision
from lutum_py.sinks import escape_unprintable
from lutum_py.store import Store, Waiting


def approve(store: Store, _world: World, options: argparse.Namespace) -> None:
    """Take decisions into the store; each is on disk before the next is asked for."""
    waiting = waiting_calls(store, options)
    if not waiting:
        raise Refusal(f"Nothing waits for a decision. Next: {line_of('resume', options)}")
    for each in waiting:
        show(each)
    if options.list:
        return
    for decision in _decisions(waiting, options):
        store.decide(CONVERSATION, decision, Desk)
        word = "approved" if decision.action == "resume" else "cancelled"
        print(escape_unprintable(f"{decision.call_id}: {word}"))
    left = len(store.waiting(CONVERSATION))
    print(
        f"{left} still to be decided."
        if left
        else f"Everything is decided. Next: {line_of('resume', options)}"
    )


def _decisions(waiting: Sequence[Waiting], options: argparse.Namespace) -> Iterator[Decision]:
    """Make a decision for each call that is meant, bound to what was shown."""
    given = [(name, True) for name in options.approve] + [(name, False) for name in options.cancel]
    if not given:
        yield from _asked(waiting)
        return
    known = {each.call_id: each for each in waiting}
    for name, yes in given:
        meant = list(waiting) if name == "all" else [known[name]] if name in known else []
        if not meant:
            raise Refusal(f"No call {name!r} waits. There are: {', '.join(known)}.")
        for each in meant:
            made = each.decide(yes, reason=options.reason)
            yield replace(made, digest=options.digest) if options.digest else made


def _asked(waiting: Sequence[Waiting]) -> Iterator[Decision]:
    for each in waiting:
        answer = ""
        while answer not in ("y", "n", "later"):
            try:
                answer = input(f"{each.question} [y/n/later] ").strip().lower()
            except EOFError:
                print()
                return
        if answer != "later":
            reason = input("Why not? ").strip() if answer == "n" else ""
            yield each.decide(answer == "y", reason=reason or None)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    made = parser(__doc__ or "")
    made.add_argument("--list", action="store_true", help="only show what waits")
    made.add_argument("--approve", action="append", default=[], metavar="CALL", help="or `all`")
    made.add_argument("--cancel", action="append", default=[], metavar="CALL", help="or `all`")
    made.add_argument("--reason", help="why; the model reads it where a call is cancelled")
    made.add_argument(
        "--digest", help="refuse where the call no longer is the one with this digest"
    )
    return run(approve, made.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
