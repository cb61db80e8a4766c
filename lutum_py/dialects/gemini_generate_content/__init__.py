"""Google's generateContent, of the Gemini API and of Vertex AI.

What it does otherwise than the dialects do in common:

- `tools` gives one object with all declarations, or nothing if no tool is on offer. The API has
  no strict mode for a single tool, so `strict` is without effect: it holds the model to all schemas
  together, with `{"functionCallingConfig": {"mode": "VALIDATED"}}` as `toolConfig`.
- `tool_choice` is for the request field `toolConfig`.
- `decode` takes the JSON of a GenerateContentResponse, of which the first candidate is read; of an
  SDK object, `response.model_dump(mode="json", by_alias=True, exclude_none=True)`. A dump without
  these is understood too. A prompt that was blocked gives a refusal, with the reason as the finish
  reason.
- `messages` makes one content of a turn, one of the results of a turn, and one of what the user
  says.
- `read_history` reads a function response as `{"output": ...}` or `{"error": "..."}`; one of
  another shape is the output, whole, or an error, if it has one.
- `encode_request` puts instructions into `systemInstruction`. Of a turn of another model the
  thoughts and their signatures are left out. With a cached content, the body has neither the items
  that this covers, nor instructions, tools and their choice, which the API takes from there and
  refuses beside it; it is an `InvalidValueError` where what it covers ends inside of a round. The
  API knows no deferred tools: `native_search` is without effect.

Source of the format: the Gemini API reference, "Generating content", and its guides to function
calling and thought signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ... import ToolDef, ToolResult
from ..._text.json import JsonObject
from ...errors import InvalidValueError
from ...turns import ToolChoice, TranscriptItem
from ...typing import JsonSchema, TranscriptView
from .._dialect import PUBLIC, Dialect, Draft
from .._findings import Loss
from ._decode import FACTS, UNTIDY, calls_in, has_wire_names, say, tidy, turn_of
from ._decode import NAME as NAME
from ._messages import AfterCached, Rendering
from ._messages import read_history as _read_history
from ._rules import FORM
from ._stream import StreamDecoder as StreamDecoder

_MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> JsonObject:  # noqa: ARG001
    about = {"name": definition.name, "description": definition.description}
    return {**about, "parametersJsonSchema": schema}


def _offer(declarations: list[JsonObject]) -> list[JsonObject]:
    return [{"functionDeclarations": declarations}] if declarations else []


def _choice(choice: ToolChoice) -> JsonObject:
    if choice.mode == "specific":
        config: JsonObject = {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    else:
        config = {"mode": _MODES[choice.mode]}
    return {"functionCallingConfig": config}


def _answer(definition: ToolDef, schema: JsonSchema) -> JsonObject:
    schema = {"description": definition.description, **schema}
    form = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    return {"generationConfig": form}


def _body(draft: Draft[JsonObject]) -> JsonObject:
    request, losses = draft.request, draft.losses
    cache = request.cache
    known = ("content", "covers")
    if cache is not None and cache.content is not None:
        _check_covers(request.items, cache.covers)
        rendering: Rendering = draft.render(AfterCached, *known, start=cache.covers)
    else:
        rendering = draft.render(Rendering, *known)
    contents = rendering.said if "contents" in request.extra else rendering.to_send()
    body: JsonObject = {"contents": contents}
    if rendering.system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in rendering.system]}
    if cache is not None and cache.content is not None:
        body["cachedContent"] = cache.content
        if request.tool_choice.mode not in ("auto", "none"):
            text = "the cached content has the choice of tools, and none is sent beside it"
            losses.append(Loss("tool_choice", text))
    elif request.tools:
        body["tools"] = draft.tools()
        body["toolConfig"] = draft.choice()
        draft.lose_parallel()
    config: JsonObject = draft.answer().get("generationConfig", {})
    config |= draft.asked(temperature="temperature", max_output_tokens="maxOutputTokens")
    if config:
        body["generationConfig"] = config
    return body


def _check_covers(items: Sequence[TranscriptItem], covers: int) -> None:
    if isinstance(items, TranscriptView):
        items = items.lasting()  # what only this request says is in no cached content
    if covers > len(items):
        raise InvalidValueError(
            f"Cache: covers={covers}, but the request has {len(items)} items. Say how many of "
            "them the cached content has."
        )
    # [user, call | result] cannot be cut there: the result would go out first, and the API refuses
    # one whose call it does not see in the same request.
    if covers < len(items) and isinstance(items[covers], ToolResult):
        raise InvalidValueError(
            f"Cache: covers={covers} ends inside of a round: items[{covers}] is a result, and the "
            "call that it answers is in the cached content. Let a content end where a round does."
        )


DIALECT: Final = Dialect(
    facts=FACTS,
    tool=_tool,
    offer=_offer,
    choice=_choice,
    answer=_answer,
    tidy=tidy,
    untidy=UNTIDY,
    is_tidy=has_wire_names,
    turn=turn_of,
    calls_in=calls_in,
    say=say,
    rendering=Rendering,
    body=_body,
    form=FORM,
    history=_read_history,
    joined=("generationConfig", "toolConfig"),
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
    __all__ = sorted(PUBLIC)  # noqa: PLE0605 - it is a list
