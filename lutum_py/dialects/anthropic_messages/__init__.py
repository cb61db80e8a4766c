"""Anthropic's Messages API.

What it does otherwise than the dialects do in common:

- `decode` takes the JSON of a message; of an SDK object, `response.to_dict(mode="json")`.
- `messages` makes one message of a turn, and one of all that is between two turns.
- `encode_request` puts instructions into `system`, and `DEFAULT_MAX_TOKENS` into `max_tokens`,
  which the API demands, if the request sets no bound. Of a turn of another model the thinking is
  left out. Not every model and host takes `native_search`.
- `allowed_callers` is what `tool(f, callers=...)` says, by the version of code execution that is in
  `extra`. Results for a program go out alone, with the `container` where it waits, and what the
  user says follows after the next turn. No program calls a tool in strict mode.
- In strict mode the API takes at most 20 tools in one request, and 24 optional properties in all of
  them together; it compiles their schemas into one grammar, and refuses one that is too large.

Source of the format: the Anthropic API reference, "Messages" and "Streaming messages", and the
guides to tool use, extended thinking and prompt caching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ... import ToolDef
from ..._text.json import JsonObject
from ...turns import ToolChoice
from ...typing import JsonSchema
from .._blocks import CacheMarks, mark_beginnings
from .._dialect import PUBLIC, Dialect, Draft
from .._offered import callers_of, described, native_tools
from ._decode import FACTS, UNTIDY, calls_in, say, tidy, turn_of
from ._decode import NAME as NAME
from ._messages import FORM, MARKED, MARKER, Rendering, called_from, is_manual
from ._messages import read_history as _read_history
from ._stream import StreamDecoder as StreamDecoder

DEFAULT_MAX_TOKENS: Final = 4096
"""What `encode_request` asks for where the request sets no bound: the API demands one, and every
model takes this. `max_output_tokens` overrides it."""

_MODES: Final = {"auto": "auto", "required": "any", "none": "none"}


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> JsonObject:
    tool = described(definition, "input_schema", schema, strict)
    return tool | callers_of(definition, FACTS)


def _choice(choice: ToolChoice) -> JsonObject:
    if choice.mode == "specific":
        return {"type": "tool", "name": choice.name}
    return {"type": _MODES[choice.mode]}


def _answer(definition: ToolDef, schema: JsonSchema) -> JsonObject:
    schema = {"description": definition.description, **schema}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def _body(draft: Draft[JsonObject]) -> JsonObject:
    request = draft.request
    native = draft.searches()
    whole = is_manual(request.extra)
    rendering = draft.render(Rendering, "ttl", found=native, whole=whole)
    limit = request.max_output_tokens
    body: JsonObject = {
        # `to_send` raises where the API would not take the conversation. The user's own
        # messages replace it below, so then it is not asked.
        "messages": rendering.said if "messages" in request.extra else rendering.to_send(),
        "max_tokens": DEFAULT_MAX_TOKENS if limit is None else limit,
    }
    draft.losses += rendering.unsent
    # One text stays a string, as people write it; a list is needed only for more, or for a marker.
    is_marked = request.cache is not None and request.cache.system and rendering.system_end
    if len(rendering.system) == 1 and not is_marked:
        body["system"] = rendering.system[0]
    elif rendering.system:
        body["system"] = [{"type": "text", "text": text} for text in rendering.system]
    offer = [
        draft.tool(definition) | ({"defer_loading": True} if is_deferred else {})
        for definition, is_deferred in native_tools(request, native, rendering.loaded)
    ]
    if offer:
        body["tools"] = called_from(offer, request.extra)
        choice = draft.choice()
        if request.parallel_tool_calls is not None and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
        body["tool_choice"] = choice
    if rendering.container is not None:
        body["container"] = rendering.container
    body |= draft.asked(temperature="temperature") | draft.answer()
    # After all else that makes blocks, because markers are put on the last of them, and before the
    # user's extras, which may replace whole fields and are nobody's to mark.
    marked = CacheMarks("ephemeral", _put, MARKER, MARKED)
    draft.losses += mark_beginnings(request, body, body.get("tools", []), rendering, marked)
    return body


def _put(blocks: list[JsonObject], end: int, marker: JsonObject) -> None:
    blocks[end - 1][MARKER] = marker


DIALECT: Final = Dialect(
    facts=FACTS,
    tool=_tool,
    choice=_choice,
    answer=_answer,
    tidy=tidy,
    untidy=UNTIDY,
    turn=turn_of,
    calls_in=calls_in,
    say=say,
    rendering=Rendering,
    body=_body,
    form=FORM,
    history=_read_history,
    joined=("output_config",),
)


answer_format: Final = DIALECT.answer_format
check: Final = DIALECT.check
compile: Final = DIALECT.compile  # noqa: A001 (all dialects have the same names)
decode: Final = DIALECT.decode
encode_request: Final = DIALECT.encode_request
messages: Final = DIALECT.messages
read_history: Final = DIALECT.read_history
repair: Final = DIALECT.repair
tool_choice: Final = DIALECT.tool_choice
tools: Final = DIALECT.tools
wire_name: Final = DIALECT.wire_name

if not TYPE_CHECKING:  # checkers take what has a public name
    __all__ = sorted([*PUBLIC, "DEFAULT_MAX_TOKENS"])  # noqa: PLE0605 - it is a list
