"""What one decoded call was called with, and what it would run with: its input.

`metadata` is what the model sent, and never changes. All that happened is in the history, see
`base_call`.

The data of the history is the truth of the input; the model instance is a cache of it. An instance
that can be changed is written down as JSON text before anyone is given it, so that a change in
place is found by comparing texts, and the instance that was given away is made again from its text.
Nothing is copied that has a JSON form. For example, if a hook appends to `input.tags`:

    text before  {"tags":["a"]}      shown to the hook, which appends
    text after   {"tags":["a","b"]}  another: a step `changed`, in a branch of its own
    the call that was shown          gets an instance of the text before, when it is asked for it
"""

from __future__ import annotations

from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._text.immutable import settle
from .._text.json import cut, digest_of, own_copy, parse_json
from .._text.on_demand import ONCE
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .base_call import SETTLED, BaseCall
from .history import NO_ROUND, CallStep, Step, StepPhase
from .lifecycle import STAGES

if TYPE_CHECKING:
    from typing import Self

    from .spec import ToolSpec

_SUSPENDED = STAGES["suspended"]

MADE_LATER: Final[Any] = object()
"""Stands for an input that was given away, and is made again when it is asked for."""


class CallState(BaseCall):
    """Keep what is known of one call; `AnyToolCall` documents the attributes."""

    __slots__ = ("_cache", "_coerced", "_text")

    spec: ClassVar[ToolSpec[Any, Any]]
    _no_round: ClassVar = NO_ROUND
    coerced: tuple[str, ...]
    _coerced: tuple[str, ...]
    _cache: Any
    _text: bytes | None

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        coerced: tuple[str, ...] = (),
    ) -> None:
        self._metadata = metadata
        self._selector = self.spec.free_selector if selector is None else selector
        self._coerced = coerced
        self._cache = input
        # Such an input was not read from the model's text, so it cannot be made again from that.
        self._text = None if self.spec.arguments.is_fixed else self.spec.arguments.to_text(input)
        self._raw = (time(),)
        self._branch = None
        self._round = NO_ROUND

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
        current = self._current
        return tuple(current._shown_step(step) for step in current._own_history)

    def _shown_step(self, step: Step, arguments: Any = None) -> CallStep:
        if step.kind in ("proposed", "changed"):
            detail = step.detail
            if step.kind == "proposed" and detail is None:
                # Written down when the input was changed.
                detail = self._current._own_history[0].detail
            if detail is None:  # never changed since, so that the input is still what it says
                arguments = self.spec.shown(self._written())
            else:
                with suppress(ValueError):
                    arguments = self.spec.shown(self.spec.read_again(detail))
        return super()._shown_step(step, arguments)

    def _clone(self) -> Self:
        current = self._current
        cls = type(self)
        made = cls.__new__(cls)
        made._metadata = self.metadata
        made._selector = self.selector
        made._coerced = self.coerced
        made._own_history = current._own_history
        made._branch = None
        made._round = self._round
        current._lend()
        # An instance that can be changed belongs to one call alone.
        made._cache = (
            current._cache
            if current.spec.arguments.is_fixed or current._text is None
            else MADE_LATER
        )
        made._text = current._text
        return made

    def _adopt(self, other: CallState) -> None:
        current = self._current
        current._cache, current._text = other._cache, other._text
        super()._adopt(other)

    # The input.

    @property
    def _input(self) -> Any:
        """The input for whoever only reads it."""
        current = self._current
        if current._cache is MADE_LATER:
            current._cache = current._made_input()
        return current._cache

    def _made_input(self) -> Any:
        if self._text is not None:
            return self.spec.read_again(self._text)
        # Nothing was ever changed, and the model's text always reads the same.
        return self.selector._decode(self.metadata)._cache

    def _written(self) -> Any:
        """The input as the history has it, whatever was done in place to the instance."""
        current = self._current
        if current._text is None or current._changed_text() is None:
            return current._input
        return current.spec.read_again(current._text)

    def _lend(self) -> Any:
        """Lend the input to somebody who may change it: the text says how it is now."""
        input = self._cache
        if input is MADE_LATER or self._branch is not None:
            input = self._input
        arguments = self.spec.arguments
        if self._text is None and not arguments.is_fixed:
            self._text = arguments.to_text(input)
        return input

    def _give_away(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        current = self if self._branch is None else self._current
        input = current._cache
        if input is MADE_LATER:
            input = current._made_input()
        arguments = current.spec.arguments
        if not arguments.is_fixed:
            if current._text is None and (not arguments.reads_same or current._is_rewritten):
                current._text = arguments.to_text(input)
                if current._text is None:  # without a JSON form there is nothing to compare it with
                    is_asked = self.selector.approval and not current._is_rewritten
                    return current._made_input() if is_asked else own_copy(input)
            current._cache = MADE_LATER
        return input

    def _changed_text(self) -> bytes | None:
        """Return the text of an input that was changed in place since it was given; else None."""
        text = self._text
        if text is None or self._cache is MADE_LATER:
            return None
        now = self.spec.arguments.to_text(self._cache)
        return None if now == text else now

    def _differs(self, value: Any) -> bool:
        """Whether a value is another input than the call's."""
        to_text = self.spec.arguments.to_text
        text = self._current._text or to_text(self._input)
        return text is None or text != to_text(value)

    def _put_back(self) -> None:
        """Drop the instance that somebody may have changed: the text still has the input."""
        if self._text is not None:
            self._cache = MADE_LATER

    def _replace_input(
        self,
        value: Any,
        by: str | None = None,
        phase: StepPhase | None = None,
    ) -> None:
        """Take another input, which is valid: a step `changed` with all of its data.

        Args:
            value: The input.
            by: Who changes it.
            phase: In which part of deciding.

        Raises:
            LifecycleError: The call has started, waits, or has ended.
        """
        current = self._current
        arguments = current.spec.arguments
        text = arguments.to_text(value)
        before = None
        if current._own_history[0].detail is None and not current._is_rewritten:
            # An input without a JSON form has no text, but counts as changed all the same.
            before = current._text or arguments.to_text(current._input) or b""
        with ONCE:
            current._append("changed", by=by, phase=phase, detail=text)
            if before is not None:
                first, *others = current._own_history
                current._own_history = (first._replace(detail=before), *others)
            current._cache = value
            current._text = None if arguments.is_fixed else text

    def _take_changes(self) -> None:
        """Take in what your own code did to the input in place, as the call should start or wait.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        current = self._current
        if current._text is None or current._changed_text() is None:
            return
        given = current._cache
        try:
            checked = current.spec.check_input(self.name, given)
        except ToolInputError:
            current._put_back()
            raise
        current._replace_input(checked)

    @property
    def _is_rewritten(self) -> bool:
        """Whether the program, a hook or a person replaced the input that was decoded."""
        first: Any = self._raw[0] if self._branch is None else self._history[0]
        if first.__class__ is tuple:
            first = first[0]
        # Written down with the first change; a bare time has not even been read.
        return first.__class__ is Step and first.detail is not None

    # What the program reads and changes.

    @property
    def input(self) -> Any:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        What is done to it in place is noticed when the call starts, and validated then.
        """
        current = self._current
        if current._text is None and current.spec.arguments.is_fixed:
            return current._cache
        if current._stage.may_start and not current._answers:
            return current._lend()
        current._put_back()  # nobody reaches what was approved, or run
        input = current._lend()
        current._put_back()
        return input

    @input.setter
    def input(self, value: Any) -> None:
        current = self._current
        if current._stage is _SUSPENDED or (current._answers and not current._round.is_editable):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        checked = self.spec.check_input(self.name, value)
        if current._differs(checked):
            current._replace_input(checked)
        else:
            current._put_back()  # what was done in place before is not what was assigned

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
        current = self._current
        if current._text is not None:
            return parse_json(current._text)
        try:
            return current.spec.arguments.to_data(current._input)
        except ValueError as error:  # pydantic's own error is one; that for deep nesting is plain
            hides = current.spec.has_secrets
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
        if self._branch is not None:
            self._check_newest(
                "started"
            )  # it could be started where nobody knows of the newer plan
        state = (self._history, self.coerced, self._current._text, self._round)
        return (_rebuild, (self.selector, self.metadata, self._input, state))


def _rebuild(
    selector: Any, metadata: ToolMetadata, input: Any, state: tuple[Any, ...]
) -> CallState:
    made: CallState = selector.Call.__new__(selector.Call)
    made._metadata, made._selector, made._cache = metadata, selector, input
    made._own_history, made._coerced, made._text, made._round = state
    made._branch = None
    return made


settle(CallState, SETTLED, "coerced")
