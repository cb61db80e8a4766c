"""The laws of what a saved plan refuses: edits, other keys and nonsense."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import Session, ToolRoundPlan
from lutum_py.errors import PlanError
from tests.round.edits import capped, waits
from tests.round.saved_plans import (
    about,
    arguments,
    at,
    canonical_json,
    dumped,
    entry,
    leaves,
    loaded,
    planned,
    sealed,
    step,
)
from tests.round_tools import Shop, close

AT = "2100-01-01T00:00:00+00:00"
EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pending input": lambda d: arguments(d, "c2").update(a=99),
    "suspended input": lambda d: arguments(d, "p").update(amount=2000),
    "ticket": lambda d: step(d, "p", "suspended")["ticket"].update(message="Pay 1?"),
    "result": lambda d: step(d, "c0", "ended")["result"].update(result="41"),
    "end gone": lambda d: entry(d, "g")["steps"].pop(),
    "two": lambda d: (about(d, "p").update(coerced=["x"]), entry(d, "c0").update(steps=[])),
    "proposed": lambda d: d["round"]["turn"]["items"][0].update(arguments="{}"),
    "approved": lambda d: entry(d, "p")["steps"].append(
        {"at": AT, "kind": "decided", "verdict": "resume"}
    ),
    "call gone": lambda d: d["entries"].pop(0),
    "seal": lambda d: d["seal"].update(value="é"),
}


@pytest.mark.parametrize("key", [None, b"secret"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_plan_is_refused(edit: str, key: bytes | None) -> None:
    """Any edit is found, and nothing of the plan is used."""
    data = dumped(key=key)
    EDITS[edit](data)
    with pytest.raises(PlanError, match="edited after it was saved"):
        loaded(data, key=key)


@given(st.data())
def test_any_edit_is_found(data: st.DataObject) -> None:
    """Whichever value of the text is changed, the plan is refused."""
    text = PLAN_TEXT
    places = list(leaves(json.loads(text)))
    path = data.draw(st.sampled_from(places))
    changed = json.loads(text)
    place = at(changed, path[:-1])
    new = data.draw(st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3))
    if canonical_json(place[path[-1]]) == canonical_json(new):
        new = "another value"
    place[path[-1]] = new
    with pytest.raises(PlanError):
        loaded(changed)


PLAN_TEXT = planned().dump_json()


def test_a_seal_of_odd_text_is_no_seal() -> None:
    """A seal that holds half of a surrogate pair is refused like any that does not fit."""
    data = dumped()
    data["seal"]["value"] = "\ud83d"
    with pytest.raises(PlanError):
        loaded(data)


def test_a_number_that_no_seal_can_be_made_of_is_an_edit() -> None:
    """JSON has `1e999`, and floats do not: nobody saved it, so it is refused as an edit."""
    data = dumped()
    step(data, "p", "proposed")["arguments"]["amount"] = "here"
    text = json.dumps(data).replace('"here"', "1e999")
    with pytest.raises(PlanError, match="was edited after it was saved"):
        loaded(text)


def test_an_edit_under_a_new_seal_is_still_found() -> None:
    """Without a key anyone can seal anew; arguments that were not approved are refused even so."""
    for call_id in ("p", "c2"):
        data = dumped()
        changed = {"amount": 2000, "to": []} if call_id == "p" else {"a": 99, "b": 7}
        step(data, call_id, "changed", "proposed")["arguments"] = changed
        with pytest.raises(PlanError, match=rf"'{call_id}' of tool `.*(shown with|edited)"):
            loaded(sealed(data))


def steps_of(data: dict[str, Any], call_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = entry(data, call_id)["steps"]
    return found


RESEALED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "unfit input": (
        lambda d: step(d, "p", "proposed").update(arguments={"amount": "x"}),
        "Call 'p' of tool `pay` was shown with other arguments than it has",
    ),
    "no input": (
        lambda d: step(d, "c0", "proposed").update(arguments=None),
        r"entries\[0\]\.steps\[0\]\.arguments: it is missing",
    ),
    "late without a tool": (
        lambda d: entry(d, "u")["steps"].append(
            {"kind": "late", "at": "2027-01-01T00:00:00+00:00", "verdict": "suspended"}
        ),
        "a call of no tool ends once",
    ),
    "no object": (
        lambda d: step(d, "c0", "proposed").update(arguments=[1]),
        r"entries\[0\]\.steps\[0\]\.arguments: it is not an object",
    ),
    "no paths": (
        lambda d: step(d, "c0", "proposed").update(unset=1),
        r"entries\[0\]\.steps\[0\]\.unset: it is not a list of paths",
    ),
    "no path": (
        lambda d: step(d, "c0", "proposed").update(unset=[["a", None]]),
        r"entries\[0\]\.steps\[0\]\.unset: .* is not a path in the arguments",
    ),
    "an unknown path": (
        lambda d: step(d, "c0", "proposed").update(unset=[["zz"]]),
        r"entries\[0\]\.steps\[0\]\.unset: .* is not a path in the arguments",
    ),
    "input missing": (
        lambda d: step(d, "p", "proposed").pop("arguments"),
        r"entries\[3\]\.steps\[0\]\.arguments: it is missing",
    ),
    "unknown kind": (
        lambda d: step(d, "p", "suspended").update(kind="lost"),
        r"entries\[3\]\.steps\[2\]\.kind: 'lost' is none of the known",
    ),
    "unknown call": (
        lambda d: entry(d, "p").update(call="zz"),
        "first entry of call 'p' is missing",
    ),
    "call twice": (lambda d: d["entries"].append(d["entries"][0]), "two of this number"),
    "call missing": (lambda d: d["entries"].pop(), "first entry of call .* is missing"),
    "shared id": (
        lambda d: d["round"]["turn"]["items"].append(d["round"]["turn"]["items"][0]),
        "first entry of call 'c0' is missing",
    ),
    "status": (
        lambda d: step(d, "c1", "ended").update(verdict="asleep"),
        "'asleep' is none of the",
    ),
    "coerced": (lambda d: about(d, "p").update(coerced=[3]), "coerced: expected texts only"),
    "mode": (
        lambda d: step(d, "p", "suspended")["ticket"].update(resume_mode="x"),
        r"steps\[2\]\.ticket\.resume_mode: 'x' is none of",
    ),
    "no ticket": (
        lambda d: step(d, "p", "suspended").pop("ticket"),
        r"steps\[2\]\.ticket: it is missing",
    ),
    "no digest": (
        lambda d: step(d, "p", "suspended").pop("digest"),
        r"steps\[2\]\.digest: it is missing",
    ),
    "another digest": (
        lambda d: step(d, "p", "suspended").update(digest="sha256:0"),
        "Call 'p' of tool `pay` was shown with other arguments than it has",
    ),
    "phase": (lambda d: step(d, "c1", "ended").update(phase="fate"), "phase: 'fate' does not"),
    "phase of another kind": (
        lambda d: step(d, "c1", "ended").update(phase="after"),
        r"phase: 'after' does not go with 'ended'",
    ),
    "phase of no call": (
        lambda d: step(d, "c1", "ended").update(phase="decode"),
        r"phase: 'decode' comes first",
    ),
    "decision": (
        lambda d: step(d, "c1", "reviewed").update(verdict="perhaps"),
        r"verdict: 'perhaps' is none of the known",
    ),
    "answer": (
        lambda d: steps_of(d, "p").append({"at": AT, "kind": "decided", "verdict": "edit"}),
        r"steps\[3\]\.decision: it is missing",
    ),
    "action": (
        lambda d: steps_of(d, "p").append(answered(action="x")),
        "decision.action: 'x' is none of",
    ),
    "another call": (
        lambda d: steps_of(d, "p").append(answered(call_id="g")),
        "call_id: it is about another call, 'g'",
    ),
    "turn": (lambda d: d["round"].update(turn=[]), r"\$\.round\.turn: expected dict"),
    "reason": (
        lambda d: step(d, "u", "ended")["issue"].update(reason="mood"),
        r"issue\.reason: 'mood' is none of",
    ),
    "no issue": (lambda d: step(d, "u", "ended").pop("issue"), r"issue: it is missing"),
    "result": (
        lambda d: step(d, "c0", "ended")["result"].update(id="c9"),
        r"result: it is for another call, 'c9'",
    ),
    "no result": (lambda d: step(d, "c0", "ended").pop("result"), r"result: it is missing"),
    "no time": (
        lambda d: step(d, "c0", "ended").pop("at"),
        r"steps\[2\]\.at: it is missing",
    ),
    "time": (
        lambda d: step(d, "c0", "ended").update(at="noon"),
        r"steps\[2\]\.at: 'noon' is not a time",
    ),
    "no such time": (
        lambda d: step(d, "c0", "ended").update(at="9999-12-31T23:59:59-12:00"),
        "is not a time in ISO 8601",
    ),
}


def answered(**changes: Any) -> dict[str, Any]:
    """A step that answers the waiting call, but for what is changed in its decision."""
    decision = {"call_id": "p", "action": "resume", "decision_id": "d", **changes}
    return {"at": AT, "kind": "decided", "verdict": "resume", "decision": decision}


@pytest.mark.parametrize("case", RESEALED)
def test_nonsense_under_a_good_seal_is_told_by_its_place(case: str) -> None:
    """A text that is sealed but makes no sense is told by its place, and opens no round."""
    change, message = RESEALED[case]
    data = dumped()
    change(data)
    with pytest.raises(PlanError, match=message):
        loaded(sealed(data))


NEW_WORDS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "plan": (lambda d: d, r"at \$\.mood: "),
    "round": (lambda d: d["round"], r"at \$\.round\.mood: "),
    "call": (lambda d: about(d, "p"), r"at \$\.round\.calls\[3\]\.mood: "),
    "entry": (lambda d: entry(d, "p"), r"at \$\.entries\[3\]\.mood: "),
    "call of no tool": (lambda d: entry(d, "u"), r"at \$\.entries\[6\]\.mood: "),
    "step": (lambda d: step(d, "c1", "ended"), r"at \$\.entries\[1\]\.steps\[2\]\.mood: "),
}


@pytest.mark.parametrize("where", NEW_WORDS)
def test_a_word_of_a_later_release_is_refused(where: str) -> None:
    """What this release does not know may change what the rest means, so it is not passed over."""
    part, message = NEW_WORDS[where]
    data = dumped()
    part(data)["mood"] = None
    with pytest.raises(PlanError, match=f"{message}this release does not know it"):
        loaded(sealed(data))


IMPOSSIBLE: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "ended twice": ("g", [{"at": AT, "kind": "ended", "verdict": "rejected", "phase": "gate"}]),
    "started while it waits": ("p", [{"at": AT, "kind": "started"}]),
    "changed while it waits": (
        "p",
        [{"at": AT, "kind": "changed", "arguments": {"amount": 1, "to": []}}],
    ),
    "succeeded while it waits": ("p", [{"at": AT, "kind": "ended", "verdict": "success"}]),
    "recorded twice": ("p", [{"at": AT, "kind": "recorded", "verdict": "suspended"}] * 2),
    "started after the end": ("g", [{"at": AT, "kind": "started"}]),
    "asked after the end": (
        "g",
        [{"at": AT, "kind": "reviewed", "phase": "execution", "by": "late"}],
    ),
    "started twice": ("c2", [{"at": AT, "kind": "started"}, {"at": AT, "kind": "started"}]),
    "left before it was started": ("c2", [{"at": AT, "kind": "abandoned"}]),
    "started, and nobody left it": ("c2", [{"at": AT, "kind": "started"}]),
    "answered without a question": ("c2", [{"at": AT, "kind": "decided", "verdict": "resume"}]),
    "recorded before anything was": (
        "c2",
        [{"at": AT, "kind": "recorded", "verdict": "suspended"}],
    ),
    "asked while it runs": (
        "c2",
        [
            {"at": AT, "kind": "started"},
            {"at": AT, "kind": "reviewed", "phase": "gate", "by": "late"},
        ],
    ),
    "proposed twice": ("c2", [{"at": AT, "kind": "proposed", "arguments": {"a": 2, "b": 7}}]),
    "started without a tool": ("u", [{"at": AT, "kind": "started"}]),
    "again without a tool": ("u", [{"at": AT, "kind": "retried"}]),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_have_happened_is_refused(case: str) -> None:
    """The error for a history that the table of the lifecycle lacks names the wrong step.

    Without these steps the plan loads, so that nothing else is wrong with it.
    """
    call_id, more = IMPOSSIBLE[case]
    data = dumped()
    close(loaded(data))
    place = len(steps_of(data, call_id)) + len(more) - 1
    steps_of(data, call_id).extend(more)
    with pytest.raises(PlanError, match=rf"entries\[\d\]\.steps\[{place}\]\.kind: "):
        loaded(sealed(data))


@pytest.mark.parametrize("call_id", ["c2", "u"])
def test_a_line_begins_with_what_was_proposed(call_id: str) -> None:
    """A history without its beginning, or without any step, is refused."""
    for gone in (1, 10):
        data = dumped()
        del steps_of(data, call_id)[:gone]
        with pytest.raises(PlanError):
            loaded(sealed(data))


ODD: tuple[Any, ...] = (None, 3, "x", [], {}, True)


def places(data: Any, path: tuple[Any, ...] = ()) -> Any:
    """The paths to all values, those that hold others too."""
    if not isinstance(data, dict | list):
        return
    for name, part in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, name)
        yield from places(part, (*path, name))


def test_nonsense_anywhere_is_a_plan_error_with_a_place() -> None:
    """Whichever value is another, under a good seal: the plan loads and tells all, or is refused.

    What is refused says where, by a path or by the call.
    """
    from tests.round.test_record import full_plan

    wrong: list[str] = []
    texts = {"turn": PLAN_TEXT, "entries": PLAN_TEXT, "edited": edited_text()}
    for part, text in (*texts.items(), ("full", full_plan().dump_json())):
        data = json.loads(text)
        for path in places(data):
            if "seal" in path or path[0] in ("format", "version", "binding"):
                continue
            if (path[0] == "entries" and len(path) > 1) is (part == "turn"):
                continue
            for odd in ODD:
                changed = json.loads(text)
                at(changed, path[:-1])[path[-1]] = odd
                said = f"{odd!r} at {path}"
                try:
                    plan = loaded(sealed(changed))
                except PlanError as error:
                    if not re.search(r" at \$|[Cc]alls? '", str(error)):
                        wrong.append(f"{said}: {error}")
                except Exception as error:  # noqa: BLE001 - all of them are listed
                    wrong.append(f"{said}: {error!r}")
                else:
                    wrong += [f"{said}: {each}" for each in trouble_with(plan)]
    assert wrong == []


def trouble_with(plan: ToolRoundPlan[Any]) -> list[str]:
    """Ask a loaded plan for all that it tells, and dump and load it again."""
    try:
        told = facts(plan)
        again = loaded(plan.dump_json())
        assert facts(again) == told
        close(again)
    except Exception as error:  # noqa: BLE001 - all of them are listed
        close(plan)
        return [repr(error)]
    return []


def facts(plan: ToolRoundPlan[Any]) -> dict[str, Any]:
    """All that a plan tells of its calls."""
    told = {name: getattr(plan, name) for name in ("finished", "decisions", "resumed", "edits")}
    waiting = [(each.ticket, each.digest, each.was_started, each.by) for each in plan.suspended]
    steps = [row.steps for row in plan.calls]
    return {**told, "rows": plan.calls, "waiting": waiting, "steps": steps}


def edited_text() -> str:
    """A saved plan with a call that a person edited, and one that a hook changed on top."""
    plan = waits(count=2)
    first, second = plan.suspended
    plan.amend_sync(first.edit({"a": 41}, by="ann"), Shop.HookSet())
    plan.amend_sync(second.edit({"a": 99}), capped())
    return plan.dump_json()


def test_the_key_has_to_be_the_same() -> None:
    """A wrong key, a missing one and one too many are told apart."""
    with_key, without = dumped(key=b"secret"), dumped()
    with pytest.raises(PlanError, match="does not fit this key: it was saved with another one"):
        loaded(with_key, key=b"guess")
    with pytest.raises(PlanError, match=r"saved with a key\. Pass the same `key=`"):
        loaded(with_key)
    with pytest.raises(PlanError, match="saved without a key, so it cannot be authenticated"):
        loaded(without, key=b"secret")
    with_key["seal"]["kind"] = "crc32"
    with pytest.raises(PlanError, match=r"\$\.seal\.kind: 'crc32' is none of the known"):
        loaded(with_key)
    with pytest.raises(ValueError, match="The key is empty"):
        loaded(without, key=b"")
    plan = planned()
    with pytest.raises(ValueError, match="The key is empty"):
        plan.dump_json(key=b"")
    close(plan)


def test_an_editor_without_the_key_cannot_seal() -> None:
    """Under a key, a text that was sealed without it is refused."""
    data = dumped(key=b"secret")
    step(data, "p", "suspended")["ticket"]["message"] = "Pay 1?"
    with pytest.raises(PlanError):
        loaded(sealed(data), key=b"secret")
    forged = sealed(data)
    forged["seal"]["kind"] = "hmac-sha256"
    with pytest.raises(PlanError):
        loaded(forged, key=b"secret")


FOREIGN = {
    "": "not JSON",
    PLAN_TEXT[: len(PLAN_TEXT) // 2]: "not JSON",
    "[]": r"it is \[\]",
    '{"format": "lutum_py.transcript", "version": 1}': "`format` is 'lutum_py.transcript'",
    PLAN_TEXT.replace('"version":1', '"version":2'): "format version 2; this release reads 1",
    '{"format": "lutum_py.plan", "version": 1}': r"\$\.seal: it is missing",
    '{"format": "lutum_py.plan", "version": 1, "seal": {"kind": "sha256", "value": "0"}}': (
        "do not match its seal"
    ),
}


@pytest.mark.parametrize("text", FOREIGN, ids=range(len(FOREIGN)))
def test_what_is_no_plan_is_refused(text: str) -> None:
    """Foreign, cut and future texts are told apart."""
    with pytest.raises(PlanError, match=FOREIGN[text]):
        loaded(text)


def test_a_transcript_is_no_plan() -> None:
    """A saved transcript is refused as a plan, by its format."""
    with pytest.raises(PlanError):
        loaded(Session().transcript.dump_json())
