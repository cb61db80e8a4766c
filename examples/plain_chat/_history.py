"""From messages to a transcript."""

from __future__ import annotations

from lutum_py.dialects.authoring import History


def read_history(history: History) -> None:
    """Read a conversation that was kept elsewhere, to go on with it here."""
    for position, message in history.listed():
        role, known = message["role"], ("role", "content")
        if role == "assistant":
            history.respond({"message": message}, position)
        elif role == "tool":
            history.answer([message["content"]], position)
            history.rest(message, (*known, "id"), position)
        else:
            history.say(role, [message["content"]], position)
            history.rest(message, known, position)
