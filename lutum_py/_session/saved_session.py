"""One text for one conversation: its transcript, its id, and the plan of its open round.

What belongs together is sealed together, so that no plan comes to stand beside the transcript of
another day.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from .._declare.toolset_meta import ToolsetMeta
from .._round.plan import ToolRoundPlan, closed
from .._round.plan_json import check_bound, dump_plan, load_plan
from .._round.seal import check_binding, check_key, check_seal, kind_of, seal_of
from .._text.json import shorten
from .._transcript.saved import Saved, dump_saved, open_saved
from .._transcript.transcript import Transcript
from ..errors import MisuseError, PlanError

__all__ = ["dump_session", "load_session", "open_session"]

T = TypeVar("T")

FORMAT = "lutum_py.session"
VERSION = 1


def dump_session(
    id: str | None,
    transcript: Transcript,
    plan: ToolRoundPlan[Any] | None,
    key: bytes | None,
    binding: str | None,
) -> str:
    """Encode a session and its open plan; see `Session.dump_json`."""
    check_key(key)
    check_binding(binding)
    if not isinstance(plan, ToolRoundPlan | None):
        raise MisuseError(
            f"A session is saved with its plan, not with {shorten(plan)}. Pass what "
            "`round.plan()` or `await round.apply_hooks(hooks)` gave, or leave it out."
        )
    saved: Any = None
    if plan is not None:
        plan._state._check_open()
        saved = json.loads(dump_plan(plan, plan._state, key, binding))
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "id": id,
        "binding": binding,
        "transcript": json.loads(transcript.dump_json()),
        "plan": saved,
    }
    data["seal"] = {"kind": kind_of(key), "value": seal_of(data, key)}
    text = dump_saved(data, PlanError, "The session")
    if plan is not None:
        plan._state._close("dumped")
    return text


def open_session(text: str | bytes) -> Saved:
    """Parse a saved session.

    Raises:
        PlanError: It is none, or of an unknown version.
    """
    return open_saved(text, form=FORMAT, versions=(VERSION,), error=PlanError, what="session")


def load_session(
    text: str | bytes, toolset: type[T], key: bytes | None, binding: str | None
) -> tuple[str | None, Transcript, ToolRoundPlan[T] | None]:
    """Read id, transcript and plan of what `dump_session` gave; see `Session.load_json`."""
    check_key(key)
    check_binding(binding)
    if not isinstance(toolset, ToolsetMeta):
        raise MisuseError(
            f"A session is loaded with the toolset of its plan, not with {shorten(toolset)}. Pass "
            "the class, as in `Session.load_json(text, Desk)`."
        )
    saved = open_session(text)
    check_seal(saved, key, "session")
    check_bound(saved, binding, "session")
    id = saved.get("id", str, None)
    transcript = Transcript.load_json(json.dumps(saved.get("transcript", dict)))
    inner = saved.inner_or_none("plan")
    if inner is None:
        return id, transcript, None
    return id, transcript, closed(load_plan(toolset, json.dumps(inner.data), key, binding))
