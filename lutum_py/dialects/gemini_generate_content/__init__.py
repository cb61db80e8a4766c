"""Google's generateContent, of the Gemini API and of Vertex AI.

Source of the format: the Gemini API reference, "Generating content", and its guides to function
calling and thought signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..._declare.offer import Descriptions
from ..._schema.definition import ToolDef
from ..._text.json import copy_json
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TranscriptItem, TurnRequest
from ..._transcript.result import ToolResult
from ...errors import InvalidValueError
from .._repair.violations import Change, Violation
from .._schema.compiler import CompiledSchema
from .._wire.body import add_extras
from .._wire.losses import EncodedRequest, Loss, cache_losses
from .._wire.offered import answer_schema, choice_of, compiled, offered, schema_losses
from .._wire.other_model import ModelNames
from .._wire.reading import response_place
from ._decode import tidy, turn_of
from ._encode import AfterCached, Rendering
from ._facts import FACTS, NAME
from ._history import read_history
from ._rules import check, repair
from ._stream import StreamDecoder

__all__ = [
    "NAME",
    "Change",
    "CompiledSchema",
    "EncodedRequest",
    "Loss",
    "StreamDecoder",
    "Violation",
    "answer_format",
    "check",
    "compile",
    "decode",
    "encode_request",
    "messages",
    "read_history",
    "repair",
    "tool_choice",
    "tools",
]

_MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def compile(  # noqa: A001 (all dialects have the same names)
    definition: ToolDef, *, strict: bool = False
) -> CompiledSchema:
    """Compile a tool's input schema into what this dialect takes in `parametersJsonSchema`.

    Args:
        definition: The tool.
        strict: Without effect: the API has no strict mode for a single tool.

    Returns:
        The schema, the decoder of arguments, and what the provider will not enforce.

    Raises:
        ToolDefinitionError: The name or the schema has no form here.

    Example:
        >>> tool = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> compile(tool).schema
        {'type': 'object', 'properties': {}}
    """
    return compiled(definition, FACTS, strict)


def tools(
    toolset: Any,
    *,
    available: Any = None,
    descriptions: Descriptions = (),
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Describe the tools on offer, for the request field `tools`.

    Args:
        toolset: A toolset, or an iterable of `ToolDef`.
        available: Which of its tools are on offer; None for those that are on.
        descriptions: Pairs of a selector and the text that the model reads instead.
        strict: Without effect on a tool: the API holds the model to all schemas together, with
            `{"functionCallingConfig": {"mode": "VALIDATED"}}` as `toolConfig`.

    Returns:
        One object with all declarations, in order, or nothing where no tool is on offer; yours to
        change.

    Raises:
        ToolDefinitionError: A name or schema has no form here.

    Example:
        >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> tools([echo])[0]["functionDeclarations"][0]["name"]
        'echo'
    """
    return _tools(offered(toolset, available, descriptions), strict)


def _tools(definitions: Iterable[ToolDef], strict: bool) -> list[dict[str, Any]]:
    declarations = [_declaration(definition, strict) for definition in definitions]
    return [{"functionDeclarations": declarations}] if declarations else []


def _declaration(definition: ToolDef, strict: bool) -> dict[str, Any]:
    schema = copy_json(compiled(definition, FACTS, strict).schema)
    return {
        "name": definition.name,
        "description": definition.description,
        "parametersJsonSchema": schema,
    }


