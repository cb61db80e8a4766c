"""Read a turn: it needs tools, or it is finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from .._call.call import AnyToolCall
from .._call.outcomes import RecoverableToolCallIssue
from .._declare.offer import OfferedTools
from .._text.escaping import quoted
from .._text.json import shorten
from .._text.suggestion import did_you_mean, names_for_message
from .._transcript.assistant import AssistantTurn, Usage
from .._transcript.metadata import ToolMetadata
from ..errors import DuplicateToolCallIdError, InvalidArgumentsError, MisuseError
from .round import ToolRound, open_round

__all__ = ["Finished", "NeedsTools", "TextResult", "open_turn", "read_turn"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NeedsTools(Generic[T]):
    """The model asks for tools: run the round, and ask the model again."""

    round: ToolRound[T]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"NeedsTools has no `{name}`: the model asks for tools, and has not answered yet. "
                "Run the calls of `.round`, commit it, and ask again; tell the two apart with "
                "`match` or `isinstance(outcome, NeedsTools)`."
            )


@dataclass(frozen=True, slots=True)
class TextResult:
    """What the model answered.

    Attributes:
        turn: The whole turn.
    """

    turn: AssistantTurn

    @property
    def text(self) -> str:
        """The answer."""
        return self.turn.text

    @property
    def refusal(self) -> str | None:
        """The model's refusal, or None."""
        return self.turn.refusal

    @property
    def finish_reason(self) -> str | None:
        """Why the turn ended, in the provider's own word."""
        return self.turn.finish_reason

    @property
    def usage(self) -> Usage | None:
        """What the turn cost."""
        return self.turn.usage


@dataclass(frozen=True, slots=True)
class Finished:
    """The model asks for nothing more."""

    result: TextResult

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"Finished has no `{name}`: the model asks for no tools. Its answer is `.result`; "
                "tell the two apart with `match` or `isinstance(outcome, Finished)`."
            )


def read_turn(
    toolset: type[T], turn: AssistantTurn, offered: OfferedTools, redact: bool
) -> NeedsTools[T] | Finished:
    """Open what should be a turn; see `Toolset.read_turn`."""
    if not isinstance(turn, AssistantTurn):
        raise MisuseError(
            f"read_turn takes an AssistantTurn, not {shorten(turn)}. Decode the provider's "
            "response first, as in `openai_chat.decode(response.to_dict(mode='json'))`."
        )
    return open_turn(toolset, turn, offered, redact)


def open_turn(
    toolset: type[T], turn: AssistantTurn, offered: OfferedTools, redact: bool
) -> NeedsTools[T] | Finished:
    """Decode the calls of a turn, in one pass.

    Whether the turn needs tools goes by its calls alone: hosts end such turns with any finish
    reason, and a call that is left unanswered makes a transcript that no provider takes.

    Raises:
        DuplicateToolCallIdError: Two calls share an id.
    """
    metadatas = turn.tool_calls
    if not metadatas:
        return Finished(TextResult(turn))
    if len(metadatas) > 1:
        _check_ids(metadatas)
    by_name = offered.by_name
    calls: list[AnyToolCall] = []
    issues: list[RecoverableToolCallIssue] = []
    cut_off = _cut_off_in(turn) if turn.is_truncated else None
    for metadata in metadatas:
        selector = by_name.get(metadata.name)
        if selector is None:
            issues.append(_not_on_offer(toolset, metadata, offered))
            continue
        if metadata is cut_off and selector.definition.input_schema.get("properties"):
            issues.append(_cut_off(metadata))
            continue
        try:
            calls.append(selector.decode(metadata, redact=redact))
        except InvalidArgumentsError as error:
            issues.append(
                RecoverableToolCallIssue(metadata, "invalid_arguments", str(error), error.fields)
            )
    return NeedsTools(open_round(toolset, turn, tuple(calls), tuple(issues)))


def _cut_off_in(turn: AssistantTurn) -> ToolMetadata | None:
    """Find the last call if nothing came of its arguments."""
    last = turn.tool_calls[len(turn.tool_calls) - 1]
    return last if turn.cut_off == "arguments" or not last.arguments.strip() else None


def _cut_off(metadata: ToolMetadata) -> RecoverableToolCallIssue:
    text = (
        f"The call of tool {quoted(metadata.name)} was cut off by the limit on tokens before its "
        "arguments came, so it was not run. Call it again."
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


def _not_on_offer(
    toolset: Any, metadata: ToolMetadata, offered: OfferedTools
) -> RecoverableToolCallIssue:
    name = quoted(metadata.name)
    on_offer = f"Tools on offer: {names_for_message(offered.by_name)}."
    if metadata.name in toolset:
        text = f"Tool {name} is not available in this turn, so it was not run. {on_offer}"
        return RecoverableToolCallIssue(metadata, "not_available", text)
    near = did_you_mean(metadata.name, offered.by_name)
    hint = f" Did you mean {quoted(near)}?" if near else ""
    text = f"There is no tool {name}, so nothing was run.{hint} {on_offer}"
    return RecoverableToolCallIssue(metadata, "unknown_tool", text, (), near)
