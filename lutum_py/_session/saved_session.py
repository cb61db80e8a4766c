"""One text for one conversation: its transcript, its id, and the plan of its open round.

What belongs together is sealed together, so that no plan comes to stand beside the transcript of
another day.
"""

from __future__ import annotations

import json
from typing import Any

from .._round.plan import ToolRoundPlan
from .._round.plan_json import dump_plan, hand_over, load_plan
from .._round.sorted_calls import RoundState
from .._text.json import shorten
from .._transcript.saved import SESSION, check_key
from .._transcript.transcript import Transcript
from ..errors import MisuseError


def dump_session(
    toolset: Any,
    id: str | None,
    transcript: Transcript,
    plan: ToolRoundPlan[Any] | None,
    seals: tuple[bytes | None, str | None],
) -> str:
    """Encode a session and its open plan; see `Toolset.dump_session`.

    Args:
        toolset: The toolset that the plan has to be of.
        id: The id of the session.
        transcript: Its transcript.
        plan: The plan of its open round, if there is one.
        seals: The key that the text is sealed with, and what it is bound to.
    """
    key, binding = seals
    check_key(key, binding)
    state = None if plan is None else _open_state(toolset, plan)

    def dumped() -> str:
        # Sealed together: with two texts, somebody could put an approved plan beside the transcript
        # of another conversation.
        # The plan keeps its own seal: it is read by what reads a plan alone, with the same checks.
        data: dict[str, Any] = {
            "format": SESSION.name,
            "version": SESSION.version,
            "id": id,
            "binding": binding,
            "transcript": json.loads(transcript.dump_json()),
            "plan": None if state is None else json.loads(dump_plan(state, key, binding)),
        }
        # The seal is over all of the rest, the plan with its own seal included.
        return SESSION.dump_sealed(data, key)

    return dumped() if state is None else hand_over(state, "dumped", dumped)


def _open_state(toolset: Any, plan: ToolRoundPlan[Any]) -> RoundState:
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
    state: RoundState = plan._state
    state.check_open()
    return state


def load_session(
    toolset: Any, text: str | bytes, key: bytes | None, binding: str | None
) -> tuple[str | None, Transcript, ToolRoundPlan[Any] | None]:
    """Read id, transcript and plan of what `dump_session` gave; see `Toolset.load_session`."""
    saved = SESSION.open_sealed(text, key, binding)
    id = saved.get("id", str, None)
    transcript = Transcript.load_json(json.dumps(saved.get("transcript", dict)))
    inner = saved.inner_or_none("plan")
    if inner is None:
        return id, transcript, None
    state = load_plan(toolset, json.dumps(inner.data), key, binding)
    state.call_round.transcript = transcript
    return id, transcript, ToolRoundPlan(state)
