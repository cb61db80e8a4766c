"""A transcript becomes the messages of the Messages API.

The thinking of another model is left out, as on all such wires. (Guide "Preserved thinking", on
switching models; what clients met: anomalyco/opencode#25005, flexion/opencode#17.) So is thinking
before which a view has cut something since: newer models sign it with all that was sent before, and
refuse it where that has changed; what they think after the cut is valid again. (Guide "Prefix
checks on thinking blocks"; earendil-works/pi#9391.) Only manual thinking keeps it: the models that
have that sign no prefix, and refuse a last turn that does not begin with its thinking. (Guide
"Thinking", on tool use.) Images and PDF files go by address or as data, plain text as text; there
is no block for audio and video. (Anthropic API reference: "Messages", input content blocks; guide
to tool use: "Handle tool calls".)
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ... import AssistantTurn, Attachment, ToolResult
from ..._text.json import JsonObject, copy_json, is_mapping, is_object, is_sequence
from ...turns import ServerToolItem
from .._blocks import BlockRendering, read_messages, rules_of
from .._findings import Loss
from .._history import History, Part
from .._offered import NativeSearch
from .._reading import (
    named_text,
    objects_in,
    send_as_object,
    text_or_none,
    usual_type,
)
from .._rendering import ModelNames, own_payload
from .._repair import Repairing, along, cache_marks, property_keys
from ._decode import BLOCKS, FACTS, PROGRAM

MARKER: Final = "cache_control"
MARKED: Final = ("tools[]", "system[]", "messages[].content[]", "messages[].content[].content[]")
"""The mark of the prompt cache, and the ways to the blocks that may have it."""

SILENT_ERROR: Final = "The tool failed and gave no reason."
"""What an error says that says nothing, which the API refuses."""

NULLABLE: Final = {
    "char_location": "document_title",
    "page_location": "document_title",
    "content_block_location": "document_title",
    "web_search_result_location": "title",
    "search_result_location": "title",
}
"""The field of a citation, by its type, that comes as null and that the API wants to be there."""


def _blocks(request: JsonObject, repairing: Repairing) -> None:
    for holder, place, position in along("messages[].content[]", request):
        block = holder[place]
        if not is_object(block):
            continue
        if block.get("type") == "tool_result":
            _result(block, f"{position}.content", repairing)
        for citation in objects_in(block.get("citations")):
            nullable = NULLABLE.get(str(citation.get("type")))
            if "file_id" in citation or not (nullable is None or nullable in citation):
                repairing.note(
                    f"{position}.citations",
                    "citation_not_sendable",
                    "a citation lacks its title, or has the id of a file",
                    "Send the title of a citation, if only as null, and no `file_id`",
                    "made it as requests have it",
                )
                make_sendable(citation)


def make_sendable(citation: JsonObject) -> None:
    """Let a citation have the fields that requests have, which are not those of responses."""
    nullable = NULLABLE.get(str(citation.get("type")))
    if nullable is not None:
        citation.setdefault(nullable, None)
    citation.pop("file_id", None)


# "content cannot be empty if `is_error` is true": jlevy/markform#153. "all content must be type
# 'text' if 'is_error' is true": vellum-ai/vellum-assistant#18387.
def _result(result: JsonObject, position: str, repairing: Repairing) -> None:
    content = result.get("content")
    is_error = bool(result.get("is_error"))
    if is_sequence(content):
        kept: list[Any] = []
        for place, block in enumerate(content):
            kind = block.get("type") if is_mapping(block) else None
            if kind == "text" and not str(block.get("text") or "").strip():
                fault = ("empty_text", "the text is blank", "Leave the block out")
            elif is_error and kind != "text":
                problem = "an error has something beside text"
                fault = ("file_in_error", problem, "Send the text alone")
            else:
                kept.append(block)
                continue
            repairing.note(f"{position}[{place}]", *fault, "removed the block")
        if len(kept) < len(content):
            result["content"] = content = kept
    if is_error and not (content.strip() if isinstance(content, str) else content):
        repairing.note(
            position,
            "error_without_text",
            "the result is an error, and says nothing",
            "Send what went wrong",
            "put a text there that says that the tool failed",
        )
        result["content"] = SILENT_ERROR


FORM: Final = rules_of(BLOCKS, _blocks, cache_marks(MARKER, *MARKED), property_keys(FACTS))


_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class Rendering(BlockRendering):
    """Collect the messages of user and assistant."""

    facts = FACTS
    form = BLOCKS
    found: NativeSearch | None
    growing = (*BlockRendering.growing, "unsent")
    container: str | None = None
    """Where that waits which the last turn began to run."""
    _has_server_calls = False

    def __init__(self, model: ModelNames = None, found: NativeSearch | None = None) -> None:
        super().__init__(model, found)
        self.unsent: list[Loss] = []
        """What `to_send` leaves out."""

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        super()._turn(turn, position)
        payload = own_payload(turn, FACTS.name) or {}
        if any(isinstance(item, ServerToolItem) for item in turn.items):
            self._has_server_calls = True
        # Nothing else that the turn ran goes on, and containers end.
        waits = turn.tool_calls or turn.finish_reason == "pause_turn"
        box = payload.get("container") if waits else None
        self.container = text_or_none(box.get("id")) if is_mapping(box) else None

    def to_send(self) -> list[JsonObject]:
        """Return what was said, for a request, without what the provider did not run to its end.

        Raises:
            InvalidValueError: The API refuses how it begins.
        """
        said = super().to_send()
        if self._has_server_calls:
            for (index, place), (_, why) in sorted(
                BLOCKS.unpaired(self.said).items(), reverse=True
            ):
                where = f"messages[{index}].content[{place}]"
                self.unsent.insert(0, Loss(where, f"it is not sent: {why}"))
                self._without(index, place)
        return said

    def _without(self, index: int, place: int) -> None:
        content = self.said[index]["content"]
        del content[place]
        while content and BLOCKS.is_reasoning(content[-1]):
            content.pop()
        if not content:
            del self.said[index]
            if self.lasting is not None and self.lasting[0] > index:
                self.lasting = (self.lasting[0] - 1, self.lasting[1])

    def _content_of(self, payload: Mapping[str, object]) -> Any:
        return payload["content"]

    def _is_reasoning_void(self, turn: AssistantTurn) -> bool:
        # Other vendors of this format sign nothing.
        is_bound = turn.model is None or "claude" in turn.model.lower()
        return self.is_changed_before and not self.whole and is_bound

    def _replayed(self, block: Mapping[str, object]) -> JsonObject:
        replayed: JsonObject = copy_json(block)
        for citation in objects_in(replayed.get("citations")):
            make_sendable(citation)
        if replayed["type"] == "tool_use":
            send_as_object(replayed, "input")
        return replayed

    def _result_block(self, result: ToolResult, answers: JsonObject, position: str) -> JsonObject:
        block: JsonObject = {"type": "tool_result", **answers}
        # What a search found goes out as names only, and the API puts the definitions there, each
        # at the place where it was found. So the beginning of the request stays the same, and in
        # the cache.
        found = [] if self.found is None else self.found.found_by(result)
        if found:
            self.loaded.update(found)
            # The API writes out itself what each of these refers to.
            names = map(self.facts.wire_name, found)
            loaded = [{"type": "tool_reference", "tool_name": name} for name in names]
            return {**block, "content": loaded}
        if result.is_error:
            text = named_text(result, result.attachments)
            self.lose_files(result.attachments, position, "an error")
            return {**block, "content": text if text.strip() else SILENT_ERROR, "is_error": True}
        block["content"] = (
            self.parts_of_result(result, position) if result.attachments else result.model_text
        )
        return block

    def _attached(self, attachment: Attachment) -> JsonObject | None:
        source = _source(attachment)
        if source is None or attachment.media_type == "image":
            return source and {"type": "image", "source": source}
        titled = {"title": attachment.name} if attachment.name else {}
        return {"type": "document", "source": source, **titled}


def _source(attachment: Attachment) -> JsonObject | None:
    # By address go images and PDF files; as data these and plain text, which the API wants as a
    # text and not in base64. None is a file without a block, which the model is told about by its
    # name.
    data, mime_type = attachment.base64, usual_type(attachment)
    is_image = attachment.media_type == "image"
    is_pdf = attachment.media_type == "file" and mime_type == "application/pdf"
    if data is None:
        return {"type": "url", "url": attachment.url} if is_image or is_pdf else None
    if is_pdf or (is_image and mime_type in _IMAGES):
        return {"type": "base64", "media_type": mime_type, "data": data}
    if attachment.media_type == "file" and mime_type.startswith("text/"):
        with suppress(ValueError):  # a history may hold what is no base64
            plain = base64.b64decode(data).decode("utf-8", "replace")
            return {"type": "text", "media_type": "text/plain", "data": plain}
    return None


def is_manual(extra: Mapping[str, object]) -> bool:
    """Tell whether a request asks for thinking with a budget, which newer models do not take."""
    thinking = extra.get("thinking")
    return is_mapping(thinking) and thinking.get("type") == "enabled"


def called_from(offer: list[JsonObject], extra: Mapping[str, object]) -> list[JsonObject]:
    """Let the tools on offer be called from the version of code execution that a request has."""
    # A tool that programs may call names the version of what runs them. Which one the request has
    # is in the extras, {"tools": [{"type": "code_execution_20260120", ...}]}, and only the user
    # knows it.
    kinds = [str(tool.get("type")) for tool in objects_in(extra.get("tools"))]
    version = next((kind for kind in kinds if kind.startswith("code_execution_")), PROGRAM)
    for tool in offer:
        callers = tool.get("allowed_callers", ())
        if callers:
            tool["allowed_callers"] = [version if each == PROGRAM else each for each in callers]
    return offer


def read_history(history: History) -> None:
    """Read a conversation; the `system` of a body becomes the first messages."""
    # It waits for the results of the last turn with programs, so it is put into each response that
    # is read: `Rendering` sends only that of the last turn.
    box = history.body.get("container")
    # A name alone, or an object with what is in it.
    kept = {} if box is None else {"container": box if is_mapping(box) else {"id": box}}
    read_messages(history, BLOCKS, _parts, _answer, lambda content: {"content": content, **kept})


def _answer(block: Mapping[str, object], position: str, history: History) -> None:
    said = _parts(block.get("content"), f"{position}.content", history)
    history.answer(said, position, is_error=bool(block.get("is_error")))
    history.rest(block, ("type", "tool_use_id", "content", "is_error"), position)


def _parts(content: object, position: str, history: History) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    elif is_sequence(content):
        for index, block in enumerate(content):
            where = f"{position}[{index}]"
            kind = block.get("type") if is_mapping(block) else None
            if kind == "text" and isinstance(block.get("text"), str):
                yield block["text"]
                history.rest(block, ("type", "text"), where)
            elif kind in ("image", "document") and is_mapping(block.get("source")):
                yield from _file(block, where, history)
            elif kind != "tool_result":
                history.lose(where)


def _file(block: Mapping[str, Any], where: str, history: History) -> Iterator[Attachment]:
    source, kind = block["source"], block["type"]
    data, mime_type = source.get("data"), source.get("media_type")
    if source.get("type") == "text" and isinstance(data, str):
        data = base64.b64encode(data.encode()).decode("ascii")
        mime_type = mime_type or "text/plain"
    elif kind == "document" and mime_type is None:
        mime_type = "application/pdf"  # no other document has an address
    yield from history.file(
        where,
        url=source.get("url"),
        data=data,
        mime_type=mime_type,
        media_type="image" if kind == "image" else "file",
        name=block.get("title"),
    )
    history.rest(block, ("type", "source", "title"), where)
