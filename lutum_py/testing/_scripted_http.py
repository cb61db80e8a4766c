"""HTTP clients that reach no network: a scripted client answers what an official one sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, get_args

from ..dialects._wire_form import WireForm
from ..errors import LutumError, MissingExtraError, MisuseError

Answers = Callable[[dict[str, Any], bool], Any]
"""Takes a request body and whether it asks for a stream, and gives a response, or its events."""


def _openai() -> type[Any]:
    from openai import DefaultHttpxClient

    return DefaultHttpxClient


def _anthropic() -> type[Any]:
    from anthropic import DefaultHttpxClient

    return DefaultHttpxClient


def _gemini() -> type[Any]:
    from google.genai.types import HttpOptions

    kinds: Any = get_args(HttpOptions.model_fields["httpx_client"].annotation)
    taken: type[Any] = kinds[0]
    return taken


_CLIENTS: Final[dict[str, tuple[str, Callable[[], type[Any]]]]] = {
    "openai_chat": ("openai", _openai),
    "openai_responses": ("openai", _openai),
    "anthropic_messages": ("anthropic", _anthropic),
    "gemini_generate_content": ("gemini", _gemini),
}
"""By dialect the extra that brings the SDK, and what gives the HTTP client that it takes."""


def http_client(dialect: str, form: WireForm, answer: Answers, *, is_async: bool = False) -> Any:
    """Make a client, of the HTTP package that an SDK uses, whose requests a function answers.

    Args:
        dialect: The name of the dialect.
        form: Its form on the wire.
        answer: Answers a request.
        is_async: Whether async code asks.

    Raises:
        MissingExtraError: The SDK is not installed.
        MisuseError: The SDK takes no HTTP client.
    """
    if dialect not in _CLIENTS:
        raise MisuseError(
            f"The SDK of {dialect} takes no HTTP client. Give the scripted client itself to what "
            "asks, in place of the official one."
        )
    extra, kind = _CLIENTS[dialect]
    try:
        taken = kind()
    except ImportError as error:
        raise MissingExtraError(
            f"An HTTP client of the SDK for {dialect} needs that SDK: `python -m pip install "
            f"'lutum-py[{extra}]'`."
        ) from error
    # The SDKs subclass a client of `httpx`, or of a package that has its interface and its name in
    # its own. The base classes say which one this SDK has.
    names = (each.__module__.partition(".")[0] for each in taken.__mro__)
    package: Any = import_module(next(name for name in names if name.startswith("httpx")))

    def respond(request: Any) -> Any:
        path = request.url.path
        # By its end: what is before it, as `/v1beta/models/gemini-2.5-flash` or a prefix of
        # Azure, is the user's to choose.
        wanted = next((end for end in form.paths if path.endswith(end)), None)
        if wanted is None:
            return failed(404, f"A scripted client has no {path}.")
        body: dict[str, Any] = json.loads(request.content)
        of_path = form.paths[wanted]
        is_stream = bool(body.get("stream")) if of_path is None else of_path
        try:
            said = answer(body, is_stream)
        except LutumError as error:
            return failed(400, str(error))
        if not is_stream:
            return response(200, "application/json", json.dumps(said))
        return response(200, "text/event-stream", _lines(said, form.last_line))

    def failed(status: int, text: str) -> Any:
        said = {"type": "invalid_request_error", "status": "INVALID_ARGUMENT", "message": text}
        body = {"type": "error", "error": {"code": status, **said}}
        return response(status, "application/json", json.dumps(body))

    def response(status: int, kind: str, text: str) -> Any:
        return package.Response(status, headers={"content-type": kind}, content=text.encode())

    transport = package.MockTransport(respond)
    return (package.AsyncClient if is_async else package.Client)(transport=transport)


def _lines(events: Iterable[Mapping[str, Any]], last: str) -> str:
    """Write events as a provider sends them, each under its name where it has one."""
    texts = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return "".join([*texts, f"data: {last}\n\n" if last else ""])
