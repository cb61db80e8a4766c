"""The law of secrets: what a tool declares to be secret shows nowhere, and its function gets it.

`WAYS` lists every public way by which arguments are shown, and `DECLARED` every way to declare a
secret; the law is held to all pairs.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_serializer,
)
from typing_extensions import TypedDict

import lutum_py
from lutum_py import (
    AssistantTurn,
    Complete,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolInput,
    ToolMetadata,
    Toolset,
    errors,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect, capability_gate
from lutum_py.execution import execute_sync
from lutum_py.sinks import log_events
from lutum_py.store import open_store

SECRET = "HUNTER2"
DECLARE: Any = type(Toolset)
WRITE_ONLY: Any = {"writeOnly": True}
PASSWORD: Any = {"type": "string", "format": "password"}
GOT: list[Any] = []
Hidden = Annotated[str, Field(json_schema_extra=WRITE_ONLY)]


def keep(*values: Any) -> str:
    GOT.append(repr([_bare(each) for each in values]))
    return "done"


def _bare(value: Any) -> Any:
    """Give a value with every secret of pydantic's revealed."""
    if hasattr(value, "get_secret_value"):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return _bare({**value.__dict__, **(value.__pydantic_extra__ or {})})
    if isinstance(value, dict):
        return {_bare(key): _bare(each) for key, each in value.items()}
    return (
        [_bare(each) for each in value]
        if isinstance(value, list)
        else getattr(value, "__dict__", value)
    )


class Inner(BaseModel):
    pin: Hidden
    note: str = ""


class Cat(BaseModel):
    kind: Literal["cat"]
    chip: SecretStr


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


@dataclass
class Card:
    number: Annotated[str, Field(json_schema_extra=PASSWORD)]
    owner: str = ""


class Keyring(TypedDict):
    key: Annotated[str, Field(alias="the-key", json_schema_extra=WRITE_ONLY)]


class Odd(BaseModel):
    pin: Hidden

    @model_serializer
    def write(self) -> dict[str, str]:
        return {"pin": self.pin, "copied": self.pin}


class Either(RootModel[Inner | Card]):
    """One of two."""


def mark(schema: dict[str, Any]) -> None:
    schema["properties"]["first"]["writeOnly"] = True


class Marked(BaseModel):
    model_config = ConfigDict(json_schema_extra=mark)
    word: str = Field(validation_alias=AliasChoices("first", "second"))


def revealed(value: Any) -> str:
    return str(value.get_secret_value())


@tool_fn
def by_type(pin: SecretStr) -> str:
    return keep(pin)


@tool_fn
def by_bytes(pin: SecretBytes) -> str:
    return keep(pin)


@tool_fn
def by_any_secret(pin: Secret[str], others: list[Secret[str]] = []) -> str:  # noqa: B006
    return keep(pin, others)


@tool_fn
def by_revealed(pin: Annotated[Secret[str], PlainSerializer(revealed)]) -> str:
    return keep(pin)


@tool_fn
def by_text(pin: Hidden) -> str:
    return keep(pin)


@tool_fn
def by_optional(pin: Annotated[str | None, Field(json_schema_extra=PASSWORD)] = None) -> str:
    return keep(pin)


@tool_fn
def by_model(inner: Inner, other: int = 0) -> str:
    return keep(inner)


@tool_fn
def by_list(inner: list[Inner], other: int = 0) -> str:
    return keep(inner)


@tool_fn
def by_values(pins: dict[str, SecretStr]) -> str:
    return keep(pins)


@tool_fn
def by_names(pins: dict[str, SecretStr]) -> str:
    return keep(pins)


@tool_fn
def by_names_within(pins: dict[str, dict[str, list[SecretStr]]], other: int = 0) -> str:
    return keep(pins)


@tool_fn
def by_names_of_any(pins: Annotated[dict[str, Any], Field(json_schema_extra=WRITE_ONLY)]) -> str:
    return keep(pins)


