"""One turn of the model, in a neutral form, with what the provider sent beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

from ._frozen import Frozen
from ._metadata import ToolMetadata

__all__ = [
    "AssistantItem",
    "AssistantTurn",
    "ReasoningItem",
    "RefusalItem",
    "ServerToolItem",
    "TextItem",
    "ToolCallItem",
    "Usage",
]


@dataclass(frozen=True, slots=True)
class TextItem:
    """Text that the model wrote for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningItem:
    """Reasoning that the provider shows; empty where it shows only an encrypted form."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalItem:
    """The model's own words for why it will not answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallItem:
    """A tool call that the program has to answer."""

    metadata: ToolMetadata


@dataclass(frozen=True, slots=True)
class ServerToolItem:
    """Something that the provider ran itself, such as a web search, or its result.

    Attributes:
        kind: The provider's word for it, as in `web_search_call`.
        payload: What the provider sent, whole.
    """

    kind: str
    payload: Mapping[str, Any] = field(hash=False)


AssistantItem: TypeAlias = TextItem | ReasoningItem | RefusalItem | ToolCallItem | ServerToolItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Count what a turn cost, in tokens; None where the provider does not say.

    Attributes:
        input_tokens: All tokens of the request, cached ones included.
        output_tokens: All tokens of the answer, reasoning included.
        cached_tokens: How many of the input tokens came from a cache.
        reasoning_tokens: How many of the output tokens were reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


_TRUNCATED = frozenset(
    {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"}
)


class _TurnFields:
    __slots__ = (
        "dialect",
        "finish_reason",
        "items",
        "model",
        "payload",
        "request_id",
        "tool_calls",
        "usage",
    )

    items: tuple[AssistantItem, ...]
    tool_calls: tuple[ToolMetadata, ...]
    finish_reason: str | None
    usage: Usage | None
    model: str | None
    request_id: str | None
    dialect: str | None
    payload: Any


class AssistantTurn(Frozen, _TurnFields):
    """Hold what the model said in one turn.

    Pass `items`, or `text` and `tool_calls` where there is nothing else to say.

    Args:
        items: The parts of the turn, in the order in which they came.
        text: The text, where `items` is left out.
        tool_calls: The calls, where `items` is left out.
        finish_reason: Why the turn ended, in the provider's own word.
        usage: What the turn cost.
        model: The model that answered.
        request_id: The provider's id of the response.
        dialect: The name of the dialect that `payload` is of.
        payload: What the provider sent, whole, for exact replay; it is not to be changed.

    Raises:
        TypeError: Both `items` and `text` or `tool_calls` are given.

    Example:
        >>> call = ToolMetadata(id="c1", name="add", arguments="{}")
        >>> AssistantTurn(text="Let me see.", tool_calls=[call]).items[0]
        TextItem(text='Let me see.')
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = (
        "items",
        "tool_calls",
        "finish_reason",
        "usage",
        "model",
        "request_id",
        "dialect",
        "payload",
    )

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
    ) -> Self:
        made = _TurnFields()
        if items is None:
            made.tool_calls = calls = tuple(tool_calls)
            said: tuple[AssistantItem, ...] = () if text is None else (TextItem(text),)
            made.items = (*said, *map(ToolCallItem, calls))
        elif text is not None or tool_calls:
            raise TypeError(
                "AssistantTurn takes either `items`, or `text` and `tool_calls`, not both; "
                "put the text and the calls among the items"
            )
        else:
            made.items = tuple(items)
            made.tool_calls = tuple(
                item.metadata for item in made.items if isinstance(item, ToolCallItem)
            )
        made.finish_reason = finish_reason
        made.usage = usage
        made.model = model
        made.request_id = request_id
        made.dialect = dialect
        made.payload = payload
        made.__class__ = AssistantTurn  # immutable from here on, see _frozen
        return made  # type: ignore[return-value]

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
        """The model's refusal, or None."""
        said = [item.text for item in self.items if isinstance(item, RefusalItem)]
        return "".join(said) if said else None

    @property
    def is_truncated(self) -> bool:
        """Whether the turn was cut off by a limit on tokens, in any provider's word for it."""
        return self.finish_reason in _TRUNCATED

    def __hash__(self) -> int:
        return hash((self.items, self.finish_reason, self.request_id))
