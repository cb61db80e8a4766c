"""The laws of what is told of edits: in records, to the model, and nothing of secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from lutum_py import (
    Attachment,
    RunNormally,
    Session,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolDef,
    ToolInput,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import ResumeError
from lutum_py.typing import EditRecord
from tests.cases import over
from tests.round.edits import capped, refused, waits
from tests.round_tools import Shop, check_transcript, close, done, opened

MASK = "**********"


def test_edits_say_what_was_shown_edited_and_run() -> None:
    """There is one record a call, of the latest edit, with what was shown first."""
    hooks = capped()
    plan = waits(hooks=hooks)
    (first,) = plan.suspended
    plan.amend_sync(first.edit({"a": 99, "b": 1}, by="ann"), hooks)
    (record,) = plan.edits
    assert (record.shown, record.edited, record.final) == (
        {"a": 0, "b": 0},
        {"a": 99, "b": 1},
        {"a": 10, "b": 1},
    )
    assert (record.by, record.changed) == ("ann", ("a", "b"))
    (again,) = plan.suspended
    decision = again.edit({"b": 0}, by="bob")
    plan.amend_sync(decision, hooks)
    shown, edited = {"a": 0, "b": 0}, {"a": 10, "b": 0}
    expected = EditRecord(
        "c0", shown, edited, edited, decision.decision_id, "bob", decision.at, ("a",)
    )
    assert plan.edits == (expected,)
    assert hash(plan.edits[0]) == hash(expected)
    loaded = Shop.load_plan(plan.dump_json())
    assert loaded.edits == (expected,)
    assert {each.edit is None for each in loaded.resumed.values()} == {False}
    assert loaded.pending[0].approval == decision
    close(loaded)


def test_an_edit_that_is_taken_back_is_not_told() -> None:
    """Where the arguments are in the end as they were shown first, the result has no line."""
    hooks = capped()
    plan = waits(hooks=hooks)
    plan.amend_sync(plan.suspended[0].edit({"a": 99}), hooks)
    plan.amend_sync(plan.suspended[0].edit({"a": 0}), hooks)
    (record,) = plan.edits
    assert (record.final, record.changed) == (record.shown, ())
    (result,) = plan.resolve(done(plan.pending)).results
    assert result.message is None


def test_a_display_says_who_changed_what() -> None:
    """A notebook shows the final arguments, and who changed which of them."""
    plan = waits(count=2)
    first, second = plan.suspended
    plan.amend_sync(first.edit({"a": 5, "b": 6}, by="ann"), Shop.HookSet())
    decision = second.edit({})
    plan.amend_sync(decision, Shop.HookSet())
    for said in ("a, b changed by ann", f"resume with arguments edited by {decision.decision_id}"):
        assert said in plan.__rich__().plain
    close(plan)


@pytest.mark.parametrize("end", ["resolve", "commit", "abort"])
def test_the_line_stands_before_what_the_model_reads(end: str) -> None:
    """However the round ends, each changed field is named; the program's own result is the same."""
    plan = waits(count=2)
    first, second = plan.suspended
    hooks = Shop.HookSet()
    plan.amend_sync(first.edit({"a": 5, "b": 6}), hooks)
    plan.amend_sync(second.edit({"a": 7}), hooks)
    picture = Attachment(media_type="image", mime_type="image/png", url="https://example.org/a.png")
    one, two = plan.pending
    results = [
        one.complete(11, message="eleven", attachments=[picture]),
        two.fail("down", code="offline"),
    ]
    session = Session()
    committed = {
        "resolve": lambda: plan.resolve(results),
        "commit": lambda: plan.commit(session, results),
        "abort": lambda: plan.abort(session, "enough", results),
    }[end]()
    told = "[The arguments of this call were edited:"
    assert [result.model_text for result in committed.results] == [
        f"{told} a = 5, b = 6]\neleven",
        f"{told} a = 7]\n[offline] down",
    ]
    for said, own in zip(committed.results, results, strict=True):
        assert (said.result, said.status, said.code) == (own.result, own.status, own.code)
        assert said.attachments == own.attachments
    check_transcript(session.transcript)


def test_no_line_is_told_of_what_was_not_run() -> None:
    """A call that was rejected or cancelled after an edit says only that."""
    plan = waits(count=2)
    first, second = plan.suspended
    hooks = Shop.HookSet()
    plan.amend_sync(first.edit({"a": 5}), hooks)
    plan.amend_sync(second.edit({"a": 5}), capped(3))
    plan.record(first.call.reject("closed"))
    plan.resume(plan.suspended[0].cancel("no"))
    statuses = [(each.status, each.model_text) for each in plan.resolve().results]
    assert statuses == [
        ("rejected", "Rejected: closed"),
        ("cancelled", "Cancelled: no"),
    ]


PIN: Any = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}}


