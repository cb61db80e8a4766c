"""Read what releases before this one saved: formats 1 and 2, as lines of steps.

They kept where each call stood, and beside it lists of what was decided. Each of these is a step
here, in the one order in which they can have come: what was proposed, what hooks said, what they
changed, then each question with its answer, and the present state. When that was is not known, but
for decisions. Approvals hold as they did.

What a release did not keep is left open: the ticket of a question whose answer counts no more, and
what the model had proposed where something was changed since, which its own text still says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .._call.decision_log import DecisionKind, DecisionPhase
from .._call.lifecycle import CallStatus
from .._call.outcomes import RejectionSource
from .._schema.secrets import MASK
from .._text.json import canonical_json, is_array, is_object, shorten
from .._transcript.assistant import load_turn
from .._transcript.metadata import ToolMetadata
from .._transcript.saved import Saved
from .step_json import load_decision, load_ticket, time_of

Data = dict[str, Any]


def converted(saved: Saved) -> Data:
    """Give a plan of format 1 or 2 in the form of format 3.

    Raises:
        PlanError: It is damaged.
    """
    data = saved.data
    before = _Before(saved)
    made = {
        "format": data["format"],
        "version": 3,
        "binding": saved.get("binding", str, None),
        "key_begins": saved.get("key_begins", str, ""),
        "turn": saved.inner("turn").data,
        "calls": [before.entry(entry) for entry in saved.each("calls")],
        "seal": data.get("seal"),
    }
    if saved.get("owes_after", bool, False):
        made["owes_after"] = True
    return made


class _Before:
    """Find what a plan of an older format says of a call, in all of its lists."""

    def __init__(self, saved: Saved) -> None:
        self.metadata = {call.id: call for call in load_turn(saved.inner("turn")).tool_calls}
        self.started = frozenset(saved.texts("started"))
        self.records: dict[str, list[Saved]] = {}
        for each in saved.each("decisions"):
            each.member("phase", DecisionPhase)
            each.member("decision", DecisionKind)
            self.records.setdefault(each.get("call_id", str), []).append(each)
        self.resumed: dict[str, list[Data]] = {}
        for each in saved.each("resumed"):
            decision = load_decision(each)
            self.resumed.setdefault(decision.call_id, []).append(each.data)
        self.edits: dict[str, Saved] = {}
        for each in saved.each("edits", optional=True):
            call_id = each.get("call_id", str)
            if call_id not in self.metadata:
                raise each.wrong("call_id", f"{call_id!r} is no call of the turn")
            if call_id in self.edits:
                raise saved.wrong("edits", "there are two of one call")
            self.edits[call_id] = each
        self.asked_before = _marks(saved, "asked_before")
        self.asked_after = _marks(saved, "asked_after")

    def entry(self, entry: Saved) -> Data:
        """Give the entry of one call."""
        id, state = entry.get("id", str), entry.get("state", str)
        if state == "answer":
            end: Data = {"kind": "ended", "phase": "answer", "said": _status(entry)}
            steps: list[Data] = [{"kind": "proposed"}, {**end, "result": _result(entry)}]
            return {"id": id, "steps": steps}
        if state == "issue" or (state == "finished" and "reason" in entry.data):
            names = ("reason", "text", "fields", "suggestion")
            issue = {name: entry.data[name] for name in names if name in entry.data}
            end = {"kind": "ended", "phase": "reading", "said": "rejected", "issue": issue}
            steps = [{"kind": "proposed"}, end]
            if state == "finished":
                steps.append({"kind": "recorded", "said": _status(entry), "result": _result(entry)})
            return {"id": id, "steps": steps}
        metadata = self.metadata.get(id)
        if metadata is None:
            raise entry.wrong("id", f"{id!r} is no call of the turn, or is there twice")
        known = ("schema_digest", "digest", "mended")
        made = {name: entry.data[name] for name in known if name in entry.data}
        call = _Call(self, entry, metadata, state)
        return {"id": id, **made, "steps": [*call.steps()]}


class _Call:
    """Put what an older format says of one call in order."""

    def __init__(self, plan: _Before, entry: Saved, metadata: ToolMetadata, state: str) -> None:
        id = metadata.id
        self.plan, self.saved, self.metadata, self.state = plan, entry, metadata, state
        self.final: Any = entry.any("input")
        self.edit = plan.edits.get(id)
        self.records = plan.records.get(id, [])
        self.resumed = plan.resumed.get(id, [])
        self.approvals = [*self._approvals()]
        self.was_started = state == "suspended" and entry.get("was_started", bool)
        # Release 0.1 did not keep who decided: that is what the records say.
        self.asked_by = _last(self.records, ("suspend",))

    def steps(self) -> Iterator[Data]:
        """Give the line, the earliest step first."""
        # The old formats kept `{"state": "pending", "input": {…}, "is_rewritten": true}` and lists
        # beside it. The line `proposed asked changed` is one that would lead there; where several
        # would, the one is taken that claims least.
        is_rewritten = self.saved.get("is_rewritten", bool, False)
        first: Any = self.final if self.edit is None else self._before(self.edit)
        is_proposed = not is_rewritten or (self.edit is not None and self._is_proposed(first))
        yield {"kind": "proposed", **({"arguments": first} if is_proposed else {})}
        for each in self.records:
            yield {
                "kind": "asked",
                "by": each.get("hook", str),
                "phase": each.any("phase"),
                "said": each.any("decision"),
                "reason": each.get("reason", str, None),
            }
        for key in self.plan.asked_before.get(self.metadata.id, ()):
            yield {"kind": "asked", "by": key.partition("#")[0], "phase": "before", "key": key}
        if not is_proposed:
            yield {"kind": "changed", "arguments": first}
        yield from self._answered()
        yield from self._end()

    def _proposed(self) -> Any:
        try:
            return json.loads(self.metadata.arguments)
        except (ValueError, RecursionError):
            return None

    def _is_proposed(self, first: Any) -> bool:
        """Whether arguments are those that the model sent, as far as one can see: no hook's."""
        proposed = self._proposed()
        return is_object(proposed) and all(
            name in first and canonical_json(first[name]) == canonical_json(value)
            for name, value in proposed.items()
        )

    def _before(self, edit: Saved) -> Any:
        """Give the arguments before an edit, as far as they were kept: secrets stand there masked.

        A secret that the model sent stands in its own text; another stays masked.
        """
        if not is_object(self.final):
            raise self.saved.wrong("input", f"expected dict, got {shorten(self.final)}")
        shown = edit.inner("shown").data
        changed = edit.texts("changed")
        proposed = self._proposed()
        sent: Data = proposed if is_object(proposed) else {}
        kept = {n: value for n, value in self.final.items() if n not in changed or n in shown}
        masked = {name: shown[name] for name in changed if name in shown}
        return {**kept, **{n: _unmasked(v, sent.get(n), kept.get(n)) for n, v in masked.items()}}

    def _approvals(self) -> Iterator[Data]:
        """Give the answers by which the call goes on, the earliest first."""
        old = self.saved.inner_or_none("approval")
        if old is None:
            kept = list(self.saved.each("approvals", optional=True))
            for each in reversed(kept):
                load_decision(each.inner("decision"))
                load_ticket(each.inner("ticket"))
                each.get("digest", str)
                each.get("is_of_tool", bool)
                yield each.data
            return
        # Version 1 kept one, and of its ticket only what it was asked by.
        load_decision(old.inner("decision"))
        is_for_tool = old.get("is_for_tool", bool)
        yield {
            "decision": old.inner("decision").data,
            "ticket": {
                "id": old.get("suspension_id", str),
                "action": old.get("action", str),
                "resume_mode": "pass_decision_to_tool" if is_for_tool else "replay_tool_call",
            },
            "digest": old.get("digest", str),
            "is_of_tool": self.metadata.id in self.plan.started,
        }

    def _answered(self) -> Iterator[Data]:
        """Give each question about the call with its answer, the earliest first."""
        known = {each["decision"]["decision_id"] for each in self.approvals}
        # What counts no more was spent by the next question of the same asker.
        of_tool = self.approvals[0]["is_of_tool"] if self.approvals else self.was_started
        spent: list[Data] = [
            {"decision": each, "ticket": None, "is_of_tool": of_tool}
            for each in self.resumed
            if each["decision_id"] not in known
        ]
        for each in (*spent, *self.approvals):
            decision: Data = each["decision"]
            if each["is_of_tool"]:
                yield {"kind": "begun"}
            yield self._question(each["is_of_tool"], each["ticket"], each.get("digest"))
            said = decision["action"] if decision.get("edit") is None else "edit"
            yield {
                "kind": "answered",
                "at": _time(decision.get("at")),
                "by": _decider(decision),
                "said": said,
                "digest": each.get("digest"),
                "decision": decision,
            }
            if self.edit is not None and decision["decision_id"] == self.edit.any("decision_id"):
                yield from self._edited(self.edit)

    def _question(self, of_tool: bool, ticket: Data | None, digest: str | None) -> Data:
        """Give the step by which the call waited; who asked is the tool, a hook or the program."""
        asked = None if of_tool else self.asked_by
        by = None if asked is None else asked.any("hook")
        if not of_tool and self.saved.get("by", str, None) and self.state == "suspended":
            by = self.saved.any("by")
        phase = None if by is None else "gate" if asked is None else asked.any("phase")
        said = "tool" if of_tool else None
        made = {"kind": "suspended", "by": by, "phase": phase, "said": said}
        return {**made, "digest": digest, "ticket": ticket}

    def _edited(self, edit: Saved) -> Iterator[Data]:
        """Give what an edit changed, and what hooks changed on top; all edits of a call are one."""
        person, hooks = edit.inner("edited").data, edit.inner("final").data
        edit.get("decision_id", str)
        if canonical_json(person) != canonical_json(hooks):
            made = {n: _unmasked(v, None, self.final.get(n)) for n, v in person.items()}
            yield {"kind": "changed", "phase": "decision", "arguments": made}
            yield {"kind": "changed", "phase": "hook", "arguments": self.final}
        else:
            yield {"kind": "changed", "phase": "decision", "arguments": self.final}

    def _end(self) -> Iterator[Data]:
        """Give how the call stands."""
        saved, state = self.saved, self.state
        if state == "suspended":
            if self.was_started:
                yield {"kind": "begun"}
            ticket = saved.inner("ticket")
            load_ticket(ticket)
            wait = self._question(self.was_started, ticket.data, saved.get("digest", str))
            yield wait
            if wait["phase"] is None:
                yield {"kind": "recorded", "said": "suspended"}
        elif state == "handled":
            by, phase = self._handled_by()
            end = {"kind": "ended", "by": by, "phase": phase, "said": "success"}
            yield {**end, "result": _result(saved)}
        elif state == "rejected":
            yield self._rejected()
        elif state == "finished":
            yield {"kind": "ended", "said": _status(saved)}
            yield {"kind": "recorded", "said": _status(saved), "result": _result(saved)}
        elif state not in ("pending", "in_doubt"):
            raise saved.wrong("state", f"this release does not know {state!r}")
        elif state == "in_doubt" or saved.one_of("status", CallStatus) not in ("new", "resuming"):
            # Version 1 kept no results: what was begun may have had its effects.
            yield {"kind": "begun"}
            yield {"kind": "left"}
        if state in ("handled", "finished"):
            for key in self.plan.asked_after.get(self.metadata.id, ()):
                yield {"kind": "asked", "by": key.partition("#")[0], "phase": "after", "key": key}

    def _handled_by(self) -> tuple[str | None, str]:
        """Say who answered the call, and in which part of deciding."""
        by = self.saved.get("by", str, None)
        record = _last(self.records, ("complete",), by)
        if record is not None:
            return record.any("hook"), record.any("phase")
        decision = next((d for d in reversed(self.resumed) if d["action"] == "resume"), None)
        if decision is None:
            return by, "hook"
        return _decider(decision), "decision"

    def _rejected(self) -> Data:
        saved = self.saved
        source: RejectionSource = saved.member("source", RejectionSource)
        by: str | None = saved.get("by", str, None)
        said = "rejected"
        phase: Any = "gate" if source == "gate" else "hook"
        if source == "decision":
            phase, said = "decision", "cancelled"
            cancels = [each for each in self.resumed if each["action"] == "cancel"]
            by = by or (_decider(cancels[-1]) if cancels else None)
        elif (record := _last(self.records, ("reject", "block"), by)) is not None:
            by, phase = record.any("hook"), record.any("phase")
        reason = saved.get("reason", str)
        return {"kind": "ended", "by": by, "phase": phase, "said": said, "reason": reason}