class Open(BaseModel):
    __pydantic_extra__: dict[str, SecretStr]
    model_config = ConfigDict(extra="allow")

    other: int = 0


@tool_fn
def by_extra(more: Open) -> str:
    return keep(more)


@tool_fn
def by_keys(pins: dict[SecretStr, int]) -> str:
    return keep(pins)


@tool_fn
def by_union(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
    return keep(pet)


@tool_fn
def by_class(card: Card, other: int = 0) -> str:
    return keep(card)


@tool_fn
def by_typed_dict(ring: Keyring, other: int = 0) -> str:
    return keep(ring)


@tool_fn
def by_json(inner: Json[Inner], other: int = 0) -> str:
    return keep(inner)


@tool_fn
def by_serializer(odd: Odd, other: int = 0) -> str:
    return keep(odd)


@tool_fn
def by_mark(marked: Marked, other: int = 0) -> str:
    return keep(marked)


@tool_fn
def by_root(either: Either) -> str:
    return keep(either)


class ByAlias(ToolInput[str]):
    pin: Hidden = Field(alias="the-pin")


class ByChoice(ToolInput[str]):
    pin: Hidden = Field(validation_alias=AliasChoices("pin", "code", AliasPath("at", 0)))


class ByPath(ToolInput[str]):
    pin: Hidden = Field(validation_alias=AliasPath("deep", "er", 1))


class ByOtherNames(ToolInput[str]):
    pin: Hidden = Field(validation_alias="taken", serialization_alias="written")


REFERRED: dict[str, Any] = {
    "type": "object",
    "$defs": {"P": {"properties": {"p": PASSWORD, "q": {"$ref": "#/$defs/P"}}}},
    "properties": {"tree": {"$ref": "#/$defs/P"}},
}
PATTERNED: dict[str, Any] = {"type": "object", "patternProperties": {"^p": PASSWORD}}
DEPENDENT: dict[str, Any] = {
    "type": "object",
    "dependentSchemas": {"user": {"properties": {"pin": WRITE_ONLY}}},
}
DYNAMIC: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"pin": PASSWORD, "inner": {"$dynamicRef": "#node"}},
}


def _defined(name: str, schema: dict[str, Any]) -> ToolDef:
    return ToolDef.from_json_schema(name=name, input_schema=schema)


class Tools(Toolset):
    by_type = tool(by_type)
    by_bytes = tool(by_bytes)
    by_any_secret = tool(by_any_secret)
    by_revealed = tool(by_revealed)
    by_text = tool(by_text)
    by_optional = tool(by_optional)
    by_model = tool(by_model)
    by_list = tool(by_list)
    by_values = tool(by_values)
    by_names = tool(by_names)
    by_names_within = tool(by_names_within)
    by_names_of_any = tool(by_names_of_any)
    by_extra = tool(by_extra)
    by_keys = tool(by_keys)
    by_union = tool(by_union)
    by_class = tool(by_class)
    by_typed_dict = tool(by_typed_dict)
    by_json = tool(by_json)
    by_serializer = tool(by_serializer)
    by_mark = tool(by_mark)
    by_root = tool(by_root)
    by_alias = tool(ByAlias)
    by_choice = tool(ByChoice)
    by_path = tool(ByPath)
    by_other_names = tool(ByOtherNames)


