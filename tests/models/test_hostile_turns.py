"""Whatever was committed, the real clients of all SDKs go on with the conversation."""

from __future__ import annotations

import pytest

from lutum_py import NeedsTools, Session, Transcript

from .loopback import Loopback
from .said import MODEL, Said
from .sent import ANSWER, sends
from .sums import Sums
from .wires import MODES, Wire, in_each, outcome_of

# A name with U+FFFD goes out as another one, and the warning about it is another test's.
pytestmark = pytest.mark.filterwarnings("ignore::lutum_py.models.LossWarning")

HALVES = Said(
    text="\ud83d and a whole \U0001f600",
    calls=(("c1", "add", {"a": 1, "b\ud83d": "\ude00"}), ("c2", "no\ud83dpe", {})),
)


@in_each("mode", MODES)
async def test_half_a_pair_stops_no_client(wire: Wire, mode: str, server: Loopback) -> None:
    """Halves of surrogate pairs in what a provider sends, and in why the round was given up, do
    not stop the next request.
    """
    server.replies.extend(wire.reply(turn, mode) for turn in (HALVES, ANSWER))
    session = Session()
    session.push_user("Go \udce9")
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        outcome = await outcome_of(turn, mode)
        assert isinstance(outcome, NeedsTools)
        outcome.round.abort(session, "left \ud83d")
        outcome = await outcome_of(turn, mode)
    assert outcome.result.text == ANSWER.text
    assert server.refusals == []
    assert "\ufffd and a whole \U0001f600" in session.transcript[1].text  # type: ignore[union-attr]
    assert Transcript.load_json(session.transcript.dump_json()) == session.transcript


def test_what_was_committed_is_sent(wire: Wire) -> None:
    """A turn that any provider might have sent, once committed, goes out by the client of any."""
    assert sends(wire, range(40)) > 10
