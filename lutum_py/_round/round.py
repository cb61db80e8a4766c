"""`ToolRound`: a model's turn that asks for tools, and how it is read.

A turn without calls is an answer, see `finished`. The text for a call of a tool that is unknown or
not on offer is in `_toolsets.offer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Never, NoReturn, final

from typing_extensions import TypeVar

from .._call.base_call import CallRecord
from .._call.call import AnyToolCall, NotEnded
from .._call.call_state import DecodedCall
from .._call.drivers import drive_sync
from .._call.history import CallRound
from .._call.outcomes import RecoverableToolCallIssue
from .._schema.schema_reader import names_in
from .._text.escaping import compared_together, escape_unprintable, quoted
from .._text.immutable import settle
from .._text.json import shorten
from .._text.names import OwnNames, own_name, stand_in
from .._toolsets.answer import Answer
from .._toolsets.members import members_of
from .._toolsets.offer import NotOnOffer, OfferedTools
from .._transcript.assistant import AssistantTurn, ToolMetadata
from .._transcript.result import ToolResult
from .._transcript.transcript import CommittedRound, joined
from ..errors import (
    DuplicateToolCallIdError,
    InvalidArgumentsError,
    MisuseError,
    ToolConstraintError,
    ToolRoundArityError,
)
from .ending import ResultLike
from .finished import (
    Finished,
    TextResult,
    TurnProperties,
    answer_calls,
    blocked,
    read_text,
)
from .plan import OpenCalls, ToolRoundPlan, unasked
from .sorted_calls import RoundState

if TYPE_CHECKING:
    from .._transcript.transcript import HasTranscript, Transcript

T_co = TypeVar("T_co", covariant=True)
AN_co = TypeVar("AN_co", covariant=True, default=Never)


class ToolRound(TurnProperties, OpenCalls[T_co], Generic[T_co, AN_co]):
    """Hold the calls of one turn, which is not in a transcript yet.

    Attributes:
        turn: The turn of the model, as it came.
        tool_calls: The calls that can be run, decoded, in order.
        recoverable_tool_call_issues: The calls that cannot be used, and why.
        toolset: The toolset that the calls were read with.
        answer: The final answer, if one was asked for and came beside the calls; else None.
        answered: The result of the call that gave it, if one did.
    """

    __slots__ = ("_answer", "_answered")
    _WHAT = "Round"

    turn: AssistantTurn
    toolset: type[T_co]
    tool_calls: tuple[AnyToolCall, ...]
    answer: AN_co | None
    answered: tuple[ToolResult, ...]
    _answer: AN_co | None
    _answered: tuple[ToolResult, ...]

    def __init__(
        self, state: RoundState, answer: AN_co | None, answered: tuple[ToolResult, ...]
    ) -> None:
        self._state = state
        self._answer, self._answered = answer, answered

    if not TYPE_CHECKING:  # `settle` lets them refuse assignments
        turn = property(attrgetter("_state.turn"))
        toolset = property(attrgetter("_state.toolset"))

        @property
        def tool_calls(self) -> tuple[AnyToolCall, ...]:
            """The calls that can be run, decoded, in order."""
            return self._state.shown(self._state.calls)

    @property
    def request_id(self) -> str | None:
        """The provider's id of the response."""
        return self.turn.request_id

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self.turn.model

    def expect_one(self) -> AnyToolCall:
        """Return the only call.

        Raises:
            ToolRoundArityError: There is none, or there are several.
        """
        if len(self.tool_calls) != 1:
            raise self._arity("exactly one")
        return self.tool_calls[0]

    def expect_at_most_one(self) -> AnyToolCall | None:
        """Return the only call, or None.

        Raises:
            ToolRoundArityError: There are several.
        """
        if len(self.tool_calls) > 1:
            raise self._arity("at most one")
        return self.tool_calls[0] if self.tool_calls else None

    def _arity(self, expected: str) -> ToolRoundArityError:
        calls = ", ".join(f"`{call.name}` ({call.id!r})" for call in self.tool_calls[:10]) or "none"
        more = f" and {len(self.tool_calls) - 10} more" if len(self.tool_calls) > 10 else ""
        return ToolRoundArityError(
            f"Expected {expected} usable tool call, got {len(self.tool_calls)}: {calls}{more}. "
            "Handle them all in a loop over `round.tool_calls`, or ask for no parallel calls with "
            "`.parallel_tool_calls(False)`."
        )

    def plan(self) -> ToolRoundPlan[T_co]:
        """Return the plan without any hooks: every usable call is pending.

        The rules of its tool review each call. If its tool is declared with
        `needs_approval=`, the call waits if that says so.

        Raises:
            MisuseError: A rule or a condition of `needs_approval=` is async; it is a `TypeError`.
            HookError: One raised, or gave something that is no verdict; the round can be
                used again.
        """
        state = self._state
        if not members_of(state.toolset).needs_review:
            return ToolRoundPlan(state)
        return drive_sync(unasked(state), "`await round.apply_hooks(hooks)`")

    def resolve(self, results: Iterable[ResultLike | NotEnded] = ()) -> CommittedRound:
        """Close the round without hooks or a transcript; see `ToolRoundPlan.resolve`."""
        return self.plan().resolve(results)

    def commit(
        self, target: HasTranscript | Transcript, results: Iterable[ResultLike | NotEnded] = ()
    ) -> CommittedRound:
        """Commit the round without hooks; see `ToolRoundPlan.commit`."""
        return self.plan().commit(target, results)

    def abort(
        self,
        target: HasTranscript | Transcript,
        reason: str,
        results: Iterable[ResultLike | NotEnded] = (),
    ) -> CommittedRound:
        """Close the round early; see `ToolRoundPlan.abort`."""
        return ToolRoundPlan[T_co](self._state).abort(target, reason, results)

    def __repr__(self) -> str:
        names = escape_unprintable(", ".join(call.name for call in self.tool_calls[:5]))
        calls = f"{len(self.tool_calls)} calls" + (f" ({names})" if names else "")
        issues = len(self.recoverable_tool_call_issues)
        unusable = f", {issues} unusable" if issues else ""
        return f"<round of {self.toolset.__qualname__}: {calls}{unusable}>"


