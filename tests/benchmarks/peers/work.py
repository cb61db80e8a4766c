"""The work that every library is given: one tool, three sizes of arguments, one conversation.

Annotations are not postponed here: a library that reads them on every call would otherwise compile
their text each time.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

__all__ = ["ANSWER", "LARGE", "MIDDLE", "SMALL", "Peer", "fresh_tool", "search"]

SMALL: Final = json.dumps({"query": "hello world", "max_results": 3})
MIDDLE: Final = json.dumps({"query": "x y " * 500, "max_results": 3})
LARGE: Final = json.dumps({"query": "x y " * 50_000, "max_results": 3})

ANSWER: Final = "3"
"""What the model is told, whichever of the three was sent."""

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


def fresh_tool() -> Tool:
    """Make the tool anew: nothing that a library remembers of a function can help it."""

    async def web_search(
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

    return web_search


class Peer(Protocol):
    """What a module of this package has."""

    DISTRIBUTION: str
    """The name under which the library is installed."""

    IMPORT: str
    """What a program imports to declare its first tool."""

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
