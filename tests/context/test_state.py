"""The laws of typed state."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import State, StateKey
from lutum_py.errors import SavedDataError

NAMES = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
VALUES = st.dictionaries(NAMES, JSON, max_size=5)

VISITS = StateKey("visits", default=0)


@given(VALUES, NAMES, JSON)
def test_what_is_set_is_got(values: dict[str, Any], name: str, value: Any) -> None:
    """After a set, that key gives the value and every other key gives what it gave."""
    before = State(values)
    after = before.set(StateKey(name, default=None), value)
    assert after.get(StateKey(name, default="other")) is value
    for other in values.keys() - {name}:
        assert after[other] is before[other]


@given(VALUES, NAMES, JSON)
def test_setting_leaves_the_old_state_alone(values: dict[str, Any], name: str, value: Any) -> None:
    """A state that was set upon is what it was."""
    before = State(values)
    before.set(StateKey(name, default=None), value)
    assert dict(before.items()) == values
    assert before == State(values)


@given(VALUES)
def test_a_state_survives_json_and_pickle(values: dict[str, Any]) -> None:
    """Plain data comes back from JSON text, from a pickle and from a copy."""
    state = State(values)
    assert State.load_json(state.dump_json()) == state
    assert State.load_json(state.dump_json().encode()) == state
    assert pickle.loads(pickle.dumps(state)) == state
    assert copy.deepcopy(state) == state


@given(VALUES)
def test_a_state_reads_like_a_mapping(values: dict[str, Any]) -> None:
    """The views of a state are those of its values by name."""
    state = State(values)
    assert (list(state), len(state)) == (list(values), len(values))
    assert list(state.keys()) == list(values)
    assert list(state.values()) == list(values.values())
    assert list(state.items()) == list(values.items())
    assert dict(state) == values
    assert repr(state) == f"State({values!r})"


def test_membership_goes_by_key_or_name() -> None:
    """A key is in a state when its name is."""
    state = State().set(VISITS, 3)
    assert VISITS in state
    assert "visits" in state
    assert StateKey("other", default=0) not in state
    assert state != {"visits": 3}


def test_a_value_that_is_none_is_not_missing() -> None:
    """None under a key is a value and not the default."""
    key: StateKey[int | None] = StateKey("limit", default=5)
    assert State().get(key) == 5
    assert State().set(key, None).get(key) is None


def test_a_default_is_never_shared() -> None:
    """Changing a default that was got changes nobody else's."""
    key: StateKey[dict[str, list[int]]] = StateKey("seen", default={"ids": []})
    State().get(key)["ids"].append(1)
    assert State().get(key) == {"ids": []}


def test_other_defaults_are_given_as_they_are() -> None:
    """A default that is no container is the very object."""
    marker = object()
    assert State().get(StateKey("marker", default=marker)) is marker


def test_keys_are_equal_by_name() -> None:
    """Two keys of one name are the same key."""
    assert StateKey("visits", default=1) == VISITS
    assert len({StateKey("visits", default=[]), VISITS}) == 1


def test_a_state_cannot_be_changed() -> None:
    """Neither an attribute nor the mapping that it was made from changes a state."""
    values = {"visits": 1}
    state = State(values)
    values["visits"] = 2
    with pytest.raises(AttributeError, match=r"state\.set\(key, value\)"):
        state.visits = 3
    assert state.get(VISITS) == 1


def test_equal_states_hash_alike() -> None:
    """The order of setting makes no difference, and a value without a hash is refused."""
    one = State().set(VISITS, 1).set(StateKey("who", ""), "ann")
    other = State().set(StateKey("who", ""), "ann").set(VISITS, 1)
    assert (one, hash(one)) == (other, hash(other))
    with pytest.raises(TypeError, match="unhashable"):
        hash(State({"ids": []}))


def test_the_text_is_one_object_by_name() -> None:
    """The saved form is the values by name, compact."""
    assert State().set(VISITS, 3).set(StateKey("who", ""), "é").dump_json() == (
        '{"visits":3,"who":"é"}'
    )


@pytest.mark.parametrize(
    ("value", "kind"), [(object(), TypeError), (float("nan"), ValueError)], ids=["object", "nan"]
)
def test_what_is_not_json_is_refused_by_name(value: object, kind: type[Exception]) -> None:
    """A value that cannot be saved is refused, naming its key."""
    with pytest.raises(kind, match=r"The state's value 'odd' cannot be saved: .*Keep plain JSON"):
        State({"fine": 1, "odd": value}).dump_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "The saved state is not JSON: "),
        ('{"a":NaN}', "The saved state is not JSON: "),
        ("[1]", r"The saved state is \[1\], not an object of values by name"),
    ],
)
def test_foreign_text_is_refused(text: str, message: str) -> None:
    """Text that is not an object is refused as damaged data."""
    with pytest.raises(SavedDataError, match=message):
        State.load_json(text)
