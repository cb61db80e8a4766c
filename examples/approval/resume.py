"""Go on after the decisions: run exactly what was approved, and finish the conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bank import World
from command import Refusal, go_on, line_of, parser, run, show, waiting_calls

from lutum_py.store import Store


def resume(store: Store, world: World, options: argparse.Namespace) -> None:
    """Go on, once nothing waits any more."""
    waiting = waiting_calls(store, options)
    for call in waiting:
        show(call)
    if waiting:
        raise Refusal(f"Not everything is decided. Next: {line_of('approve', options)}")
    go_on(store, world, options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run(resume, parser(__doc__ or "").parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
