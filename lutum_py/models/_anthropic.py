"""`Anthropic`: the Messages API by the package `anthropic`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from .. import TurnRequest
from ..dialects import anthropic_messages
from ._sdk_model import CreateModel, PreparedBody


class MessagesClient(Protocol):
    """`anthropic.Anthropic`, `anthropic.AsyncAnthropic`, or another with the same resource."""

    @property
    def messages(self) -> Any:
        """The resource by which a request is sent."""
        ...


class Anthropic(CreateModel):
    """Ask a model by the Messages API.

    Args:
        client: An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, or one of the SDK's clients
            for Bedrock or Vertex.
        model: The name of the model.
        max_tokens: The bound on an answer, which the API demands, if a turn sets none with
            `.max_output_tokens()`. A whole answer with a very high bound is refused by the SDK,
            which wants it streamed.
        strict: Offer tools in strict mode.
        native_search: Send deferred tools as such, so that loading one leaves the cached beginning
            of the request as it is; not every model takes that.

    Raises:
        TypeError: `client` is not a client, or `model` is not a name.

    Example:
        >>> from types import SimpleNamespace
        >>> from lutum_py import Session
        >>> def create(**request):  # stands in for `anthropic.Anthropic(...)`
        ...     said = [{"type": "text", "text": f"At most {request['max_tokens']} tokens"}]
        ...     return {"role": "assistant", "content": said, "stop_reason": "end_turn"}
        >>> client = SimpleNamespace(messages=SimpleNamespace(create=create))
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> session.text_turn(Anthropic(client, "claude-x")).collect_sync().result.text
        'At most 4096 tokens'
    """

    _dialect = anthropic_messages.DIALECT
    _reader = anthropic_messages.StreamDecoder
    _clients = ("anthropic.Anthropic", "anthropic.AsyncAnthropic")
    _required = frozenset({"max_tokens", "messages"})

    def __init__(
        self,
        client: MessagesClient,
        model: str,
        *,
        max_tokens: int = anthropic_messages.DEFAULT_MAX_TOKENS,
        strict: bool = False,
        native_search: bool = False,
    ) -> None:
        super().__init__(client, model, strict=strict, native_search=native_search)
        self.max_tokens = max_tokens

    def _create(self, client: MessagesClient) -> Any:
        return client.messages.create

    def _prepare(self, request: TurnRequest) -> PreparedBody:
        prepared = super()._prepare(request)
        if request.max_output_tokens is None and "max_tokens" not in request.extra:
            return replace(prepared, body={**prepared.body, "max_tokens": self.max_tokens})
        return prepared
