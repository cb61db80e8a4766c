"""One request to a model: what was said so far, which tools are offered, what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, get_args

from .._schema.definition import ToolDef
from .._text.immutable import Frozen, dataclass, with_fields
from .._text.json import is_whole, shorten
from ..errors import InvalidValueError, MisuseError
from .assistant import AssistantTurn
from .message import Message
from .result import ToolResult

TranscriptItem: TypeAlias = Message | AssistantTurn | ToolResult
"""What a transcript is made of."""

_NO_EXTRA: Mapping[str, object] = MappingProxyType({})


_MOST: Final = 4
"""So many markers does Anthropic take in one request."""

_TTLS: Final = ("5m", "1h")


@dataclass(frozen=True, slots=True)
class Cache:
    """Say how the provider's cache of prompts is to be used; each dialect takes what it knows.

    Args:
        tools: Mark the end of the tools (Anthropic, Bedrock).
        system: Mark the end of the instructions (Anthropic, Bedrock).
        turns: Mark the ends of so many of the last user messages, results included: with 2 that of
            this request and that of the one before, whose entry is found again (Anthropic,
            Bedrock).
        ttl: How long an entry lives after it was last used, `"5m"` or `"1h"`; None for the
            provider's own (Anthropic, Bedrock).
        key: Requests with one key are sent where the prompt is cached (OpenAI).
        retention: How long entries are kept, as in `"24h"` (OpenAI).
        content: The name of a cached content that you made, as in `cachedContents/abc` (Gemini).
        covers: How many of the first items of the request are in that content, ephemeral messages
            not counted (Gemini).

    A field that a dialect has no word for is a loss at `cache.<field>`; `tools`, `system` and
    `turns` are none, because the other providers cache beginnings by themselves.

    Raises:
        InvalidValueError: There would be more than 4 markers, the ttl is unknown, `content` is
            blank, or `covers` is given without it.
        MisuseError: A field has another type.

    Example:
        >>> Cache(ttl="1h").turns
        2
    """

    tools: bool = True
    system: bool = True
    turns: int = 2
    ttl: str | None = None
    key: str | None = None
    retention: str | None = None
    content: str | None = None
    covers: int = 0

    def __post_init__(self) -> None:
        for name in ("tools", "system"):
            MisuseError.check("Cache", name, "True or False", getattr(self, name), bool)
        for name in ("turns", "covers"):
            count = getattr(self, name)
            if not is_whole(count) or count < 0:
                raise MisuseError.of_field("Cache", name, "a whole number, 0 or more", count)
        for name in ("ttl", "key", "retention", "content"):
            MisuseError.check("Cache", name, "a text or None", getattr(self, name), str | None)
        # Anthropic refuses a fifth marker only when the request is sent. Here it is found where the
        # program is written, for every model.
        markers = self.tools + self.system + self.turns
        if markers > _MOST:
            raise InvalidValueError(
                f"Cache: tools={self.tools}, system={self.system} and {self.turns} turns are "
                f"{markers} markers, and Anthropic takes {_MOST} in a request. Mark fewer turns, "
                "or leave out `tools` or `system`."
            )
        if self.ttl is not None and self.ttl not in _TTLS:
            raise InvalidValueError(
                f"Cache: ttl={shorten(self.ttl)} is none of {' and '.join(map(repr, _TTLS))}."
            )
        if self.content is not None and not self.content.strip():
            raise InvalidValueError(
                "Cache: content is blank. Name the cached content, or leave it."
            )
        if self.covers and self.content is None:
            raise InvalidValueError(
                f"Cache: covers={self.covers} items of what? Name the cached content that they are "
                "in, as in `content='cachedContents/abc'`."
            )


ToolChoiceMode: TypeAlias = Literal["auto", "required", "none", "specific"]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Say what the model is asked to do with the tools on offer.

    Attributes:
        mode: `auto`, `required` (at least one call), `none` or `specific`.
        name: The wire name of the tool, for `specific`.
    """

    mode: ToolChoiceMode = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(ToolChoiceMode):
            raise InvalidValueError(
                f"ToolChoice: mode {shorten(self.mode)} is none of "
                f"{', '.join(get_args(ToolChoiceMode))}."
            )
        if (self.mode == "specific") is not isinstance(self.name, str):
            raise InvalidValueError(
                "ToolChoice names a tool where its mode is 'specific', and nowhere else: got mode "
                f"{self.mode!r} and name {shorten(self.name)}."
            )


AUTO = ToolChoice("auto")
REQUIRED = ToolChoice("required")
NONE = ToolChoice("none")


