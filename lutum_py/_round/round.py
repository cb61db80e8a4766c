"""`ToolRound`: a model's turn that asks for tools, before anything is decided about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Never, Self

from typing_extensions import TypeVar

from .._call.call import AnyToolCall
from .._call.line import Kept, Step
from .._call.outcomes import NotEnded, RecoverableToolCallIssue, unread_call
from .._call.steps import drive_sync
from .._text.escaping import visible
from .._text.immutable import Immutable
from .._transcript.assistant import AssistantTurn, Usage
from .._transcript.result import ToolResult
from .._transcript.transcript import CommittedRound
from ..errors import ToolRoundArityError
from .ending import ResultLike
from .plan import OpenCalls, ToolRoundPlan, closed, unasked
from .sorted_calls import RoundState, SortedCalls

if TYPE_CHECKING:
    from .._transcript.place import Place
    from .._transcript.transcript import HasTranscript, Transcript

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
AN_co = TypeVar("AN_co", covariant=True, default=Never)


class _RoundFields(RoundState):
    toolset: Any
    tool_calls: tuple[AnyToolCall, ...]
    answer: Any
    answered: tuple[ToolResult, ...]
    __slots__ = tuple(__annotations__)


class ToolRound(Immutable, OpenCalls[T_co], _RoundFields, Generic[T_co, AN_co]):
    """Hold the calls of one turn, which is not in a transcript yet.

    Attributes:
        turn: The turn of the model, as it came.
        tool_calls: The calls that can be run, decoded, in order.
        recoverable_tool_call_issues: The calls that cannot be used, and why.
        toolset: The toolset that the calls were read with.
        answer: The final answer, where one was asked for and came beside the calls; else None.
        answered: The result of the call that gave it, if one did.
    """

    __slots__ = ()
    _WHAT = "Round"

    if TYPE_CHECKING:
        toolset: type[T_co]
        answer: AN_co | None

    def __setattr__(self, name: str, value: object) -> None:  # type: ignore[override]
        if not name.startswith("_"):  # how far the round has come is kept in private ones
            Immutable.__setattr__(self, name, value)
        object.__setattr__(self, name, value)

    @property
    def text(self) -> str:
        """What the model said beside its calls."""
        return self.turn.text

    @property
    def request_id(self) -> str | None:
        """The provider's id of the response."""
        return self.turn.request_id

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self.turn.model

    @property
    def finish_reason(self) -> str | None:
        """Why the turn ended, in the provider's own word."""
        return self.turn.finish_reason

    @property
    def usage(self) -> Usage | None:
        """What the turn cost."""
        return self.turn.usage

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

    def _stand_at(self, transcript: Transcript, place: Place, begins: str) -> None:
        """Set where the round was opened, and the prefix of its idempotency keys."""
        self._kept.key_begins = begins
        self._kept.place = place
        self._kept.transcript = transcript

    def _arity(self, expected: str) -> ToolRoundArityError:
        calls = ", ".join(f"`{call.name}` ({call.id!r})" for call in self.tool_calls[:10]) or "none"
        more = f" and {len(self.tool_calls) - 10} more" if len(self.tool_calls) > 10 else ""
        return ToolRoundArityError(
            f"Expected {expected} usable tool call, got {len(self.tool_calls)}: {calls}{more}. "
            "Handle them all in a loop over `round.tool_calls`, or ask for no parallel calls with "
            "`.parallel_tool_calls(False)`."
        )

    def __enter__(self) -> Self:
        """Open a block at whose end the round is discarded, if it is open still."""
        if self._plans is None:
            self._plans = []
        return self

    def __exit__(self, *error: object) -> None:
        plans, self._plans = self._plans or (), None
        if self._closed_by is None:
            begun = self._shown().begun()
            for plan in plans:
                begun |= plan.begun()
            self._leave(begun)

    def plan(self) -> ToolRoundPlan[T_co]:
        """Return the plan without any hooks: every usable call is pending.

        The rules of its tool are asked about each. Those whose tools are declared with
        `needs_approval=` wait, where that says so.

        Raises:
            MisuseError: A rule or a condition of `needs_approval=` is async; it is a `TypeError`.
            HookError: One raised, or gave something that is none of its answers; the round can be
                used again.
        """
        calls = self._shown()
        toolset: Any = self.toolset
        if not toolset._asks:
            return closed(calls)
        return drive_sync(unasked(calls), "`await round.apply_hooks(hooks)`")

    def _shown(self) -> SortedCalls:
        return SortedCalls(self, self.toolset, self.tool_calls)

    def _to_decide(self) -> SortedCalls:
        if self._kept.closed_by is not None:
            self._check_open()
        return SortedCalls(self, self.toolset, self.tool_calls)

    def resolve(self, results: Iterable[ResultLike | NotEnded] = ()) -> CommittedRound:
        """Close the round without hooks or a transcript; see `ToolRoundPlan.resolve`."""
        return self._ended(lambda plan: plan.resolve(results))

    def commit(
        self, target: HasTranscript | Transcript, results: Iterable[ResultLike | NotEnded] = ()
    ) -> CommittedRound:
        """Commit the round without hooks; see `ToolRoundPlan.commit`."""
        return self._ended(lambda plan: plan.commit(target, results))

    def _ended(self, end: Callable[[ToolRoundPlan[T_co]], CommittedRound]) -> CommittedRound:
        """End the round by a plan without hooks; if that fails, the plan was never seen."""
        plan = self.plan()
        try:
            return end(plan)
        except BaseException:
            for call in plan._calls:
                call._forget()
            raise

    def abort(
        self,
        target: HasTranscript | Transcript,
        reason: str,
        results: Iterable[ResultLike | NotEnded] = (),
    ) -> CommittedRound:
        """Close the round early; see `ToolRoundPlan.abort`."""
        return closed(self._shown()).abort(target, reason, results)

    def discard(self) -> None:
        """Close the round and forget the turn: the transcript stays as it is."""
        self._close("discarded")

    def __repr__(self) -> str:
        names = visible(", ".join(call.name for call in self.tool_calls[:5]))
        return f"<round of {self.toolset.__qualname__}: {len(self.tool_calls)} calls ({names})>"


def open_round(
    toolset: type[T],
    turn: AssistantTurn,
    tool_calls: tuple[AnyToolCall, ...],
    issues: tuple[RecoverableToolCallIssue, ...],
    kept: Kept,
    line: tuple[Step, ...],
    given: tuple[Any, ToolResult] | None = None,
) -> ToolRound[T, Any]:
    """Make a round; it refuses assignments from here on.

    Args:
        toolset: The toolset that the calls were read with.
        turn: The turn of the model, as it came.
        tool_calls: The calls that can be run.
        issues: The calls that cannot be used.
        kept: What the calls that can be run share with it.
        line: The line that each call begins with.
        given: The final answer with the result of its call, where it came beside the others.
    """
    made: Any = _RoundFields(turn, kept)
    made.toolset = toolset
    made.tool_calls = tool_calls
    made.answer, made.answered = None, ()
    if given is not None:
        made.answer, result = given
        made.answered = (result,)
    if issues or given is not None:
        asked = {each.id: each for each in turn.tool_calls}
        ended = {**{each.metadata.id: each for each in issues}, **{e.id: e for e in made.answered}}
        made._unread = {id: unread_call(asked[id], line, of, kept) for id, of in ended.items()}
    made.__class__ = ToolRound  # immutable from here on, see `frozen`
    opened: ToolRound[T, Any] = made
    return opened
