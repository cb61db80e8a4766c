"""The laws of capabilities, effects and risk."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.capabilities import (
    EFFECT_DEFAULTS,
    Confirmation,
    DryRun,
    EffectKind,
    Reversibility,
    RiskLevel,
    ToolCapabilities,
    ToolEffect,
    risk_of,
)
from lutum_py.errors import ToolDefinitionError
from tests.cases import over

KINDS = st.sampled_from(EffectKind)
EFFECTS = st.builds(
    ToolEffect,
    KINDS,
    st.none() | st.sampled_from(["path", "url"]),
    st.none() | st.sampled_from(Reversibility),
    st.none() | st.sampled_from(Confirmation),
    st.sampled_from(DryRun),
    st.none() | st.sampled_from(["orders", "*"]),
)
CAPABILITIES = st.builds(
    ToolCapabilities, st.booleans(), st.booleans(), st.booleans(), st.lists(EFFECTS, max_size=4)
)

TABLE = """
read_file         | no  | reversible           | on_risk | allow | files
introspect_runtime| no  | reversible           | on_risk | allow | runtime
network_request   | no  | reversible           | on_risk | review | network
read_secret       | no  | irreversible         | always  | block | credentials
persist_memory    | yes | partially_reversible | always  | review | memory
generate_media    | yes | partially_reversible | always  | review | -
write_file        | yes | partially_reversible | always  | require_confirmation | files
run_process       | yes | partially_reversible | always  | require_confirmation | *
schedule_task     | yes | partially_reversible | always  | require_confirmation | schedule
delegate_work     | yes | partially_reversible | always  | require_confirmation | *
send_message      | yes | irreversible         | always  | require_confirmation | messages
publish_content   | yes | irreversible         | always  | require_confirmation | publications
delete_file       | yes | irreversible         | always  | block | files
spend_money       | yes | irreversible         | always  | block | money
deploy            | yes | irreversible         | always  | block | deployments
modify_credential | yes | irreversible         | always  | block | credentials
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]


@over("row", ROWS)
def test_each_kind_has_its_row(row: list[str]) -> None:
    """A kind's row says whether it changes anything, its defaults and its floor."""
    kind, mutating, reversibility, confirmation, floor, area = row
    defaults = EFFECT_DEFAULTS[EffectKind(kind)]
    effect = ToolEffect(kind)
    assert defaults.risk_floor == floor
    assert (effect.mutating, defaults.mutating) == (mutating == "yes", mutating == "yes")
    assert (effect.reversibility, defaults.reversibility) == (reversibility, reversibility)
    assert (effect.confirmation, defaults.confirmation) == (confirmation, confirmation)
    assert (effect.area, defaults.area) == (None if area == "-" else area,) * 2
    assert (effect.target, effect.dry_run) == (None, DryRun.NOT_SUPPORTED)


def test_the_table_holds_every_kind_and_nothing_else() -> None:
    """No kind of effect is without a row."""
    assert [kind.value for kind in EFFECT_DEFAULTS] == [row[0] for row in ROWS]
    assert set(EFFECT_DEFAULTS) == set(EffectKind)


@over(
    "kind, risk",
    [
        ("read_file", "allow"),
        ("network_request", "review"),
        ("persist_memory", "require_confirmation"),
        ("write_file", "require_confirmation"),
        ("send_message", "require_confirmation"),
        ("read_secret", "block"),
        ("deploy", "block"),
    ],
)
def test_a_kind_alone_has_this_risk(kind: str, risk: str) -> None:
    """The kind's own confirmation and reversibility lift its floor, too."""
    assert risk_of(ToolCapabilities(effects=[kind])) == risk


@given(EFFECTS)
def test_always_or_irreversible_lifts_and_never_lowers_nothing(effect: ToolEffect) -> None:
    """An effect's risk is its floor, lifted to a confirmation where it must be, never lower."""
    floor = EFFECT_DEFAULTS[effect.kind].risk_floor
    grave = effect.confirmation == "always" or effect.reversibility == "irreversible"
    lifted = floor in ("allow", "review") and grave
    assert effect.risk is (RiskLevel.REQUIRE_CONFIRMATION if lifted else floor)
    assert replace(effect, confirmation=Confirmation.NEVER).risk >= floor


@given(CAPABILITIES)
def test_several_effects_take_the_highest_risk(capabilities: ToolCapabilities) -> None:
    """A tool is as risky as its worst effect, and harmless without one."""
    order = ["allow", "review", "require_confirmation", "block"]
    ranks = [order.index(effect.risk) for effect in capabilities.effects]
    assert order.index(risk_of(capabilities)) == max(ranks, default=0)


@given(st.sampled_from(RiskLevel), st.sampled_from(RiskLevel))
def test_levels_compare_by_severity(one: RiskLevel, other: RiskLevel) -> None:
    """All four comparisons go by severity, with the level or with its name."""
    order = ["allow", "review", "require_confirmation", "block"]
    first, second = order.index(one), order.index(other)
    for right in (other, other.value):
        assert (one < right) is (first < second)
        assert (one <= right) is (first <= second)
        assert (one > right) is (first > second)
        assert (one >= right) is (first >= second)
        assert (one == right) is (first == second)
    assert (one.value < other) is (first < second)
    assert hash(one) == hash(one.value)


