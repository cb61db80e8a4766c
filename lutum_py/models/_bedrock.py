"""`Bedrock`: Converse by the package `boto3`, of any model of Amazon Bedrock.

boto3 has no async client: in async turns its calls are made in a thread. The body travels with
bytes in place of base64, as boto3 takes it.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol, Self

from .._text.json import is_mapping
from ..dialects import bedrock_converse
from ._sdk_model import Json, Methods, PreparedBody, SdkModel, close_sync

_META: Final = "ResponseMetadata"


class ConverseClient(Protocol):
    """`boto3.client("bedrock-runtime")`, or another with the same methods."""

    @property
    def converse(self) -> Any:
        """The method by which a request is sent."""
        ...

    @property
    def converse_stream(self) -> Any:
        """The method by which one is sent whose answer is streamed."""
        ...


class Bedrock(SdkModel):
    """Ask a model by Converse.

    Args:
        client: A `boto3.client("bedrock-runtime")`, with which sync and async methods work: an
            async turn waits in a thread, which goes on to its end where the turn is cancelled.
        model: The id of the model, of an inference profile, or of a prompt router.
        strict: Offer tools in strict mode; not every model takes that.

    Raises:
        TypeError: `client` is not a client, or `model` is not a name.

    Example:
        >>> from types import SimpleNamespace
        >>> from lutum_py import Session
        >>> def converse(**request):  # stands in for `boto3.client("bedrock-runtime")`
        ...     said = [{"text": f"{request['modelId']} greets you"}]
        ...     return {"output": {"message": {"content": said}}, "stopReason": "end_turn"}
        >>> client = SimpleNamespace(converse=converse, converse_stream=None)
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> session.text_turn(Bedrock(client, "nova-x")).collect_sync().result.text
        'nova-x greets you'
    """

    _dialect = bedrock_converse.DIALECT
    _reader = bedrock_converse.StreamDecoder
    _clients = ("boto3.client", "boto3.Session.client")

    # boto3 has no types, and what pyright reads from its source fits nothing.
    def __init__(self, client: ConverseClient | Any, model: str, *, strict: bool = False) -> None:
        super().__init__(client, model, strict=strict)

    def _methods(self, client: Any) -> tuple[Methods | None, Methods | None]:
        whole, streamed = client.converse, client.converse_stream

        def events(**arguments: Any) -> _Events:
            return _Events(streamed(**arguments))

        in_thread = Methods(partial(to_thread, whole), partial(to_thread, events))
        return Methods(whole, events), in_thread

    def _arguments(self, prepared: PreparedBody) -> Json:
        return {"modelId": self.model, **bedrock_converse.with_bytes(prepared.body)}

    def _dump(self, sent: object) -> Any:
        # The API does not say which model answered.
        return {**sent, "modelId": self.model} if is_mapping(sent) else sent


class _Events:
    """The events of a response, of which the first says which request it answers."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        self._stream = response["stream"]
        self._events = iter(self._stream)
        self._beside = {_META: response[_META]} if _META in response else {}

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Json:
        event = {**next(self._events), **self._beside}
        self._beside = {}
        return event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Json:
        # With a default: a StopIteration cannot be raised into a future, and would never arrive.
        event = await to_thread(next, self, None)
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Give the connection back."""
        close_sync(self._stream)

    async def aclose(self) -> None:
        """Do the same; a thread that still waits for an event then gets an error, or the end."""
        self.close()
