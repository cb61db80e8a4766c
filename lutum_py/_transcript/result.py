"""The result of one tool call: what the program keeps, and what the model reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, get_args

from .._text.immutable import Frozen, with_fields
from .._text.json import JsonObject, compact_json, is_array, parse_json, sendable, shorten
from ..errors import InvalidValueError, MisuseError, TranscriptError
from .assistant import ToolMetadata, load_metadata

if TYPE_CHECKING:
    from .message import Attachment, Labels
    from .saved import Saved

ResultStatus: TypeAlias = Literal["success", "error", "rejected", "cancelled", "indeterminate"]
"""How a call ended; `indeterminate` means that it was started and nobody knows the outcome."""

REJECTION_PREFIX = "Rejected: "
"""Stands before the reason in the result of a rejected call, as in Lutum."""

_STATUSES: tuple[str, ...] = get_args(ResultStatus)

# Not `error`: a tool that failed was run. Whoever asks wants to know whether there can be effects.
NOT_RUN = ("rejected", "cancelled")
"""How a call ends that was not run."""


class Answerable(Protocol):
    """What a result may be the answer to: anything that has what the model sent."""

    @property
    def metadata(self) -> ToolMetadata:
        """The call as the model sent it."""
        ...


class _ResultFields:
    id: str
    name: str
    arguments: str
    result: str
    status: ResultStatus
    message: str | None
    attachments: tuple[Attachment, ...]
    code: str | None
    labels: Labels | None
    handle: str | None
    ran_with: dict[str, Any] | None
    __slots__ = tuple(__annotations__)


class ToolResult(Frozen, _ResultFields):
    """Answer one call; make it with `call.complete(output)` or one of its siblings.

    Args:
        id: The id of the call that it answers.
        name: The wire name of the tool.
        arguments: The raw argument text that the model sent.
        result: The output as JSON text, for the program.
        status: `success`, `error`, `rejected`, `cancelled` or `indeterminate`.
        message: What the model reads instead of `result`, if it is not None.
        attachments: Files that go with the result, if the provider takes them.
        code: A stable code for programs, such as that of an error.
        labels: What is known of who wrote it and who may read it, if the tool said so; never
            sent. See `lutum_py.flow`.
        handle: Where a store keeps the whole text, if a `ResultCap` cut the message out of it.
        ran_with: The final arguments, with secrets masked, if the program replaced what the
            model had sent before the call was run; a plan says so when it ends. For the record: it
            is never sent.

    In all texts, half of a surrogate pair becomes U+FFFD.

    Raises:
        InvalidValueError: `result` is not JSON text, or `status` is none of the five.
        MisuseError: Another field has another type.

    Example:
        >>> r = ToolResult(id="c1", name="add", arguments="{}", result='"three"')
        >>> r.model_text, r.is_success
        ('three', True)
    """

    __slots__ = ()
    _unshown: ClassVar[frozenset[str]] = frozenset({"arguments", "ran_with"})

    def __init__(
        self,
        *,
        id: str,
        name: str,
        arguments: str,
        result: str,
        status: ResultStatus = "success",
        message: str | None = None,
        attachments: tuple[Attachment, ...] | list[Attachment] = (),
        code: str | None = None,
        ran_with: dict[str, Any] | None = None,
        labels: Labels | None = None,
        handle: str | None = None,
    ) -> None:
        if status not in _STATUSES:
            raise InvalidValueError(
                f"ToolResult {id!r}: status {status!r} is none of {', '.join(sorted(_STATUSES))}"
            )
        for field, text in (("message", message), ("code", code), ("handle", handle)):
            MisuseError.check("ToolResult", field, "a text or None", text, str | None)
        if labels is not None:
            from .message import check_labels

            check_labels("ToolResult", labels)
        MisuseError.check("ToolResult", "ran_with", "a dict or None", ran_with, dict | None)
        try:
            parse_json(result)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(
                f"ToolResult {id!r} of tool {name!r}: `result` must be JSON text, got "
                f"{shorten(result)} ({error}). Use `call.complete(output)`, or `json.dumps`"
            ) from None
        attached: tuple[Attachment, ...] = ()
        if attachments != ():
            from .message import attachments_of  # a tool that is only declared needs none

            attached = attachments_of("ToolResult", attachments)
        call = ToolMetadata(id=id, name=name, arguments=arguments)
        made = make_result(call, sendable(result), status, message, attached, code, labels, handle)
        self._fill([*(getattr(made, name) for name in self._fields[:-1]), ran_with])

    def __hash__(self) -> int:
        return hash((type(self), self._values()[:-1]))  # without `ran_with`, which has no hash

    def answers(self, call: ToolMetadata | Answerable) -> bool:
        """Whether this is a result of that very call: id, name and argument text are the same.

        Args:
            call: The call, or its metadata.

        Example:
            >>> r = ToolResult(id="c1", name="add", arguments="{}", result="3")
            >>> r.answers(ToolMetadata(id="c1", name="add", arguments='{"a": 1}'))
            False
        """
        sent = call if isinstance(call, ToolMetadata) else call.metadata
        return (self.id, self.name, self.arguments) == (sent.id, sent.name, sent.arguments)

    @property
    def is_success(self) -> bool:
        """Whether the tool did what it was asked."""
        return self.status == "success"

    @property
    def is_error(self) -> bool:
        """Whether the call ended in any other way than success."""
        return self.status != "success"

    @property
    def is_indeterminate(self) -> bool:
        """Whether nobody knows what the call did, or still does."""
        return self.status == "indeterminate"

    @property
    def is_pending(self) -> bool:
        """Whether the call waits for a decision: never, for a `SuspendedCall` is what does."""
        return False

    @property
    def never_ran(self) -> bool:
        """Whether the call was given up before it, or others for it, ran: it read nothing."""
        return self.status in NOT_RUN and not (self.labels and self.labels.inner)

    @property
    def model_text(self) -> str:
        """What the model reads: the message, else a string result as plain text, else the JSON."""
        if self.message is not None:
            return self.message
        result = self.result
        if result.startswith('"'):
            text = parse_json(result)
            return text if isinstance(text, str) else result
        return result

    @property
    def rejection_reason(self) -> str | None:
        """Why the call was rejected; None for any other status, whatever the output says."""
        if self.status != "rejected":
            return None
        text = parse_json(self.result)
        return text.removeprefix(REJECTION_PREFIX) if isinstance(text, str) else self.message

    @property
    def output(self) -> Any:
        """The output as plain JSON data, parsed from `result`."""
        return parse_json(self.result)

    @classmethod
    def failed(cls, call: ToolMetadata, message: str, *, code: str | None = None) -> ToolResult:
        """Answer a call with an error that the model reads, whoever decoded the call.

        Args:
            call: The call.
            message: What went wrong.
            code: A stable code for programs; it is put before the message in brackets.
        """
        return failure(call, "error", message, code)

    def with_message(
        self, message: str, attachments: tuple[Attachment, ...] | None = None
    ) -> ToolResult:
        """Return the result with another text for the model; the program keeps what it was.

        Args:
            message: What the model reads.
            attachments: The files that go with it; those of the result by default.
        """
        files = self.attachments if attachments is None else attachments
        return with_fields(self, message=sendable(message), attachments=files, handle=None)

    @property
    def found_tools(self) -> list[str]:
        """The names in the output of a search for tools, whoever made or edited it."""
        output = self.output if self.is_success else None
        return [name for name in output if isinstance(name, str)] if is_array(output) else []

    def dump_json(self) -> str:
        """Encode the whole result, to be stored until its round is committed."""
        from .saved import RESULT, dump_saved  # only where something is saved

        data = {"format": RESULT.name, "version": RESULT.version, **dump_result(self)}
        return dump_saved(data, TranscriptError, "The result")

    @classmethod
    def load_json(cls, text: str | bytes) -> ToolResult:
        """Read what `dump_json` gave.

        Raises:
            TranscriptError: The text is not a result, of an unknown version, or damaged.
        """
        from .saved import RESULT, open_saved

        return load_result(open_saved(text, RESULT))

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data, in the shape of Awaken's tool result.

        Returns:
            A dict with `tool_name`, `status` (`success` or `error`), `data` and `message`; and,
            if the status or code says more, `metadata` with them.
        """
        shape: JsonObject = {
            "tool_name": self.name,
            "status": "success" if self.is_success else "error",
            "data": self.output,
            "message": self.message,
        }
        more: JsonObject = {}
        if self.status not in ("success", "error"):
            more[self.status] = True
        if self.code is not None:
            more["code"] = self.code
        if self.code == "timed_out":
            more["timed_out"] = True
        if more:
            shape["metadata"] = more
        return shape


