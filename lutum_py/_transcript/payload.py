"""Whether the payload of a saved turn says what the turn says: the text may have been edited.

A payload is what goes back to its provider, and results answer the calls of the turn. Where the two
differ, the program and the provider would go on in two conversations. Only the payload's dialect
can tell, which stands in a layer above: it is asked by its name, and only where there is something
to ask.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Protocol

from .._schema.stand_in import own_name
from ..errors import DialectError
from .metadata import ToolMetadata


class Said(Protocol):
    """What of a turn is compared; the turn itself stands above."""

    @property
    def tool_calls(self) -> tuple[ToolMetadata, ...]:
        """The calls."""
        ...

    @property
    def text(self) -> str:
        """All of the text."""
        ...

    @property
    def refusal(self) -> str | None:
        """The refusal, if there is one."""
        ...


def dialect_named(name: str | None) -> Any:
    """Give the module of a dialect in the list; None for one that is not in it."""
    known = None if name is None else _module("lutum_py.dialects").DIALECTS.get(name)
    return None if known is None else _module(known)


_module = cache(import_module)  # of this package and its few dialects: asked for each turn


def read_payload(payload: Any, dialect: str | None) -> Any:
    """Give the turn that a saved payload makes; None where no dialect replays it.

    Raises:
        ValueError: It is no response of its dialect.
    """
    module = dialect_named(dialect)
    # A turn made by hand, or by a dialect of your own, goes out in the neutral form, and has no
    # second half that could differ.
    if module is None or not isinstance(payload, dict):
        return None  # It goes out in the neutral view.
    try:
        return module.DIALECT.decode_saved(payload)
    except DialectError as error:
        raise ValueError(f"it is no response of the turn's dialect ({error})") from None


def check_payload(turn: Said, said: Said) -> None:
    """Compare a saved turn with the turn that its payload makes.

    What differs is named and not quoted: it may be secret.

    Raises:
        ValueError: They make other calls, or say another text.
    """
    asked, found = ([(call.id, call.name) for call in each.tool_calls] for each in (turn, said))
    if len(asked) != len(found) or not all(map(_is_same, asked, found)):
        raise ValueError(f"the turn makes the calls {asked}, and its payload makes {found}")
    for call, other in zip(turn.tool_calls, said.tool_calls, strict=True):
        if call.arguments != other.arguments:
            raise ValueError(f"call {call.id!r} of the turn has other arguments than its payload")
    if (turn.text, turn.refusal) != (said.text, said.refusal):
        raise ValueError("the turn says another text than its payload")


def _is_same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Tell whether two calls are one: a tool may have gone out under the stand-in of its name."""
    (id, name), (other_id, other_name) = one, other
    is_same = own_name(name, [other_name]) == other_name or own_name(other_name, [name]) == name
    return id == other_id and is_same
