"""One decoded call: how it is read, how it starts, and how it ends.

`metadata` is what the model sent, and never changes. All that happened is in the history, see
`base_call`; what it is called with is in `call_input`. `AnyToolCall` shows all of it to users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from time import time
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from .._schema.arguments import InputText
from .._schema.output import Output
from .._text.escaping import escape_unprintable, words_of
from .._text.json import compact_json, cut, sendable, shorten
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult, make_result
from ..errors import MisuseError, TimedOut, ToolInputError, ToolOutputError
from .base_call import CallRecord
from .call_input import MADE_LATER, CallInput, Held, coerced_input
from .history import (
    BY_TOOL,
    HOOK_PHASES,
    NO_ROUND,
    ON_RECORD,
    PICKLED,
    REFUSED_BY,
    STAGES,
    CallRound,
    CallStep,
    Entry,
    History,
    Move,
    Said,
    Step,
    first_entry,
    hook_key,
    move,
)
from .outcomes import HandledCall, question_of
from .reply import REPLY, Reply, reply_in

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket
    from .._schema.capabilities import ResourceAccess
    from .._schema.invocation import Invocation
    from .._transcript.message import Attachment
    from .base_call import Reviewing
    from .call import AnyToolCall, RejectedCall, SuspendedCall
    from .reply import ReplyStatus
    from .selector import AnySelector
    from .spec import AnySpec


class DecodedCall(CallInput):
    """Keep what is known of one call of a tool; `AnyToolCall` shows it to users.

    Args:
        call_type: The class of the call that users see.
        metadata: What the model sent.
        input: The input.
        selector: The member of the toolset that it came in through; by default none.
        coerced: Paths of arguments that had to be coerced.

    Attributes:
        coerced: Paths of arguments that had to be coerced.
    """

    # _call  what users see of it, as long as anybody has that: they would both be collected late if
    #        each held the other
    __slots__ = ("_call", "coerced")

    selector: AnySelector
    coerced: tuple[str, ...]
    _call: ref[AnyToolCall] | None
    entries: dict[int, Entry]
    held: Held
    key: tuple[int, str] | None
    lent: Any
    review: Reviewing | None

    def __init__(
        self,
        spec: AnySpec,
        metadata: ToolMetadata,
        input: Any,
        selector: AnySelector | None = None,
        coerced: tuple[str, ...] = (),
    ) -> None:
        # Such an input was not read from the model's text, so it cannot be made again from that.
        text = spec.arguments.whole(input)
        super().__init__(metadata, first_entry(time(), text=text))
        self.spec = spec
        self.selector = spec.free_selector if selector is None else selector
        self.coerced = coerced
        self.held = (0, input, text)
        self.lent = self.key = self._call = None

    @classmethod
    def decode(
        cls,
        selector: AnySelector,
        metadata: ToolMetadata,
        *,
        redact: bool = False,
        entry: Entry | None = None,
        call_round: CallRound = NO_ROUND,
    ) -> DecodedCall:
        """Decode a call of a tool.

        Args:
            selector: The tool.
            metadata: What the model sent.
            redact: Hide the values that came, and a validator's own words, in an error.
            entry: How its history begins; by default with the present moment.
            call_round: The round that it belongs to, if any.

        Raises:
            InvalidArgumentsError: The arguments do not fit; the error names every failing field.
        """
        spec = selector.spec
        coerced: tuple[str, ...] = ()
        try:
            value = spec.validate_json(metadata.arguments)
            read = metadata.arguments
        except Exception as error:  # noqa: BLE001 - raised again, as one that says what to do
            value, coerced, read = coerced_input(spec, selector.name, metadata, error, redact)
        # Filled here and not by an `__init__`: this is done for every call of every turn, and what
        # an `__init__` would check was just made.
        made: DecodedCall = _new(cls)
        made.metadata = metadata
        made.selector = selector
        made.spec = spec
        made.coerced = coerced
        text: InputText | None = None
        entry = entry or first_entry(time())
        if not spec.arguments.is_faithful:  # read again, it might be another input
            text = spec.arguments.proposed(read, value)
            entry = first_entry(entry[3], entry[4][0][3], text)
        made.held = (0, value, text)
        made.lent = made.key = made._flat = made.review = made._call = None
        made.entries = {0: entry}
        made.round = call_round
        return made

    @staticmethod
    def among(calls: Iterable[CallRecord]) -> Iterator[DecodedCall]:
        """Return those of some calls that could be read."""
        return (call for call in calls if isinstance(call, DecodedCall))

    @classmethod
    def of_history(
        cls,
        selector: AnySelector,
        metadata: ToolMetadata,
        history: History,
        call_round: CallRound,
        coerced: tuple[str, ...],
    ) -> DecodedCall:
        """Make a call of its history, all of which becomes its first entry."""
        made = cls.__new__(cls)
        CallRecord.__init__(made, metadata, history.as_entry, call_round)
        made.spec, made.selector, made.coerced = selector.spec, selector, coerced
        texts = [step.detail for step in history if step.kind in ("proposed", "changed")]
        made.held = (0, MADE_LATER, texts[-1])
        made.lent = made.key = made._call = None
        return made

    @property
    def call(self) -> AnyToolCall:
        """The call as users see it: one object, as long as anybody has it."""
        known = None if self._call is None else self._call()
        if known is not None:
            return known
        made: AnyToolCall = _new(self.spec.call_type)
        made._record = self
        self._call = ref(made)
        return made

    def shown_by(self, call: AnyToolCall) -> None:
        """Let users see it as a call that they made."""
        self._call = ref(call)

    def shown_step(self, step: Step, arguments: Any = None) -> CallStep:
        if step.kind in ("proposed", "changed"):
            arguments = self.spec.shown_input(self.text_of(step.detail))
        return super().shown_step(step, arguments)

    def copy_for(self, review: Reviewing | None) -> DecodedCall:
        """Make a call with the same history so far and input, which no plan holds."""
        made = DecodedCall.__new__(DecodedCall)
        made.metadata, made.selector, made.spec = self.metadata, self.selector, self.spec
        made.coerced, made._call = self.coerced, None
        made.entries, made._flat = self.entries.copy(), None
        if review is not None and review.target is self:  # which may have grown since
            for number in range(review.since, len(made.entries)):
                del made.entries[number]
        made.round, made.review = self.round, review
        arguments, held = self.spec.arguments, self.held
        if not arguments.is_fixed and held[1] is not MADE_LATER:
            # An instance that can be changed belongs to one call alone.
            self.input_for_hook()
            (number, _, text), lent = self.held, self.lent
            mine: Any = MADE_LATER
            if arguments.is_shallow and lent is not None:  # no other thread has started it
                mine = arguments.made_of(lent)
            held = (number, mine, text)
        made.held, made.lent, made.key = held, None, self.key
        return made

    def become(self, started: DecodedCall) -> None:
        """Let a draft be the call itself from here on, since it was started."""
        self.entries, self.review, self._flat = started.entries, None, None
        self.held, self.lent = started.held, started.lent

    def take_over(self, draft: DecodedCall, number: int) -> None:
        """Take the input of a draft, if it is in the history by now, at this number."""
        if self.input_at == number:
            self.held, self.lent = (number, *draft.held[1:]), draft.lent
            if self.stage is STAGES["suspended"]:
                self.freeze()

    @property
    def accesses(self) -> tuple[ResourceAccess, ...]:
        """What the call accesses, by the effects of its tool and its arguments as they are now."""
        from .._schema.capabilities import accesses_of

        effects = self.selector.definition.capabilities.effects
        has_targets = any(effect.target is not None for effect in effects)
        data = self.described.data if has_targets else None
        return accesses_of(effects, self.spec.arguments, data)

    @property
    def question(self) -> str:
        """What a person is asked about the call: its arguments as shown, secrets masked."""
        template = self.selector.options.approval_message
        shown = self.shown
        if template is None:
            return question_of(self.name, shown)
        from string import Formatter  # most programs have no such message

        return "".join(
            text
            + ("" if name is None else _word(_first(self.spec.arguments.values_of(shown, name))))
            for text, name, _, _ in Formatter().parse(template)
        )

    # How it ends.

    def result_of(
        self,
        output: Any,
        message: str | None = None,
        attachments: Iterable[Attachment] = (),
    ) -> ToolResult:
        """Return the result that an output makes."""
        reply = reply_in(output)
        if reply is not None:
            if reply.status != "success":
                raise MisuseError(
                    f"Call {self.id!r} of tool `{self.name}` is completed with a reply of status "
                    f"`{reply.status}`. Complete it with a success, or use `call.fail(message)`."
                )
            output, message = reply.output, message or reply.model_message
            attachments = attachments or reply.attachments
        if message is not None:
            self.check_text("message", message)
        return self._encoded(output, message, attachments, reply)

    def _encoded(
        self,
        output: Any,
        message: str | None,
        attachments: Iterable[Attachment],
        reply: Reply[Any] | None,
    ) -> ToolResult:
        """Return the result of an output, and of what is said beside it, if it came as a reply."""
        status: ReplyStatus = "success"
        code = labels = None
        if reply is not None:
            status, code, labels = reply.status, reply.code, reply.labels
        metadata = self.metadata
        if metadata.name != self.selector.name:
            raise self._of_another_tool()
        attached = self._checked(attachments) if attachments else ()
        text = (self.spec.output if status == "success" else _ANYTHING).encode(self.name, output)
        # A test of the text first, since nearly no output holds a file: to look through each output
        # for an `Attachment` would take longer than to encode it.
        if '"mime_type":' in text:
            attached, message = _with_files(output, text, attached, message)
        return make_result(metadata, text, status, message, attached, code, labels)

    def end_with(self, result: ToolResult, run: int | None = None) -> ToolResult:
        """Return a result once the history says that the call ended with it.

        Args:
            result: The result.
            run: Of which run it is the outcome; None for the run in progress, or of none.

        Raises:
            LifecycleError: The call has a result, or that run is over: then the result is in the
                history as `late`.
        """
        # As `move` makes it, which costs as much as the step.
        status = result.status
        ended: Move = ("ended", status, None, None, None, status, None, None, result)
        if run is None:  # the program may have run the tool by itself
            self.append_all((*self.changes_unstarted(), ended))
        else:
            self.append_all((ended,), None, run)
        return result

    def _of_another_tool(self) -> ToolOutputError:
        return ToolOutputError(
            f"Call {self.id!r} was made for tool `{self.metadata.name}`, but is answered as a call "
            f"of `{self.selector.name}`. Use the metadata of the call that you answer.",
            tool=self.selector.name,
        )

    def finish(self, output: Any, run: int | None = None) -> ToolResult:
        """End the call with what its function gave; see `AnyToolCall.finish`."""
        if isinstance(output, REPLY):
            reply: Reply[Any] = output
            said = reply.model_message, reply.attachments, reply
            return self.end_with(self._encoded(reply.output, *said), run)
        # Every run comes here: what `_encoded` does if nothing is said beside the output.
        metadata = self.metadata
        if metadata.name != self.selector.name:
            raise self._of_another_tool()
        text = self.spec.output.encode(metadata.name, output)
        if '"mime_type":' in text:
            attached, message = _with_files(output, text, (), None)
            return self.end_with(make_result(metadata, text, "success", message, attached), run)
        return self.end_with(make_result(metadata, text, "success"), run)

    def fail(self, message: str, code: str | None, run: int | None = None) -> ToolResult:
        """End the call with an error; see `AnyToolCall.fail`."""
        message = sendable(words_of(message))
        if code is not None:
            self.check_text("code", code)
            code = sendable(code)
        return self.end_with(self.failure("error", message, code), run)

    def give_up(self, reason: str, code: str | None, run: int | None = None) -> ToolResult:
        """End a call of which nobody knows what it did; see `AnyToolCall.indeterminate`."""
        self.check_text("reason", reason)
        if code is not None:
            self.check_text("code", code)
        return self.end_with(self.unknown_outcome(reason, code), run)

    def check_text(self, what: str, value: object) -> None:
        """Refuse what the model should read and is no text."""
        if not isinstance(value, str):
            raise MisuseError(
                f"The {what} for call {self.id!r} of tool `{self.name}` is {shorten(value)}. "
                "Give a text: the model reads it."
            )

    def _checked(self, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
        from .._transcript.message import attachments_of

        return attachments_of(f"Call {self.id!r} of tool `{self.name}`", attachments)

    def start(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> tuple[Invocation, int]:
        """Do as `AnyToolCall.start` does, and name the run by the number of its entry."""
        while True:
            since = len(self.entries)  # what follows holds of this history
            changed = None if self.lent is None else self.changes()
            if changed is not None and self.selector.needs_review:
                self.take_changes()  # on record first: it has to be reviewed, so this refuses
                continue
            found = self.check_start(skipped, invocation)
            if not self.spec.arguments.is_faithful and (why := self.unfit_text()) is not None:
                self._end_unfit(why, since)
            moves = _STARTED
            if self.round.closed_by is not None:  # then it is on record elsewhere
                at, by = self.round.started
                moves = (("started", "started", at, by, None, None, None, None, None),)
            run = self.append_all(moves if changed is None else (changed[0], *moves), since)
            if run is not None:
                if changed is not None:
                    self.hold_changed(run, *changed[1:])
                return found, run

    def _end_unfit(self, why: str, since: int) -> None:
        """End a call whose text does not fit any more, so that the model reads why.

        A call that was started before does not become an issue: it may have had its effects.

        Raises:
            ToolInputError: It does not, and this says why.
        """
        if not self.history.was_started:
            ended = move("ended", by=REFUSED_BY, phase="execution", verdict="rejected", reason=why)
            self.append_all((ended,), since)
        raise ToolInputError(why, tool=self.name)

    def check_start(
        self, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
    ) -> Invocation:
        """Refuse a call that `start` would refuse, and change nothing."""
        invocation = invocation or self.spec.invocation
        if invocation is None:
            what = "an input model" if isinstance(self.spec.arguments.type, type) else "a schema"
            raise MisuseError(
                f"Tool `{self.name}` (call {self.id!r}) is {what} without a function. Do the work "
                "yourself and answer with `call.complete(output)`."
            )
        if skipped is not None and (skipped or invocation.required):
            invocation.check(self.call, skipped)
        self.check_may_start()
        return invocation

    async def run(self, invocation: Invocation, skipped: dict[str, Any]) -> Any:
        """Run a call that was started, and cut it off when its tool's deadline passes.

        Raises:
            TimedOut: It was cut off. What the function raises comes out unchanged, also a
                `TimeoutError` of its own.
        """
        import asyncio  # slow to load, and most programs need it later

        # `asyncio.timeout` raises the same `TimeoutError` that the function may raise by itself.
        # Which of the two came out is told by identity: only its own passed the inner `except`.
        seconds, own = self.selector.timeout, None
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await invocation.run(self.call, self.input_for_tool(), skipped)
                except TimeoutError as error:
                    own = error
                    raise
        except TimeoutError as error:
            if error is own:
                raise
            raise TimedOut(
                f"did not finish within {seconds:g} seconds and was cut off.", is_in_doubt=True
            ) from None
        finally:
            del own  # its traceback holds this frame

    def suspend(self, ticket: SuspendTicket, run: int | None = None) -> SuspendedCall:
        """Let a call wait for a decision.

        Args:
            ticket: What is asked.
            run: The run that asks; None for the one in progress, or the program.

        Raises:
            MisuseError: The ticket is not a `SuspendTicket`.
            LifecycleError: The call waits already, or has ended.
            ToolInputError: Its input was changed in place, and does not fit any more.
        """
        if not hasattr(ticket, "resume_mode"):
            raise MisuseError(
                f"Call {self.id!r} of tool `{self.name}` waits under a SuspendTicket, not "
                f"{shorten(ticket)}. Write `call.suspend(SuspendTicket(message=...))`."
            )
        while True:
            since, changed = len(self.entries), None
            if self.stage.may_start:
                changed = self.changes()
                if changed is None:
                    self.settle_text()
            digest = self.digest if changed is None else self.digest_of(changed[2])
            verdict = BY_TOOL if self.stage.name == "running" else None
            said: Said = {"verdict": verdict, "digest": digest, "detail": ticket}
            moves = () if changed is None else changed[:1]
            number = self.append_all((*moves, move("suspended", **said)), since, run)
            if number is not None:
                if changed is not None:
                    self.hold_changed(number, *changed[1:])
                suspended_call = outcome_types()[1]
                return suspended_call(self.call, ticket, digest, verdict is not None)

    def handled(self, output: Any, result: ToolResult, by: str | None) -> HandledCall[Any, Any]:
        """Return the call as one that got its result without being run."""
        made: HandledCall[Any, Any] = self.spec.handled_type(
            self.metadata, self.input_or_data, output, result, by
        )
        return made

    def outcome(
        self, history: History | None = None
    ) -> HandledCall[Any, Any] | RejectedCall | SuspendedCall:
        """Return what hooks, a gate or a person made of the call, which waits or was ended by them.

        Args:
            history: Its history as it was at some moment; by default as it is.
        """
        history = self.history if history is None else history
        wait = history.wait
        rejected_call, suspended_call = outcome_types()
        if wait is not None:
            was_started = wait.verdict == BY_TOOL
            return suspended_call(self.call, wait.detail, wait.digest or "", was_started, wait.by)
        end = history.end
        assert end is not None
        if end.verdict != "success":
            return rejected_call(self.metadata, self.call, end.reason or "", end.source, end.by)
        # A function in place of hooks may have run the tool itself.
        detail = end.detail
        output, result = (detail.output, detail) if isinstance(detail, ToolResult) else detail
        for step in history.this_try.of_kind("reviewed"):
            if step.phase == "after" and step.verdict == "replaced":
                result = step.detail[1]
                output = result.output
                break
        return self.handled(output, result, end.by)

    def __reduce__(self) -> tuple[Any, ...]:
        _, input, text = self.current()
        given = None if input is MADE_LATER and text is not None else self.current_input
        steps = History(map(_without_hook, self.history))
        is_on_record = self.round.closed_by == ON_RECORD
        call_round = self.round if is_on_record else self.round.copy_as(PICKLED)
        rest = (self.coerced, text, call_round)
        return (_rebuild, (self.selector, self.metadata, given, steps, rest))


# Kept, and not imported anew for each outcome, which takes longer than to make it. `call` imports
# this file, since a call holds its record.
@cache
def outcome_types() -> tuple[type[RejectedCall], type[SuspendedCall]]:
    """Load the classes of the outcomes that hold the call as users see it."""
    from .call import RejectedCall, SuspendedCall

    return RejectedCall, SuspendedCall


_new = object.__new__
_ANYTHING = Output(None)
_STARTED: Final = (move("started"),)
_LONGEST_WORD = 200


def _first(values: list[Any]) -> Any:
    return values[0] if values else None


def _word(value: Any) -> str:
    return cut(
        escape_unprintable(value if isinstance(value, str) else compact_json(value)), _LONGEST_WORD
    )


def _with_files(
    output: Any, text: str, attached: tuple[Attachment, ...], message: str | None
) -> tuple[tuple[Attachment, ...], str | None]:
    """Let the model see the files that are in an output, in place of their data."""
    from .._transcript.message import attachments_in, shown_with

    # What is not written is shown to nobody: a field may be left out, or not be declared.
    inside = dict.fromkeys(attachments_in(output))
    found = tuple(each for each in inside if compact_json(each.url) in text)
    if found and message is None:
        message = shown_with(text, found)
    return tuple(dict.fromkeys((*attached, *found))), message


def record_of(given: object) -> DecodedCall | None:
    """Return the record of a call that users have; None for anything else."""
    record = getattr(given, "_record", None)
    return record if isinstance(record, DecodedCall) else None


def _without_hook(step: Step) -> Step:
    """Return a step as it travels: with the name of a hook, since few functions can be pickled."""
    is_hook = step.kind == "reviewed" and step.phase in HOOK_PHASES
    return step._replace(detail=hook_key(step.detail)) if is_hook else step


def _rebuild(
    selector: AnySelector,
    metadata: ToolMetadata,
    input: Any,
    steps: History,
    rest: tuple[tuple[str, ...], InputText | None, CallRound],
) -> DecodedCall:
    coerced, text, call_round = rest
    made = DecodedCall.of_history(selector, metadata, steps, call_round, coerced)
    made.held = (0, MADE_LATER if input is None and text is not None else input, text)
    return made


def call_of(record: DecodedCall) -> AnyToolCall:
    """Return an unpickled call as users see it."""
    return record.call
