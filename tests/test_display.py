"""What notebooks and rich show of toolsets, rounds, plans and transcripts."""

from __future__ import annotations

import hashlib
import json
import re
from types import MethodType
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from lutum_py import (
    AssistantTurn,
    Attachment,
    Block,
    Complete,
    Message,
    Reject,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.testing import ScriptedModel
from lutum_py.turns import AssistantItem, ReasoningItem, RefusalItem, ServerToolItem
from tests.round_tools import Call, Shop, approval, done, gated, needs, opened


@tool_fn(timeout=2.5, category="people", idempotent=True)
def get_user(user_id: str, limit: int = 3) -> str:
    """Find a user."""
    return user_id


@tool_fn
def ping() -> str:
    """Say that all is well."""
    return "pong"


class Data(Toolset):
    get_user = tool(get_user)


class App(Toolset):
    ping = tool(ping)
    data = toolset(Data, prefix="crm_", off=True)


def shown(value: Any) -> str:
    """What is shown of a value, but for how long each step took."""
    return re.sub(r" \(\+[0-9.e-]+ s\)$", "", value.__rich__().plain, flags=re.MULTILINE)


def plan_of_all_kinds() -> ToolRoundPlan[Any]:
    """A plan with a call in each state."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def small(metadata: ToolMetadata, input: Any) -> Any:
        return Reject("too large") if input.a > 9 else RunNormally(input)

    @hooks.gate(Shop.pay)
    def approve(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(SuspendTicket(id="t1", action="approve", message="Pay?"))

    @hooks.gate(Shop.shout)
    def quiet(metadata: ToolMetadata, input: Any) -> Any:
        return Block("not here") if input.text == "fire" else Complete("HI")

    @hooks.gate(Shop.shout)
    def strict(metadata: ToolMetadata, input: Any) -> Any:
        return Block("nor there") if input.text == "fire" else None

    return opened(
        ("c1", "nope", {}),
        ("c2", "add", {"a": 1}),
        ("c3", "add", {"a": 10}),
        ("c4", "shout", {"text": "fire"}),
        ("c5", "shout", {"text": "hi"}),
        ("c6", "pay", {"amount": 5}),
    ).apply_hooks_sync(hooks)


# Toolsets.


def test_a_toolset_shows_its_tools_with_their_arguments() -> None:
    """Each tool has its wire name, arguments and description; optional arguments have a mark."""
    assert (
        shown(App)
        == """\
App  toolset of 2 tools, 1 off

ping
  arguments: none
  Say that all is well.

crm_get_user  off  member data.get_user
  arguments: user_id: string, limit?: integer
  Find a user."""
    )


def test_a_bound_view_shows_itself() -> None:
    """The view of a nested toolset shows its own tools, under the names of the outer one."""
    assert shown(App.data).startswith("App.data  toolset of 1 tool, 1 off\n\ncrm_get_user  off")
    assert "ping" not in shown(App.data)


def test_a_toolset_without_tools_shows_none() -> None:
    """Where there is nothing to list, there is a heading alone."""
    assert shown(Toolset) == "Toolset  toolset of 0 tools"


def test_notebooks_find_the_display_of_a_class() -> None:
    """IPython takes a class's display only where it is a bound method, which this is."""
    assert isinstance(App._repr_mimebundle_, MethodType)
    assert "Say that all is well." in App._repr_mimebundle_()["text/html"]


def test_types_that_are_no_name_are_left_out() -> None:
    """An argument of several types, or of any, is shown by its name."""
    properties = {"a": {"type": ["string", "null"]}, "b": True}
    schema = {"type": "object", "properties": properties}
    made = ToolDef.from_json_schema(name="t", description="", input_schema=schema)
    assert "arguments: a?, b?\n" in shown(Toolset.from_definitions("One", [made]))


def test_a_union_shows_the_arguments_of_all_its_forms() -> None:
    """Of an input that has several forms, what each of them takes is named."""
    forms = [
        {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
        for name in ("card", "iban")
    ]
    schema = {"anyOf": [{"$ref": "#/$defs/Card"}, forms[1]], "$defs": {"Card": forms[0]}}
    mixed = {**schema, "type": "object", "properties": {"cents": {"type": "integer"}}}
    made = [
        ToolDef.from_json_schema(name=name, input_schema=each)
        for name, each in (("pay", schema), ("refund", mixed))
    ]
    text = shown(Toolset.from_definitions("Shop", made))
    assert "pay\n  arguments: card, iban (in several forms)\n" in text
    assert "refund\n  arguments: cents?: integer, card, iban (in several forms)\n" in text


# Rounds and plans.


def test_a_plan_shows_what_becomes_of_each_call_and_why() -> None:
    """Each call has its state, its arguments and who decided, in the order of the turn."""
    plan = plan_of_all_kinds()
    text = shown(plan).replace(f"{plan_of_all_kinds.__qualname__}.<locals>.", "")
    plan.discard()
    assert (
        text
        == """\
Plan of Shop  1 unknown tool, 1 pending, 1 rejected by hook, 1 blocked by gate, 1 handled, \
1 suspended

c1  nope  unknown tool
  <2 characters>
  the model is told: There is no tool `nope`, so nothing was run. Tools on offer: `add`, \
`shout`, `pay`, `ask`.

c2  add  pending
  {"a":1,"b":0}
  execution: small decided run_normally

c3  add  rejected by hook
  {"a":10,"b":0}
  reason: too large
  execution: small decided reject: too large

c4  shout  blocked by gate
  {"text":"fire"}
  reason: not here
  gate: quiet decided block: not here
  gate: strict decided block: nor there

c5  shout  handled
  {"text":"hi"}
  result: HI
  gate: quiet decided complete
  gate: strict let it pass

c6  pay  suspended
  {"amount":5,"to":[]}
  gate: approve decided suspend: approve
  suspended: approve (t1): Pay?"""
    )


def test_a_plan_shows_how_far_it_has_come() -> None:
    """A call that runs says so, one that was approved says by what, a closed plan how it ended."""
    plan = plan_of_all_kinds()
    plan.resume(approval(plan, "c6", decision_id="d1", reason="fine"))
    add = plan.pending[0]
    add.start()
    text = shown(plan)
    assert "c2  add  pending, running\n" in text
    assert 'c6  pay  pending, resuming\n  {"amount":5,"to":[]}\n  gate:' in text
    assert text.endswith("\n  decision: resume by d1: fine")
    plan.discard()
    assert shown(plan).partition("\n")[0].endswith("; discarded")


def test_what_a_plan_knows_of_results_is_shown() -> None:
    """Recorded results are shown in their place, and calls in doubt are said to be that."""
    plan = opened(*((f"c{n}", "add", {"a": n}) for n in range(3)), ("u", "nope", "{}")).plan()
    plan.pending[0].start()
    plan.record(plan.pending[1].call_sync())
    plan.record(plan.pending[1].fail("down"))
    unknown = plan.recoverable_tool_call_issues[0].metadata
    plan.record(ToolResult(id="u", name="nope", arguments=unknown.arguments, result='"mine"'))
    plan = Shop.load_plan(plan.dump_json())
    text = shown(plan)
    assert 'c0  add  in doubt\n  {"a":0,"b":0}\n' in text
    assert 'c1  add  finished\n  {"a":1,"b":0}\n  result: 1\n' in text
    assert 'c2  add  finished, error\n  {"a":2,"b":0}\n  result: down\n' in text
    assert "u  nope  finished\n  <2 characters>\n  result: mine" in text
    assert "unknown tool" not in text
    plan.discard()


def test_a_decision_without_a_reason_is_shown_without_one() -> None:
    """Who decided is shown, and no empty reason."""
    plan = plan_of_all_kinds()
    plan.resume(approval(plan, "c6", decision_id="d1"))
    assert shown(plan).endswith("\n  decision: resume by d1")
    plan.discard()


def test_a_ticket_without_a_message_is_shown_without_one() -> None:
    """What is asked is shown, and no empty message."""
    ticket = SuspendTicket(id="t1", action="approve")
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(ticket))
    assert shown(plan).endswith("\n  suspended: approve (t1)")
    plan.discard()


def test_a_handled_failure_is_told_from_a_success() -> None:
    """A hook may answer with a result that is no success, and the state says so."""
    hooks = Shop.HookSet()
    made = opened(("c1", "shout", {"text": "hi"}))
    broken = Shop.parse_tool_call(made.tool_calls[0].metadata).fail("broken")
    hooks.gate(Shop.shout)(lambda metadata, input: broken)
    plan = made.apply_hooks_sync(hooks)
    assert "c1  shout  handled, error\n" in shown(plan)
    plan.discard()


Handle = Annotated[Any, BeforeValidator(lambda given: object()), WithJsonSchema({})]


def test_an_input_without_a_json_form_is_shown_by_its_text() -> None:
    """What cannot be encoded is shown as the model wrote it, which is what it was made of."""

    @tool_fn
    def free(a: Handle) -> None:
        """Take anything."""

    made = opened(("c1", "free", {"a": 1}), toolset=Toolset.of("Free", free))
    assert '\n  {"a":1}' in shown(made)
    made.discard()


def test_a_round_shows_its_calls_before_anything_is_decided() -> None:
    """Usable calls are undecided, and those that cannot be used say why."""
    made = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": "x"}))
    assert shown(made).startswith("Round of Shop  1 undecided, 1 invalid arguments\n\nc1  add  und")
    made.discard()


def test_a_large_round_is_shown_in_part() -> None:
    """Of very many calls the first are shown, and the rest are counted."""
    made = opened(*((f"c{place}", "add", {"a": place}) for place in range(103)))
    assert shown(made).startswith("Round of Shop  103 undecided\n")
    assert shown(made).endswith("\n\n…  3 more")
    made.discard()


def test_a_plan_without_calls_says_so() -> None:
    """Where nothing was asked, that is said."""
    saved = json.loads(opened(("c1", "add", {"a": 1})).plan().dump_json())
    saved["round"]["turn"]["items"], saved["round"]["calls"], saved["entries"] = [], [], []
    rest = {name: value for name, value in saved.items() if name != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    saved["seal"]["value"] = hashlib.sha256(text.encode()).hexdigest()
    empty = Shop.load_plan(json.dumps(saved))
    assert shown(empty) == "Plan of Shop  no calls"
    empty.discard()


# Transcripts and sessions.


def conversation() -> Session:
    """A session with a round, an answer, a refused call and something said once only."""
    session = Session()
    session.push_system("Be brief.")
    picture = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
    session.push_user("What is 1 + 2?", [picture])
    calls: list[Call] = [("c1", "add", {"a": 1, "b": 2}), ("c2", "nope", {})]
    model = ScriptedModel(
        [ScriptedModel.tool_calls(*calls, text="Let me see."), ScriptedModel.text("It is 3.")]
    )
    plan = needs(session.text_turn(model).tools(Shop).collect_sync()).plan()
    plan.commit(session, done(plan.pending))
    session.text_turn(model).tools(Shop).collect_sync()
    session.push_ephemeral_user("Hurry.")
    return session


def test_a_session_shows_who_said_what() -> None:
    """Messages, turns with calls, and results stand in order; what is said once only says so."""
    assert (
        shown(conversation())
        == """\
Session  7 items

0  system
  Be brief.

1  user
  What is 1 + 2?
  attachments: 1

2  assistant
  Let me see.
  call: add  c1
  <13 characters>
  call: nope  c2
  <2 characters>

3  tool  success
  result of: add  c1
  result: 3

4  tool  rejected
  result of: nope  c2
  result: There is no tool `nope`, so nothing was run. Tools on offer: `add`, `shout`, `pay`, \
`ask`.

5  assistant
  It is 3.

6  user  once only
  Hurry."""
    )


def test_a_transcript_shows_what_was_really_said() -> None:
    """A transcript has no messages that are said once only."""
    text = shown(conversation().transcript)
    assert text.startswith("Transcript  6 items\n")
    assert "Hurry" not in text


def test_an_empty_transcript_shows_no_items() -> None:
    """Where nothing was said, there is a heading alone."""
    assert shown(Transcript()) == "Transcript  0 items"


def test_a_turn_of_many_parts_is_shown_in_part() -> None:
    """Of a turn with very many calls the first are shown, and the rest are counted."""
    session = Session()
    calls = [ToolMetadata(id=f"c{place}", name="add", arguments='{"a":1}') for place in range(15)]
    made = needs(Shop.read_turn(AssistantTurn(tool_calls=calls)))
    made.commit(session, done(made.tool_calls))
    assert "  …: 18 more parts\n" in shown(session)


def test_a_turn_shows_each_thing_that_the_model_said() -> None:
    """Reasoning, a refusal and a tool of the provider are named; of the last the kind alone."""
    items: list[AssistantItem] = [
        ReasoningItem("Hm."),
        ReasoningItem(""),
        RefusalItem("No."),
        ServerToolItem("web_search", {"query": "a secret"}),
    ]
    transcript = Transcript()
    transcript.append_turn(AssistantTurn(items=items, model="m1", finish_reason="length"))
    assert (
        shown(transcript)
        == """\
Transcript  1 item

0  assistant  m1
  reasoning: Hm.
  reasoning: (not shown by the provider)
  refusal: No.
  run by the provider: web_search
  blocked: length"""
    )


LONG = 10_000


def long_transcript(count: int = LONG) -> Transcript:
    transcript = Transcript()
    for place in range(count):
        transcript.push(Message("user", f"{place} " + "<x>" * 1000))
    return transcript


def test_a_long_transcript_stays_small() -> None:
    """Of ten thousand long items the ends are shown, within a bound, and the rest is counted."""
    text = shown(long_transcript())
    assert "\n\n…  9,940 items are not shown\n\n9950  user\n" in text
    assert f"\n\n{LONG - 1}  user\n  {LONG - 1} <x>" in text
    assert len(text) < 50_000


def test_one_item_more_than_fits_is_shown_all_the_same() -> None:
    """A line about one item would take as much room as the item."""
    assert "not shown" not in shown(long_transcript(61))
    assert "2 items are not shown" in shown(long_transcript(62))


def test_reprs_stay_short() -> None:
    """However much there is to show, `repr` is a line."""
    plan = plan_of_all_kinds()
    for value in (App, App.data, plan, conversation(), long_transcript()):
        assert len(repr(value)) < 100
        assert "\n" not in repr(value)
    plan.discard()
