"""The laws of views: what is cut, what never is, and what a cut says of itself."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    Session,
    ToolMetadata,
    ToolResult,
    Transcript,
    TurnRequest,
)
from lutum_py.dialects import openai_chat
from lutum_py.errors import (
    DeveloperError,
    InvalidValueError,
    MisuseError,
    SavedDataError,
    ViewError,
)
from lutum_py.testing import ScriptedModel
from lutum_py.tools import MemoryResults, ResultCap, result_reader
from lutum_py.window import View
from tests.cases import over
from tests.dialects.program_wires import ANTHROPIC, OPENAI, Wire
from tests.round_tools import Shop

PICTURE = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
LONG = "x" * 300
CLEARED = "[This result was removed to save room. Call the tool again if it is needed.]"
DROPPED = "[Earlier parts of this conversation were left out to save room.]"


def committed(number: int, output: str = LONG, name: str = "add", **fields: Any) -> CommittedRound:
    call = ToolMetadata(id=f"c{number}", name=name, arguments='{"a":1}')
    result = ToolResult(
        id=call.id,
        name=name,
        arguments=call.arguments,
        result=json.dumps(output),
        attachments=fields.pop("attachments", ()),
        status=fields.pop("status", "success"),
    )
    return CommittedRound(AssistantTurn(text=f"t{number}", tool_calls=[call], **fields), [result])


def conversation(rounds: int, **fields: Any) -> Transcript:
    """An instruction, a question, and rounds of a turn and a result: items 2 and 3, and so on."""
    transcript = Transcript()
    transcript.push(Message("system", "Be brief."))
    transcript.push(Message("user", "q0"))
    for number in range(rounds):
        transcript.append_round(committed(number, **fields))
    return transcript


def read(view: View, target: Any) -> list[str]:
    """What is read of each item that is sent."""
    return [
        item.model_text if isinstance(item, ToolResult) else item.text for item in view.of(target)
    ]


def test_a_view_is_a_small_value_beside_its_transcript() -> None:
    """It is frozen, hashable and equal by its cuts, and as small for a long transcript."""
    sizes = []
    for rounds in (10, 500):
        transcript = conversation(rounds)
        view = View().summarise(transcript, (2, 4), "They added.")
        view = view.drop_rounds(transcript, older_than=3).clear_results(transcript, older_than=1)
        assert view == View(view.cuts)
        assert hash(view) == hash(pickle.loads(pickle.dumps(view)))
        assert View.load_json(view.dump_json()) == view
        sizes.append(len(view.dump_json()))
    assert sizes[1] < sizes[0] + 40
    with pytest.raises(AttributeError):
        view.cuts = ()  # type: ignore[misc]
    with pytest.raises(MisuseError):
        View([])  # type: ignore[arg-type]


def test_an_empty_view_sends_what_is_there() -> None:
    """Without a cut all is sent, and what comes to the transcript later is in no earlier view."""
    transcript = conversation(2)
    sent = View().of(transcript)
    before = list(transcript)
    transcript.push(Message("user", "later"))
    assert list(sent) == before
    assert sent == before
    assert View().of(Session(transcript)) == list(transcript)


def test_a_view_holds_for_what_its_transcript_becomes_and_for_no_other() -> None:
    """A branch, a reloaded transcript and one that grew are its own; any other is an error."""
    session = Session(conversation(5))
    view = View().drop_rounds(session, older_than=2)
    sent = read(view, session)
    branch = session.branch()
    assert read(view, branch) == sent
    branch.push_user("more")
    assert read(view, branch) == [*sent, "more"]
    assert read(view, Transcript.load_json(session.transcript.dump_json())) == sent
    for other in (conversation(1), conversation(5, output="y" * 300)):
        with pytest.raises(ViewError):
            view.of(other)
    assert issubclass(ViewError, DeveloperError)
    with pytest.raises(MisuseError):
        view.of(7)  # type: ignore[arg-type]


def test_a_view_whose_span_would_split_a_round_is_of_another_transcript() -> None:
    """Whoever edited the transcript or the view, no round is sent in halves."""
    transcript = conversation(4)
    view = View().drop_rounds(transcript, span=(4, 8))
    for at in (2, 6):  # one round is made of two: that around the start of the cut, or its end
        saved = json.loads(transcript.dump_json())
        calls = [*saved["items"][at]["items"], saved["items"][at + 2]["items"][1]]
        saved["items"][at]["items"] = calls
        saved["items"][at + 2] = saved["items"][at + 3]
        saved["items"][at + 3] = saved["items"][1]
        edited = Transcript.load_json(json.dumps(saved))
        with pytest.raises(ViewError):
            view.of(edited)
    (cut,) = view.cuts
    with pytest.raises(ViewError):
        View((replace(cut, start=5),)).of(transcript)


def test_spans_with_something_between_them_stay_apart() -> None:
    """Of spans that say the same, only those that touch become one."""
    transcript = conversation(6)
    spans = [(2, 4), (10, 12), (6, 8)]
    view = View()
    for span in spans:
        view = view.drop_rounds(transcript, span=span)
    assert sorted((cut.start, cut.stop) for cut in view.cuts) == sorted(spans)


def test_older_results_read_a_short_text() -> None:
    """Id, name, arguments and status stay, attachments go; what is short or kept stays."""
    transcript = conversation(2, attachments=[PICTURE], status="error")
    transcript.append_round(committed(2, "short"))
    transcript.append_round(committed(3, name="pay"))
    transcript.append_round(committed(4))
    transcript.append_round(committed(5))
    view = View().clear_results(transcript, older_than=1, keep=[Shop.pay])
    results = [item for item in view.of(transcript) if isinstance(item, ToolResult)]
    assert [each.model_text for each in results] == [
        *(CLEARED, CLEARED, "short", LONG, CLEARED, LONG)
    ]
    first, whole = results[0], transcript[3]
    assert isinstance(whole, ToolResult)
    assert first.answers(ToolMetadata(id="c0", name="add", arguments='{"a":1}'))
    assert (first.status, first.attachments, first.output) == ("error", (), LONG)
    assert whole.attachments == (PICTURE,)
    assert view.clear_results(transcript, older_than=1, keep="pay") is view
    assert view.clear_results(transcript, older_than=9) is view


def test_what_no_turn_has_answered_is_never_cut() -> None:
    """The results of the last round stay, whatever is asked for."""
    transcript = conversation(3)
    for view in (
        View().clear_results(transcript, older_than=0),
        View().cap_results(transcript, max_bytes=200),
        View().drop_rounds(transcript, older_than=0),
        View().fit(transcript, limit_tokens=1, at_least=0, keep_last=0),
    ):
        assert view.cuts
        assert read(view, transcript)[-2:] == ["t2", LONG]


@over("text", ["x" * 1000, "é" * 600, "東京" * 200, "a😀" * 300])
def test_a_capped_result_has_head_and_tail_in_so_many_bytes(text: str) -> None:
    """No more bytes than asked for, no half of a character, and what was left out is said."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_round(committed(0, text, attachments=[PICTURE]))
    transcript.append_round(committed(1, "x" * 200))
    transcript.append_round(committed(2))
    for size in (200, 201, 202, 203, 500):
        view = View().cap_results(transcript, max_bytes=size, older_than=1)
        capped, short = (item for item in view.of(transcript)[:5] if isinstance(item, ToolResult))
        head, notice, tail = capped.model_text.split("\n")
        assert len(capped.model_text.encode()) <= size
        assert len(capped.model_text.encode()) > size - 12
        assert text.startswith(head)
        assert text.endswith(tail)
        left_out = len(text.encode()) - len(head.encode()) - len(tail.encode())
        assert notice == f"[... {left_out} of {len(text.encode())} bytes left out ...]"
        assert capped.attachments == (PICTURE,)
        assert short.model_text == "x" * 200
        assert view.cap_results(transcript, max_bytes=size, older_than=1) is view
    assert read(View().cap_results(transcript, max_bytes=200, keep=["add"]), transcript)[2] == text
    with pytest.raises(InvalidValueError):
        View().cap_results(transcript, max_bytes=199)


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_what_a_tool_has_capped_can_be_read_on_when_a_view_caps_it_again(letter: str) -> None:
    """The handle stays, and the place from where to read on is where the shorter head ends."""
    store, whole = MemoryResults(), f"begin{letter * 5000}end"
    (result,) = committed(0, whole).results
    capped = ResultCap(2000, store).apply(result)
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_round(CommittedRound(committed(0).turn, [capped]))
    transcript.append_round(committed(1))
    for size in (200, 201, 203, 999):
        view = View().cap_results(transcript, max_bytes=size)
        text = read(view, transcript)[2]
        assert len(text.encode()) <= size
        found = re.search(r'read_more\(handle="(\w+)", offset=(\d+)\)', text)
        assert found is not None
        assert text.startswith(whole[: int(found[2])] + "\n[")
        assert whole.endswith(text.rpartition("]\n")[2])
        assert result_reader(store)(found[1], int(found[2])).startswith(letter)
        assert view.cap_results(transcript, max_bytes=size) is view


