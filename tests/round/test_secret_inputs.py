"""The laws of inputs that pydantic masks: what is shown is masked, what is to be run is not."""

from __future__ import annotations

import json
import logging
from datetime import date
from typing import Any

import pytest
from pydantic import (
    BaseModel,
    Secret,
    SecretBytes,
    SecretStr,
)

from lutum_py import (
    AssistantTurn,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect, capability_gate


class Account(BaseModel):
    """Whose secret it is."""

    name: str
    password: SecretStr


@tool_fn
def log_in(
    account: Account,
    token: SecretBytes,
    born: Secret[date],
    others: list[SecretStr],
    groups: set[SecretStr],
    roles: set[str],
) -> list[str]:
    """Log in."""
    return [
        account.password.get_secret_value(),
        token.get_secret_value().decode(),
        born.get_secret_value().isoformat(),
        *(other.get_secret_value() for other in others),
        *sorted(group.get_secret_value() for group in groups),
        *sorted(roles),
    ]


class Desk(Toolset):
    log_in = tool(log_in)


SENT: dict[str, Any] = {
    "account": {"name": "ada", "password": "one"},
    "token": "two",
    "born": "1815-12-10",
    "others": ["three", "four"],
    "groups": ["five", "six"],
    "roles": ["b", "a"],
}
OUTPUT = ["one", "two", "1815-12-10", "three", "four", "five", "six", "a", "b"]


def opened(**changed: Any) -> Any:
    text = json.dumps({**SENT, **changed})
    metadata = ToolMetadata(id="c1", name="log_in", arguments=text)
    outcome: Any = Desk.read_turn(AssistantTurn(tool_calls=[metadata]))
    return outcome.round


def test_a_saved_call_runs_with_its_secrets() -> None:
    """A plan that was saved and loaded calls the tool with what the model sent, masks or not."""
    plan = Desk.load_plan(opened().plan().dump_json())
    (call,) = plan.pending
    assert call.call_sync().output == OUTPUT
    plan.discard()


def test_an_approval_is_bound_to_the_secret() -> None:
    """Two calls that differ only in a secret have different digests, in whatever order sets are."""
    rounds = opened(), opened(token="2"), opened(groups=["six", "five"], roles=["a", "b"])
    digests = [tool_round.expect_one().digest for tool_round in rounds]
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]
    for tool_round in rounds:
        tool_round.discard()


def test_what_is_shown_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    """The log of decisions and the display of a plan never show a secret."""
    hooks: Any = Desk.HookSet()
    hooks.register_log_in_hook(lambda metadata, input: RunNormally(input))
    hooks.register_log_in_gate(lambda metadata, input: Suspend(SuspendTicket()))
    with caplog.at_level(logging.INFO):
        plan = opened().apply_hooks_sync(hooks)
    shown = plan.__rich__().plain + "".join(str(record.__dict__) for record in caplog.records)
    assert "ada" in shown
    assert "**********" in shown
    for secret in ("one", "two", "1815", "three", "five"):
        assert f'"{secret}' not in shown
    plan.discard()


def test_a_gate_shows_no_secret() -> None:
    """The stock gate tells of a credential that it is used, and not what it is."""

    @tool_fn(
        capabilities=ToolCapabilities(effects=(ToolEffect("modify_credential", target="password"),))
    )
    def change(password: SecretStr) -> None:
        """Change the password."""

    class Accounts(Toolset):
        change_password = tool(change)

    hooks = Accounts.HookSet()
    hooks.gate()(capability_gate())
    metadata = ToolMetadata(id="c1", name="change", arguments='{"password": "hunter2"}')
    outcome: Any = Accounts.read_turn(AssistantTurn(tool_calls=[metadata]))
    plan = outcome.round.apply_hooks_sync(hooks)
    said = [repr(each.ticket) for each in plan.suspended] + [each.reason for each in plan.rejected]
    assert said
    assert "hunter2" not in "".join(said) + repr(plan.decisions)
    plan.discard()