def _last(records: list[Saved], kinds: tuple[str, ...], by: str | None = None) -> Saved | None:
    """Give the last record of some kinds, of one hook if it is named."""
    for each in reversed(records):
        if each.any("decision") in kinds and by in (None, each.any("hook")):
            return each
    return None


def _unmasked(shown: Any, *known: Any) -> Any:
    """Give what was shown, with each mask replaced by the first that is known to stand there.

    A mask stands for a text that nobody knows any more, where the others are texts as well.
    """
    if shown == MASK:
        return next((each for each in known[:-1] if each is not None), _mask_or(known[-1]))
    if is_object(shown):
        return {
            name: _unmasked(each, *(k.get(name) if is_object(k) else None for k in known))
            for name, each in shown.items()
        }
    if is_array(shown):
        return [
            _unmasked(each, *(k[i] if is_array(k) and i < len(k) else None for k in known))
            for i, each in enumerate(shown)
        ]
    return shown


def _mask_or(final: Any) -> Any:
    return MASK if final is None or isinstance(final, str) else final


def _decider(decision: Data) -> str:
    """Name who decided, as `Decision.decider` does."""
    by: str = decision.get("by") or decision["decision_id"]
    return by


def _time(text: Any) -> str | None:
    """Give the time of a decision, which was any text."""
    return text if isinstance(text, str) and time_of(text) is not None else None


def _marks(saved: Saved, name: str) -> dict[str, list[str]]:
    """Read pairs of a call id and the key of a hook; version 1 kept none."""
    made: dict[str, list[str]] = {}
    try:
        for id, key in saved.data.get(name, []):
            made.setdefault(str(id), []).append(str(key))
    except (TypeError, ValueError):
        raise saved.wrong(name, "expected pairs of a call id and a hook") from None
    return made


def _result(entry: Saved) -> Data:
    return entry.inner("result").data


def _status(entry: Saved) -> str:
    return entry.inner("result").get("status", str)
