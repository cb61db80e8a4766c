"""One turn of the model, in a neutral form, with what the provider sent beside it.

Of each call that is the id, the wire name of the tool and the raw argument text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar, get_args

from .._text.immutable import Frozen, dataclass, setters_of, with_fields
from .._text.json import is_object, is_whole, sendable, shorten, size_of
from .._text.names import is_among, own_name
from ..errors import DialectError, MisuseError

if TYPE_CHECKING:
    from .saved import Saved

T = TypeVar("T")


# With an `__init__` of its own, because every call of every turn comes this way. What is right is
# seen there at a glance; whatever is not goes on to `__post_init__`.
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
        for name in ("id", "name", "arguments"):
            value = getattr(self, name)
            if not isinstance(value, str):
                said = f"ToolMetadata: `{name}` is {shorten(value)}, which is not text."
                if name == "arguments":
                    said += " Where a provider sends arguments as an object, its dialect makes "
                    said += "text of it."
                raise MisuseError(said)
            object.__setattr__(self, name, sendable(value))

    def __repr__(self) -> str:
        return (
            f"ToolMetadata(id={self.id!r}, name={self.name!r}, arguments={size_of(self.arguments)})"
        )


_set_id, _set_name, _set_arguments = setters_of(ToolMetadata)


def dump_metadata(metadata: ToolMetadata) -> dict[str, str]:
    """Return a call's metadata as plain data."""
    return {"id": metadata.id, "name": metadata.name, "arguments": metadata.arguments}


def load_metadata(saved: Saved) -> ToolMetadata:
    """Read what `dump_metadata` gave."""
    return ToolMetadata(**saved.some(str, "id", "name", "arguments"))


class _Worded:
    __slots__ = ()

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise MisuseError.of_field(type(self).__name__, "text", "a text", self.text)
        if not self.text.isascii():
            object.__setattr__(self, "text", sendable(self.text))


@dataclass(frozen=True, slots=True)
class TextItem(_Worded):
    """Text that the model wrote for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningItem(_Worded):
    """Reasoning that the provider shows; empty if it shows only an encrypted form."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalItem(_Worded):
    """Why there is no answer, in the words of the model or of the provider's filter, if any."""

    text: str


@dataclass(frozen=True, slots=True, init=False)
class ToolCallItem:
    """A tool call that the program has to answer.

    Attributes:
        metadata: The call.
        caller: The id of the item that made it, which a provider runs: a program of the model's;
            None if the model made the call itself.
    """

    metadata: ToolMetadata
    caller: str | None = None

    def __init__(self, metadata: ToolMetadata, caller: str | None = None) -> None:
        _set_metadata(self, metadata)  # as `ToolMetadata` does
        _set_caller(self, caller)


_set_metadata, _set_caller = setters_of(ToolCallItem)


