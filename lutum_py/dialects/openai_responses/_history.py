"""Input items of OpenAI Responses become a transcript.

Items of the model that follow each other are read as the output of one response, and are the
payload of the turn. An item of a kind that only the provider knows stands with them, so that it
goes back where it stood. (OpenAI API reference: "Create a model response", input.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._text.json import compact_json
from .._findings import NOT_SHOWN
from .._openai import read_parts
from .._wire.history import History
from ._decode import SEARCH_OUTPUT
from ._rules import Item


def read_history(history: History) -> None:
    """Read an input; the `instructions` of a body become the first message.

    What the provider keeps, as under `previous_response_id`, is not in the body, and is not read.
    """
    instructions = history.body.get("instructions")
    if isinstance(instructions, str):
        history.say("system", [instructions], "instructions")
    items = [(position, _item(given)) for position, given in history.listed()]
    # All calls are looked up before the first result: where the provider keeps the beginning, a
    # result may stand in front of everything, and answers a call that is nowhere in this list.
    asked = {item.key for _, item in items if item.call}
    output: list[dict[str, Any]] = []
    started = ""
    for position, item in items:
        if not (item.result or item.is_said_to_model):
            started = started if output else position
            output.append(item.value)
            continue
        _turn(output, started, history)
        output = []
        fields = item.value
        if item.is_said_to_model:
            said = read_parts(fields["content"], f"{position}.content", history)
            history.say(fields["role"], said, position)
            history.rest(fields, ("type", "role", "content", "status", "id"), position)
        elif item.key not in asked:
            # The call stands with the provider, who alone knows what it was.
            history.lose(position, "it answers a call that the request does not show")
            history.say("user", [NOT_SHOWN], position)
        else:
            _answer(fields, position, history)
    _turn(output, started, history)


def _item(given: Any) -> Item:
    if isinstance(given, str):  # in place of the list
        return Item(0, {"role": "user", "content": given})
    item = Item(0, given)
    if item.kind == "item_reference":
        item.value = {**given, "type": item.kind}
    return item


def _turn(output: list[dict[str, Any]], position: str, history: History) -> None:
    if output:
        history.respond({"output": output}, position)


def _answer(fields: Mapping[str, Any], position: str, history: History) -> None:
    if fields["type"] == SEARCH_OUTPUT:
        # What the program found for a search has a form of its own, and no text.
        history.lose(position, "it comes back as the output of a function")
        history.answer_json(compact_json({"tools": fields.get("tools")}), position)
        return
    said = read_parts(fields["output"], f"{position}.output", history)
    is_done = fields.get("status") in (None, "completed")
    if not is_done:
        history.lose(
            f"{position}.status", "the call did not end well, which a result has no word for"
        )
    history.answer(said, position, is_error=None if is_done else True)
    history.rest(fields, ("type", "call_id", "caller", "output", "status", "id"), position)