NOTICE = (
    "\n[... {0} to {1} of {2} characters left out; "
    'read them with read_more(handle="{3}", offset={0}) ...]\n'
)
OTHERS = "0" * 32
OWN = sha256(b"x" * 2000).hexdigest()[:32]


@over(
    "numbers, handle, named",
    [
        (("9" * 5_000, "1", "1"), OTHERS, None),
        (("٣", "٣", "٣"), OTHERS, None),
        (("300", "900", "1200"), OTHERS, None),  # they add up
        (("300", "900", "1200"), OWN, None),
        (("300", "900", "1200"), OTHERS, OWN),
        (("300", "900", "1200"), OTHERS, OTHERS),
    ],
)
def test_no_text_of_a_tool_is_taken_for_the_mark_of_a_cap(
    numbers: tuple[str, ...], handle: str, named: str | None
) -> None:
    """A result that imitates the notice of a cap is cut like any other, unless it is one."""
    said = "x" * 300 + NOTICE.format(*numbers, handle) + "y" * 300
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    (call,) = committed(0).turn.tool_calls
    result = ToolResult(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        result='"short"',
        status="error",
        message=said,
        handle=named,
    )
    loaded = ToolResult.load_json(result.dump_json())
    assert loaded == result
    transcript.append_round(CommittedRound(committed(0).turn, [loaded]))
    transcript.append_round(committed(1))
    shown = read(View().cap_results(transcript, max_bytes=250), transcript)[2]
    assert len(shown.encode()) <= 250
    assert ("read_more" in shown) is (handle == named)


