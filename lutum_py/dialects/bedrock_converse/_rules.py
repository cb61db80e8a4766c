"""The rules of Converse that need no reading of turns: documents, JSON, tools that were called.

(Amazon Bedrock API reference: "DocumentBlock", "Message". "Messages can't contain duplicate
document names": ag-ui-protocol/ag-ui#2425, maximhq/bifrost#7003. "The toolConfig field must be
defined when using toolUse and toolResult content blocks": langgenius/dify#17545. "Provide a json
object for the field": sigoden/aichat#1542, deepset-ai/haystack-core-integrations#3766.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..._text.json import JsonObject, is_mapping, is_object, is_sequence, shorten
from .._blocks.rules import rules_of
from .._repair import Repairing, along, cache_marks, property_keys, text_of
from .._wire.reading import objects_in
from ._facts import BLOCKS, FACTS, allowed_name, distinct_name

MARKER: Final = "cachePoint"
MARKED: Final = ("toolConfig.tools[]", "system[]", "messages[].content[]")
"""The mark of the prompt cache, and the ways to the blocks that may be one."""

_JSON: Final = "messages[].content[].toolResult.content[].json"
_DOCUMENTS: Final = (
    "messages[].content[].document",
    "messages[].content[].toolResult.content[].document",
)


def _documents(request: JsonObject, repairing: Repairing) -> None:
    taken: dict[str, int] = {}
    for way in _DOCUMENTS:
        for holder, key, position in along(way, request):
            document = holder[key]
            if not is_object(document):
                continue
            name = document.get("name")
            allowed = allowed_name(name)
            made = distinct_name(allowed, taken)
            if name == made:
                continue
            is_odd = name != allowed
            repairing.note(
                f"{position}.name",
                "invalid_document_name" if is_odd else "duplicate_document_name",
                f"the provider does not take the name {shorten(name)}"
                if is_odd
                else f"an earlier document has the name {name!r} too",
                "Give each document of the request a name of its own, of letters, digits, single "
                "spaces, hyphens and brackets",
                f"named it {made!r}",
            )
            document["name"] = made


def _texts(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along("messages[].content", request):
        blocks = list(objects_in(holder[key])) if is_sequence(holder[key]) else []
        names = documents_alone(blocks)
        if names:
            repairing.note(
                position,
                "document_without_text",
                "a document has no text beside it",
                "Say something beside a document",
                "added a text with the name of the document",
            )
            holder[key].append({"text": names})


def documents_alone(blocks: Iterable[JsonObject]) -> str | None:
    """Return what names the documents in a message that has no text; None if nothing has to."""
    documents = [block["document"] for block in blocks if is_mapping(block.get("document"))]
    if not documents or any("text" in block for block in blocks):
        return None
    return ", ".join(str(each.get("name")) for each in documents)


def _blocks(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along("messages[].content[].reasoningContent", request):
        shown = holder[key].get("reasoningText") if is_mapping(holder[key]) else None
        if is_object(shown) and "text" not in shown:
            repairing.note(
                f"{position}.reasoningText.text",
                "missing_field",
                "reasoning needs its text, if only an empty one",
                "Send the text as it came",
                "put the empty text there",
            )
            shown["text"] = ""
    for holder, key, position in along("messages[].content[].toolResult.content[].audio", request):
        repairing.note(
            position,
            "file_in_result",
            "the result of a call takes no audio",
            "Send it in a message of the user",
            "put a note in its place, so that the model does not hear it",
        )
        del holder[key]
        holder["text"] = "[audio: it cannot be shown]"


def _json(request: JsonObject, repairing: Repairing) -> None:
    for holder, key, position in along(_JSON, request):
        value = holder[key]
        if is_mapping(value):
            continue
        repairing.note(
            position,
            "result_json_not_an_object",
            f"expected an object, got {shorten(value)}",
            "Send an object, or the JSON as a text",
            "made a text of it",
        )
        del holder[key]
        holder["text"] = "null" if value is None else text_of(value)


def _declared(request: JsonObject, repairing: Repairing) -> None:
    config = request.get("toolConfig")
    if not repairing.body or (is_mapping(config) and config.get("tools")):
        return
    tools = called(request["messages"])
    if not tools:
        return
    repairing.note(
        "toolConfig",
        "calls_without_tools",
        "the conversation has calls, and the request declares no tools",
        "Send the tools, also where the model should call none",
        "declared the tools that were called, by their names",
    )
    request["toolConfig"] = {**(config if is_mapping(config) else {}), "tools": tools}


def called(said: Iterable[Any]) -> list[JsonObject]:
    """Declare the tools that were called, which the API wants to know of."""
    names: dict[str, None] = {}
    for message in said:
        content = message.get("content") if message.__class__ is dict or is_mapping(message) else ()
        blocks: Any = content if is_sequence(content) else (content,)
        for block in blocks:
            # Asked before it is read: most blocks are something else.
            if (block.__class__ is dict or is_mapping(block)) and "toolUse" in block:
                call = BLOCKS.call_in(block)
                if call is not None:
                    name = call.get("name")
                    names[name if isinstance(name, str) else FACTS.wire_name(name)] = None
    sent = dict.fromkeys(map(FACTS.wire_name, names))
    empty: JsonObject = {"type": "object", "properties": {}}
    return [{"toolSpec": {"name": name, "inputSchema": {"json": dict(empty)}}} for name in sent]


FORM: Final = rules_of(
    BLOCKS,
    _documents,
    _texts,
    _blocks,
    _json,
    cache_marks(MARKER, *MARKED),
    property_keys(FACTS),
    _declared,
)