@dataclass(frozen=True, slots=True)
class DeferredTools:
    """Say which tools can be loaded; for providers that know such tools themselves.

    Attributes:
        definitions: All of them, in the order of declaration, also those that are on offer.
        loaded: The names of those that were loaded, in that order; they are the last of the tools
            on offer.
        searches: The names of the tools whose results load them.
    """

    definitions: tuple[ToolDef, ...]
    loaded: tuple[str, ...]
    searches: frozenset[str]


class _RequestFields:
    items: Sequence[TranscriptItem]
    tools: tuple[ToolDef, ...]
    tool_choice: ToolChoice
    temperature: float | None
    max_output_tokens: int | None
    parallel_tool_calls: bool | None
    extra: Mapping[str, object]
    answer: ToolDef | None
    cache: Cache | None
    deferred: DeferredTools | None
    __slots__ = tuple(__annotations__)


class TurnRequest(Frozen, _RequestFields):
    """Ask a model for one turn.

    Args:
        items: What was said so far, oldest first: a view, not a copy.
        tools: The tools on offer, with the descriptions of this turn.
        tool_choice: What is asked of the model; `none` where nothing is on offer.
        temperature: The sampling temperature, or None for the provider's own.
        max_output_tokens: An upper bound on the answer, in tokens.
        parallel_tool_calls: Whether several calls in one turn are welcome; None leaves it open.
        extra: Request fields of one provider, passed through untouched.
        answer: Name and schema of the final answer, if the text is to be that.
        cache: How the provider's cache of prompts is to be used; None leaves that to the provider.
        deferred: The tools that a search of the model may load, if there are any.

    Raises:
        MisuseError: A field has another type.

    Example:
        >>> TurnRequest(items=[Message("user", "Hello")]).tool_choice.mode
        'none'
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        items: Sequence[TranscriptItem],
        tools: tuple[ToolDef, ...] = (),
        tool_choice: ToolChoice | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        parallel_tool_calls: bool | None = None,
        extra: Mapping[str, object] = _NO_EXTRA,
        answer: ToolDef | None = None,
        cache: Cache | None = None,
        deferred: DeferredTools | None = None,
    ) -> Self:
        made = _RequestFields()
        made.items = items
        made.tools = tools
        made.tool_choice = tool_choice or (AUTO if tools else NONE)
        made.temperature = temperature
        made.max_output_tokens = max_output_tokens
        made.parallel_tool_calls = parallel_tool_calls
        made.extra = extra
        made.answer = answer
        made.cache = cache
        made.deferred = deferred
        _check(made)
        made.__class__ = TurnRequest  # immutable from here on, see `frozen`
        return made  # type: ignore[return-value]

    # Equal requests may hold equal lists, so there is nothing to go by.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        # With a plain dict: what stands for no extra cannot be pickled.
        return Frozen.__reduce__(with_fields(self, extra=dict(self.extra)))


def plain_request(
    items: Sequence[TranscriptItem],
    tools: tuple[ToolDef, ...],
    deferred: DeferredTools | None = None,
) -> TurnRequest:
    """Make the request that says nothing more than what is known to be right: most do."""
    # Checks nothing: what a builder without options puts in was made by this library, and a check
    # of each field would take longer than the request.
    made = _RequestFields()
    made.items = items
    made.tools = tools
    made.tool_choice = AUTO if tools else NONE
    made.temperature = made.max_output_tokens = made.parallel_tool_calls = None
    made.extra = _NO_EXTRA
    made.answer = made.cache = None
    made.deferred = deferred
    made.__class__ = TurnRequest  # immutable from here on, see `frozen`
    return made  # type: ignore[return-value]


def _check(request: Any) -> None:
    """Name the field of a request that has a wrong type."""
    tools = request.tools
    if tools.__class__ is not tuple or not _DEFINITIONS.issuperset(map(type, tools)):
        raise MisuseError.of_field(
            "TurnRequest",
            "tools",
            "a tuple of `ToolDef`s",
            tools,
            "A toolset gives them with `AppTools.definitions()`.",
        )
    for name, kinds, expected in _EXPECTED:
        value = getattr(request, name)
        # True is a number for Python, and for nobody else.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise MisuseError.of_field("TurnRequest", name, expected, value)


_DEFINITIONS = frozenset({ToolDef})
_EXPECTED: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("items", (Sequence,), "a sequence of messages, turns and results"),
    ("tool_choice", (ToolChoice,), "a `ToolChoice` or None"),
    ("temperature", (int, float, NoneType), "a number or None"),
    ("max_output_tokens", (int, NoneType), "a whole number or None"),
    ("parallel_tool_calls", (bool, NoneType), "True, False or None"),
    ("extra", (Mapping,), "a mapping of request fields"),
    ("answer", (ToolDef, NoneType), "a `ToolDef` or None"),
    ("cache", (Cache, NoneType), "a `Cache` or None"),
    ("deferred", (DeferredTools, NoneType), "`DeferredTools` or None"),
)
