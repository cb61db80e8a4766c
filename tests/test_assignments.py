"""The law of assignments: on no public object is one accepted and ignored."""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest
from pydantic import BaseModel

import lutum_py
from lutum_py import Answer, Session, ToolMetadata, tool_fn
from lutum_py._text.immutable import Immutable
from lutum_py.context import CancellationToken
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.dialects.sse import EventSplitter
from lutum_py.flow import Policy
from lutum_py.mcp import Connection
from lutum_py.models import Anthropic
from lutum_py.otel import ToolTracer
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from lutum_py.tools import MemoryResults, tool_search
from tests.cases import over
from tests.mcp.servers import Served, connected, described, taken
from tests.round_tools import Shop, adds, opened, turn
from tests.store.desk import LOOK, Desk, claimed, plan_of


def said() -> Any:
    return Session().text_turn(ScriptedModel([ScriptedModel.text("Hi!")]))


class Args(BaseModel):
    count: int


def use(args: Args) -> int:
    return args.count


def call() -> Any:
    return Shop.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a":1}'))


def connection() -> Any:
    async def made() -> Connection:
        async with connected(Served([described()])) as client:
            return Connection(client)

    return asyncio.run(made())


def held() -> Any:
    with open_store(":memory:") as store, store.hold("one", Desk) as desk:
        return desk


def claim() -> Any:
    with open_store(":memory:") as store:
        store.save("one", plan_of(LOOK))
        return claimed(store)


def closed_store() -> Any:
    with open_store(":memory:") as store:
        return store


MAKERS: Final[dict[str, Callable[[], Any]]] = {
    "Answer": lambda: Answer(int),
    "CallSpan": lambda: ToolTracer().span(call()),
    "CancellationToken": CancellationToken,
    "Claim": claim,
    "Connection": connection,
    "EventSplitter": EventSplitter,
    "Finished": lambda: said().collect_sync(),
    "FlowGate": lambda: Policy(Shop).gate(Session()),
    "Handlers": Shop.Handlers,
    "Held": held,
    "Hold": lambda: closed_store().hold("one", Desk),
    "HookSet": Shop.HookSet,
    "Invocation": lambda: call().spec.invocation,
    "MemoryResults": MemoryResults,
    "NeedsTools": lambda: Shop.read_turn(turn(*adds(1))),
    "ModelFn": lambda: tool_fn(input=Args)(use),
    "Policy": lambda: Policy(Shop),
    "RemoteTools": lambda: asyncio.run(taken(Served([described()]))),
    "Session": Session,
    "Store": closed_store,
    "StreamDecoder": openai_chat.StreamDecoder,
    "SyncTurnStream": lambda: said().stream_sync(),
    "TextResult": lambda: said().collect_sync().result,
    "ToolCall": call,
    "ToolFn": lambda: tool_fn(use),
    "ToolResult": lambda: call().complete(1),
    "ToolRound": lambda: opened(*adds(1)),
    "ToolRoundPlan": lambda: opened(*adds(1)).plan(),
    "Transcript": lambda: Session().transcript,
    "ToolSearch": lambda: tool_search(limit=3),
    "ToolTracer": ToolTracer,
    "TranscriptView": lambda: said().request().items,
    "Turn": said,
    "TurnStream": lambda: said().stream(),
    "TurnWithAnswer": lambda: said().answer(int),
    "TurnWithTools": lambda: said().tools(Shop),
}

# Classes without a maker, or that take assignments, each with the reason.
DERIVED = "programs derive classes from it, which have attributes of their own"
ABSTRACT = "nobody makes one: what does is another class of this list"
DATA = "a dict, which is not read by its attributes"
AUTHORED = "a part of a dialect, which its author fills"
EXCEPTIONS: Final = {
    "AnyToolCall": ABSTRACT,
    "PendingDecision": ABSTRACT,
    "FnCall": "a `ToolCall`, for type checkers",
    "Skip": "a mark in annotations, which has no attributes",
    **dict.fromkeys(
        ("Draft", "FrontRendering", "History", "Pairing", "Piece", "Place", "Rendering"), AUTHORED
    ),
    **dict.fromkeys(("Repairing", "StreamReader"), AUTHORED),
    "CallRun": "one run while it goes on, which a runner of one's own drives",
    "PartialJson": "a reader that is fed piece by piece",
    "Run": "one run while it goes on, which a runner of one's own drives",
    "Saved": "looked at in `tests/transcript`",
    "RunSettings": "made for each run, and read by nobody who could assign to it",
    "SchemaChecker": "keeps what it compiled",
    "TranscriptCache": "keeps what was rendered of a transcript",
    "Toolset": "a class without instances, whose own law is in `test_misuse`",
    "State": "programs keep what they want in it, by attribute",
    "CallGate": DERIVED,
    "AsyncSink": DERIVED,
    "ListSink": DERIVED,
    "LoggerSink": DERIVED,
    "RichProgressSink": DERIVED,
    "ThrottledSink": DERIVED,
    "ScriptedClient": DERIVED,
    "ScriptedModel": DERIVED,
    "ScriptedResponse": DERIVED,
    "ScriptedStream": DERIVED,
    "Anthropic": DERIVED,
    "Bedrock": DERIVED,
    "Gemini": DERIVED,
    "OpenAIChat": DERIVED,
    "OpenAIResponses": DERIVED,
    "CallOf": "gives each function its class of calls, and has no attributes",
}