def test_a_level_does_not_compare_with_other_text() -> None:
    """A comparison with a word that is no level is an error, not an alphabetical answer."""
    with pytest.raises(ValueError, match="medium"):
        assert RiskLevel.ALLOW < "medium"


@given(CAPABILITIES)
def test_json_data_reads_back(capabilities: ToolCapabilities) -> None:
    """Capabilities survive JSON, pickling and copying."""
    data = json.loads(json.dumps(capabilities.to_dict()))
    assert ToolCapabilities.from_dict(data) == capabilities
    assert pickle.loads(pickle.dumps(capabilities)) == capabilities
    assert copy.deepcopy(capabilities) == capabilities
    assert hash(replace(capabilities)) == hash(capabilities)


def test_the_json_data_has_every_key() -> None:
    """The data of an effect and of capabilities are plain, key by key."""
    effect = ToolEffect("send_message", "to", dry_run="supported")
    data = ToolCapabilities(emits_progress=True, effects=[effect]).to_dict()
    assert data == {
        "emits_progress": True,
        "emits_observer_text": False,
        "background_safe": False,
        "effects": [
            {
                "kind": "send_message",
                "target": "to",
                "reversibility": "irreversible",
                "confirmation": "always",
                "dry_run": "supported",
                "area": "messages",
            }
        ],
    }
    assert {type(value) for value in data["effects"][0].values()} == {str}


def test_data_of_before_areas_reads_back() -> None:
    """An effect that was written down without its area has that of its kind."""
    data = ToolEffect("write_file", "path").to_dict()
    del data["area"]
    assert ToolEffect.from_dict(data) == ToolEffect("write_file", "path", area="files")


def test_everything_is_off_by_default() -> None:
    """Capabilities without arguments declare nothing."""
    assert ToolCapabilities() == ToolCapabilities.from_dict({})
    assert ToolCapabilities().to_dict() == {
        "emits_progress": False,
        "emits_observer_text": False,
        "background_safe": False,
        "effects": [],
    }


def test_effects_are_immutable() -> None:
    """A declared effect does not change."""
    effect = ToolEffect("deploy")
    with pytest.raises(FrozenInstanceError):
        effect.kind = EffectKind.READ_FILE  # type: ignore[misc]
    assert effect.kind is EffectKind.DEPLOY


@over(
    "arguments, text",
    [
        ({"kind": "delet_file"}, r"Unknown effect kind 'delet_file'\. Did you mean `delete_file`"),
        ({"kind": "xyz"}, r"Unknown effect kind 'xyz'\. There are: read_file, "),
        ({"kind": "deploy", "reversibility": "reversable"}, "Did you mean `reversible`"),
        ({"kind": "deploy", "confirmation": "allways"}, "Did you mean `always`"),
        ({"kind": "deploy", "dry_run": "suported"}, "Did you mean `supported`"),
        ({"kind": "deploy", "target": " "}, "The target of the effect 'deploy' is ' '"),
        ({"kind": "deploy", "target": 3}, "The target of the effect 'deploy' is 3"),
        ({"kind": "deploy", "area": ""}, "The area of the effect 'deploy' is ''"),
        ({"kind": "deploy", "area": " a"}, "The area of the effect 'deploy' is ' a'"),
        ({"kind": "deploy", "area": 3}, "The area of the effect 'deploy' is 3"),
    ],
)
def test_an_effect_refuses_what_it_does_not_know(arguments: dict[str, Any], text: str) -> None:
    """An unknown name is refused where it is declared, with the nearest one that exists."""
    with pytest.raises(ToolDefinitionError, match=text):
        ToolEffect(**arguments)
    with pytest.raises(ToolDefinitionError, match=text):
        ToolEffect.from_dict(arguments)


@over(
    "data, text",
    [
        ({"emits_progres": True}, "Did you mean `emits_progress`"),
        ({"emits_progress": 1}, "'emits_progress' is 1. Give a bool"),
        ({"effects": "deploy"}, "'effects' is 'deploy'. Give a list"),
        ({"effects": [{}]}, "has no 'kind'"),
        ({"effects": [{"kind": "deploy", "why": 1}]}, "An effect cannot have 'why'"),
        ({"effects": ["deploy"]}, "cannot be read from 'deploy'"),
        ([], r"cannot be read from \[\]"),
    ],
)
def test_foreign_data_is_refused(data: Any, text: str) -> None:
    """Data that `to_dict` would not give is refused with its place."""
    with pytest.raises(ToolDefinitionError, match=text):
        ToolCapabilities.from_dict(data)


def test_a_single_effect_has_to_stand_in_a_list() -> None:
    """A bare word is not taken for a list of letters."""
    with pytest.raises(ToolDefinitionError, match=r"Give a list of effects: \['deploy'\]"):
        ToolCapabilities(effects="deploy")
    nothing: Any = None
    with pytest.raises(ToolDefinitionError, match=r"'effects' is None\. Give a list of effects"):
        ToolCapabilities(effects=nothing)
