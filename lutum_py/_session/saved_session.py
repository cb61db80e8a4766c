"""One text for one conversation: its transcript, its id, and the plan of its open round.

What belongs together is sealed together, so that no plan comes to stand beside the transcript of
another day.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from .._round.plan import ToolRoundPlan, as_plan
from .._round.plan_json import dump_plan, hand_over, load_plan
from .._text.json import shorten
from .._transcript.saved import SESSION, check_key, check_saved, dump_saved, open_saved, seal_of
from .._transcript.transcript import Transcript
from ..errors import MisuseError, PlanError


def dump_session(
    toolset: Any,
    id: str | None,
    transcript: Transcript,
    plan: ToolRoundPlan[Any] | None,
    key: bytes | None,
    binding: str | None,
) -> str:
    """Encode a session and its open plan; see `Toolset.dump_session`."""
    check_key(key, binding)
    made = partial(_dumped, id, transcript, plan, key, binding)
    if plan is None:
        return made()
    _check_plan(toolset, plan)
    return hand_over(plan, "dumped", made)


def _dumped(
    id: str | None,
    transcript: Transcript,
    plan: ToolRoundPlan[Any] | None,
    key: bytes | None,
    binding: str | None,
) -> str:
    saved: Any = None
    if plan is not None:
        # Sealed together: with two texts, somebody could put an approved plan beside the transcript
        # of another conversation.
        # The plan keeps its own seal: it is read by what reads a plan alone, with the same checks.
        saved = json.loads(dump_plan(plan, key, binding))
    data: dict[str, Any] = {
        "format": SESSION.name,
        "version": SESSION.version,
        "id": id,
        "binding": binding,
        "transcript": json.loads(transcript.dump_json()),
        "plan": saved,
    }
    # The seal is over all of the rest, the plan with its own seal included.
    data["seal"] = seal_of(data, key)._asdict()
    return dump_saved(data, PlanError, "The session")


def _check_plan(toolset: Any, plan: ToolRoundPlan[Any]) -> None:
    """Refuse what is not an open plan of the toolset.

    Raises:
        MisuseError: It is not a plan, or that of another toolset.
        RoundClosedError: Its round has ended.
    """
    if not isinstance(plan, ToolRoundPlan):
        raise MisuseError(
            f"A session is saved with its plan, not with {shorten(plan)}. Pass what "
            "`round.plan()` or `await round.apply_hooks(hooks)` gave, or leave it out."
        )
    if plan.toolset is not toolset:
        raise MisuseError(
            f"The plan is of {plan.toolset!r}, so {toolset!r} could not load it. Save it with the "
            "toolset that was offered: `plan.toolset.dump_session(session, plan)`."
        )
    plan._state._check_open()


def load_session(
    toolset: Any, text: str | bytes, key: bytes | None, binding: str | None
) -> tuple[str | None, Transcript, ToolRoundPlan[Any] | None]:
    """Read id, transcript and plan of what `dump_session` gave; see `Toolset.load_session`."""
    check_key(key, binding)
    saved = open_saved(text, SESSION)
    check_saved(saved, key, binding, "session")
    id = saved.get("id", str, None)
    transcript = Transcript.load_json(json.dumps(saved.get("transcript", dict)))
    inner = saved.inner_or_none("plan")
    if inner is None:
        return id, transcript, None
    plan = as_plan(load_plan(toolset, json.dumps(inner.data), key, binding))
    plan._state._round.transcript = transcript
    return id, transcript, plan
