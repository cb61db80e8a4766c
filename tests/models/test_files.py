"""Files as the SDKs' own clients send them, which is what the page "Images and files" says."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from typing import Final, Literal, TypeAlias

import pytest

from lutum_py import (
    Attachment,
    Message,
    NeedsTools,
    Session,
    Toolset,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.models import LossWarning
from tests.cases import over

from .loopback import Loopback
from .said import MODEL, Said
from .wires import Wire

FileKind: TypeAlias = Literal["image", "audio", "file"]
PNG: Final = b"\x89PNG\r\n\x1a\n"
DATA: Final = "iVBORw0KGgo="
SHOT: Final = Attachment.from_bytes(PNG, "image/png", name="shot.png")


@tool_fn
def screenshot() -> list[Attachment]:
    """Take a picture."""
    return [SHOT]


class Eyes(Toolset):
    screenshot = tool(screenshot)


def far(media_type: FileKind, mime_type: str) -> Attachment:
    url = f"https://e.org/far.{mime_type.rpartition('/')[2]}"
    return Attachment(media_type=media_type, mime_type=mime_type, url=url)


FILES: Final = {
    "png": SHOT,
    "far png": far("image", "image/png"),
    "tiff": Attachment.from_bytes(PNG, "image/tiff"),
    "wav": Attachment.from_bytes(PNG, "audio/wav"),
    "far wav": far("audio", "audio/wav"),
    "flac": Attachment.from_bytes(PNG, "audio/flac"),
    "pdf": Attachment.from_bytes(PNG, "application/pdf"),
    "far pdf": far("file", "application/pdf"),
    "csv": Attachment.from_bytes(b"a,b", "text/csv"),
    "far csv": far("file", "text/csv"),
    "mp4": Attachment.from_bytes(PNG, "video/mp4"),
}
LOST: Final = {
    "openai_chat": {"far wav", "flac", "far pdf", "far csv", "mp4"},
    "openai_responses": {"wav", "far wav", "flac", "mp4"},
    "anthropic_messages": {"tiff", "wav", "far wav", "flac", "far csv", "mp4"},
    "gemini_generate_content": set[str](),
}
"""What has no place in a message of the user."""


@over("kind", FILES)
def test_a_file_of_the_user_is_sent_or_told(wire: Wire, server: Loopback, kind: str) -> None:
    """Each file reaches the server in a body that the SDK's types take, or a warning says not."""
    server.clear()
    server.replies.append(wire.reply(Said(text="I see."), "collect_sync"))
    file = FILES[kind]
    is_lost = kind in LOST[wire.name]
    asked = TurnRequest(items=[Message("user", "Look", (file,))])
    told = pytest.warns(LossWarning, match="has no place") if is_lost else nullcontext()
    with wire.make_client(server.url, False) as client, told:
        turn = wire.model(client, MODEL).respond_sync(asked)
    assert (turn.text, server.refusals) == ("I see.", [])
    sent = json.dumps(server.received[0].body)
    carried = "a,b" if kind == "csv" and wire.name == "anthropic_messages" else file.url
    assert (carried.rpartition(",")[2] in sent) != is_lost


def test_a_picture_of_a_tool_is_seen(wire: Wire, server: Loopback) -> None:
    """The next request has the picture once, as a picture; where results have none, its name."""
    call = Said(calls=(("c1", "screenshot", {}),))
    server.replies += [wire.reply(each, "collect_sync") for each in (call, Said(text="A cat."))]
    session = Session()
    session.push_user("What is on the screen?")
    with wire.make_client(server.url, False) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        model = wire.model(client, MODEL)
        match session.text_turn(model).tools(Eyes).collect_sync():
            case NeedsTools(round):
                round.commit(session, [each.call_sync() for each in round.tool_calls])
            case other:
                raise AssertionError(other)
        session.text_turn(model).tools(Eyes).collect_sync()
    assert server.refusals == []
    sent = json.dumps(server.received[1].body)
    assert sent.count(DATA) == (wire.name != "openai_chat")
    assert "shot.png" in sent