SENT: dict[str, Any] = {
    "by_type": {"pin": SECRET},
    "by_bytes": {"pin": SECRET},
    "by_any_secret": {"pin": SECRET, "others": [SECRET]},
    "by_revealed": {"pin": SECRET},
    "by_text": {"pin": SECRET},
    "by_optional": {"pin": SECRET},
    "by_model": {"inner": json.dumps({"pin": SECRET})},  # to be repaired
    "by_list": {"inner": [{"pin": SECRET, "note": "seen"}]},
    "by_values": {"pins": {"a": SECRET}},
    "by_names": {"pins": {SECRET: SECRET}},
    "by_names_within": {"pins": {SECRET: json.dumps({SECRET: [SECRET]})}},  # to be repaired
    "by_names_of_any": {"pins": {SECRET: {SECRET: 1}}},
    "by_extra": {SECRET: SECRET},
    "by_keys": {"pins": {SECRET: 1}},
    "by_union": {"pet": {"kind": "cat", "chip": SECRET}},
    "by_class": {"card": {"number": SECRET}},
    "by_typed_dict": {"ring": {"the-key": SECRET}},
    "by_json": {"inner": json.dumps({"pin": SECRET})},
    "by_serializer": {"odd": {"pin": SECRET}},
    "by_mark": {"marked": {"second": SECRET}},
    "by_root": {"pin": SECRET},
    "by_alias": {"the-pin": SECRET},
    "by_choice": {"code": SECRET},
    "by_path": {"deep": {"er": [0, SECRET]}},
    "by_other_names": {"taken": SECRET},
}
SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "referred": (REFERRED, {"tree": {"q": {"q": {"p": SECRET}}}}),
    "patterned": (PATTERNED, {"pin": SECRET}),
    "patterned_names": (PATTERNED, {f"p{SECRET}": SECRET}),
    "dependent": (DEPENDENT, {"user": "ada", "pin": SECRET}),
    "dynamic": (DYNAMIC, {"inner": {"inner": {"pin": SECRET}}}),
}
Made: Any = Toolset.from_definitions("Made", [_defined(n, s) for n, (s, _) in SCHEMAS.items()])
DECLARED: list[tuple[Any, str, Any]] = [
    *((Tools, name, sent) for name, sent in SENT.items()),
    *((Made, name, sent) for name, (_, sent) in SCHEMAS.items()),
]


@dataclass
class Case:
    """One call with a secret, and where to look for what is said of it."""

    toolset: Any
    name: str
    sent: Any
    folder: Path
    log: pytest.LogCaptureFixture
    opened: list[Any] = field(default_factory=list)

    def open(self, sent: Any = None, *, toolset: Any = None) -> Any:
        text = json.dumps(self.sent if sent is None else sent)
        metadata = ToolMetadata(id="c1", name=self.name, arguments=text)
        turn = AssistantTurn(tool_calls=[metadata])
        self.opened.append((toolset or self.toolset).read_turn(turn).round)
        return self.opened[-1]

    def close(self) -> None:
        for each in self.opened:
            with contextlib.suppress(errors.RoundClosedError):
                each.discard()

    def plan(self) -> Any:
        return self.open().plan()

    def call(self) -> Any:
        return self.plan().pending[0]

    def waiting(self) -> Any:
        plan = self.asked(SuspendTicket(message="?"))
        return plan.suspended[0]

    def asked(self, ticket: SuspendTicket | None = None, **given: Any) -> Any:
        from lutum_py import Suspend

        hooks = self.toolset.HookSet()

        @hooks.gate(self.toolset[self.name])  # type: ignore[untyped-decorator]
        def ask(metadata: ToolMetadata, input: Any) -> Any:
            return Suspend(ticket or SuspendTicket())

        return self.open().apply_hooks_sync(hooks, **given)

    def rewritten(self) -> Any:
        """Run the call with the same input, made anew by a hook."""
        hooks = self.toolset.HookSet()

        @hooks.on(self.toolset[self.name])  # type: ignore[untyped-decorator]
        def rewrite(metadata: ToolMetadata, input: Any) -> Any:
            return RunNormally(input)

        return self.open().apply_hooks_sync(hooks)

    def handled(self) -> Any:
        hooks = self.toolset.HookSet()

        @hooks.on(self.toolset[self.name])  # type: ignore[untyped-decorator]
        def answer(metadata: ToolMetadata, input: Any) -> Any:
            return Complete("yes" if self.toolset is Tools else {})

        return self.open().apply_hooks_sync(hooks)


def _views(value: Any) -> Iterator[str]:
    yield repr(value)
    yield str(value)
    if hasattr(value, "__rich__"):
        yield value.__rich__().plain
        yield from value._repr_mimebundle_().values()


