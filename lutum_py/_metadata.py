"""What the model sent of one call: its id, the tool's wire name, the raw argument text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ToolMetadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """Keep one tool call exactly as the model sent it.

    Attributes:
        id: The provider's id of the call, or a stable one of the dialect where it sent none.
        name: The name of the tool on the wire.
        arguments: The raw argument text, byte for byte; usually a JSON object.

    Example:
        >>> ToolMetadata(id="c1", name="add", arguments='{"a": 1}').name
        'add'
    """

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        """Refuse what is no text, with a TypeError: it could be neither stored nor sent back."""
        if self.id.__class__ is self.name.__class__ is self.arguments.__class__ is str:
            return
        for field in ("id", "name", "arguments"):
            if not isinstance(getattr(self, field), str):
                raise TypeError(
                    f"ToolMetadata: `{field}` is {getattr(self, field)!r:.60}, which is no text. "
                    "Where a provider sends arguments as an object, its dialect makes text of it."
                )
