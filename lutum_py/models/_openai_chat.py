"""`OpenAIChat`: Chat Completions by the package `openai`, of OpenAI or any server of the format."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ..dialects import openai_chat
from ._create_model import CreateModel
from ._prepared import DialectModule, PreparedBody


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

    Raises:
        TypeError: `client` is no client, or `model` is no name.

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

    _dialect: ClassVar[DialectModule] = openai_chat
    _clients = ("openai.OpenAI", "openai.AsyncOpenAI")
    _required = frozenset({"messages"})

    def __init__(
        self, client: ChatClient, model: str, *, strict: bool = False, stream_usage: bool = True
    ) -> None:
        super().__init__(client, model, strict=strict)
        self.stream_usage = stream_usage

    def _create(self, client: ChatClient) -> Any:
        return client.chat.completions.create

    def _stream_arguments(self, prepared: PreparedBody) -> dict[str, Any]:
        arguments = super()._stream_arguments(prepared)
        if self.stream_usage and "stream_options" not in prepared.extra:
            arguments["stream_options"] = {"include_usage": True}
        return arguments
