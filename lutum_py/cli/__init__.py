"""The command `lutum`: look at toolsets, check and repair conversations, lock schemas.

It needs the extra `cli` (`python -m pip install "lutum-py[cli]"`); without it the command says so
and ends.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and end the process with its exit code.

    Args:
        arguments: What stands after `lutum`; by default what the process was started with.

    Raises:
        SystemExit: Always: 0 where all is well, 1 where something was found, 2 where the command
            could not do its work.

    Example:
        >>> try:
        ...     main(["--version"])  # doctest: +ELLIPSIS
        ... except SystemExit as end:
        ...     end.code
        lutum_py ...
        0
    """
    try:
        from ._commands import run
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in ("rich", "typer"):
            raise
        sys.stderr.write(
            f"lutum: the command line needs the package `{missing}`. "
            'Install it with: python -m pip install "lutum-py[cli]"\n'
        )
        sys.exit(2)
    sys.exit(run(arguments))
