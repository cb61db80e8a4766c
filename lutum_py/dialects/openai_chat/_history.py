"""Messages of Chat Completions become a transcript.

A message of the assistant is read as the choice of a response, and is the payload of its turn.
(OpenAI API reference: "Create chat completion", messages.)
"""

from __future__ import annotations

from typing import Any

from ..._transcript.transcript import Transcript
from .._wire.history import History
from .._wire.losses import Loss
from .._wire.openai_parts import read_chat_parts
from .._wire.reading import response_place
from ._decode import tidy, turn_of
from ._facts import FACTS, NAME
from ._rules import check
from ._spoken import RESULTS


def read_history(request: Any) -> tuple[Transcript, list[Loss]]:
    """Read a conversation that was kept elsewhere, to go on with it here.

    Args:
        request: A request body, or its list of messages, which may be empty; it is not
            changed.

    Returns:
        The transcript, and what it could not hold, each with its place. `messages` of the
        transcript gives the list again, but for what was lost.

    Raises:
        HistoryError: The provider would refuse it; `repair` mends that.
        DialectError: A turn of the model is broken; `where` says at which place.

    Example:
        >>> kept = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        >>> transcript, losses = read_history(kept)
        >>> transcript[1].text, losses
        ('Hello', [])
    """
    history = History(FACTS, check, request)
    for position, message in history.listed():
        role = message["role"]
        if role == "assistant":
            response = {"choices": [{"message": message}]}
            history.turn(turn_of(response_place(NAME, response, tidy, position)))
            continue
        said = read_chat_parts(message["content"], f"{position}.content", history)
        if role in RESULTS:
            history.answer(said, position)
            history.rest(message, ("role", "content", "tool_call_id", "name"), position)
        else:
            history.say(role, said, position)
            history.rest(message, ("role", "content"), position)
    return history.read()
