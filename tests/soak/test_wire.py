"""The laws of the wire, held to as many broken responses, streams and requests as there is time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from types import ModuleType

import pytest

from tests.dialects.broken_requests import broken_request
from tests.dialects.mutations import mutated, mutated_stream, responses, streams
from tests.dialects.test_hostile_requests import clean
from tests.dialects.wire_laws import EACH, decodes_or_refuses, streams_or_refuses
from tests.models.sent import sends
from tests.models.wires import WIRES, Wire


def seeds(usual: int) -> Iterator[int]:
    """Give seeds that the suite does not try, as many as the factor `LUTUM_SOAK` asks for.

    They begin at `LUTUM_SOAK_SEED`, which is another for each round of `nox -s soak`.
    """
    first = int(os.environ.get("LUTUM_SOAK_SEED", "1000000"))
    yield from range(first, first + int(usual * float(os.environ.get("LUTUM_SOAK", "1"))))


@EACH
def test_mutated_responses(dialect: ModuleType) -> None:
    """A response broken anywhere decodes to a turn that can go on, or is a `DialectError`."""
    good = responses(dialect.NAME)
    for seed in seeds(100_000):
        random = Random(seed)
        decodes_or_refuses(dialect, mutated(random.choice(good), random))


@EACH
def test_mutated_streams(dialect: ModuleType) -> None:
    """A stream broken anywhere gives a turn that can go on, or ends in a `DialectError`."""
    good = streams(dialect.NAME)
    for seed in seeds(20_000):
        random = Random(seed)
        streams_or_refuses(dialect, mutated_stream(random.choice(good), random))


@EACH
def test_broken_requests(dialect: ModuleType) -> None:
    """Whatever breaches a conversation brings together, it is checked, and its repair is clean."""
    for seed in seeds(100_000):
        clean(dialect, broken_request(dialect.NAME, Random(seed)))


@pytest.mark.filterwarnings("ignore::lutum_py.models.LossWarning")
@pytest.mark.parametrize("wire", WIRES, ids=str)
def test_sent_by_every_client(wire: Wire) -> None:
    """A turn that any provider might have sent, once committed, goes out by the client of any."""
    sends(wire, seeds(1_000))