def test_a_cap_of_a_text_with_an_older_notice_names_its_own_handle() -> None:
    """What a tool repeats of a result that was cut is text, also where that is cut again."""
    store = MemoryResults()
    (first,) = committed(0, "x" * 2000).results
    older = ResultCap(400, store).apply(first)
    (second,) = committed(0, older.model_text * 3).results
    result = ResultCap(900, store).apply(second)
    assert result.handle != older.handle
    assert result.with_message("other").handle is None
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    transcript.append_round(CommittedRound(committed(0).turn, [result]))
    transcript.append_round(committed(1))
    shown = read(View().cap_results(transcript, max_bytes=250), transcript)[2]
    assert re.findall(r'handle="(\w+)"', shown) == [result.handle]


def test_dropped_rounds_leave_instructions_and_the_last_question() -> None:
    """A notice stands for the span; instructions go before it, the last question after it."""
    transcript = conversation(2)
    transcript.push(Message("user", "q1"))
    transcript.append_turn(AssistantTurn(text="a1"))
    transcript.push(Message("developer", "Be kind."))
    transcript.push(Message("user", "q2"))
    transcript.push(Message("user", "and q3"))
    for number in range(3, 6):
        transcript.append_round(committed(number))
    view = View().drop_rounds(transcript, older_than=2, notice="[cut]")
    kept = ["t4", LONG, "t5", LONG]
    assert read(view, transcript) == [
        *("Be brief.", "q0", "Be kind.", "[cut]", "q2", "and q3", *kept)
    ]
    assert view.of(transcript)[3] == Message("user", "[cut]")
    # Where a question is kept right behind the span, the one before it goes.
    view = View().drop_rounds(transcript, span=(2, 9), notice="[cut]")
    assert read(view, transcript)[:6] == ["Be brief.", "q0", "Be kind.", "[cut]", "q2", "and q3"]
    view = View().drop_rounds(transcript, span=(1, 8), notice="[cut]")
    assert read(view, transcript)[:4] == ["Be brief.", "[cut]", "Be kind.", "q2"]


