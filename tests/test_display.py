"""What notebooks and rich show of toolsets, rounds, plans, errors and transcripts."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
from types import MethodType
from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, WithJsonSchema
from rich.console import Console

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
from lutum_py.errors import CommitError, DuplicateResult, MissingResult
from lutum_py.testing import ScriptedModel
from tests.round_tools import Call, Shop, approval, done, gated, needs, opened

from .test_display_html import read_safely


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


def cells(html: str) -> str:
    """All that is shown, one piece after the other, but for how long each step took."""
    texts = (re.sub(r" \(\+[0-9.e-]+ s\)$", "", text) for text in read_safely(html).texts)
    return "|".join(text.strip() for text in texts if text.strip())


def on_terminal(value: object) -> str:
    """What rich prints of a value, on a wide terminal."""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(value)
    shown: io.StringIO = console.file  # type: ignore[assignment]
    return shown.getvalue()


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
    """Each tool has its wire name, arguments, description and hints; optional ones have a mark."""
    shown = cells(App._repr_html_())
    assert shown.startswith("App|toolset of 2 tools, 1 off|tool|arguments|what it does")
    assert "ping|none|Say that all is well." in shown
    assert "crm_get_user|member:|data.get_user|off|user_id: string\nlimit?: integer|" in shown
    assert shown.endswith("Find a user.|timeout 2.5 s, idempotent, category people")


def test_a_bound_view_shows_itself() -> None:
    """The view of a nested toolset shows its own tools, under the names of the outer one."""
    shown = cells(App.data._repr_html_())
    assert shown.startswith("App.data|toolset of 1 tool, 1 off")
    assert "crm_get_user" in shown
    assert "ping" not in shown


def test_a_toolset_without_tools_shows_no_table() -> None:
    """Where there is nothing to list, there is no empty table."""
    assert cells(Toolset._repr_html_()) == "Toolset|toolset of 0 tools"


def test_notebooks_find_the_display_of_a_class() -> None:
    """IPython takes a class's display only where it is a bound method, which this is."""
    assert isinstance(App._repr_html_, MethodType)


def test_a_large_toolset_is_shown_in_part() -> None:
    """Of very many tools or arguments the first are shown, and the rest are counted."""
    properties = {f"a{place}": {"type": ["string", "null"]} for place in range(35)}
    schema = {"type": "object", "properties": properties}
    many = [
        ToolDef.from_json_schema(
            name=f"t{place}", description="", input_schema=schema if place == 0 else {}
        )
        for place in range(205)
    ]
    shown = cells(Toolset.from_definitions("Many", many)._repr_html_())
    assert "toolset of 205 tools, 5 of them not shown" in shown
    assert "a29?\n… 5 more" in shown
    assert "t199" in shown
    assert "t200" not in shown


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
    shown = cells(Toolset.from_definitions("Shop", made)._repr_html_())
    assert "pay|card\niban|in several forms|" in shown
    assert "refund|cents?: integer\ncard\niban|in several forms" in shown


# Rounds and plans.


def test_a_plan_shows_what_becomes_of_each_call_and_why() -> None:
    """Each call has its state, its arguments and who decided, in the order of the turn."""
    plan = plan_of_all_kinds()
    shown = cells(plan._repr_html_())
    plan.discard()
    assert shown.split("|call|tool and state|arguments and why|")[0] == (
        "Plan of Shop|1 unknown tool, 1 pending, 1 rejected by hook, 1 blocked by gate, 1 handled, "
        "1 suspended"
    )
    name = f"{plan_of_all_kinds.__qualname__}.<locals>"
    assert "c1|nope|unknown tool|<2 characters>|the model is told:|There is no tool `nope`" in shown
    assert f'|c2|add|pending|{{"a":1,"b":0}}|execution:|{name}.small decided run_normally|' in shown
    assert '|c3|add|rejected by hook|{"a":10,"b":0}|reason:|too large|' in shown
    assert f"gate:|{name}.quiet decided block: not here|gate:|{name}.strict" in shown
    assert '|c5|shout|handled|{"text":"hi"}|result:|HI|' in shown
    assert '|c6|pay|suspended|{"amount":5,"to":[]}|ticket:|approve (t1)|message:|Pay?|' in shown


def test_a_plan_shows_how_far_it_has_come() -> None:
    """A call that runs says so, one that was approved says by what, a closed plan how it ended."""
    plan = plan_of_all_kinds()
    plan.resume(approval(plan, "c6", decision_id="d1", reason="fine"))
    add = plan.pending[0]
    add.start()
    shown = cells(plan._repr_html_())
    assert "c2|add|pending, running|" in shown
    assert 'c6|pay|pending, resuming|{"amount":5,"to":[]}|gate:|' in shown
    assert shown.endswith("|decision:|resume by d1: fine")
    plan.discard()
    assert "; discarded|call|" in cells(plan._repr_html_())


