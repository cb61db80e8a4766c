"""Give transcript items as plain data, and read them back."""

from __future__ import annotations

from typing import Any, get_args

from .assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    Usage,
)
from .attachment import Attachment, MediaType
from .message import Message, Role
from .metadata import ToolMetadata
from .request import TranscriptItem
from .result import ResultStatus, ToolResult, make_result
from .saved import Saved

__all__ = ["dump_item", "dump_metadata", "load_item", "load_metadata", "load_result", "load_turn"]

_WITH_TEXT: dict[str, Any] = {
    "text": TextItem,
    "reasoning": ReasoningItem,
    "refusal": RefusalItem,
}
_KIND_OF = {kind: name for name, kind in _WITH_TEXT.items()}
_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


def dump_item(item: TranscriptItem) -> dict[str, Any]:
    """Give an item as plain data."""
    if isinstance(item, Message):
        return {
            "type": "message",
            "role": item.role,
            "text": item.text,
            **_attachments(item.attachments),
        }
    if isinstance(item, ToolResult):
        data = {
            "type": "tool_result",
            "id": item.id,
            "name": item.name,
            "arguments": item.arguments,
            "result": item.result,
            "status": item.status,
            "message": item.message,
            "code": item.code,
        }
        return {**data, **_attachments(item.attachments)}
    usage = item.usage
    return {
        "type": "assistant",
        "items": [_dump_part(part) for part in item.items],
        "finish_reason": item.finish_reason,
        "usage": None if usage is None else {name: getattr(usage, name) for name in _USAGE},
        "model": item.model,
        "request_id": item.request_id,
        "dialect": item.dialect,
        "payload": item.payload,
    }


def _attachments(attachments: tuple[Attachment, ...]) -> dict[str, Any]:
    if not attachments:
        return {}
    return {
        "attachments": [
            {
                "media_type": each.media_type,
                "mime_type": each.mime_type,
                "url": each.url,
                "caption": each.caption,
                "size": each.size,
            }
            for each in attachments
        ]
    }


def _dump_part(part: AssistantItem) -> dict[str, Any]:
    if isinstance(part, ToolCallItem):
        return {"type": "tool_call", **dump_metadata(part.metadata)}
    if isinstance(part, ServerToolItem):
        return {"type": "server_tool", "kind": part.kind, "payload": dict(part.payload)}
    return {"type": _KIND_OF[type(part)], "text": part.text}


def dump_metadata(metadata: ToolMetadata) -> dict[str, str]:
    """Give a call's metadata as plain data."""
    return {"id": metadata.id, "name": metadata.name, "arguments": metadata.arguments}


def load_metadata(saved: Saved) -> ToolMetadata:
    """Read what `dump_metadata` gave."""
    return ToolMetadata(
        id=saved.get("id", str),
        name=saved.get("name", str),
        arguments=saved.get("arguments", str),
    )


def load_item(saved: Saved) -> TranscriptItem:
    """Read what `dump_item` gave."""
    kind = saved.get("type", str)
    if kind == "message":
        role: Role = saved.one_of("role", _member_of(Role))
        return Message(role, saved.get("text", str), _load_attachments(saved))
    if kind == "tool_result":
        return load_result(saved)
    if kind == "assistant":
        return load_turn(saved)
    raise saved.wrong("type", f"{kind!r} is none of message, assistant, tool_result")


def load_result(saved: Saved) -> ToolResult:
    """Read a result."""
    status: ResultStatus = saved.one_of("status", _member_of(ResultStatus))
    return make_result(
        load_metadata(saved),
        saved.json_text("result"),
        status,
        saved.get("message", str, None),
        _load_attachments(saved),
        saved.get("code", str, None),
    )


def load_turn(saved: Saved) -> AssistantTurn:
    """Read an assistant turn."""
    usage = saved.inner_or_none("usage")
    return AssistantTurn(
        items=[_load_part(part) for part in saved.each("items")],
        finish_reason=saved.get("finish_reason", str, None),
        usage=None if usage is None else Usage(**{n: usage.get(n, int, None) for n in _USAGE}),
        model=saved.get("model", str, None),
        request_id=saved.get("request_id", str, None),
        dialect=saved.get("dialect", str, None),
        payload=saved.any("payload"),
    )


def _load_part(saved: Saved) -> AssistantItem:
    kind = saved.get("type", str)
    if kind in _WITH_TEXT:
        part: AssistantItem = _WITH_TEXT[kind](saved.get("text", str))
        return part
    if kind == "tool_call":
        return ToolCallItem(load_metadata(saved))
    if kind == "server_tool":
        return ServerToolItem(saved.get("kind", str), saved.inner("payload").data)
    raise saved.wrong("type", f"{kind!r} is no known part of a turn")


def _load_attachments(saved: Saved) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            media_type=each.one_of("media_type", _member_of(MediaType)),
            mime_type=each.get("mime_type", str),
            url=each.get("url", str),
            caption=each.get("caption", str, None),
            size=each.get("size", int, None),
        )
        for each in saved.each("attachments", optional=True)
    )


def _member_of(alias: Any) -> Any:
    """Make a function that gives a value back if it is one of a literal's."""
    return {value: value for value in get_args(alias)}.__getitem__
