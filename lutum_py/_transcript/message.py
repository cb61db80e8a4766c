"""What is said by anyone but the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from .._text.json import shorten
from .._text.unicode import sendable
from ..errors import InvalidValueError, MisuseError
from .attachment import Attachment, attachments_of, dump_attachments, load_attachments

if TYPE_CHECKING:
    from .saved import Saved

Role: TypeAlias = Literal["system", "developer", "user"]

_ROLES: tuple[object, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Message:
    """Say something to the model.

    Attributes:
        role: Who says it: `system`, `developer` or `user`.
        text: What is said; half of a surrogate pair, which no client could send, becomes U+FFFD.
        attachments: Files that go with it, where the provider takes them.

    Raises:
        InvalidValueError: The role is none of the three.
        MisuseError: `text` is not text, or an attachment is not an `Attachment`.

    Example:
        >>> Message("user", "Hello").role
        'user'
    """

    role: Role
    text: str
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise InvalidValueError(
                f"A message is said by {', '.join(get_args(Role))}, not by {shorten(self.role)}. "
                "What the model says comes in as a turn."
            )
        if not isinstance(self.text, str):
            raise MisuseError(
                f"A message has a text, not {shorten(self.text)}. Encode data first, for instance "
                "with `json.dumps`."
            )
        # Here and not where it is sent: what is kept, saved and compared is then what every
        # provider gets.
        object.__setattr__(self, "text", sendable(self.text))
        if not isinstance(self.attachments, tuple):
            raise MisuseError.of_field(
                "Message", "attachments", "a tuple of `Attachment`s", self.attachments
            )
        attachments_of("Message", self.attachments)


def dump_message(message: Message) -> dict[str, Any]:
    """Return a message as plain data."""
    return {
        "type": "message",
        "role": message.role,
        "text": message.text,
        **dump_attachments(message.attachments),
    }


def load_message(saved: Saved) -> Message:
    """Read what `dump_message` gave."""
    return Message(saved.member("role", Role), saved.get("text", str), load_attachments(saved))
