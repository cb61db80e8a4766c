"""The turn builder: say what the model may do and is asked for, then collect its turn.

Builders are immutable; each method returns another one. What is not said costs nothing: a builder
carries a mapping of what was said, and shares the empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from .._call.selector import AnySelector
from .._round.finished import Finished, NoAnswer
from .._round.round import NeedsTools, check_answer
from .._schema.definition import ToolDef
from .._text.json import shorten
from .._toolsets.answer import Answer, answer_of
from .._toolsets.members import members_of
from .._toolsets.offer import (
    Available,
    Descriptions,
    OfferedTools,
    ToolAvailability,
    ToolRequirement,
    offered_in,
)
from .._toolsets.toolset_meta import ToolsetMeta
from .._transcript.request import Cache, DeferredTools, TurnRequest, plain_request
from ..errors import MisuseError, ToolConstraintError, UnknownToolError
from .model import (
    AnyModel,
    Prepared,
    SpokenIn,
    SyncTurnStream,
    TurnStream,
    ViewLike,
    no_answer,
    no_model,
)
from .toolset import Toolset

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T", bound=Toolset)
A1 = TypeVar("A1")
Taken = TypeVar("Taken")
"""What reading a turn comes to."""

# What is said is kept in two mappings: `_generation` for what goes into the request as it is, such
# as {"temperature": 0.2, "view": view}, and `_choice` for what the toolset has a say in, such as
# {"available": ToolAvailability.all(), "answer": Answer(int)}. A class with a field for each would
# copy a dozen fields with every method of the chain.
_UNSAID: Any = object()
_NOTHING: Mapping[str, Any] = {}
_OPTIONAL = ToolRequirement.optional()


class _Builder(Generic[Taken]):
    """What every builder can say, and how its turn is asked for."""

    __slots__ = ("_choice", "_generation", "_model", "_session", "_toolset")

    def __init__(
        self,
        session: SpokenIn,
        model: AnyModel,
        generation: Mapping[str, Any] = _NOTHING,
        toolset: type[Any] = Toolset,
        choice: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self._session = session
        self._model = model
        self._generation = generation
        self._toolset = toolset
        self._choice = choice

    def _but(self, **generation: Any) -> Self:
        merged = {**self._generation, **generation}
        return type(self)(self._session, self._model, merged, self._toolset, self._choice)

    def temperature(self, temperature: float) -> Self:
        """Set the sampling temperature."""
        return self._but(temperature=temperature)

    def max_output_tokens(self, count: int) -> Self:
        """Set an upper bound on the answer, in tokens."""
        return self._but(max_output_tokens=count)

    def extra(self, fields: Mapping[str, Any]) -> Self:
        """Add request fields of one provider, passed through untouched."""
        if not isinstance(fields, Mapping):
            raise MisuseError(
                f"`.extra` takes a mapping of request fields, not {shorten(fields)}: write "
                '`.extra({"seed": 1})`.'
            )
        return self._but(extra={**self._generation.get("extra", {}), **fields})

    def view(self, view: ViewLike) -> Self:
        """Send what a view says about the transcript; ephemeral messages keep their places.

        Raises:
            MisuseError: It is not a view.
        """
        if isinstance(view, type) or not callable(getattr(view, "of", None)):
            raise MisuseError(
                f"`.view` takes a View, not {shorten(view)}: write `.view(view)` with `view = "
                "View()`, or with what one of its methods gave."
            )
        return self._but(view=view)

    @overload
    def cache(self, cache: Cache | None, /) -> Self: ...
    @overload
    def cache(
        self,
        /,
        *,
        tools: bool = ...,
        system: bool = ...,
        turns: int = ...,
        ttl: str | None = ...,
        key: str | None = ...,
        retention: str | None = ...,
        content: str | None = ...,
        covers: int = ...,
    ) -> Self: ...
    def cache(self, cache: Any = _UNSAID, /, **fields: Any) -> Self:
        """Use the provider's cache of prompts.

        Args:
            cache: How; None for not at all.
            fields: The same as the fields of a `Cache`.

        Raises:
            InvalidValueError: There would be more than 4 markers, or the ttl is unknown.
            MisuseError: It is not a cache, or a field has another type.
        """
        if cache is _UNSAID:
            cache = Cache(**fields)
        elif fields or not isinstance(cache, Cache | None):
            raise MisuseError(
                "`.cache` takes a Cache or the fields of one, not "
                f"{'both' if fields else shorten(cache)}: write `.cache(ttl='1h')`."
            )
        return self._but(cache=cache)

    def prepare(self) -> Prepared:
        """Work out the request, from what was said and the toolset alone."""
        session, toolset, choice = self._session, self._toolset, self._choice
        offer = members_of(toolset).offer
        # Nearly every turn of a loop says nothing special. This way there is nothing to check, and
        # what the toolset offers is worked out once and shared.
        if not choice and not self._generation:
            offered = offered_in(offer, session.transcript)
            items = session._request_items()
            request = plain_request(items, offered.definitions, offered.deferred)
            return Prepared(session, toolset, offered, request, False)
        answer: Answer[Any] | None = choice.get("answer")
        generation = dict(self._generation)
        items = session._request_items(generation.pop("view", None))
        try:
            offered = offered_in(offer, session.transcript, choice.get("available"))
            definitions = offer.describe(offered.definitions, choice.get("descriptions", ()))
            requirement = choice.get("requirement", _OPTIONAL)
            if answer is not None and answer.by == "tool" and not requirement.selector:
                tool_choice = requirement.choice
            else:
                tool_choice = offer.choose(offered, requirement)
        except UnknownToolError as error:
            # The name came from the program here, not from the model.
            raise ToolConstraintError(f"The turn cannot be asked for: {error}") from error
        if answer is not None:
            check_answer(toolset, answer)
        deferred, by_format = offered.deferred, None
        if answer is not None and answer.by == "tool":
            definitions = _with_answer(definitions, answer.definition, deferred)
        elif answer is not None:
            by_format = answer.definition
        request = TurnRequest(
            items=items,
            tools=definitions,
            tool_choice=tool_choice,
            answer=by_format,
            deferred=deferred,
            **generation,
        )
        return Prepared(session, toolset, offered, request, choice.get("redact", False), answer)

    def request(self) -> TurnRequest:
        """Return the request that `collect` would send.

        Raises:
            ToolConstraintError: What is required is not offered, or a tool is named that is
                not there.
        """
        return self.prepare().request

    async def collect(self) -> Taken:
        """Send the request, and read the turn that comes back.

        Returns:
            `Finished(result)`, and the turn is in the transcript; or `NeedsTools(round)`, and
            nothing is in the transcript until the round is committed.

        Raises:
            ToolConstraintError: What is required is not offered, or a tool is named that is
                not there; nothing was sent.
            DuplicateToolCallIdError: Two calls of the turn share an id; nothing was added.
        """
        prepared, answer = self._asked("respond")
        return prepared.take(await answer)  # type: ignore[no-any-return]

    def collect_sync(self) -> Taken:
        """Do the same from sync code.

        Raises:
            MisuseError: The model has no `respond_sync`.
        """
        prepared, turn = self._asked("respond_sync")
        return prepared.take(turn)  # type: ignore[no-any-return]

    def _asked(self, method: str) -> tuple[Prepared, Any]:
        """Send the request by a method of the model, and return what that gave."""
        prepared = self.prepare()
        respond = getattr(self._model, method, None)
        if respond is None:
            raise no_model(self._model, method)
        given = respond(prepared.request)
        if hasattr(given, "__await__") is (method == "respond_sync"):
            raise no_answer(self._model, method, given)
        return prepared, given

    def stream(self) -> TurnStream[Taken]:
        """Send the request when iteration starts, and give the turn's events as they come."""
        return TurnStream(self._model, self.prepare())

    def stream_sync(self) -> SyncTurnStream[Taken]:
        """Do the same from sync code."""
        return SyncTurnStream(self._model, self.prepare())


