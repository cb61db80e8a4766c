"""A plan with every kind of call, saved and loaded."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from lutum_py import (
    Block,
    Complete,
    Reject,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
)
from tests.round_tools import (
    Shop,
    add,
    adds,
    opened,
)

CALLS = (
    *adds(3),
    ("p", "pay", {"amount": 20, "to": ["ann"]}),
    ("g", "pay", {"amount": 1}),
    ("a", "ask", {"question": "?"}),
    ("u", "nope", "{}"),
    ("b", "add", {"a": "x"}),
)


def hooks() -> Any:
    made = Shop.HookSet()

    @made.on(Shop.add)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        answers = {"c0": Complete(40), "c1": Reject("no")}
        return answers.get(metadata.id, RunNormally(add.Input(a=input.a, b=7)))

    @made.gate(Shop.pay)
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        if metadata.id == "g":
            return Block("never")
        ticket = SuspendTicket(
            id="s",
            action="pay",
            message="Pay?",
            parameters={"to": list(input.to)},
            response_schema={"type": ["null", "boolean"]},
            resume_mode="pass_decision_to_tool",  # type: ignore[arg-type]
        )
        return Suspend(ticket)

    return made


def planned() -> ToolRoundPlan[Any]:
    """A plan with a call in every place."""
    return opened(*CALLS).apply_hooks_sync(hooks())


def dumped(**options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(planned().dump_json(**options))
    return data


def loaded(data: Any, toolset: type[Toolset] = Shop, **options: Any) -> ToolRoundPlan[Any]:
    text = data if isinstance(data, str) else json.dumps(data)
    plan: ToolRoundPlan[Any] = toolset.load_plan(text, **options)
    return plan


def entry(data: dict[str, Any], call_id: str) -> dict[str, Any]:
    """What happened to one call, in saved data."""
    return next(each for each in data["entries"] if each["call"] == call_id)


def about(data: dict[str, Any], call_id: str) -> dict[str, Any]:
    """What the round says of one call, in saved data."""
    return next(each for each in data["round"]["calls"] if each["id"] == call_id)


def step(data: dict[str, Any], call_id: str, *kinds: str) -> dict[str, Any]:
    """The last step of a kind, of one call in saved data."""
    steps = entry(data, call_id)["steps"]
    found: dict[str, Any] = next(each for each in reversed(steps) if each["kind"] in kinds)
    return found


def requests(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What calls requested, each time that one did, in saved data."""
    steps = [step for each in data["entries"] for step in each["steps"]]
    return [each["requested"] for each in steps if each["kind"] == "requested"]


def arguments(data: dict[str, Any], call_id: str) -> Any:
    """The final arguments of one call in saved data."""
    steps = entry(data, call_id)["steps"]
    return next(each for each in reversed(steps) if "arguments" in each)["arguments"]


def canonical_json(value: object) -> str:
    """JSON text that equal data always gives."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def sealed(data: dict[str, Any], key: bytes | None = None) -> dict[str, Any]:
    """The data under a new seal, as an editor could make it who has the key, or none."""

    def seal(part: dict[str, Any]) -> str:
        rest = {name: value for name, value in part.items() if name != "seal"}
        text = canonical_json(rest).encode()
        made = hashlib.sha256(text) if key is None else hmac.new(key, text, hashlib.sha256)
        return made.hexdigest()

    kind = "sha256" if key is None else "hmac-sha256"
    data["seal"] = {"kind": kind, "value": seal(data)}
    return data


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Any:
    """The paths to all values that hold no others."""
    steps = data.items() if isinstance(data, dict) else enumerate(data)
    for step, part in steps:
        if isinstance(part, dict | list) and part:
            yield from leaves(part, (*path, step))
        else:
            yield (*path, step)


def at(data: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a path."""
    for step in path:
        data = data[step]
    return data
