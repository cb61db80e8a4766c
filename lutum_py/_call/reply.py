"""`Reply`: what a tool gives if its output alone does not say all."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from .._text.immutable import Immutable, dataclass
from .._text.json import sendable, shorten
from ..errors import InvalidValueError, MisuseError, ToolDefinitionError

if TYPE_CHECKING:
    from .._transcript.message import Attachment, Labels

Out_co = TypeVar("Out_co", covariant=True)

ReplyStatus: TypeAlias = Literal["success", "error", "cancelled", "indeterminate"]
"""How a call ends by a reply; what a tool did is never `rejected`."""

_STATUSES = get_args(ReplyStatus)


@dataclass(frozen=True, slots=True, init=False)
class Reply(Immutable, Generic[Out_co]):
    """Return it from a tool or handler in place of the output; it is immutable.

    `-> Reply[Picture]` declares the output `Picture`.

    Args:
        output: What the tool gives; checked against the declared type if the status is `success`.
        message: What the model reads instead of the output.
        attachments: Files that go with it.
        status: How the call ends.
        code: A stable code for programs; it is put before the message in brackets.
        labels: What is known of who wrote it and who may read it; see `lutum_py.flow`.

    Raises:
        InvalidValueError: A tool cannot give this status.
        MisuseError: The message or the code is not text, or the labels are not a `Labels`.

    Example:
        >>> from lutum_py import Reply, Toolset, ToolMetadata, tool, tool_fn
        >>> @tool_fn
        ... def look(place: str) -> Reply[dict[str, int]]:
        ...     return Reply({"cats": 2}, message=f"Two cats in the {place}.")
        >>> class Eyes(Toolset):
        ...     look = tool(look)
        >>> metadata = ToolMetadata(id="c1", name="look", arguments='{"place": "hall"}')
        >>> result = Eyes.parse_tool_call(metadata).call_sync()
        >>> result.model_text, result.output
        ('Two cats in the hall.', {'cats': 2})
    """

    output: Out_co
    message: str | None
    attachments: tuple[Attachment, ...]
    status: ReplyStatus
    code: str | None
    labels: Labels | None

    def __init__(
        self,
        output: Out_co,
        message: str | None = None,
        attachments: Iterable[Attachment] = (),
        status: ReplyStatus = "success",
        code: str | None = None,
        labels: Labels | None = None,
    ) -> None:
        if status not in _STATUSES:
            raise InvalidValueError(
                f"A Reply has the status {shorten(status)}, which is none of "
                f"{', '.join(_STATUSES)}. A hook or gate rejects calls, a tool does not."
            )
        for name, text in (("message", message), ("code", code)):
            MisuseError.check("Reply", name, "a text", text, str | None)
        if labels is not None:
            from .._transcript.message import check_labels

            check_labels("Reply", labels)
        attached: tuple[Attachment, ...] = ()
        if attachments != ():
            from .._transcript.message import attachments_of  # most replies have none

            attached = attachments_of("Reply", attachments)
        self._put(
            output=output,
            message=None if message is None else sendable(message),
            attachments=attached,
            status=status,
            code=None if code is None else sendable(code),
            labels=labels,
        )

    @property
    def model_message(self) -> str | None:
        """The message with the code before it."""
        if self.message is None or self.code is None:
            return self.message
        return f"[{self.code}] {self.message}"

    if TYPE_CHECKING:
        # By this an overload of `tool()` tells all other outputs from a reply.
        __sizeof__: ClassVar[None]  # type: ignore[assignment]

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = "".join(
            f", {name}={getattr(self, name)!r}"
            for name in ("message", "attachments", "code", "labels")
            if getattr(self, name)
        )
        ended = "" if self.status == "success" else f", status={self.status!r}"
        return f"Reply({self.output!r}{said}{ended})"


REPLY: Any = Reply
"""The same for `isinstance`: as a class it would narrow to a reply of an unknown type."""


def reply_in(output: Any) -> Reply[Any] | None:
    """Return an output if it is a reply, else None."""
    return output if isinstance(output, REPLY) else None


def without_replies(place: str, returned: Any) -> Any:
    """Return the output that a return type declares: what else a reply says is not part of it.

    `Reply[Picture]` declares `Picture`, and `Reply[Picture] | None` declares `Picture | None`.

    Args:
        place: What declares it, for messages.
        returned: The type.

    Raises:
        ToolDefinitionError: A `Reply` is within it, as in `list[Reply[Picture]]`.
    """
    if _is_reply(returned):
        output = get_args(returned)[0] if get_args(returned) else Any
    else:
        members = get_args(returned) if get_origin(returned) in (Union, UnionType) else ()
        outputs = tuple(without_replies(place, each) for each in members)
        output = returned if outputs == members else Union[outputs]  # noqa: UP007 - of a tuple
    if _has_reply(output):
        raise ToolDefinitionError(
            f"{place}: a `Reply` is within its output type. It goes around all that is returned, "
            "as in `Reply[list[Hit]]` in place of `list[Reply[Hit]]`."
        )
    return output


def _is_reply(kind: Any) -> bool:
    return kind is Reply or get_origin(kind) is Reply


def _has_reply(kind: Any) -> bool:
    return _is_reply(kind) or any(map(_has_reply, get_args(kind)))
