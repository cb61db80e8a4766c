"""Which client a model takes, and what it says of any other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import NeedsTools, Session, Toolset, tool_fn
from lutum_py.dialects import openai_chat as openai_dialect
from lutum_py.dialects.hosts import GROQ, VLLM, Host
from lutum_py.errors import MisuseError
from lutum_py.models import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from lutum_py.testing import ScriptedClient, ScriptedModel
from tests.cases import over
from tests.dialects.wire import gemini_generate_content, openai_chat

from .loopback import Loopback
from .said import MODEL, Said
from .sums import Sums
from .wires import WIRES, Wire, outcome_of

ANSWER = Said(text="Hello.")


def started() -> Session:
    session = Session()
    session.push_user("Hello")
    return session


def chat_client(create: Any, **fields: Any) -> Any:
    completions = SimpleNamespace(create=create)
    return SimpleNamespace(chat=SimpleNamespace(completions=completions), **fields)


def test_the_models_import_no_sdk() -> None:
    """`import lutum_py.models` loads none of the SDKs."""
    code = (
        "import sys, lutum_py.models; "
        "print({'openai', 'anthropic', 'google.genai'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses, Anthropic, Gemini])
@over("client", [None, "sk-secret", object(), 7])
def test_what_is_no_client_is_refused(kind: Any, client: Any) -> None:
    """Anything else than a client is a TypeError that names each client once, and no key."""
    with pytest.raises(TypeError, match=r"takes a client that you made with \w+") as caught:
        kind(client, MODEL)
    assert "secret" not in str(caught.value)
    names = re.findall(r"[\w.]+\(\.\.\.\)", str(caught.value))
    assert len({*names}) == len(names)


@over("name", [None, "", 7])
def test_a_model_needs_a_name(wire: Wire, name: Any) -> None:
    """What is no name of a model is a TypeError."""
    client = wire.make_client("http://127.0.0.1:9", False)
    with pytest.raises(MisuseError):
        wire.model(client, name)
    client.close()


async def test_the_other_kind_of_method_is_refused(wire: Wire, mode: str, server: Loopback) -> None:
    """A method that the client cannot serve is a TypeError with the remedy; nothing is sent."""
    other = mode.removesuffix("_sync") if mode.endswith("_sync") else f"{mode}_sync"
    async with wire.client(server.url, mode) as client:
        turn = started().text_turn(wire.model(client, MODEL))
        if wire.name == "gemini_generate_content" and mode.endswith("_sync"):
            # This client is both; the model of its `aio` is async only.
            server.replies.append(wire.reply(ANSWER, other))
            assert (await outcome_of(turn, other)).result.text == ANSWER.text
            await client.aio.aclose()
            return
        with pytest.raises(TypeError, match=rf"`\.{mode}\(\)`"):
            await outcome_of(turn, other)
    assert server.received == []


async def test_a_client_of_both_kinds_serves_all(server: Loopback, wire: Wire, mode: str) -> None:
    """A model over the client itself says what it is over, and answers in the client's ways."""
    server.replies.append(wire.reply(ANSWER, mode))
    async with wire.client(server.url, mode) as client:
        model = wire.model(client, MODEL)
        assert repr(model) == f"<{wire.model.__name__} 'model-1' by {type(client).__name__}>"
        assert (await outcome_of(started().text_turn(model), mode)).result.text == ANSWER.text


async def test_a_client_that_a_tracer_wrapped_is_told_apart() -> None:
    """A wrapper around the method hides neither that it is async nor which fields it takes."""

    async def create(*, model: str, messages: Any, extra_body: Any = None) -> Any:
        assert extra_body == {"temperature": 0.5}
        return openai_chat.response(ANSWER)

    @wraps(create)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return create(*args, **kwargs)

    model = OpenAIChat(chat_client(traced), MODEL)
    outcome = await started().text_turn(model).temperature(0.5).collect()
    assert outcome.result.text == ANSWER.text  # type: ignore[union-attr]


async def test_an_async_client_is_known_by_itself() -> None:
    """Where the method tells nothing, an async context manager is an async client."""

    class Client(SimpleNamespace):
        async def __aenter__(self) -> Any: ...

    async def answer() -> Any:
        return openai_chat.response(ANSWER)

    def create(**request: Any) -> Any:
        return answer()

    client = Client(**vars(chat_client(create)))
    outcome = await started().text_turn(OpenAIChat(client, MODEL)).collect()
    assert outcome.result.text == ANSWER.text  # type: ignore[union-attr]


