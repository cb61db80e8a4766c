"""What one decoded call was called with, and what it would run with: its input.

`metadata` is what the model sent, and never changes. All that happened is in the history, see
`base_call`.

An input is a text, and the instance that validating this text produces; see `input_text`. An
instance that can be changed is described before anyone is given it, so that a change in place is
found. For example, if a hook appends to `input.tags`:

    text before  {"tags":["a"]}      when the hook is given the instance, and appends
    text after   {"tags":["a","b"]}  a step `changed`, when the input is written out
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._schema.input_text import NOTHING, InputText, copied, keeps_rest, same
from .._text.immutable import settle
from .._text.json import compact_json, cut, digest_of
from .._text.on_demand import ONCE
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .base_call import SETTLED, BaseCall
from .history import NO_ROUND, CallStep, Step, StepPhase, was_begun
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
    _text: InputText | None

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
        self._text = None if self.spec.arguments.is_live else self.spec.arguments.whole(input)
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
            # Without one it was never changed since, so that the input is still what it says.
            arguments = self.spec.shown_input(self._described if detail is None else detail)
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
        if current._cache is not MADE_LATER:
            current._lend()
        # An instance that can be changed belongs to one call alone.
        made._cache = current._cache if current.spec.arguments.is_fixed else MADE_LATER
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
        text = self._text
        if text is None:
            # Nothing was ever changed, and the model's text always reads the same.
            return self.selector._decode(self.metadata)._cache
        return self.spec.read_again(text) if text.kept is NOTHING else copied(text.kept)

    @property
    def _described(self) -> InputText:
        """The text of the input as the history has it, whatever was done in place since."""
        current = self._current
        text = current._text
        if text is None:
            text = self.spec.arguments.proposed(self.metadata.arguments, current._input)
            if not self.spec.arguments.is_live:
                current._text = text
        if text.others and not text.is_proven:
            text = current._chosen(text)
        return text

    def _chosen(self, text: InputText) -> InputText:
        """Choose once how many defaults the text has: the last one, which is as sent, has none."""
        proof = self.spec.arguments.proof(text, self._cache)
        if proof is None:
            self._text = text.others[-1]
        else:
            self._text, self._cache = proof
        return self._text

    @property
    def _shown(self) -> Any:
        """The input as plain data to be looked at: secrets masked, None without a JSON form."""
        return self.spec.shown_input(self._described)

    def _lend(self) -> Any:
        """Lend the input to somebody who may change it: the text says how it is now."""
        arguments = self.spec.arguments
        text = None if arguments.is_fixed else self._described
        input = self._cache
        if input is MADE_LATER or self._branch is not None:
            input = self._input
        if text is not None and text.kept is NOTHING and (arguments.is_kept or text.json is None):
            text.kept = copied(input)
        return input

    def _lend_copy(self) -> Any:
        """Give an instance of their own to whoever judges: what is done to it is dropped."""
        current = self._current
        input = current._input
        return input if current.spec.arguments.is_fixed else copied(input)

    def _give_away(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        current = self if self._branch is None else self._current
        arguments = current.spec.arguments
        if not arguments.is_faithful:
            current._described  # noqa: B018 - written before the tool may change what it shows
        input = current._cache
        if input is MADE_LATER:
            input = current._made_input()
        if not arguments.is_fixed:
            current._cache = MADE_LATER
        return input

    @property
    def _is_touched(self) -> bool:
        """Whether the instance was changed in place since it was lent."""
        text, input = self._text, self._cache
        arguments = self.spec.arguments
        if text is None or input is MADE_LATER or arguments.is_fixed:
            return False
        if arguments.is_kept or text.json is None:
            return text.kept is not NOTHING and not same(text.kept, input)
        return bool(arguments.whole(input) != text)

    def _differs(self, value: Any) -> bool:
        """Whether a value is another input than the call's, as the history has it."""
        current = self._current
        arguments = self.spec.arguments
        if not arguments.is_kept:
            described = current._described
            return described.json is None or bool(described != arguments.whole(value))
        text = current._text
        known = current._input if text is None or text.kept is NOTHING else text.kept
        return not same(known, value)

    def _put_back(self) -> None:
        """Drop the instance that somebody may have changed: the text still has the input."""
        text, arguments = self._text, self.spec.arguments
        if text is None or arguments.is_fixed:
            return
        # Only what was lent has a copy, and nothing else can have been changed.
        if text.kept is not NOTHING or (not arguments.is_kept and text.json is not None):
            self._cache = MADE_LATER

    def _take(self, value: Any, *, by_name: bool = False) -> tuple[Any, InputText]:
        """Check an input that is to take the place of the call's, and describe it.

        Raises:
            ToolInputError: It does not fit, or no text describes it.
        """
        before = None
        if not self.spec.arguments.is_faithful:
            before = self._described
            if before.kept is NOTHING:
                before.kept = copied(self._input)
        return self.spec.take(self.name, value, before, by_name=by_name)

    def _replace_input(
        self,
        value: Any,
        text: InputText,
        by: str | None = None,
        phase: StepPhase | None = None,
    ) -> None:
        """Take another input, which is valid: a step `changed` with all of its data.

        Args:
            value: The input.
            text: Its text.
            by: Who changes it.
            phase: In which part of deciding.

        Raises:
            LifecycleError: The call has started, waits, or has ended.
        """
        current = self._current
        before = None
        if current._own_history[0].detail is None and not current._is_rewritten:
            before = current._described
        with ONCE:
            current._append("changed", by=by, phase=phase, detail=text)
            if before is not None:
                first, *others = current._own_history
                current._own_history = (first._replace(detail=before), *others)
            current._cache = value
            current._text = text

    def _take_changes(self) -> None:
        """Take in what your own code did to the input in place, as the call should start or wait.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        current = self._current
        if not current._is_touched:
            return
        try:
            taken = current._take(current._cache)
        except ToolInputError:
            current._put_back()
            raise
        current._replace_input(*taken)

    def _prove(self) -> bool:
        """Make sure that validating the text of the input gives the input; what it gave is it.

        It is done before a person is shown the text, or the text goes elsewhere: once a text.
        """
        current = self._current
        text = current._described
        if text.is_proven or text.json is None:
            return text.is_proven
        proof = current.spec.arguments.proof(text, current._input)
        if proof is None:
            return False
        current._text, current._cache = proof
        return True

    def _settle_text(self) -> None:
        """Let the call wait: what validating its text gives is what runs, whatever was there."""
        current = self._current
        if not current._prove() and current._described.json is not None:
            current._cache = MADE_LATER

    def _ready(self) -> None:
        """Make the input that the call starts with, once in a process.

        Raises:
            ToolInputError: What was changed in place does not fit, or the text does not any more,
                as a date that has passed; the input is as it was.
        """
        current = self._current
        self._take_changes()
        if current._cache is MADE_LATER and not current.spec.arguments.is_faithful:
            current._cache = current._made_input()

    def _unfit_text(self) -> str | None:
        """Say what is wrong with a text that does not fit any more, before the call starts."""
        current = self._current
        if current._cache is MADE_LATER and not was_begun(current._history):
            try:
                current._cache = current._made_input()
            except ToolInputError as error:
                return str(error)
        return None

    def _keeps_rest(self, value: Any, text: InputText) -> bool:
        """Whether an edit leaves all members of the input as they are that it does not change."""
        if self.spec.arguments.is_faithful:
            return True
        before = self._described
        try:
            made = self._input
        except ToolInputError:
            return False  # it does not fit any more, so nobody can tell
        return keeps_rest(made, before.data, value, text.data)

    @property
    def _unproven(self) -> str:
        """What the model reads of a call whose input its own arguments do not describe."""
        return (
            f"The arguments of tool `{self.name}` are invalid, so it was not run: read a second "
            "time, they mean something else, so nobody can be asked about them. Call it with other "
            "arguments."
        )

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
        arguments = current.spec.arguments
        if arguments.is_fixed and not current._answers:
            return current._input
        if current._stage.may_start and not current._answers:
            return current._lend()
        current._put_back()  # nobody reaches what was approved, or run
        return copied(current._input)

    @input.setter
    def input(self, value: Any) -> None:
        current = self._current
        if current._stage is _SUSPENDED or (current._answers and not current._round.is_editable):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        taken, text = current._take(value)
        if current._differs(taken):
            current._replace_input(taken, text)
        else:
            current._put_back()  # what was done in place before is not what was assigned

    @property
    def _input_or_data(self) -> Any:
        """The input to be looked at: as plain data if its text does not fit any more."""
        try:
            return self.input
        except ToolInputError:
            return self._described.data

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
        return self._digest_of(self._text_or_raise())

    def _digest_of(self, text: InputText) -> str:
        path = [] if self._history[0].by is None else [self.id]
        unset = [{"unset": text.unset}] if text.unset else []
        return digest_of([self.name, self.selector.definition.digest, text.data, *path, *unset])

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
        return self._text_or_raise().data

    def _text_or_raise(self) -> InputText:
        """Return the text of the input.

        Raises:
            ToolInputError: It has no JSON form.
        """
        text = self._described
        if text.json is not None:
            return text
        try:
            compact_json(self.spec.arguments.to_data(self._input))
            reason = "it cannot be written"  # pragma: no cover - what fails there fails here
        except (TypeError, ValueError, RecursionError) as error:
            hides = self.spec.has_secrets
            reason = "its text is hidden" if hides else cut(" ".join(str(error).split()), 200)
            cause = None if hides else error
        raise ToolInputError(
            f"The input of call {self.id!r} of tool `{self.name}` has no JSON form ({reason}). "
            "Assign an input that has, as in `call.input = ...`.",
            tool=self.name,
        ) from cause

    def __repr__(self) -> str:
        shown = self.spec.shown_json(self._described)
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r}, input={shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._branch is not None:
            self._check_newest(
                "started"
            )  # it could be started where nobody knows of the newer plan
        current = self._current
        is_made_later = current._cache is MADE_LATER and current._text is not None
        state = (self._history, self.coerced, current._text, self._round)
        given = None if is_made_later else self._input
        return (_rebuild, (self.selector, self.metadata, given, state))


def _rebuild(
    selector: Any, metadata: ToolMetadata, input: Any, state: tuple[Any, ...]
) -> CallState:
    made: CallState = selector.Call.__new__(selector.Call)
    made._metadata, made._selector = metadata, selector
    made._cache = MADE_LATER if input is None else input
    made._own_history, made._coerced, made._text, made._round = state
    made._branch = None
    return made


settle(CallState, SETTLED, "coerced")
