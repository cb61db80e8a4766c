"""A transcript becomes the messages of Chat Completions.

A turn of this dialect goes back as it came, save for what hosts send and refuse to take: empty
lists of calls, empty shells of unused fields, a call without its type or its arguments, and the
data of an audio answer, for which its id stands. The reasoning of another model is left out: hosts
name its field as they like, and some refuse one that they do not know. (OpenRouter's guide
"Reasoning tokens" sends it back to the same model; DeepSeek's guide to its reasoning model answers
400 to `reasoning_content`; OpenAI's reference has no such field.) A turn of another dialect goes
out in the neutral view. Each result becomes one message.
(OpenAI API reference: "Create chat completion", messages.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from ... import AssistantTurn, Attachment, ToolResult
from ..._text.json import JsonObject, copy_json, is_mapping, is_sequence
from .._history import History
from .._openai import OpenAIRendering, named_data, read_parts
from .._reading import named_text, send_as_text, usual_type
from .._rendering import told_apart
from ._decode import CALLS, FACTS, THOUGHTS, function_of, kind_of
from ._rules import RESULTS

_AUDIO: Final = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


class Rendering(OpenAIRendering):
    """Collect the messages of everybody."""

    facts = FACTS
    roles_with_files = frozenset({"user"})
    takes_files_in_results: ClassVar[bool] = False

    def _attached(self, attachment: Attachment) -> JsonObject | None:
        data, mime_type = attachment.base64, usual_type(attachment)
        if attachment.media_type == "image":
            return {"type": "image_url", "image_url": {"url": attachment.url}}
        if data is not None and attachment.media_type == "audio" and mime_type in _AUDIO:
            audio = {"data": data, "format": _AUDIO[mime_type]}
            return {"type": "input_audio", "input_audio": audio}
        if data is not None and attachment.media_type == "file":
            return {"type": "file", "file": named_data(attachment)}
        return None

    def _result(self, result: ToolResult, position: str) -> None:
        # Such as {"c1": {"role": "tool", "tool_call_id": "call_7"}}, noted with the turn: the
        # result of a call of the old form has another role, and goes by a name.
        form = self._answers.get(result.id)
        if form is None:
            form = {"role": "tool", "tool_call_id": self.facts.fitting_id(result.id)}
        if self.takes_files_in_results and result.attachments:
            content: Any = self.parts_of_result(result, position)
        else:
            content = named_text(result, result.attachments)
            self.lose_files(result.attachments, position, "a tool result")
        self.said.append({**form, "content": content})

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        payload = self.payload_of(turn, position)
        is_own = payload is not None and not told_apart(turn, self.model)
        if payload is None:
            message = _neutral(turn)
        else:
            message = {**copy_json(payload["choices"][0].get("message", {})), "role": "assistant"}
            if not is_own and _forget_reasoning(message):
                self.keep_back(turn, position, "the reasoning")
            _tidy(message)
        self.facts.send_names(_called(message))
        for made, call in zip(turn.tool_calls, message.get("tool_calls", ()), strict=False):
            # Another model may be of another host, which wants ids, and takes no longer ones.
            if not (is_own or call.get("id")):
                call["id"] = made.id
            self.ids.send(call, "id", is_own=is_own)
        self._answers = _answers(turn, message)
        self.said.append(message)


def _called(message: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield what holds the name of each call, in order."""
    for call in message.get("tool_calls", ()):
        yield call[kind_of(call)]
    if message.get("function_call"):
        yield message["function_call"]


# With the signatures of thoughts: Google has them in `extra_content`, also of a call, and LiteLLM
# in `provider_specific_fields`.
_REASONING: Final = (
    *("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"),
    *("extra_content", "provider_specific_fields"),
)


def _forget_reasoning(message: JsonObject) -> bool:
    """Leave reasoning out, and tell whether there was any."""
    calls = message.get("tool_calls", ())
    holders = [message, *calls, *(call[kind_of(call)] for call in calls)]
    lost = [key for each in holders for key in _REASONING if each.pop(key, None)]
    content = message.get("content")
    if is_sequence(content):
        shown = [
            each for each in content if not (is_mapping(each) and each.get("type") in THOUGHTS)
        ]
        if len(shown) < len(content):
            message["content"] = shown or None
            lost.append("content")
    return bool(lost)


def _tidy(message: JsonObject) -> None:
    """Take out of a message what hosts send and refuse to take."""
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
    for call in message.get("tool_calls", ()):
        # Some hosts send a call without its type, others one with the empty shell of the other kind
        # beside it, {"type": "function", "function": {...}, "custom": null}; OpenAI refuses both.
        call.setdefault("type", "function")
        kind = kind_of(call)
        for other in CALLS.keys() - {kind}:
            call.pop(other, None)
        send_as_text(call[kind], CALLS[kind])
    if function_of(message) is None:
        message.pop("function_call", None)
    else:
        send_as_text(message["function_call"], "arguments")
    audio = message.pop("audio", None)
    if is_mapping(audio) and audio.get("id"):
        message["audio"] = {"id": audio["id"]}
    if is_sequence(message.get("content")):
        # Some hosts send a text in place of its part, and take it back as a part only.
        message["content"] = [
            {"type": "text", "text": part} if isinstance(part, str) else part
            for part in message["content"]
        ]
    if message.get("content") is None:
        # Null is taken beside something else that the turn says; alone it is refused.
        said = ("tool_calls", "function_call", "audio", "refusal")
        message["content"] = None if any(message.get(key) for key in said) else ""


def _neutral(turn: AssistantTurn) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": turn.text}
    if turn.refusal:
        message["refusal"] = turn.refusal
    if turn.tool_calls:
        message["content"] = turn.text or None
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                # Many hosts parse the text, and refuse a blank one.
                "function": {
                    "name": call.name,
                    "arguments": call.arguments if call.arguments.strip() else "{}",
                },
            }
            for call in turn.tool_calls
        ]
    return message


# A result knows its call by our id, and is written after its turn: what it needs of the wire is put
# aside with the turn, as {"c1": {"role": "tool", "tool_call_id": "call_7"}, "c2": {"role":
# "function", "name": "add"}}.
def _answers(turn: AssistantTurn, message: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Return the form of each call's answer, by our id of the call: with the host's id, if any."""
    wire = message.get("tool_calls", ())
    answers: dict[str, JsonObject] = {}
    for index, call in enumerate(turn.tool_calls):
        # Calls of the turn are in the order of `_items` in `_decode`: those of the list first, then
        # the one of the old form.
        if index < len(wire):
            sent = wire[index]
            same = {"tool_call_id": sent["id"]} if "id" in sent else {}
            answers[call.id] = {"role": "tool", **same}
        else:
            name = message["function_call"]["name"]
            answers[call.id] = {"role": "function", "name": name}
    return answers


def read_history(history: History) -> None:
    """Read a conversation."""
    for position, message in history.listed():
        role = message["role"]
        if role == "assistant":
            response = {"choices": [{"message": message}]}
            history.respond(response, position)
            continue
        said = read_parts(message["content"], f"{position}.content", history)
        if role in RESULTS:
            history.answer(said, position)
            history.rest(message, ("role", "content", "tool_call_id", "name"), position)
        else:
            history.say(role, said, position)
            history.rest(message, ("role", "content"), position)
