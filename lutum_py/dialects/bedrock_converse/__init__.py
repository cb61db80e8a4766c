"""Amazon Bedrock's Converse, and its stream.

What it does otherwise than the dialects do in common:

- `decode` takes what boto3's `client.converse(...)` gives, as it is, or the JSON of the API. Bytes
  are base64 in the payload, as JSON has them. The response does not name its model: a caller who
  knows it puts it beside the output, as `modelId`.
- `messages` makes one message of a turn, and one of all that is between two turns.
- `encode_request` makes a body of JSON, with base64 for bytes; `with_bytes` gives it as boto3 takes
  it. Instructions go into `system`. Of a turn of another model the reasoning is left out. A
  conversation with calls is refused without a `toolConfig`: where no tool is on offer, nor in
  `extra`, those that were called are declared by their names. The API cannot forbid a call: the
  choice `none` is a loss. It knows no deferred tools: `native_search` is without effect.
- `answer_format`, and tools in strict mode, are taken by some models only.

Source of the format: the Amazon Bedrock API reference, "Converse" and "ConverseStream", and the
service model in botocore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ... import ToolDef
from ..._text.json import JsonObject, compact_json, is_mapping
from ...turns import ToolChoice
from ...typing import JsonSchema
from .._blocks import CacheMarks, mark_beginnings
from .._dialect import PUBLIC, Dialect, Draft
from .._findings import Loss
from .._offered import described
from ._decode import FACTS, calls_in, say, tidy, turn_of
from ._decode import NAME as NAME
from ._decode import with_bytes as with_bytes
from ._messages import FORM, MARKED, MARKER, Rendering
from ._messages import called as called_in
from ._messages import read_history as _read_history
from ._stream import StreamDecoder as StreamDecoder


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> JsonObject:
    return {"toolSpec": described(definition, "inputSchema", {"json": schema}, strict)}


def _choice(choice: ToolChoice) -> JsonObject:
    if choice.mode == "specific":
        return {"tool": {"name": choice.name}}
    return {"any" if choice.mode == "required" else "auto": {}}


def _answer(definition: ToolDef, schema: JsonSchema) -> JsonObject:
    about = {"name": definition.name, "description": definition.description}
    form = {**about, "schema": compact_json(schema)}
    text = {"type": "json_schema", "structure": {"jsonSchema": form}}
    return {"outputConfig": {"textFormat": text}}


def _body(draft: Draft[JsonObject]) -> JsonObject:
    request = draft.request
    rendering = draft.render(Rendering, "ttl")
    said = rendering.said if "messages" in request.extra else rendering.to_send()
    body: JsonObject = {"messages": said}
    if rendering.system:
        body["system"] = [{"text": text} for text in rendering.system]
    if request.tools:
        body["toolConfig"] = {"tools": draft.tools(), "toolChoice": draft.choice()}
        if request.tool_choice.mode == "none":
            draft.losses.append(Loss("tool_choice", f"{NAME} has no word for `none`: it may call"))
        draft.lose_parallel()
    # No tool is on offer now, but the conversation has calls, and the API wants a `toolConfig` for
    # these. Their schemas are empty: nobody is to call them. An extra that declares tools is such a
    # field, and would have one of them twice, which the API refuses.
    elif not _declares(request.extra.get("toolConfig")) and (called := called_in(said)):
        body["toolConfig"] = {"tools": called}
    config = draft.asked(max_output_tokens="maxTokens", temperature="temperature")
    if config:
        body["inferenceConfig"] = config
    body |= draft.answer()
    tools = body.get("toolConfig", {}).get("tools", [])
    marked = CacheMarks("default", _put, MARKER, MARKED)
    draft.losses += mark_beginnings(request, body, tools, rendering, marked)
    return body


# A cache point is a block of its own after what is to be kept. (Amazon Bedrock user guide: "Prompt
# caching".) Messages are marked from the last to the first, so no place is moved by what is put in.
def _put(blocks: list[JsonObject], end: int, point: JsonObject) -> None:
    blocks.insert(end, {MARKER: point})


def _declares(config: object) -> bool:
    """Whether a `toolConfig` of the user's declares tools."""
    return is_mapping(config) and "tools" in config


DIALECT: Final = Dialect(
    facts=FACTS,
    tool=_tool,
    choice=_choice,
    answer=_answer,
    tidy=tidy,
    turn=turn_of,
    calls_in=calls_in,
    say=say,
    rendering=Rendering,
    body=_body,
    form=FORM,
    history=_read_history,
    joined=("inferenceConfig", "outputConfig", "toolConfig"),
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
    __all__ = sorted([*PUBLIC, "with_bytes"])  # noqa: PLE0605 - it is a list
