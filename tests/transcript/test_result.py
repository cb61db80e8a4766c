"""The laws of results: immutable, always JSON, and honest about how a call ended."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from lutum_py import Attachment, ToolMetadata, ToolResult
from lutum_py.errors import InvalidValueError, TranscriptError
from tests.cases import over
from tests.round_tools import Shop

REJECTION_PREFIX = "Rejected: "
METADATA = ToolMetadata(id="c1", name="add", arguments='{"a": 1}')
FILE = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")


def result(text: str = "null", **more: Any) -> ToolResult:
    return ToolResult(id="c1", name="add", arguments="{}", result=text, **more)


@over(
    "made, text",
    [
        (result('"plain"'), "plain"),
        (result('{"a":1}'), '{"a":1}'),
        (result("null"), "null"),
        (result('"x"', message="told"), "told"),
        (result('"x"', message=""), ""),
        (result(' "spaced"'), ' "spaced"'),
    ],
)
def test_what_the_model_reads(made: ToolResult, text: str) -> None:
    """The message if there is one, a string as plain text, else the JSON."""
    assert made.model_text == text


def test_a_string_that_is_none_is_read_as_it_is() -> None:
    """Text that only begins like a string is shown as it is, whoever made it."""
    assert result('"a" ').model_text == "a"


def test_what_the_program_keeps() -> None:
    """`output` is the plain data of `result`."""
    assert result('{"a":[1,null]}').output == {"a": [1, None]}
    assert result().is_success
    assert not result().is_error
    assert result(status="indeterminate").is_error


@over(
    "told, expected",
    [
        ({"text": "{"}, "ToolResult 'c1' of tool 'add': `result` must be JSON text, got '{' (EOF"),
        ({"text": "NaN"}, "`result` must be JSON text, got 'NaN'"),
        ({"text": {"a": 1}}, "`result` must be JSON text, got {'a': 1}"),
        ({"text": "x" * 1_000_000}, "must be JSON text, got 'xxxx"),
        ({"status": "done"}, "status 'done' is none of cancelled, error, indeterminate, rejected,"),
    ],
)
def test_a_wrong_result_is_refused(told: dict[str, Any], expected: str) -> None:
    """A result that is no JSON, or of no known status, is refused in a short text."""
    with pytest.raises(InvalidValueError) as caught:
        result(**told)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 300


def test_results_are_values() -> None:
    """Results compare, hash, copy and pickle by what they say, and cannot be changed."""
    slow = ToolResult(
        id="c1",
        name="add",
        arguments='{"a": 1}',
        result="3",
        message="three",
        attachments=[FILE],
        code="k",
    )
    quick = ToolResult.load_json(slow.dump_json())
    assert quick == slow
    assert len({quick, slow}) == 1
    assert quick != result("3")
    assert quick != "3"
    assert pickle.loads(pickle.dumps(quick)) == copy.deepcopy(quick) == copy.copy(quick) == slow
    assert repr(quick) == repr(slow)
    assert repr(slow).startswith("ToolResult(id='c1', name='add', arguments=<8 characters>, ")
    for made in (quick, slow):
        with pytest.raises(FrozenInstanceError):
            made.result = "4"
        with pytest.raises(FrozenInstanceError):
            del made.result


def test_a_derived_class_is_a_value_of_the_same_fields() -> None:
    """What derives from a frozen class compares, shows and pickles by the fields that it has."""

    class Marked(ToolResult):
        __slots__ = ()

    marked = Marked(id="c1", name="add", arguments="{}", result="3")
    assert marked == Marked(id="c1", name="add", arguments="{}", result="3")
    assert marked != ToolResult(id="c1", name="add", arguments="{}", result="3")
    assert repr(marked) == (
        "Marked(id='c1', name='add', arguments=<2 characters>, result='3', status='success', "
        "message=None, attachments=(), code=None, labels=None, handle=None, ran_with=None)"
    )
    assert copy.copy(marked) == marked


def test_only_a_rejection_has_a_reason() -> None:
    """The reason goes by the status: an output cannot pretend to be a rejection."""
    rejected = Shop.parse_tool_call(METADATA).reject("no").result
    assert rejected.result == f'"{REJECTION_PREFIX}no"'
    assert rejected.rejection_reason == "no"
    assert rejected.status == "rejected"
    assert rejected.model_text == f"{REJECTION_PREFIX}no"
    assert result(f'"{REJECTION_PREFIX}no"').rejection_reason is None
    assert result('{"a":1}', status="rejected", message="because").rejection_reason == "because"


def test_the_shape_for_others() -> None:
    """`to_json` gives the shape of Awaken's tool result."""
    assert result('{"a":1}').to_json() == {
        "tool_name": "add",
        "status": "success",
        "data": {"a": 1},
        "message": None,
    }
    assert result(status="error", message="m", code="k").to_json() == {
        "tool_name": "add",
        "status": "error",
        "data": None,
        "message": "m",
        "metadata": {"code": "k"},
    }
    assert result(status="cancelled").to_json()["metadata"] == {"cancelled": True}
    assert result(status="cancelled").to_json()["status"] == "error"


