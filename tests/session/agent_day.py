"""A day of an agent against a provider that counts tokens and refuses what exceeds its window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import Any

from lutum_py import (
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    ToolMetadata,
    Toolset,
    TurnRequest,
    Usage,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.tools import ResultCap
from lutum_py.window import View

WINDOW = 200_000
LIMIT = 150_000
AT_LEAST = 60_000
MOST = 20_000
"""How many bytes of a result the model reads."""

PIECE = re.compile(r"\w{1,6}|[^\w\s]|\s{2,}")
KINDS = (
    "the quick brown fox jumps over a lazy dog and looks around ",
    'def value(self, index: int) -> str:\n    return self._items[index]["name"]\n',
    "2026-03-01T08:02:11Z 17.25 -0.5 1048576 0x3f ",
    "Größe, straße, façade, naïve, 東京は晴れです。 ",
)


@tool_fn
def look(kind: int, size: int) -> str:
    """Look something up."""
    text = KINDS[kind]
    return (text * (size // len(text) + 1))[:size]


class Tools(Toolset, result_cap=ResultCap(MOST)):
    look = tool(look)


@dataclass
class Provider:
    """Counts what is sent, keeps the beginning in its cache, and asks for tools.

    Attributes:
        refused: The sizes of the requests that exceed the window.
        sent: The tokens of all requests.
        cached: How many of them were the beginning of the request before.
    """

    random: Random
    refused: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    sent: int = 0
    cached: int = 0
    _last: list[Any] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        messages = openai_chat.encode_request(request)["messages"]
        counts = [5 + sum(map(self._count, texts_in(message))) for message in messages]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(messages, self._last, strict=False))
        total, cached = 800 + sum(counts), sum(counts[: len(list(same))])
        self._last = messages
        self.sizes.append(total)
        self.sent += total
        self.cached += cached
        if total > WINDOW:
            self.refused.append(total)
        calls = [self._call(number) for number in range(self.random.choice([0, 1, 1, 1, 2, 3]))]
        text = "I will look at it. " * self.random.randint(1, 20)
        said = [text, *(part for call in calls for part in (call.name, call.arguments))]
        usage = Usage(
            input_tokens=total, output_tokens=sum(map(self._count, said)), cached_tokens=cached
        )
        return AssistantTurn(text=text, tool_calls=calls, usage=usage)

    def _call(self, number: int) -> ToolMetadata:
        kind, size = self.random.randrange(len(KINDS)), int(10 ** self.random.uniform(0, 6))
        arguments = f'{{"kind":{kind},"size":{size}}}'
        return ToolMetadata(id=f"c{len(self.sizes)}_{number}", name="look", arguments=arguments)

    def _count(self, text: str) -> int:
        count = self._known.get(text)
        if count is None:
            count = self._known[text] = len(PIECE.findall(text))
        return count


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)


@dataclass
class Day:
    """What came of it.

    Attributes:
        cuts: How often the view changed.
        errors: How far each estimate was off, as a share of what the provider counted.
        sent: How many items the last request had.
        items: How many the transcript has.
    """

    provider: Provider
    cuts: int
    errors: list[float]
    sent: int
    items: int

    @property
    def share_cached(self) -> float:
        return self.provider.cached / self.provider.sent

    @property
    def p95(self) -> float:
        return sorted(self.errors)[int(len(self.errors) * 0.95)]


def live(turns: int, seed: int = 7) -> Day:
    """Let an agent work for so many turns, with results of a byte to a megabyte."""
    provider = Provider(Random(seed))
    session, view = Session(), View()
    session.push_system("You look things up.")
    session.push_user("Begin.")
    cuts, errors = 0, []
    for _ in range(turns):
        before = view
        view = view.fit(session.transcript, limit_tokens=LIMIT, at_least=AT_LEAST, keep_last=5)
        cuts += view is not before
        expected = view.tokens(session)
        match session.text_turn(provider).tools(Tools).view(view).collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished():
                session.push_user("Go on with the next one.")
        errors.append(abs(expected - provider.sizes[-1]) / provider.sizes[-1])
    return Day(provider, cuts, errors, len(view.of(session)), len(session.transcript))
