"""Run a worker of the desk on Temporal, which may be killed or held around a payment.

python temporal_driver.py FOLDER-OF-THE-EXAMPLE [TOOL MOMENT kill|hold]
"""

from __future__ import annotations

import asyncio
import importlib
import sys

sys.path[:0] = [sys.argv[1]]
set_fuse = importlib.import_module("payment_fuses").set_fuse
desk = importlib.import_module("temporal_desk")

if sys.argv[2:]:
    set_fuse(desk.desk, *sys.argv[2:])
asyncio.run(desk.main(["--folder", ".", "worker"]))
