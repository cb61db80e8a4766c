"""The bookshop of the typed idioms does what its types say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import AssistantTurn, NeedsTools, Session, ToolResult
from lutum_py.testing import ScriptedModel
from lutum_py.turns import RefusalItem

from .typing_bookshop import (
    Apology,
    Book,
    Receipt,
    Shop,
    by_hand,
    make_hooks,
    plainly,
    run,
    serve,
    spoken,
    stock,
    streamed,
)


@pytest.fixture(autouse=True)
def full_shelf() -> None:
    """Each test begins with what the shop had at first."""
    stock.copies = {"1": 1, "2": 0}


def asked() -> Session:
    session = Session()
    session.push_user("A book about clay, please.")
    return session


def calls(*each: tuple[str, Any]) -> AssistantTurn:
    return ScriptedModel.tool_calls(*[(f"c{i}", name, args) for i, (name, args) in enumerate(each)])


def told(session: Session) -> list[str]:
    """What the model read of its calls."""
    return [item.model_text for item in session.transcript if isinstance(item, ToolResult)]


async def test_the_loop_ends_in_a_receipt() -> None:
    """Hooks of every kind decide, handlers and functions run, and the answer is a value."""
    model = ScriptedModel(
        [
            calls(
                ("search", {"query": "clay", "limit": 9}),
                ("search", {"query": " "}),
                ("ask", {"text": "is it good?"}),
                ("ask", {"text": "you idiot"}),
                ("stock_count", {"isbn": "1"}),
                ("stock_count", {"isbn": "7"}),
                ("stock_order", {"isbn": "2"}),
            ),
            calls(("sell", {"isbn": "1"}), ("sell", {"isbn": "0"})),
            ScriptedModel.text("Here it is."),
            calls(
                ("search", {"query": "more"}),
                ("answer", {"answer": {"isbn": "1", "cents": 1200}}),
            ),
        ]
    )
    session = asked()
    answer = await serve(session, model, make_hooks(patience=1))
    assert answer == Receipt(isbn="1", cents=1200)
    assert run.missing() == ()
    assert stock.copies == {"1": 0, "2": 2}
    search, blank, good, rude, one, none, ordered, sold, never, more, accepted = told(session)
    assert [Book(**each).isbn for each in json.loads(search)] == ["1", "2"]
    assert "say what to look for" in blank
    assert (good, rude) == ("Ada says: IS IT GOOD?", "Nobody answers that.")
    assert (one, none, ordered) == ("1", "0", "2")
    assert json.loads(sold) == {"isbn": "1", "cents": 1200}
    assert "none left" in never
    assert "More clay" in more
    assert accepted == "accepted"


async def test_a_refusal_is_an_apology() -> None:
    """That there may be no answer is a case of its own."""
    refused = AssistantTurn(items=(RefusalItem("I sell nothing."),), finish_reason="stop")
    answer = await serve(asked(), ScriptedModel([refused]), make_hooks(patience=0))
    assert answer == Apology(reason="I sell nothing.")


async def test_each_call_is_told_apart_by_hand() -> None:
    """`match` gives every tool its own types, and class patterns find inputs."""
    turn = calls(
        ("search", {"query": "ton"}),
        ("sell", {"isbn": "2"}),
        ("ask", {"text": "why?"}),
        ("stock_count", {"isbn": "1"}),
        ("stock_order", {"isbn": "1"}),
    )
    outcome = Shop.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    results = [await by_hand(call) for call in outcome.round.tool_calls]
    committed = outcome.round.resolve(results)
    said = [each.model_text for each in committed.results]
    assert [each["isbn"] for each in json.loads(said[0])] == ["1"]
    assert json.loads(said[1])["cents"] == 4800
    assert said[2:] == ["about nothing: no idea", "2", "2"]


def test_a_verdict_is_a_literal() -> None:
    """An answer by format of a literal type is read without a session."""
    assert spoken(ScriptedModel.text('{"answer": "no"}')) == "no"
    assert spoken(ScriptedModel.text("maybe")) == "perhaps"
    assert spoken(calls(("sell", {"isbn": "1"}))) == "perhaps"


async def test_streams_end_in_the_answer() -> None:
    """`partial` is plain data, and the outcome's answer is of the type."""
    data = {"isbn": "1", "cents": 5}
    receipt = Receipt(isbn="1", cents=5)
    alone = ScriptedModel([calls(("answer", data))])
    assert await streamed(asked(), alone) == (data, receipt)
    beside = ScriptedModel([calls(("sell", {"isbn": "1"}), ("answer", data))])
    assert await streamed(asked(), beside) == (data, receipt)
    assert await streamed(asked(), ScriptedModel([ScriptedModel.text("No.")])) == (None, None)


def test_a_toolset_of_the_moment_runs_a_plain_loop() -> None:
    """Tools that are put together at run time are called under the prefix."""
    model = ScriptedModel(
        [
            calls(("kiosk_cover", {"isbn": "1"}), ("kiosk_order", {"isbn": "1", "copies": 3})),
            ScriptedModel.text("There you are."),
        ]
    )
    session = asked()
    assert plainly(session, model) == "There you are."
    assert told(session) == ["as on the picture", "4"]
