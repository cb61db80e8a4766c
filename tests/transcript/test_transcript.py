"""The laws of a transcript: append-only, valid at any time, seen through steady views."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    Session,
    ToolMetadata,
    Transcript,
)
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem
from tests.round_tools import adds, check, check_transcript, forged, opened, turn


def said(count: int) -> Transcript:
    transcript = Transcript()
    for at in range(count):
        transcript.push(Message("user", str(at)))
    return transcript


def test_a_transcript_is_a_sequence() -> None:
    """A transcript has a length, iterates oldest first, and takes indices and slices."""
    transcript = said(3)
    assert len(transcript) == 3
    assert [item.text for item in transcript if isinstance(item, Message)] == ["0", "1", "2"]
    assert transcript[-1] == Message("user", "2")
    assert transcript[:2] == (Message("user", "0"), Message("user", "1"))
    assert repr(transcript) == "<Transcript of 3 items>"


def test_a_transcript_takes_only_what_is_whole() -> None:
    """Messages, turns without calls and whole rounds come in; nothing else does."""
    transcript = Transcript()
    with pytest.raises(MisuseError):
        transcript.push(turn(*adds(1)))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        transcript.append_turn(turn(*adds(1)))
    with pytest.raises(MisuseError):
        transcript.append_turn(Message("user", "x"))  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        transcript.append_round((turn(*adds(1)),))  # type: ignore[arg-type]
    assert len(transcript) == 0
    transcript.append_turn(AssistantTurn(text="Hi"))
    tool_round = turn(*adds(1))
    committed = CommittedRound(tool_round, [forged(tool_round.tool_calls[0])])
    transcript.append_round(committed)
    with pytest.raises(InvalidValueError):
        transcript.append_round(committed)
    assert len(transcript) == 3
    check_transcript(transcript)


def test_a_result_may_stand_in_two_rounds() -> None:
    """A gate that keeps its answer gives the same result again, which is no second commit."""
    transcript = Transcript()
    asked = turn(*adds(1))
    result = forged(asked.tool_calls[0])
    for _ in range(2):
        transcript.append_round(CommittedRound(asked, [result]))
    assert len(transcript) == 4


def test_transcripts_compare_by_what_was_said() -> None:
    """Two transcripts are equal when their items are, and have no hash, because they grow."""
    assert said(2) == said(2) != said(3)
    assert said(2) != [*said(2)]
    with pytest.raises(TypeError):
        hash(said(1))


@pytest.mark.parametrize("again", [Transcript.copy, copy.copy, copy.deepcopy])
def test_a_copy_goes_its_own_way(again: Any) -> None:
    """A copy has the same items, and neither sees what the other says afterwards."""
    transcript = said(2)
    other = again(transcript)
    other.push(Message("user", "more"))
    transcript.push(Message("user", "else"))
    assert [item.text for item in other] == ["0", "1", "more"]
    assert len(transcript) == 3
    assert pickle.loads(pickle.dumps(transcript)) == transcript


@given(st.integers(0, 6), st.lists(st.integers(0, 6)), st.data())
def test_a_view_is_the_merged_list(length: int, places: list[int], data: st.DataObject) -> None:
    """A view with ephemeral items equals the list with those items in their places."""
    session = Session()
    expected: list[Any] = []
    for at in range(length + 1):
        for place in places:
            if min(place, length) == at:
                session.push_ephemeral_user(f"e{len(expected)}")
                expected.append(Message("user", f"e{len(expected)}"))
        if at < length:
            session.push_user(str(at))
            expected.append(Message("user", str(at)))
    view = session.text_turn(ScriptedModel([])).request().items
    assert list(view) == expected
    assert len(view) == len(expected)
    assert [view[at] for at in range(-len(view), len(view))] == expected + expected
    window = data.draw(st.slices(len(view)))
    assert list(view[window]) == expected[window]
    assert view == expected
    for outside in (len(view), -len(view) - 1):
        with pytest.raises(IndexError, match=f"of {len(view)}"):
            view[outside]


def test_a_view_stays_as_it_is() -> None:
    """A view is no copy, and still does not change while its transcript grows."""
    transcript = said(2)
    view = transcript.view()
    transcript.push(Message("user", "later"))
    assert list(view) == [Message("user", "0"), Message("user", "1")]
    assert view.transcript is transcript
    assert repr(view) == "<view of 2 items>"
    assert view != transcript
    assert view == transcript[:2]
    assert (view == "01", view == 3) == (False, False)
    assert pickle.loads(pickle.dumps(view)) == tuple(view)
    with pytest.raises(TypeError):
        hash(view)


def checked(*items: Any) -> str:
    """What is wrong with the first item that is wrong, without the remedy."""
    with pytest.raises(AssertionError) as caught:
        check(items)
    return str(caught.value).splitlines()[1].removeprefix("- ").partition(". ")[0]


def test_the_check_says_which_item_is_wrong() -> None:
    """Every way to break the order is found, at its place."""
    tool_round = turn(*adds(2))
    first, second = (forged(metadata) for metadata in tool_round.tool_calls)
    hello = Message("user", "Hi")
    check([])
    check([hello, tool_round, first, second, hello, AssistantTurn(text="Bye")])
    missing = "items[0].tool_calls[{}]: the call 'c{}' of `add` has no result"
    assert checked(hello, first) == "items[1]: the result 'c0' answers no call"
    assert checked(tool_round, second, first) == (
        "items[1]: the results of items[0] are not in the order of its calls"
    )
    assert checked(tool_round, first, hello) == missing.format(1, 1)
    assert checked(tool_round, first) == missing.format(1, 1)
    assert checked(tool_round, tool_round) == missing.format(0, 0)
    assert "two calls of the turn share the id 'c0'" in checked(turn(*adds(1), *adds(1)))
    assert "items[1]: {'role': 'user'} is not an item of" in checked(hello, {"role": "user"})
    other = forged(ToolMetadata(id="c0", name="add", arguments="{}"))
    assert checked(tool_round, other, second).startswith("items[1].arguments: the arguments of")


def test_a_result_answers_the_call_that_it_names() -> None:
    """A result is that of a call by id, name and argument text, and by nothing less."""
    (metadata,) = turn(*adds(1)).tool_calls
    result = forged(metadata)
    assert result.answers(metadata)
    found = opened(*adds(1))
    assert result.answers(found.tool_calls[0])
    found.discard()
    for changed in ({"id": "x"}, {"name": "x"}, {"arguments": "{}"}):
        assert not result.answers(dataclasses.replace(metadata, **changed))


@pytest.mark.parametrize("role", ["assistant", "tool", "", None])
def test_a_message_has_one_of_three_roles(role: Any) -> None:
    """A message of any other role is refused where it is made."""
    with pytest.raises(InvalidValueError):
        Message(role, "Hi")


@pytest.mark.parametrize("text", [None, 3, b"Hi", ["Hi"]])
def test_a_message_has_a_text(text: Any) -> None:
    """A message whose text is no text is refused where it is made."""
    with pytest.raises(MisuseError):
        Message("user", text)


def test_messages_are_values() -> None:
    """Messages with the same words and files are equal, and hash alike."""
    file = Attachment(media_type="image", mime_type="image/png", url="data:")
    assert hash(Message("user", "a", (file,))) == hash(Message("user", "a", (file,)))


def test_a_turn_is_made_of_items_or_of_text_and_calls() -> None:
    """Items, or text with calls, make a turn; both at once are refused."""
    call = ToolMetadata(id="c", name="add", arguments="{}")
    made = AssistantTurn(text="Hi", tool_calls=[call])
    assert AssistantTurn(items=made.items) == made
    assert AssistantTurn(items=made.items).tool_calls == (call,)
    with pytest.raises(MisuseError):
        AssistantTurn(items=[TextItem("a")], text="b")
    with pytest.raises(MisuseError):
        AssistantTurn(items=[], tool_calls=[call])


def test_a_turn_tells_its_parts() -> None:
    """Text, reasoning and refusal of a turn are gathered over all of its items."""
    made = AssistantTurn(
        items=[
            ReasoningItem("one"),
            ReasoningItem(""),
            TextItem("a"),
            ServerToolItem("web_search_call", {"query": "x"}),
            ReasoningItem("two"),
            TextItem("b"),
            RefusalItem("no"),
            RefusalItem("!"),
        ],
        finish_reason="length",
    )
    assert (made.text, made.reasoning, made.refusal) == ("ab", "one\n\ntwo", "no!")
    assert made.is_truncated
    plain = AssistantTurn(text="a")
    assert (plain.refusal, plain.is_truncated, plain.reasoning) == (None, False, "")
    assert {made, plain, pickle.loads(pickle.dumps(made))} == {made, plain}
