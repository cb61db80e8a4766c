"""The laws of counting: a provider's figures as they are, the rest by what they tell."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    Transcript,
    Usage,
)
from lutum_py.errors import MisuseError
from lutum_py.turns import ReasoningItem, ServerToolItem, TextItem
from lutum_py.window import View
from tests.cases import over


def said(transcript: Transcript, text: str, tokens: int | None = None, **fields: Any) -> None:
    """A question of a text and an answer, with what the request before it had as input."""
    transcript.push(Message("user", text))
    usage = None if tokens is None else Usage(input_tokens=tokens, **fields)
    transcript.append_turn(AssistantTurn(text="ok", usage=usage))


def of(transcript: Transcript, **options: Any) -> int:
    return View().tokens(transcript, **options)


def test_without_usage_a_quarter_of_the_bytes_is_counted() -> None:
    """Bytes of UTF-8 and not characters, a little for each item, and the overhead."""
    plain, other = Transcript(), Transcript()
    plain.push(Message("user", "a" * 4000))
    other.push(Message("user", "é" * 4000))
    assert 1000 <= of(plain) <= 1005
    assert 2000 <= of(other) <= 2005
    assert of(plain, overhead=300) == of(plain) + 300
    assert of(Transcript()) == 0


def test_what_was_reported_is_taken_as_it_is() -> None:
    """Input, and output as far as it goes back; only what came after is estimated."""
    transcript = Transcript()
    said(transcript, "a" * 4000, 1777, output_tokens=40, reasoning_tokens=30)
    assert of(transcript) == 1777 + 10
    assert of(transcript, overhead=500) == 1777 + 10
    transcript.push(Message("user", "a" * 400))
    assert 1787 + 100 <= of(transcript) <= 1787 + 105
    said(transcript, "b", 2500)
    assert 2500 < of(transcript) <= 2506
    shown = Transcript()
    shown.push(Message("user", "hi"))
    usage = Usage(input_tokens=100, output_tokens=40, reasoning_tokens=30)
    shown.append_turn(AssistantTurn(items=[ReasoningItem("so"), TextItem("ok")], usage=usage))
    assert of(shown) == 140


def test_after_a_report_a_function_of_ones_own_counts_the_rest_as_it_is() -> None:
    """What it gives are tokens: no rate of the conversation is put on them."""
    transcript = Transcript()
    said(transcript, "a" * 4000, 1777)
    after_the_report = of(transcript, count=len) - 1777
    transcript.push(Message("user", "a" * 400))
    assert of(transcript, count=len) == 1777 + after_the_report + 400
    assert 0 < after_the_report < 10


def test_a_report_that_no_text_could_be_is_not_believed() -> None:
    """Where a host leaves cached tokens out, or says nothing, the text itself is counted."""
    for tokens in (0, 3, None):
        transcript = Transcript()
        said(transcript, "a" * 4000, tokens)
        assert 1000 <= of(transcript) <= 1020
        assert of(transcript, count=len) == 4002


def test_a_report_that_is_not_believed_before_a_cut_is_not_believed_after_it() -> None:
    """A cut of what a host reports nothing of frees what its text weighs, and no more: else `fit`
    would take its own cut for enough.
    """
    transcript = Transcript()
    for number in range(20):
        said(transcript, "a" * 2000, 0)
        call = ToolMetadata(id=f"c{number}", name="add", arguments="{}")
        result = ToolResult(id=call.id, name="add", arguments="{}", result='"' + "b" * 120 + '"')
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))
    before = of(transcript)
    view = View().clear_results(transcript, older_than=0)
    assert before - view.tokens(transcript) == pytest.approx(view.cuts[0].freed, abs=2)
    fitted = View().fit(transcript, limit_tokens=before // 2, at_least=1000)
    assert [cut.kind for cut in fitted.cuts] == ["clear", "drop"]
    sent = sum(len(item.text) for item in fitted.of(transcript) if isinstance(item, Message))
    assert sent / 4 < before // 2 - 1000


def test_a_report_that_no_text_could_be_says_nothing_of_the_rate() -> None:
    """Neither do two of them: a figure that is believed later goes on at the usual rate."""
    transcript = Transcript()
    for _ in range(10):
        said(transcript, "a" * 4000, 0)
    said(transcript, "a", 9000)
    before = of(transcript)
    transcript.push(Message("user", "a" * 4000))
    assert of(transcript) - before == pytest.approx(1000, rel=0.03)


def test_what_came_after_is_estimated_by_the_reports_of_this_conversation() -> None:
    """Two reports tell how many tokens a byte has; jumps that no text explains are left out."""
    transcript = Transcript()
    tokens = 900
    for _ in range(40):
        said(transcript, "a" * 1000, tokens, output_tokens=2)
        tokens += 502
    before = of(transcript)
    transcript.push(Message("user", "a" * 10_000))
    assert of(transcript) - before == pytest.approx(5000, rel=0.03)
    transcript.append_turn(AssistantTurn(text="ok", usage=Usage(input_tokens=tokens + 90_000)))
    said(transcript, "a", 50_000, output_tokens=2)
    before = of(transcript)
    assert before == 50_002
    transcript.push(Message("user", "a" * 10_000))
    assert of(transcript) - before == pytest.approx(5000, rel=0.03)


def test_the_estimate_goes_on_from_a_cut() -> None:
    """Right after a cut it is what was reported less what was freed; the next report counts."""
    transcript = Transcript()
    tokens = 900
    for _ in range(30):
        said(transcript, "a" * 1000, tokens, output_tokens=2)
        tokens += 502
    before = of(transcript)
    view = View().drop_rounds(transcript, older_than=10)
    freed = view.cuts[0].freed
    assert freed == pytest.approx(19 * 504, rel=0.03)
    assert view.tokens(transcript) == before - freed
    again = view.drop_rounds(transcript, older_than=5)
    assert before - again.tokens(transcript) == pytest.approx(24 * 504, rel=0.03)
    said(transcript, "a", 7000)
    assert 7000 < view.tokens(transcript) < 7010
    assert View.load_json(view.dump_json()).tokens(transcript) == view.tokens(transcript)


def test_files_and_what_the_provider_ran_are_counted() -> None:
    """A file counts 1,500, its caption as text; what a server tool gave is in the turn."""
    picture = Attachment(
        media_type="image", mime_type="image/png", url="https://e.org/a.png", caption="a" * 400
    )
    transcript = Transcript()
    transcript.push(Message("user", "", (picture, picture)))
    assert 3200 <= of(transcript) <= 3210
    ran = ServerToolItem("web_search_call", {"found": "a" * 4000})
    transcript.append_turn(AssistantTurn(items=[ran]))
    assert 4200 <= of(transcript) <= 4220


def test_a_function_of_ones_own_is_asked_once_for_each_text() -> None:
    """Whatever is asked for how often, no text is counted twice, not in a cut either."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    transcript, view = Transcript(), View()
    for number in range(12):
        call = ToolMetadata(id=f"c{number}", name="add", arguments=f'{{"a":{number}}}')
        result = ToolResult(
            id=call.id, name="add", arguments=call.arguments, result=json.dumps(f"{number}" * 200)
        )
        transcript.push(Message("user", f"q{number}"))
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))
        view = view.fit(transcript, limit_tokens=1200, at_least=500, keep_last=1, count=count)
        assert view.tokens(transcript, count=count) <= 1200
    assert [cut.kind for cut in view.cuts] == ["clear", "drop"]
    assert len(asked) == len(set(asked))
    assert "q11" in asked
    whole = sum(map(len, asked)) - sum(len(cut.text or "") for cut in view.cuts)
    assert View().tokens(transcript, count=count) == pytest.approx(whole, abs=12 * len("add"))
    assert View().tokens(transcript, count=lambda _: 1) == 4 * 12


