"""The law of names: a parameter with several is found by each of them, wherever one is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from lutum_py import (
    Reject,
    Session,
    Suspend,
    ToolDef,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect, capability_gate, dry_run_in
from lutum_py.errors import HookError, ToolDefinitionError
from lutum_py.execution import run_sync
from lutum_py.flow import USER, Policy, argument
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.round_tools import turn

# A field of a parameter `payee`, what a model may send for it, and its names.
NAMED: list[tuple[Any, list[dict[str, Any]], str]] = [
    (Field(alias="recipient"), [{"recipient": "Eve"}], "payee recipient"),
    (Field(validation_alias="recipient"), [{"recipient": "Eve"}], "payee recipient"),
    (Field(serialization_alias="dest"), [{"payee": "Eve"}], "payee dest"),
    (
        Field(validation_alias="recipient", serialization_alias="dest"),
        [{"recipient": "Eve"}],
        "payee recipient dest",
    ),
    (
        Field(validation_alias=AliasChoices("recipient", "to", AliasPath("way", 0))),
        [{"recipient": "Eve"}, {"to": "Eve"}, {"way": ["Eve", "Bob"]}],
        "payee recipient to way",
    ),
    (
        Field(validation_alias=AliasPath("way", 0)),
        [{"way": ["Eve", "Bob"]}, {"payee": "Eve"}],
        "payee way",
    ),
    (
        Field(alias="to", validation_alias="recipient"),
        [{"recipient": "Eve"}],
        "payee recipient to",
    ),
]


def declared(field: Any, **options: Any) -> Iterator[tuple[Any, str]]:
    """Tools `pay` with such a parameter, each with the way to it."""

    def marked(payee: Any, dry_run: bool = False) -> str:
        return str(payee)

    def assigned(payee: Any = field, dry_run: bool = False) -> str:
        return str(payee)

    marked.__annotations__["payee"] = Annotated[str, field]
    assigned.__annotations__["payee"] = str
    for function in (marked, assigned):
        yield tool_fn(name="pay", **options)(function), ""

    class Order(BaseModel):
        payee: Annotated[str, field]

    class Flat(ToolInput[str]):
        payee: Annotated[str, field]
        dry_run: bool = False

    yield tool_input(name="pay", **options)(Flat), ""
    if options:
        return  # only parameters are targets

    class Nested(ToolInput[str]):
        order: Order

    class Listed(ToolInput[str]):
        orders: list[Order]

    yield tool_input(name="pay")(Nested), "order"
    yield tool_input(name="pay")(Listed), "orders[]"


def declared_nth(field: Any, at: int, capabilities: ToolCapabilities) -> Any:
    return next(islice(declared(field, capabilities=capabilities), at, None))[0]


def placed(way: str, sent: dict[str, Any]) -> dict[str, Any]:
    """What a model sends where the parameter is there."""
    if way == "order":
        return {"order": sent}
    return {"orders": [sent]} if way else sent


def called(toolset: Any, arguments: dict[str, Any], id: str = "c1") -> Any:
    name = next(iter(toolset)).name
    return toolset.parse_tool_call(ToolMetadata(id=id, name=name, arguments=json.dumps(arguments)))


CASES = [
    (declaring, way, sent, name)
    for field, sents, names in NAMED
    for declaring, way in declared(field)
    for sent in sents
    for name in names.split()
]


@over("declaring, way, sent, name", CASES)
def test_a_policy_finds_a_parameter_by_each_name(
    declaring: Any, way: str, sent: dict[str, Any], name: str
) -> None:
    """A value is asked about under whichever name a rule has it, and passes by an edge."""
    toolset: Any = Toolset.of("Paying", declaring)
    call = called(toolset, placed(way, sent))
    place = f"{way}.{name}".removeprefix(".")
    filled, prose, sunk = Policy(toolset), Policy(toolset), Policy(toolset)
    filled.fill("pay", place, USER)
    prose.text("pay", place, run=0)
    sunk.sink("pay", place)
    session = Session()
    assert isinstance(filled.gate(session)(call, None), Suspend)
    session.push_user("Pay Eve.")
    assert filled.gate(session)(call, None) is None
    (*_, trace) = filled.gate(Session()).trace(call)
    assert (trace.value, trace.fault) == ("Eve", "is from no allowed source")
    linked = json.loads(json.dumps(placed(way, sent)).replace("Eve", "eve@a.com"))
    assert isinstance(prose.gate(session)(called(toolset, linked), None), Suspend)
    assert prose.gate(session)(call, None) is None
    sunk.private("pay", readers=["Bob"])
    model = ScriptedModel([turn(("c0", "pay", placed(way, sent)))])
    outcome: Any = session.text_turn(model).tools(toolset).collect_sync()
    plan = outcome.round.plan()
    for each in plan.pending:
        plan.record(each.complete("paid"))
    plan.commit(session)
    assert isinstance(sunk.gate(session)(call, None), Suspend)
    with pytest.raises(HookError, match="can have nothing at"):
        filled.fill("pay", f"{way}.pay".removeprefix("."), USER)


def test_an_argument_of_an_earlier_call_is_what_it_ran_with() -> None:
    """An edge from an argument has the value that counted, whatever else was sent beside it."""

    class Note(ToolInput[str]):
        model_config = ConfigDict(extra="ignore")
        payee: str = Field(validation_alias=AliasChoices("recipient", "to"))

    @tool_fn
    def pay(payee: Annotated[str, Field(alias="recipient")]) -> str:
        return payee

    toolset: Any = Toolset.of("Paying", pay, tool_input(name="note", output=str)(Note))
    made = Policy(toolset)
    made.fill("note", "to", USER)
    made.fill("pay", "payee", argument("note", path="recipient"))
    session = Session()
    session.push_user("Note Bob.")
    model = ScriptedModel([turn(("c0", "note", {"to": "Eve", "recipient": "Bob"}))])
    outcome: Any = session.text_turn(model).tools(toolset).collect_sync()
    plan = outcome.round.plan()
    plan.record(plan.pending[0].complete("noted"))
    plan.commit(session)
    gate = made.gate(session)
    assert gate(called(toolset, {"recipient": "Bob"}), None) is None
    assert isinstance(gate(called(toolset, {"recipient": "Eve"}), None), Suspend)


def test_a_default_needs_no_edge_under_any_name() -> None:
    """The default of a parameter passes, whichever name the schema and the rule have."""

    @tool_fn
    def pay(payee: Annotated[str, Field(validation_alias="recipient")] = "Bob") -> str:
        return payee

    toolset: Any = Toolset.of("Paying", pay)
    for name in ("payee", "recipient"):
        made = Policy(toolset)
        made.fill("pay", name)
        gate = made.gate(Session())
        assert gate(called(toolset, {}), None) is None
        assert isinstance(gate(called(toolset, {"recipient": "Eve"}), None), Suspend)


def test_a_name_of_two_parameters_means_both() -> None:
    """Where one parameter has the name of another on the wire, neither is overlooked."""

    class Swap(ToolInput[str]):
        to: str = Field(alias="by")
        by: str = Field(alias="to")

    class Share(ToolInput[str]):
        first: str = Field(validation_alias=AliasPath("all", 0))
        last: str = Field(validation_alias=AliasPath("all", 1))

    for model, name, sent in (
        (Swap, "to", {"to": "Eve", "by": "Eve"}),
        (Share, "all", {"all": ["Eve", "Eve"]}),
    ):
        toolset: Any = Toolset.of("Swapping", tool_input(name="pay", output=str)(model))
        made = Policy(toolset)
        made.fill("pay", name)
        faults = made.gate(Session()).trace(called(toolset, sent))
        assert len([each for each in faults if each.fault]) == 2


SPENDS = {
    name: ToolCapabilities(effects=[ToolEffect("spend_money", name)])
    for name in ("payee", "recipient", "dest", "to", "way")
}


@over(
    "declaring, sent",
    [
        (declaring, sent)
        for field, sents, names in NAMED
        for name in names.split()
        for declaring, _ in declared(field, capabilities=SPENDS[name])
        for sent in sents
    ],
)
def test_an_effect_finds_its_target_by_each_name(declaring: Any, sent: dict[str, Any]) -> None:
    """What a call touches, and the question about it, have the target under any name."""
    toolset: Any = Toolset.of("Paying", declaring)
    call = called(toolset, sent)
    assert [access.target for access in call.accesses] == ["eve"]
    asked: Any = capability_gate({"block": "suspend"})(call, None)
    assert "spend_money on 'Eve' (irreversible)" in asked.ticket.message


def test_a_target_that_no_call_has_is_refused() -> None:
    """A name that is none of the parameter's is an error where the tool is declared."""
    wrong = ToolCapabilities(effects=[ToolEffect("spend_money", "whom")])
    for declaring in (0, 1, 2):
        with pytest.raises(ToolDefinitionError, match="'whom', which is not an argument"):
            Toolset.of("Paying", declared_nth(Field(alias="recipient"), declaring, wrong))
    schema = {"type": "object", "properties": {"recipient": {"type": "string"}}}
    opened = {"type": "object"}
    for made, capabilities in ((opened, wrong), (schema, SPENDS["recipient"])):
        definition = ToolDef.from_json_schema(
            name="pay", input_schema=made, capabilities=capabilities
        )
        toolset: Any = Toolset.from_definitions("Paying", [definition])
        name = capabilities.effects[0].target or ""
        call = called(toolset, {name: "Eve"})
        assert [access.target for access in call.accesses] == ["eve"]
    closed = {**schema, "additionalProperties": False}
    unfit = ToolDef.from_json_schema(name="pay", input_schema=closed, capabilities=wrong)
    with pytest.raises(ToolDefinitionError, match="'whom', which is not an argument"):
        Toolset.from_definitions("Paying", [unfit])


