"""The models of the package `openai`: Chat Completions, and the Responses API."""

from __future__ import annotations

from typing import Any, Protocol

from ..dialects import openai_chat, openai_responses
from ..dialects.hosts import Host
from ._sdk_model import CreateModel, Json, PreparedBody


class ChatClient(Protocol):
    """`openai.OpenAI`, `openai.AsyncOpenAI`, or another client with the same resource."""

    @property
    def chat(self) -> Any:
        """The resource by which a request is sent."""
        ...


class OpenAIChat(CreateModel):
    """Ask a model by Chat Completions.

    Args:
        client: An `openai.OpenAI` or `openai.AsyncOpenAI`; with `base_url` it talks to any server
            of the format, such as Ollama.
        model: The name of the model.
        strict: Offer tools in strict mode ("Structured Outputs").
        stream_usage: Ask for the usage at the end of a stream; some servers refuse the question.
        host: The host, where it departs from OpenAI's ways: a record of `lutum_py.dialects.hosts`.

    Raises:
        TypeError: `client` is not a client, or `model` is not a name.

    Example:
        >>> from types import SimpleNamespace
        >>> from lutum_py import Session
        >>> def create(**request):  # stands in for `openai.OpenAI(...)`
        ...     said = {"role": "assistant", "content": f"{request['model']} greets you"}
        ...     return {"choices": [{"message": said, "finish_reason": "stop"}]}
        >>> completions = SimpleNamespace(create=create)
        >>> client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> session.text_turn(OpenAIChat(client, "gpt-x")).collect_sync().result.text
        'gpt-x greets you'
    """

    _dialect = openai_chat.DIALECT
    _reader = openai_chat.StreamDecoder
    _clients = ("openai.OpenAI", "openai.AsyncOpenAI")
    _required = frozenset({"messages"})

    def __init__(
        self,
        client: ChatClient,
        model: str,
        *,
        strict: bool = False,
        stream_usage: bool = True,
        host: Host | None = None,
    ) -> None:
        super().__init__(client, model, strict=strict)
        self.stream_usage = stream_usage
        self.host = host
        self._dialect = openai_chat.DIALECT.at(host)

    def _create(self, client: ChatClient) -> Any:
        return client.chat.completions.create

    def _stream_arguments(self, prepared: PreparedBody) -> Json:
        arguments = super()._stream_arguments(prepared)
        if self.stream_usage and "stream_options" not in prepared.extra:
            arguments["stream_options"] = {"include_usage": True}
        return arguments


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
        host: The host, where it departs from OpenAI's ways: a record of `lutum_py.dialects.hosts`,
            of which `parses_arguments` counts here.

    Raises:
        TypeError: `client` is not a client, or `model` is not a name.

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

    _dialect = openai_responses.DIALECT
    _reader = openai_responses.StreamDecoder
    _clients = ("openai.OpenAI", "openai.AsyncOpenAI")
    _required = frozenset({"input"})

    def __init__(
        self,
        client: ResponsesClient,
        model: str,
        *,
        strict: bool = False,
        native_search: bool = False,
        host: Host | None = None,
    ) -> None:
        super().__init__(client, model, strict=strict, native_search=native_search)
        self.host = host
        self._dialect = openai_responses.DIALECT.at(host)

    def _create(self, client: ResponsesClient) -> Any:
        return client.responses.create
