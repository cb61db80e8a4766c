"""The fields of a prompt cache in the two formats of OpenAI."""

from __future__ import annotations

from types import ModuleType

import pytest

from lutum_py import (
    Message,
    TurnRequest,
)
from lutum_py.dialects import (
    openai_chat,
    openai_responses,
)
from lutum_py.turns import Cache


@pytest.mark.parametrize("dialect", [openai_chat, openai_responses], ids=lambda each: each.NAME)
def test_openai_takes_a_key_and_a_retention(dialect: ModuleType) -> None:
    """The two fields stand in the body, before the user's extras."""
    items = [Message("user", "Hello")]
    body = dialect.encode_request(
        TurnRequest(items=items, cache=Cache(key="conversation-1", retention="24h"))
    )
    assert (body["prompt_cache_key"], body["prompt_cache_retention"]) == ("conversation-1", "24h")
    assert body.losses == ()
    mine = TurnRequest(items=items, cache=Cache(key="a"), extra={"prompt_cache_key": "b"})
    assert dialect.encode_request(mine)["prompt_cache_key"] == "b"
    plain = dialect.encode_request(TurnRequest(items=items, cache=Cache()))
    assert plain == dialect.encode_request(TurnRequest(items=items))