def of_schema(properties: dict[str, Any], arguments: Any) -> tuple[ToolRoundPlan[Any], Any]:
    """A call of a tool of a JSON schema, which waits, and its hooks."""
    schema = {"type": "object", "properties": properties}
    definition = ToolDef.from_json_schema(name="act", input_schema=schema)
    made: Any = Toolset.from_definitions("Made", [definition])
    hooks = made.HookSet()
    hooks.gate(made["act"])(lambda metadata, input: Suspend(SuspendTicket()))
    return opened(("c", "act", arguments), toolset=made).apply_hooks_sync(hooks), hooks


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"on_behalf_of": "bob"}, 'on_behalf_of = "bob"'),
        ({"on_behalf_of": "bob", "cents": 4}, 'cents = 4, on_behalf_of = "bob"'),
    ],
)
def test_a_field_that_is_left_out_of_dumps_is_told_as_any(
    changes: dict[str, Any], line: str
) -> None:
    """An edit may set it, the tool gets it, and the line says so."""

    class Payment(BaseModel):
        cents: int
        on_behalf_of: str = Field(default="nobody", exclude=True)

    @tool_fn
    def send(payment: Payment) -> str:
        return f"for {payment.on_behalf_of}"

    class Sending(Toolset):
        send_ = tool(send, needs_approval=True)

    plan = opened(("c", "send", {"cents": 5}), toolset=Sending).plan()
    plan.amend_sync(plan.suspended[0].edit(changes, by="ann"), Sending.HookSet())
    (result,) = plan.resolve(done(plan.pending)).results
    assert result.model_text == f"[The arguments of this call were edited: {line}]\nfor bob"


def test_an_argument_that_is_left_out_is_named_too() -> None:
    """The line says where an edit left an argument out, and cuts a long one."""
    plan, hooks = of_schema({"to": {}, "note": {}}, {"to": "ann", "note": "x"})
    (waiting,) = plan.suspended
    waiting.arguments["to"] = "eve"  # what is shown is a copy
    edit = replace(waiting.approve(), edit={"to": "b" * 200})
    plan.amend_sync(edit, hooks)
    (result,) = plan.resolve([plan.pending[0].complete("sent")]).results
    line, text = result.model_text.split("\n")
    assert line.startswith('[The arguments of this call were edited: to = "bbb')
    assert line.endswith(", note was left out]")
    assert (len(line) < 160, text) == (True, "sent")


# Names on the wire, and secrets.


@tool_fn
def login(user: str, password: SecretStr, spare: tuple[SecretStr, ...] = ()) -> str:
    """Log in."""
    return f"{user} {password.get_secret_value()} {[one.get_secret_value() for one in spare]}"


class Trip(ToolInput[str]):
    """Go somewhere."""

    start: str = Field(alias="from")


class Desk(Toolset):
    login = tool(login)
    trip = tool(Trip)


def at_desk(name: str, arguments: Any) -> tuple[ToolRoundPlan[Any], SuspendedCall]:
    hooks = Desk.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket()))
    plan = opened(("c", name, arguments), toolset=Desk).apply_hooks_sync(hooks)
    return plan, plan.suspended[0]


def test_arguments_are_edited_by_their_wire_names() -> None:
    """An edit takes the names that the model knows, and a field under two names is refused."""
    plan, waiting = at_desk("trip", {"from": "Oslo"})
    hooks = Desk.HookSet()
    refused(plan, waiting.edit({"start": "Rome"}), hooks, ResumeError, "there is no such field")
    plan.amend_sync(waiting.edit({"from": "Rome"}), hooks)
    (call,) = plan.pending
    assert call.input == Trip.model_validate({"from": "Rome"})
    assert plan.edits[0].changed == ("from",)
    close(plan)


def test_what_stays_masked_stays_what_it_is() -> None:
    """An edit of something else keeps the secrets, which no decision, record or line tells."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "HUNTER2", "spare": ["S1", "S2"]})
    decision = waiting.edit({"user": "bob"})
    assert decision.edit == {"user": "bob", "password": MASK, "spare": [MASK, MASK]}
    plan.amend_sync(decision, Desk.HookSet())
    plan = Desk.load_plan(plan.dump_json())
    shown = [repr(plan.edits), plan.__rich__().plain, repr(plan.resumed), repr(plan.pending)]
    (result,) = done(plan.pending)
    assert result.output == "bob HUNTER2 ['S1', 'S2']"
    shown.append(plan.resolve([result]).results[0].model_text.split("\n")[0])
    assert not any("HUNTER2" in text or "S1" in text for text in shown)


def test_a_secret_may_be_edited_and_is_not_shown() -> None:
    """A new secret is what runs; the line names the argument, and nothing shows the secret."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "HUNTER2"})
    decision = waiting.edit({"password": "CORRECT"})
    plan.amend_sync(decision, Desk.HookSet())
    shown = [repr(decision), repr(plan.edits), plan.__rich__().plain, repr(plan.pending)]
    assert plan.edits[0].changed == ("password",)
    (result,) = done(plan.pending)
    assert result.output == "ada CORRECT []"
    line = plan.resolve([result]).results[0].model_text.split("\n")[0]
    assert line == f'[The arguments of this call were edited: password = "{MASK}"]'
    assert not any("CORRECT" in text or "HUNTER2" in text for text in shown)