async def test_streams_need_no_close() -> None:
    """What a client gives for a stream is iterated; it is closed where it can be."""

    class Events:
        def __aiter__(self) -> AsyncIterator[Any]:
            return self

        def __init__(self) -> None:
            self.events = iter(openai_chat.events(ANSWER))

        async def __anext__(self) -> Any:
            for event in self.events:
                return event
            raise StopAsyncIteration

    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return openai_chat.events(ANSWER)

    async def acreate(**request: Any) -> Any:
        return Events()

    session = started()
    outcome = session.text_turn(OpenAIChat(chat_client(create), MODEL)).stream_sync().collect()
    assert outcome.result.text == ANSWER.text  # type: ignore[union-attr]
    turn = session.text_turn(OpenAIChat(chat_client(acreate), MODEL))
    assert (await turn.stream().collect()).result.text == ANSWER.text  # type: ignore[union-attr]
    assert asked[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("extra", [{}, {"stream_options": {"include_usage": False}}])
def test_the_usage_of_a_stream_can_be_left_unasked(extra: dict[str, Any]) -> None:
    """`stream_usage=False`, or an extra of that name, leaves the question out."""
    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return openai_chat.events(ANSWER)

    model = OpenAIChat(chat_client(create), MODEL, stream_usage=bool(extra))
    started().text_turn(model).extra(extra).stream_sync().collect()
    assert "stream_options" not in asked[0]
    assert asked[0].get("extra_body", {}) == extra


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses])
@over("host,sent", [(None, "{bad"), (GROQ, "{bad"), (VLLM, '{"INVALID_JSON":"{bad"}')])
def test_arguments_that_are_no_json_go_back(kind: Any, host: Host | None, sent: str) -> None:
    """They go back as they came, and inside of a JSON object for a host that parses them."""
    asked: list[Any] = []
    bad = ScriptedModel([ScriptedModel.tool_calls(("c1", "add", "{bad"))])
    session = started()
    outcome = session.text_turn(bad).tools(Sums).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [])

    def create(**request: Any) -> Any:
        asked.append(request)
        return {**openai_chat.response(ANSWER), "output": []}

    made = SimpleNamespace(create=create)
    client = SimpleNamespace(chat=SimpleNamespace(completions=made), responses=made)
    session.text_turn(kind(client, MODEL, host=host)).collect_sync()
    assert f'"arguments": {json.dumps(sent)}' in json.dumps(asked[0])


@pytest.mark.parametrize(
    ("bound", "extra", "sent"),
    [(None, {}, 99), (7, {}, 7), (None, {"max_tokens": 8}, 8)],
)
def test_the_bound_that_anthropic_demands(bound: Any, extra: Any, sent: int) -> None:
    """The bound is that of the extras, of the turn, or of the model, in this order."""
    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append({**request, **request.get("extra_body", {})})
        return {"role": "assistant", "content": [], "stop_reason": "end_turn"}

    client = SimpleNamespace(messages=SimpleNamespace(create=create))
    turn = started().text_turn(Anthropic(client, MODEL, max_tokens=99)).extra(extra)
    (turn if bound is None else turn.max_output_tokens(bound)).collect_sync()
    assert asked[0]["max_tokens"] == sent


@pytest.mark.parametrize("known", [True, False])
def test_what_gemini_does_by_itself_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """The SDK is told to call no function and to continue nothing, as far as it knows the word."""
    asked: list[Any] = []

    def generate(*, model: str, contents: Any, config: Any) -> Any:
        asked.append(config)
        return gemini_generate_content.response(ANSWER)

    if not known:
        monkeypatch.setitem(sys.modules, "google.genai.types", None)
    methods = SimpleNamespace(generate_content=generate, generate_content_stream=None)
    model = Gemini(SimpleNamespace(models=methods), MODEL)
    started().text_turn(model).collect_sync()
    assert asked[0]["automatic_function_calling"] == {"disable": True}
    assert asked[0].get("automatic_continuation", False) is False


@pytest.mark.parametrize("strict", [True, False])
def test_extras_may_take_the_place_of_tools(strict: bool) -> None:
    """Tools among the extras that are no list are sent instead of those of the turn."""
    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append({**request, **request["extra_body"]})
        return openai_chat.response(ANSWER)

    model = OpenAIChat(chat_client(create), MODEL, strict=strict)
    started().text_turn(model).tools(Sums).extra({"tools": "own"}).collect_sync()
    assert asked[0]["tools"] == "own"


@over("sent", ["math.half", openai_dialect.wire_name("math.half")])
def test_strict_arguments_are_read_by_either_name(sent: str) -> None:
    """The `null` of a strict schema is left out again, by whichever name the model called."""

    @tool_fn(name="math.half")
    def half(of: int = 4) -> int:
        return of // 2

    said = Said(calls=(("c1", sent, {"of": None}),))
    client = chat_client(lambda **_: openai_chat.response(said))
    model = OpenAIChat(client, MODEL, strict=True)
    outcome = started().text_turn(model).tools(Toolset.of("Halves", half)).collect_sync()
    assert isinstance(outcome, NeedsTools)
    call = outcome.round.expect_one()
    assert (call.name, call.metadata.arguments) == ("math.half", "{}")
    outcome.round.discard()


@pytest.mark.parametrize(
    ("extra", "sent"),
    [
        (
            {"retrievalConfig": {"languageCode": "no"}},
            {
                "functionCallingConfig": {"mode": "VALIDATED"},
                "retrievalConfig": {"languageCode": "no"},
            },
        ),
        ({"functionCallingConfig": {"mode": "AUTO"}}, {"functionCallingConfig": {"mode": "AUTO"}}),
        (None, None),
    ],
)
def test_gemini_is_strict_beside_extras(extra: Any, sent: Any) -> None:
    """An extra that says nothing of the mode of calling leaves that strict."""
    client = ScriptedClient([ScriptedModel.text("Hi")], "gemini_generate_content")
    turn = started().text_turn(Gemini(client, MODEL, strict=True)).tools(Sums)
    turn.extra({"toolConfig": extra}).collect_sync()
    assert client.requests[0]["toolConfig"] == sent


def test_a_choice_of_the_program_stays_where_gemini_is_strict() -> None:
    """Only the choice that is free is replaced: a call that is required is held to its schema."""
    calls = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
    client = ScriptedClient([calls], "gemini_generate_content")
    turn = started().text_turn(Gemini(client, MODEL, strict=True)).tools(Sums)
    outcome = turn.require_any_tool().collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    assert client.requests[0]["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"


def test_every_model_is_tested() -> None:
    """The tests of this folder go through all models that there are."""
    assert {OpenAIChat, OpenAIResponses, Anthropic, Gemini} == {wire.model for wire in WIRES}
