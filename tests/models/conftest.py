"""The server of each test, for the SDK that the test is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .loopback import Loopback, serving
from .wires import MODES, WIRES, Wire


@pytest.fixture(params=WIRES, ids=str)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def server(wire: Wire) -> Iterator[Loopback]:
    with serving(wire.judge) as loopback:
        yield loopback
