"""The law that what was committed can be sent, as a function of one SDK and many turns."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from lutum_py import TurnRequest
from lutum_py.errors import DialectError
from lutum_py.turns import TranscriptItem
from tests.dialects.mutations import committed, mutated, responses
from tests.dialects.wire_laws import MODULES

from .loopback import serving
from .said import MODEL, Said
from .wires import Wire

ANSWER = Said(text="Well.")


def conversations(seeds: Iterable[int]) -> Iterable[list[TranscriptItem]]:
    """Give conversations with a turn that some provider might have sent, and that was decoded."""
    for seed in seeds:
        random = Random(seed)
        dialect = random.choice(MODULES)
        try:
            turn = dialect.decode(mutated(random.choice(responses(dialect.NAME)), random))
        except DialectError:
            continue
        items = committed(turn)
        if items is not None:
            yield items


def sends(wire: Wire, seeds: Iterable[int]) -> int:
    """Hold that the SDK's own client sends each conversation; give how many there were."""

    def judge(body: dict[str, object]) -> list[str]:
        return [str(violation) for violation in wire.dialect.check(body)]

    count = 0
    with serving(judge) as server:
        client = wire.make_client(server.url, False)
        model = wire.model(client, MODEL)
        for items in conversations(seeds):
            server.replies.append(wire.reply(ANSWER, "collect_sync"))
            turn = model.respond_sync(TurnRequest(items=items))
            assert (turn.text, server.refusals) == (ANSWER.text, [])
            count += 1
        client.close()
    return count
