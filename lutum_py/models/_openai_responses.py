"""`OpenAIResponses`: the Responses API by the package `openai`."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ..dialects import openai_responses
from ._create_model import CreateModel
from ._prepared import DialectModule


class ResponsesClient(Protocol):
    """`openai.OpenAI`, `openai.AsyncOpenAI`, or another client with the same resource."""

    @property
    def responses(self) -> Any:
        """The resource by which a request is sent."""
        ...


class OpenAIResponses(CreateModel):
    """Ask a model by the Responses API.

    Each request carries the whole conversation, so that `.extra({"store": False})` works; a
    reasoning model then wants `"include": ["reasoning.encrypted_content"]` too.

    Args:
        client: An `openai.OpenAI` or `openai.AsyncOpenAI`.
        model: The name of the model.
        strict: Offer tools in strict mode ("Structured Outputs").
        native_search: Send deferred tools as such, and `tool_search(name="tool_search")` as the
            API's own search, so that loading a tool leaves the cached beginning of the request as
            it is; not every model takes that.

    Raises:
        TypeError: `client` is no client, or `model` is no name.

    Example:
        >>> from types import SimpleNamespace
        >>> from lutum_py import Session
        >>> def create(**request):  # stands in for `openai.OpenAI(...)`
        ...     part = {"type": "output_text", "text": f"{len(request['input'])} item"}
        ...     said = {"type": "message", "role": "assistant", "content": [part]}
        ...     return {"status": "completed", "output": [said]}
        >>> client = SimpleNamespace(responses=SimpleNamespace(create=create))
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> session.text_turn(OpenAIResponses(client, "gpt-x")).collect_sync().result.text
        '1 item'
    """

    _dialect: ClassVar[DialectModule] = openai_responses
    _clients = ("openai.OpenAI", "openai.AsyncOpenAI")
    _required = frozenset({"input"})

    def __init__(
        self,
        client: ResponsesClient,
        model: str,
        *,
        strict: bool = False,
        native_search: bool = False,
    ) -> None:
        super().__init__(client, model, strict=strict)
        self.native_search = native_search

    def _create(self, client: ResponsesClient) -> Any:
        return client.responses.create
