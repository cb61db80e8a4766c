"""The laws of inputs that pydantic masks: what is shown is masked, what is to be run is not."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    model_serializer,
)
from pydantic_core import PydanticSerializationError

from lutum_py import (
    AssistantTurn,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolCapabilities,
    ToolEffect,
    ToolMetadata,
    Toolset,
    capability_gate,
    tool,
    tool_fn,
)
from lutum_py._schema.arguments import Arguments


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
    shown = plan._repr_html_() + "".join(str(record.__dict__) for record in caplog.records)
    assert "ada" in shown
    assert "**********" in shown
    for secret in ("one", "two", "1815", "three", "five"):
        assert f'"{secret}' not in shown
    plan.discard()


class Frozen(BaseModel):
    """What may stand in a set."""

    model_config = ConfigDict(frozen=True)

    name: str
    key: SecretStr


class Vault(BaseModel):
    """Secrets in every place that JSON has a form for."""

    model_config = ConfigDict(extra="allow")

    renamed: SecretStr = Field(alias="Renamed")
    kept: frozenset[Frozen]
    by_name: dict[str, SecretStr]
    by_number: dict[int, SecretStr]
    wrapped: RootModel[list[SecretStr]]
    later: float = float("inf")


def test_a_secret_comes_back_from_wherever_it_stands() -> None:
    """Aliases, models in sets, mappings, root models: each secret is written where it belongs."""
    sent = {
        "Renamed": "r",
        "kept": [{"name": "b", "key": "kb"}, {"name": "a", "key": "ka"}],
        "by_name": {"x": "1", "y": "2"},
        "by_number": {"1": "one"},
        "wrapped": ["w"],
    }
    arguments = Arguments(Vault)
    vault = arguments.validate_json(json.dumps(sent))
    data = arguments.to_data(vault)
    again = arguments.from_data(data)
    assert again == vault
    assert {each.name: each.key.get_secret_value() for each in again.kept} == {"a": "ka", "b": "kb"}
    assert again.by_name["y"].get_secret_value() == "2"
    assert again.wrapped.root[0].get_secret_value() == "w"
    assert arguments.to_data(arguments.validate_json(json.dumps(sent))) == data


@dataclass
class Own:
    """A secret that its author writes in a way of his own, and a field that he leaves out."""

    key: Annotated[
        SecretStr,
        PlainSerializer(lambda key: "enc:" + key.get_secret_value()[::-1], when_used="json"),
        BeforeValidator(lambda text: str(text).removeprefix("enc:")),
    ]
    words: Annotated[
        set[str],
        PlainSerializer(lambda words: ",".join(sorted(words)), when_used="json"),
        BeforeValidator(lambda words: words.split(",") if isinstance(words, str) else words),
    ]


class Shuffled(BaseModel):
    """A model that writes its fields in another order, and one of them not at all."""

    left_out: int = 1
    first: SecretStr
    second: SecretStr

    @model_serializer(mode="wrap")
    def turned(self, written: Any, info: Any) -> Any:
        """Turn the fields around."""
        whole = written(self)
        return {name: whole[name] for name in ("second", "first")} if info.mode == "json" else whole


def test_what_the_author_writes_in_his_own_way_is_left_alone() -> None:
    """A serializer of the author decides what is stored; names and values are never mixed up."""
    own = Arguments(Own)
    data = own.to_data(own.validate_json('{"key": "abc", "words": ["b", "a"]}'))
    assert data == {"key": "enc:cba", "words": "a,b"}
    shuffled = Arguments(Shuffled)
    data = shuffled.to_data(shuffled.validate_json('{"first": "1", "second": "2"}'))
    assert data == {"second": "2", "first": "1"}


class Code(BaseModel):
    """A model that is written as a text."""

    key: SecretStr

    @model_serializer
    def text(self) -> str:
        """Write it as stars."""
        return str(self.key)


class Hidden(BaseModel):
    """Secrets in places from which JSON does not bring them back."""

    keys: dict[SecretStr, int] = {}
    text: Json[dict[str, SecretStr]] = {}
    raw: SecretBytes = SecretBytes(b"")
    odd: dict[Frozen, int] = {}
    code: Code | None = None
    loud: Annotated[
        dict[str, SecretStr],
        PlainSerializer(lambda named: {name.upper(): "*" for name in named}),
    ] = {}


@pytest.mark.parametrize(
    "hidden",
    [
        Hidden(keys={SecretStr("p"): 1}),
        Hidden.model_construct(text={"a": SecretStr("p")}),
        Hidden(raw=SecretBytes(b"\xff")),
        Hidden.model_construct(odd={Frozen(name="a", key=SecretStr("k")): 1}),
        Hidden(code=Code(key=SecretStr("k"))),
        Hidden(loud={"a": SecretStr("k")}),
    ],
    ids=["keys", "json text", "raw bytes", "models as keys", "a model as text", "other keys"],
)
def test_a_secret_that_cannot_be_stored_is_an_error(hidden: Hidden) -> None:
    """Where the value would be lost, saving fails and says so: stars are never saved."""
    with pytest.raises(PydanticSerializationError, match="cannot be read back"):
        Arguments(Hidden).to_data(hidden)


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
