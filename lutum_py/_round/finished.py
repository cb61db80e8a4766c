"""A turn as the model's answer: a text, or a value of the type that was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NoReturn, TypeAlias, final

from typing_extensions import TypeVar

from .._call.call_state import DecodedCall
from .._call.outcomes import RecoverableToolCallIssue
from .._text.escaping import quoted
from .._toolsets.answer import ACCEPTED, Answer
from .._transcript.assistant import AssistantTurn, TextItem, ToolMetadata, Usage
from .._transcript.result import ToolResult
from .._transcript.transcript import CommittedRound, Transcript, joined
from ..errors import FieldIssue, InvalidArgumentsError

A_co = TypeVar("A_co", covariant=True, default=str)


class TurnProperties:
    """The properties of an object that has a turn."""

    __slots__ = ()

    turn: AssistantTurn

    @property
    def text(self) -> str:
        """What the model said, beside calls if it made some."""
        return self.turn.text

    @property
    def finish_reason(self) -> str | None:
        """Why the turn ended, in the provider's own word."""
        return self.turn.finish_reason

    @property
    def usage(self) -> Usage | None:
        """What the turn cost."""
        return self.turn.usage


@dataclass(frozen=True, slots=True)
class TextResult(TurnProperties, Generic[A_co]):
    """What the model answered.

    Attributes:
        turn: The whole turn.
        committed: The turn with the result of the call that gave the answer, if one did.
    """

    turn: AssistantTurn
    _value: Any = field(default=..., repr=False)  # `...` for none: it pickles as itself
    committed: CommittedRound | None = None

    @property
    def answer(self) -> A_co:
        """The answer: of the type that was asked for, else the text."""
        value: Any = self.turn.text if self._value is ... else self._value
        answer: A_co = value
        return answer

    @property
    def refusal(self) -> str | None:
        """Why the model refused, or a filter ended the turn; `""` without a word, else None."""
        return self.turn.refusal


