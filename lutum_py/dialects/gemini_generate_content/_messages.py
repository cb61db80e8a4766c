"""A transcript becomes the contents of generateContent.

A turn of this dialect goes back as it came, with its thought signatures. The results of a turn make
one content with one part for each call, in the order of the calls; files that go with them, and
what the user says, come in a content of their own after it. A call of another provider has no
thought signature, which newer models demand: the one that Google documents for turns of other
models is in, also for those of another model of Google, whose thoughts and signatures are left
out. (Gemini API reference: "Content"; guides to function calling and to thought signatures.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, Attachment, Message, ToolResult
from ..._text.json import JsonObject, compact_json, copy_json, is_mapping, is_sequence
from ...turns import RefusalItem, TextItem
from .._findings import Loss
from .._history import History, Part
from .._reading import carried, send_as_object, usual_type
from .._rendering import FrontRendering, told_apart
from ._decode import FACTS, tidy

FOREIGN_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Base64 of `skip_thought_signature_validator`."""


class Rendering(FrontRendering):
    """Collect the contents of user and model."""

    facts = FACTS

    def _is_refused_first(self, said: JsonObject) -> bool:
        return said["role"] == "model" and _calls(said)

    def _message(self, message: Message, position: str) -> None:
        parts = self.parts_of(message.text, message.attachments, position)
        if not (parts or self.said or self._results or self._of_user):
            # The API takes empty text from the user, who so lets the model begin. It is alone,
            # so that it is sent again as it was where more is said after it.
            self.said.append({"role": "user", "parts": [{"text": ""}]})
        self._of_user += parts

    def _text(self, text: str) -> JsonObject:
        return {"text": text}

    def _attached(self, attachment: Attachment) -> JsonObject:
        data, kind = attachment.base64, {"mimeType": usual_type(attachment)}
        if data is None:
            return {"fileData": {**kind, "fileUri": attachment.url}}
        return {"inlineData": {**kind, "data": data}}

    def _write(self, results: list[JsonObject], of_user: list[JsonObject]) -> None:
        # Two contents: one of function responses may hold nothing else.
        for parts in (results, of_user):
            if parts:
                self.said.append({"role": "user", "parts": parts})

    def _result(self, result: ToolResult, position: str) -> None:
        name = self.facts.wire_name(result.name)
        response: JsonObject = {"name": name, **self._answers.get(result.id, {})}
        if result.is_error:
            response["response"] = {"error": result.model_text}
        else:
            response["response"] = {"output": _output(result)}
        self._results.append({"functionResponse": response})
        self._of_user += self.parts_of("", result.attachments, position)

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        payload = self.payload_of(turn, position)
        self._answers = {}
        if payload is None:
            content: JsonObject = {"role": "model", "parts": self._neutral(turn, position)}
        else:
            content = _replayed(payload)
            if told_apart(turn, self.model) and _forget_thoughts(content):
                self.keep_back(turn, position, "the thoughts")
        parts = content["parts"]
        sent = [part["functionCall"] for part in parts if "functionCall" in part]
        self.facts.send_names(sent)
        if payload is not None:
            # Under the name of the call as it goes back, which may be a stand-in.
            self._answers = {
                call.id: {key: fields[key] for key in ("name", "id") if fields.get(key) is not None}
                for call, fields in zip(turn.tool_calls, sent, strict=False)
            }
        before = self.said[-1] if self.said else {}
        if before.get("role") == "model" and not _calls(before):
            # The API wants a call right after the user; what is said before it goes with it.
            self.said[-1] = {**before, "parts": [*before["parts"], *parts]}
        elif parts:
            self.said.append(content)

    def _neutral(self, turn: AssistantTurn, position: str) -> list[JsonObject]:
        parts: list[JsonObject] = [
            {"text": item.text}
            for item in turn.items
            if isinstance(item, TextItem | RefusalItem) and item.text
        ]
        for number, (call, value) in enumerate(self._called_with(turn, position)):
            part: JsonObject = {"functionCall": {"name": call.name, "args": value}}
            # Only the first call of a turn is signed, also by the API itself.
            if not number:
                part["thoughtSignature"] = FOREIGN_SIGNATURE
            parts.append(part)
        return parts


def _forget_thoughts(content: JsonObject) -> bool:
    """Leave thoughts and signatures out, and tell whether there were any."""
    # In this order, since a part that is kept may be empty once its signature is gone: first it is
    # asked whether anything is lost, then thoughts go, then signatures, then what is empty by now.
    parts: list[JsonObject] = content["parts"]
    lost = any(part.get("thought") or "thoughtSignature" in part for part in parts)
    # A call may be marked as a thought, and its result needs it.
    kept = [part for part in parts if "functionCall" in part or not part.get("thought")]
    for part in kept:
        part.pop("thought", None)
        part.pop("thoughtSignature", None)
    # A signature may come alone, in a part without text.
    content["parts"] = [part for part in kept if part and part != {"text": ""}]
    calls = (part for part in content["parts"] if "functionCall" in part)
    for part in calls:
        part["thoughtSignature"] = FOREIGN_SIGNATURE
        break
    return lost


class AfterCached(Rendering):
    """Collect what comes after a cached content, which has the instructions and the beginning."""

    def _is_refused_first(self, said: JsonObject) -> bool:  # noqa: ARG002 (it is not the first)
        return False

    def _instruct(self, message: Message, position: str) -> None:
        if self.started and (message.text.strip() or message.attachments):
            text = "the cached content has the instructions, and none is sent beside it"
            self.losses.append(Loss(position, text))


def _output(result: ToolResult) -> Any:
    # What the tool says to the model, where it said something else than its output; else its output
    # as data, since the wire takes an object and the model reads that better than JSON in a text.
    if result.message is not None:
        return result.message
    try:
        return carried(result.result)
    except ValueError:
        return result.result  # as text, because no client writes so many levels


def _calls(content: Mapping[str, Any]) -> bool:
    return any("functionCall" in part for part in content["parts"])


def _replayed(payload: Mapping[str, Any]) -> JsonObject:
    content: Any = next((each.get("content") for each in payload.get("candidates", ())), None)
    replayed: JsonObject = {**copy_json(content or {}), "role": "model"}
    replayed["parts"] = [part for part in replayed.get("parts", ()) if part]
    for part in replayed["parts"]:
        if "functionCall" in part:
            send_as_object(part["functionCall"], "args")
    return replayed


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


def _said(content: object, position: str, history: History) -> Iterator[Part]:
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
