"""A transcript for an API that keeps instructions in front of the conversation, in one place.

Everything that is between two turns of the model is collected, results first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from ..._transcript.assistant import AssistantTurn, ToolMetadata
from ..._transcript.message import Message
from ..._transcript.request import TranscriptItem
from ..._transcript.result import ToolResult
from ...errors import InvalidValueError
from .._findings import Loss
from .rendered_items import UNREADABLE, arguments_object
from .rendering import Rendering
from .replay import ModelNames


class FrontRendering(Rendering):
    """Collect what was said, the texts that belong in front of it, and what was lost.

    Attributes:
        system: The texts of system and developer, in order.
        lasting: Where the first ephemeral message of the user stands, as the index of its message
            and of its first block in that; None where there is none.
        stand_alone: Whether nothing may be beside the results of the last turn: what the user
            says goes out after the next turn.
        lasting_system: How many texts of `system` stand before the first ephemeral one; None where
            there is none.
    """

    joins_messages: ClassVar[bool] = True

    def __init__(self, model: ModelNames = None, found: Any = None) -> None:
        super().__init__(model, found)
        self.system: list[str] = []
        self._results: list[dict[str, Any]] = []
        self._of_user: list[dict[str, Any]] = []
        self._begun = False
        self.stand_alone = False
        self.lasting: tuple[int, int] | None = None
        self.lasting_system: int | None = None

    def _begin(self, start: int) -> None:
        super()._begin(start)
        # What was left out at the beginning counts as said: an instruction after it has moved.
        self._begun = start > 0

    def _fork(self) -> Self:
        made = super()._fork()
        made.system = self.system.copy()
        # Copied as well: what waits for the next turn is finished for this request, and goes on
        # waiting in the rendering that is kept.
        made._results = self._results.copy()
        made._of_user = self._of_user.copy()
        return made

    @property
    def system_end(self) -> int:
        """How many texts of `system` stand before the first ephemeral one."""
        return len(self.system) if self.lasting_system is None else self.lasting_system

    def take(self, item: TranscriptItem, position: str) -> None:
        """Render the next item."""
        if isinstance(item, Message) and item.role != "user":
            self._instruct(item, position)
            return
        self._begun = True
        if isinstance(item, AssistantTurn):
            self.finish()
            self._turn(item, position)
        elif isinstance(item, ToolResult):
            self._result(item, position)
        else:
            self._user(item, position)

    def finish(self) -> None:
        """Write down what was collected since the last turn."""
        # While a program of the provider runs, its results go back alone: [result, "and hurry"]
        # would be refused. So what the user said waits for one more turn: [result], turn, ["and
        # hurry"].
        waiting: list[dict[str, Any]] = []
        if self.stand_alone and self._results:
            waiting, self._of_user = self._of_user, []
        self._write(self._results, self._of_user)
        self._results = []
        self._of_user = waiting

    # A marker of the cache has to stand before what only this request has, else the provider keeps
    # a beginning that no later request shares. So the place of the first such message is noted.
    def take_ephemeral(self, message: Message, position: str) -> None:
        """Render a message that no later request has, and note what is before the first."""
        if message.role != "user":
            if self.lasting_system is None:
                self.lasting_system = len(self.system)
        elif self.lasting is None:
            # The message will be the next that is written, and in it this block comes after what
            # waits: (4, 2) is block 2 of message 4.
            self.lasting = (len(self.said), len(self._results) + len(self._of_user))
        self.take(message, position)

    def to_send(self) -> list[dict[str, Any]]:
        """Return what was said, for a request.

        Raises:
            InvalidValueError: The API refuses how it begins.
        """
        if self.said and not self._is_refused_first(self.said[0]):
            return self.said
        begin = "it begins with what the model said" if self.said else "nobody says anything in it"
        raise InvalidValueError(
            f"{self.facts.name} refuses this conversation: {begin}, and the API wants to hear the "
            "user first. Let the user say something before it, as in `session.push_user(...)`."
        )

    def _called_with(
        self, turn: AssistantTurn, position: str
    ) -> Iterator[tuple[ToolMetadata, dict[str, Any]]]:
        """Yield each call of a turn with its arguments as the object that the API takes."""
        for number, call in enumerate(turn.tool_calls):
            value, is_read = arguments_object(call.arguments)
            if not is_read:
                where = f"{position}.tool_calls[{number}]"
                text = f"the arguments are not JSON object; their text goes out as {UNREADABLE}"
                self.losses.append(Loss(where, text))
            yield call, value

    def _instruct(self, message: Message, position: str) -> None:
        name = self.facts.name
        if message.text.strip():
            self.system.append(message.text)
            if self._begun:
                text = f"{name} has one place for instructions: this one moves to the front"
                self.losses.append(Loss(position, text))
        for index, attachment in enumerate(message.attachments):
            where = f"{position}.attachments[{index}]"
            text = f"an instruction takes no {attachment.media_type} in {name}"
            self.losses.append(Loss(where, text))

    @abstractmethod
    def _is_refused_first(self, said: dict[str, Any]) -> bool:
        """Tell whether the API refuses a conversation that begins so."""

    @abstractmethod
    def _write(self, results: list[dict[str, Any]], of_user: list[dict[str, Any]]) -> None:
        """Write down the results after a turn, and what the user says after them."""

    @abstractmethod
    def _turn(self, turn: AssistantTurn, position: str) -> None:
        """Write down a turn of the model."""

    @abstractmethod
    def _result(self, result: ToolResult, position: str) -> None:
        """Collect a result."""

    @abstractmethod
    def _user(self, message: Message, position: str) -> None:
        """Collect a message of the user."""
