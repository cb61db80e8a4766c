"""Find the final answer in a turn that was asked for one."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from .._call.call import AnyToolCall
from .._call.outcomes import RecoverableToolCallIssue
from .._declare.answer import ACCEPTED, Answer
from .._transcript.assistant import AssistantTurn, TextItem
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from ..errors import FieldIssue, InvalidArgumentsError

MissingReason: TypeAlias = Literal["no_call", "invalid", "refused", "cut_off"]


class AnswerCalls(NamedTuple):
    """What came of the calls that gave an answer.

    Attributes:
        ids: The ids of those calls.
        value: The answer, where one valid call gave it.
        result: The result of that call; None where there is no answer.
        issues: What is wrong with the others, by call id.
    """

    ids: frozenset[str]
    value: Any
    result: ToolResult | None
    issues: dict[str, RecoverableToolCallIssue]

    @property
    def given(self) -> tuple[Any, ToolResult] | None:
        """The answer with its result, where there is one."""
        return None if self.result is None else (self.value, self.result)


def answer_calls(
    turn: AssistantTurn, answer: Answer[Any], cut_off: ToolMetadata | None, redact: bool
) -> AnswerCalls:
    """Read the calls of the answer's tool: one that is valid counts, and no other does."""
    if answer.by == "format":
        return AnswerCalls(frozenset(), None, None, {})
    own = [each for each in turn.tool_calls if each.name == answer.definition.name]
    ids = frozenset(each.id for each in own)
    if len(own) == 1 and own[0] is not cut_off:
        (metadata,) = own
        try:
            call: AnyToolCall = answer.spec.free_selector.decode(metadata, redact=redact)
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


class Missing(NamedTuple):
    """Why a turn without calls is no answer."""

    reason: MissingReason
    text: str
    fields: tuple[FieldIssue, ...] = ()


def missing_answer(
    turn: AssistantTurn, answer: Answer[Any], redact: bool
) -> tuple[Any, Missing | None]:
    """Read a turn without calls: the answer is its text, or it is missing."""
    again = "Give the final answer"
    again += f" by calling `{answer.definition.name}`." if answer.by == "tool" else " as JSON."
    if turn.refusal is not None:
        return None, Missing("refused", f"You refused to answer. {again}")
    fields: tuple[FieldIssue, ...] = ()
    if answer.by == "format":
        value, fields = _read_texts(turn, answer, redact)
        if not fields:
            return value, None
    if turn.is_truncated:
        return None, Missing("cut_off", f"The answer was cut off by the limit on tokens. {again}")
    if answer.by == "tool":
        return None, Missing("no_call", f"That was no answer yet. {again}")
    lines = "\n".join(f"- {each}" for each in fields)
    return None, Missing("invalid", f"The answer is not valid:\n{lines}\n{again}", fields)


def _read_texts(
    turn: AssistantTurn, answer: Answer[Any], redact: bool
) -> tuple[Any, tuple[FieldIssue, ...]]:
    """Read the text of a turn as the answer; what is wrong with it where it is none.

    Models say things before the answer, and some say the answer twice: where the text as a whole is
    none, the texts that are one by themselves must be of one mind.
    """
    value, fields = answer.read_text(turn.text, redact=redact)
    if fields:
        texts = [item.text for item in turn.items if isinstance(item, TextItem)]
        read = [answer.read_text(text, redact=redact) for text in texts if len(texts) > 1]
        found = [each for each, wrong in read if not wrong]
        if found and all(each == found[0] for each in found):
            return found[0], ()
    return value, fields
