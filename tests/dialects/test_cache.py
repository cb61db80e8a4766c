"""The laws of prompt caches that hold for all dialects."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lutum_py import (
    AssistantTurn,
    Message,
    TurnRequest,
)
from lutum_py.turns import Cache, TranscriptItem

from .every_dialect import DIALECTS, wire_of

FIELDS: dict[str, Any] = {"ttl": "1h", "key": "k", "retention": "24h", "content": "c", "covers": 1}


@DIALECTS
def test_a_field_without_a_word_is_a_loss(dialect: ModuleType) -> None:
    """Each field that was given and that the dialect has no word for is told, and no other."""
    items: list[TranscriptItem] = [
        Message("user", "Hello"),
        AssistantTurn(text="Hi"),
        Message("user", "And?"),
    ]
    body = dialect.encode_request(TurnRequest(items=items, cache=Cache(**FIELDS)))
    lost = {loss.where for loss in body.losses if loss.where.startswith("cache.")}
    unknown = FIELDS.keys() - set(wire_of(dialect.NAME).CACHE_FIELDS)
    assert lost == {f"cache.{field}" for field in unknown}
    plain = dialect.encode_request(TurnRequest(items=items, cache=Cache()))
    assert not [loss for loss in plain.losses if loss.where.startswith("cache")]
