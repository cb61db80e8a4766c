"""A loop around the dialect in `plain_chat/`: `python examples/plain_chat_loop.py`."""

from typing import Any

import plain_chat

from lutum_py import Finished, NeedsTools, Toolset, tool, tool_fn
from lutum_py.dialects import DIALECTS
from lutum_py.testing import ScriptedClient, ScriptedModel

DIALECTS["plain_chat"] = "plain_chat"


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Sums(Toolset):
    """What the model may do."""

    add = tool(add)


messages: list[Any] = [{"role": "user", "content": "What is 1 + 2?"}]
script = [ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2})), ScriptedModel.text("It is 3.")]
client = ScriptedClient(script, plain_chat)
while True:
    turn = plain_chat.decode(client.create(messages=messages, tools=plain_chat.tools(Sums)))
    match Sums.read_turn(turn):
        case NeedsTools(round):
            results = [call.call_sync() for call in round.tool_calls]
            messages += plain_chat.messages(round.resolve(results))
        case Finished(result):
            messages += plain_chat.messages([turn])
            break
for message in messages:
    print(message)
assert plain_chat.check(messages) == []
