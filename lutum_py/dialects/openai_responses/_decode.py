"""A response of OpenAI Responses becomes a turn, item by item in the order in which they came.

Function and custom tool calls are the program's to answer, and so are those of the shells, of
patches, of a computer and for an approval: these have the kind of their item as their name, and
what they ask for as their arguments. Whatever else the model asked for, the provider runs itself:
it is kept as a server item. A call of another kind that nobody answered is an error.
(OpenAI API reference: "The response object".)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

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
    _check_known(output)
    open_items = [item for item in output if item.text_at("status") in _GOING_ON]
    usage, calls = usage_of(response), calls_in(response.value)
    is_ended = not open_items
    read = DecodedResponse(items, finish_reason, response_id, usage, calls, is_ended=is_ended)
    turn = read.turn(FACTS, response)
    # A turn tells of its last call alone that it was cut off; so one before it stops them all.
    asked = calls_of(response.value["output"])
    if any(item.value is call for item in open_items for call in asked[:-1]):
        turn = with_fields(turn, cut_off="calls")
    return turn


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    output: list[JsonObject] = payload["output"]
    for item in calls_of(output):
        kind = item["type"]
        if (program := PROGRAM_CALLS.get(kind)) is not None:
            first, *others = program.asked
            yield WireCall(item, program.id_key, item, first, keys=program.asked if others else ())
        else:
            key = CALLS.get(kind)
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
    """Tell whether an item is a call that the program answers, if nothing beside it does."""
    kind = item.get("type")
    if kind in PROGRAM_CALLS:
        return not _is_hosted(item)
    return kind in CALLS or (kind == SEARCH_CALL and not is_run_by_provider(item))


def calls_of(items: Sequence[Any]) -> list[JsonObject]:
    """Return the items that are calls which the program answers, and which none of them answers."""
    # What the provider ran has its answer beside it.
    answered = {
        (item["type"], answered_id(item)) for item in items if item.get("type") in ANSWER_KINDS
    }
    calls = filter(is_call, items)
    if not answered:
        return list(calls)
    return [
        call
        for call in calls
        if (program := PROGRAM_CALLS.get(call["type"])) is None
        or (program.answer, text_or_none(call.get(program.id_key))) not in answered
    ]


def _check_known(output: Sequence[Place]) -> None:
    for place in unanswered([item.object() for item in output]):
        kind = output[place].text_at("type")
        if kind not in PROGRAM_CALLS:
            raise output[place].error(
                f"the program has to answer a {kind}, and this library does not know how; leave "
                "the tool of it out of the request"
            )


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


def items_of_output(output: Sequence[Place], response_id: str | None) -> Iterator[AssistantItem]:
    """Read the items of an output."""
    kinds = [item.text_at("type") or "message" for item in output]
    asked = {id(call) for call in calls_of([item.value for item in output])}
    calls = 0
    for kind, item in zip(kinds, output, strict=True):
        if id(item.value) in asked:
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
    program = PROGRAM_CALLS.get(kind)
    if program is not None:
        asked = Place(NAME, {"arguments": program.asked_in(item.object())}, item)
        given = item.text_at(program.id_key)
        return read_call(asked, "arguments", given, response_id, index, name=kind)
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


_UNKNOWN_SHELL: Final = {
    "stdout": "",
    "stderr": OUTCOME_UNKNOWN,
    "outcome": {"type": "timeout"},
}


class ProgramCall(NamedTuple):
    """What is known of a kind of call that the program answers, and that is no function.

    Attributes:
        answer: The kind of the item that answers it.
        tools: The types of the API's own tools that make such calls.
        asked: The field that is its arguments; of several, each is one of them.
        unsaid: What an answer says that nobody gave; None if there is no such answer.
        id_key: Where its id is.
        named_by: Where an answer has that.
        repeated: What an answer repeats of what it asks, and under which name.
    """

    answer: str
    tools: tuple[str, ...]
    asked: tuple[str, ...]
    unsaid: JsonObject | None
    id_key: str = "call_id"
    named_by: str = "call_id"
    repeated: tuple[str, str] | None = None

    def asked_in(self, call: Mapping[str, Any]) -> Any:
        """Return what a call asks for, as arguments."""
        first, *others = self.asked
        if not others:
            return call.get(first)
        return {key: call[key] for key in self.asked if call.get(key) not in (None, [])}


LOCAL_SHELL: Final = "local_shell_call_output"
SHELL: Final = "shell_call_output"
PATCH: Final = "apply_patch_call_output"
COMPUTER: Final = "computer_call_output"
APPROVAL: Final = "mcp_approval_response"

# By the reference of the input items; what each answer holds is written in `_messages.py`.
PROGRAM_CALLS: Final[Mapping[str, ProgramCall]] = {
    "local_shell_call": ProgramCall(
        LOCAL_SHELL, ("local_shell",), ("action",), {"output": compact_json(OUTCOME_UNKNOWN)}
    ),
    "shell_call": ProgramCall(
        SHELL,
        ("shell",),
        ("action",),
        {"output": [_UNKNOWN_SHELL]},
        repeated=("max_output_length", "max_output_length"),
    ),
    "apply_patch_call": ProgramCall(
        PATCH, ("apply_patch",), ("operation",), {"status": "failed", "output": OUTCOME_UNKNOWN}
    ),
    # A picture of the screen, which nobody can make up.
    "computer_call": ProgramCall(
        COMPUTER,
        ("computer", "computer_use_preview"),
        ("action", "actions", "pending_safety_checks"),
        None,
        repeated=("pending_safety_checks", "acknowledged_safety_checks"),
    ),
    "mcp_approval_request": ProgramCall(
        APPROVAL,
        ("mcp",),
        ("server_label", "name", "arguments"),
        {"approve": False, "reason": "Nobody decided."},
        id_key="id",
        named_by="approval_request_id",
    ),
}
"""By the kind of each call, what is known of it."""

ANSWER_KINDS: Final = frozenset(program.answer for program in PROGRAM_CALLS.values())
"""The kinds of the items that answer them."""


_USUAL: Final = frozenset({"message", "reasoning", *CALLS})
"""What is neither, at a glance."""


def unanswered(items: Iterable[Mapping[str, object]]) -> list[int]:
    """Find the calls of the program, functions aside, that no item answers: their places."""
    waiting: dict[tuple[str, object], int] = {}
    for place, item in enumerate(items):
        kind = str(item.get("type"))
        if kind in _USUAL:
            continue
        if kind in PROGRAM_CALLS or _is_unknown(item, kind):
            if not _is_hosted(item):
                program = PROGRAM_CALLS.get(kind)
                key = item.get("call_id" if program is None else program.id_key)
                waiting[answer_of(kind), text_or_none(key)] = place
        elif kind in ANSWER_KINDS or kind.endswith("_output"):
            for name in ("call_id", "approval_request_id", "id"):
                waiting.pop((kind, text_or_none(item.get(name))), None)
    return sorted(waiting.values())


def answer_of(kind: str) -> str:
    """Return the kind of the item that answers a kind of call."""
    return PROGRAM_CALLS[kind].answer if kind in PROGRAM_CALLS else f"{kind}_output"


def answered_id(item: Mapping[str, object]) -> str | None:
    """Return the id of the call that an item of the program answers, if it has one."""
    named = (item.get(name) for name in ("call_id", "approval_request_id", "id"))
    return next(filter(None, map(text_or_none, named)), None)


def answer_form(call: Mapping[str, Any]) -> JsonObject:
    """Return the answer of a call without what it says: which call it answers, and who made it."""
    kind = call["type"]
    program = PROGRAM_CALLS.get(kind)
    if program is None:
        return {"type": ANSWERS[kind][0], **repeated_in(call)}
    form: JsonObject = {"type": program.answer, program.named_by: call.get(program.id_key)}
    form["caller"] = call.get("caller")
    form = {key: value for key, value in form.items() if value is not None}
    if program.repeated is not None:
        asked, name = program.repeated
        within = call.get("action") if asked not in call else call
        if is_mapping(within) and within.get(asked):
            form[name] = within[asked]
    return form


def made_answer(call: Mapping[str, Any]) -> JsonObject | None:
    """Make the answer that says that nobody answered; None if there can be none."""
    program = PROGRAM_CALLS.get(str(call.get("type")))
    if program is None or program.unsaid is None:
        return None
    return {**answer_form(call), **program.unsaid}


def _is_unknown(item: Mapping[str, object], kind: str) -> bool:
    has_id = isinstance(item.get("call_id"), str)
    return has_id and kind.endswith("_call") and kind not in ANSWERS


def _is_hosted(item: Mapping[str, object]) -> bool:
    """Tell a shell that runs in a container of the provider's."""
    environment = item.get("environment")
    return is_mapping(environment) and environment.get("type") not in (None, "local")
