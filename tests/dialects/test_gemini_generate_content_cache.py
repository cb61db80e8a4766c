"""Cached contents of generateContent, and what they cover."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    ToolMetadata,
    TurnRequest,
)
from lutum_py.dialects import (
    gemini_generate_content,
)
from lutum_py.errors import InvalidValueError
from lutum_py.turns import TranscriptItem
from lutum_py.typing import ToolChoice
from lutum_py.window import Cache
from tests.cases import over

from .plain import ONE_AND_TWO, done

PICTURE = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
CALL = ToolMetadata(id="c1", name="one", arguments="{}")
STORY: list[TranscriptItem] = [
    Message("system", "Be brief."),
    Message("user", "Hello"),
    AssistantTurn(tool_calls=[CALL]),
    done(CALL),
    AssistantTurn(text="Hi"),
    Message("user", "And?"),
]


def gemini(items: Any = STORY, **fields: Any) -> Any:
    cache = Cache(**{"content": "cachedContents/abc", **fields})
    request = TurnRequest(items=items, tools=ONE_AND_TWO, temperature=0.5, cache=cache)
    return gemini_generate_content.encode_request(request)


@over("covers", [0, 1, 2, 4, 5])
def test_a_cached_content_stands_for_what_it_covers(covers: int) -> None:
    """Neither instructions nor tools nor what is covered is sent; the rest is as it was."""
    body = gemini(covers=covers)
    assert body["cachedContent"] == "cachedContents/abc"
    assert not {"systemInstruction", "tools", "toolConfig"} & body.keys()
    assert body["generationConfig"] == {"temperature": 0.5}
    whole = gemini_generate_content.encode_request(TurnRequest(items=STORY, tools=ONE_AND_TWO))
    head = gemini_generate_content.messages(STORY[:covers])
    assert head + body["contents"] == whole["contents"]
    assert body.losses == ()


def test_what_a_cached_content_cannot_take_is_told() -> None:
    """A later instruction, and a choice that no body carries, are losses at their places."""
    items = [*STORY, Message("developer", "Now in French.", (PICTURE,)), Message("system", " ")]
    body = gemini(items, covers=2)
    assert [loss.where for loss in body.losses] == ["items[6]"]
    request = TurnRequest(
        items=STORY,
        tools=ONE_AND_TWO,
        tool_choice=ToolChoice("specific", "one"),
        cache=Cache(content="c"),
    )
    body = gemini_generate_content.encode_request(request)
    assert [loss.where for loss in body.losses] == ["tool_choice"]


def test_what_is_covered_ends_where_a_round_does() -> None:
    """A content ends neither behind the request nor between a call and its result."""
    with pytest.raises(InvalidValueError, match=r"covers=7, but the request has 6 items"):
        gemini(covers=7)
    with pytest.raises(InvalidValueError, match=r"covers=3 ends inside of a round: items\[3\]"):
        gemini(covers=3)
    with pytest.raises(InvalidValueError, match="nobody says anything in it"):
        gemini(covers=6)
