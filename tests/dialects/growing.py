"""Conversations that grow as a program lets them grow, and the cuts that it makes on the way."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from hypothesis import strategies as st

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    Usage,
    tool,
    tool_fn,
)
from lutum_py.dialects import DIALECTS
from lutum_py.errors import ViewError
from lutum_py.testing import strategies
from lutum_py.typing import ResultStatus
from lutum_py.window import View

from .every_dialect import KEYS, OF_LIBRARY, response_of


@tool_fn
def search(query: str, limit: int = 5) -> str:
    """Search."""
    return query


@tool_fn
def read(path: str) -> str:
    """Read."""
    return path


class Tools(Toolset):
    search = tool(search)
    read = tool(read)


TURNS = strategies.turns(Tools, odd_ids=False)
SPOKEN = st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: f"said {text}")
BLANK = st.sampled_from(["", " ", "\n"])
OUTPUTS = st.integers(0, 900).map(lambda size: "ab é" * (size // 4)) | st.text(max_size=5)
PICTURE = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
STATUSES: st.SearchStrategy[ResultStatus] = st.sampled_from(
    ["success", "success", "error", "rejected", "cancelled"]
)
USAGES = st.none() | st.builds(
    Usage, input_tokens=st.integers(0, 4000), output_tokens=st.none() | st.integers(0, 300)
)


def dialect_of(name: str) -> Any:
    return import_module(DIALECTS[name])


def closed(name: str, body: dict[str, Any]) -> str:
    """Give what was said in a body, without the brackets that its end closes."""
    return json.dumps(body[KEYS[name]]).rstrip("]}")


@st.composite
def rounds(draw: st.DrawFn, number: int) -> CommittedRound:
    """A turn of any provider, or of none, with its results; ids come in no other round."""
    said = draw(TURNS)
    metadatas = [
        ToolMetadata(id=f"c{number}_{index}", name=call.name, arguments=call.arguments)
        for index, call in enumerate(said.tool_calls if draw(st.integers(0, 3)) else ())
    ]
    turn = AssistantTurn(text=said.text, tool_calls=metadatas, usage=draw(USAGES))
    home = draw(st.sampled_from([*OF_LIBRARY, None]))
    if home is not None and (metadatas or said.text):
        turn = dialect_of(home).decode(response_of(home, turn, number + 1))
    results = [
        ToolResult(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            result=json.dumps(draw(OUTPUTS)),
            status=draw(STATUSES),
            attachments=[PICTURE] * draw(st.sampled_from([0, 0, 1])),
        )
        for call in turn.tool_calls
    ]
    return CommittedRound(turn, results)


def grow(data: st.DataObject, transcript: Transcript, number: int, *, instruct: bool) -> bool:
    """Let something be said; tell whether it was an instruction."""
    what = data.draw(st.sampled_from(["round", "round", "round", "user", "blank", "instruct"]))
    if what == "round":
        committed = data.draw(rounds(number))
        if committed.results:
            transcript.append_round(committed)
        else:
            transcript.append_turn(committed.turn)
    elif what == "instruct" and instruct:
        transcript.push(Message("system", data.draw(SPOKEN)))
        return True
    elif what == "blank":
        transcript.push(Message("user", data.draw(BLANK)))
    else:
        pictures = (PICTURE,) * data.draw(st.sampled_from([0, 0, 1]))
        transcript.push(Message("user", data.draw(SPOKEN), pictures))
    return False


def cut(data: st.DataObject, view: View, transcript: Transcript) -> View:
    """Cut somewhere; a span that cannot be cut leaves the view as it is."""
    older = st.integers(0, 4)
    keep: st.SearchStrategy[list[Any]] = st.sampled_from([[], [], [Tools.read], ["search"]])
    ends = st.integers(0, len(transcript))
    way = data.draw(st.sampled_from(["clear", "cap", "drop", "span", "summary", "fit"]))
    if way == "clear":
        text = data.draw(st.sampled_from(["[gone]", "[the result was removed]"]))
        return view.clear_results(
            transcript, older_than=data.draw(older), keep=data.draw(keep), text=text
        )
    if way == "cap":
        size = data.draw(st.integers(200, 400))
        return view.cap_results(
            transcript, max_bytes=size, older_than=data.draw(older), keep=data.draw(keep)
        )
    if way == "drop":
        return view.drop_rounds(transcript, older_than=data.draw(older))
    if way == "fit":
        limit = data.draw(st.integers(1, 2000))
        return view.fit(
            transcript,
            limit_tokens=limit,
            at_least=data.draw(st.integers(0, limit - 1)),
            keep_last=data.draw(older),
            keep=data.draw(keep),
        )
    try:
        span = (data.draw(ends), data.draw(ends))
        if way == "span":
            return view.drop_rounds(transcript, span=span)
        return view.summarise(transcript, span, "They talked.")
    except ViewError:
        return view