def test_a_question_at_the_end_stays_though_more_comes() -> None:
    """What stays of a span is fixed when it is cut: a later question changes nothing of it."""
    transcript = conversation(1)
    transcript.push(Message("user", "q1"))
    transcript.append_turn(AssistantTurn(text="a1"))
    view = View().drop_rounds(transcript, span=(2, 6), notice="[cut]")
    before = read(view, transcript)
    assert before == ["Be brief.", "q0", "[cut]", "q1"]
    transcript.push(Message("user", "q2"))
    assert read(view, transcript) == [*before, "q2"]


def test_drops_are_joined_and_begin_behind_a_summary() -> None:
    """A later drop takes earlier ones in, next to one of the same notice they become one; a
    summary stays, and the next drop begins behind it.
    """
    transcript = conversation(10)
    one = View().drop_rounds(transcript, older_than=8)
    two = one.drop_rounds(transcript, older_than=5)
    assert [(cut.kind, cut.start, cut.stop) for cut in two.cuts] == [("drop", 2, 12)]
    assert two.drop_rounds(transcript, older_than=8) is two
    assert two.drop_rounds(transcript, older_than=5) is two
    assert one.drop_rounds(transcript, span=(6, 10)).cuts[0].stop == 10
    late = View().drop_rounds(transcript, span=(8, 12))
    assert [(cut.start, cut.stop) for cut in late.drop_rounds(transcript, span=(4, 8)).cuts] == [
        (4, 12)
    ]
    # A drop that would end inside another one ends where that begins.
    assert late.drop_rounds(transcript, older_than=5 + 1).cuts[0].start == 2
    assert len(late.drop_rounds(transcript, span=(4, 8), notice="other").cuts) == 2
    summed = two.summarise(transcript, (2, 14), "They added.")
    assert [(cut.kind, cut.start, cut.stop) for cut in summed.cuts] == [("summary", 2, 14)]
    more = summed.drop_rounds(transcript, older_than=2)
    assert [(cut.kind, cut.start, cut.stop) for cut in more.cuts] == [
        *(("summary", 2, 14), ("drop", 14, 18))
    ]
    assert read(more, transcript)[:4] == ["Be brief.", "q0", "They added.", DROPPED]
    again = more.summarise(transcript, (1, 18), "They asked, and added.")
    assert read(again, transcript)[:3] == ["Be brief.", "They asked, and added.", "t8"]
    nothing = Transcript()
    nothing.push(Message("user", "q"))
    assert View().drop_rounds(nothing, older_than=0) == View()


