"""What one decoded call was called with, and what it would run with: its input.

`metadata` is what the model sent, and never changes. All that happened is in the history, see
`base_call`.

The history has the input as text: what was proposed is the model's own, and each step `changed` has
another. The instance is a cache of that. An instance that can be changed is written down as JSON
text before anyone is given it, so that a change in place is found by comparing texts, and the
instance that was given away is made again from its text. For example, if a hook appends to
`input.tags`:

    text before  {"tags":["a"]}      shown to the hook, which appends
    text after   {"tags":["a","b"]}  another: a step `changed`
"""

from __future__ import annotations

from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from .._text.immutable import settle
from .._text.json import cut, digest_of, own_copy, parse_json
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .base_call import SETTLED, BaseCall
from .history import (
    HOOK_PHASES,
    NO_ROUND,
    ON_RECORD,
    PICKLED,
    CallStep,
    Move,
    Step,
    StepPhase,
    as_entry,
    hook_key,
    new_history,
)
from .lifecycle import STAGES

if TYPE_CHECKING:
    from typing import Self

    from .decisions import Review
    from .spec import ToolSpec

_SUSPENDED = STAGES["suspended"]

Held: TypeAlias = tuple[int, Any, bytes | None]
"""The number of the entry that the input is from, the instance, and its text if it was written."""

MADE_LATER: Final[Any] = object()
"""Stands for an input that was given away, and is made again when it is asked for."""


