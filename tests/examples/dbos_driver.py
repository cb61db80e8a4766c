"""Go on with the desk on DBOS, in a process that may be killed or held around a payment.

    python dbos_driver.py FOLDER-OF-THE-EXAMPLE [decide|"go on" TOOL MOMENT kill|hold]

With `decide` it decides about what waits as well.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

sys.path[:0] = [sys.argv[1]]
set_fuse = importlib.import_module("payment_fuses").set_fuse
desk = importlib.import_module("dbos_desk")
HERE = "sqlite:///dbos.db"


def decide_all() -> None:
    """Approve what waits, except for the second payment, in a thread."""
    shown: list[dict[str, Any]] = []
    while len(shown) < 3:
        try:
            shown = desk.inbox(HERE)
        except SystemExit:  # nothing is there yet
            continue
    for each in shown:
        action = "cancel" if each["call"]["call_id"] == "call_2" else "resume"
        desk.send(HERE, desk.desk.message(each["call"], action))


if sys.argv[2:]:
    what, *fuse = sys.argv[2:]
    set_fuse(desk.desk, *fuse)
    if what == "decide":
        threading.Thread(target=decide_all, daemon=True).start()
desk.main(["--folder", ".", "ask"])