def test_policies_of_definitions_go_by_their_schema() -> None:
    """A tool that is known by a schema alone has the names of that, and no others."""
    schema = {"type": "object", "properties": {"recipient": {"type": "string"}}}
    definition = ToolDef.from_json_schema(name="pay", input_schema=schema)
    toolset: Any = Toolset.from_definitions("Paying", [definition])
    made = Policy(toolset)
    made.fill("pay", "recipient", USER)
    assert isinstance(made.gate(Session())(called(toolset, {"recipient": "Eve"}), None), Suspend)
    with pytest.raises(HookError, match="can have nothing at 'payee'"):
        made.fill("pay", "payee", USER)


def test_a_dry_run_is_found_by_each_name() -> None:
    """Whether a call is tried, and was tried before, is asked of the argument with any name."""
    effect = ToolEffect("deploy", dry_run="required_before_execute")

    @tool_fn(capabilities=ToolCapabilities(effects=[effect]))
    def ship(place: str, dry_run: Annotated[bool, Field(validation_alias="dryRun")] = False) -> str:
        return place

    toolset: Any = Toolset.of("Shipping", ship)
    for name in ("dry_run", "dryRun"):
        session = Session()
        gate = capability_gate(
            {"block": "suspend"},
            dry_run_done=dry_run_in(session.transcript, name),
            dry_run_argument=name,
        )
        assert gate(called(toolset, {"place": "a", "dryRun": True}), None) is None
        asked: Any = gate(called(toolset, {"place": "a"}), None)
        assert "has to be tried first" in asked.reason
        model = ScriptedModel([turn(("c0", "ship", {"place": "a", "dryRun": True}))])
        outcome: Any = session.text_turn(model).tools(toolset).collect_sync()
        run_sync(outcome.round.plan()).commit(session)
        assert isinstance(gate(called(toolset, {"place": "a"}), None), Suspend)
        asked = gate(called(toolset, {"place": "b"}), None)
        assert "has to be tried first" in asked.reason