class CallState(BaseCall):
    """Keep what is known of one call; `AnyToolCall` documents the attributes."""

    __slots__ = ("_coerced", "_held")

    spec: ClassVar[ToolSpec[Any, Any]]
    _no_round: ClassVar = NO_ROUND
    coerced: tuple[str, ...]
    _coerced: tuple[str, ...]
    _held: Held

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        coerced: tuple[str, ...] = (),
    ) -> None:
        (proposed,) = new_history(time())
        # Such an input was not read from the model's text, so it cannot be made again from that.
        text = self.spec.arguments.to_text(input)
        history = (proposed._replace(detail=text),)
        super().__init__(metadata, history)
        self._selector = self.spec.free_selector if selector is None else selector
        self._coerced = coerced
        self._held = (0, input, text)

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """What happened to the call, in order: each thing once.

        Example:
            >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
            >>> @tool_fn
            ... def add(a: int, b: int = 1) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     plus = tool(add)
            >>> call = Sums.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a":2}'))
            >>> _ = call.call_sync()
            >>> [step.kind for step in call.steps], call.steps[0].arguments
            (['proposed', 'started', 'ended'], {'a': 2, 'b': 1})
        """
        return tuple(self._shown_step(step) for step in self._history)

    def _shown_step(self, step: Step, arguments: Any = None) -> CallStep:
        if step.kind in ("proposed", "changed"):
            # A changed input without a JSON form has no text.
            with suppress(ValueError):
                if step.kind == "proposed" or step.detail is not None:
                    arguments = self.spec.shown(self._input_of(step.detail))
        return super()._shown_step(step, arguments)

    def _copy_for(self, review: Review | None) -> Self:
        """Make a call with the same history so far and input, which no plan holds."""
        cls = type(self)
        made = cls.__new__(cls)
        made._metadata, made._selector, made._coerced = (
            self._metadata,
            self._selector,
            self._coerced,
        )
        made._entries, made._flat = self._entries.copy(), None
        if review is not None and review.target is self:  # which may have grown since
            for number in range(review.since, len(made._entries)):
                del made._entries[number]
        made._round, made._review = self._round, review
        number, input, text = self._lent()
        # An instance that can be changed belongs to one call alone.
        is_shared = self.spec.arguments.is_fixed or text is None
        made._held = (number, input if is_shared else MADE_LATER, text)
        return made

    # The input.

    def _input_of(self, text: bytes | None) -> Any:
        """Make the input that a step has; None stands for the model's text."""
        if text is not None:
            return self.spec.read_again(text)
        return self.selector._decode(self.metadata)._held[1]

    def _made(self) -> Held:
        """Return the present input, and make the instance if there is none."""
        number = self._last.input
        held = self._held
        if held[0] != number:
            text: bytes | None = None
            for step in self._entries[number]:
                if step.kind in ("proposed", "changed"):
                    text = step.detail
            held = (number, MADE_LATER, text)
        if held[1] is MADE_LATER:
            held = (number, self._input_of(held[2]), held[2])
        self._held = held
        return held

    @property
    def _input(self) -> Any:
        """The input for whoever only reads it."""
        return self._made()[1]

    def _written(self) -> Any:
        """The input as the history has it, whatever was done in place to the instance."""
        _, input, text = self._made()
        return input if self._changed_text() is None else self._input_of(text)

    def _lent(self) -> Held:
        """Return the input with its text, if it can be changed: so its text says how it is now."""
        held = self._made()
        if held[2] is None and not self.spec.arguments.is_fixed:
            held = self._held = (held[0], held[1], self.spec.arguments.to_text(held[1]))
        return held

    def _lend(self) -> Any:
        """Lend the input to somebody who may change it."""
        return self._lent()[1]

    def _lend_copy(self) -> Any:
        """Lend an input to somebody whose changes are dropped."""
        _, input, text = self._lent()
        return input if text is None else self._input_of(text)

    def _give_away(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        number, input, text = self._made()
        arguments = self.spec.arguments
        if not arguments.is_fixed:
            if text is None and not arguments.reads_same:
                text = arguments.to_text(input)
                if text is None:  # without a JSON form there is nothing to compare it with
                    is_asked = self.selector.approval and not self._is_rewritten
                    return self._input_of(None) if is_asked else own_copy(input)
            if text is not None or not number:
                self._held = (number, MADE_LATER, text)
        return input

    def _changed_text(self) -> bytes | None:
        """Return the text of an input that was changed in place since it was lent; else None."""
        number, input, text = self._held
        if text is None or input is MADE_LATER or number != self._last.input:
            return None
        now = self.spec.arguments.to_text(input)
        return None if now == text else now

    def _differs(self, value: Any) -> bool:
        """Whether a value is another input than the call's."""
        to_text = self.spec.arguments.to_text
        _, input, text = self._made()
        text = text or to_text(input)
        return text is None or text != to_text(value)

    def _put_back(self) -> None:
        """Drop the instance that somebody may have changed: the text still has the input."""
        number, _, text = self._held
        if text is not None:
            self._held = (number, MADE_LATER, text)

    def _changed_to(
        self, value: Any, by: str | None = None, phase: StepPhase | None = None
    ) -> Move:
        """Return the step by which the call gets another input, which is valid."""
        text = self.spec.arguments.to_text(value)
        # Its own time: what hooks say in a pass is written at the end, and is sorted by time.
        return "changed", {"at": time(), "by": by, "phase": phase, "detail": text}

    def _replace_input(
        self, value: Any, by: str | None = None, phase: StepPhase | None = None
    ) -> Move:
        """Take another input, which is valid: a step `changed` with all of its data.

        Args:
            value: The input.
            by: Who changes it.
            phase: In which part of deciding.

        Returns:
            What was written.

        Raises:
            LifecycleError: The call has started, waits, or has ended.
        """
        move = self._changed_to(value, by, phase)
        number = self._append_all(move)
        assert number is not None
        self._held = (number, value, move[1].get("detail"))
        return move

    def _take_changes(self) -> None:
        """Take in what your own code did to the input in place, as the call should start or wait.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        if self._changed_text() is None:
            return
        given = self._held[1]
        try:
            checked = self.spec.check_input(self.name, given)
        except ToolInputError:
            self._put_back()
            raise
        self._replace_input(checked)

    @property
    def _is_rewritten(self) -> bool:
        """Whether the program, a hook or a person replaced the input that was decoded."""
        if self._last.input:
            return True
        first = self._entries[0]
        return len(first) > 1 and any(step.kind == "changed" for step in first)

    # What the program reads and changes.

    @property
    def input(self) -> Any:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        What is done to it in place is noticed when the call starts, and validated then.
        """
        if self.spec.arguments.is_fixed:
            return self._input
        if self._stage.may_start and not self._answers:
            return self._lend()
        self._put_back()  # nobody reaches what was approved, or run
        return self._lend_copy()

    @input.setter
    def input(self, value: Any) -> None:
        if self._stage is _SUSPENDED or (self._answers and self._review is None):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        checked = self.spec.check_input(self.name, value)
        if self._differs(checked):
            self._replace_input(checked)
        else:
            self._put_back()  # what was done in place before is not what was assigned

    @property
    def parts(self) -> tuple[ToolMetadata, Any]:
        """The metadata and the input."""
        return (self.metadata, self.input)

    @property
    def digest(self) -> str:
        """A digest of the tool, its schema and the final arguments.

        One that is within another call is told by its id as well: what is decided about
        `c1/2` says nothing of `c1/3` with the same arguments.
        """
        return self._digest_of(self.final_arguments)

    def _digest_of(self, arguments: Any) -> str:
        path = [] if self._history[0].by is None else [self.id]
        return digest_of([self.name, self.selector.definition.digest, arguments, *path])

    @property
    def idempotency_key(self) -> str:
        """A key for services that ask for one: the same everywhere, until the input changes.

        It is made of the call's id and digest. Some providers send no ids that differ from turn to
        turn, so if the conversation has an id, as in `Session(id=...)`, the key begins with that
        and the turn's place: `<id>/<place>/<digest>`.
        """
        return self._round.key_prefix + self._own_key

    @property
    def _own_key(self) -> str:
        """The key without what it begins with."""
        return digest_of([self.id, self.digest]).removeprefix("sha256:")

    @property
    def final_arguments(self) -> Any:
        """The arguments as they would run, as plain data, with secrets as they are.

        It is for gates, and never to be shown: what is shown is masked, as in `plan.calls`.
        """
        _, input, text = self._made()
        if text is not None:
            return parse_json(text)
        try:
            return self.spec.arguments.to_data(input)
        except ValueError as error:  # pydantic's own error is one; that for deep nesting is plain
            hides = self.spec.has_secrets
            reason = "its text is hidden" if hides else cut(" ".join(str(error).split()), 200)
            raise ToolInputError(
                f"The input of call {self.id!r} of tool `{self.name}` has no JSON form ({reason}). "
                "Assign an input that has, as in `call.input = ...`.",
                tool=self.name,
            ) from (None if hides else error)

    def __repr__(self) -> str:
        shown = self.spec.shown_repr(self._input)
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r}, input={shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        _, input, text = self._made()
        steps = tuple(map(_without_hook, self._history))
        closed_by = self._round.closed_by
        call_round = self._round if closed_by == ON_RECORD else self._round.copy_as(PICKLED)
        state = (steps, self.coerced, text, call_round)
        return (_rebuild, (self.selector, self.metadata, input, state))


def _without_hook(step: Step) -> Step:
    """Return a step as it travels: with the name of a hook, since few functions can be pickled."""
    is_hook = step.kind == "reviewed" and step.phase in HOOK_PHASES
    return step._replace(detail=hook_key(step.detail)) if is_hook else step


def _rebuild(
    selector: Any, metadata: ToolMetadata, input: Any, state: tuple[Any, ...]
) -> CallState:
    made: CallState = selector.Call.__new__(selector.Call)
    history, made._coerced, text, call_round = state
    BaseCall.__init__(made, metadata, as_entry(history), call_round)
    made._selector = selector
    made._held = (0, input, text)
    return made


settle(CallState, SETTLED, "coerced")
