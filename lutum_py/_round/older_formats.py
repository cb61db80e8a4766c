"""Read what releases before this one saved: formats 1 and 2, as histories of steps.

They kept where each call stood, and beside it lists of what was decided. Each of these is a step
here, in the one order in which they can have come: what was proposed, what hooks said, what they
changed, then each question with its answer, and the present state. No times are known but those of
decisions. Approvals hold as they did.

What a release did not keep is left open: the ticket of a question whose answer is spent, and what
the model had proposed if it was changed since, which the model's own text still says.

JSON becomes JSON here, and what reads format 3 checks it: only what that could not see is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._schema.secrets import MASK
from .._text.json import canonical_json, is_array, is_object
from .._transcript.saved import Saved
from .step_json import time_of

Data = dict[str, Any]


def converted(saved: Saved) -> Data:
    """Return turn and calls of a plan of format 1 or 2 in the form of format 3.

    Raises:
        PlanError: It is damaged.
    """
    at = ""
    try:
        plan, calls = _Plan(saved.data), list[Data]()
        for number, entry in enumerate(saved.data["calls"]):
            at = f"calls[{number}]"
            calls.append(_entry(plan, entry))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise saved.wrong(at, f"no release saved this ({error!r})") from None
    return {"turn": saved.data["turn"], "calls": calls}


class _Plan:
    """Find what a plan of an older format says about a call, in all of its lists."""

    def __init__(self, data: Data) -> None:
        items = data["turn"]["items"]
        self.sent = {each["id"]: each["arguments"] for each in items if "arguments" in each}
        self.started = data["started"]
        self.records = _by_call((each["call_id"], each) for each in data["decisions"])
        self.resumed = _by_call((each["call_id"], each) for each in data["resumed"])
        self.edits = _by_call((each["call_id"], each) for each in data.get("edits", ()))
        for call_id, edits in self.edits.items():
            if call_id not in self.sent or len(edits) > 1:
                raise ValueError(f"{call_id!r} is not a call of the turn, or was edited twice")
        self.asked_before = _by_call(data.get("asked_before", ()))
        self.asked_after = _by_call(data.get("asked_after", ()))


def _by_call(pairs: Iterable[Any]) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for call_id, each in pairs:
        made.setdefault(call_id, []).append(each)
    return made


_KEPT: Final = ("id", "schema_digest", "digest", "mended")
_ISSUE: Final = ("reason", "text", "fields", "suggestion")


def _entry(plan: _Plan, entry: Data) -> Data:
    id, state = entry["id"], entry["state"]
    steps: list[Data] = [{"kind": "proposed"}]
    if state == "answer":
        steps.append({**_ended(entry), "phase": "answer", "result": entry["result"]})
    elif state == "issue" or (state == "finished" and "reason" in entry):
        issue = {name: entry[name] for name in _ISSUE if name in entry}
        steps.append({"kind": "ended", "phase": "reading", "said": "rejected", "issue": issue})
        steps += _recorded(entry) if state == "finished" else ()
    else:
        steps = [*_Call(plan, entry, plan.sent.get(id, "")).steps()]
    return {**{name: entry[name] for name in _KEPT if name in entry}, "steps": steps}


def _ended(entry: Data) -> Data:
    return {"kind": "ended", "said": entry["result"]["status"]}


def _recorded(entry: Data) -> Iterator[Data]:
    yield {**_ended(entry), "kind": "recorded", "result": entry["result"]}


class _Call:
    """Put what an older format says of one call in order."""

    def __init__(self, plan: _Plan, entry: Data, sent: str) -> None:
        id = entry["id"]
        self.plan, self.entry, self.state = plan, entry, entry["state"]
        try:
            proposed = json.loads(sent)
        except (ValueError, RecursionError):
            proposed = None
        self.proposed: Data | None = proposed if is_object(proposed) else None
        self.final: Any = entry.get("input")
        self.edit: Any = plan.edits.get(id, [None])[0]
        self.records, self.resumed = plan.records.get(id, []), plan.resumed.get(id, [])
        self.was_started = entry.get("was_started", False)

    def steps(self) -> Iterator[Data]:
        """Yield the history, the earliest step first."""
        # The old formats kept `{"state": "pending", "input": {…}, "is_rewritten": true}` and lists
        # beside it. The history `proposed asked changed` is one that would lead there; if several
        # would, the one is taken that claims least.
        first, id = self._first(), self.entry["id"]
        is_proposed = not self.entry.get("is_rewritten") or (
            self.edit is not None and self._is_proposed(first)
        )
        yield {"kind": "proposed", **({"arguments": first} if is_proposed else {})}
        for each in self.records:
            said = {"said": each["decision"], "reason": each.get("reason")}
            yield {"kind": "asked", "by": each["hook"], "phase": each["phase"], **said}
        yield from _marks("before", self.plan.asked_before.get(id, ()))
        if not is_proposed:
            yield {"kind": "changed", "arguments": first}
        yield from self._answered()
        yield from self._end()
        if self.state in ("handled", "finished"):
            yield from _marks("after", self.plan.asked_after.get(id, ()))

    def _is_proposed(self, first: Data) -> bool:
        """Whether arguments are those that the model sent, as far as one can see: no hook's."""
        return self.proposed is not None and all(
            name in first and canonical_json(first[name]) == canonical_json(value)
            for name, value in self.proposed.items()
        )

    def _first(self) -> Any:
        """Return the arguments before an edit, as far as they were kept: secrets are masked.

        A secret that the model sent is in its own text; another stays masked.
        """
        if self.edit is None:
            return self.final
        shown, changed, sent = self.edit["shown"], self.edit["changed"], self.proposed or {}
        return {name: each for name, each in self.final.items() if name not in changed} | {
            name: _unmasked(shown[name], sent.get(name), self.final.get(name))
            for name in changed
            if name in shown
        }

    def _approvals(self) -> list[Data]:
        """Return the answers by which the call goes on, the earliest first."""
        old = self.entry.get("approval")
        if old is None:
            return [*reversed(self.entry.get("approvals", ()))]
        # Version 1 kept one, and of its ticket only what it was asked by.
        mode = "pass_decision_to_tool" if old["is_for_tool"] else "replay_tool_call"
        ticket = {"id": old["suspension_id"], "action": old["action"], "resume_mode": mode}
        return [{**old, "ticket": ticket, "is_of_tool": self.entry["id"] in self.plan.started}]

    def _answered(self) -> Iterator[Data]:
        """Yield each question about the call with its answer, the earliest first."""
        approvals = self._approvals()
        known = {each["decision"]["decision_id"] for each in approvals}
        # What no longer counts was spent by the next question of the same asker.
        of_tool = approvals[0]["is_of_tool"] if approvals else self.was_started
        spent: list[Data] = [
            {"decision": each, "is_of_tool": of_tool}
            for each in self.resumed
            if each["decision_id"] not in known
        ]
        for each in (*spent, *approvals):
            decision, digest = each["decision"], each.get("digest")
            yield from self._asked(each["is_of_tool"], each.get("ticket"), digest)
            at = decision.get("at")
            yield {
                "kind": "answered",
                # Older releases took any text for a time.
                "at": at if isinstance(at, str) and time_of(at) is not None else None,
                "by": _decider(decision),
                "said": decision["action"] if decision.get("edit") is None else "edit",
                "digest": digest,
                "decision": decision,
            }
            if self.edit is not None and decision["decision_id"] == self.edit["decision_id"]:
                yield from self._edited()

    def _asked(self, of_tool: bool, ticket: Data | None, digest: str | None) -> Iterator[Data]:
        """Yield the step by which the call waited; the tool, a hook or the program asked."""
        wait = {"kind": "suspended", "digest": digest, "ticket": ticket}
        if of_tool:
            yield {"kind": "begun"}
            yield {**wait, "said": "tool"}
            return
        # Release 0.1 did not keep who decided: that is what the records say.
        asked = _last(self.records, ("suspend",))
        by = asked.get("hook") or (self.entry.get("by") if self.state == "suspended" else None)
        yield {**wait, "by": by, "phase": by and asked.get("phase", "gate")}

    def _edited(self) -> Iterator[Data]:
        """Yield what an edit changed, and hooks on top of it; all edits of a call are one."""
        person, by_hooks = self.edit["edited"], self.edit["final"]
        changed = {"kind": "changed", "phase": "decision", "arguments": self.final}
        if canonical_json(person) == canonical_json(by_hooks):
            yield changed
            return
        made = {name: _unmasked(v, None, self.final.get(name)) for name, v in person.items()}
        yield {**changed, "arguments": made}
        yield {**changed, "phase": "hook"}

    def _end(self) -> Iterator[Data]:
        """Yield how the call stands."""
        entry, state = self.entry, self.state
        if state == "suspended":
            wait = [*self._asked(self.was_started, entry["ticket"], entry["digest"])]
            yield from wait
            if wait[-1].get("phase") is None:
                yield {"kind": "recorded", "said": "suspended"}
        elif state in ("handled", "rejected"):
            yield self._settled()
        elif state == "finished":
            yield _ended(entry)
            yield from _recorded(entry)
        elif state not in ("pending", "in_doubt"):
            raise ValueError(f"this release does not know {state!r}")
        elif state == "in_doubt" or entry["status"] not in ("new", "resuming"):
            # Version 1 kept no results: what was begun may have had its effects.
            yield {"kind": "begun"}
            yield {"kind": "left"}

    def _settled(self) -> Data:
        """Return the end of a call that a hook or a person answered or refused."""
        entry, is_handled = self.entry, self.state == "handled"
        by, source = entry.get("by"), entry.get("source")
        record = _last(self.records, ("complete",) if is_handled else ("reject", "block"), by)
        action = "resume" if is_handled else "cancel"
        decisions = [each for each in self.resumed if each["action"] == action]
        said, phase = (
            "success" if is_handled else "rejected",
            "gate" if source == "gate" else "hook",
        )
        if source == "decision" or (is_handled and not record and decisions):
            said, phase = said if is_handled else "cancelled", "decision"
            by = _decider(decisions[-1]) if decisions else by
        elif record:
            by, phase = record["hook"], record["phase"]
        held = {"result": entry["result"]} if is_handled else {"reason": entry["reason"]}
        return {"kind": "ended", "by": by, "phase": phase, "said": said, **held}