def _error(doing: Callable[[], Any]) -> list[str]:
    """Give all that an error tells, with its traceback."""
    try:
        doing()
    except errors.LutumError as error:
        fields = [str(each) + repr(each) for each in getattr(error, "fields", ())]
        return [str(error), repr(error), *fields, *traceback.format_exception(error)]
    return []


def _broken(case: Case) -> Iterator[Any]:
    """Give arguments that do not fit, with the secret in its place and elsewhere."""
    sent = case.sent
    yield {**sent, "no_such_field": SECRET}
    yield {"pinn": SECRET, "no_such_field": [SECRET]}
    yield {name: [SECRET] for name in sent}
    yield {name: {"x": SECRET} for name in sent}
    if case.name == "by_keys":
        yield {name: {SECRET: SECRET} for name in sent}
    yield dict.fromkeys(sent, SECRET) | {"other": {"pin": SECRET}}
    yield {**sent, "other": json.dumps(sent)}
    yield [sent]
    yield json.dumps([sent])


def _listed(case: Case) -> dict[str, Any]:
    return {name: [SECRET] for name in case.sent}


def _unfit(case: Case) -> Iterator[str]:
    for sent in _broken(case):
        opened = case.open(sent)
        plan = opened.plan()
        for issue in opened.recoverable_tool_call_issues:
            yield from (issue.text, repr(issue), issue.result.model_text, str(issue.fields))
        if opened.recoverable_tool_call_issues:
            yield from (*_views(opened), *_views(plan))
            yield from (repr(plan.calls), str([row.model_dump() for row in plan.calls]))
        opened.discard()


def _finished(case: Case, plan: Any) -> Iterator[str]:
    """Commit a plan, and give all that then shows."""
    session = Session()
    output: Any = "yes" if case.toolset is Tools else {}
    committed = plan.commit(session, [call.complete(output) for call in plan.pending])
    yield from (*_views(committed), *_views(session), *_views(session.transcript))
    for result in committed.results:
        yield from (repr(result), result.model_text, repr(result.ran_with))
    yield from (repr(plan.calls), *_views(plan))


def _events(case: Case) -> Iterator[str]:
    told: list[Any] = []
    plan = case.asked(on_event=lambda event: told.append((repr(event), str(event.model_dump()))))
    plan.resume(plan.suspended[0].approve())
    yield str(told)


def _logged(case: Case) -> Iterator[str]:
    case.log.clear()
    with case.log.at_level(logging.DEBUG):
        case.asked(on_event=log_events())
        case.rewritten()
        case.open().apply_hooks_sync(case.toolset.HookSet(), on_event=log_events())
    for record in case.log.records:
        yield f"{record.getMessage()} {record.__dict__}"


def _edited(case: Case) -> Iterator[str]:
    """Edit the call to what it is, and to what does not fit."""
    hooks = case.toolset.HookSet()
    wrong: list[dict[str, Any]] = [{"no_such_field": SECRET}, _listed(case)]
    for changes in wrong if case.toolset is Tools else wrong[1:]:
        plan = case.asked(SuspendTicket(message="?"))
        decision = plan.suspended[0].edit(changes)
        yield from (repr(decision), *_error(lambda: plan.amend_sync(decision, hooks)))  # noqa: B023
    plan = case.asked(SuspendTicket(message="?"))
    (waiting,) = plan.suspended
    plan.amend_sync(waiting.edit(dict(waiting.arguments)), hooks)
    yield from (repr(plan.edits), repr(plan.calls), *_views(plan))


