"""The laws of what a saved plan refuses: edits, other keys and nonsense."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    Session,
)
from lutum_py.errors import PlanError
from tests.cases import over
from tests.round.saved_plans import dumped, entry, loaded, planned
from tests.round_tools import (
    close,
)


def canonical_json(value: object) -> str:
    """JSON text that equal data always gives."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """The data under a new seal, as an editor without a key could make it."""

    def seal(part: dict[str, Any]) -> str:
        rest = {name: value for name, value in part.items() if name != "seal"}
        return hashlib.sha256(canonical_json(rest).encode()).hexdigest()

    for call in data["calls"]:
        call["seal"] = seal(call)
    data["seal"] = {"kind": "sha256", "value": seal(data)}
    return data


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "pending input": (lambda d: entry(d, "c2")["input"].update(a=99), "of call 'c2'"),
    "suspended input": (lambda d: entry(d, "p")["input"].update(amount=2000), "of call 'p'"),
    "ticket": (lambda d: entry(d, "p")["ticket"].update(message="Pay 1?"), "of call 'p'"),
    "result": (lambda d: entry(d, "c0")["result"].update(result="41"), "of call 'c0'"),
    "state": (lambda d: entry(d, "g").update(state="pending"), "of call 'g'"),
    "two": (
        lambda d: (entry(d, "p").update(mended=["x"]), entry(d, "c0").update(input={})),
        "of call 'p', 'c0'",
    ),
    "proposed": (
        lambda d: d["turn"]["items"][0].update(arguments="{}"),
        "do not match its seal",
    ),
    "started": (lambda d: d.update(started=["p"]), "do not match its seal"),
    "approved": (
        lambda d: d["resumed"].append(
            {"call_id": "p", "action": "resume", "decision_id": "d", "result": None}
        ),
        "do not match its seal",
    ),
    "call gone": (lambda d: d["calls"].pop(0), "do not match its seal"),
    "seal": (lambda d: d["seal"].update(value="é"), "do not match its seal"),
}


@over("key", [None, b"secret"])
@over("edit", EDITS)
def test_an_edited_plan_is_refused(edit: str, key: bytes | None) -> None:
    """Any edit is found, and the call that was edited is named; nothing of the plan is used."""
    change, message = EDITS[edit]
    data = dumped(key=key)
    change(data)
    with pytest.raises(PlanError, match=f"edited after it was saved.*{message}"):
        loaded(data, key=key)


@given(st.data())
def test_any_edit_is_found(data: st.DataObject) -> None:
    """Whichever value of the text is changed, the plan is refused."""
    text = PLAN_TEXT
    places = list(leaves(json.loads(text)))
    path = data.draw(st.sampled_from(places))
    changed = json.loads(text)
    place = changed
    for step in path[:-1]:
        place = place[step]
    new = data.draw(st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3))
    if canonical_json(place[path[-1]]) == canonical_json(new):
        new = "another value"
    place[path[-1]] = new
    with pytest.raises(PlanError):
        loaded(changed)


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Any:
    steps = data.items() if isinstance(data, dict) else enumerate(data)
    for step, part in steps:
        if isinstance(part, dict | list) and part:
            yield from leaves(part, (*path, step))
        else:
            yield (*path, step)


PLAN_TEXT = planned().dump_json()


def test_a_seal_of_odd_text_is_no_seal() -> None:
    """A seal that holds half of a surrogate pair is refused like any that does not fit."""
    data = dumped()
    data["seal"]["value"] = "\ud83d"
    with pytest.raises(PlanError, match="was edited after it was saved"):
        loaded(data)


def test_an_edit_under_a_new_seal_is_still_found() -> None:
    """Without a key anyone can seal anew; arguments that were not approved are refused even so."""
    for call_id in ("p", "c2"):
        data = dumped()
        changed = {"amount": 2000, "to": []} if call_id == "p" else {"a": 99, "b": 7}
        entry(data, call_id)["input"] = changed
        with pytest.raises(PlanError, match=f"arguments of call '{call_id}' of tool `.*` were edi"):
            loaded(sealed(data))


RESEALED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "unfit input": (lambda d: entry(d, "p").update(input={"amount": "x"}), "no longer fits tool"),
    "endless input": (lambda d: entry(d, "c0").update(input=None), "no longer fits tool `add`"),
    "unknown state": (lambda d: entry(d, "p").update(state="lost"), "'lost' is none that"),
    "unknown call": (lambda d: entry(d, "p").update(id="zz"), "'zz' is no call of the turn"),
    "call twice": (lambda d: d["calls"].append(d["calls"][0]), "is there twice"),
    "call missing": (lambda d: d["calls"].pop(), "not the calls of the turn"),
    "shared id": (
        lambda d: d["turn"]["items"].append(d["turn"]["items"][0]),
        "not the calls of the turn",
    ),
    "status": (lambda d: entry(d, "p").update(status="asleep"), "'asleep' is none of the known"),
    "mended": (lambda d: entry(d, "p").update(mended=[3]), "mended: expected texts only"),
    "mode": (lambda d: entry(d, "p")["ticket"].update(resume_mode="x"), "'x' is none of"),
    "source": (lambda d: entry(d, "c1").update(source="fate"), "'fate' is none of"),
    "record": (lambda d: d["decisions"][0].update(phase="x"), "phase: 'x' is none of"),
    "action": (
        lambda d: d["resumed"].append({"call_id": "p", "action": "x", "decision_id": "d"}),
        "action: 'x' is none of",
    ),
    "turn": (lambda d: d.update(turn=[]), r"\$\.turn: expected dict"),
    "reason": (lambda d: entry(d, "u").update(reason="mood"), "'mood' is none of"),
    "result": (
        lambda d: entry(d, "c0")["result"].update(id="c9"),
        r"result: it answers another call, 'c9'",
    ),
}


@over("case", RESEALED)
def test_nonsense_under_a_good_seal_is_told_by_its_place(case: str) -> None:
    """A text that is sealed but makes no sense is told by its place, and opens no round."""
    change, message = RESEALED[case]
    data = dumped()
    change(data)
    with pytest.raises(PlanError, match=message):
        loaded(sealed(data))


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
    entry(data, "p")["ticket"]["message"] = "Pay 1?"
    with pytest.raises(PlanError, match="saved without a key"):
        loaded(sealed(data), key=b"secret")
    forged = sealed(data)
    forged["seal"]["kind"] = "hmac-sha256"
    with pytest.raises(PlanError, match="does not fit this key"):
        loaded(forged, key=b"secret")


FOREIGN = {
    "": "not JSON",
    PLAN_TEXT[: len(PLAN_TEXT) // 2]: "not JSON",
    "[]": r"it is \[\]",
    '{"format": "lutum_py.transcript", "version": 1}': "`format` is 'lutum_py.transcript'",
    PLAN_TEXT.replace('"version":2', '"version":3'): "format version 3; this release reads 1, 2",
    '{"format": "lutum_py.plan", "version": 1}': r"\$\.seal: it is missing",
    '{"format": "lutum_py.plan", "version": 1, "seal": {"kind": "sha256", "value": "0"}}': (
        r"\$\.calls: expected list, got None"
    ),
}


@over("text", FOREIGN)
def test_what_is_no_plan_is_refused(text: str) -> None:
    """Foreign, cut and future texts are told apart."""
    with pytest.raises(PlanError, match=FOREIGN[text]):
        loaded(text)


def test_a_transcript_is_no_plan() -> None:
    """A saved transcript is refused as a plan, by its format."""
    with pytest.raises(PlanError, match=r"`format` is 'lutum_py\.transcript'"):
        loaded(Session().transcript.dump_json())
