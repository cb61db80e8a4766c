"""A conversation in which the user does not speak first is refused before it is sent."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, Session, ToolMetadata, TurnRequest
from lutum_py.dialects import anthropic_messages, gemini_generate_content
from lutum_py.errors import InvalidValueError
from lutum_py.models import Anthropic
from lutum_py.turns import TranscriptItem
from tests.cases import over

from .plain import done

CALL = ToolMetadata(id="c1", name="add", arguments="{}")
ROUND: list[TranscriptItem] = [AssistantTurn(tool_calls=[CALL]), done(CALL, "3")]
FRONT = pytest.mark.parametrize(
    ("dialect", "key"),
    [(anthropic_messages, "messages"), (gemini_generate_content, "contents")],
    ids=["anthropic", "gemini"],
)


@FRONT
@over(
    "items, said",
    [
        ([], "nobody says anything in it"),
        ([Message("system", "Be brief.")], "nobody says anything in it"),
        (ROUND, "it begins with what the model said"),
        ([Message("system", "Be brief."), *ROUND], "it begins with what the model said"),
    ],
)
def test_the_user_speaks_first(dialect: ModuleType, key: str, items: Any, said: str) -> None:
    """A request that the API would refuse for its beginning is an error that says what to do."""
    with pytest.raises(InvalidValueError, match=rf"{said}.*session\.push_user"):
        dialect.encode_request(TurnRequest(items=items))
    started = dialect.encode_request(TurnRequest(items=[Message("user", "Add"), *items]))
    assert dialect.check(started) == []
    own = [{"role": "user", "parts": [{"text": "x"}]}]
    body = dialect.encode_request(TurnRequest(items=items, extra={key: own}))
    assert body[key] is own


def test_gemini_takes_what_the_model_says_first() -> None:
    """Only calls have to follow the user there."""
    items: list[TranscriptItem] = [AssistantTurn(text="Hello"), Message("user", "Hi")]
    body = gemini_generate_content.encode_request(TurnRequest(items=items))
    assert gemini_generate_content.check(body) == []


def test_nothing_is_sent() -> None:
    """The error comes before the client is asked, and the session stays as it was."""

    class Messages:
        def create(self, **request: Any) -> Any:
            raise AssertionError(request)

    class Client:
        messages = Messages()

    session = Session()
    session.push_system("Be brief.")
    with pytest.raises(InvalidValueError):
        session.text_turn(Anthropic(Client(), "m")).collect_sync()
    assert len(session.transcript) == 1
