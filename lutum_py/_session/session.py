"""`Session`: one conversation, and what is said to the model on the side.

An ephemeral message is kept with its place, outside of the transcript. A request is a view of the
two; a request that was answered takes with it the very messages it held, and leaves later ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .._round.finished import Finished, read_finished
from .._text.display import Displayed, Listing
from .._text.immutable import settle
from .._toolsets.answer import Answer, answer_of
from .._transcript.message import Attachment, Message, Role, attachments_of
from .._transcript.transcript import Transcript, TranscriptView
from ..errors import InvalidValueError, MisuseError
from .model import AnyModel, ViewLike, check_model
from .turn import Turn

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from .._round.plan import ToolRoundPlan

T_co = TypeVar("T_co", covariant=True)
A1 = TypeVar("A1")


class Session(Displayed):
    """Keep a transcript, and start turns on it.

    Args:
        transcript: What was said before; a new transcript by default.
        id: Names the conversation, in your own words. If there is one, the idempotency keys of
            its calls begin with it and the turn's place, so that equal calls of two turns differ.

    Raises:
        MisuseError: `transcript` is not a `Transcript`, or the id is not text.
        InvalidValueError: The id is empty.

    Example:
        >>> from lutum_py import Finished, Session
        >>> from lutum_py.testing import ScriptedModel
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> model = ScriptedModel([ScriptedModel.text("Hi!")])
        >>> session.text_turn(model).collect_sync().result.text
        'Hi!'
        >>> len(session.transcript)
        2
    """

    __slots__ = ("_ephemeral", "_id", "_transcript")
    transcript: Transcript
    id: str | None
    _transcript: Transcript
    _id: str | None

    def __init__(self, transcript: Transcript | None = None, *, id: str | None = None) -> None:
        if transcript is not None and not isinstance(transcript, Transcript):
            raise MisuseError(
                f"A session goes on from a Transcript, not from a {type(transcript).__name__}. "
                "Load one with `Transcript.load_json(text)`."
            )
        self._transcript = Transcript() if transcript is None else transcript
        MisuseError.check("Session", "id", "a text", id, str | None)
        if id == "":
            raise InvalidValueError("The id of a session is empty. Give a text, or leave it out.")
        self._id = id
        self._ephemeral: tuple[tuple[int, Message], ...] = ()

    def push_system(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the system."""
        self._push("system", text, attachments)

    def push_developer(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the developer."""
        self._push("developer", text, attachments)

    def push_user(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the user."""
        self._push("user", text, attachments)

    def push_ephemeral_system(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the system in the next request that succeeds, and never again."""
        self._push_ephemeral("system", text, attachments)

    def push_ephemeral_developer(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the developer in the next request that succeeds, and never again."""
        self._push_ephemeral("developer", text, attachments)

    def push_ephemeral_user(self, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Say something as the user in the next request that succeeds, and never again."""
        self._push_ephemeral("user", text, attachments)

    def _push(self, role: Role, text: str, attachments: Iterable[Attachment]) -> None:
        self.transcript.push(Message(role, text, attachments_of("Message", attachments)))

    def _push_ephemeral(self, role: Role, text: str, attachments: Iterable[Attachment]) -> None:
        message = Message(role, text, attachments_of("Message", attachments))
        # Such as ((4, Message("system", "Be brief.")),): said before item 4. A tuple, which
        # requests and branches share without copying.
        self._ephemeral = (*self._ephemeral, (len(self.transcript), message))

    def text_turn(self, model: AnyModel) -> Turn:
        """Start a turn: configure what this returns, and end with `.collect()`.

        Args:
            model: Anything with one of `respond(request)`, `stream(request)` and their sync twins,
                such as those of `lutum_py.models`.

        Raises:
            MisuseError: It is not a model, but for example a name or a client.
        """
        check_model(model)
        return Turn(self, model)

    @overload
    def finished(self, answer: None = None, /) -> Finished | None: ...
    @overload
    def finished(self, answer: Answer[A1], /) -> Finished[A1] | None: ...
    @overload
    def finished(self, answer: TypeForm[A1], /) -> Finished[A1] | None: ...
    def finished(self, answer: Any = None, /) -> Any:
        """Return the outcome of the last turn, if the conversation ends with an answer.

        A loop that continues a conversation calls this before it asks the model.

        Args:
            answer: The type of the final answer that was asked for, or the `Answer`; left out where
                any text ends the conversation.

        Returns:
            The same as `collect()` gave, also if the answer came beside calls; None if the
            last turn is not an answer of this type, or something was said since.

        Raises:
            ToolDefinitionError: The type has no JSON schema.

        Example:
            >>> from lutum_py import AssistantTurn, Session
            >>> from lutum_py.turns import TextItem
            >>> session = Session()
            >>> session.push_user("Hello")
            >>> session.finished()
            >>> session.transcript.append_turn(AssistantTurn(items=(TextItem("Hi!"),)))
            >>> session.finished().answer
            'Hi!'
        """
        return read_finished(self.transcript, None if answer is None else answer_of(answer))

    # Items are immutable, so a branch shares them: it costs a list of references, however long the
    # conversation.
    def branch(self, id: str | None = None) -> Session:
        """Return a copy of the session that goes on separately.

        Args:
            id: Names the new conversation; left out, it has none.
        """
        made = Session(self.transcript.copy(), id=id)
        made._ephemeral = self._ephemeral
        return made

    def _request_items(self, view: ViewLike | None = None) -> TranscriptView:
        """Return what the next request says, ephemeral messages in their places."""
        transcript = self.transcript
        if view is not None:
            return view.of(transcript, self._ephemeral)
        return TranscriptView(transcript, len(transcript._items), self._ephemeral)

    def _drop_ephemeral(self, sent: TranscriptView) -> None:
        """Forget the ephemeral messages of a request that succeeded; later ones stay."""
        # By identity: the same words may have been pushed again while the model was busy.
        gone = set(map(id, sent.ephemeral))
        self._ephemeral = tuple(each for each in self._ephemeral if id(each) not in gone)

    def _listing(self) -> Listing:
        from .._transcript.display import items_listing

        ephemeral = frozenset(id(message) for _, message in self._ephemeral)
        return items_listing("Session", self._request_items(), ephemeral)

    def __repr__(self) -> str:
        return f"<Session of {len(self.transcript)} items>"


settle(
    Session,
    "it stays for good. Write `Session(transcript, id=...)` for another one.",
    "transcript",
    "id",
)


@dataclass(frozen=True, slots=True)
class Restored(Generic[T_co]):
    """What a saved conversation came back as.

    Attributes:
        session: The session, with its transcript and id.
        plan: The plan of the round that was open, if one was saved.
    """

    session: Session
    plan: ToolRoundPlan[T_co] | None