# `ToolResult(...)` of the public parses the JSON text that it is given. What comes here was encoded
# a moment ago, and parsing it again would double the cost of a call.
def make_result(
    metadata: ToolMetadata,
    result: str,
    status: ResultStatus,
    message: str | None = None,
    attachments: tuple[Attachment, ...] = (),
    code: str | None = None,
    labels: Labels | None = None,
    handle: str | None = None,
) -> ToolResult:
    """Make the result of a call from text that is known to be JSON and to be sendable."""
    made = _ResultFields()
    made.id = metadata.id
    made.name = metadata.name
    made.arguments = metadata.arguments
    made.result = result
    made.status = status
    made.message = None if message is None else sendable(message)
    made.attachments = attachments
    made.code = None if code is None else sendable(code)
    made.labels = labels
    made.handle = handle
    made.ran_with = None
    made.__class__ = ToolResult  # immutable from here on, see `frozen`
    return made  # type: ignore[return-value]


def with_labels(result: ToolResult, labels: Labels | None) -> ToolResult:
    """Return a result with these labels, unless it has some of its own."""
    if labels is None or result.labels is not None:
        return result
    return with_fields(result, labels=labels)


def with_inner_labels(result: ToolResult, made_of: Iterable[ToolResult]) -> ToolResult:
    """Return a result with the labels of those that it was made of joined to its own."""
    from .message import joined_labels

    inner = ((each.name, each.labels) for each in made_of if not each.never_ran)
    labels = joined_labels(result.labels, inner)
    return result if labels is result.labels else with_fields(result, labels=labels)


