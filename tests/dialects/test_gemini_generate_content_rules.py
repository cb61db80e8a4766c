"""The API generateContent: what its rules find, and how they are repaired."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lutum_py.dialects import gemini_generate_content as dialect
from tests.cases import over

from .gemini_wire import USER
from .plain import NOT_SHOWN, OUTCOME_UNKNOWN


def called(*names: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": split(name)} for name in names]}


def answered(*names: str, **more: Any) -> dict[str, Any]:
    parts = [
        {"functionResponse": {**split(name), "response": {"output": name}, **more}}
        for name in names
    ]
    return {"role": "user", "parts": parts}


def split(name: str) -> dict[str, Any]:
    tool, _, call_id = name.partition("#")
    return {"name": tool, "id": call_id} if call_id else {"name": tool}


ANSWERED_LATE = {"role": "user", "parts": [*USER["parts"], *answered("f")["parts"]]}


@over(
    "contents, rules, shape",
    [
        ([USER, called("f", "g")], ["call_without_result"] * 2, "u:t m:fg u:fg"),
        ([USER, called("f#1"), USER], ["call_without_result"], "u:t m:f#1 u:f#1 u:t"),
        ([USER, answered("f")], ["orphan_result"], "u:t"),
        ([USER, called("f#1"), answered("f#2")], None, "u:t m:f#1 u:f#1"),
        ([USER, called("f"), answered("f", "f")], ["duplicate_result"], "u:t m:f u:f"),
        (
            [USER, called("f#1"), answered("f#1", "f#1")],
            ["duplicate_result"],
            "u:t m:f#1 u:f#1",
        ),
        (
            [USER, called("f", "g"), answered("g", "f")],
            ["results_out_of_order"] * 2,
            "u:t m:fg u:fg",
        ),
        ([USER, called("f"), ANSWERED_LATE], ["result_after_content"], "u:t m:f u:f u:t"),
        (
            [USER, called("f#1"), USER, called("g"), answered("f#1", "g")],
            ["misplaced_result"],
            "u:t m:f#1 u:f#1 u:t m:g u:g",
        ),
        ([USER, called("f#1"), answered("g#1")], ["result_of_other_tool"], "u:t m:f#1 u:f#1"),
        ([called("f"), answered("f")], ["call_without_user"], "u:t m:f u:f"),
        ([answered("f"), called("g"), answered("g")], None, "u:t m:g u:g"),
        ([USER, {"role": "system"}, {"role": 3}, 3], ["unknown_role"] * 3, "u:t"),
        ([USER, {"role": "model", "parts": []}, {"role": "user"}], ["empty_content"] * 2, "u:t"),
        (
            [{"role": "user", "parts": [{}, 3, {"text": "a"}]}],
            ["empty_part"] * 2,
            "u:t",
        ),
        (
            [USER, called("f"), answered("f", response="text")],
            ["response_not_an_object"],
            "u:t m:f u:f",
        ),
        ([USER, called("f#1"), answered("f")], [], "u:t m:f#1 u:f"),
        ([USER, called("f"), answered("f#made-up")], [], "u:t m:f u:f#made-up"),
        ([USER, called("f", "f"), answered("f", "f")], [], "u:t m:ff u:ff"),
        ([USER, called("f"), called("g"), answered("f", "g")], [], "u:t m:f m:g u:fg"),
        ([USER, called("f"), answered("f"), USER], [], "u:t m:f u:f u:t"),
        ([{"role": "model", "parts": [{"text": "Hi"}]}, USER], [], "m:t u:t"),
        ([{"parts": [{"text": "Hi"}]}], [], "u:t"),
    ],
)
def test_each_breach_is_found_and_repaired(
    contents: list[Any], rules: list[str] | None, shape: str
) -> None:
    """Each rule has a violation with position and remedy, and a repair that ends it."""
    before = copy.deepcopy(contents)
    violations = dialect.check(contents)
    if rules is not None:
        assert [violation.rule for violation in violations] == rules
    else:
        assert len(violations) == 2
    assert all(violation.position and violation.remedy for violation in violations)
    repaired, changes = dialect.repair(contents)
    assert [change.rule for change in changes] == [violation.rule for violation in violations]
    assert shape_of(repaired) == shape
    assert dialect.check(repaired) == []
    assert contents == before
    body = {"contents": contents, "tools": []}
    assert dialect.repair(body)[0] == {"contents": repaired, "tools": []}


def shape_of(contents: list[Any]) -> str:
    shown = []
    for content in contents:
        found = [
            part.get("functionCall", part.get("functionResponse")) for part in content["parts"]
        ]
        names = [
            "t" if named is None else "#".join([named["name"], *filter(None, [named.get("id")])])
            for named in found
        ]
        shown.append(f"{content.get('role', 'user')[0]}:{''.join(names)}")
    return " ".join(shown)


def test_both_ways_of_writing_a_key_are_understood() -> None:
    """A transcript in snake case is checked and repaired like one in camel case."""
    call = {"role": "model", "parts": [{"function_call": {"name": "f"}}]}
    wrong = {"function_response": {"name": "f", "response": 3}}
    repaired, changes = dialect.repair([USER, call, {"role": "function", "parts": [wrong]}])
    assert [change.rule for change in changes] == ["response_not_an_object"]
    assert repaired[2]["parts"][0]["function_response"]["response"] == {"output": 3}
    assert dialect.check([call])[0].rule == "call_without_user"


def test_a_repair_lets_the_user_begin() -> None:
    """What a repair puts before a call is a whole content of the user, and says what it is."""
    repaired, _ = dialect.repair([called("f"), answered("f")])
    assert repaired[0] == {"role": "user", "parts": [{"text": NOT_SHOWN}]}


def test_an_unanswered_call_is_never_called_a_success() -> None:
    """What a repair adds for a call says that its outcome is unknown, as an error."""
    repaired, _ = dialect.repair([USER, called("f#1")])
    assert repaired[2]["parts"] == [
        {
            "functionResponse": {
                "name": "f",
                "id": "1",
                "response": {"error": OUTCOME_UNKNOWN},
            }
        }
    ]


def said(text: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": text}]}


@over(
    "contents, rules",
    [
        ([USER, said("Well."), called("f"), answered("f")], ["call_after_model"]),
        ([USER, said("Well."), said("So."), called("f"), answered("f")], ["call_after_model"]),
        ([USER, called("f"), called("g"), answered("f", "g")], []),
        ([USER, said("Well."), answered("g"), called("f"), answered("f")], ["orphan_result"]),
        (
            [{"role": "user", "parts": called("f")["parts"]}, USER],
            ["misplaced_call", "empty_content"],
        ),
        (
            [USER, {"role": "model", "parts": [{"functionCall": 7}]}],
            ["empty_part", "empty_content"],
        ),
        (
            [USER, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": 7}}]}],
            ["args_not_an_object", "call_without_result"],
        ),
    ],
)
def test_a_call_stands_where_the_provider_takes_it(contents: list[Any], rules: list[str]) -> None:
    """Calls are objects of the model, right after the user; what it says before goes with them."""
    assert sorted(each.rule for each in dialect.check(contents)) == sorted(rules)
    repaired, changes = dialect.repair(contents)
    assert dialect.check(repaired) == []
    assert {each.rule for each in changes} >= set(rules)
    roles = [content["role"] for content in repaired]
    calls = [n for n, each in enumerate(repaired) if "functionCall" in json.dumps(each)]
    assert all(number and (roles[number - 1] == "user" or number - 1 in calls) for number in calls)


def test_one_object_may_stand_for_a_list() -> None:
    """The API takes a single content, and a single part, where a list belongs."""
    body = {"contents": {"role": "user", "parts": {"text": "Go"}}}
    assert dialect.check(body) == []
    assert dialect.repair(body) == (body, [])
    assert dialect.repair({"contents": {"parts": {"functionCall": {"name": "f"}}}})[1]


NAMES = st.sampled_from(["f", "g", "f#1", "g#1", "f#2"])
PARTS = st.one_of(
    st.sampled_from([{"text": "a"}, {}]),
    NAMES.map(lambda name: called(name)["parts"][0]),
    NAMES.map(lambda name: answered(name)["parts"][0]),
)
CONTENTS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "model", "function"]),
            "parts": st.lists(PARTS, max_size=4),
        }
    ),
    max_size=7,
)


@given(CONTENTS)
@example(
    [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": "1"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}] * 2},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    ]
)
def test_a_repair_leaves_nothing_to_repair(contents: list[Any]) -> None:
    """Whatever is wrong, a repaired conversation is clean, and a clean one is left as it is."""
    repaired, changes = dialect.repair(contents)
    assert dialect.check(repaired) == []
    assert bool(changes) == (repaired != contents) == bool(dialect.check(contents))
    json.dumps(repaired)


@over("odd", [{"x": 1}, ["a"], 7, True])
def test_an_id_that_is_no_text_is_made_text(odd: Any) -> None:
    """An id of another type is a violation in a call and in its response, and both get the same
    text.
    """
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "id": odd, "args": {}}}]}
    answer = {"functionResponse": {"name": "f", "id": odd, "response": {"output": 1}}}
    contents = [USER, call, {"role": "user", "parts": [answer]}]
    assert [(each.position, each.rule) for each in dialect.check(contents)] == [
        ("contents[1].parts[0].functionCall.id", "invalid_call_id"),
        ("contents[2].parts[0].functionResponse.id", "invalid_call_id"),
    ]
    repaired, _ = dialect.repair(contents)
    assert dialect.check(repaired) == []
    (sent,), (got,) = repaired[1]["parts"], repaired[2]["parts"]
    assert isinstance(sent["functionCall"]["id"], str)
    assert sent["functionCall"]["id"] == got["functionResponse"]["id"]


@pytest.mark.parametrize("call", [{"name": "f", "args": {}}, {}])
def test_a_part_is_of_one_kind(call: Any) -> None:
    """A part that is a call and a response at once keeps what its role may send."""
    both = {"functionCall": call, "functionResponse": {"name": "f", "response": {}}}
    contents = [USER, {"role": "model", "parts": [both]}, {"role": "user", "parts": [both]}]
    assert [each.rule for each in dialect.check(contents)].count("part_of_two_kinds") == 2
    repaired, changes = dialect.repair(contents)
    assert dialect.check(repaired) == []
    assert all(change.is_repaired for change in changes)
    assert [list(content["parts"][0]) for content in repaired[1:]] == [
        ["functionCall"],
        ["functionResponse"],
    ]