settle(
    ToolRound,
    "how a round stands is changed by its methods, and by those of its plans.",
    *("turn", "toolset", "tool_calls", "answer", "answered"),
)
settle(OpenCalls, "it is what the turn has.", "recoverable_tool_call_issues")


# Read from a turn.


@final
@dataclass(frozen=True, slots=True, init=False)
class NeedsTools(Generic[T_co, AN_co]):
    """The model asks for tools: run the round, and ask the model again."""

    round: ToolRound[T_co, AN_co]

    def __init__(self, round: ToolRound[T_co, AN_co]) -> None:  # noqa: A002 - as the field is named
        _set_round(self, round)  # as `ToolMetadata` does

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"NeedsTools has no `{name}`: the model asks for tools, and has not answered yet. "
                "Run the calls of `.round`, commit it, and ask again; tell the two apart with "
                "`match` or `isinstance(outcome, NeedsTools)`."
            )


_set_round: Any = vars(NeedsTools)["round"].__set__


@compared_together()
def read_turn(
    toolset: Any,
    turn: AssistantTurn,
    offered: OfferedTools,
    redact: bool,
    answer: Answer[Any] | None = None,
) -> Any:
    """Decode the calls of a turn, in one pass; see `Toolset.read_turn`.

    Calls of a turn that was blocked are issues, whatever their arguments: the model, or whoever
    watches it, took them back. Whether the turn needs tools goes by its calls alone: hosts end
    such turns with any finish reason, and a call that is left unanswered makes a transcript that no
    provider takes.

    Raises:
        DuplicateToolCallIdError: Two calls share an id.
        MisuseError: It is not a turn.
    """
    if not isinstance(turn, AssistantTurn):
        raise MisuseError(
            f"read_turn takes an AssistantTurn, not {shorten(turn)}. Decode the provider's "
            "response first, as in `openai_chat.decode(response.to_dict(mode='json'))`."
        )
    metadatas = turn.tool_calls
    if not metadatas:
        return read_text(turn, answer, redact)
    if len(metadatas) > 1:
        _check_ids(metadatas)
    by_name = offered.by_name
    calls: list[DecodedCall] = []
    issues: list[RecoverableToolCallIssue] = []
    judge = _judge_of(turn) if turn._is_cut_short else None
    found = None if answer is None else answer_calls(turn, answer, redact)
    if found is not None and found.result is not None and len(metadatas) == 1:
        return Finished(TextResult(turn, found.value, joined(turn, (found.result,))))
    call_round = CallRound()
    first = call_round.first_entry()
    not_on_offer: NotOnOffer | None = None
    for metadata in metadatas:
        if found is not None and metadata.id in found.ids:
            issues += [found.issues[metadata.id]] if found.result is None else []
            continue
        selector = by_name.get(metadata.name)
        if selector is None:
            if not_on_offer is None:  # the first of them
                members = members_of(toolset)
                named = by_own_names(turn, OwnNames(names_known(members.by_name, answer)))
                if named is not turn:  # read again, which few turns are
                    return read_turn(toolset, named, offered, redact, answer)
                names = names_known(offered.by_name, answer)
                not_on_offer = NotOnOffer(members.offer, offered, names, turn.dialect)
            issues.append(not_on_offer.issue(metadata))
            continue
        if judge is not None and (issue := judge(metadata, selector)) is not None:
            issues.append(issue)
            continue
        try:
            calls.append(
                DecodedCall.decode(
                    selector, metadata, redact=redact, entry=first, call_round=call_round
                )
            )
        except InvalidArgumentsError as error:
            issues.append(
                RecoverableToolCallIssue(metadata, "invalid_arguments", str(error), error.fields)
            )
    value, answered = None, tuple[ToolResult, ...]()
    if found is not None and found.result is not None:  # the answer came beside the others
        value, answered = found.value, (found.result,)
    state = RoundState(toolset, turn, call_round, tuple(calls))
    if issues or answered:
        asked = {each.id: each for each in metadatas}
        ended: dict[str, ToolResult | RecoverableToolCallIssue] = {
            **{each.metadata.id: each for each in issues},
            **{each.id: each for each in answered},
        }
        state.unread = {
            id: CallRecord.unread(asked[id], first, of, call_round) for id, of in ended.items()
        }
    made: ToolRound[Any, Any] = ToolRound(state, value, answered)
    return NeedsTools(made)


