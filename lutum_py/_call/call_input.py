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
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from warnings import warn

from pydantic import ValidationError

from .._schema.arguments import NOTHING, InputText, copied, keeps_rest, same
from .._text.escaping import escape_unprintable, words_of
from .._text.json import compact_json, cut, digest_of, shorten
from .._transcript.assistant import ToolMetadata
from ..errors import (
    FieldIssue,
    InvalidArgumentsError,
    LifecycleError,
    MisuseError,
    ToolInputError,
)
from .base_call import CallRecord
from .history import STAGES, Move, StepPhase, move

if TYPE_CHECKING:
    from .spec import AnySpec

_SUSPENDED = STAGES["suspended"]

Held: TypeAlias = tuple[int, Any, InputText | None]
"""The number of the entry that the input is from, the instance, and its text if it was written."""

MADE_LATER: Final[Any] = object()
"""Stands for an input that was given away, and is made again when it is asked for."""


class CallInput(CallRecord):
    """Keep the input of one call of a tool: `DecodedCall` without what runs and ends it.

    Attributes:
        spec: Its tool.
        held: The input, and where in the history it is from.
        lent: What the instance was like when it was lent to somebody who may change it: a copy of a
            shallow one, how a faithful one is written, else its text; None if it was not.
        key: The idempotency key as it was read, and of which input.
    """

    __slots__ = ("held", "key", "lent", "spec")

    spec: AnySpec
    held: Held
    key: tuple[int, str] | None
    lent: Any

    def text_of(self, text: InputText | None) -> InputText:
        """Return the text that a step has; None stands for the model's own."""
        if text is not None:
            return text.chosen or text
        held = self.held
        # Of an unpickled call, the first entry is the whole history.
        if held[0] == 0 and held[2] is not None and not self.is_rewritten:
            return held[2]
        read = read_input(self.spec, self.selector.name, self.metadata)
        return self.spec.arguments.proposed(self.metadata.arguments, read)

    def current(self) -> Held:
        """Return the present input, as far as it was made and described."""
        entries, held = self.entries, self.held
        number = entries[len(entries) - 1][2]
        if held[0] != number:
            texts = [each[-1] for each in entries[number][4] if each[0] in ("proposed", "changed")]
            text: InputText | None = texts[-1]
            held = (number, MADE_LATER, None if text is None else text.chosen or text)
            self.held, self.lent = held, None
        return held

    def _made(self) -> Held:
        """Return the present input, and make the instance if there is none."""
        entries, held = self.entries, self.held
        if held[0] != entries[len(entries) - 1][2]:  # asked here, too, since each call passes here
            held = self.current()
        if held[1] is MADE_LATER:
            number, _, text = held
            held = (number, self._made_of(text), text)
            self.held, self.lent = held, None
        return held

    def _made_of(self, text: InputText | None) -> Any:
        if text is None:
            # Nothing was ever changed, and the model's text always reads the same.
            return read_input(self.spec, self.selector.name, self.metadata)
        return self.spec.read_again(text) if text.kept is NOTHING else copied(text.kept)

    @property
    def current_input(self) -> Any:
        """The input for whoever only reads it."""
        return self._made()[1]

    @property
    def described(self) -> InputText:
        """The text of the input as the history has it, whatever was done in place since."""
        number, input, text = self.current()
        if text is None:
            arguments = self.spec.arguments
            number, input, _ = self._made()
            was, lent = input, self.lent
            if lent is not None and self.is_touched:
                was = arguments.made_of(lent) if arguments.is_shallow else self._made_of(None)
            text = arguments.proposed(self.metadata.arguments, was)
            if not arguments.is_live:
                self.held = (number, input, text)
        if text.others and not text.is_proven:
            # Chosen once: how many defaults the text has. The last one, which is as sent, has none.
            input = self._made()[1]
            proof = self.spec.arguments.proof(text, input)
            found, input = (text.others[-1], input) if proof is None else proof
            text.chosen = None if found is text else found
            self.held = (number, input, found)
            return found
        return text

    @property
    def shown(self) -> Any:
        """The input as plain data to be looked at: secrets masked, None without a JSON form."""
        return self.spec.shown_input(self.described)

    def input_for_hook(self) -> Any:
        """Lend the input to somebody who may change it."""
        input = self._made()[1]
        arguments = self.spec.arguments
        if self.lent is not None or arguments.is_fixed:
            return input
        if arguments.is_shallow:
            self.lent = arguments.snapshot(input)
            return input
        if arguments.is_faithful and (written := arguments.written(input)) is not None:
            self.lent = written
            return input
        text = self.lent = self.described
        input = self.held[1]  # of two texts the other one may have been chosen
        if text.kept is NOTHING and (arguments.is_kept or text.json is None):
            text.kept = copied(input)
        return input

    def input_for_gate(self) -> Any:
        """Give an instance of their own to whoever judges: what is done to it is dropped."""
        input = self._made()[1]
        return input if self.spec.arguments.is_fixed else copied(input)

    def input_for_tool(self) -> Any:
        """Give the tool its input, which it owns from now on."""
        arguments = self.spec.arguments
        if not arguments.is_faithful:
            self.described  # noqa: B018 - written before the tool may change what it shows
        number, input, text = self._made()
        if not arguments.is_fixed:
            self.held, self.lent = (number, MADE_LATER, text), None
        return input

    @property
    def is_touched(self) -> bool:
        """Whether the instance was changed in place since it was lent."""
        lent, entries = self.lent, self.entries
        number, input, _ = self.held
        # Another thread may have started the call since it was lent.
        if lent is None or input is MADE_LATER or number != entries[len(entries) - 1][2]:
            return False
        arguments = self.spec.arguments
        if arguments.is_shallow:
            return not arguments.is_as_kept(input, lent)
        if lent.__class__ is bytes:
            return bool(arguments.written(input) != lent)
        return not same(lent.kept, input)

    def differs_from(self, value: Any) -> bool:
        """Whether a value is another input than the call's, as the history has it."""
        arguments = self.spec.arguments
        if not arguments.is_kept:
            described = self.described
            return described.json is None or bool(described != arguments.whole(value))
        text = self.current()[2]
        known = self.current_input if text is None or text.kept is NOTHING else text.kept
        return not same(known, value)

    def restore_input(self) -> None:
        """Drop the instance that somebody may have changed: the call has a copy, or the text."""
        lent = self.lent
        if lent is None:
            return
        number, _, text = self.held
        made = self.spec.arguments.made_of(lent) if self.spec.arguments.is_shallow else MADE_LATER
        self.held, self.lent = (number, made, text), None

    def take(self, value: Any, *, by_name: bool = False) -> tuple[Any, InputText]:
        """Check an input that is to take the place of the call's, and describe it.

        Raises:
            ToolInputError: It does not fit, or no text describes it.
        """
        before = None
        if not self.spec.arguments.is_faithful:
            before = self.described
            if before.kept is NOTHING:
                before.kept = copied(self.current_input)
        return self.spec.take(self.name, value, before, by_name=by_name)

    def replace_input(
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
        number = self.append_all((changed,))
        assert number is not None
        self.held, self.lent = (number, value, text), None
        return changed

    def hold_changed(self, number: int, value: Any, text: InputText) -> None:
        """Take the input as it was changed in place, which leaves a key that was read before."""
        if self.key is not None and self.key[0] == self.held[0]:
            self.key = (number, self.key[1])
        self.held, self.lent = (number, value, text), None
        if self.stage is _SUSPENDED:
            self.freeze()

    def changes(self) -> tuple[Move, Any, InputText] | None:
        """Find what was done to the input in place, as the call should start or wait.

        Returns:
            What will be written, the input, and its text; None if nothing was done.

        Raises:
            ToolInputError: It does not fit the tool; the input is as it was.
        """
        given = self.held[1]  # first: another thread may start the call, and have it
        if given is MADE_LATER or not self.is_touched:
            return None
        try:
            value, text = self.take(given)
        except ToolInputError:
            self.restore_input()
            raise
        return move("changed", at=time(), detail=text), value, text

    def take_changes(self) -> None:
        """Take in what was done to the input in place, by itself.

        Raises:
            ToolInputError: As `changes`.
        """
        changed = self.changes()
        if changed is not None:
            number = self.append_all(changed[:1])
            assert number is not None
            self.hold_changed(number, *changed[1:])

    def _check_approved(self) -> None:
        if all(each.digest == self.digest for each in self.answers):
            return
        raise LifecycleError(
            f"Call {self.id!r} of tool `{self.name}` is not started: its arguments are not those "
            "that were approved. Reject it, and let the model make another call."
        )

    def changes_unstarted(self) -> tuple[Move, ...]:
        # What does not fit is described as it is, if it has a JSON form: the result counts in any
        # case, and the plan can be saved.
        value = self.held[1]
        is_there = value is not MADE_LATER and self.lent is not None
        if not (is_there and self.stage.may_start and self.is_touched):
            return ()
        try:
            text = self.take(value)[1]
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

    def prove(self) -> bool:
        """Make sure that validating the text of the input gives the input; what it gave is it.

        It is done before a person is shown the text, or the text goes elsewhere: once a text.
        """
        text = self.described
        if text.is_proven or text.json is None:
            return text.is_proven
        number, input, _ = self._made()
        proof = self.spec.arguments.proof(text, input)
        if proof is None:
            return False
        found, made = proof
        text.chosen = None if found is text else found
        self.held, self.lent = (number, made, found), None
        return True

    def settle_text(self) -> None:
        """Let the call wait: what validating its text gives is what runs, whatever was there."""
        if not self.prove() and self.described.json is not None:
            number, _, text = self.held
            self.held, self.lent = (number, MADE_LATER, text), None

    def unfit_text(self) -> str | None:
        """Say what is wrong with a text that does not fit any more, as a date that has passed."""
        if self.current()[1] is not MADE_LATER:
            return None
        try:
            self._made()
        except ToolInputError as error:
            return str(error)
        return None

    def keeps_rest(self, value: Any, text: InputText) -> bool:
        """Whether an edit leaves all members of the input as they are that it does not change."""
        if self.spec.arguments.is_faithful:
            return True
        before = self.described
        try:
            made = self.current_input
        except ToolInputError:
            return False  # it does not fit any more, so nobody can tell
        return keeps_rest(made, before.data, value, text.data)

    @property
    def unproven(self) -> str:
        """What the model reads of a call whose input its own arguments do not describe."""
        return (
            f"The arguments of tool `{self.name}` are invalid, so it was not run: read a second "
            "time, they mean something else, so nobody can be asked about them. Call it with other "
            "arguments."
        )

    @property
    def is_rewritten(self) -> bool:
        """Whether the program, a hook or a person replaced the input that was decoded."""
        if self.input_at:
            return True
        first = self.entries[0][4]
        return len(first) > 1 and any(each[0] == "changed" for each in first)

    def freeze(self) -> None:
        arguments, text = self.spec.arguments, self.described
        # What is not faithful was proved a moment ago: what its text gave is held, and nobody has
        # it.
        if not arguments.is_fixed and (arguments.is_faithful or self.lent is not None):
            self.held, self.lent = (self.held[0], MADE_LATER, text), None

    def lent_input(self) -> Any:
        """Return the input for the program; see `AnyToolCall.input`."""
        if self.spec.arguments.is_fixed and not self.answers:
            return self.current_input
        if self.stage.may_start and not self.answers:
            return self.input_for_hook()
        self.restore_input()  # nobody reaches what was approved, or run
        return copied(self.current_input)

    def assign(self, value: Any) -> None:
        """Take an input that the program assigned; see `AnyToolCall.input`."""
        is_free = self.review is not None and self.review.edited is not None
        if self.stage is _SUSPENDED or (self.answers and not is_free):
            raise LifecycleError(
                f"The input of call {self.id!r} of tool `{self.name}` is frozen: a decision is "
                "bound to it. Reject the call instead, and let the model make another one."
            )
        taken, text = self.take(value)
        if self.differs_from(taken):
            self.replace_input(taken, text)
        else:
            self.restore_input()  # what was done in place before is not what was assigned

    @property
    def input_or_data(self) -> Any:
        """The input to be looked at: as plain data if its text does not fit any more."""
        try:
            return self.lent_input()
        except ToolInputError:
            return self.described.data

    @property
    def digest(self) -> str:
        """A digest of the tool, its schema and the final arguments.

        One that is within another call is told by its id as well: what is decided about
        `c1/2` says nothing of `c1/3` with the same arguments.
        """
        return self.digest_of(self.text_or_raise())

    def digest_of(self, text: InputText) -> str:
        path = [] if self.requested_by is None else [self.id]
        unset = [{"unset": text.unset}] if text.unset else []
        return digest_of([self.name, self.selector.definition.digest, text.data, *path, *unset])

    @property
    def own_key(self) -> str:
        """The key without what it begins with."""
        number = self.input_at
        if self.key is None or self.key[0] != number:
            key = digest_of([self.id, self.digest]).removeprefix("sha256:")
            self.key = (number, key)
        return self.key[1]

    def text_or_raise(self) -> InputText:
        """Return the text of the input.

        Raises:
            ToolInputError: It has no JSON form.
        """
        text = self.described
        if text.json is not None:
            return text
        reason, cause = "it cannot be written", None
        try:
            compact_json(self.spec.arguments.to_data(self.current_input))
        except (TypeError, ValueError, RecursionError) as error:
            hides = self.spec.has_secrets
            reason = "its text is hidden" if hides else cut(" ".join(str(error).split()), 200)
            cause = None if hides else error
        raise ToolInputError(
            f"The input of call {self.id!r} of tool `{self.name}` has no JSON form ({reason}). "
            "Assign an input that has, as in `call.input = ...`.",
            tool=self.name,
        ) from cause


# What types raise, pydantic's own as well, for a path of 300 letters or a pattern of a huge repeat.
_TOO_MUCH = (OSError, OverflowError, RecursionError)


def read_input(spec: AnySpec, tool: str, metadata: ToolMetadata) -> Any:
    """Read an input once more from what the model sent.

    Raises:
        InvalidArgumentsError: The arguments do not fit any more.
    """
    try:
        return spec.validate_json(metadata.arguments)
    except Exception as error:  # noqa: BLE001 - raised again, as one that says what to do
        return coerced_input(spec, tool, metadata, error)[0]


def coerced_input(
    spec: AnySpec, tool: str, metadata: ToolMetadata, error: Exception, redact: bool = False
) -> tuple[Any, tuple[str, ...], str]:
    """Coerce arguments that could not be read as they came.

    Args:
        spec: The tool.
        tool: Its wire name.
        metadata: What the model sent.
        error: What reading them raised.
        redact: Hide the values that came, and a validator's own words, in an error.

    Returns:
        The input, the paths of arguments that had to be coerced, and the text that gives it.

    Raises:
        InvalidArgumentsError: The arguments do not fit; the error names every failing field.
    """
    try:
        if isinstance(error, ValidationError):
            return _coerced(spec, tool, metadata, error, redact)
        if isinstance(error, _TOO_MUCH):
            raise _unreadable(spec, tool, metadata, error, redact) from None
        if not isinstance(metadata, ToolMetadata):
            raise MisuseError(
                f"A call is decoded from its ToolMetadata, not from {shorten(metadata)}. Make "
                "one, as in `ToolMetadata(id=..., name=..., arguments=text)`."
            ) from None
        redact = redact or spec.has_secrets
        said = " (its text is hidden)" if redact else f": {cut(words_of(error), 200)}"
        raise ToolInputError(
            f"A validator of tool `{tool}` raised {type(error).__name__}{said} (call "
            f"{metadata.id!r}). Validators raise ValueError for what does not fit; fix the "
            "validator.",
            tool=tool,
        ) from (None if redact else error)
    finally:
        del error  # else a cycle: see `Arguments.coerce`


def _coerced(
    spec: AnySpec, tool: str, metadata: ToolMetadata, error: ValidationError, redact: bool
) -> tuple[Any, tuple[str, ...], str]:
    try:
        return spec.arguments.coerce(metadata.arguments, error)
    except _TOO_MUCH as failed:
        raise _unreadable(spec, tool, metadata, failed, redact) from None
    except ValidationError as failed:
        # Its cause would carry the values on, into the first log that shows a traceback.
        hides = redact or spec.has_secrets
        raise _invalid(tool, metadata, spec.issues_of(failed, redact=redact)) from (
            None if hides else failed
        )
    finally:
        del error  # else a cycle: see `Arguments.coerce`


def _unreadable(
    spec: AnySpec, tool: str, metadata: ToolMetadata, error: Exception, redact: bool
) -> InvalidArgumentsError:
    hides = redact or spec.has_secrets
    said = "" if hides else f": {cut(escape_unprintable(words_of(error)), 200)}"
    issue = FieldIssue("", f"they are too long, or nested too deeply, to be read{said}")
    return _invalid(tool, metadata, (issue,))


def _invalid(
    tool: str, metadata: ToolMetadata, issues: tuple[FieldIssue, ...]
) -> InvalidArgumentsError:
    lines = "\n".join(f"- {issue}" for issue in issues)
    return InvalidArgumentsError(
        f"The arguments of tool `{tool}` are invalid, so it was not run:\n{lines}\n"
        "Call it again with corrected arguments.",
        tool=tool,
        call_id=metadata.id,
        fields=issues,
    )