def public_classes() -> dict[str, type[Any]]:
    """Each class that a public module has in its `__all__`, by its name."""
    found: dict[str, type[Any]] = {}
    for each in [None, *pkgutil.walk_packages(lutum_py.__path__, "lutum_py.")]:
        name = "lutum_py" if each is None else each.name
        if not any(part.startswith("_") for part in name.split(".")):
            module = importlib.import_module(name)
            for public in getattr(module, "__all__", ()):
                value = getattr(module, public)
                if isinstance(value, type):
                    found[value.__name__] = value
    return found


def is_value(cls: Any) -> bool:
    """Whether its kind refuses assignments, or has a law of its own elsewhere."""
    kinds = (Immutable, BaseException, tuple, dict, enum.Enum, BaseModel)
    params: Any = getattr(cls, "__dataclass_params__", None)
    is_frozen = params is not None and params.frozen
    return issubclass(cls, kinds) or is_frozen or getattr(cls, "_is_protocol", False)


def test_every_public_class_is_looked_at() -> None:
    """A new class has a maker here, refuses assignments by its kind, or has a reason not to."""
    left = {
        name
        for name, cls in public_classes().items()
        if not is_value(cls) and name not in MAKERS and name not in EXCEPTIONS
    }
    assert left == set()
    assert {*MAKERS, *EXCEPTIONS} - public_classes().keys() == set()
    assert MAKERS.keys() & EXCEPTIONS.keys() == set()


# What a program may assign, and what then is another: `test_immutable` looks at it.
ASSIGNED: Final = {("ToolCall", "input"), ("Held", "note"), ("Claim", "lease")}


@over("name", [*MAKERS])
def test_no_assignment_is_ignored(name: str) -> None:
    """A name that is not there is refused, and so is each public property and attribute."""
    made = MAKERS[name]()
    with pytest.raises((AttributeError, TypeError)):
        made.no_such_name = 1
    fields = getattr(public_classes().get(name, type(made)), "__annotations__", {})
    properties = [
        each
        for each in dir(type(made))
        if isinstance(inspect.getattr_static(type(made), each), property)
    ]
    for each in {*properties, *fields, *getattr(made, "__dict__", ())}:
        if not each.startswith("_") and (name, each) not in ASSIGNED:
            with pytest.raises((AttributeError, TypeError)):
                setattr(made, each, None)
    opened_round = getattr(made, "round", made)
    if hasattr(opened_round, "discard"):
        opened_round.discard()


def test_the_client_of_a_model_and_the_limit_of_a_search_are_read_only() -> None:
    """What was taken from them when they were made would not follow."""
    client: Any = SimpleNamespace(
        messages=SimpleNamespace(create=lambda **_: None, stream=lambda **_: None)
    )
    model = Anthropic(client, "m")
    search: Any = tool_search(limit=3)
    for made, name in ((model, "client"), (search, "limit")):
        before = getattr(made, name)
        with pytest.raises(AttributeError):
            setattr(made, name, 5)
        assert getattr(made, name) is before


@over(
    "dialect",
    [anthropic_messages, bedrock_converse, gemini_generate_content, openai_chat, openai_responses],
)
def test_a_decoder_of_every_dialect_takes_no_attribute(dialect: Any) -> None:
    """What a program would set on it, such as `decoder.strict`, is read by nobody."""
    with pytest.raises(AttributeError):
        dialect.StreamDecoder().strict = True


def test_a_store_goes_by_what_it_was_opened_with() -> None:
    """A key or owner that is assigned later would not count; a test's own method does."""
    with open_store(":memory:", key=b"a") as store:
        anything: Any = store
        for name in ("key", "owner", "behind_poler"):
            with pytest.raises(AttributeError, match="Call `open_store` again"):
                setattr(anything, name, b"b")
        anything.run = asyncio.sleep
        assert anything.run is asyncio.sleep


def test_what_was_claimed_held_or_listed_is_read_only() -> None:
    """The error of each gives the way."""
    for made, name, way in (
        (claim(), "in_doubt", "claim again"),
        (claim(), "key", "claim again"),
        (held(), "session", "save by `commit`"),
        (ToolTracer(), "content", "another `ToolTracer`"),
        (ToolTracer().span(call()), "call", "tracer.span"),
        (MAKERS["RemoteTools"](), "digest", "refresh"),
        (call().spec.invocation, "function", "another function"),
        (tool_fn(use), "name", "where the tool is declared"),
    ):
        before = getattr(made, name)
        with pytest.raises(AttributeError, match=way):
            setattr(made, name, None)
        with pytest.raises(AttributeError, match=way):
            delattr(made, name)
        assert getattr(made, name) is before
