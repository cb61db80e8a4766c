"""`python -m lutum_py` is the command `lutum`."""

from __future__ import annotations

from lutum_py.cli import main

if __name__ == "__main__":
    main()
