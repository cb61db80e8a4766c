"""`Gemini`: generateContent by the package `google-genai`, of the Gemini API or of Vertex AI.

The SDK has types of its own for what is sent, and refuses a field that its version does not know.
So the body travels as `extra_body`, which takes the place of what the SDK would send: a turn goes
back as it came, and extras arrive untouched. What the SDK would do by itself is switched off: it
calls no function, and asks for no continuation of an answer.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from .. import TurnRequest
from .._text.json import is_mapping
from ..dialects import gemini_generate_content
from ._sdk_model import Json, Methods, PreparedBody, SdkModel

# The SDK asks for some content; the body has the real one.
_PLACEHOLDER: Final = ""
_AUTOMATIC: Final[dict[str, Any]] = {
    "automatic_function_calling": {"disable": True},
    "automatic_continuation": False,
}


class GenerateClient(Protocol):
    """`google.genai.Client`, or what its attribute `aio` gives."""

    @property
    def models(self) -> Any:
        """The resource by which a request is sent."""
        ...


class Gemini(SdkModel):
    """Ask a model by generateContent.

    Args:
        client: A `google.genai.Client`, with which sync and async methods work, or its `aio`, with
            which the async ones do.
        model: The name of the model.
        strict: Hold the model to the schemas of its tools: all of them, as the API has it, and in
            turns that leave it to the model whether it calls one.

    Raises:
        TypeError: `client` is not a client, or `model` is not a name.

    Example:
        >>> from types import SimpleNamespace
        >>> from lutum_py import Session
        >>> def generate(model, contents, config):  # stands in for `google.genai.Client(...)`
        ...     sent = config["http_options"]["extra_body"]["contents"]
        ...     said = {"role": "model", "parts": [{"text": sent[0]["parts"][0]["text"] + " you!"}]}
        ...     return {"candidates": [{"content": said, "finishReason": "STOP"}]}
        >>> methods = SimpleNamespace(generate_content=generate, generate_content_stream=None)
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> model = Gemini(SimpleNamespace(models=methods), "gemini-x")
        >>> session.text_turn(model).collect_sync().result.text
        'Hello you!'
    """

    _dialect = gemini_generate_content.DIALECT
    _reader = gemini_generate_content.StreamDecoder
    _clients = ("google.genai.Client", "google.genai.Client")

    def __init__(self, client: GenerateClient, model: str, *, strict: bool = False) -> None:
        super().__init__(client, model, strict=strict)
        self._config = _known_options()

    def _methods(self, client: Any) -> tuple[Methods | None, Methods | None]:
        methods = _methods_of(client)
        if hasattr(client, "aio"):
            return methods, _methods_of(client.aio)
        return (None, methods) if hasattr(client, "__aenter__") else (methods, None)

    def _prepare(self, request: TurnRequest) -> PreparedBody:
        prepared = super()._prepare(request)
        beside = request.extra.get("toolConfig", {})
        if self.strict and is_mapping(beside) and "functionCallingConfig" not in beside:
            config = prepared.body.get("toolConfig", {}).get("functionCallingConfig", {})
            if config.get("mode") == "AUTO":
                # AUTO lets the model write what it likes. VALIDATED leaves it the choice between
                # text and calls, and holds the calls to their schemas.
                config["mode"] = "VALIDATED"
        return prepared

    def _arguments(self, prepared: PreparedBody) -> Json:
        return {
            "model": self.model,
            "contents": _PLACEHOLDER,
            "config": {**self._config, "http_options": {"extra_body": prepared.body}},
        }

    def _dump(self, sent: object) -> Any:
        dump = getattr(sent, "model_dump", None)
        if dump is None:
            return sent
        return dump(mode="json", by_alias=True, exclude_none=True, warnings=False)


def _methods_of(client: Any) -> Methods:
    return Methods(client.models.generate_content, client.models.generate_content_stream)


def _known_options() -> Json:
    """Return what switches off the SDK's own doings, as far as its version has such options."""
    try:
        from google.genai.types import GenerateContentConfig
    except ImportError:
        # The client stands in for one of the SDK.
        return _AUTOMATIC
    known = GenerateContentConfig.model_fields
    return {key: value for key, value in _AUTOMATIC.items() if key in known}
