"""What the model sent of one call: its id, the tool's wire name, the raw argument text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._text.immutable import dataclass
from .._text.json import shorten, size_of
from .._text.unicode import sendable
from ..errors import MisuseError

if TYPE_CHECKING:
    from .saved import Saved


# With an `__init__` of its own, because every call of every turn comes this way: that of a frozen
# dataclass sets by `object.__setattr__`, which takes twice as long as the slot itself. What is
# right is seen there at a glance; whatever is not goes on to `__post_init__`.
@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ToolMetadata:
    """Keep one tool call exactly as the model sent it.

    Only what no client could send back is not kept: half of a surrogate pair becomes U+FFFD.

    Its representation says only how long the arguments are: what the tool takes is not known here,
    so any of it may be a secret, and representations end up in logs. `repr(call)` shows the decoded
    arguments, with secrets masked.

    Attributes:
        id: The provider's id of the call, or a stable one of the dialect where it sent none.
        name: The name of the tool on the wire.
        arguments: The raw argument text, byte for byte; usually a JSON object.

    Raises:
        MisuseError: A field is not text.

    Example:
        >>> ToolMetadata(id="c1", name="add", arguments='{"a": 1}').name
        'add'
    """

    id: str
    name: str
    arguments: str

    def __init__(self, *, id: str, name: str, arguments: str) -> None:
        _set_id(self, id)
        _set_name(self, name)
        _set_arguments(self, arguments)
        if not (
            id.__class__ is name.__class__ is arguments.__class__ is str
            and id.isascii()
            and name.isascii()
            and arguments.isascii()
        ):
            self.__post_init__()

    def __post_init__(self) -> None:
        """Refuse what is not text, and take out what could not be sent back."""
        for field in ("id", "name", "arguments"):
            value = getattr(self, field)
            if not isinstance(value, str):
                said = f"ToolMetadata: `{field}` is {shorten(value)}, which is not text."
                if field == "arguments":
                    said += " Where a provider sends arguments as an object, its dialect makes "
                    said += "text of it."
                raise MisuseError(said)
            object.__setattr__(self, field, sendable(value))

    def __repr__(self) -> str:
        return (
            f"ToolMetadata(id={self.id!r}, name={self.name!r}, arguments={size_of(self.arguments)})"
        )


_set_id: Any = vars(ToolMetadata)["id"].__set__
_set_name: Any = vars(ToolMetadata)["name"].__set__
_set_arguments: Any = vars(ToolMetadata)["arguments"].__set__


def dump_metadata(metadata: ToolMetadata) -> dict[str, str]:
    """Return a call's metadata as plain data."""
    return {"id": metadata.id, "name": metadata.name, "arguments": metadata.arguments}


def load_metadata(saved: Saved) -> ToolMetadata:
    """Read what `dump_metadata` gave."""
    return ToolMetadata(
        id=saved.get("id", str),
        name=saved.get("name", str),
        arguments=saved.get("arguments", str),
    )
