"""What OpenAI's two request formats have in common: their parameters, and the parts of files.

Chat Completions takes images by address, audio as WAV or MP3 data and files as data, in user
messages only. Responses takes images and files, by address or as data, in messages and in the
outputs of tools. (OpenAI API reference: "Create chat completion", "Create a model response".)
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from .._text.json import is_mapping
from .._transcript.message import Attachment, MediaType, data_url
from ._dialect import Draft
from ._wire.history import History, Part
from ._wire.rendered_items import data_of

_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def chat_part(attachment: Attachment) -> dict[str, Any] | None:
    """Make the part of a user message of Chat Completions."""
    data = data_of(attachment)
    if attachment.media_type == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    if attachment.media_type == "audio" and data is not None and attachment.mime_type in _AUDIO:
        audio = {"data": data, "format": _AUDIO[attachment.mime_type]}
        return {"type": "input_audio", "input_audio": audio}
    if attachment.media_type == "file" and data is not None:
        file = {
            "filename": _filename(attachment),
            "file_data": data_url(attachment.mime_type, data),
        }
        return {"type": "file", "file": file}
    return None


def responses_part(attachment: Attachment) -> dict[str, Any] | None:
    """Make the part of a message, or of a tool's output, of Responses."""
    data = data_of(attachment)
    if attachment.media_type == "image":
        return {"type": "input_image", "image_url": attachment.url, "detail": "auto"}
    if attachment.media_type == "file" and data is not None:
        return {
            "type": "input_file",
            "filename": _filename(attachment),
            "file_data": data_url(attachment.mime_type, data),
        }
    if attachment.media_type == "file":
        return {"type": "input_file", "file_url": attachment.url}
    return None


def _filename(attachment: Attachment) -> str:
    return attachment.name or _unnamed(attachment.mime_type)


def _unnamed(mime_type: str) -> str:
    return "attachment" + (mimetypes.guess_extension(mime_type) or "")


# Where a part has its file: hosts take more kinds than OpenAI does.
_URLS: Final[Mapping[str, MediaType]] = {
    "image_url": "image",
    "video_url": "video",
    "document_url": "file",
}


def read_chat_parts(content: Any, position: str, history: History) -> Iterator[Part]:
    """Read what a message of Chat Completions says, or a result.

    Args:
        content: Text, or a list of parts.
        position: Where it stands.
        history: Takes the losses.
    """
    if isinstance(content, str):
        yield content
        return
    for index, part in enumerate(content):
        where = f"{position}[{index}]"
        kind = part.get("type")
        inner = part.get(kind) if isinstance(kind, str) else None
        if kind == "text" and isinstance(inner, str):
            yield inner
            history.rest(part, ("type", "text"), where)
        elif kind in _URLS and isinstance(inner, str):
            yield from history.file(where, url=inner, media_type=_URLS[kind])
            history.rest(part, ("type", kind), where)
        elif not is_mapping(inner):
            history.lose(where)
        elif kind in _URLS:
            yield from history.file(where, url=inner.get("url"), media_type=_URLS[kind])
            history.rest(_without_auto(inner), ("url",), f"{where}.{kind}")
            history.rest(part, ("type", kind), where)
        elif kind == "input_audio":
            form = inner.get("format")
            mime_type = "audio/mpeg" if form == "mp3" else f"audio/{form or 'wav'}"
            yield from history.file(where, data=inner.get("data"), mime_type=mime_type)
            history.rest(inner, ("data", "format"), f"{where}.{kind}")
            history.rest(part, ("type", kind), where)
        elif kind == "file":
            yield from _named_file(where, inner, history)
            history.rest(part, ("type", kind), where)
        else:
            history.lose(where)


def read_responses_parts(content: Any, position: str, history: History) -> Iterator[Part]:
    """Read what a message of Responses says, or a tool's output, in the same way."""
    if isinstance(content, str):
        yield content
        return
    for index, part in enumerate(content):
        where = f"{position}[{index}]"
        kind = part.get("type")
        if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
            yield part["text"]
            history.rest(part, ("type", "text"), where)
        elif kind == "input_image":
            yield from history.file(where, url=part.get("image_url"), media_type="image")
            history.rest(_without_auto(part), ("type", "image_url", "file_id"), where)
        elif kind == "input_file":
            yield from _named_file(where, part, history)
        else:
            history.lose(where)


def _named_file(where: str, fields: Mapping[str, Any], history: History) -> Iterator[Attachment]:
    """Read a file that goes with its name, as data or by its address."""
    url = fields.get("file_data") or fields.get("file_url")
    for file in history.file(where, url=url, media_type="file", name=fields.get("filename")):
        # What was made up for a file without a name must not come back as its name.
        is_named = file.name is not None and file.name != _unnamed(file.mime_type)
        yield file if is_named else replace(file, name=None)
    known = ("type", "file_data", "file_url", "filename", "file_id")
    history.rest(_without_auto(fields), known, where)


# `detail` is written as "auto" by this library too, and says what leaving it out says. Were it a
# loss, each picture of our own that comes back would be reported as damaged.
def _without_auto(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the detail of a picture where it says what goes without saying."""
    return {key: value for key, value in fields.items() if (key, value) != ("detail", "auto")}


def openai_body(
    draft: Draft[Any], body: dict[str, Any], tools: list[dict[str, Any]], *, limit: str
) -> dict[str, Any]:
    """Join what was said with the tools and the generation parameters.

    Args:
        draft: The request.
        body: The body so far, with the conversation.
        tools: The tools on offer, rendered.
        limit: The dialect's name of the upper bound on the answer.

    Returns:
        The body. Without tools there is neither a tool choice nor a word on parallel calls, which
        the API refuses there.
    """
    request, cache = draft.request, draft.request.cache
    body |= draft.answer()
    if tools:
        body["tools"] = tools
        body["tool_choice"] = draft.choice()
    # None is "not asked", and leaves the field out: a null would be refused by some hosts of these
    # formats, and zero, as of the temperature, has to stay.
    asked = {
        "parallel_tool_calls": request.parallel_tool_calls if tools else None,
        "temperature": request.temperature,
        limit: request.max_output_tokens,
        "prompt_cache_key": None if cache is None else cache.key,
        "prompt_cache_retention": None if cache is None else cache.retention,
    }
    return body | {key: value for key, value in asked.items() if value is not None}