def tool_choice(requirement: Any) -> dict[str, Any]:
    """Say what the model is asked to do, for the request field `toolConfig`.

    Args:
        requirement: A `ToolRequirement`, or a `ToolChoice`.

    Example:
        >>> from lutum_py import ToolChoice
        >>> tool_choice(ToolChoice("specific", "echo"))
        {'functionCallingConfig': {'mode': 'ANY', 'allowedFunctionNames': ['echo']}}
    """
    choice = choice_of(requirement)
    if choice.mode == "specific":
        config: dict[str, Any] = {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    else:
        config = {"mode": _MODES[choice.mode]}
    return {"functionCallingConfig": config}


def answer_format(answer: Any) -> dict[str, Any]:
    """Hold the text of the model to the schema of a final answer: the request fields for it.

    Args:
        answer: An `Answer`, or `request.answer`.

    Raises:
        ToolDefinitionError: The schema has no form here.
        MisuseError: It is no answer.

    Example:
        >>> from lutum_py import Answer
        >>> fields = answer_format(Answer(list[int], by="format"))
        >>> fields["generationConfig"]["responseMimeType"]
        'application/json'
    """
    definition, schema = answer_schema(answer, FACTS, strict=False)
    schema = {"description": definition.description, **schema}
    form = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    return {"generationConfig": form}


def decode(response: Mapping[str, Any]) -> AssistantTurn:
    """Read a response.

    Args:
        response: The JSON of a GenerateContentResponse; of an SDK object,
            `response.model_dump(mode="json", by_alias=True, exclude_none=True)`. A dump without
            these is understood too.

    Returns:
        The turn of the first candidate; its payload is the response in the form of the wire. The
        arguments of a call, which come as an object, are compact JSON in the order that it has. A
        prompt that was blocked gives a refusal, with the reason as the finish reason.

    Raises:
        DialectError: It is no response, an error, or broken; `where` says at which place.

    Example:
        >>> call = {"functionCall": {"name": "add", "args": {"a": 1}}}
        >>> turn = decode({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]})
        >>> turn.tool_calls[0].arguments
        '{"a":1}'
    """
    return turn_of(response_place(NAME, response, tidy))


def messages(committed: Iterable[TranscriptItem]) -> list[dict[str, Any]]:
    """Render a committed round, or any part of a transcript, for the request field `contents`.

    Messages of system and developer are left out, because they stand in the request field
    `systemInstruction`; `encode_request` puts them there.

    A call by a name that the API refuses goes out under another; `encode_request` reports it.

    Args:
        committed: Messages, turns and results, oldest first.

    Returns:
        One content a turn, one for the results of a turn, and one for what the user says; yours to
        change.

    Raises:
        MisuseError: What is passed is no committed round and no list of items, such as a plan.

    Example:
        >>> from lutum_py._transcript.message import Message
        >>> messages([Message("user", "Hello")])
        [{'role': 'user', 'parts': [{'text': 'Hello'}]}]
    """
    return Rendering.of(committed).said


def encode_request(
    request: TurnRequest,
    *,
    strict: bool = False,
    model: ModelNames = None,
    native_search: bool = False,  # noqa: ARG001 - all dialects take the same
) -> EncodedRequest:
    """Make the body of a request, without the model's name.

    `extra` goes in last and untouched; `generationConfig` and `toolConfig` in it are joined with
    those of the request, and tools in it, such as those that the provider runs itself, come after
    the tools of the request.

    Args:
        request: What is asked of the model.
        strict: Without effect, as in `tools`.
        model: The model that is asked, by one name or all that it goes by. What only the model that
            made a turn can read is not sent to another: thoughts and
            their signatures.
        native_search: Without effect: the API knows no deferred tools, and loaded ones go out as
            any others.

    Returns:
        The body, and on its `losses` what it could not carry. With a cached content it has neither
        the items that this covers, nor instructions, tools and their choice, which it takes from
        there: the API refuses them beside it.

    Raises:
        ToolDefinitionError: A tool's name or schema has no form here.
        InvalidValueError: The conversation is empty, or begins with calls of the model; or what a
            cached content covers ends inside of a round.

    Example:
        >>> from lutum_py._transcript.message import Message
        >>> body = encode_request(TurnRequest(items=[Message("user", "Hello")], temperature=0.5))
        >>> body["generationConfig"]
        {'temperature': 0.5}
    """
    names = [definition.name for definition in request.tools]
    cache = request.cache
    is_cached = cache is not None and cache.content is not None
    if cache is not None and cache.content is not None:
        _check_covers(request.items, cache.covers)
        rendering: Rendering = AfterCached.of(request.items, names, model, start=cache.covers)
    else:
        rendering = Rendering.of(request.items, names, model)
    losses = [*rendering.losses, *cache_losses(cache, NAME, "content", "covers")]
    contents = rendering.said if "contents" in request.extra else rendering.to_send()
    body: dict[str, Any] = {"contents": contents}
    if cache is not None and cache.content is not None:
        body["cachedContent"] = cache.content
    if rendering.system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in rendering.system]}
    offer = [] if is_cached else _tools(request.tools, strict)
    if is_cached and request.tool_choice.mode not in ("auto", "none"):
        text = "the cached content has the choice of tools, and none is sent beside it"
        losses.append(Loss("tool_choice", text))
    if offer:
        for definition in request.tools:
            losses.extend(schema_losses(definition, FACTS, strict))
        body["tools"] = offer
        body["toolConfig"] = tool_choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            text = f"{NAME} has no field for it: the model decides on parallel calls"
            losses.append(Loss("parallel_tool_calls", text))
    config: dict[str, Any] = {}
    if request.answer is not None:
        config = answer_format(request.answer)["generationConfig"]
        losses.extend(schema_losses(request.answer, FACTS, False))
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if config:
        body["generationConfig"] = config
    add_extras(body, request.extra, joined=("generationConfig", "toolConfig"))
    return EncodedRequest(body, losses)


def _check_covers(items: Sequence[TranscriptItem], covers: int) -> None:
    if covers > len(items):
        raise InvalidValueError(f"Cache: covers={covers}, but the request has {len(items)} items.")
    if covers < len(items) and isinstance(items[covers], ToolResult):
        raise InvalidValueError(
            f"Cache: covers={covers} ends inside of a round: items[{covers}] is a result, and the "
            "call that it answers is in the cached content. Let a content end where a round does."
        )
