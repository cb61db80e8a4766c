"""What OpenAI's two request formats have in common: parameters, messages, and the parts of files.

Chat Completions takes images by address, audio as WAV or MP3 data and files as data, in user
messages only. Responses takes images and files, by address or as data, in messages and in the
outputs of tools. (OpenAI API reference: "Create chat completion", "Create a model response".)
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from .. import Attachment, Message
from .._text.json import JsonObject, compact_json, is_mapping, is_sequence
from ..typing import MediaType
from ._dialect import Draft
from ._history import History, Part
from ._reading import UNKNOWN_EVENTS, arguments_object, without_nulls
from ._rendering import Rendering

UNTIDY: Final = (b"null", b'"parsed')
"""One of these is in the JSON of each payload that is not tidy."""


def tidying(*free: str) -> Callable[[object], object]:
    """Make what copies a response without null fields, and without what only the SDK puts there.

    Args:
        free: The fields of which users and models wrote what is in them: nulls may mean something.
    """
    of_sdk = frozenset({"parsed", "parsed_arguments"})
    return partial(without_nulls, free=frozenset({*free, UNKNOWN_EVENTS}), of_sdk=of_sdk)


def named_data(attachment: Attachment) -> JsonObject:
    """Make the fields of a file that goes as data, which has to have a name."""
    name = attachment.name or _unnamed(attachment.mime_type)
    return {"filename": name, "file_data": attachment.data_url}


def _unnamed(mime_type: str) -> str:
    return "attachment" + (mimetypes.guess_extension(mime_type) or "")


_TO_CALLS: Final = frozenset({"messages", "input", "tool_calls", "function", "function_call"})


# vLLM, llama.cpp and Ollama parse the arguments in a history, and refuse what they cannot parse:
# vllm-project/vllm#43995, ggml-org/llama.cpp#25510.
def with_json_arguments(request: object) -> Any:
    """Let all arguments be JSON objects, for a host that parses what is sent back to it.

    A model may write arguments that are no JSON, or that a limit cut off. They go back as they
    came, and such a host then refuses every later request.

    Args:
        request: A request body, or the list of its conversation; it is not changed.

    Returns:
        A copy in which `{"INVALID_JSON": "..."}` stands for a text that is not a JSON object, with
        the text in it, and `{}` for blank text and null.

    Example:
        >>> call = {"type": "function_call", "name": "add", "arguments": "{a: 1}"}
        >>> with_json_arguments([call])[0]["arguments"]
        '{"INVALID_JSON":"{a: 1}"}'
    """
    if is_sequence(request):
        return [with_json_arguments(each) for each in request]
    if not is_mapping(request):
        return request
    made = {
        key: with_json_arguments(value) if key in _TO_CALLS else value
        for key, value in request.items()
    }
    text = made.get("arguments")
    # The calls that the provider ran, such as an `mcp_call`, have arguments too.
    if isinstance(text, str) and made.get("type", "function_call") == "function_call":
        value, is_read = arguments_object(text)
        if not (is_read and text.lstrip().startswith("{")):
            made["arguments"] = compact_json(value)
    return made


class OpenAIRendering(Rendering):
    """Collect what everybody said, one after the other."""

    roles_with_files: ClassVar[frozenset[str]]
    """Who may send files."""

    def _message(self, message: Message, position: str) -> None:
        content: Any = message.text
        if message.attachments:
            takes_files = message.role in self.roles_with_files
            content = self.parts_of(content, message.attachments, position, takes_files) or ""
        self.said.append({"role": message.role, "content": content})


_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
# The parts that are a file by its address, and where they have that: hosts take more kinds than
# OpenAI does.
_URLS: Final[Mapping[str, tuple[MediaType, str]]] = {
    "image_url": ("image", "url"),
    "video_url": ("video", "url"),
    "document_url": ("file", "url"),
    "input_image": ("image", "image_url"),
}


def read_parts(content: Any, position: str, history: History) -> Iterator[Part]:
    """Read what a message says, or a result.

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
        # Chat Completions has what a part holds under the name of its kind, as in {"type":
        # "image_url", "image_url": {"url": "https:..."}}, Responses beside it, as in {"type":
        # "input_image", "image_url": "https:..."}. No kind is in both with another meaning.
        inner = part.get(kind) if isinstance(kind, str) else None
        fields: Mapping[str, object] = inner if is_mapping(inner) else part
        known: tuple[str, ...]
        if kind in _TEXTS and isinstance(part.get("text"), str):
            yield part["text"]
            known = ("text",)
        elif kind in _URLS:
            media_type, key = _URLS[kind]
            url = inner if isinstance(inner, str) else fields.get(key)
            yield from history.file(where, url=url, media_type=media_type)
            known = (key, "file_id")
        elif kind == "input_audio":
            form = fields.get("format")
            mime_type = "audio/mpeg" if form == "mp3" else f"audio/{form or 'wav'}"
            yield from history.file(where, data=fields.get("data"), mime_type=mime_type)
            known = ("data", "format")
        elif kind in ("file", "input_file"):
            yield from _named_file(where, fields, history)
            known = ("file_data", "file_url", "filename", "file_id")
        else:
            history.lose(where)
            continue
        if fields is not part:
            history.rest(_without_auto(fields), known, f"{where}.{kind}")
            known = ()
        history.rest(_without_auto(part), ("type", kind, *known), where)


def _named_file(where: str, fields: Mapping[str, object], history: History) -> Iterator[Attachment]:
    """Read a file that goes with its name, as data or by its address."""
    url = fields.get("file_data") or fields.get("file_url")
    for file in history.file(where, url=url, media_type="file", name=fields.get("filename")):
        # What was made up for a file without a name must not come back as its name.
        is_named = file.name is not None and file.name != _unnamed(file.mime_type)
        yield file if is_named else replace(file, name=None)


# `detail` is written as "auto" by this library too, and says what leaving it out says. Were it a
# loss, each picture of our own that comes back would be reported as damaged.
def _without_auto(fields: Mapping[str, object]) -> JsonObject:
    """Leave out the detail of a picture where it says what goes without saying."""
    return {key: value for key, value in fields.items() if (key, value) != ("detail", "auto")}


def openai_body(
    draft: Draft[Any], body: JsonObject, tools: list[JsonObject], *, limit: str
) -> JsonObject:
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
    cache = draft.request.cache
    body |= draft.answer()
    if tools:
        body["tools"] = tools
        body["tool_choice"] = draft.choice()
    body |= draft.asked(temperature="temperature", max_output_tokens=limit)
    if tools:
        body |= draft.asked(parallel_tool_calls="parallel_tool_calls")
    if cache is not None:
        kept = {"prompt_cache_key": cache.key, "prompt_cache_retention": cache.retention}
        body |= {key: value for key, value in kept.items() if value is not None}
    return body