def _gate(case: Case) -> Iterator[str]:
    effect = ToolEffect("read_secret", target=next(iter(case.sent)))
    capabilities = ToolCapabilities(effects=[effect])
    made: Any
    if case.toolset is Made:
        schema = SCHEMAS[case.name][0]
        definition = ToolDef.from_json_schema(
            name=case.name, input_schema=schema, capabilities=capabilities
        )
        made = Toolset.from_definitions("Gated", [definition])
    else:
        origin = Tools[case.name].spec.origin
        if isinstance(origin, type):
            return
        declared = tool_fn(capabilities=capabilities)(origin.__wrapped__)
        made = DECLARE("Gated", (Toolset,), {case.name: tool(declared)})
    hooks = made.HookSet()
    hooks.gate()(capability_gate({"block": "suspend"}))
    plan = case.open(toolset=made).apply_hooks_sync(hooks)
    (waiting,) = plan.suspended
    yield from (repr(waiting), repr(waiting.ticket), waiting.question, str(waiting.to_json()))
    yield str(waiting.ticket.to_dict())


def _approval(case: Case) -> Iterator[str]:
    if case.toolset is Made:
        return
    declared = Tools[case.name].spec.origin
    names = Tools[case.name].definition.input_schema.get("properties", ())
    words = " ".join(f"{{{name}}}" for name in names)
    for message in (None, f"May {words}?"):
        given: Any = {"needs_approval": True, "approval_message": message}
        made = DECLARE("Asking", (Toolset,), {case.name: tool(declared, **given)})
        plan = case.open(toolset=made).apply_hooks_sync(made.HookSet())
        (waiting,) = plan.suspended
        yield from (waiting.question, repr(waiting), str(waiting.to_json()), repr(plan.calls))


def _store(case: Case) -> Iterator[str]:
    with open_store(case.folder / f"{case.name}.db") as store:
        store.save("one", case.asked(SuspendTicket(message="?")))
        (waiting,) = store.waiting()
        yield from (repr(waiting), waiting.proposed, str(waiting.arguments), waiting.question)
        yield repr(waiting.steps)


def _inbox(case: Case) -> Iterator[str]:
    from lutum_py.cli import main

    place = case.folder / f"{case.name}_inbox.db"
    with open_store(place) as store:
        store.save("one", case.asked(SuspendTicket(message="?")))
    case.folder.joinpath("out").write_text("")
    yield _printed(main, ["inbox", str(place)])
    yield _printed(main, ["inbox", str(place), "--json"])


def _printed(main: Any, words: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(words)
    said = out.getvalue()
    assert "c1" in said
    return said


def _run(case: Case) -> Iterator[str]:
    """Run the call where the tool raises."""
    call = case.call()
    if call.spec.invocation is None:
        return
    yield from _views(execute_sync(call.retry()))
    yield from _error(lambda: call.call_sync(no_such="x"))


def _assigned(case: Case) -> Iterator[str]:
    """Put an input into the call that does not fit, by hand and by a hook."""
    call = case.call()

    def assign() -> None:
        call.input = {**case.sent, "no_such_field": SECRET, "pin": [SECRET]}

    yield from _error(assign)
    hooks = case.toolset.HookSet()

    @hooks.on(case.toolset[case.name])  # type: ignore[untyped-decorator]
    def wrong(metadata: ToolMetadata, input: Any) -> Any:
        return RunNormally({**_listed(case), "no_such_field": SECRET})

    yield from _error(lambda: case.open().apply_hooks_sync(hooks))


def _span(case: Case) -> Iterator[str]:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from lutum_py.otel import ToolTracer

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = ToolTracer(tracer_provider=provider, content=True)
    with tracer.span(case.call()):
        pass
    for sent in _broken(case):
        opened = case.open(sent)
        tracer.record_decisions(opened.recoverable_tool_call_issues)
        opened.discard()
    (span, *_) = exporter.get_finished_spans()
    assert "gen_ai.tool.call.arguments" in (span.attributes or {})
    yield from (span.to_json() for span in exporter.get_finished_spans())


def _read_by_pydantic(case: Case) -> Iterator[str]:
    """Read calls in their tagged form, by an adapter and as a field of a program's own model."""

    class Plan(BaseModel):
        call: case.toolset.Call  # type: ignore[name-defined]

    adapter, own = TypeAdapter(case.toolset.Call), TypeAdapter(Plan)
    for given in (*_broken(case), {"no_such_field": SECRET}, SECRET, [SECRET]):
        for form in (
            {"tool": case.name, "input": given},
            {"tool": "no_such_tool", "input": given},
            {"tool": case.name, "input": case.sent, "more": given},
            given,
        ):
            for read, value in ((adapter, form), (own, {"call": form})):
                yield from _told(partial(read.validate_python, value))
                yield from _told(partial(read.validate_json, json.dumps(value)))


def _told(way: Callable[[], object]) -> Iterator[str]:
    """All that an error of pydantic says."""
    try:
        way()
    except ValidationError as error:
        yield from (str(error), repr(error), repr(error.errors()), error.json())
        yield from traceback.format_exception(error)


def _served(case: Case) -> Iterator[str]:
    """Serve the tools to a client, which asks with what fits, and with what does not."""
    if case.call().spec.invocation is None:
        return
    yield from asyncio.run(_shown_to_clients(case))


async def _shown_to_clients(case: Case) -> list[str]:
    from mcp.types import ElicitResult

    from lutum_py.mcp import create_server
    from tests.mcp.servers import connected

    said: list[str] = []

    async def asked(context: Any, params: Any) -> Any:
        said.append(params.message)
        return ElicitResult(action="decline")

    hooks = case.toolset.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket()))
    for given_hooks in (None, hooks):
        able = [each for each in case.toolset if each.spec.invocation is not None]
        server = create_server(case.toolset, hooks=given_hooks, available=able)
        async with connected(server, elicitation_callback=asked) as client:
            for sent in (case.sent, *_broken(case)):
                if isinstance(sent, dict):
                    came = await client.call_tool(case.name, sent)
                    if came.is_error or given_hooks is not None:  # else it is what the tool gave
                        said.append(str(came))
    return said


