"""`ScriptedClient`: what `ScriptedModel` is, for code that calls a provider's client itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, Literal, Self, TypeAlias, get_args, overload

from .. import AssistantTurn
from .._text.json import copy_json, is_object
from ..dialects.authoring import WireForm, wire_form_of
from ..errors import DialectError, LutumError, MissingExtraError, MisuseError
from ._scripted_model import Script
from ._transcript_valid import Dialect, dialect_of

Json: TypeAlias = dict[str, Any]

ScriptedAnswer: TypeAlias = AssistantTurn | Mapping[str, Any] | BaseException
"""What a scripted client answers with: a turn, a response as it is, or an exception to raise."""


class ScriptedResponse(dict[str, Any]):
    """A response's JSON, with the methods of an SDK's response; sync and async code may take it."""

    def to_dict(self, **_: object) -> dict[str, Any]:
        """Return the JSON, as the objects of openai and anthropic do."""
        return dict(self)

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Return the JSON, as the objects of google-genai do."""
        return dict(self)

    def __await__(self) -> Generator[None, None, Self]:
        """Let `await client.….create(...)` give the same as the call without `await`."""
        return self
        yield  # makes a generator of it


class ScriptedStream:
    """The events of a stream, as an SDK gives them; sync and async code may go through them.

    Attributes:
        events: The JSON of each event.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self.events: list[ScriptedResponse] = [ScriptedResponse(event) for event in events]
        self._left = iter(self.events)

    def __iter__(self) -> Iterator[ScriptedResponse]:
        return self._left

    async def __aiter__(self) -> AsyncIterator[ScriptedResponse]:
        for event in self._left:
            yield event

    def __await__(self) -> Generator[None, None, Self]:
        """Let `await client.….create(..., stream=True)` give the same as without `await`."""
        return self
        yield  # makes a generator of it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def close(self) -> Self:
        """Let go of what was not read; async code awaits this, as it does with the SDKs."""
        self._left = iter(())
        return self


class ScriptedClient:
    """Stand in for a provider's client, and answer from a script in the provider's own JSON.

    Every usual way to the one method leads here: `client.chat.completions.create(...)`,
    `client.responses.create(...)`, `client.messages.create(...)`,
    `client.models.generate_content(...)`, `client.converse(...)` or just `client.create(...)`; with
    `await` or without. With `stream=True`, and from the SDK's other methods for streams, come the
    provider's events, with texts and arguments in halves. A response is JSON with `to_dict` and
    `model_dump`, without attributes such as `choices`.

    For the objects of the official client, use it with `http_client()`.

    Args:
        script: Turns, which are written in the provider's format; or its responses as they are; or
            exceptions to raise; or a function of the request body that makes the next of these.
        dialect: The provider's format, as a module of `lutum_py.dialects` or its name.
        check: Refuse a request that the provider would refuse.

    Raises:
        MisuseError: The script is neither a list nor a function, or there is no such dialect.

    Attributes:
        requests: Every request body that came, copied, in order.

    Example:
        >>> from lutum_py.testing import ScriptedModel
        >>> client = ScriptedClient([ScriptedModel.text("Hi!")], "openai_chat")
        >>> asked = [{"role": "user", "content": "Hello"}]
        >>> client.chat.completions.create(messages=asked)["choices"][0]["message"]["content"]
        'Hi!'
    """

    def __init__(
        self,
        script: Iterable[ScriptedAnswer] | Callable[[Mapping[str, Any]], ScriptedAnswer],
        dialect: Dialect,
        *,
        check: bool = True,
    ) -> None:
        self._dialect = dialect_of(dialect)
        self._key = self._dialect.DIALECT.facts.key
        self._form = wire_form_of(self._dialect.NAME)
        self._script = Script(script, (AssistantTurn, Mapping), "turns, responses")
        self._check = check
        self.requests: list[Json] = []

    @property
    def chat(self) -> Self:
        """One step of the way to the method, as in `client.chat.completions.create(...)`."""
        return self

    @property
    def completions(self) -> Self:
        """The next step of that way."""
        return self

    @property
    def responses(self) -> Self:
        """The step in `client.responses.create(...)`."""
        return self

    @property
    def messages(self) -> Self:
        """The step in `client.messages.create(...)`."""
        return self

    @property
    def models(self) -> Self:
        """The step in `client.models.generate_content(...)`."""
        return self

    @property
    def aio(self) -> Self:
        """The step in `await client.aio.models.generate_content(...)`."""
        return self

    @overload
    def create(self, *, stream: Literal[True], **body: object) -> ScriptedStream: ...
    @overload
    def create(self, *, stream: Literal[False] = False, **body: object) -> ScriptedResponse: ...
    @overload
    def create(self, **body: object) -> ScriptedResponse | ScriptedStream: ...
    def create(self, **body: object) -> ScriptedResponse | ScriptedStream:
        """Answer a request.

        Returns:
            A response; its events, if the body has `stream=True`.

        Raises:
            DialectError: The provider would refuse it.
            ScriptExhausted: The script is at its end.
            MisuseError: The script holds something that is not an answer.
        """
        answer = self._answer(body)
        return self._streamed(answer) if body.get("stream") else answer

    def generate_content(self, **body: object) -> ScriptedResponse:
        """Answer a request, under the name that google-genai has for it."""
        return self._answer(_as_sent(body))

    def generate_content_stream(self, **body: object) -> ScriptedStream:
        """Return the same as events."""
        return self._streamed(self._answer(_as_sent(body)))

    def converse(self, **body: object) -> ScriptedResponse:
        """Answer a request, under the name that boto3 has for it."""
        return self._answer(body)

    def converse_stream(self, **body: object) -> ScriptedResponse:
        """Return the same as events, which stand in `stream`."""
        return ScriptedResponse(stream=self._streamed(self._answer(body)))

    def http_client(self) -> Any:
        """Make an HTTP client through which an official client asks this one.

        It is of the package that the provider's SDK uses, so that all of the SDK is tested:
        `OpenAI(api_key="any", http_client=scripted.http_client())`, the same for `Anthropic`, and
        `genai.Client(..., http_options=HttpOptions(httpx_client=...))`. No network is reached.
        What this client refuses, and a script that is at its end, is a response with status 400; an
        exception in the script is raised where the connection would be.

        Raises:
            MissingExtraError: The SDK is not installed.
            MisuseError: The SDK takes no HTTP client, as boto3: give the library's model, or your
                code, this client itself.
        """
        return _http_client(self._dialect.NAME, self._form, self._over_http, is_async=False)

    def http_async_client(self) -> Any:
        """Make the same for an async official client, such as `AsyncOpenAI`."""
        return _http_client(self._dialect.NAME, self._form, self._over_http, is_async=True)

    def _over_http(self, body: Json, is_stream: bool) -> Any:
        answer = self._answer(body)
        return self._streamed(answer).events if is_stream else answer

    def _answer(self, body: Json) -> ScriptedResponse:
        # Copied, because a loop sends the same list of messages every time, longer each time: a
        # test that looks at request 1 must not see what was said after it.
        body = copy_json(body)
        self.requests.append(body)
        if self._check:
            self._refuse_invalid(body)
        messages = body.get(self._key) or ["no message"]
        entry = self._script.next(body, f"{messages[-1]!r:.200}")
        if isinstance(entry, AssistantTurn):
            entry = self._form.response(entry, len(self.requests))
        return ScriptedResponse(entry)

    def _streamed(self, answer: ScriptedResponse) -> ScriptedStream:
        return ScriptedStream(self._form.events(answer))

    def assert_exhausted(self) -> None:
        """Make sure that the loop asked for every turn of the script.

        Raises:
            AssertionError: Turns are left; the text says how many.
        """
        __tracebackhide__ = True
        self._script.assert_exhausted()

    def _refuse_invalid(self, body: Json) -> None:
        if self._key not in body:
            raise self._refused(f"it has no {self._key!r}", self._key)
        violations = self._dialect.check(body)
        if violations:
            texts = " ".join(str(violation) for violation in violations)
            raise self._refused(texts, violations[0].position)

    def _refused(self, why: str, where: str) -> DialectError:
        return DialectError(
            f"A provider would refuse this request (HTTP 400): {why}",
            dialect=self._dialect.NAME,
            where=where,
        )


def _as_sent(body: Json) -> Json:
    """Put in what google-genai sends in place of its own body, as `models.Gemini` passes it."""
    sent: object = body.get("config")
    for key in ("http_options", "extra_body"):
        sent = sent.get(key) if is_object(sent) else None
    beside = {key: value for key, value in body.items() if key != "config"}
    return {**beside, **sent} if is_object(sent) and sent else body


_Answers: TypeAlias = Callable[[Json, bool], Any]
"""Takes a request body and whether it asks for a stream, and gives a response, or its events."""

_EXTRAS: Final = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini_generate_content": "gemini",
}
"""By dialect the extra that brings an SDK which takes an HTTP client."""


def _http_client(dialect: str, form: WireForm, answer: _Answers, *, is_async: bool) -> Any:
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
    if dialect not in _EXTRAS:
        raise MisuseError(
            f"The SDK of {dialect} takes no HTTP client. Give the scripted client itself to what "
            "asks, in place of the official one."
        )
    extra = _EXTRAS[dialect]
    try:
        taken = _taken_by(extra)
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
        body: Json = json.loads(request.content)
        of_path = form.paths[wanted]
        is_stream = bool(body.get("stream")) if of_path is None else of_path
        try:
            said = answer(body, is_stream)
        except LutumError as error:
            return failed(400, str(error))
        if not is_stream:
            return response(200, "application/json", json.dumps(said))
        return response(200, "text/event-stream", _event_lines(said, form.last_line))

    def failed(status: int, text: str) -> Any:
        said = {"type": "invalid_request_error", "status": "INVALID_ARGUMENT", "message": text}
        body = {"type": "error", "error": {"code": status, **said}}
        return response(status, "application/json", json.dumps(body))

    def response(status: int, kind: str, text: str) -> Any:
        return package.Response(status, headers={"content-type": kind}, content=text.encode())

    transport = package.MockTransport(respond)
    return (package.AsyncClient if is_async else package.Client)(transport=transport)


def _taken_by(extra: str) -> Any:
    """Import the HTTP client that an SDK takes."""
    if extra == "openai":
        from openai import DefaultHttpxClient

        return DefaultHttpxClient
    if extra == "anthropic":
        from anthropic import DefaultHttpxClient as OfAnthropic

        return OfAnthropic
    from google.genai.types import HttpOptions

    kinds = get_args(HttpOptions.model_fields["httpx_client"].annotation)
    return kinds[0]


def _event_lines(events: Iterable[Mapping[str, Any]], last: str) -> str:
    """Write events as a provider sends them, each under its name where it has one."""
    texts = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return "".join([*texts, f"data: {last}\n\n" if last else ""])
