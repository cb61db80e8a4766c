"""The Temporal recipe of the docs: it type-checks, and its sandbox lets the workflow be made."""

from __future__ import annotations

import asyncio
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio import workflow
from temporalio.testing import ActivityEnvironment
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from lutum_py import Session

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "durable-workflows.md"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """The file that the page shows."""
    found = re.search(r'```python title="temporal_desk.py"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    assert found is not None
    file = tmp_path / "temporal_desk.py"
    file.write_text(found[1])
    return file


@pytest.mark.slow
def test_the_recipe_type_checks(recipe: Path) -> None:
    """What a reader copies from the page has no error in a strict checker."""
    reason = "mypy is not installed: python -m pip install --group full"
    pytest.importorskip("mypy", reason=reason)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "/dev/null", str(recipe)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=recipe.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sandbox_takes_the_workflow(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workflow can be made inside of Temporal's sandbox, which lets the library through."""
    monkeypatch.syspath_prepend(recipe.parent)
    conversation = importlib.import_module("temporal_desk").Conversation

    async def prepare() -> None:
        definition = workflow._Definition.must_from_class(conversation)
        SandboxedWorkflowRunner().prepare_workflow(definition)

    try:
        asyncio.run(prepare())
    finally:
        sys.modules.pop("temporal_desk")


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"unknown": 1},
        {"call_id": "call_1", "action": "fly"},
        {"call_id": "call_1", "action": "resume"},
        {"call_id": "call_1", "action": "resume", "digest": "another"},
    ],
)
def test_a_signal_that_is_no_decision_changes_nothing(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, message: dict[str, Any]
) -> None:
    """Whatever is sent, the workflow goes on to wait: an activity that raised is tried forever."""
    monkeypatch.syspath_prepend(recipe.parent)
    desk = importlib.import_module("temporal_desk")
    session = Session()
    session.push_user("Write a letter.")
    try:
        run = ActivityEnvironment().run
        _, plan, _ = run(desk.ask_model, session.transcript.dump_json())
        before = run(desk.what_is_open, plan)
        after = run(desk.what_is_open, run(desk.take_decision, plan, message))
    finally:
        sys.modules.pop("temporal_desk")
    assert after == before