def renamed(result: ToolResult, id: str) -> ToolResult:
    """Return the result of a call as that of the same call under another id."""
    return with_fields(result, id=id)


def failure(
    metadata: ToolMetadata, status: ResultStatus, text: str, code: str | None
) -> ToolResult:
    """Make the result of a call without an output; a code stands before the text in brackets."""
    if code is None:
        return make_result(metadata, "null", status, text)
    data = compact_json({"error": {"code": code, "message": text}})
    return make_result(metadata, data, status, f"[{code}] {text}", code=code)


def rejection(metadata: ToolMetadata, reason: str, *, code: str | None = None) -> ToolResult:
    """Make the standard result of a call that was never executed."""
    text = compact_json(REJECTION_PREFIX + sendable(reason))
    return make_result(metadata, text, "rejected", code=code)


def dump_result(result: ToolResult) -> JsonObject:
    """Return a result as plain data."""
    from .message import (
        dump_attachments,  # a tool that is only declared needs none
        dump_labels,
    )

    return {
        "type": "tool_result",
        "id": result.id,
        "name": result.name,
        "arguments": result.arguments,
        "result": result.result,
        "status": result.status,
        "message": result.message,
        "code": result.code,
        **dump_attachments(result.attachments),
        **dump_labels(result.labels),
        **({} if result.handle is None else {"handle": result.handle}),
        **({} if result.ran_with is None else {"ran_with": result.ran_with}),
    }


def load_result(saved: Saved, call: ToolMetadata | None = None) -> ToolResult:
    """Read what `dump_result` gave; of the call that it answers, if that is known."""
    data = saved.data
    attachments: tuple[Attachment, ...] = ()
    labels: Labels | None = None
    if "attachments" in data:
        from .message import load_attachments

        attachments = load_attachments(saved)
    if "labels" in data:
        from .message import load_labels

        labels = load_labels(saved)
    # Where the texts are those of the call, which were looked at before, they are its own: so a
    # transcript does not hold long arguments twice.
    if call is None or not (
        data.get("id") == call.id
        and data.get("name") == call.name
        and data.get("arguments") == call.arguments
    ):
        call = load_metadata(saved)
    loaded = make_result(
        call,
        sendable(saved.json_text("result")),
        saved.member("status", _STATUSES),
        saved.get("message", str, None),
        attachments,
        saved.get("code", str, None),
        labels,
        saved.get("handle", str, None),
    )
    if data.get("ran_with") is None:
        return loaded
    return with_fields(loaded, ran_with=saved.inner("ran_with").data)