def _marks(phase: str, keys: Iterable[str]) -> Iterator[Data]:
    """Yield the steps of hooks that were asked, of which only the keys were kept."""
    for key in keys:
        yield {"kind": "asked", "by": key.partition("#")[0], "phase": phase, "key": key}


def _last(records: list[Data], kinds: tuple[str, ...], by: str | None = None) -> Data:
    """Return the last record of some kinds, of one hook if named; empty if there is none."""
    for each in reversed(records):
        if each["decision"] in kinds and by in (None, each["hook"]):
            return each
    return {}


def _unmasked(shown: Any, *known: Any) -> Any:
    """Return what was shown, with each mask replaced by the first that is known to stand there.

    The last that is known counts only if it is not a text: another text may have come in the place
    of the one that was masked, so the mask stays.
    """
    if shown == MASK:
        *sure, last = known
        last = MASK if last is None or isinstance(last, str) else last
        return next((each for each in sure if each is not None), last)
    if is_object(shown):
        return {name: _unmasked(v, *(_at(k, name) for k in known)) for name, v in shown.items()}
    if is_array(shown):
        return [_unmasked(v, *(_at(k, place) for k in known)) for place, v in enumerate(shown)]
    return shown


def _at(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def _decider(decision: Data) -> str:
    """Name who decided, as `Decision.decider` does."""
    by: str = decision.get("by") or decision["decision_id"]
    return by
