"""A transcript for an API that keeps instructions in front of the conversation, in one place.

Everything that stands between two turns of the model is collected, results first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from ..._transcript.assistant import AssistantTurn
from ..._transcript.message import Message
from ..._transcript.request import TranscriptItem
from ..._transcript.result import ToolResult
from ...errors import InvalidValueError
from .._facts import Facts
from .losses import Loss
from .other_model import ModelNames, names_of
from .rendered_items import rendered_items
from .tool_names import WireNames

__all__ = ["FrontRendering"]


class FrontRendering(ABC):
    """Collect what was said, the texts that belong in front of it, and what was lost.

    Args:
        offered: The names of the tools on offer.
        model: The model that is asked, if it is known.

    Attributes:
        said: What user and model said, in the form of the wire.
        system: The texts of system and developer, in order.
        losses: What was lost.
        names: The names under which calls go out.
        lasting: Where the first ephemeral message of the user stands, as the index of its message
            and of its first block in that; None where there is none.
        lasting_system: How many texts of `system` stand before the first ephemeral one; None where
            there is none.
    """

    facts: ClassVar[Facts]

    def __init__(self, offered: Iterable[str] = (), model: ModelNames = None) -> None:
        self.said: list[dict[str, Any]] = []
        self.system: list[str] = []
        self.losses: list[Loss] = []
        self.names = WireNames(self.facts, offered)
        self._results: list[dict[str, Any]] = []
        self._of_user: list[dict[str, Any]] = []
        self._begun = False
        self.model = names_of(model)
        self.lasting: tuple[int, int] | None = None
        self.lasting_system: int | None = None

    @classmethod
    def of(
        cls,
        items: Iterable[TranscriptItem],
        offered: Iterable[str] = (),
        model: ModelNames = None,
        start: int = 0,
        **options: Any,
    ) -> Self:
        """Render messages, turns and results.

        Args:
            items: The items, oldest first.
            offered: The names of the tools on offer.
            model: The model that is asked, if it is known.
            start: How many of the first items go out in another way.
            options: What the dialect's own rendering is made with besides.

        Raises:
            MisuseError: An item is none of the three.
        """
        rendering = cls(offered, model, **options)
        rendering._begun = start > 0
        ephemeral = {id(message) for _, message in getattr(items, "ephemeral", ())}
        for position, item in rendered_items(items, start):
            if ephemeral and id(item) in ephemeral:
                rendering._note_ephemeral(item)
            if isinstance(item, Message) and item.role != "user":
                rendering._instruct(item, position)
                continue
            rendering._begun = True
            if isinstance(item, AssistantTurn):
                rendering._flush()
                rendering._turn(item, position)
            elif isinstance(item, ToolResult):
                rendering._result(item, position)
            else:
                rendering._user(item, position)
        rendering._flush()
        return rendering

    def _note_ephemeral(self, item: Any) -> None:
        """Note what of the request lasts: what stands before the first message that does not."""
        if item.role != "user":
            if self.lasting_system is None:
                self.lasting_system = len(self.system)
        elif self.lasting is None:
            self.lasting = (len(self.said), len(self._results) + len(self._of_user))

    def to_send(self) -> list[dict[str, Any]]:
        """Give what was said, for a request.

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

    def _flush(self) -> None:
        """Write down what was collected since the last turn."""
        self._write(self._results, self._of_user)
        self._results = []
        self._of_user = []

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