def test_what_a_plan_knows_of_results_is_shown() -> None:
    """Recorded results are shown in their place, and calls in doubt are said to be that."""
    plan = opened(*((f"c{n}", "add", {"a": n}) for n in range(3)), ("u", "nope", "{}")).plan()
    plan.pending[0].start()
    plan.record(plan.pending[1].call_sync())
    plan.record(plan.pending[1].fail("down"))
    unknown = plan.recoverable_tool_call_issues[0].metadata
    plan.record(ToolResult(id="u", name="nope", arguments=unknown.arguments, result='"mine"'))
    plan = Shop.load_plan(plan.dump_json())
    shown = cells(plan._repr_html_())
    assert 'c0|add|in doubt|{"a":0,"b":0}|' in shown
    assert 'c1|add|finished|{"a":1,"b":0}|result:|1|' in shown
    assert 'c2|add|finished, error|{"a":2,"b":0}|result:|down|' in shown
    assert "u|nope|finished|<2 characters>|result:|mine" in shown
    assert "unknown tool" not in shown
    plan.discard()


def test_a_decision_without_a_reason_is_shown_without_one() -> None:
    """Who decided is shown, and no empty reason."""
    plan = plan_of_all_kinds()
    plan.resume(approval(plan, "c6", decision_id="d1"))
    assert cells(plan._repr_html_()).endswith("|decision:|resume by d1")
    plan.discard()


def test_a_ticket_without_a_message_is_shown_without_one() -> None:
    """What is asked is shown, and no empty message."""
    ticket = SuspendTicket(id="t1", action="approve")
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(ticket))
    shown = cells(plan._repr_html_())
    assert "ticket:|approve (t1)|" in shown
    assert "message" not in shown
    plan.discard()


def test_a_handled_failure_is_told_from_a_success() -> None:
    """A hook may answer with a result that is no success, and the state says so."""
    hooks = Shop.HookSet()
    made = opened(("c1", "shout", {"text": "hi"}))
    broken = Shop.parse_tool_call(made.tool_calls[0].metadata).fail("broken")
    hooks.gate(Shop.shout)(lambda metadata, input: broken)
    plan = made.apply_hooks_sync(hooks)
    assert "|handled, error|" in cells(plan._repr_html_())
    plan.discard()


Handle = Annotated[Any, BeforeValidator(lambda given: object()), WithJsonSchema({})]


def test_an_input_without_a_json_form_is_shown_by_its_text() -> None:
    """What cannot be encoded is shown as the model wrote it, which is what it was made of."""

    @tool_fn
    def free(a: Handle) -> None:
        """Take anything."""

    made = opened(("c1", "free", {"a": 1}), toolset=Toolset.of("Free", free))
    assert '|{"a":1}' in cells(made._repr_html_())
    made.discard()


def test_a_round_shows_its_calls_before_anything_is_decided() -> None:
    """Usable calls are undecided, and those that cannot be used say why."""
    made = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": "x"}))
    shown = cells(made._repr_html_())
    assert shown.startswith("Round of Shop|1 undecided, 1 invalid arguments|")
    assert "c1|add|undecided|" in shown
    assert "undecided=['add c1 " in on_terminal(made)
    made.discard()


def test_a_large_round_is_shown_in_part() -> None:
    """Of very many calls the first are shown, and the rest are counted."""
    made = opened(*((f"c{place}", "add", {"a": place}) for place in range(103)))
    assert "3 more calls are not shown." in cells(made._repr_html_())
    assert "not_shown=3" in on_terminal(made)
    made.discard()


def test_a_plan_without_calls_shows_no_table() -> None:
    """Where nothing was asked, that is said."""
    saved = json.loads(opened(("c1", "add", {"a": 1})).plan().dump_json())
    saved["round"]["turn"]["items"], saved["round"]["calls"], saved["entries"] = [], [], []
    rest = {name: value for name, value in saved.items() if name != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    saved["seal"]["value"] = hashlib.sha256(text.encode()).hexdigest()
    empty = Shop.load_plan(json.dumps(saved))
    assert cells(empty._repr_html_()) == "Plan of Shop|no calls"
    empty.discard()


def test_rich_shows_a_plan_by_state() -> None:
    """On a terminal the calls stand under their states, each with a line."""
    plan = plan_of_all_kinds()
    shown = on_terminal(plan)
    plan.discard()
    assert shown.startswith("ToolRoundPlan(\n    toolset='Shop',\n    unknown_tool=['nope c1 <2 ch")
    assert 'rejected_by_hook=[\'add c3 {"a":10,"b":0} - too large\']' in shown
    assert "suspended=['pay c6" in shown


# Commit errors.


def test_a_commit_error_shows_each_fault_with_its_remedy() -> None:
    """What is wrong with which call stands beside what to do about it."""
    made = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}))
    with pytest.raises(CommitError) as raised:
        made.resolve([made.tool_calls[0].complete(1)] * 2)
    shown = cells(raised.value._repr_html_())
    made.discard()
    assert shown.startswith("CommitError|2 faults; nothing was changed|fault|call|tool|")
    assert "duplicate result|c1|add|call 'c1' of tool 'add' has more than one result|Pass" in shown
    assert "missing result|c2|add|call 'c2' of tool 'add' has no result|Run it or" in shown
    assert on_terminal(raised.value).count("call 'c") == 2


