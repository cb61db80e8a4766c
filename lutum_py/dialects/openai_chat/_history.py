"""Messages of Chat Completions become a transcript.

A message of the assistant is read as the choice of a response, and is the payload of its turn.
(OpenAI API reference: "Create chat completion", messages.)
"""

from __future__ import annotations

from .._openai import read_parts
from .._wire.history import History
from ._rules import RESULTS


def read_history(history: History) -> None:
    """Read a conversation."""
    for position, message in history.listed():
        role = message["role"]
        if role == "assistant":
            response = {"choices": [{"message": message}]}
            history.respond(response, position)
            continue
        said = read_parts(message["content"], f"{position}.content", history)
        if role in RESULTS:
            history.answer(said, position)
            history.rest(message, ("role", "content", "tool_call_id", "name"), position)
        else:
            history.say(role, said, position)
            history.rest(message, ("role", "content"), position)
