"""The laws of a session: what is said is kept, what is said aside is not, and branches part."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    Session,
    Transcript,
    TurnRequest,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import DuplicateToolCallIdError, MisuseError
from lutum_py.testing import ScriptedModel
from tests.round_tools import Shop, adds, answer, check_transcript, done, needs, turn


def texts(request: TurnRequest) -> list[str]:
    return [getattr(item, "text", None) or type(item).__name__ for item in request.items]


def test_a_session_keeps_what_is_said() -> None:
    """Each push appends one message of its role, with its files."""
    session = Session()
    file = Attachment(media_type="file", mime_type="text/plain", url="data:")
    session.push_system("s")
    session.push_developer("d")
    session.push_user("u", [file])
    assert list(session.transcript) == [
        Message("system", "s"),
        Message("developer", "d"),
        Message("user", "u", (file,)),
    ]
    assert repr(session) == "<Session of 3 items>"


def test_a_session_goes_on_from_a_transcript() -> None:
    """A session takes up a saved transcript, and refuses what is none."""
    transcript = Transcript()
    transcript.push(Message("user", "Hi"))
    session = Session(Transcript.load_json(transcript.dump_json()))
    assert session.transcript == transcript
    wrong: list[Any] = [[], "Hi", Session()]
    for each in wrong:
        with pytest.raises(MisuseError):
            Session(each)


@pytest.mark.parametrize("sync", [True, False])
def test_an_answer_is_committed_by_collect(sync: bool) -> None:
    """A turn without calls is in the transcript when `collect` is done."""
    session = Session()
    session.push_user("Hi")
    building = session.text_turn(ScriptedModel([ScriptedModel.text("Hello!")]))
    outcome = building.collect_sync() if sync else asyncio.run(building.collect())
    assert answer(outcome) == "Hello!"
    assert session.transcript[-1] == AssistantTurn(text="Hello!", finish_reason="stop")
    check_transcript(session.transcript)


def test_a_round_is_not_in_the_transcript_before_its_commit() -> None:
    """A turn with calls is nowhere until it is committed together with its results."""
    session = Session()
    session.push_user("Go")
    model = ScriptedModel([turn(*adds(2)), ScriptedModel.text("Done")])
    tool_round = needs(session.text_turn(model).tools(Shop).collect_sync())
    assert len(session.transcript) == 1
    tool_round.commit(session, done(tool_round.tool_calls))
    assert len(session.transcript) == 4
    assert answer(session.text_turn(model).tools(Shop).collect_sync()) == "Done"
    check_transcript(session.transcript)


def test_a_turn_without_tools_may_still_bring_calls() -> None:
    """A call that comes where no tool was offered is answered with a rejection, not left open."""
    session = Session()
    session.push_user("Hi")
    tool_round = needs(session.text_turn(ScriptedModel([turn(*adds(1))])).collect_sync())
    assert tool_round.tool_calls == ()
    assert [issue.reason for issue in tool_round.recoverable_tool_call_issues] == ["unknown_tool"]
    tool_round.commit(session)
    check_transcript(session.transcript)


def test_ephemeral_items_are_in_the_next_request_only() -> None:
    """What is pushed aside is in one request, in its place, and never in the transcript."""
    session = Session()
    model = ScriptedModel([ScriptedModel.text("one"), ScriptedModel.text("two")])
    session.push_ephemeral_system("aside 1")
    session.push_user("a")
    session.push_ephemeral_developer("aside 2")
    session.push_ephemeral_user("aside 3")
    session.push_user("b")
    session.text_turn(model).collect_sync()
    session.text_turn(model).collect_sync()
    assert texts(model.requests[0]) == ["aside 1", "a", "aside 2", "aside 3", "b"]
    assert [i.role for i in model.requests[0].items if isinstance(i, Message)] == [
        "system",
        "user",
        "developer",
        "user",
        "user",
    ]
    assert texts(model.requests[1]) == ["a", "b", "one"]
    assert len(session.transcript) == 4


def test_ephemeral_items_outlive_a_request_that_fails() -> None:
    """A request that fails keeps what was pushed aside for the next one."""
    session = Session()
    session.push_user("a")
    session.push_ephemeral_user("aside")
    seen: list[list[str]] = []

    def unlucky(request: TurnRequest) -> AssistantTurn:
        seen.append(texts(request))
        if len(seen) == 1:
            raise ConnectionError("down")
        if len(seen) == 2:
            return turn(*adds(1), *adds(1))
        return ScriptedModel.text("up")

    model = ScriptedModel(unlucky)
    with pytest.raises(ConnectionError):
        session.text_turn(model).collect_sync()
    with pytest.raises(DuplicateToolCallIdError):
        session.text_turn(model).tools(Shop).collect_sync()
    assert len(session.transcript) == 1
    session.text_turn(model).collect_sync()
    assert seen == [["a", "aside"]] * 3
    session.text_turn(model).collect_sync()
    assert seen[3] == ["a", "up"]


def test_ephemeral_items_stay_in_place_while_the_transcript_grows() -> None:
    """What was pushed aside stands where it was pushed, also when more was said since."""
    session = Session()
    session.push_user("a")
    session.push_ephemeral_user("aside")
    session.push_user("b")
    request = session.text_turn(ScriptedModel([])).request()
    session.push_user("c")
    assert texts(request) == ["a", "aside", "b"]
    assert texts(session.text_turn(ScriptedModel([])).request()) == ["a", "aside", "b", "c"]


def test_the_same_words_pushed_meanwhile_stay() -> None:
    """What is pushed aside while the model is busy waits for the next request."""
    session = Session()
    session.push_user("a")
    session.push_ephemeral_user("hurry")

    def busy(request: TurnRequest) -> AssistantTurn:
        if len(model.requests) == 1:
            session.push_ephemeral_user("hurry")
        return ScriptedModel.text("x")

    model = ScriptedModel(busy)
    for _ in range(3):
        session.text_turn(model).collect_sync()
    assert [texts(request).count("hurry") for request in model.requests] == [1, 1, 0]


def test_a_round_takes_the_ephemeral_items() -> None:
    """A request that ends in calls has succeeded, whatever becomes of its round."""
    session = Session()
    session.push_user("a")
    session.push_ephemeral_user("aside")
    model = ScriptedModel([turn(*adds(1)), ScriptedModel.text("x")])
    needs(session.text_turn(model).tools(Shop).collect_sync()).discard()
    session.text_turn(model).collect_sync()
    assert texts(model.requests[1]) == ["a"]


def test_branches_part() -> None:
    """A branch starts with the same items, ephemeral ones too, and then goes its own way."""
    session = Session()
    session.push_user("a")
    session.push_ephemeral_user("aside")
    branch = session.branch()
    model = ScriptedModel(lambda request: ScriptedModel.text("x"))
    branch.push_user("b")
    branch.text_turn(model).collect_sync()
    assert [texts(r) for r in model.requests] == [["a", "aside", "b"]]
    assert list(session.transcript) == [Message("user", "a")]
    session.text_turn(model).collect_sync()
    assert texts(model.requests[1]) == ["a", "aside"]
    assert (len(session.transcript), len(branch.transcript)) == (2, 3)
    check_transcript(branch.transcript)


def test_a_round_may_be_committed_to_another_session() -> None:
    """A round belongs to no session: it can be committed to a branch, or to a transcript."""
    session = Session()
    session.push_user("Go")
    model = ScriptedModel([turn(*adds(1))])
    tool_round = needs(session.text_turn(model).tools(Shop).collect_sync())
    branch = session.branch()
    tool_round.commit(branch, done(tool_round.tool_calls))
    assert (len(session.transcript), len(branch.transcript)) == (1, 3)
    check_transcript(branch.transcript)


def test_the_transcript_keeps_the_providers_turn() -> None:
    """The turn in the transcript is the very one that the model gave, payload and all."""
    function = {"name": "add", "arguments": '{"a" : 1}'}
    message = {"reasoning_details": [1], "tool_calls": [{"id": "c", "function": function}]}
    said = openai_chat.decode({"choices": [{"message": message}]})
    session = Session()
    session.push_user("Go")
    tool_round = needs(session.text_turn(ScriptedModel([said])).tools(Shop).collect_sync())
    tool_round.commit(session, done(tool_round.tool_calls))
    assert session.transcript[1] is said


@pytest.mark.parametrize("given", [None, "text", {"choices": []}])
def test_a_model_that_gives_no_turn_is_told(given: Any) -> None:
    """A model that answers with something else than a turn is a TypeError; nothing is added."""
    session = Session()
    session.push_user("Hi")
    session.push_ephemeral_user("aside")
    model: Any = SimpleNamespace(respond_sync=lambda request: given)
    with pytest.raises(MisuseError):
        session.text_turn(model).collect_sync()
    assert len(session.transcript) == 1
    assert len(session._request_items()) == 2