def test_many_faults_are_shown_in_part() -> None:
    """Of very many faults the first are shown, and the rest are counted."""
    error = CommitError([MissingResult(str(place), "add") for place in range(55)])
    assert "55 faults; nothing was changed; 5 more are not shown" in cells(error._repr_html_())
    assert "… 5 more" in on_terminal(error)


def test_one_fault_is_one() -> None:
    """A single fault is not spoken of in the plural."""
    assert "|1 fault; nothing was changed|" in cells(
        CommitError([DuplicateResult("c1", "add")])._repr_html_()
    )


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
    shown = cells(conversation()._repr_html_())
    assert shown.startswith("Session|7 items|#|who|what|0|system|Be brief.|1|user|What is 1 + 2?|")
    assert "attachments:|1|2|assistant|" in shown
    assert (
        "Let me see.|call:|add c1 <13 characters>|call:|nope c2 <2 characters>|3|tool|add c1|3|"
        in shown
    )
    assert "4|tool|rejected|nope c2|There is no tool `nope`, so nothing was run." in shown
    assert shown.endswith("It is 3.|6|user|once only|Hurry.")


def test_a_transcript_shows_what_was_really_said() -> None:
    """A transcript has no messages that are said once only."""
    shown = cells(conversation().transcript._repr_html_())
    assert shown.startswith("Transcript|6 items|")
    assert "Hurry" not in shown


def test_an_empty_transcript_shows_no_table() -> None:
    """Where nothing was said, there is no empty table."""
    assert cells(Transcript()._repr_html_()) == "Transcript|0 items"


def test_rich_shows_a_line_for_each_item() -> None:
    """On a terminal each item is a line that begins with who said it."""
    shown = on_terminal(conversation())
    assert "'user: What is 1 + 2? | attachments: 1'" in shown
    assert "'tool (rejected): nope c2 | There is no tool" in shown
    assert on_terminal(conversation().transcript).startswith("Transcript(\n    'system: Be brief.'")


def test_a_turn_of_many_parts_is_shown_in_part() -> None:
    """Of a turn with very many calls the first are shown, and the rest are counted."""
    session = Session()
    calls = [ToolMetadata(id=f"c{place}", name="add", arguments='{"a":1}') for place in range(15)]
    made = needs(Shop.read_turn(AssistantTurn(tool_calls=calls)))
    made.commit(session, done(made.tool_calls))
    assert "3 more parts are not shown" in cells(session._repr_html_())


LONG = 10_000


def long_transcript() -> Transcript:
    transcript = Transcript()
    for place in range(LONG):
        transcript.push(Message("user", f"{place} " + "<x>" * 1000))
    return transcript


def test_a_long_transcript_stays_small() -> None:
    """Of ten thousand long items the ends are shown, within a bound, and the rest is counted."""
    html = long_transcript()._repr_html_()
    shown = cells(html)
    assert "9,940 items are not shown" in shown
    assert f"|{LONG - 1}|user|{LONG - 1} <x>" in shown
    assert len(html) < 150_000
    terminal = on_terminal(long_transcript())
    assert "… 9,970 items" in terminal
    assert len(terminal) < 10_000


def test_reprs_stay_short() -> None:
    """However much there is to show, `repr` is a line."""
    plan = plan_of_all_kinds()
    for value in (App, App.data, plan, conversation(), long_transcript()):
        assert len(repr(value)) < 100
        assert "\n" not in repr(value)
    plan.discard()


def test_nothing_is_loaded_before_it_is_shown() -> None:
    """Using the library loads no display and no rich; the HTML display loads no rich either."""
    code = """
import sys
from lutum_py import Session, Toolset
session = Session()
before = [name for name in sys.modules if "_display" in name or name == "html"]
session._repr_html_(); Toolset._repr_html_(); list(session.__rich_repr__())
print(before, "rich" in sys.modules, "lutum_py._transcript.display" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False True"