def test_what_would_change_nothing_leaves_the_view_as_it_is() -> None:
    """A drop that takes in a question alone, which stays, is none; nor is one behind a summary."""
    transcript = conversation(1)
    transcript.push(Message("user", "q1"))
    transcript.append_round(committed(1))
    dropped = View().drop_rounds(transcript, span=(2, 4))
    assert dropped.drop_rounds(transcript, span=(2, 5)) is dropped
    summed = View().summarise(transcript, (2, 4), "They added.")
    assert summed.drop_rounds(transcript, older_than=1) is summed
    assert summed.summarise(transcript, (2, 4), "They added.") is summed


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_a_program_of_the_provider_goes_or_stays_whole(wire: Wire) -> None:
    """It calls in several turns, the later of which no provider takes without the first."""
    transcript = Transcript()
    transcript.push(Message("user", "Go"))
    for response in (wire.response("c1"), wire.response("c2", begins=False)):
        turn = wire.dialect.decode(response)
        (call,) = turn.tool_calls
        result = ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")
        transcript.append_round(CommittedRound(turn, [result]))
    assert View().drop_rounds(transcript, older_than=1).cuts == ()
    transcript.append_turn(wire.dialect.decode(wire.done()))
    for number in range(3):
        transcript.append_round(committed(number))
    assert View().drop_rounds(transcript, older_than=4).cuts == ()
    cut = View().drop_rounds(transcript, older_than=2).cuts[0]
    assert (cut.start, cut.stop) == (1, 8)
    for span, words in (
        ((1, 3), "ends inside"),
        ((3, 8), "begins inside"),
        ((1, 5), "ends inside"),
    ):
        with pytest.raises(ViewError, match=f"{words} of a program.*would do: (0|1) and 6"):
            View().summarise(transcript, span, "It ran.")
    whole = View().summarise(transcript, (1, 6), "It ran.")
    said = wire.dialect.messages(whole.of(transcript))
    assert wire.dialect.check(said) == []
    assert wire.id not in str(said)


def test_a_span_that_cannot_be_cut_is_told_where_it_could_be() -> None:
    """Each reason has its own words, and names places that would do."""
    transcript = conversation(6)
    summed = View().summarise(transcript, (4, 8), "They added.")
    for view, span, words in (
        (View(), (3, 6), r"begins inside of a round.*Places that would do: 2 and 4\."),
        (View(), (4, 7), r"ends inside of a round.*Places that would do: 6 and 8\."),
        (View(), (4, 14), r"not answered yet, from item 12 on\. Places that would do: 12\."),
        (View(), (4, 4), r"is empty.*may start at 0 or later, and end at 12 or earlier\."),
        (View(), (4, 99), r"not in this transcript of 14 items"),
        (View(), (0, 1), r"holds only what is never cut.*end at 12 or earlier"),
        (View(), (1, 2), r"holds only what is never cut"),
        (summed, (2, 6), r"overlaps the summary of items 4 to 8\. Begin at 8, or end at 4\."),
        (summed, (2, 10), r"overlaps the summary"),
    ):
        with pytest.raises(ViewError, match=words):
            view.drop_rounds(transcript, span=span)
    nothing = Transcript()
    nothing.push(Message("user", "q"))
    with pytest.raises(ViewError, match="No model turn is answered, so there is nothing to cut"):
        View().summarise(nothing, (0, 1), "Nothing.")
    ended = conversation(1)
    ended.append_turn(AssistantTurn(text="Done."))
    assert read(View().summarise(ended, (1, 5), "All."), ended) == ["Be brief.", "All."]


def test_what_is_no_span_text_or_number_is_told_so() -> None:
    """Blank texts, both ways to say a span, and other types are refused before anything is cut."""
    transcript, view = conversation(3), View()
    with pytest.raises(InvalidValueError):
        view.summarise(transcript, (2, 4), " \n")
    with pytest.raises(InvalidValueError):
        view.clear_results(transcript, older_than=1, text="")
    with pytest.raises(MisuseError):
        view.drop_rounds(transcript, older_than=1, notice=None)  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        view.drop_rounds(transcript)
    with pytest.raises(MisuseError):
        view.drop_rounds(transcript, older_than=1, span=(1, 2))
    with pytest.raises(MisuseError):
        view.drop_rounds(transcript, span=3)  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        view.drop_rounds(transcript, span=("2", 4))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        view.clear_results(transcript, older_than=-1)
    with pytest.raises(MisuseError):
        view.clear_results(transcript, older_than=1, keep=[3])  # type: ignore[list-item]
    with pytest.raises(InvalidValueError):
        view.fit(transcript, limit_tokens=9, at_least=9)
    with pytest.raises(InvalidValueError):
        view.tokens(transcript, overhead=-1)
    with pytest.raises(MisuseError, match=r"`View\(\)`"):
        view.since(None)  # type: ignore[arg-type]


