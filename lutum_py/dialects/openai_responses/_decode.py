"""A response of OpenAI Responses becomes a turn, item by item in the order in which they came.

Function and custom tool calls are the program's to answer. Whatever else the model asked for, the
provider runs itself, or it has a form that only the provider knows: it is kept as a server item.
(OpenAI API reference: "The response object".)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, ToolMetadata, Usage
from ..._text.immutable import with_fields
from ..._text.json import JsonObject, compact_json, is_mapping
from ...turns import (
    AssistantItem,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from .._facts import Facts
from .._findings import OUTCOME_UNKNOWN
from .._openai import tidying
from .._reading import (
    DecodedResponse,
    Place,
    WireCall,
    caller_of,
    count_at,
    read_call,
    replace_texts,
    text_or_none,
)
from .._schema.strict import OPENAI

NAME: Final = "openai_responses"

_KINDS: Final = ("function_call", "function_call_output", "reasoning", "item_reference")


def _is_own_item(item: Mapping[str, object]) -> bool:
    return item.get("type") in _KINDS


FACTS: Final = Facts(
    name=NAME,
    key="input",
    names_at=(
        "tools[].name",
        "tools[].tools[].name",
        "tool_choice.name",
        "tool_choice.tools[].name",
    ),
    truncated=frozenset(
        {
            *("max_output_tokens", "max_messages", "steered", "incomplete"),
            *("in_progress", "queued", "cancelled"),
        }
    ),
    refused=frozenset({"content_filter"}),
    call_ids=re.compile(r".{1,64}", re.DOTALL),
    call_ids_in_words="at most 64 characters",
    strictness=OPENAI,
    callers={"model": "direct", "program": "programmatic"},
    is_own_item=_is_own_item,
)


REQUIRED: Final[Mapping[str, Mapping[str, object]]] = {
    "reasoning": {"summary": []},
    "code_interpreter_call": {"code": None, "outputs": None},
}
"""By the kind of an item, the fields that it has to have, and what is in each that says nothing.

"Input[N] missing required field `summary`": newo-ether/Agora#141, 2026."""


# "Invalid 'input[16].id': 'call_b4a...'. Expected an ID that begins with 'fc'.":
# fuzhengwei/WaLiAPI#129, 2026. Which ids else are refused depends on the host.
def is_id_refused(item_id: str) -> bool:
    """Tell the id of an item that the API refuses: an empty one, and that of a call."""
    return not item_id or item_id.startswith("call_")