class Turn(_Builder[NeedsTools[Toolset] | Finished]):
    """A turn that offers no tools, until `.tools(...)` offers some."""

    __slots__ = ()

    def tools(self, toolset: type[T], /) -> TurnWithTools[T]:
        """Offer the tools of a toolset that are on."""
        if not isinstance(toolset, ToolsetMeta):
            raise MisuseError(
                f"A turn offers the tools of a Toolset, not {shorten(toolset)}. Declare a class "
                "with `tool(...)` members; `.available_tools([...])` says which of them."
            )
        return TurnWithTools(self._session, self._model, self._generation, toolset)

    @overload  # two, because mypy solves no union with a `TypeForm` for `A | B`
    def answer(self, answer: Answer[A1], /) -> TurnWithAnswer[Toolset, A1]: ...
    @overload
    def answer(self, answer: TypeForm[A1], /) -> TurnWithAnswer[Toolset, A1]: ...
    def answer(self, answer: Any, /) -> Any:
        """Ask for a final answer of a type; see `TurnWithTools.answer`."""
        return self.tools(Toolset).answer(answer)


class _Offering(_Builder[Taken]):
    """What a turn with tools can say."""

    __slots__ = ()

    def _choose(self, **choice: Any) -> Self:
        merged = {**self._choice, **choice}
        return type(self)(self._session, self._model, self._generation, self._toolset, merged)

    def available_tools(self, available: Available | AnySelector | str) -> Self:
        """Offer exactly these tools, or what a `ToolAvailability` says.

        Args:
            available: Selectors or wire names, also of tools that are off, or toolsets for all
                their tools; or a `ToolAvailability`.
        """
        if available is not None and not isinstance(available, ToolAvailability | OfferedTools):
            available = ToolAvailability.only(
                [available] if isinstance(available, str | AnySelector) else available
            )
        return self._choose(available=available)

    def available_tools_all(self) -> Self:
        """Offer every tool, also those that are off."""
        return self._choose(available=ToolAvailability.all())

    def available_tools_default_plus(
        self, selectors: Iterable[AnySelector | str | type[object]]
    ) -> Self:
        """Offer the tools that are on, and these; a nested toolset stands for all its tools."""
        return self._choose(available=ToolAvailability.default_plus(selectors))

    def require(self, requirement: ToolRequirement) -> Self:
        """Ask of the model what a value says."""
        return self._choose(requirement=requirement)

    def require_any_tool(self) -> Self:
        """Ask for at least one call."""
        return self.require(ToolRequirement.at_least_one())

    def require_tool(self, selector: AnySelector | str) -> Self:
        """Ask for a call of this tool."""
        return self.require(ToolRequirement.specific(selector))

    def describe_tool(self, selector: AnySelector | str, text: str) -> Self:
        """Describe a tool otherwise in this turn; the last description of a tool counts."""
        return self.describe_many_tools([(selector, text)])

    def describe_many_tools(self, pairs: Descriptions) -> Self:
        """Describe several tools otherwise in this turn."""
        if not isinstance(pairs, Iterable):
            raise MisuseError(
                f"`.describe_many_tools` takes pairs of a tool and a text, not {shorten(pairs)}."
            )
        more = cast("Iterable[Any]", pairs.items() if isinstance(pairs, Mapping) else pairs)
        return self._choose(descriptions=(*self._choice.get("descriptions", ()), *more))

    def parallel_tool_calls(self, allowed: bool = True) -> Self:
        """Say whether several calls in one turn are welcome."""
        return self._but(parallel_tool_calls=allowed)

    def redact(self) -> Self:
        """Hide the values that came in what the model is told about invalid arguments."""
        return self._choose(redact=True)


