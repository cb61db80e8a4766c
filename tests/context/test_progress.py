"""The laws of what a tool reports."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.context import (
    TOOL_CALL_PROGRESS_ACTIVITY_TYPE,
    ActivityDelta,
    ActivitySnapshot,
    ObserverText,
    ProgressStatus,
    ToolCallProgressState,
)
from lutum_py.errors import InvalidValueError

COUNTS = st.none() | st.integers(min_value=0)
TEXTS = st.none() | st.text(max_size=5)
STATES = st.builds(
    ToolCallProgressState,
    st.text(max_size=5),
    st.text(max_size=5),
    st.sampled_from(ProgressStatus),
    progress=st.none() | st.floats(0, 1),
    loaded=COUNTS,
    total=COUNTS,
    message=TEXTS,
    parent_node_id=TEXTS,
    parent_call_id=TEXTS,
)
OUT_OF_RANGE = st.floats(max_value=0, exclude_max=True) | st.floats(min_value=1, exclude_min=True)


def test_the_names_on_the_wire() -> None:
    """The words of the protocol are fixed."""
    assert TOOL_CALL_PROGRESS_ACTIVITY_TYPE == "tool-call-progress"
    assert ToolCallProgressState.schema == "tool-call-progress.v1"
    assert [status.value for status in ProgressStatus] == [
        "pending",
        "running",
        "done",
        "failed",
        "cancelled",
    ]
    assert [status.is_terminal for status in ProgressStatus] == [False, False, True, True, True]


def test_a_bare_report_has_only_what_is_set() -> None:
    """What is not set is absent from the wire, and the node is the call."""
    assert ToolCallProgressState("c1", "index", "pending").model_dump() == {
        "schema": "tool-call-progress.v1",
        "node_id": "c1",
        "call_id": "c1",
        "tool_name": "index",
        "status": "pending",
    }


def test_a_full_report_has_every_key() -> None:
    """What is set is on the wire under its own name, zero and empty text included."""
    state = ToolCallProgressState(
        "c1",
        "index",
        ProgressStatus.RUNNING,
        progress=0,
        loaded=0,
        total=20,
        message="",
        parent_node_id="n0",
        parent_call_id="c0",
    )
    assert state.model_dump() == {
        "schema": "tool-call-progress.v1",
        "node_id": "c1",
        "call_id": "c1",
        "tool_name": "index",
        "status": "running",
        "progress": 0.0,
        "loaded": 0,
        "total": 20,
        "message": "",
        "parent_node_id": "n0",
        "parent_call_id": "c0",
    }
    assert type(state.progress) is float


@given(STATES)
def test_every_report_is_plain_json(state: ToolCallProgressState) -> None:
    """The wire shape survives JSON, and no key is null."""
    dumped = state.model_dump()
    assert json.loads(json.dumps(dumped)) == dumped
    assert None not in dumped.values()
    assert {type(value) for value in dumped.values()} <= {str, int, float}
    assert pickle.loads(pickle.dumps(state)) == state


@given(OUT_OF_RANGE | st.sampled_from([math.nan, math.inf, -math.inf, True, "0.5", 2]))
def test_a_figure_that_is_no_fraction_is_refused(progress: Any) -> None:
    """Progress is a number from 0 to 1; NaN, infinities and everything else are refused."""
    with pytest.raises(InvalidValueError):
        ToolCallProgressState("c1", "index", "running", progress=progress)


@pytest.mark.parametrize("name", ["loaded", "total"])
@given(count=st.integers(max_value=-1) | st.sampled_from([1.0, True, "3", math.nan]))
def test_a_count_that_is_no_count_is_refused(name: str, count: Any) -> None:
    """Counts are whole numbers and not negative."""
    with pytest.raises(ValueError, match=rf"^`{name}` is .*not negative\.$"):
        ToolCallProgressState("c1", "index", "running", **{name: count})


def test_an_unknown_status_is_refused() -> None:
    """A status that does not exist is refused with those that do."""
    with pytest.raises(InvalidValueError):
        ToolCallProgressState("c1", "index", "finished")


def test_a_message_is_text() -> None:
    """A message that is no text is refused."""
    with pytest.raises(InvalidValueError):
        ToolCallProgressState("c1", "index", "running", message=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "event_type", "dumped"),
    [
        (
            ActivitySnapshot("c1", "note", {"at": 1}),
            "activity_snapshot",
            {"message_id": "c1", "activity_type": "note", "content": {"at": 1}, "replace": True},
        ),
        (
            ActivityDelta("c1", "note", [{"op": "remove", "path": "/at"}]),
            "activity_delta",
            {
                "message_id": "c1",
                "activity_type": "note",
                "patch": [{"op": "remove", "path": "/at"}],
            },
        ),
        (
            ObserverText("c1", "index", "cold"),
            "observer_text",
            {"message_id": "c1", "source": "index", "content": "cold"},
        ),
    ],
)
def test_each_event_has_its_wire_shape(
    event: ActivitySnapshot | ActivityDelta | ObserverText,
    event_type: str,
    dumped: dict[str, Any],
) -> None:
    """An event gives exactly the keys of its kind, and its kind is told by name."""
    assert event.model_dump() == dumped
    assert event.event_type == event_type
