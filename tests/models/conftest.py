"""The server of each test, for the SDK that the test is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .loopback import Loopback, serving

if TYPE_CHECKING:
    # Where an SDK is not installed, the modules that import it are skipped, and not this one.
    from .wires import Wire


@pytest.fixture(
    params=["openai_chat", "openai_responses", "anthropic_messages", "gemini_generate_content"]
)
def wire(request: pytest.FixtureRequest) -> Wire:
    from .wires import WIRES

    (found,) = [each for each in WIRES if each.name == request.param]
    return found


@pytest.fixture(params=["collect", "collect_sync", "stream", "stream_sync"])
def mode(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def server(wire: Wire) -> Iterator[Loopback]:
    with serving(wire.judge) as loopback:
        yield loopback
