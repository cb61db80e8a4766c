"""Laws about text that a model, a tool or a module made to do something where it is shown."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from lutum_py import (
    Complete,
    Reject,
    RunNormally,
    Session,
    ToolContext,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    errors,
    sinks,
    tool,
    tool_fn,
)
from lutum_py.testing import ScriptedModel

HOSTILE = "pay\x1b[2K\r\x9b31m\x7f\u202e\u2028x\nmore"
NAME = "pay\u202e\u2028\u200bx"
"""As hostile as the name of a tool may be: it has no controls."""


@tool_fn
def greet(name: str = "") -> str:
    """Greet somebody."""
    return f"Hello {name}"


class Tools(Toolset):
    greet = tool(greet)


Odd: Any = Toolset.from_definitions(
    "Odd",
    [ToolDef.from_json_schema(name=NAME, input_schema={"type": "object"})],
)


def prints(text: str, kept: str = "\n\t") -> bool:
    return all(char.isprintable() or char in kept for char in text)


def _round(*calls: Any, toolset: Any = Tools) -> Any:
    return toolset.read_turn(ScriptedModel.tool_calls(*calls)).round


@pytest.mark.parametrize(
    "call",
    [
        ("c1", HOSTILE, {}),
        ("c1", "greet", {HOSTILE: 1}),
        ("c1", "greet", {"name": [HOSTILE]}),
        ("c1", "greet", HOSTILE),
    ],
    ids=["name", "field", "value", "text"],
)
def test_what_the_model_is_told_of_its_mistake_repeats_no_control_character(call: Any) -> None:
    """A name, a field or a value that the model made up is spelled out in the issue's text."""
    round_ = _round(call)
    (issue,) = round_.recoverable_tool_call_issues
    round_.discard()
    assert prints(issue.text)
    assert all(prints(str(field), "") for field in issue.fields)
    assert "\\x1b[2K\\r" in issue.text


def test_names_on_offer_are_spelled_out() -> None:
    """Tools that came from elsewhere may have any name; the list of them is harmless."""
    round_ = _round(("c1", NAME[:-1], {}), ("c2", "other", {}), toolset=Odd)
    issues = round_.recoverable_tool_call_issues
    assert all(prints(issue.text) for issue in issues)
    assert prints(repr(round_))
    assert prints(str(round_.continue_suggestion))
    round_.discard()


def test_values_of_hostile_names_have_a_representation_that_prints() -> None:
    """What a prompt, a debugger or a failing test shows of them commands nothing."""
    round_ = _round(("c1", NAME, {}), toolset=Odd)
    plan = round_.plan()
    shown = [
        Odd,
        Odd[NAME],
        Odd[NAME].definition,
        round_,
        plan,
        plan.pending[0],
        Odd.HookSet(),
    ]
    for each in [*shown, plan.pending[0].metadata, Odd[NAME].spec]:
        assert prints(repr(each), "")
    plan.discard()


def test_errors_spell_out_what_they_quote() -> None:
    """Every error of the library prints, whatever names and texts it quotes."""
    hooks = Tools.HookSet()

    @hooks.on(Tools.greet)
    def broken(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        raise ValueError(HOSTILE)

    round_ = _round(("c1", "greet", {}))
    with pytest.raises(errors.HookError) as raised:
        round_.apply_hooks_sync(hooks)
    round_.discard()
    assert prints(str(raised.value))
    assert "\\x1b[2K" in str(raised.value)
    with pytest.raises(errors.UnknownToolError) as unknown:
        Odd["nothing like it"]
    assert prints(str(unknown.value))
    for kind in (errors.MisuseError, errors.InvalidValueError, errors.MissingExtraError):
        assert str(kind(HOSTILE)) == str(errors.LutumError(HOSTILE)) != HOSTILE
        assert kind(HOSTILE).args == (HOSTILE,)


def test_a_tools_own_words_are_left_as_they_are() -> None:
    """What a tool raises is for the model: data, and not a message of the library."""
    assert str(errors.NotFound(HOSTILE)) == f"Not found: {HOSTILE}"


def test_records_of_decisions_spell_out_what_they_quote(caplog: pytest.LogCaptureFixture) -> None:
    """A record is harmless in whichever format it is written; its JSON is the same data."""
    caplog.set_level(logging.INFO, "lutum.tool_hook")
    calls = [(f"c{HOSTILE}", NAME, {HOSTILE: HOSTILE})]
    for decision in (RunNormally({"x": HOSTILE}), Reject(HOSTILE), Complete(HOSTILE)):
        hooks = Odd.HookSet()
        hooks.on(Odd[NAME])(lambda metadata, input, decision=decision: decision)
        round_ = _round(*calls, toolset=Odd)
        round_.apply_hooks_sync(hooks)
        round_.discard()
    assert len(caplog.records) == 3
    for record in caplog.records:
        written = [record.getMessage(), *map(str, record.__dict__.values())]
        assert all(prints(each) for each in written if HOSTILE[:3] in each)


def test_records_of_events_spell_out_what_they_quote(caplog: pytest.LogCaptureFixture) -> None:
    """What a tool reports is harmless in a log."""
    caplog.set_level(logging.INFO, "lutum.progress")
    context = ToolContext(HOSTILE, HOSTILE, sink=sinks.LoggerSink())
    context.report_progress("running", HOSTILE)
    context.report_activity(HOSTILE, HOSTILE)
    context.emit_observer(HOSTILE)
    assert len(caplog.records) == 3
    assert all(prints(record.getMessage(), "") for record in caplog.records)


def test_bars_of_progress_spell_out_what_they_show() -> None:
    """A tool that reports progress writes no command to the terminal."""
    from io import StringIO

    from rich.console import Console

    screen = StringIO()
    with sinks.RichProgressSink(Console(file=screen, width=200)) as sink:
        ToolContext(HOSTILE, HOSTILE, sink=sink).report_progress("running", HOSTILE)
    assert prints(screen.getvalue())
    assert "\\x1b[2K" in screen.getvalue()


def test_displays_spell_out_what_they_show() -> None:
    """What rich and notebooks show keeps breaks of lines alone."""
    session = Session()
    session.push_user(HOSTILE)
    round_ = _round(("c1", NAME, {HOSTILE: HOSTILE}), toolset=Odd)
    plan = round_.plan()
    displayed: list[Any] = [Odd, round_, plan, session, session.transcript]
    call = plan.pending[0]
    for _ in ("open", "committed"):
        for each in displayed:
            for shown in (each.__rich__().plain, *each._repr_mimebundle_().values()):
                assert prints(shown, "\n")
        if call.status == "new":
            plan.commit(session, [call.fail(HOSTILE)])


def test_faults_of_a_commit_spell_out_what_they_quote() -> None:
    """A result of anything is refused in a text that prints."""
    round_ = _round(("c1", "greet", {}))
    made = ToolResult(id=HOSTILE, name=HOSTILE, arguments=HOSTILE, result="null")
    other = ToolResult(id="c1", name="greet", arguments=HOSTILE, result="null")
    with pytest.raises(errors.CommitError) as raised:
        round_.commit(Session(), [made, other])
    assert prints(str(raised.value))
    round_.discard()