@tool_fn
def refund(payee: Annotated[str, Field(validation_alias="recipient")], cents: int) -> str:
    return f"{payee} {cents}"


SENT = {"recipient": "Eve", "cents": 5}


@over("name", ["payee", "recipient"])
def test_rules_and_hooks_of_arguments_go_by_each_name(name: str) -> None:
    """A rule and a hook take a parameter, and change it, by its own name or that of the wire."""

    def by_name(payee: str) -> Any:
        return Reject(f"not {payee}") if payee == "Eve" else None

    def by_wire(recipient: str) -> Any:
        return by_name(recipient)

    def hook_by_name(payee: str, cents: int) -> Any:
        return {name: payee.upper()} if cents else None

    def hook_by_wire(recipient: str, cents: int) -> Any:
        return hook_by_name(recipient, cents)

    for rule in (by_name, by_wire):
        member: Any = tool(refund, rule=rule, approval_message=f"Refund {{{name}}}?")
        ruled: Any = type("Ruled", (Toolset,), {"refund": member})
        model = ScriptedModel([turn(("c0", "refund", SENT))])
        outcome: Any = Session().text_turn(model).tools(ruled).collect_sync()
        plan = outcome.round.plan()
        assert [each.reason for each in plan.rejected] == ["not Eve"]
        plan.discard()
    toolset: Any = Toolset.of("Refunding", refund)
    for hook in (hook_by_name, hook_by_wire):
        hooks = toolset.HookSet()
        hooks.on_args(toolset["refund"])(hook)
        assert called(toolset, SENT).hook_sync(hooks).input.payee == "EVE"
    hooks = toolset.HookSet()
    hooks.on_args(toolset["refund"])(lambda payee, cents: {"payee": "a", "recipient": "b"})
    with pytest.raises(HookError, match="'recipient' is another name of parameter `payee`"):
        called(toolset, SENT).hook_sync(hooks)


@over("name", ["payee", "recipient"])
def test_the_message_of_an_approval_goes_by_each_name(name: str) -> None:
    """What a person reads has the value under whichever name the message has it."""

    class Asking(Toolset):
        refund = tool(globals()["refund"], needs_approval=True, approval_message=f"{{{name}}}?")

    model = ScriptedModel([turn(("c0", "refund", SENT))])
    outcome: Any = Session().text_turn(model).tools(Asking).collect_sync()
    with outcome.round.plan() as plan:
        assert [each.ticket.message for each in plan.suspended] == ["Eve?"]
        plan.discard()
