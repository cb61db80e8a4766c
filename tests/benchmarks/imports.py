"""What importing costs, measured in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from tempfile import mkdtemp

from .measure import Measured

__all__ = ["FLOOR", "OURS", "PACKAGE", "Import", "measure_import", "paired_import"]

FLOOR = "from pydantic import BaseModel, TypeAdapter, create_model"
PACKAGE = "import lutum_py"
OURS = "from lutum_py import Toolset, tool, tool_fn"
"""What declares a tool; the package alone loads next to nothing."""

_PROBE = """
import json, sys, time
start = time.process_time()
{statement}
took = time.process_time() - start
try:
    with open("/proc/self/status") as status:
        (peak,) = [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
except OSError:  # not Linux, where alone a child reports its parent's peak as its own
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{
    "seconds": took,
    "modules": sorted(sys.modules),
    "kilobytes": peak,
}}))
"""


@dataclass(frozen=True, slots=True)
class Import:
    """What one import did.

    Attributes:
        seconds: How much of the processor's time it took.
        modules: All modules that were loaded after it.
        kilobytes: The most memory that the process had.
    """

    seconds: float
    modules: frozenset[str]
    kilobytes: int


@cache
def _cache() -> str:
    return mkdtemp(prefix="compiled-")


def measure_import(statement: str) -> Import:
    """Import in a fresh process, whose modules are compiled where they were imported before."""
    compiled = {"PYTHONPYCACHEPREFIX": _cache(), "PYTHONDONTWRITEBYTECODE": ""}
    run = subprocess.run(
        [sys.executable, "-c", _PROBE.format(statement=statement)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **compiled},
    )
    data = json.loads(run.stdout)
    return Import(data["seconds"], frozenset(data["modules"]), data["kilobytes"])


def paired_import(statement: str, rounds: int) -> Measured:
    """Import the floor and a library in turns, each in a fresh process.

    Args:
        statement: What is imported of the library.
        rounds: How many times.
    """
    # The first import of a package compiles it.
    measure_import(f"{FLOOR}; {statement}")
    pairs = [
        (measure_import(FLOOR).seconds, measure_import(statement).seconds) for _ in range(rounds)
    ]
    return Measured(min(f for f, _ in pairs), min(o for _, o in pairs))
