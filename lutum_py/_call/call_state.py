"""What one decoded call was called with, and what it would run with: its input.

`metadata` is what the model sent, and never changes. All that happened is in the history, see
`base_call`.

An input is a text, and the instance that validating this text produces; see `input_text`. The
history has the texts: what was proposed, and what each step `changed` made of it. The instance is a
cache. One that can be changed is copied or written out before anyone is lent it, so that a change
in place is found. For example, if a hook appends to `input.tags`:

    text before  {"tags":["a"]}      when the hook is given the instance, and appends
    text after   {"tags":["a","b"]}  a step `changed`, when the input is written out
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias
from warnings import warn

from .._schema.arguments import NOTHING, InputText, copied, keeps_rest, same
from .._text.immutable import settle
from .._text.json import compact_json, cut, digest_of
from .._transcript.assistant import ToolMetadata
from ..errors import LifecycleError, ToolInputError
from .base_call import SETTLED, BaseCall
from .history import (
    HOOK_PHASES,
    NO_ROUND,
    ON_RECORD,
    PICKLED,
    STAGES,
    CallStep,
    Move,
    Step,
    StepPhase,
    as_entry,
    first_entry,
    hook_key,
    move,
)

if TYPE_CHECKING:
    from typing import Self

    from .base_call import Reviewing
    from .spec import ToolSpec

_SUSPENDED = STAGES["suspended"]

Held: TypeAlias = tuple[int, Any, InputText | None]
"""The number of the entry that the input is from, the instance, and its text if it was written."""

MADE_LATER: Final[Any] = object()
"""Stands for an input that was given away, and is made again when it is asked for."""


class CallState(BaseCall):
    """Keep what is known of one call; `AnyToolCall` documents the attributes."""

    # _held  the input, and where in the history it is from
    # _lent  what the instance was like when it was lent to somebody who may change it: a copy of a
    #        shallow one, how a faithful one is written, else its text; None if it was not
    # _key   the idempotency key as it was read, and of which input
    __slots__ = ("_coerced", "_held", "_key", "_lent")

    spec: ClassVar[ToolSpec[Any, Any]]
    _no_round: ClassVar = NO_ROUND
    _begun = staticmethod(first_entry)
    coerced: tuple[str, ...]
    _coerced: tuple[str, ...]
    _held: Held
    _key: tuple[int, str] | None
    _lent: Any

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        *,
        selector: Any = None,
        coerced: tuple[str, ...] = (),
    ) -> None:
        # Such an input was not read from the model's text, so it cannot be made again from that.
        text = self.spec.arguments.whole(input)
        super().__init__(metadata, first_entry(time(), text=text))
        self._selector = self.spec.free_selector if selector is None else selector
        self._coerced = coerced
        self._held, self._lent = (0, input, text), None
        self._key = None

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
            arguments = self.spec.shown_input(self._text_of(step.detail))
        return super()._shown_step(step, arguments)

    def _copy_for(self, review: Reviewing | None) -> Self:
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
        arguments, held = self.spec.arguments, self._held
        if not arguments.is_fixed and held[1] is not MADE_LATER:
            # An instance that can be changed belongs to one call alone.
            self._lend()
            (number, _, text), lent = self._held, self._lent
            mine: Any = MADE_LATER
            if arguments.is_shallow and lent is not None:  # no other thread has started it
                mine = arguments.made_of(lent)
            held = (number, mine, text)
        made._held, made._lent, made._key = held, None, self._key
        return made

    def _take_over(self, draft: CallState, number: int) -> None:
        """Take the input of a draft, if it is in the history by now, at this number."""
        if self._input_at == number:
            self._held, self._lent = (number, *draft._held[1:]), draft._lent
            if self._stage is _SUSPENDED:
                self._freeze()

    def _freeze(self) -> None:
        arguments, text = self.spec.arguments, self._described
        # What is not faithful was proved a moment ago: what its text gave is held, and nobody has
        # it.
        if not arguments.is_fixed and (arguments.is_faithful or self._lent is not None):
            self._held, self._lent = (self._held[0], MADE_LATER, text), None

    # The input.

    def _text_of(self, text: InputText | None) -> InputText:
        """Return the text that a step has; None stands for the model's own."""
        if text is not None:
            return text.chosen or text
        held = self._held
        # Of an unpickled call, the first entry is the whole history.
        if held[0] == 0 and held[2] is not None and not self._is_rewritten:
            return held[2]
        read = self.selector._decode(self.metadata)._held[1]
        return self.spec.arguments.proposed(self.metadata.arguments, read)

    def _current(self) -> Held:
        """Return the present input, as far as it was made and described."""
        entries, held = self._entries, self._held
        number = entries[len(entries) - 1][2]
        if held[0] != number:
            texts = [each[-1] for each in entries[number][4] if each[0] in ("proposed", "changed")]
            text: InputText | None = texts[-1]
            held = (number, MADE_LATER, None if text is None else text.chosen or text)
            self._held, self._lent = held, None
        return held

    def _made(self) -> Held:
        """Return the present input, and make the instance if there is none."""
        entries, held = self._entries, self._held
        if held[0] != entries[len(entries) - 1][2]:  # asked here, too, since each call passes here
            held = self._current()
        if held[1] is MADE_LATER:
            number, _, text = held
            held = (number, self._made_of(text), text)
            self._held, self._lent = held, None
        return held

    def _made_of(self, text: InputText | None) -> Any:
        if text is None:
            # Nothing was ever changed, and the model's text always reads the same.
            return self.selector._decode(self.metadata)._held[1]
        return self.spec.read_again(text) if text.kept is NOTHING else copied(text.kept)

    @property
    def _input(self) -> Any:
        """The input for whoever only reads it."""
        return self._made()[1]

    @property
    def _described(self) -> InputText:
        """The text of the input as the history has it, whatever was done in place since."""
        number, input, text = self._current()
        if text is None:
            arguments = self.spec.arguments
            number, input, _ = self._made()
            was, lent = input, self._lent
            if lent is not None and self._is_touched:
                was = arguments.made_of(lent) if arguments.is_shallow else self._made_of(None)
            text = arguments.proposed(self.metadata.arguments, was)
            if not arguments.is_live:
                self._held = (number, input, text)
        if text.others and not text.is_proven:
            # Chosen once: how many defaults the text has. The last one, which is as sent, has none.
            input = self._made()[1]
            proof = self.spec.arguments.proof(text, input)
            found, input = (text.others[-1], input) if proof is None else proof
            text.chosen = None if found is text else found
            self._held = (number, input, found)
            return found
        return text

    @property
    def _shown(self) -> Any:
        """The input as plain data to be looked at: secrets masked, None without a JSON form."""
        return self.spec.shown_input(self._described)

    def _lend(self) -> Any:
        """Lend the input to somebody who may change it."""
        input = self._made()[1]
        arguments = self.spec.arguments
        if self._lent is not None or arguments.is_fixed:
            return input
        if arguments.is_shallow:
            self._lent = arguments.snapshot(input)
            return input
        if arguments.is_faithful and (written := arguments.written(input)) is not None:
            self._lent = written
            return input
        text = self._lent = self._described
        input = self._held[1]  # of two texts the other one may have been chosen
        if text.kept is NOTHING and (arguments.is_kept or text.json is None):
            text.kept = copied(input)
        return input

    def _lend_copy(self) -> Any:
        """Give an instance of their own to whoever judges: what is done to it is dropped."""
        input = self._made()[1]
        return input if self.spec.arguments.is_fixed else copied(input)

    def _give_away(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        arguments = self.spec.arguments
        if not arguments.is_faithful:
            self._described  # noqa: B018 - written before the tool may change what it shows
        number, input, text = self._made()
        if not arguments.is_fixed:
            self._held, self._lent = (number, MADE_LATER, text), None
        return input

    @property
    def _is_touched(self) -> bool:
        """Whether the instance was changed in place since it was lent."""
        lent, entries = self._lent, self._entries
        number, input, _ = self._held
        # Another thread may have started the call since it was lent.
        if lent is None or input is MADE_LATER or number != entries[len(entries) - 1][2]:
            return False
        arguments = self.spec.arguments
        if arguments.is_shallow:
            return not arguments.is_as_kept(input, lent)
        if lent.__class__ is bytes:
            return bool(arguments.written(input) != lent)
        return not same(lent.kept, input)

    def _differs(self, value: Any) -> bool:
        """Whether a value is another input than the call's, as the history has it."""
        arguments = self.spec.arguments
        if not arguments.is_kept:
            described = self._described
            return described.json is None or bool(described != arguments.whole(value))
        text = self._current()[2]
        known = self._input if text is None or text.kept is NOTHING else text.kept
        return not same(known, value)

    def _put_back(self) -> None:
        """Drop the instance that somebody may have changed: the call has a copy, or the text."""
        lent = self._lent
        if lent is None:
            return
        number, _, text = self._held
        made = self.spec.arguments.made_of(lent) if self.spec.arguments.is_shallow else MADE_LATER
        self._held, self._lent = (number, made, text), None

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
    ) -> Move:
        """Take another input, which is valid: a step `changed` with its text.

        Args:
            value: The input.
            text: Its text.
            by: Who changes it.
            phase: In which part of deciding.

        Returns:
            What was written.

        Raises:
            LifecycleError: The call has started, waits, or has ended.
        """
        # Its own time: what hooks say in a pass is written at the end, and is sorted by time.
        changed = move("changed", at=time(), by=by, phase=phase, detail=text)
        number = self._append_all((changed,))
        assert number is not None
        self._held, self._lent = (number, value, text), None
        return changed

    def _hold_changed(self, number: int, value: Any, text: InputText) -> None:
        """Take the input as it was changed in place, which leaves a key that was read before."""
        if self._key is not None and self._key[0] == self._held[0]:
            self._key = (number, self._key[1])
        self._held, self._lent = (number, value, text), None
        if self._stage is _SUSPENDED:
            self._freeze()

    def _changes(self) -> tuple[Move, Any, InputText] | None:
        """Find what was done to the input in place, as the call should start or wait.

        Returns:
            What will be written, the input, and its text; None if nothing was done.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        given = self._held[1]  # first: another thread may start the call, and have it
        if given is MADE_LATER or not self._is_touched:
            return None
        try:
            value, text = self._take(given)
        except ToolInputError:
            self._put_back()
            raise
        return move("changed", at=time(), detail=text), value, text

    def _take_changes(self) -> None:
        """Take in what was done to the input in place, by itself.

        Raises:
            ToolInputError: As `_changes`.
        """
        changed = self._changes()
        if changed is not None:
            number = self._append_all(changed[:1])
            assert number is not None
            self._hold_changed(number, *changed[1:])

    def _check_approved(self) -> None:
        if all(each.digest == self.digest for each in self._answers):
            return
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` is not started: its arguments are not those "
            "that were approved. Reject it, and let the model make another call."
        )

    def _changes_unstarted(self) -> tuple[Move, ...]:
        # What does not fit is described as it is, if it has a JSON form: the result counts in any
        # case, and the plan can be saved.
        value = self._held[1]
        is_there = value is not MADE_LATER and self._lent is not None
        if not (is_there and self._stage.may_start and self._is_touched):
            return ()
        try:
            text = self._take(value)[1]
        except ToolInputError as error:
            text = self.spec.arguments.whole(value)
            text.kept = copied(value)
            warn(
                f"Call {self.id!r} ends with an input that was changed in place and does not fit. "
                f"Its steps show the input as it is. {error}",
                UserWarning,
                stacklevel=4,
            )
        return () if text.json is None else (move("changed", detail=text),)

    def _prove(self) -> bool:
        """Make sure that validating the text of the input gives the input; what it gave is it.

        It is done before a person is shown the text, or the text goes elsewhere: once a text.
        """
        text = self._described
        if text.is_proven or text.json is None:
            return text.is_proven
        number, input, _ = self._made()
        proof = self.spec.arguments.proof(text, input)
        if proof is None:
            return False
        found, made = proof
        text.chosen = None if found is text else found
        self._held, self._lent = (number, made, found), None
        return True

    def _settle_text(self) -> None:
        """Let the call wait: what validating its text gives is what runs, whatever was there."""
        if not self._prove() and self._described.json is not None:
            number, _, text = self._held
            self._held, self._lent = (number, MADE_LATER, text), None

    def _unfit_text(self) -> str | None:
        """Say what is wrong with a text that does not fit any more, as a date that has passed."""
        if self._current()[1] is not MADE_LATER:
            return None
        try:
            self._made()
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
        if self._input_at:
            return True
        first = self._entries[0][4]
        return len(first) > 1 and any(each[0] == "changed" for each in first)

    # What the program reads and changes.

    @property
    def input(self) -> Any:
        """The decoded input. Assigning validates, and is refused once the call is approved.

        What is done to it in place is noticed when hooks review the call, or when it starts, waits
        or is saved, and validated then.
        """
        if self.spec.arguments.is_fixed and not self._answers:
            return self._input
        if self._stage.may_start and not self._answers:
            return self._lend()
        self._put_back()  # nobody reaches what was approved, or run
        return copied(self._input)

    @input.setter
    def input(self, value: Any) -> None:
        is_free = self._review is not None and self._review.edited is not None
        if self._stage is _SUSPENDED or (self._answers and not is_free):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        taken, text = self._take(value)
        if self._differs(taken):
            self._replace_input(taken, text)
        else:
            self._put_back()  # what was done in place before is not what was assigned

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
        path = [] if self._asked_by is None else [self.id]
        unset = [{"unset": text.unset}] if text.unset else []
        return digest_of([self.name, self.selector.definition.digest, text.data, *path, *unset])

    @property
    def idempotency_key(self) -> str:
        """A key for services that ask for one: the same everywhere, until the input is replaced.

        What is done to the input in place after the key was read does not change it.

        It is made of the call's id and digest. Some providers send no ids that differ from turn to
        turn, so if the conversation has an id, as in `Session(id=...)`, the key begins with that
        and the turn's place: `<id>/<place>/<digest>`.
        """
        return self._round.stored_in + self._round.key_prefix + self._own_key

    @property
    def _own_key(self) -> str:
        """The key without what it begins with."""
        number = self._input_at
        if self._key is None or self._key[0] != number:
            key = digest_of([self.id, self.digest]).removeprefix("sha256:")
            self._key = (number, key)
        return self._key[1]

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
        reason, cause = "it cannot be written", None
        try:
            compact_json(self.spec.arguments.to_data(self._input))
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
        _, input, text = self._current()
        given = None if input is MADE_LATER and text is not None else self._input
        steps = tuple(map(_without_hook, self._history))
        closed_by = self._round.closed_by
        call_round = self._round if closed_by == ON_RECORD else self._round.copy_as(PICKLED)
        state = (steps, self.coerced, text, call_round)
        return (_rebuild, (self.selector, self.metadata, given, state))


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
    held = (0, MADE_LATER if input is None and text is not None else input, text)
    made._held, made._lent, made._key = held, None, None
    return made


settle(CallState, SETTLED, "coerced")
