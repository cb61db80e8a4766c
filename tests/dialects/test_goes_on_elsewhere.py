"""A conversation that began at one provider goes on at each of the others, and comes back."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, NamedTuple

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    ToolDef,
    ToolMetadata,
    ToolResult,
    TurnRequest,
)
from lutum_py.dialects import DIALECTS, openai_chat
from lutum_py.dialects.hosts import Host
from tests.cases import over

from .every_dialect import OF_LIBRARY, response_of
from .test_hosts import HOSTS, refusal

# One and the same name, and one that no provider takes as it is.
PICTURE = Attachment.from_bytes(b"\x89PNG picture of the user", "image/png", name="view.png")
DOCUMENT = Attachment.from_bytes(b"%PDF-1 of the user", "application/pdf", name="report: 1.pdf")
MADE_PICTURE = Attachment.from_bytes(b"\x89PNG picture of a tool", "image/png", name="view.png")
MADE = Attachment.from_bytes(b"%PDF-1 of a tool", "application/pdf", name="report: 1.pdf")
FILES = (PICTURE, DOCUMENT)
MADE_FILES = (MADE_PICTURE, MADE)
WHY = "The disk is full."
TOOL = ToolDef.from_json_schema(name="draw", input_schema={"type": "object"})


class Provider(NamedTuple):
    """A dialect, and one of its hosts if it has any."""

    name: str
    host: str | None = None

    @property
    def dialect(self) -> Any:
        """The module."""
        return import_module(DIALECTS[self.name])

    @property
    def record(self) -> Host | None:
        """The record of the host."""
        return None if self.host is None else HOSTS[self.host]

    def turn(self, number: int) -> AssistantTurn:
        """What its model says: words, and two calls of the same ids in every turn."""
        calls = [
            ToolMetadata(id=f"call_{at}", name="draw", arguments=f'{{"at":{at}}}') for at in (1, 2)
        ]
        said = response_of(self.name, AssistantTurn(text="I draw.", tool_calls=calls), number)
        made: AssistantTurn = self.dialect.decode(said)
        return made

    def sent(self, items: list[Any]) -> Any:
        """What goes out to it, which it takes."""
        request = TurnRequest(items=items, tools=(TOOL,))
        body = self.dialect.encode_request(request, host=self.record)
        plain = dict(body)
        assert self.dialect.check(plain, host=self.record) == [], self
        assert self.dialect.repair(plain, host=self.record) == (plain, []), self
        if self.name == openai_chat.NAME and self.host is not None:
            assert refusal(self.host, plain) is None, self
        return body


WITH_HOSTS = [name for name in OF_LIBRARY if name.startswith("openai_")]
PROVIDERS = [
    *map(Provider, OF_LIBRARY),
    *(Provider(name, host) for name in WITH_HOSTS for host in HOSTS),
]


def answered(turn: AssistantTurn) -> list[Any]:
    """A round: a result with a picture and a document, and one that is an error."""
    drawn: dict[str, Any] = {"result": '"Drawn."', "attachments": MADE_FILES}
    failed: dict[str, Any] = {"result": json.dumps(WHY), "status": "error"}
    return [
        turn,
        *(
            ToolResult(id=call.id, name=call.name, arguments=call.arguments, **said)
            for call, said in zip(turn.tool_calls, (drawn, failed), strict=True)
        ),
    ]


def nothing_is_lost_in_silence(body: Any, items: list[Any]) -> None:
    """Each file is in a request, or a loss, and one of a tool is named then; each error is read."""
    said = json.dumps(body)
    count = sum(isinstance(item, AssistantTurn) for item in items)
    assert (said.count(WHY), said.count("Drawn."), said.count("I draw.")) == (count,) * 3
    lost = {loss.where for loss in body.losses}
    for file in (*FILES, *MADE_FILES):
        places = [
            f"items[{at}].attachments[{item.attachments.index(file)}]"
            for at, item in enumerate(items)
            if file in getattr(item, "attachments", ())
        ]
        assert said.count(str(file.base64)) == len([each for each in places if each not in lost])
        if file in MADE_FILES and not lost.isdisjoint(places):
            assert str(file.name) in said


# What a host says is what its dialect says, so each dialect begins once, for all of its hosts.
@over("origin", OF_LIBRARY)
def test_a_conversation_goes_on_at_every_other_provider(origin: str) -> None:
    """With pictures, documents and an error in it, what one provider began is taken by each of the
    others, whose turn goes back to the first; nothing of it is lost without a word.
    """
    start = [Message("system", "Be brief."), Message("user", "Look", FILES)]
    began = [*start, *answered(Provider(origin).turn(1))]
    for other in PROVIDERS:
        nothing_is_lost_in_silence(other.sent(began), began)
        went_on = [*began, Message("user", "Look", FILES), *answered(other.turn(2))]
        first = [each for each in PROVIDERS if each.name == origin and other.host is None]
        for each in (other, *first):
            nothing_is_lost_in_silence(each.sent(went_on), went_on)