@final
@dataclass(frozen=True, slots=True)
class Finished(Generic[A_co]):
    """The model has answered, without a call of a tool."""

    result: TextResult[A_co]

    @property
    def answer(self) -> A_co:
        """The answer: of the type that was asked for, else the text."""
        return self.result.answer

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"Finished has no `{name}`: the model asks for no tools. Its answer is `.result`, "
                "as in `.result.text`; tell the two apart with `match` or "
                "`isinstance(outcome, Finished)`."
            )


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The model neither called a tool nor gave the answer that was asked for.

    Attributes:
        result: What it said instead.
        reason: `no_call`, `invalid`, `refused`, also by a filter of the provider, or `cut_off`.
        text: What you may tell the model before you ask again.
        fields: For an invalid answer, one entry for each failing field.
    """

    result: TextResult[str]
    reason: MissingReason
    text: str
    fields: tuple[FieldIssue, ...] = ()


def read_finished(transcript: Transcript, answer: Answer[Any] | None) -> Finished[Any] | None:
    """Read the last turn of a transcript as it was read when it came; see `Session.finished`."""
    # From the end back over results to the turn that they answer. Its results tell whether it was
    # an answer by a tool: that call was accepted then, and stands among them.
    place = len(transcript)
    while place and isinstance(transcript[place - 1], ToolResult):
        place -= 1
    turn = transcript[place - 1] if place else None
    if not isinstance(turn, AssistantTurn):
        return None
    results = tuple(each for each in transcript[place:] if isinstance(each, ToolResult))
    if not results:
        read = read_text(turn, answer, False)
        return read if isinstance(read, Finished) else None
    if answer is None:
        return None
    found = answer_calls(turn, answer, False)
    if found.result is None or found.result not in results:
        return None
    return Finished(TextResult(turn, found.value, joined(turn, results)))


def blocked(metadata: ToolMetadata) -> RecoverableToolCallIssue:
    """Make the issue of a call whose turn was blocked."""
    text = (
        f"The answer that called tool {quoted(metadata.name)} was refused or filtered, so the tool "
        "was not run. Call it again only if that is right, or go on without it."
    )
    return RecoverableToolCallIssue(metadata, "blocked", text)


# The final answer in a turn that was asked for one.


MissingReason: TypeAlias = Literal["no_call", "invalid", "refused", "cut_off"]


class AnswerCalls(NamedTuple):
    """The outcome of the calls by which the model gave its answer.

    Attributes:
        ids: The ids of those calls.
        value: The answer, if one valid call gave it.
        result: The result of that call; None if there is no answer.
        issues: What is wrong with the others, by call id.
    """

    ids: frozenset[str]
    value: Any
    result: ToolResult | None
    issues: dict[str, RecoverableToolCallIssue]


def answer_calls(turn: AssistantTurn, answer: Answer[Any], redact: bool) -> AnswerCalls:
    """Read the calls of the answer's tool: one that is valid counts, and no other does."""
    if answer.by == "format":
        return AnswerCalls(frozenset(), None, None, {})
    own = [each for each in turn.tool_calls if each.name == answer.definition.name]
    ids = frozenset(each.id for each in own)
    if turn.is_blocked:
        return AnswerCalls(ids, None, None, {each.id: blocked(each) for each in own})
    is_cut_off = turn.is_truncated and (turn.cut_off == "calls" or turn.tool_calls[-1] in own)
    if len(own) == 1 and not is_cut_off:
        (metadata,) = own
        try:
            call = DecodedCall.decode(answer.spec.free_selector, metadata, redact=redact).call
        except InvalidArgumentsError as error:
            issue = RecoverableToolCallIssue(
                metadata, "invalid_arguments", str(error), error.fields
            )
            return AnswerCalls(ids, None, None, {metadata.id: issue})
        return AnswerCalls(ids, answer.value_of(call.input), call.complete(ACCEPTED), {})
    text = "The turn holds several answers, and one is wanted. Give it once."
    if len(own) == 1:
        text = "The answer was cut off by the limit on tokens before it came. Give it again."
    issues = {each.id: RecoverableToolCallIssue(each, "invalid_arguments", text) for each in own}
    return AnswerCalls(ids, None, None, issues)


def read_text(
    turn: AssistantTurn, answer: Answer[Any] | None, redact: bool
) -> Finished[Any] | NoAnswer:
    """Read a turn without calls: the answer is its text, or it is missing."""
    if answer is None:
        return Finished(TextResult(turn))
    missing = partial(NoAnswer, TextResult(turn))
    again = "Give the final answer"
    again += f" by calling `{answer.definition.name}`." if answer.by == "tool" else " as JSON."
    if turn.is_blocked:
        why = "You refused to answer." if turn.refusal else "The answer was refused or filtered."
        return missing("refused", f"{why} {again}")
    fields: tuple[FieldIssue, ...] = ()
    if answer.by == "format":
        value, fields = _read_texts(turn, answer, redact)
        if not fields:
            return Finished(TextResult(turn, value))
    if turn.is_truncated:
        return missing("cut_off", f"The answer was cut off by the limit on tokens. {again}")
    if answer.by == "tool":
        return missing("no_call", f"That was not an answer yet. {again}")
    lines = "\n".join(f"- {each}" for each in fields)
    return missing("invalid", f"The answer is not valid:\n{lines}\n{again}", fields)


def _read_texts(
    turn: AssistantTurn, answer: Answer[Any], redact: bool
) -> tuple[Any, tuple[FieldIssue, ...]]:
    """Read the text of a turn as the answer; if it is not one, say what is wrong with it.

    Models write something before the answer, and some write the answer twice. If the whole text is
    not an answer, each of its parts is read alone, and those that are answers have to be equal.
    """
    value, fields = answer.read_text(turn.text, redact=redact)
    if fields:
        texts = [item.text for item in turn.items if isinstance(item, TextItem)]
        read = [answer.read_text(text, redact=redact) for text in texts if len(texts) > 1]
        found = [each for each, wrong in read if not wrong]
        if found and all(each == found[0] for each in found):
            return found[0], ()
    return value, fields