@over("wrong", [lambda _: "7", lambda _: 1.5, lambda _: -1, lambda _: None, 7])
def test_what_counts_no_tokens_is_told_so(wrong: Any) -> None:
    """Another answer than a number of tokens is refused, and harms no later count."""
    transcript = Transcript()
    said(transcript, "a" * 400)
    with pytest.raises(MisuseError):
        of(transcript, count=wrong)
    assert of(transcript, count=len) == 402


def test_no_figure_of_a_provider_is_too_large_to_be_counted() -> None:
    """Whatever a host reports for its turns, they are counted, and a view can be cut."""
    transcript = Transcript()
    for tokens in (2**62, 2**62, -(2**62), 10**30):
        said(transcript, "a" * 400, tokens, output_tokens=tokens)
    assert of(transcript) == pytest.approx(2 * 10**30)
    view = View().fit(transcript, limit_tokens=500, at_least=100, keep_last=1)
    assert [cut.kind for cut in view.cuts] == ["drop"]


def test_threads_count_and_render_as_one_does() -> None:
    """Many threads that ask of one transcript at once get what one gets."""
    from lutum_py.dialects import openai_chat

    transcript = Transcript()
    for number in range(200):
        said(transcript, f"q{number}" * 50)
    view = View().drop_rounds(transcript, older_than=100)
    fresh = Transcript.load_json(transcript.dump_json())
    wanted = (view.tokens(transcript), openai_chat.messages(view.of(transcript)))
    got: list[Any] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(5):
            got.append((view.tokens(fresh), openai_chat.messages(view.of(fresh))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [wanted] * 40
