"""The laws of typed state."""

from __future__ import annotations

import copy
import pickle
from collections import deque
from collections.abc import Callable
from threading import Lock
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import ToolContext
from lutum_py.context import State, StateKey
from lutum_py.errors import InvalidValueError, MisuseError, SavedDataError
from tests.cases import over

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
    assert after.get(StateKey(name, default="other")) == value
    for other in values.keys() - {name}:
        assert after[other] == before[other]


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


class Note:
    """A value of a type of the program's own."""

    def __init__(self) -> None:
        self.lines: list[Any] = ["a"]


def changeable() -> list[Any]:
    """Values of which a part can be changed, and beside it what nobody can copy."""
    return [
        ["a"],
        {"x": ["a"]},
        (["a"],),
        bytearray(b"a"),
        deque(["a"]),
        Note(),
        {"lock": Lock(), "x": ["a"]},
        [Lock(), ({"x": ["a"]},)],
        MappingProxyType({"lock": Lock(), "x": ["a"]}),
    ]


def change(value: Any) -> None:
    """Change each part of a value that can be changed."""
    if isinstance(value, Note):
        change(value.lines)
    elif isinstance(value, dict | MappingProxyType):
        for part in value.values():
            change(part)
    elif isinstance(value, list | tuple):
        for part in value:
            change(part)
    if isinstance(value, list | deque | bytearray):
        value.append(66)


def parts(value: Any) -> Any:
    """What there is to be seen of a value."""
    if isinstance(value, Note):
        return parts(value.lines)
    if isinstance(value, dict | MappingProxyType):
        return {name: parts(part) for name, part in value.items()}
    if isinstance(value, list | tuple | deque):
        return [parts(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


READS: dict[str, Callable[[State, StateKey[Any]], Any]] = {
    "get": lambda state, key: state.get(key),
    "by name": lambda state, key: state[key.name],
    "values": lambda state, key: next(iter(state.values())),
    "items": lambda state, key: next(iter(state.items()))[1],
    "dict": lambda state, key: dict(state)[key.name],
    "copy": lambda state, key: copy.copy(state)[key.name],
    "deepcopy": lambda state, key: copy.deepcopy(state)[key.name],
    "reduce": lambda state, key: cast("Any", state).__reduce__()[1][0][key.name],
    "another state": lambda state, key: state.set(VISITS, 1).get(key),
    "context": lambda state, key: ToolContext("c1", "t", state=state).state(key),
}

GIVES: dict[str, Callable[[StateKey[Any], Any], tuple[State, StateKey[Any]]]] = {
    "made": lambda key, value: (State({key.name: value}), key),
    "set": lambda key, value: (State().set(key, value), key),
}


@over("read", READS)
@over("given", GIVES)
def test_a_value_is_nobody_elses_to_change(read: str, given: str) -> None:
    """Neither what a state was given nor what is read of it, by whichever way, is the value that
    another one reads. What cannot be copied is the very thing.
    """
    for value in changeable():
        before = parts(value)
        state, key = GIVES[given](StateKey("note", default=None), value)
        change(value)
        assert parts(READS[read](state, key)) == before
        change(READS[read](state, key))
        for again in READS.values():
            assert parts(again(state, key)) == before


def test_a_default_is_nobody_elses_to_change() -> None:
    """It is the same for a default of any type, read through a state or by itself."""
    for value in changeable():
        before = parts(value)
        key = StateKey("note", default=value)
        change(value)
        context = ToolContext("c1", "t")
        for read in (lambda k: State().get(k), lambda k: k.default, context.state):
            change(read(key))
            assert parts(State().get(key)) == before


def test_what_cannot_be_copied_is_given_as_it_is() -> None:
    """A lock is the same lock, alone and within what can be copied; so is what is too deep."""
    lock = Lock()
    around: list[Any] = [lock]
    around.append(around)
    deep: Any = lock
    for _ in range(100_000):
        deep = [deep]
    state = State({"lock": lock, "around": around, "deep": deep, "set": {(lock,)}})
    assert state["lock"] is lock
    assert state["around"] is not around
    assert state["around"][0] is lock
    assert state["around"][1] is not around
    assert state["deep"] is deep
    assert state["set"] == {(lock,)}
    assert State().get(StateKey("lock", default=lock)) is lock


def test_a_key_survives_a_pickle_and_shows_itself() -> None:
    """A key is plain data, and as immutable as a state."""
    key = StateKey("note", default=["a"])
    assert pickle.loads(pickle.dumps(key)).default == ["a"]
    assert repr(key) == "StateKey(name='note', default=['a'])"
    assert key != "note"
    with pytest.raises(AttributeError):
        key.name = "other"


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
    ("value", "kinds"),
    [(object(), (MisuseError, TypeError)), (float("nan"), (InvalidValueError, ValueError))],
    ids=["object", "nan"],
)
def test_what_is_not_json_is_refused_by_name(
    value: object, kinds: tuple[type[Exception], ...]
) -> None:
    """A value that cannot be saved is refused as the library does, naming its key."""
    for kind in kinds:
        said = r"The state's value 'odd' cannot be saved: .*Keep plain JSON"
        with pytest.raises(kind, match=said):
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
