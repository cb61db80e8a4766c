"""Contents of generateContent become a transcript.

What the model says is read as the content of a candidate, and is the payload of its turn. The
responses at the head of a content answer its calls, and what follows them is what the user
says. Both ways of writing a key are read. (Gemini API reference: "Content".)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._text.json import compact_json, is_mapping, is_sequence
from ..._transcript.message import Attachment
from .._wire.history import History, Part
from ._decode import tidy


def read_history(history: History) -> None:
    """Read contents; the `systemInstruction` of a body becomes the first messages.

    A function response is read as `{"output": ...}` or `{"error": "..."}`; one of another shape is
    the output, whole, or an error, if it has one.
    """
    for key in ("systemInstruction", "system_instruction"):
        history.say(
            "system", _said(history.as_json(tidy, history.body.get(key), key), key, history), key
        )
    said: list[Any] = []
    started = ""
    for position, given in history.listed():
        content = history.as_json(tidy, given, position)
        if content.get("role") == "model":
            # The API counts contents of the model that follow each other as one turn.
            started = started if said else position
            said += _listed(content["parts"])
            history.rest(content, ("role", "parts"), position)
            continue
        _turn(said, started, history)
        said = []
        parts = _listed(content["parts"])
        for index, part in enumerate(parts):
            if "functionResponse" in part:
                where = f"{position}.parts[{index}]"
                _answer(part["functionResponse"], f"{where}.functionResponse", history)
                history.rest(part, ("functionResponse",), where)
        if not all("functionResponse" in part for part in parts):
            history.say("user", _said(content, position, history), position)
        history.rest(content, ("role", "parts"), position)
    _turn(said, started, history)


def _listed(parts: Any) -> list[Any]:
    return [parts] if is_mapping(parts) else list(parts)


def _turn(parts: list[Any], position: str, history: History) -> None:
    if parts:
        response = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
        history.respond(response, position)


def _answer(response: Mapping[str, Any], position: str, history: History) -> None:
    # {"output": 3} and {"error": "..."} are what this library writes. Other programs write any
    # object, as {"sum": 3}: that one is the output as a whole, and the loss says that it comes back
    # one level deeper.
    given = response["response"]
    where = f"{position}.response"
    files = tuple(_files(response.get("parts") or (), f"{position}.parts", history))
    if files:
        history.lose(f"{position}.parts", "the files come back after the results")
    is_error = given.get("error") is not None
    key = "error" if is_error else "output"
    if given.keys() != {key} or (is_error and not isinstance(given[key], str)):
        history.lose(where, f"a response of this shape comes back under `{key}`")
        given = given if given.keys() != {key} else given[key]
    else:
        given = given[key]
    history.answer_json(
        history.as_json(compact_json, given, where), position, is_error=is_error, attachments=files
    )
    history.rest(response, ("id", "name", "response", "parts"), position)


def _said(content: Any, position: str, history: History) -> Iterator[Part]:
    """Read what is said in a content, or in an instruction, which may be text or one part."""
    if isinstance(content, str):
        yield content
        return
    listed = content.get("parts", content) if is_mapping(content) else content
    parts = _listed(listed) if is_mapping(listed) or is_sequence(listed) else []
    for index, part in enumerate(parts):
        where = f"{position}.parts[{index}]"
        if isinstance(part, str):
            yield part
        elif is_mapping(part) and isinstance(part.get("text"), str):
            yield part["text"]
            history.rest(part, ("text",), where)
        elif not is_mapping(part) or "functionResponse" not in part:
            yield from _files([part], f"{position}.parts", history, index)


def _files(parts: Any, position: str, history: History, first: int = 0) -> Iterator[Attachment]:
    for index, part in enumerate(parts, first):
        where = f"{position}[{index}]"
        key = next((key for key in ("inlineData", "fileData") if key in part), None)
        if key is None or not is_mapping(part[key]):
            history.lose(where)
            continue
        fields = part[key]
        yield from history.file(
            where,
            url=fields.get("fileUri"),
            data=fields.get("data"),
            mime_type=fields.get("mimeType"),
            name=fields.get("displayName"),
        )
        history.rest(part, (key,), where)
        history.rest(fields, ("mimeType", "fileUri", "data", "displayName"), f"{where}.{key}")
