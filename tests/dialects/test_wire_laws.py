"""A conversation can always go on: whatever a provider sends is a turn that can, or an error."""

from __future__ import annotations

from random import Random
from types import ModuleType

from .mutations import mutated, mutated_stream, responses, streams
from .wire_laws import DIALECTS, decodes_or_refuses, streams_or_refuses


@DIALECTS
def test_a_mutated_response_is_a_turn_or_an_error(dialect: ModuleType) -> None:
    """A response broken anywhere decodes to a turn that can go on, or is a `DialectError`."""
    good = responses(dialect.NAME)
    for seed in range(300):
        random = Random(seed)
        decodes_or_refuses(dialect, mutated(random.choice(good), random))


@DIALECTS
def test_a_mutated_stream_is_a_turn_or_an_error(dialect: ModuleType) -> None:
    """A stream broken anywhere gives a turn that can go on, or ends in a `DialectError`."""
    good = streams(dialect.NAME)
    for seed in range(100):
        random = Random(seed)
        streams_or_refuses(dialect, mutated_stream(random.choice(good), random))
