"""How a call starts, and how it ends: by what its function gave, by an error, or given up.

Each function takes the record of a call; `AnyToolCall` has the same as methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .._schema.output import Output
from .._text.escaping import words_of
from .._text.json import compact_json, sendable, shorten
from .._transcript.result import ToolResult, failure, make_result, unknown_outcome
from ..errors import MisuseError, TimedOut, ToolInputError, ToolOutputError
from .history import REFUSED_BY, Move, move
from .outcomes import REPLY, Reply, reply_in

if TYPE_CHECKING:
    from .._schema.invocation import Invocation
    from .._transcript.message import Attachment, Labels
    from .call_state import DecodedCall
    from .outcomes import ReplyStatus

_ANYTHING = Output(None)

# Ending.


def result_of(
    call: DecodedCall,
    output: Any,
    message: str | None = None,
    attachments: Iterable[Attachment] = (),
) -> ToolResult:
    """Return the result that an output makes."""
    code = labels = None
    reply = reply_in(output)
    if reply is not None:
        if reply.status != "success":
            raise MisuseError(
                f"Call {call.id!r} of tool `{call.name}` is completed with a reply of status "
                f"`{reply.status}`. Complete it with a success, or use `call.fail(message)`."
            )
        output, message = reply.output, message or reply.model_message
        attachments = attachments or reply.attachments
        code, labels = reply.code, reply.labels
    if message is not None:
        check_text(call, "message", message)
    return _encoded(call, output, "success", message, attachments, code, labels)


def _encoded(
    call: DecodedCall,
    output: Any,
    status: ReplyStatus,
    message: str | None,
    attachments: Iterable[Attachment],
    code: str | None,
    labels: Labels | None,
) -> ToolResult:
    """Return the result of an output, and of what is said beside it."""
    metadata = call.metadata
    if metadata.name != call.selector.name:
        raise _of_another_tool(call)
    attached = _checked(call, attachments) if attachments else ()
    text = (call.spec.output if status == "success" else _ANYTHING).encode(call.name, output)
    # A test of the text first, since nearly no output holds a file: to look through each output
    # for an `Attachment` would take longer than to encode it.
    if '"mime_type":' in text:
        attached, message = with_files(output, text, attached, message)
    return make_result(metadata, text, status, message, attached, code, labels)


def end_with(call: DecodedCall, result: ToolResult, run: int | None = None) -> ToolResult:
    """Return a result once the history says that the call ended with it.

    Args:
        call: The call.
        result: The result.
        run: Of which run it is the outcome; None for the run in progress, or of none.

    Raises:
        LifecycleError: The call has a result, or that run is over: then the result is in the
            history as `late`.
    """
    # As `move` makes it, which costs as much as the step.
    status = result.status
    ended: Move = ("ended", status, None, None, None, status, None, None, result)
    if run is None:  # the program may have run the tool by itself
        call.append_all((*call.changes_unstarted(), ended))
    else:
        call.append_all((ended,), None, run)
    return result


def _of_another_tool(call: DecodedCall) -> ToolOutputError:
    return ToolOutputError(
        f"Call {call.id!r} was made for tool `{call.metadata.name}`, but is answered as a call "
        f"of `{call.selector.name}`. Use the metadata of the call that you answer.",
        tool=call.selector.name,
    )


def finish(call: DecodedCall, output: Any, run: int | None = None) -> ToolResult:
    if isinstance(output, REPLY):
        reply: Reply[Any] = output
        if reply.status == "success":
            return end_with(call, result_of(call, reply), run)
        said = (reply.status, reply.model_message, reply.attachments, reply.code, reply.labels)
        return end_with(call, _encoded(call, reply.output, *said), run)
    # Every run comes here: what `_encoded` does if nothing is said beside the output.
    metadata = call.metadata
    if metadata.name != call.selector.name:
        raise _of_another_tool(call)
    text = call.spec.output.encode(metadata.name, output)
    if '"mime_type":' in text:
        attached, message = with_files(output, text, (), None)
        return end_with(call, make_result(metadata, text, "success", message, attached), run)
    return end_with(call, make_result(metadata, text, "success"), run)


def fail(call: DecodedCall, message: str, code: str | None, run: int | None = None) -> ToolResult:
    message = sendable(words_of(message))
    if code is not None:
        check_text(call, "code", code)
        code = sendable(code)
    return end_with(call, failure(call.metadata, "error", message, code), run)


def give_up(call: DecodedCall, reason: str, code: str | None, run: int | None = None) -> ToolResult:
    check_text(call, "reason", reason)
    if code is not None:
        check_text(call, "code", code)
    return end_with(call, unknown_outcome(call.metadata, reason, code), run)


def check_text(call: DecodedCall, what: str, value: object) -> None:
    if not isinstance(value, str):
        raise MisuseError(
            f"The {what} for call {call.id!r} of tool `{call.name}` is {shorten(value)}. Give a "
            "text: the model reads it."
        )


def _checked(call: DecodedCall, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    from .._transcript.message import attachments_of

    return attachments_of(f"Call {call.id!r} of tool `{call.name}`", attachments)


def with_files(
    output: Any, text: str, attached: tuple[Attachment, ...], message: str | None
) -> tuple[tuple[Attachment, ...], str | None]:
    """Let the model see the files that are in an output, in place of their data."""
    from .._transcript.message import attachments_in, shown_with

    # What is not written is shown to nobody: a field may be left out, or not be declared.
    inside = dict.fromkeys(attachments_in(output))
    found = tuple(each for each in inside if compact_json(each.url) in text)
    if found and message is None:
        message = shown_with(text, found)
    return tuple(dict.fromkeys((*attached, *found))), message


# Starting.


_STARTED: Final = (move("started"),)


def start(
    call: DecodedCall, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
) -> tuple[Invocation, int]:
    """Do as `start` does, and name the run by the number of its entry."""
    while True:
        since = len(call.entries)  # what follows holds of this history
        changed = None if call.lent is None else call.changes()
        if changed is not None and call.selector.needs_review:
            call.take_changes()  # on record first: it has to be reviewed, so this refuses
            continue
        found = may_start(call, skipped, invocation)
        if not call.spec.arguments.is_faithful and (why := call.unfit_text()) is not None:
            _end_unfit(call, why, since)
        moves = _STARTED
        if call.round.closed_by is not None:  # then it is on record elsewhere
            at, by = call.round.started
            moves = (("started", "started", at, by, None, None, None, None, None),)
        run = call.append_all(moves if changed is None else (changed[0], *moves), since)
        if run is not None:
            if changed is not None:
                call.hold_changed(run, *changed[1:])
            return found, run


def _end_unfit(call: DecodedCall, why: str, since: int) -> None:
    """End a call whose text does not fit any more, so that the model reads why.

    A call that was started before does not become an issue: it may have had its effects.

    Raises:
        ToolInputError: It does not, and this says why.
    """
    if not call.history.was_started:
        ended = move("ended", by=REFUSED_BY, phase="execution", verdict="rejected", reason=why)
        call.append_all((ended,), since)
    raise ToolInputError(why, tool=call.name)


def may_start(
    call: DecodedCall, skipped: dict[str, Any] | None = None, invocation: Invocation | None = None
) -> Invocation:
    """Refuse a call that `start` would refuse, and change nothing."""
    invocation = invocation or call.spec.invocation
    if invocation is None:
        what = "an input model" if isinstance(call.spec.arguments.type, type) else "a schema"
        raise MisuseError(
            f"Tool `{call.name}` (call {call.id!r}) is {what} without a function. Do the work "
            "yourself and answer with `call.complete(output)`."
        )
    if skipped is not None and (skipped or invocation.required):
        invocation.check(call.call, skipped)
    call.check_may_start()
    return invocation


async def run(call: DecodedCall, invocation: Invocation, skipped: dict[str, Any]) -> Any:
    """Run a call that was started, and cut it off when its tool's deadline passes.

    Raises:
        TimedOut: It was cut off. What the function raises comes out unchanged, also a
            `TimeoutError` of its own.
    """
    import asyncio  # slow to load, and most programs need it later

    # `asyncio.timeout` raises the same `TimeoutError` that the function may raise by itself.
    # Which of the two came out is told by identity: only its own passed the inner `except`.
    seconds, own = call.selector.timeout, None
    try:
        async with asyncio.timeout(seconds):
            try:
                return await invocation.run(call.call, call.input_for_tool(), skipped)
            except TimeoutError as error:
                own = error
                raise
    except TimeoutError as error:
        if error is own:
            raise
        raise TimedOut(
            f"did not finish within {seconds:g} seconds and was cut off.", is_in_doubt=True
        ) from None
    finally:
        del own  # its traceback holds this frame
