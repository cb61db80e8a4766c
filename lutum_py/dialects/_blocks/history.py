"""Messages of such a wire become a transcript.

What the assistant says is read as the content of a response, and is the payload of its turn. A
message of the user begins with results, and what follows them is what the user says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ..._text.json import is_sequence
from .._wire.history import History, Part
from .form import BlockForm

Parts: TypeAlias = Callable[[Any, str, History], Iterator[Part]]
"""Reads text, or blocks, that stand somewhere; results among them are read elsewhere."""


def read_messages(
    history: History,
    form: BlockForm,
    parts: Parts,
    answer: Callable[[Mapping[str, Any], str, History], None],
    response: Callable[[Any], dict[str, Any]],
) -> None:
    """Read the messages of a request, and the instructions in front of them.

    Args:
        history: Takes what is read.
        form: How the wire writes its blocks.
        parts: Reads what a message says.
        answer: Reads a block that is a result.
        response: Puts what the assistant said into a response.
    """
    history.say("system", parts(history.body.get("system"), "system", history), "system")
    spoken: list[tuple[str, Any]] = []

    def turns() -> None:
        """Read what the assistant says before anyone else does: one message, as a rule."""
        # Messages of the assistant in a row are separate turns, unless one before the last has
        # calls: [call a], [call b], then the results of both. Read apart, the first turn would have
        # no result after it, which a transcript refuses.
        read = [history.decode(response(content), position) for position, content in spoken]
        if any(turn.tool_calls for turn in read[:-1]):
            # The results of all come after the last, so that they are one turn.
            blocks: list[Any] = []
            for _, content in spoken:
                blocks += [form.text(content)] if isinstance(content, str) else content
            read = [history.decode(response(blocks), spoken[0][0])]
        for turn in read:
            history.turn(turn)
        spoken.clear()

    for position, message in history.listed():
        content, where = message["content"], f"{position}.content"
        history.rest(message, ("role", "content"), position)
        if message["role"] == "assistant":
            spoken.append((position, content))
            continue
        turns()
        # Results are taken out first and the rest after: [result, "and now?"] answers the call, and
        # then the user speaks. That they stand at the head was checked before.
        blocks = content if is_sequence(content) else ()
        results = [at for at, block in enumerate(blocks) if form.result_in(block) is not None]
        for at in results:
            answer(blocks[at], f"{where}[{at}]", history)
        # Where all blocks were results, the user said nothing, which is not a message either.
        if len(results) < len(content):
            history.say(message["role"], parts(content, where, history), position)
    turns()
