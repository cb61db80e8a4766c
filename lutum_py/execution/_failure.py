"""Tell of a call that failed: one record in the log, one event for the sink of its context."""

from __future__ import annotations

import logging
from traceback import format_exception
from typing import Final

from .._context.context import ToolContext, ToolSuspended
from .._context.inner import ToolAsks
from .._context.progress import ProgressStatus
from .._text.escaping import LINES, visible
from .._text.json import cut
from .._transcript.result import ToolResult
from ..errors import ToolError

_LOGGER: Final = logging.getLogger("lutum.execution")
_LOGGER.addHandler(logging.NullHandler())  # a program that set no logging up is not written to
_LONGEST_TEXT: Final = 2000
_LONGEST_MESSAGE: Final = 400


def trace_of(error: Exception) -> str | None:
    """Write down where an exception came from; None where a tool meant it, or nobody listens."""
    is_meant = isinstance(error, ToolError | ToolSuspended | ToolAsks)
    if is_meant or not _LOGGER.isEnabledFor(logging.WARNING):
        return None
    return visible("".join(format_exception(error)).rstrip(), LINES)


def tell(result: ToolResult, context: ToolContext, is_said: bool, trace: str | None) -> None:
    """Log that a call ended otherwise than in success, and let the sink of its context know.

    The record is a warning, but where the call was cancelled or the tool itself said why it failed:
    that is news of the level INFO. It has the attributes `tool_name`, `tool_call_id`, `status` and
    `code`.

    Args:
        result: How the call ended.
        context: What its function got, or would have got.
        is_said: Whether the tool raised a `ToolError`.
        trace: The traceback of what it raised otherwise.
    """
    is_cancelled = result.status == "cancelled"
    level = logging.INFO if is_said or is_cancelled else logging.WARNING
    if _LOGGER.isEnabledFor(level):
        name = visible(result.name)
        text = visible(cut(result.model_text, _LONGEST_TEXT))
        extra = {
            "tool_name": name,
            "tool_call_id": visible(result.id),
            "status": result.status,
            "code": result.code,
        }
        words, arguments = "%s: %s (call %r): %s", (result.status, name, result.id, text)
        # `Logger.warning(exc_info=...)` would keep the exception, with all frames of the tool and
        # their arguments, as long as a handler keeps the record. So the record is made by hand,
        # with text.
        file, line, function, _ = _LOGGER.findCaller()
        record = _LOGGER.makeRecord(
            _LOGGER.name, level, file, line, words, arguments, None, function, extra
        )
        # Not as `exc_info`: formatters write that as it comes, and it would hold the tool's frames.
        record.exc_text = trace
        _LOGGER.handle(record)
    if not context.has_failed:
        status = ProgressStatus.CANCELLED if is_cancelled else ProgressStatus.FAILED
        context.report_progress(status, cut(result.model_text, _LONGEST_MESSAGE))
