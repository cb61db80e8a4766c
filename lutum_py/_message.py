"""What is said by anyone but the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ._attachment import Attachment

__all__ = ["Message", "Role"]

Role: TypeAlias = Literal["system", "developer", "user"]


@dataclass(frozen=True, slots=True)
class Message:
    """Say something to the model.

    Attributes:
        role: Who says it: `system`, `developer` or `user`.
        text: What is said.
        attachments: Files that go with it, where the provider takes them.

    Example:
        >>> Message("user", "Hello").role
        'user'
    """

    role: Role
    text: str
    attachments: tuple[Attachment, ...] = ()