WAYS: dict[str, Callable[[Case], Any]] = {
    "calls that pydantic reads": _read_by_pydantic,
    "a server of MCP": _served,
    "a round": lambda case: _views(case.open()),
    "a plan": lambda case: _views(case.plan()),
    "a plan that waits": lambda case: _views(case.asked()),
    "a plan that is handled": lambda case: _views(case.handled()),
    "a call": lambda case: _views(case.call()),
    "its metadata": lambda case: _views(case.call().metadata),
    "its turn": lambda case: _views(case.open().turn),
    "its steps": lambda case: map(repr, case.call().steps),
    "its steps as data": lambda case: [str(step.model_dump()) for step in case.call().steps],
    "a rejected call": lambda case: _views(case.call().reject("no")),
    "a suspended call": lambda case: _views(case.waiting()),
    "a handled call": lambda case: map(repr, case.handled().handled),
    "its rows": lambda case: map(repr, case.plan().calls),
    "what its rows proposed": lambda case: [row.proposed for row in case.plan().calls],
    "its rows as data": lambda case: [str(row.model_dump()) for row in case.plan().calls],
    "the steps of its rows": lambda case: [repr(row.steps) for row in case.plan().calls],
    "rows that wait": lambda case: [str(row.model_dump()) for row in case.asked().calls],
    "what is asked": lambda case: [case.waiting().question, case.asked().suspended[0].question],
    "what is shown to be asked": lambda case: [str(case.waiting().arguments)],
    "what waits as data": lambda case: [str(case.waiting().to_json())],
    "approvals": _approval,
    "the stock gate": _gate,
    "events": _events,
    "logs": _logged,
    "what was run with": lambda case: _finished(case, case.rewritten()),
    "what was committed": lambda case: _finished(case, case.plan()),
    "edits": _edited,
    "runs": _run,
    "arguments that do not fit": _unfit,
    "inputs that do not fit": _assigned,
    "a store": _store,
    "the inbox": _inbox,
    "spans": _span,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_shows_nowhere(way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever shows arguments shows none that is declared to be secret, however it is declared."""
    found: list[str] = []
    for toolset, name, sent in DECLARED:
        case = Case(toolset, name, sent, tmp_path, caplog)
        said: list[str] = []
        try:
            said += WAYS[way](case)
        except errors.ToolInputError as error:  # keys of a dictionary have no JSON form
            assert name == "by_keys"
            said += traceback.format_exception(error)
        finally:
            case.close()
        found += [f"{name}: {text}" for text in said if SECRET in text]
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("name", SENT)
def test_the_function_gets_the_secret(name: str) -> None:
    """What is masked for everybody else is what the function is called with, also once loaded."""
    metadata = ToolMetadata(id="c1", name=name, arguments=json.dumps(SENT[name]))
    outcome: Any = Tools.read_turn(AssistantTurn(tool_calls=[metadata]))
    opened = outcome.round
    if Tools[name].spec.invocation is None:
        assert opened.tool_calls[0].input.pin == SECRET
        opened.discard()
        return
    GOT.clear()
    opened.plan().pending[0].call_sync()
    assert SECRET in GOT[0]
    opened.discard()


def test_what_is_no_secret_is_shown_beside_it() -> None:
    """A mask stands for what is secret alone: the rest of the arguments can be read."""
    metadata = ToolMetadata(id="c1", name="by_list", arguments=json.dumps(SENT["by_list"]))
    call: Any = Tools.parse_tool_call(metadata)
    shown = call.steps[0].arguments
    assert shown == {"inner": [{"pin": "*" * 10, "note": "seen"}], "other": 0}


def test_keys_of_dictionaries_are_values_where_values_are_hidden() -> None:
    """`redact=True` hides the keys of a dictionary in a place, and not the names of fields."""

    @tool_fn
    def count(counts: dict[str, int], seen: list[int]) -> str:
        return ""

    class Counts(Toolset):
        counted = tool(count)

    arguments = json.dumps({"counts": {SECRET: "x"}, "seen": ["y"]})
    turn = AssistantTurn(tool_calls=[ToolMetadata(id="c1", name="count", arguments=arguments)])
    for redact in (True, False):
        outcome: Any = Counts.read_turn(turn, redact=redact)
        (issue,) = outcome.round.recoverable_tool_call_issues
        assert (SECRET in issue.text) is not redact
        assert "`seen[0]`" in issue.text
        outcome.round.discard()


def test_a_validators_words_about_a_secret_are_hidden() -> None:
    """What a validator says of a secret, or of what holds one, is not repeated."""

    def quote(value: Any) -> Any:
        raise ValueError(f"{value} is wrong")

    @tool_fn
    def check(pin: Annotated[Hidden, AfterValidator(quote)]) -> str:
        return ""

    @tool_fn
    def check_inner(inner: Annotated[Inner, AfterValidator(quote)]) -> str:
        return ""

    class Checks(Toolset):
        first = tool(check)
        second = tool(check_inner)

    for name, sent in (("check", {"pin": SECRET}), ("check_inner", {"inner": {"pin": SECRET}})):
        metadata = ToolMetadata(id="c1", name=name, arguments=json.dumps(sent))
        with pytest.raises(errors.InvalidArgumentsError) as raised:
            Checks.parse_tool_call(metadata)
        assert SECRET not in "".join(traceback.format_exception(raised.value))


PACKAGE = Path(lutum_py.__file__).parent
MAY_KNOW = {"Masking", "masking", "masking_of", "shown_text"}
"""The names by which a part of the package would mask arguments by itself."""
KNOWS = {
    "_call/call.py": "asks the funnel for what the model wrote",
    "_call/spec.py": "the funnel: `shown_input`, `shown_json`, `shown_text`, `issues_of`",
    "_round/events.py": "asks the funnel for what the model wrote",
    "_round/resume.py": "asks whether what a person answers holds secrets",
    "_schema/arguments.py": "reads the places of secrets from a type, or from a schema",
    "_schema/capabilities.py": "leaves secrets out of what a call is said to touch",
    "_schema/field_issues.py": "says what does not fit",
    "_schema/foreign.py": "asks whether an output may be repeated",
    "_schema/input_model.py": "masks what an input represents itself by",
    "_schema/schema_check.py": "asks whether a value may be repeated",
    "_schema/json_schema.py": "finds the names under which secrets stand",
}


def test_nothing_goes_round_the_funnel() -> None:
    """Arguments are masked in one place: every display asks the specification of the tool."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if names & MAY_KNOW:
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == KNOWS.keys()


RAW = {
    "_call/call.py": "gives them to the funnel",
    "_call/call_input.py": "describes an input by them",
    "_call/call_state.py": "decodes them",
    "_call/selector.py": "decodes them",
    "_toolsets/call_type.py": "writes a call as it came",
    "_hooks/capability_gate.py": "reads what a dry run was done with",
    "_round/display.py": "gives them to the funnel, and shows a file to whoever has it",
    "_round/ending.py": "compares them",
    "_round/plan_json.py": "compares them",
    "_round/step_json.py": "compares them",
    "_round/round.py": "asks whether there are any",
    "_round/events.py": "gives them to the funnel",
    "_session/model.py": "reads an answer while it comes",
    "_transcript/": "keeps them, and shows a file to whoever has it",
    "window/": "digests them, and estimates their tokens",
    "cli/_conversation_file.py": "compares them",
    "dialects/": "sends them",
    "flow/_index.py": "finds again what an earlier call was given, and shows none of it",
    "mcp/_served_call.py": "takes them from a client",
    "models/_sdk_model.py": "restores what a schema lost",
    "otel/__init__.py": "the name of an attribute",
    "testing/": "plays the model",
}
"""Where the text that a model wrote is read, and what for."""


def test_few_read_what_the_model_wrote() -> None:
    """The raw arguments of a call are read by those few that do not show them."""
    read = re.compile(r"(metadata|result|call|asked|params|answer|item)\.arguments\b")
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if read.search(path.read_text(encoding="utf-8"))
    }
    unknown = {file for file in found if not any(file.startswith(each) for each in RAW)}
    assert not unknown


def _waiting(sent: dict[str, Any]) -> tuple[Any, Any]:
    hooks = Tools.HookSet()

    @hooks.gate()
    def ask(metadata: Any, input: Any) -> Any:
        return Suspend(SuspendTicket(action="ask"))

    turn = AssistantTurn(
        tool_calls=[ToolMetadata(id="c1", name="by_names_within", arguments=json.dumps(sent))]
    )
    outcome: Any = Tools.read_turn(turn)
    return outcome.round.apply_hooks_sync(hooks), hooks


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda shown: {**shown, "other": 1}, {"pins": {SECRET: {"a": [SECRET]}}, "other": 1}),
        (lambda shown: {**shown, "pins": {}}, {"pins": {}, "other": 0}),
        (
            lambda shown: {**shown, "pins": {**shown["pins"], "more": {}}},
            {"pins": {SECRET: {"a": [SECRET]}, "more": {}}, "other": 0},
        ),
    ],
)
def test_an_edit_keeps_the_keys_that_it_leaves_masked(
    change: Callable[[Any], Any], wanted: dict[str, Any]
) -> None:
    """One mask stands for all keys that are secrets: left there they stay, removed they go."""
    plan, hooks = _waiting({"pins": {SECRET: {"a": [SECRET]}}})
    (waiting,) = plan.suspended
    plan.amend_sync(waiting.edit(change(waiting.arguments)), hooks)
    assert plan.pending[0].final_arguments == wanted
    assert SECRET not in repr(plan.edits)
    plan.discard()


def test_what_was_coerced_names_no_secret_key() -> None:
    """A path of what was coerced has a mark in place of a key that is a secret."""
    arguments = json.dumps({"pins": {SECRET: json.dumps({"a": [SECRET]})}})
    metadata = ToolMetadata(id="c1", name="by_names_within", arguments=arguments)
    call: Any = Tools.parse_tool_call(metadata)
    assert call.coerced == ("pins.…",)