def test_a_stored_result_comes_back_whole() -> None:
    """A result survives its JSON: status, message, code and attachments included."""
    whole = ToolResult(
        id="c1",
        name="draw",
        arguments='{"x": "\ud800"}',
        result='{"a":1}',
        status="indeterminate",
        message="half done",
        attachments=[Attachment(media_type="image", mime_type="image/png", url="data:,x")],
        code="timed_out",
    )
    assert ToolResult.load_json(whole.dump_json()) == whole


def test_a_stored_result_says_what_it_is() -> None:
    """A transcript is not taken for a result."""
    with pytest.raises(TranscriptError):
        ToolResult.load_json('{"format": "lutum_py.transcript", "version": 1}')


def test_half_a_surrogate_pair_does_not_make_a_result_unreadable() -> None:
    """What the model sent may be quoted in a rejection, whatever it is."""
    rejected = Shop.parse_tool_call(METADATA).reject("no tool \ud800").result
    assert rejected.rejection_reason == "no tool \ufffd"
    assert rejected.model_text == REJECTION_PREFIX + "no tool \ufffd"


@pytest.mark.parametrize("half", ["\ud800", r"\ud800"], ids=["raw", "escaped"])
def test_no_result_holds_what_cannot_be_sent(half: str) -> None:
    """Half of a surrogate pair is U+FFFD in all that a result gives, also if it was an escape."""
    cut = "\ud800"
    made = ToolResult(id=cut, name=cut, arguments=cut, result=f'"{half}"', code=cut)
    told = ToolResult(id="c", name="f", arguments="", result="1", message=cut)
    texts = (made.id, made.name, made.arguments, made.code, told.model_text)
    assert texts == ("\ufffd",) * 5
    assert made.output == made.model_text == made.to_json()["data"] == "\ufffd"
    made.result.encode()


def test_no_result_holds_a_number_that_nobody_reads() -> None:
    """JSON text with an integer of more digits than Python reads is refused with its reason."""
    with pytest.raises(InvalidValueError):
        ToolResult(id="c", name="f", arguments="", result="9" * 4301)
    longest = ToolResult(id="c", name="f", arguments="", result="9" * 4300)
    assert ToolResult.load_json(longest.dump_json()).output == int("9" * 4300)


def test_a_deadline_shows_in_the_metadata() -> None:
    """A result of a call that did not finish in time says so in a word of its own."""
    late = result(status="error", code="timed_out")
    assert late.to_json()["metadata"] == {"code": "timed_out", "timed_out": True}


@over(
    "made, names",
    [
        (result('["add", 1, "sum"]'), ["add", "sum"]),
        (result('{"add": 1}'), []),
        (result('["add"]', status="error"), []),
    ],
)
def test_a_search_found_what_its_output_lists(made: ToolResult, names: list[str]) -> None:
    """The texts in the list that a search gave are names of tools; a failure found none."""
    assert made.found_tools == names