def _with_answer(
    tools: tuple[ToolDef, ...], answer: ToolDef, deferred: DeferredTools | None
) -> tuple[ToolDef, ...]:
    """Offer the answer after the tools, but before those that were loaded.

    A provider reads tools first, so that what is before a new one may stay in its cache.
    """
    always = len(tools) - (len(deferred.loaded) if deferred else 0)
    return (*tools[:always], answer, *tools[always:])


class TurnWithTools(_Offering[NeedsTools[T] | Finished], Generic[T]):
    """A turn that offers tools."""

    __slots__ = ()

    @overload
    def answer(self, answer: Answer[A1], /) -> TurnWithAnswer[T, A1]: ...
    @overload
    def answer(self, answer: TypeForm[A1], /) -> TurnWithAnswer[T, A1]: ...
    def answer(self, answer: Any, /) -> Any:
        """Ask for a final answer of a type.

        Args:
            answer: Any type that pydantic knows, or an `Answer`, which says more.

        Returns:
            A builder whose outcome is `NeedsTools`, `Finished` with the answer, or `NoAnswer`.

        Raises:
            ToolDefinitionError: The type has no JSON schema.
        """
        chosen = {**self._choice, "answer": answer_of(answer)}
        make: Any = TurnWithAnswer
        return make(self._session, self._model, self._generation, self._toolset, chosen)


class TurnWithAnswer(_Offering[NeedsTools[T, A1] | Finished[A1] | NoAnswer], Generic[T, A1]):
    """A turn that asks for a final answer of a type."""

    __slots__ = ()
