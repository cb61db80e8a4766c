"""The rules of the Messages API that need no reading of turns: marks of the cache, results."""

from __future__ import annotations

from typing import Any, Final

from ..._text.json import JsonObject, is_mapping, is_object, is_sequence
from .._blocks.rules import rules_of
from .._repair import Repairing, along, cache_marks, property_keys
from .._wire.reading import objects_in
from ._facts import BLOCKS, FACTS

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
