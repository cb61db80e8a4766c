"""A conversation of one dialect as a request of another."""

from __future__ import annotations

from collections.abc import Sequence

from .._text.json import parse_json
from .._transcript.message import Message
from .._transcript.request import TranscriptItem, TurnRequest
from .._transcript.transcript import Transcript
from ..dialects._repair.violations import NOT_SHOWN
from ..dialects._wire.losses import EncodedRequest, Loss
from ..errors import InvalidValueError
from ._conversation_file import Conversation, dialect_module, reading
from ._exact_json import exact_text
from ._screen import Failure


def read_transcript(conversation: Conversation) -> tuple[Transcript, list[Loss]]:
    """Read a saved transcript, or the messages of a request.

    Raises:
        HistoryError: The provider would refuse the request.
        Failure: It cannot be read.
    """
    with reading(conversation.name):
        text = exact_text(conversation.value, conversation.style)
        if conversation.dialect is None or conversation.is_saved:
            return Transcript.load_json(text), []
        try:
            body = parse_json(text)
        except ValueError as error:  # such as a number that is too long for Python
            raise Failure(f"{conversation.name} cannot be read: {error}.") from error
        read: tuple[Transcript, list[Loss]] = dialect_module(conversation.dialect).read_history(
            body
        )
        return read


def encoded_for(dialect: str, items: Sequence[TranscriptItem]) -> EncodedRequest:
    """Make the conversation of a request; where the user has to begin, let the user begin."""
    encode = dialect_module(dialect).encode_request
    try:
        body: EncodedRequest = encode(TurnRequest(items=items))
    # Tried first without: only the encoder of a dialect knows whether its provider lets the model
    # begin.
    except InvalidValueError:
        told = (at for at, item in enumerate(items) if not _is_instruction(item))
        first = next(told, len(items))
        begun = [*items[:first], Message("user", NOT_SHOWN), *items[first:]]
        body = encode(TurnRequest(items=begun))
        why = f"{dialect} wants to hear the user first: a message says that the beginning is lost"
        return EncodedRequest(body, (Loss(f"items[{first}]", why), *body.losses))
    return body


def _is_instruction(item: TranscriptItem) -> bool:
    return isinstance(item, Message) and item.role != "user"
