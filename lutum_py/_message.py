"""What is said by anyone but the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ._attachment import Attachment
from ._json import shorten

__all__ = ["Message", "Role"]

Role: TypeAlias = Literal["system", "developer", "user"]

_ROLES: frozenset[str] = frozenset(get_args(Role))


@dataclass(frozen=True, slots=True)
class Message:
    """Say something to the model.

    Attributes:
        role: Who says it: `system`, `developer` or `user`.
        text: What is said.
        attachments: Files that go with it, where the provider takes them.

    Raises:
        ValueError: The role is none of the three.
        TypeError: The text is no text.

    Example:
        >>> Message("user", "Hello").role
        'user'
    """

    role: Role
    text: str
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(
                f"A message is said by {', '.join(get_args(Role))}, not by {shorten(self.role)}. "
                "What the model says comes in as a turn."
            )
        if not isinstance(self.text, str):
            raise TypeError(
                f"A message has a text, not {shorten(self.text)}. Encode data first, for instance "
                "with `json.dumps`."
            )
