"""What importing costs, measured in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from statistics import median

__all__ = ["FLOOR", "OURS", "Import", "import_ratio", "measure_import"]

FLOOR = "from pydantic import BaseModel, TypeAdapter, create_model"
OURS = "import lutum_py"

_PROBE = """
import json, sys, time, resource
start = time.perf_counter()
{statement}
took = time.perf_counter() - start
print(json.dumps({{
    "seconds": took,
    "modules": sorted(sys.modules),
    "kilobytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
}}))
"""


@dataclass(frozen=True, slots=True)
class Import:
    """What one import did.

    Attributes:
        seconds: How long it took.
        modules: All modules that were loaded after it.
        kilobytes: The most memory that the process had.
    """

    seconds: float
    modules: frozenset[str]
    kilobytes: int


def measure_import(statement: str) -> Import:
    """Import in a fresh process."""
    run = subprocess.run(
        [sys.executable, "-c", _PROBE.format(statement=statement)],
        check=True,
        capture_output=True,
        text=True,
    )
    data = json.loads(run.stdout)
    return Import(data["seconds"], frozenset(data["modules"]), data["kilobytes"])


def import_ratio(rounds: int) -> tuple[float, float, float]:
    """Import the floor and the library in turns.

    Returns:
        The seconds of both, and the median of the paired ratios.
    """
    measure_import(FLOOR)
    measure_import(OURS)
    pairs = [(measure_import(FLOOR).seconds, measure_import(OURS).seconds) for _ in range(rounds)]
    return (
        median(f for f, _ in pairs),
        median(o for _, o in pairs),
        median(o / f for f, o in pairs),
    )
