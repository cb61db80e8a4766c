"""What the tests of runs share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Each run ends with a full collection, which need not go through what was there before."""
    gc.collect()
    gc.freeze()