@dataclass(frozen=True, slots=True)
class ServerToolItem:
    """Something that the provider ran itself, such as a web search, or its result.

    Attributes:
        kind: The provider's word for it, as in `web_search_call`.
        payload: What the provider sent, whole.
    """

    kind: str
    payload: Mapping[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        MisuseError.check("ServerToolItem", "kind", "a text", self.kind, str)
        MisuseError.check("ServerToolItem", "payload", "a mapping", self.payload, Mapping)

    def made_calls(self, caller: str) -> tuple[str, Any] | None:
        """Say what made calls, if this is it: its name, and what it was given.

        Args:
            caller: The id that the calls give, see `ToolCallItem`.

        Example:
            >>> code = {"type": "program", "call_id": "p1", "code": "await find()"}
            >>> ServerToolItem("program", code).made_calls("p1")
            ('program', {'code': 'await find()'})
        """
        # `{"type": "program", "call_id": "p1", "code": "…"}` began the program, and `{"type":
        # "program_output", "call_id": "p1", "output": "…"}` is its outcome: both say the id,
        # and one alone what was run.
        payload = self.payload
        if caller not in (payload.get("call_id"), payload.get("id")):
            return None
        if "code" in payload:
            return self.kind, {"code": payload["code"]}
        # Its outcome says its id as well.
        return (payload.get("name", self.kind), payload["input"]) if "input" in payload else None


AssistantItem: TypeAlias = TextItem | ReasoningItem | RefusalItem | ToolCallItem | ServerToolItem

CutOff: TypeAlias = Literal["answer", "arguments", "calls"]
"""What a limit on tokens, a failure or a filter cut off of a turn."""


# With an `__init__` of its own, as `ToolMetadata`: some streams tell it with every event.
@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Usage:
    """Count what a turn cost, in tokens; None if the provider does not say.

    Attributes:
        input_tokens: All tokens of the request, cached ones included.
        output_tokens: All tokens of the answer, reasoning included.
        cached_tokens: How many of the input tokens came from a cache.
        reasoning_tokens: How many of the output tokens were reasoning.
        cache_write_tokens: How many of the input tokens were written to a cache, if the provider
            counts that.

    Usages can be added, also with `sum`; a number that neither of two reports stays None.

    Example:
        >>> total = sum([Usage(input_tokens=5), Usage(input_tokens=2, output_tokens=1)])
        >>> total.input_tokens, total.output_tokens, total.cached_tokens
        (7, 1, None)
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None

    def __init__(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        _set_input(self, input_tokens)
        _set_output(self, output_tokens)
        _set_cached(self, cached_tokens)
        _set_reasoning(self, reasoning_tokens)
        _set_cache_write(self, cache_write_tokens)
        given = (input_tokens, output_tokens, cached_tokens, reasoning_tokens, cache_write_tokens)
        if not _COUNTS.issuperset(map(type, given)):
            for name, value in zip(USAGE, given, strict=True):
                if not (value is None or is_whole(value)):
                    raise MisuseError.of_field("Usage", name, "a whole number or None", value)

    @property
    def in_words(self) -> str:
        """What was counted, as in `tokens 1,200 in, 30 out`; nothing about what was not."""
        counts = {
            "in": self.input_tokens,
            "cached": self.cached_tokens,
            "written to a cache": self.cache_write_tokens,
            "out": self.output_tokens,
            "reasoning": self.reasoning_tokens,
        }
        said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        return f"tokens {said}" if said else ""

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(**{name: _sum(getattr(self, name), getattr(other, name)) for name in USAGE})

    def __radd__(self, other: int) -> Usage:
        # What `sum` begins with.
        return self if other.__class__ is int and other == 0 else NotImplemented


def _sum(one: int | None, other: int | None) -> int | None:
    # None is "not said", and no zero: a sum that counts what is not known would look exact.
    if one is None or other is None:
        return other if one is None else one
    return one + other


USAGE: Final = Usage.__slots__
"""What a usage counts."""

_set_input, _set_output, _set_cached, _set_reasoning, _set_cache_write = setters_of(Usage)
_COUNTS = frozenset({int, NoneType})
_ITEMS = frozenset({ReasoningItem, RefusalItem, ServerToolItem, TextItem, ToolCallItem})
_CALLS = frozenset({ToolMetadata})
_CUT_OFF = get_args(CutOff)
_is_refusal = RefusalItem.__instancecheck__  # `isinstance`, for `map`

# For turns that were made by hand, or saved before they said what was cut off. Of what a
# dialect decodes its own words decide, too: `Facts.truncated` and `Facts.refused`.
_TRUNCATED = frozenset(
    {
        *("length", "max_tokens", "MAX_TOKENS", "CONTINUATION", "model_context_window_exceeded"),
        *("max_output_tokens", "max_messages", "steered", "incomplete", "model_length"),
        # What failed at the provider, or was not at its end.
        *("error", "insufficient_system_resource", "network_error", "abort", "cancelled"),
        *("malformed_tool_use", "malformed_model_output", "in_progress", "queued"),
        *("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"),
        *("OTHER", "IMAGE_OTHER", "FINISH_REASON_UNSPECIFIED", "MISSING_THOUGHT_SIGNATURE"),
        "TOO_MANY_TOOL_CALLS",
    }
)
_BLOCKED = frozenset(
    {
        *("content_filter", "content_filtered", "guardrail_intervened", "refusal", "sensitive"),
        *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "MODEL_ARMOR"),
        *("LANGUAGE", "ESCALATION", "PUP_LIMITED_DISABLED"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    }
)


# Every turn of every loop is asked, and there are few words.
@lru_cache(64)
def _ends_early(finish_reason: str | None) -> bool:
    return is_among(finish_reason, _TRUNCATED) or is_among(finish_reason, _BLOCKED)


# A provider's turn is kept twice: `items`, which the program reads and every dialect can send, and
# `payload`, which goes back to its own provider byte for byte. Only the payload has what no neutral
# form knows, such as the signatures of reasoning.
class _TurnFields:
    items: tuple[AssistantItem, ...]
    tool_calls: tuple[ToolMetadata, ...]
    finish_reason: str | None
    usage: Usage | None
    model: str | None
    request_id: str | None
    dialect: str | None
    payload: Any
    cut_off: CutOff | None
    __slots__ = tuple(__annotations__)


class AssistantTurn(Frozen, _TurnFields):
    """Hold what the model said in one turn.

    Pass `items`, or only `text` and `tool_calls`.

    Args:
        items: The parts of the turn, in the order in which they came.
        text: The text, if `items` is left out.
        tool_calls: The calls, if `items` is left out.
        finish_reason: Why the turn ended, in the provider's own word.
        usage: What the turn cost.
        model: The model that answered.
        request_id: The provider's id of the response.
        dialect: The name of the dialect that `payload` is of.
        payload: What the provider sent, whole, for exact replay; it is not to be changed.
        cut_off: What a limit on tokens cut off, as far as the text shows: the end of the `answer`,
            or all `arguments` of the last call, as a filter may too; `calls` where a call before
            the last broke off. Dialects set it when they decode; if it is None, the finish reason
            counts.

    Raises:
        MisuseError: Both `items` and `text` or `tool_calls` are given, or one has another type.

    Example:
        >>> call = ToolMetadata(id="c1", name="add", arguments="{}")
        >>> AssistantTurn(text="Let me see.", tool_calls=[call]).items[0]
        TextItem(text='Let me see.')
    """

    __slots__ = ()
    _unshown: ClassVar[frozenset[str]] = frozenset({"payload"})

    def __new__(
        cls,
        *,
        items: Iterable[AssistantItem] | None = None,
        text: str | None = None,
        tool_calls: Iterable[ToolMetadata] = (),
        finish_reason: str | None = None,
        usage: Usage | None = None,
        model: str | None = None,
        request_id: str | None = None,
        dialect: str | None = None,
        payload: Any = None,
        cut_off: CutOff | None = None,
    ) -> Self:
        made = _TurnFields()
        # Built open, as `_TurnFields`, and checked by identity of classes; only what is unusual
        # goes through the slow checks of `_check`.
        if items is None:
            made.tool_calls = calls = _listed("tool_calls", "`ToolMetadata`", tool_calls)
            asked = map(ToolCallItem, calls)
            made.items = tuple(asked) if text is None else (TextItem(text), *asked)
            are_right = _CALLS.issuperset(map(type, calls))
        elif text is not None or tool_calls:
            raise MisuseError(
                "AssistantTurn takes either `items`, or `text` and `tool_calls`, not both. Put the "
                "text and the calls among the items."
            )
        else:
            made.items = _listed("items", "items such as `TextItem`", items)
            made.tool_calls = calls = tuple(
                [item.metadata for item in made.items if isinstance(item, ToolCallItem)]
            )
            are_right = _ITEMS.issuperset(map(type, made.items)) and _CALLS.issuperset(
                map(type, calls)
            )
        made.finish_reason = finish_reason
        made.usage = usage
        made.model = model
        made.request_id = request_id
        made.dialect = dialect
        made.payload = payload
        made.cut_off = cut_off
        # Every turn of every loop comes this way: what is right is seen at a glance.
        if not (
            (finish_reason is None or finish_reason.__class__ is str)
            and (usage is None or usage.__class__ is Usage)
            and (model is None or model.__class__ is str)
            and (request_id is None or request_id.__class__ is str)
            and (dialect is None or dialect.__class__ is str)
            and (cut_off is None or cut_off in _CUT_OFF)
            and are_right
        ):
            _check(made)
        made.__class__ = AssistantTurn  # immutable from here on, see `frozen`
        turn: Any = made
        if payload is not None:
            _check_payload(turn)
        return turn  # type: ignore[no-any-return]

    @property
    def given(self) -> list[dict[str, Any]]:
        """What tools that the provider ran itself may have read: no programs, inputs or tools."""
        ran = [each for each in self.items if isinstance(each, ServerToolItem)]
        return [
            {"kind": each.kind, **each.payload}
            for each in ran
            if not {"code", "input"} & each.payload.keys() and "tool_search" not in each.kind
        ]

    @property
    def callers(self) -> dict[str, str]:
        """The callers of the calls that no model made itself, by the ids of the calls."""
        return {
            item.metadata.id: item.caller
            for item in self.items
            if isinstance(item, ToolCallItem) and item.caller is not None
        }

    def with_calls(self, change: Callable[[ToolMetadata], ToolMetadata]) -> AssistantTurn:
        """Return the turn with other calls, and the payload as it came; itself if none changed.

        Args:
            change: Gives what stands for a call.
        """
        # The payload stays: what was sent back under a stand-in of a tool's name goes back as it
        # came, and only the program sees the tool's own name.
        items = tuple(
            ToolCallItem(change(item.metadata), item.caller)
            if isinstance(item, ToolCallItem)
            else item
            for item in self.items
        )
        if items == self.items:
            return self
        calls = tuple(item.metadata for item in items if isinstance(item, ToolCallItem))
        return with_fields(self, items=items, tool_calls=calls)

    def with_arguments(self, call_id: str, text: str) -> AssistantTurn:
        """Return the turn with other arguments of one call, in its payload too.

        Args:
            call_id: The id of the call.
            text: The arguments, as JSON text.

        Raises:
            MisuseError: There is no such call, or the text is not text.

        Example:
            >>> call = ToolMetadata(id="c1", name="add", arguments='{"a": 1}')
            >>> turn = AssistantTurn(tool_calls=[call]).with_arguments("c1", '{"a": 2}')
            >>> turn.tool_calls[0].arguments
            '{"a": 2}'
        """
        MisuseError.check("with_arguments", "text", "JSON text", text, str)
        ids = [call.id for call in self.tool_calls]
        if call_id not in ids:
            raise MisuseError(f"The turn has no call {shorten(call_id)}. Its calls are {ids}.")
        payload, dialect = self.payload, _dialect_of(self)
        if dialect is not None:
            payload = dialect.with_arguments(payload, ids.index(call_id), text)
            text = dialect.decode(payload).tool_calls[ids.index(call_id)].arguments

        def changed(call: ToolMetadata) -> ToolMetadata:
            if call.id != call_id:
                return call
            return ToolMetadata(id=call.id, name=call.name, arguments=text)

        return with_fields(self.with_calls(changed), payload=payload)

    def with_text(self, text: str) -> AssistantTurn:
        """Return the turn with another text, in its payload too.

        Args:
            text: What stands for all text of the turn, where the first of it was; without text, if
                it is empty.

        Raises:
            MisuseError: It is not text.

        Example:
            >>> AssistantTurn(text="Helo").with_text("Hello").text
            'Hello'
        """
        MisuseError.check("with_text", "text", "a text", text, str)
        texts = [at for at, item in enumerate(self.items) if isinstance(item, TextItem)]
        calls = (at for at, item in enumerate(self.items) if isinstance(item, ToolCallItem))
        at = texts[0] if texts else next(calls, len(self.items))
        rest = [item for item in self.items if not isinstance(item, TextItem)]
        said = [TextItem(text)] if text else []
        dialect = _dialect_of(self)
        payload = self.payload if dialect is None else dialect.with_text(self.payload, text)
        return with_fields(self, items=(*rest[:at], *said, *rest[at:]), payload=payload)

    def with_payload(self, payload: Any) -> AssistantTurn:
        """Return the turn with the response that it was read from, for a dialect.

        Args:
            payload: The response, which has to say the same: the two are not compared. It is kept,
                and may not be changed.
        """
        return with_fields(self, payload=payload)

    @property
    def text(self) -> str:
        """All text of the turn, in order, without a separator."""
        return "".join(item.text for item in self.items if isinstance(item, TextItem))

    @property
    def reasoning(self) -> str:
        """All reasoning that the provider shows, one block a paragraph."""
        shown = (item.text for item in self.items if isinstance(item, ReasoningItem))
        return "\n\n".join(text for text in shown if text)

    @property
    def refusal(self) -> str | None:
        """Why the model refused, or a filter ended the turn; `""` without a word, else None."""
        said = [item.text for item in self.items if isinstance(item, RefusalItem)]
        return "".join(said) if said else None

    @property
    def is_truncated(self) -> bool:
        """Whether a limit on tokens, or a failure, cut the turn off, in any provider's word for it.

        Its last call is not run, even if the arguments look complete, see `Toolset.read_turn`;
        where a call before the last broke off, none is.
        A turn whose last call a filter cut off counts too; its `refusal` is not None.
        """
        return self.cut_off is not None or is_among(self.finish_reason, _TRUNCATED)

    @property
    def is_blocked(self) -> bool:
        """Whether the model refused, or a filter ended the turn, in any provider's word for it.

        Its calls are never run: each becomes an issue of the round, see `Toolset.read_turn`.
        """
        return is_among(self.finish_reason, _BLOCKED) or any(map(_is_refusal, self.items))

    @property
    def _is_cut_short(self) -> bool:
        """Whether it is truncated or blocked, in one look: hardly any turn is."""
        return (
            self.cut_off is not None
            or _ends_early(self.finish_reason)
            or any(map(_is_refusal, self.items))
        )

    def __hash__(self) -> int:
        return hash((self.items, self.finish_reason, self.request_id))


def _listed(field: str, of: str, given: Iterable[T]) -> tuple[T, ...]:
    try:
        return tuple(given)
    except TypeError:
        raise MisuseError.of_field("AssistantTurn", field, f"a list of {of}", given) from None


def _check(turn: Any) -> None:
    """Name the field of a turn that has a wrong type; a subclass of the right one will do."""

    def wrong(name: str, expected: str, given: object, remedy: str = "") -> MisuseError:
        return MisuseError.of_field("AssistantTurn", name, expected, given, remedy)

    for at, item in enumerate(turn.items):
        if not isinstance(item, AssistantItem):
            raise wrong(f"items[{at}]", "an item such as `TextItem` or `ToolCallItem`", item)
    for at, call in enumerate(turn.tool_calls):
        if not isinstance(call, ToolMetadata):
            remedy = "A dialect's `decode(response)` makes turns of what a provider sends."
            raise wrong(f"tool_calls[{at}]", "a `ToolMetadata`", call, remedy)
    if not isinstance(turn.usage, Usage | None):
        raise wrong("usage", "a `Usage` or None", turn.usage)
    if turn.cut_off not in (None, *_CUT_OFF):
        raise wrong("cut_off", "'answer', 'arguments' or None", turn.cut_off)
    for name in ("finish_reason", "model", "request_id", "dialect"):
        if not isinstance(getattr(turn, name), str | None):
            raise wrong(name, "a text or None", getattr(turn, name))


def _dialect_of(turn: AssistantTurn) -> Any:
    """Return the dialect that sends the payload of a turn back; None if there is none."""
    module = dialect_named(turn.dialect) if is_object(turn.payload) else None
    return None if module is None else module.DIALECT


def _check_payload(turn: AssistantTurn) -> None:
    """Refuse a turn that says another thing than its payload, of which a program made it."""
    dialect = _dialect_of(turn)
    if dialect is None:
        return
    try:
        reason = contradiction(turn, dialect.decode(turn.payload))
    except DialectError as error:
        reason = f"the payload is not a response of {turn.dialect} ({error})"
    if reason is not None:
        raise MisuseError(
            f"AssistantTurn: {reason}. The payload is what goes back, so the two have to agree: "
            "write `turn.with_arguments(call_id, text)` or `turn.with_text(text)`, which change "
            "both, or leave `payload=` out."
        )


# A layer above knows what a payload says: so the dialect is asked by its name, and only where there
# is something to ask. That is each turn, and any name may come in a saved text.
@lru_cache(16)
def dialect_named(name: str | None) -> Any:
    """Return the module of a dialect in the list; None for one that is not in it."""
    known = import_module("lutum_py.dialects").DIALECTS.get(name)
    return None if known is None else import_module(known)


def contradiction(turn: AssistantTurn, said: AssistantTurn) -> str | None:
    """Say where a turn differs from the turn that its payload makes, if it does.

    What differs is named and not quoted: it may be secret.
    """
    asked, found = ([(call.id, call.name) for call in each.tool_calls] for each in (turn, said))
    if len(asked) != len(found) or not all(map(_is_same, asked, found)):
        return f"the turn makes the calls {asked}, and its payload makes {found}"
    for call, other in zip(turn.tool_calls, said.tool_calls, strict=True):
        if call.arguments != other.arguments:
            return f"call {call.id!r} of the turn has other arguments than its payload"
    if (turn.text, turn.refusal) != (said.text, said.refusal):
        return "the turn says another text than its payload"
    if turn.callers != said.callers:
        return "the calls of the turn have other callers than those of its payload"
    return None


def _is_same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Tell whether two calls are one: a tool may have gone out under the stand-in of its name."""
    (id, name), (other_id, other_name) = one, other
    is_same = own_name(name, [other_name]) == other_name or own_name(other_name, [name]) == name
    return id == other_id and is_same