def test_a_text_with_half_of_a_surrogate_pair_can_be_sent() -> None:
    """A summary may come from a model; what it says is repaired as in any message, here and
    saved.
    """
    talk = conversation(4)
    half, repaired = "Gone \ud83d.", "Gone \ufffd."
    cleared = View().clear_results(talk, older_than=1, text=half)
    dropped = View().drop_rounds(talk, older_than=1, notice=half)
    for view in (cleared, dropped, View().summarise(talk, (2, 6), half)):
        assert repaired in read(view, talk)
        assert View.load_json(view.dump_json()) == view
        assert [cut.text for cut in view.cuts] == [repaired]
    assert cleared.clear_results(talk, older_than=1, text=half) is cleared
    saved = cleared.dump_json().replace("\\ufffd", "\\ud83d")
    assert View.load_json(saved) == cleared


def test_fit_cuts_nothing_below_the_limit_and_enough_above_it() -> None:
    """Results are cleared first, the oldest first, as far as needed; then rounds are dropped."""
    transcript = conversation(40)
    whole = View().tokens(transcript)
    assert View().fit(transcript, limit_tokens=whole, at_least=10) == View()
    some = View().fit(transcript, limit_tokens=whole - 1, at_least=200)
    assert [cut.kind for cut in some.cuts] == ["clear"]
    assert whole - 300 < some.tokens(transcript) <= whole - 1 - 200
    assert read(some, transcript).count(CLEARED) == 4
    assert some.fit(transcript, limit_tokens=whole - 1, at_least=200) is some
    more = some.fit(transcript, limit_tokens=whole - 201, at_least=400)
    assert [cut.kind for cut in more.cuts] == ["clear"]
    assert more.cuts[0].start == some.cuts[0].start
    most = View().fit(transcript, limit_tokens=whole // 2, at_least=whole // 4)
    assert [cut.kind for cut in most.cuts] == ["clear", "drop"]
    assert whole // 4 - 60 < most.tokens(transcript) <= whole // 2 - whole // 4
    assert read(most, transcript)[-6:] == ["t37", LONG, "t38", LONG, "t39", LONG]


def test_fit_gives_the_same_view_where_a_cut_would_free_too_little() -> None:
    """Where less than `at_least` can be freed, nothing is cut, and nothing is raised."""
    transcript = conversation(6)
    whole = View().tokens(transcript)
    view = View()
    assert view.fit(transcript, limit_tokens=whole - 1, at_least=whole - 2, keep_last=5) is view
    assert view.fit(transcript, limit_tokens=whole - 1, at_least=5, keep_last=6) is view
    assert view.fit(transcript, limit_tokens=1, at_least=0, keep_last=99) is view
    cut = view.fit(transcript, limit_tokens=1, at_least=0, keep_last=1)
    assert cut.tokens(transcript) > 1
    assert cut.fit(transcript, limit_tokens=1, at_least=0, keep_last=1) is cut


def test_fit_keeps_what_it_is_told_to_and_every_summary() -> None:
    """Results of kept tools are not cleared, and no summary is dropped."""
    transcript = conversation(4, name="pay")
    for number in range(4, 10):
        transcript.append_round(committed(number))
    view = View().summarise(transcript, (2, 4), "They paid.")
    whole = view.tokens(transcript)
    cleared = view.fit(transcript, limit_tokens=whole - 1, at_least=100, keep=[Shop.pay])
    texts = read(cleared, transcript)
    assert texts[2] == "They paid."
    assert texts[4] == texts[6] == texts[8] == LONG
    assert texts[10] == CLEARED
    dropped = view.fit(transcript, limit_tokens=whole - 1, at_least=whole // 2, keep=[Shop.pay])
    assert read(dropped, transcript)[2:4] == ["They paid.", DROPPED]


def test_a_cut_says_what_it_is_what_it_frees_and_what_it_costs() -> None:
    """Each kind is a sentence with what it frees and the place from where caches are lost."""
    transcript = conversation(8)
    whole = View().tokens(transcript)
    capped = View().cap_results(transcript, max_bytes=200, older_than=4)
    cleared = capped.clear_results(transcript, older_than=3)
    dropped = cleared.drop_rounds(transcript, span=(6, 8))
    summed = dropped.summarise(transcript, (2, 4), "They added.")
    assert [str(cut).split(":")[0] for cut in summed.cuts] == [
        "The long results in items 3 to 9 are capped",
        "The results in items 3 to 11 are cleared",
        "Items 6 to 7 are dropped",
        "Items 2 to 3 are summarised",
    ]
    assert [cut.lost_from for cut in summed.cuts] == [3, 3, 6, 2]
    assert {cut.at for cut in summed.cuts} == {len(transcript)}
    freed = sum(cut.freed for cut in summed.cuts)
    assert abs(whole - summed.tokens(transcript) - freed) <= 3
    one = View().clear_results(conversation(2), older_than=1).cuts[0]
    assert str(one) == (
        "The results in item 3 are cleared: about 56 tokens less. Caches are lost from item 3 on."
    )
    further = View().drop_rounds(transcript, older_than=6)
    assert further.drop_rounds(transcript, older_than=4).cuts[0].lost_from == 6


def test_a_cut_that_adds_tokens_says_how_many_there_are_more() -> None:
    """A summary may be longer than what it stands for."""
    (cut,) = View().summarise(conversation(2), (0, 4), "So much. " * 500).cuts
    assert cut.freed < 0
    assert f"summarised: about {-cut.freed:,} tokens more. Caches" in str(cut)


def test_what_is_new_in_a_view_is_told_without_what_it_took_in() -> None:
    """The cuts since an earlier view, each with what it freed since."""
    transcript = conversation(12)
    one = View().clear_results(transcript, older_than=9).drop_rounds(transcript, older_than=11)
    two = one.clear_results(transcript, older_than=6)
    (new,) = two.since(one)
    assert (new.kind, new.stop) == ("clear", 14)
    assert new.freed == two.cuts[-1].freed - one.cuts[0].freed
    assert new.freed > 0
    assert two.since(two) == ()
    assert two.since(View()) == two.cuts
    three = two.drop_rounds(transcript, older_than=5)
    assert [cut.kind for cut in three.since(two)] == ["drop"]


def test_a_damaged_view_is_refused_with_the_place() -> None:
    """What no view could have dumped does not load."""
    transcript = conversation(8)
    view = View().summarise(transcript, (2, 4), "One.").summarise(transcript, (4, 6), "Two.")
    view = view.cap_results(transcript, max_bytes=200)
    data = json.loads(view.dump_json())
    changes: list[tuple[Callable[[Any], object], str]] = [
        (lambda cuts: cuts[0].update(stop=1), r"items 2 to 1 of 18 are not a span"),
        (lambda cuts: cuts[0].update(stop=99), r"not a span"),
        (lambda cuts: cuts[0].update(text=" "), r"cuts\[0\]\.text: it is blank"),
        (lambda cuts: cuts[0].update(text=None), r"cuts\[0\]\.text: it is blank"),
        (lambda cuts: cuts[1].update(start=3), r"two spans have item 3"),
        (lambda cuts: cuts[2].update(max_bytes=9), r"a cap leaves 200 bytes"),
        (lambda cuts: cuts[2].update(max_bytes=None), r"a cap leaves 200 bytes"),
        (lambda cuts: cuts[0].update(kind="fold"), r"cuts\[0\]\.kind"),
        (lambda cuts: cuts[0].pop("digest"), r"cuts\[0\]\.digest: it is missing"),
    ]
    for change, words in changes:
        changed = json.loads(json.dumps(data))
        change(changed["cuts"])
        with pytest.raises(SavedDataError, match=words):
            View.load_json(json.dumps(changed))
    with pytest.raises(SavedDataError):
        View.load_json("{}")


def test_the_builder_sends_what_a_view_says() -> None:
    """The request has what is sent, the transcript gets the answer; what is no view is refused."""
    session = Session(conversation(5))
    view = View().drop_rounds(session, older_than=2)
    model = ScriptedModel([ScriptedModel.text("yes"), ScriptedModel.text("no")])
    builder = session.text_turn(model).temperature(0.5).view(view)
    builder.collect_sync()
    assert model.requests[0].items == view.of(session)[:-1]
    assert model.requests[0].temperature == 0.5
    session.push_user("And?")
    session.text_turn(model).tools(Shop).view(view).collect_sync()
    assert read(view, session)[-3:] == ["yes", "And?", "no"]
    with pytest.raises(MisuseError):
        session.text_turn(model).view(view.cuts[0])  # type: ignore[arg-type]


def test_ephemeral_messages_keep_their_places_and_follow_a_cut() -> None:
    """One before, one inside and one behind a span; after the request they are gone."""
    session = Session(conversation(1))
    session.push_ephemeral_user("e1")
    session.transcript.append_round(committed(1))
    session.push_ephemeral_user("e2")
    for number in range(2, 5):
        session.transcript.append_round(committed(number))
    session.push_ephemeral_system("e3")
    view = View().drop_rounds(session, span=(4, 8))
    cleared = view.clear_results(session, older_than=1)
    model = ScriptedModel([ScriptedModel.text("yes")] * 2)
    items = session.text_turn(model).view(view).request().items
    texts = [item.model_text if isinstance(item, ToolResult) else item.text for item in items]
    assert texts == [
        *("Be brief.", "q0", "t0", LONG, "e1", DROPPED, "e2", "t3", LONG, "t4", LONG, "e3")
    ]
    assert [items[at] for at in range(len(items))] == list(items)
    assert items[-1] == Message("system", "e3")
    session.text_turn(model).view(cleared).collect_sync()
    assert list(session.text_turn(model).view(view).request().items)[-1] == (
        AssistantTurn(text="yes", finish_reason="stop")
    )
    assert session._request_items() == list(session.transcript)


def test_an_ephemeral_message_stands_between_rounds_only() -> None:
    """Inside of a round and outside of the transcript is no place; all else is no message."""
    transcript = conversation(2)
    aside = Message("user", "by the way")
    for place in (-1, 3, 5, 7):
        with pytest.raises(ViewError, match=f"cannot stand at {place}: .* transcript of 6 items"):
            View().of(transcript, ephemeral=[(place, aside)])
    for place in (0, 2, 4, 6):
        items = View().of(transcript, ephemeral=[(place, aside)])
        assert openai_chat.check({"messages": openai_chat.messages(items)}) == []
    wrong: Any
    for wrong in (aside, (1, "by the way"), (1, aside, 2), ("1", aside)):
        with pytest.raises(MisuseError):
            View().of(transcript, ephemeral=[wrong])
    wrong = 3
    with pytest.raises(MisuseError, match=r"takes pairs of a place and a Message, .* not 3"):
        View().of(transcript, ephemeral=wrong)


def test_a_loss_is_at_the_place_in_the_transcript() -> None:
    """Behind a cut, a loss still names the item of the transcript; an ephemeral one its number."""
    transcript = conversation(5)
    video = Attachment(media_type="video", mime_type="video/mp4", url="https://e.org/a.mp4")
    transcript.push(Message("user", "Look", (video,)))
    view = View().drop_rounds(transcript, older_than=1)
    said = [(len(transcript), Message("user", "by the way", (video,)))]
    request = TurnRequest(items=view.of(transcript, ephemeral=said))
    assert [loss.where for loss in openai_chat.encode_request(request).losses] == [
        *("items[12].attachments[0]", "ephemeral[0].attachments[0]")
    ]


def test_the_wire_form_is_had_without_a_session_or_a_model() -> None:
    """A dialect's `messages` takes what a view gives, and what it gives is the caller's own."""
    transcript = conversation(4)
    view = View().drop_rounds(transcript, older_than=1)
    messages = openai_chat.messages(view.of(transcript))
    assert [message["role"] for message in messages] == [
        *("system", "user", "user", "assistant", "tool")
    ]
    messages[0]["content"] = "changed"
    messages[3]["tool_calls"].clear()
    again = openai_chat.messages(view.of(transcript))
    assert again[0]["content"] == "Be brief."
    assert len(again[3]["tool_calls"]) == 1