CALLS: Final[Mapping[str, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that the program answers, and where each has the text that the model wrote."""

WAITING: Final = frozenset({"queued", "in_progress"})
"""What a response is that the provider still writes."""

SEARCH: Final = "tool_search"
SEARCH_CALL: Final = "tool_search_call"
SEARCH_OUTPUT: Final = "tool_search_output"
"""The search for tools, which has no name on the wire: the provider's, or the program's to run."""

OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", SEARCH_OUTPUT})
"""The items with which the program answers."""

# Which outputs answer which call; the first is what a repair sends. A search for tools that the
# program runs may be answered like a function. Other calls are the provider's own.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    SEARCH_CALL: ("function_call_output", "tool_search_output"),
}

tidy: Final = tidying(
    "arguments", "attributes", "metadata", "output_schema", "parameters", "schema"
)
"""Copies a response without null fields and without what only the SDK puts there."""


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It failed, or a field is missing or odd.
    """
    response.raise_error()
    status = response.text_at("status")
    if status == "failed":
        raise response.error("the response failed, and the provider does not say why")
    if status in WAITING:
        raise response.error(
            f"the response is {status}, in the background: retrieve it by its id until it is "
            "completed"
        )
    response_id = response.text_at("id") or None
    details = response.get("incomplete_details")
    # `incomplete` alone does not say whether the answer was cut off or filtered; the reason does.
    finish_reason = (None if details is None else details.text_at("reason")) or status
    output = response.need("output").items()
    items = list(items_of_output(output, response_id))
    open_items = [item for item in output if item.text_at("status") in _GOING_ON]
    usage, calls = usage_of(response), calls_in(response.value)
    is_ended = not open_items
    read = DecodedResponse(items, finish_reason, response_id, usage, calls, is_ended=is_ended)
    turn = read.turn(FACTS, response)
    # A turn tells of its last call alone that it was cut off; so one before it stops them all.
    asked = [item for item in output if is_call(item.value)]
    if any(item in open_items for item in asked[:-1]):
        turn = with_fields(turn, cut_off="calls")
    return turn


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    output: list[JsonObject] = payload["output"]
    for item in filter(is_call, output):
        key = CALLS.get(item["type"])
        yield WireCall(item, "call_id", item, key or "arguments", is_text=key is not None)


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    output, left = payload["output"], text
    for item in output:
        if item.get("type", "message") == "message":
            content = item.get("content", ())
            item["content"] = [] if isinstance(content, str) else list(content)
            replace_texts(item["content"], left, _is_text, _text)
            left = ""
    if left:
        calls = (place for place, item in enumerate(output) if is_call(item))
        said = {"type": "message", "role": "assistant", "content": [_text(left)]}
        output.insert(next(calls, len(output)), said)
    output[:] = [item for item in output if item.get("content", True)]


def _is_text(part: Any) -> bool:
    return bool(part.get("type") == "output_text")


def _text(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": []}


# Also of an item: in a response that is `completed`, a host may have cut off the last one.
_GOING_ON: Final = ("in_progress", "incomplete")


def is_run_by_provider(item: Mapping[str, object]) -> bool:
    """Tell whether the provider made an item of a search for tools, and answers it."""
    kind, runs = item.get("type"), item.get("execution")
    return runs != "client" if kind == SEARCH_CALL else runs == "server" and kind == SEARCH_OUTPUT


def is_call(item: Mapping[str, object]) -> bool:
    """Tell whether an item is a call that the program answers."""
    kind = item.get("type")
    return kind in CALLS or (kind == SEARCH_CALL and not is_run_by_provider(item))


def repeated_in(call: Mapping[str, object]) -> JsonObject:
    """Return what the output of a call repeats: its id, and who made it where no model did."""
    return {key: call[key] for key in ("call_id", "caller") if key in call}


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields = usage.value
    return Usage(
        input_tokens=count_at(fields, "input_tokens"),
        output_tokens=count_at(fields, "output_tokens"),
        cached_tokens=count_at(fields, "input_tokens_details", "cached_tokens"),
        reasoning_tokens=count_at(fields, "output_tokens_details", "reasoning_tokens"),
        cache_write_tokens=count_at(fields, "input_tokens_details", "cache_write_tokens"),
    )


def items_of_output(output: Iterable[Place], response_id: str | None) -> Iterator[AssistantItem]:
    """Read the items of an output."""
    calls = 0
    for item in output:
        kind = item.text_at("type") or "message"
        if is_call(item.object()):
            call = metadata_of(item, kind, calls, response_id)
            yield ToolCallItem(call, caller_of(item.object()))
            calls += 1
        elif kind == "message":
            yield from _message(item)
        elif kind == "reasoning":
            yield ReasoningItem(_reasoning(item))
        else:
            if kind in OUTPUTS and not is_run_by_provider(item.object()):
                # Refused rather than kept: it would go back beside the result that the round makes.
                raise item.error(f"a {kind} is the program's answer, which no model sends")
            yield ServerToolItem(kind, item.object())


def metadata_of(item: Place, kind: str, index: int, response_id: str | None) -> ToolMetadata:
    """Read a call, which is the one of its number in the turn."""
    name = SEARCH if kind == SEARCH_CALL else None
    key = CALLS.get(kind, "arguments")
    return read_call(item, key, item.text_at("call_id"), response_id, index, name=name, empty="")


def _message(item: Place) -> Iterator[AssistantItem]:
    content = item.get("content")
    if content is not None and isinstance(content.value, str):  # as programs may write it
        if content.value:
            yield TextItem(content.value)
        return
    for part in item.items_at("content"):
        kind = part.text_at("type")
        if kind == "output_text":
            text = part.need_text("text")
            if text:
                yield TextItem(text)
        elif kind == "refusal":
            yield RefusalItem(part.need_text("refusal"))


def _reasoning(item: Place) -> str:
    # Open models give their reasoning as such, OpenAI a summary in paragraphs. Where there are
    # both, the summary says the same again.
    for key, between in (("content", ""), ("summary", "\n\n")):
        shown = between.join(part.text_at("text") or "" for part in item.items_at(key))
        if shown:
            return shown
    return ""


_TEXT: Final = {"output": compact_json(OUTCOME_UNKNOWN)}
_SHELL: Final = {"stdout": "", "stderr": OUTCOME_UNKNOWN, "outcome": {"type": "timeout"}}

PROGRAM_CALLS: Final[Mapping[str, tuple[str, JsonObject | None]]] = {
    "local_shell_call": ("local_shell_call_output", _TEXT),
    "shell_call": ("shell_call_output", {"output": [_SHELL]}),
    "apply_patch_call": (
        "apply_patch_call_output",
        {"status": "failed", "output": OUTCOME_UNKNOWN},
    ),
    # A picture of the screen, which nobody can make up.
    "computer_call": ("computer_call_output", None),
    "mcp_approval_request": (
        "mcp_approval_response",
        {"approve": False, "reason": "Nobody decided."},
    ),
}
"""By the kind of each call, what answers it, and what an answer says that nobody gave; None if
there is no such answer."""

_OUTPUTS: Final = frozenset(kind for kind, _ in PROGRAM_CALLS.values())


def unanswered(items: Iterable[Mapping[str, object]]) -> list[int]:
    """Find the calls of the program, functions aside, that no item answers: their places."""
    waiting: dict[tuple[str, object], int] = {}
    for place, item in enumerate(items):
        kind = str(item.get("type"))
        if kind in PROGRAM_CALLS or _is_unknown(item, kind):
            if not _is_hosted(item):
                key = item.get("id" if kind == "mcp_approval_request" else "call_id")
                waiting[answer_of(kind), text_or_none(key)] = place
        elif kind in _OUTPUTS or kind.endswith("_output"):
            for name in ("call_id", "approval_request_id", "id"):
                waiting.pop((kind, text_or_none(item.get(name))), None)
    return sorted(waiting.values())


def answer_of(kind: str) -> str:
    """Return the kind of the item that answers a kind of call."""
    return PROGRAM_CALLS[kind][0] if kind in PROGRAM_CALLS else f"{kind}_output"


def made_answer(call: Mapping[str, object]) -> JsonObject | None:
    """Make the answer that says that nobody answered; None if there can be none."""
    kind = str(call.get("type"))
    answer, says = PROGRAM_CALLS.get(kind, ("", None))
    if says is None:
        return None
    if kind == "mcp_approval_request":
        return {"type": answer, "approval_request_id": call.get("id"), **says}
    same = {key: call[key] for key in ("call_id", "caller") if call.get(key) is not None}
    return {"type": answer, **same, **says}


def _is_unknown(item: Mapping[str, object], kind: str) -> bool:
    has_id = isinstance(item.get("call_id"), str)
    return has_id and kind.endswith("_call") and kind not in ANSWERS


def _is_hosted(item: Mapping[str, object]) -> bool:
    """Tell a shell that runs in a container of the provider's."""
    environment = item.get("environment")
    return is_mapping(environment) and environment.get("type") not in (None, "local")