def test_a_secret_that_was_edited_first_stays_named() -> None:
    """What is behind a mask cannot be seen to be as it was, so a later edit does not unname it."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "HUNTER2"})
    hooks = Desk.HookSet()
    hooks.on(Desk.login)(
        lambda metadata, input: RunNormally(input.model_copy(update={"user": input.user.upper()}))
    )
    again = plan.amend_sync(waiting.edit({"password": "CORRECT"}), hooks)
    assert isinstance(again, SuspendedCall)
    plan.amend_sync(again.edit({"user": "BOB"}), hooks)
    assert plan.edits[0].changed == ("user", "password")
    close(plan)


def test_an_unfit_edit_shows_no_secret() -> None:
    """What is wrong with the edit of a tool that takes secrets is told without the values."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "HUNTER2"})
    with pytest.raises(ResumeError) as caught:
        plan.amend_sync(waiting.edit({"password": ["CORRECT"]}), Desk.HookSet())
    assert "`password`: Input" in str(caught.value)
    assert "CORRECT" not in str(caught.value)
    close(plan)


def test_a_question_about_a_name_ends_its_sentence() -> None:
    """The value is hidden, so the question is the end of what is wrong."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "HUNTER2"})
    with pytest.raises(ResumeError, match=r"did you mean `user`\? Ask again\.$"):
        plan.amend_sync(waiting.edit({"usr": "bob"}), Desk.HookSet())
    close(plan)


def test_a_mask_in_an_edited_list_is_refused() -> None:
    """Where a list of secrets is changed, nobody knows which one a mask stands for."""
    plan, waiting = at_desk("login", {"user": "ada", "password": "p", "spare": ["S1", "S2"]})
    hooks = Desk.HookSet()
    refused(plan, waiting.edit({"spare": [MASK]}), hooks, ResumeError, "the list `spare` and")
    plan.amend_sync(waiting.edit({"spare": ["S2"]}), hooks)
    assert done(plan.pending)[0].output == "ada p ['S2']"
    close(plan)


def test_a_mask_within_a_schemas_object_stays_what_it_is() -> None:
    """Secrets that only a JSON schema declares are kept as well, at any depth."""
    arguments = {"door": {"pin": "1", "name": "a"}, "spare": [{"pin": "2"}]}
    plan, hooks = of_schema({"door": PIN, "spare": {"items": PIN}}, arguments)
    (waiting,) = plan.suspended
    door = {**waiting.arguments["door"], "name": "b"}
    both = waiting.edit({"spare": [{"pin": MASK}, {"pin": "3"}]})
    refused(plan, both, hooks, ResumeError, "the list `spare` and leaves a mask")
    plan.amend_sync(waiting.edit({"door": door}), hooks)
    assert plan.pending[0].input == {"door": {"pin": "1", "name": "b"}, "spare": [{"pin": "2"}]}
    close(plan)


@over("doors", [{"b": {"pin": MASK}}, MASK])
def test_a_mask_under_another_key_is_refused(doors: Any) -> None:
    """Else the stars themselves would be the secret that the tool is run with."""
    keys = {"doors": {"additionalProperties": PIN}}
    plan, hooks = of_schema(keys, {"doors": {"a": {"pin": "1"}}})
    (waiting,) = plan.suspended
    refused(plan, waiting.edit({"doors": doors}), hooks, ResumeError, "` and leaves a mask in it")
    more = {**waiting.arguments["doors"], "b": {"pin": "2"}}
    plan.amend_sync(waiting.edit({"doors": more}), hooks)
    assert plan.pending[0].input == {"doors": {"a": {"pin": "1"}, "b": {"pin": "2"}}}
    close(plan)


def test_what_looks_like_a_mask_and_is_none_is_edited_like_any_text() -> None:
    """A list without secrets may hold stars, beside a secret that stays what it is."""
    arguments = {"stars": [MASK, "a"], "pin": "1"}
    properties = {"stars": {"type": "array"}, "pin": PIN["properties"]["pin"]}
    plan, hooks = of_schema(properties, arguments)
    (waiting,) = plan.suspended
    plan.amend_sync(waiting.edit({"stars": ["b", MASK]}), hooks)
    assert plan.pending[0].input == {"stars": ["b", MASK], "pin": "1"}
    close(plan)


def test_a_name_cannot_break_the_line() -> None:
    """Control characters in the name of an argument are spelled out in the line."""
    plan, hooks = of_schema({}, {})
    plan.amend_sync(plan.suspended[0].edit({"a]\nb": 1}), hooks)
    (result,) = plan.resolve([plan.pending[0].complete("done")]).results
    assert result.model_text.count("\n") == 1
