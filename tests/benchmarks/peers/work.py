"""The work that every library is given: one tool, three sizes of arguments, one conversation.

Annotations are not postponed here: a library that reads them on every call would otherwise compile
their text each time.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final, Protocol

__all__ = [
    "ANSWER",
    "CALLS",
    "FEW",
    "HELLO",
    "LARGE",
    "MANY",
    "MIDDLE",
    "PIECE",
    "SMALL",
    "TOOLS",
    "TURNS",
    "Peer",
    "fresh_tool",
    "named_tools",
    "search",
]

SMALL: Final = json.dumps({"query": "hello world", "max_results": 3})
MIDDLE: Final = json.dumps({"query": "x y " * 500, "max_results": 3})
LARGE: Final = json.dumps({"query": "x y " * 50_000, "max_results": 3})

ANSWER: Final = "3"
"""What the model is told, whichever of the three was sent."""

CALLS: Final = (64, 1000)
"""So many calls a model makes at once, in one conversation and in another."""
HELLO: Final = "Hello"
"""What a request says that has no history."""
FEW, MANY = 10, 510
"""In so many pieces comes the text of a streamed answer: what a piece costs shows between them."""
PIECE: Final = "more "
TURNS: Final = 1000
"""The length of a history, each turn of it one call of the tool with the small arguments."""
TOOLS: Final = 500
"""So many tools are declared for one request."""

Tool = Callable[..., Awaitable[int]]


async def search(
    query: str, max_results: int = 5, site: str | None = None, exact: bool = False
) -> int:
    """Search the web.

    Args:
        query: What to search for.
        max_results: An upper bound on hits.
        site: Where to search.
        exact: Whether to take the query literally.
    """
    return max_results


def fresh_tool(hits: int = 5) -> Tool:
    """Make the tool anew: nothing that a library remembers of a function can help it."""

    async def web_search(
        query: str, max_results: int = hits, site: str | None = None, exact: bool = False
    ) -> int:
        """Search the web.

        Args:
            query: What to search for.
            max_results: An upper bound on hits.
            site: Where to search.
            exact: Whether to take the query literally.
        """
        return max_results

    return web_search


_numbers = count()


def named_tools() -> list[tuple[str, Tool]]:
    """Make many tools, no two of which are alike, and a name for each that was never there."""
    return [(f"tool_{next(_numbers)}", fresh_tool(number)) for number in range(TOOLS)]


class Peer(Protocol):
    """What a module of this package has."""

    DISTRIBUTION: str
    """The name under which the library is installed."""

    BESIDE: tuple[str, ...]
    """What is installed beside it for the models of the providers."""

    IMPORT: str
    """What a program imports to declare its first tool."""

    MODELS: Mapping[str, Callable[[str], Any]]
    """Makes the library's model for the API of a provider, at the address of a server.

    The keys are the names of the wires. What the library has no model for is left out, and not
    measured.
    """

    SAVED: tuple[Callable[[Any], str], Callable[[str], Any]] | None
    """Saves a conversation as JSON, and loads it; None where it is plain data, or has no such form.
    """

    def declare(self, times: int) -> object:
        """Declare the tool from its function."""

    def define(self, times: int) -> object:
        """Declare the tool, and make the schema that a model is sent."""

    def call(self, text: str, times: int) -> str:
        """Validate the JSON arguments, await the function, and give the text for the model."""

    def loop(self, text: str, turns: int) -> int:
        """Go through a conversation of so many tool calls.

        Returns:
            How many messages the model was given at last: one and two for each call.
        """

    def at_once(self, text: str, calls: int, times: int) -> list[str]:
        """Go through a conversation whose first turn has so many calls, which run at once.

        Returns:
            The texts that the model was given for them at last.
        """

    async def stream(self, model: Any) -> tuple[int, str]:
        """Ask with `HELLO`, and read the answer as the library streams it.

        Returns:
            How many pieces of text came, and the text of the message in the end.
        """

    def history(self) -> Any:
        """Make a conversation of `TURNS` turns: the user says "go", the model calls and answers.

        In the end it says "done", and the user "go on".
        """

    async def send(self, model: Any, history: Any) -> str:
        """Send a conversation to a model; gives the text of the answer."""

    async def offer(self, model: Any) -> str:
        """Declare `TOOLS` tools, and send `HELLO` with them; gives the text of the answer."""