def names_known(by_name: Mapping[str, object], answer: Answer[Any] | None) -> Collection[str]:
    """Return the names by which a turn may call: of tools, and of the answer's."""
    if answer is None or answer.by == "format":
        return by_name
    return {**by_name, answer.definition.name: answer}


def by_own_names(turn: AssistantTurn, names: OwnNames) -> AssistantTurn:
    """Return a turn with each tool called by its own name, in place of its stand-in."""
    return turn.with_calls(lambda call: replace(call, name=names.own(call.name)))


_NOTHING: Final = ("", "{}")
_OPEN: Final = ("additionalProperties", "patternProperties", "propertyNames", "minProperties")
"""By these, a schema without properties takes some all the same."""


def _judge_of(
    turn: AssistantTurn,
) -> Callable[[ToolMetadata, Any], RecoverableToolCallIssue | None]:
    """Return what finds the issues of calls whose turn was blocked or cut off."""
    if turn.is_blocked:
        return lambda metadata, _: blocked(metadata)
    # SDKs complete what was cut off: of `{"path": "/a", "only_em` they make `{"path": "/a"}`. So no
    # text shows that the last call is whole.
    last = None if turn.cut_off == "calls" else turn.tool_calls[-1]
    return lambda metadata, selector: (
        _cut_off(metadata, selector) if last is None or metadata is last else None
    )


def _cut_off(metadata: ToolMetadata, selector: Any) -> RecoverableToolCallIssue | None:
    # Nothing at all is fine for a tool without parameters. Of any other the call may have been
    # going on, and the model would be told about missing fields in place of the limit.
    is_blank = metadata.arguments.strip() in _NOTHING
    schema = selector.definition.input_schema
    is_open = any(schema.get(key, False) is not False for key in _OPEN)
    if is_blank and not is_open and not names_in(schema):
        return None
    text = (
        f"The call of tool {quoted(metadata.name)} was cut off by the limit on tokens: its "
        "arguments may be incomplete, so it was not run. Call it again, in smaller parts if it is "
        "long."
    )
    return RecoverableToolCallIssue(metadata, "invalid_arguments", text)


def _check_ids(metadatas: tuple[ToolMetadata, ...]) -> None:
    seen: set[str] = set()
    for metadata in metadatas:
        if metadata.id in seen:
            raise DuplicateToolCallIdError(
                f"Two calls of one turn have the id {metadata.id!r}, so no result could be told "
                "from the other. Nothing was added to the transcript; ask the model again.",
                call_id=metadata.id,
            )
        seen.add(metadata.id)


def check_answer(toolset: Any, answer: Answer[Any]) -> None:
    """Make sure that the tool of the answer has a name of its own.

    Raises:
        ToolConstraintError: A tool has that name.
    """
    name = answer.definition.name
    for each in (own_name(name, members_of(toolset).by_name), stand_in(name)):
        if answer.by == "tool" and each in toolset:
            raise ToolConstraintError(
                f"{toolset.__qualname__} has a tool `{each}`, and the answer is called `{name}`: "
                "the model could not tell them apart. Name the answer otherwise, as in "
                "`Answer(Invoice, name='invoice')`."
            )
