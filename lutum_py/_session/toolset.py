"""`Toolset`: a group of tools, nested to any depth and flattened on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Never, Self, TypeAlias, TypeVar, overload

from .._call.selector import AnySelector
from .._call.selector import Selector as _Selector
from .._call.spec import UNSET, Condition, MemberOptions
from .._schema.definition import ToolDef
from .._text.json import shorten
from .._text.names import own_name
from .._toolsets.toolset_meta import ToolsetMeta
from ..errors import MisuseError, ToolConstraintError, UnknownToolError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeForm

    from .._call.call import AnyToolCall
    from .._call.outcomes import HandledCall
    from .._call.spec import HasSpec
    from .._hooks.hook_set import HookSet as _HookSet
    from .._round.finished import Finished, NoAnswer
    from .._round.plan import ToolRoundPlan
    from .._round.round import NeedsTools
    from .._toolsets.answer import Answer
    from .._toolsets.handlers import Handlers as _Handlers
    from .._toolsets.offer import (
        Available,
        Descriptions,
        OfferedTools,
        ToolAvailability,
    )
    from .._toolsets.tool_fn import ToolFn
    from .._transcript.assistant import AssistantTurn, ToolMetadata
    from .._transcript.request import TranscriptItem
    from .._transcript.result_cap import ResultCap
    from .._transcript.transcript import HasTranscript, Transcript
    from .session import Restored, Session

A1 = TypeVar("A1")


class Toolset(metaclass=ToolsetMeta):
    """Group tools: subclass it, and declare members with `tool()` and `toolset()`.

    A toolset is used as a class; it has no instances. Iterating gives its selectors, those of
    nested toolsets included, in the order of declaration.

    Options in the head of the class hold for all tools that do not set them themselves:
    `class T(Toolset, timeout=2, needs_approval=True, result_cap=...)`. A `rule=` there reviews
    about each call, after the rules of the tools, as in `toolset(inner, rule=...)`.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     plus = tool(add)
        >>> Sums.plus in Sums, "add" in Sums, len(Sums)
        (True, True, 1)
    """

    if TYPE_CHECKING:
        Selector: TypeAlias = _Selector
        Call: TypeAlias = AnyToolCall
        Handled: TypeAlias = HandledCall[Any, Any]

        class Hooks:
            """The base class of policies: classes with methods such as `<member>_hook`."""

    @classmethod
    def HookSet(  # noqa: N802 - makes one
        cls, /, *misplaced: Never, **nested: _HookSet[Any]
    ) -> _HookSet[Self]:
        """Make an empty hook set of this toolset.

        Args:
            misplaced: None: a hook set needs the name of its member.
            nested: Hook sets of nested toolsets by the name of the member; kept, not copied.

        Raises:
            MisuseError: A hook set came without a name.
            HookError: There is no such member, or the hook set belongs to another toolset.
        """
        made: _HookSet[Self] = _hook_set()(cls._members.origin, *misplaced, **nested)
        return made

    @classmethod
    def Handlers(cls) -> _Handlers[Self]:  # noqa: N802 - makes one
        """Make an empty table of handlers for the tools of this toolset."""
        made: _Handlers[Self] = _handlers()(cls._members.origin)
        return made

    @classmethod
    def definitions(cls) -> tuple[ToolDef, ...]:
        """Return the definitions of all tools, those that are off included."""
        return cls._members.offer.all.definitions

    @classmethod
    def definitions_for(
        cls,
        available: ToolAvailability | Iterable[AnySelector | str | type[object]],
        descriptions: Descriptions = (),
    ) -> tuple[ToolDef, ...]:
        """Return the definitions of some tools.

        Args:
            available: The tools: selectors, names or a `ToolAvailability`.
            descriptions: Pairs of a selector and the text that stands for the tool's own.

        Raises:
            UnknownToolError: One of them is not a tool of this toolset.
        """
        offer = cls._members.offer
        return offer.describe(offer.chosen(available).definitions, descriptions)

    @classmethod
    def default_selectors(cls) -> tuple[_Selector[Any, Any], ...]:
        """Return the tools that are on."""
        return cls._members.offer.default.selectors

    @classmethod
    def offered(cls, available: Available = None) -> OfferedTools:
        """Return the tools that a turn offers, with their definitions.

        Args:
            available: A `ToolAvailability`, or selectors; by default the tools that are on.

        Raises:
            UnknownToolError: A selector or name is not a tool of the toolset.
        """
        return cls._members.offer.resolve(available)

    @classmethod
    def loaded_tools(
        cls, said: HasTranscript | Transcript | Iterable[TranscriptItem], /
    ) -> tuple[_Selector[Any, Any], ...]:
        """Return the deferred tools that a conversation has loaded, in the order in which it did.

        A turn of a session offers them by itself. Without a session, offer them as
        `ToolAvailability.default_plus(AppTools.loaded_tools(transcript))`.

        A tool is loaded by a result of a `tool_search()` of this toolset that is a success and
        names it. Other names in such a result are ignored, also in a transcript that came from
        elsewhere, so only deferred tools are loaded.

        Args:
            said: A transcript, a session, or items of one. In a transcript or a session, each item
                is read once, even if you ask often.

        Raises:
            MisuseError: It has another kind, or an item has.
        """
        from .._toolsets.offer import loaded_from

        return loaded_from(cls._members.offer, said)

    @classmethod
    def select(cls, selector: AnySelector | str) -> tuple[_Selector[Any, Any], ...]:
        """Find every member that a selector or wire name stands for.

        A member of a nested toolset stands for each path on which that toolset is nested here.

        Raises:
            UnknownToolError: There is none.
        """
        return cls._members.find(selector)

    @classmethod
    def parse_tool_call(cls, metadata: ToolMetadata) -> AnyToolCall:
        """Decode one call, by the name of its tool or its stand-in, whether it is on or off.

        Raises:
            UnknownToolError: There is no tool of that name.
            InvalidArgumentsError: The arguments do not fit; the error names every failing field.
        """
        try:
            # Tried rather than asked: nearly every name is a tool's, and a name that goes out as
            # another is looked for only where that fails.
            selector = cls._members.by_name[metadata.name]
        except KeyError:
            members = cls._members
            name = own_name(metadata.name, members.by_name)
            if name not in members.by_name:
                raise members.unknown(name, by_model=True) from None
            return _decode()(members.by_name[name], replace(metadata, name=name)).call  # type: ignore[no-any-return]
        except AttributeError:
            raise MisuseError(
                f"parse_tool_call takes a ToolMetadata, not {shorten(metadata)}. Make one with "
                "`ToolMetadata(id=..., name=..., arguments=...)`."
            ) from None
        return _decode()(selector, metadata).call  # type: ignore[no-any-return]

    @classmethod
    @overload
    def read_turn(
        cls, turn: AssistantTurn, available: Available = None, *, redact: bool = False
    ) -> NeedsTools[Self] | Finished: ...
    @classmethod
    @overload
    def read_turn(
        cls,
        turn: AssistantTurn,
        available: Available = None,
        *,
        answer: Answer[A1] | TypeForm[A1],
        redact: bool = False,
    ) -> NeedsTools[Self, A1] | Finished[A1] | NoAnswer: ...
    @classmethod
    def read_turn(
        cls,
        turn: AssistantTurn,
        available: Available = None,
        *,
        answer: Any = None,
        redact: bool = False,
    ) -> Any:
        """Read a turn of the model: does it need tools, or is it an answer?

        Args:
            turn: The turn, as a dialect decoded it.
            available: The tools that were on offer: a `ToolAvailability`, or selectors; by default
                the tools that are on.
            answer: The type of the final answer that was asked for, or an `Answer`.
            redact: Hide the values that the model sent in what it is told about invalid arguments.

        Raises:
            DuplicateToolCallIdError: Two calls of the turn share an id.
            ToolConstraintError: `available` names a tool that is not there, or a tool has the name
                of the answer.
        """
        try:
            offer = cls._members.offer
            offered = offer.default if available is None else offer.resolve(available)
        except UnknownToolError as error:
            # The name came from the program here, not from the model.
            raise ToolConstraintError(f"The turn cannot be read: {error}") from error
        asked = None
        if answer is not None:
            from .._round.round import check_answer
            from .._toolsets.answer import answer_of

            asked = answer_of(answer)
            check_answer(cls, asked)
        return _reader()(cls, turn, offered, redact, asked)

    @classmethod
    def load_plan(
        cls, text: str, *, key: bytes | None = None, binding: str | None = None
    ) -> ToolRoundPlan[Self]:
        """Load a plan that `plan.dump_json()` saved.

        Args:
            text: What was saved.
            key: The key that the plan was dumped with, if any.
            binding: What the plan was dumped as belonging to, if anything.

        Raises:
            PlanError: The text is not a plan, was edited, is bound to something else, or was made
                for tools that have changed.
        """
        from .._round.plan import ToolRoundPlan
        from .._round.plan_json import load_plan

        return ToolRoundPlan(load_plan(cls, text, key, binding))

    @classmethod
    def open_plan(
        cls, record: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
    ) -> ToolRoundPlan[Self]:
        """Open a plan of what a store of your own has: see `plan.round_record`.

        Nothing of it is sealed: what your store gives has to be what it was given. A call that
        was started is running, and does not start again. If whoever ran it is gone, add an entry
        with the step `{"kind": "abandoned", "at": ...}`.

        Args:
            record: What `plan.round_record()` gave.
            entries: What `plan.entries_since()` gave since then, all of it, in any order.

        Raises:
            PlanError: They are damaged, an entry is missing, or a tool that an open call needs is
                gone or has changed.
            MisuseError: They are no dicts.
        """
        from .._round.entries import open_plan
        from .._round.plan import ToolRoundPlan

        return ToolRoundPlan(open_plan(cls, record, entries))

    @classmethod
    def dump_session(
        cls,
        session: Session,
        plan: ToolRoundPlan[Self] | None = None,
        *,
        key: bytes | None = None,
        binding: str | None = None,
    ) -> str:
        """Save a conversation as one text: transcript, id, and the plan of the open round.

        The plan is closed here, as by `plan.dump_json()`. Ephemeral messages are not kept.

        Args:
            session: The conversation.
            plan: The plan of the round that is open, if there is one.
            key: A secret to seal the text with, so that a change of it is noticed.
            binding: What the conversation belongs to, such as a user: it is sealed with it, and
                loads with the same text only.

        Raises:
            MisuseError: It is not a session, or the plan belongs to another toolset.
            RoundClosedError: The round has ended.
            LifecycleError: Hooks of a newer plan of the round decided about a call.
            PlanError: A call has ended or waits, and this was not recorded: see `plan.record`. Or
                a ticket or payload is not JSON data. Nothing is closed.
            TranscriptError: A payload of the transcript is not JSON data; nothing is closed.

        Example:
            >>> from lutum_py import Session, Toolset
            >>> session = Session(id="chat-7")
            >>> session.push_user("Hello")
            >>> restored = Toolset.load_session(Toolset.dump_session(session))
            >>> restored.session.id, len(restored.session.transcript), restored.plan
            ('chat-7', 1, None)
        """
        from .saved_session import dump_session
        from .session import Session as Conversation

        MisuseError.check("dump_session", "session", "a Session", session, Conversation)
        return dump_session(cls, session.id, session.transcript, plan, (key, binding))

    @classmethod
    def load_session(
        cls, text: str | bytes, *, key: bytes | None = None, binding: str | None = None
    ) -> Restored[Self]:
        """Load a conversation that `dump_session` saved.

        Args:
            text: What was saved.
            key: The key that it was saved with, if any.
            binding: What it was saved as belonging to, if anything.

        Raises:
            PlanError: The text is not a session, was edited, is bound to something else, or its
                plan was made for tools that have changed.
            TranscriptError: The transcript would be invalid.
        """
        from .saved_session import load_session
        from .session import Restored, Session

        id, transcript, plan = load_session(cls, text, key, binding)
        return Restored(Session(transcript, id=id), plan)

    @staticmethod
    def of(
        name: str,
        /,
        *tools: ToolFn[..., Any] | HasSpec[Any, Any] | type[BaseModel] | ToolDef | AnySelector,
        prefix: str = "",
        result_cap: ResultCap | None = UNSET,
        timeout: float | None = UNSET,
        needs_approval: Condition = UNSET,
    ) -> type[Toolset]:
        """Make a toolset at run time of tools as `tool()` takes them.

        The same tools with the same name make the same class, which pickles if they do. Its members
        are `toolset["wire_name"]`.

        Args:
            name: The name of the class.
            tools: Functions, bound methods, input models and definitions; `tool(x, off=True)` for
                one that is off.
            prefix: Put before the wire name of each tool.
            result_cap: Bound what the model reads of the results of tools that have no bound of
                their own.
            timeout: Seconds that a run may take, for tools that set no timeout.
            needs_approval: Whether calls wait for an approval, for tools that do not say.

        Raises:
            ToolDefinitionError: Something is not a tool, two tools share a wire name, or an option
                is of the wrong kind.

        Example:
            >>> from lutum_py import Toolset, tool_fn
            >>> @tool_fn
            ... def ping() -> str:
            ...     return "pong"
            >>> Toolset.of("Net", ping, prefix="net_")["net_ping"]
            <Selector Net.net_ping: 'net_ping'>
        """
        from .._toolsets.runtime_toolset import toolset_of

        made: Any = toolset_of(
            name,
            tools,
            MemberOptions(
                prefix=prefix,
                result_cap=result_cap,
                timeout=timeout,
                needs_approval=needs_approval,
            ),
        )
        return made  # type: ignore[no-any-return]

    @staticmethod
    def from_definitions(
        name: str,
        definitions: Iterable[ToolDef],
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> type[Toolset]:
        """Make a toolset at run time, of tools that are known by JSON schemas only.

        Inputs are plain dicts, checked with the package `jsonschema`. If the name of a tool is not
        a Python name, use `toolset["its-name"]`.

        Args:
            name: The name of the class.
            definitions: The tools; `ToolDef.from_json_schema` makes one.
            functions: The functions of the tools, by wire name. Each takes the arguments as one
                dict, and whatever else a `@tool_fn` may take. Such a toolset is never shared with
                an equal one, and does not pickle.

        Raises:
            MissingExtraError: The package `jsonschema` is not installed.
            ToolDefinitionError: Two tools share a name, a schema is invalid, or a function has no
                definition or cannot take the arguments.
        """
        from .._toolsets.runtime_toolset import toolset_from_definitions

        if not isinstance(definitions, Iterable):
            raise MisuseError(
                f"from_definitions takes a list of ToolDefs, not {shorten(definitions)}. Make them "
                "with `ToolDef.from_json_schema(name=..., input_schema=...)`."
            )
        made: Any = toolset_from_definitions(name, tuple(definitions), functions)
        return made  # type: ignore[no-any-return]


# Kept, and not imported again: a sandbox that lets this package through gives what it imports later
# classes of its own, and two classes of one name know nothing of each other.


@cache
def _hook_set() -> Any:
    from .._hooks.hook_set import HookSet

    return HookSet


@cache
def _handlers() -> Any:
    from .._toolsets.handlers import Handlers

    return Handlers


@cache
def _decode() -> Any:
    from .._call.call_state import DecodedCall

    return DecodedCall.decode


@cache
def _reader() -> Any:
    """Load what reads turns with the first turn: a tool is declared without it."""
    from .._round.round import read_turn

    return read_turn
