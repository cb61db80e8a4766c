"""`ScriptedClient`: what `ScriptedModel` is, for code that calls a provider's client itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Self, TypeAlias

from .._text.json import copy_json
from .._transcript.assistant import AssistantTurn
from ..dialects._facts import facts_of
from ..dialects._wire_form import wire_form_of
from ..errors import DialectError
from ._script import Script
from ._transcript_valid import Dialect, dialect_of

ScriptedAnswer: TypeAlias = AssistantTurn | Mapping[str, Any] | BaseException
"""What a scripted client answers with: a turn, a response as it is, or an exception to raise."""


class ScriptedResponse(dict[str, Any]):
    """A response's JSON, with the methods of an SDK's response; sync and async code may take it."""

    def to_dict(self, **_: Any) -> dict[str, Any]:
        """Give the JSON, as the objects of openai and anthropic do."""
        return dict(self)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Give the JSON, as the objects of google-genai do."""
        return dict(self)

    def __await__(self) -> Generator[Any, None, Self]:
        """Let `await client.….create(...)` give the same as the call without `await`."""
        return self
        yield  # makes a generator of it


class ScriptedClient:
    """Stand in for a provider's client, and answer from a script in the provider's own JSON.

    Every usual way to the one method leads here: `client.chat.completions.create(...)`,
    `client.responses.create(...)`, `client.messages.create(...)`,
    `client.models.generate_content(...)` or just `client.create(...)`; with `await` or without.

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
        self._key = facts_of(self._dialect.NAME).key
        self._form = wire_form_of(self._dialect.NAME)
        self._script = Script(script, (AssistantTurn, Mapping), "turns, responses")
        self._check = check
        self.requests: list[dict[str, Any]] = []

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

    def create(self, **body: Any) -> ScriptedResponse:
        """Answer a request.

        Raises:
            DialectError: The provider would refuse it, or it asks for a stream.
            ScriptExhausted: The script is at its end.
            MisuseError: The script holds something that is no answer.
        """
        body = copy_json(body)
        self.requests.append(body)
        if body.get("stream"):
            raise self._refused("a scripted client does not stream. Leave `stream` out", "stream")
        if self._check:
            self._refuse_invalid(body)
        messages = body.get(self._key) or ["no message"]
        entry = self._script.next(body, f"{messages[-1]!r:.200}")
        return ScriptedResponse(
            self._form.response(entry, len(self.requests))
            if isinstance(entry, AssistantTurn)
            else entry
        )

    def generate_content(self, **body: Any) -> ScriptedResponse:
        """Answer a request, under the name that google-genai has for it."""
        return self.create(**body)

    def assert_exhausted(self) -> None:
        """Make sure that the loop asked for every turn of the script.

        Raises:
            AssertionError: Turns are left; the text says how many.
        """
        __tracebackhide__ = True
        self._script.assert_exhausted()

    def _refuse_invalid(self, body: dict[str, Any]) -> None:
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
