"""Anthropic's Messages API.

Source of the format: the Anthropic API reference, "Messages" and "Streaming messages", and the
guides to tool use and extended thinking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..._declare.offer import Descriptions
from ..._schema.definition import ToolDef
from ..._text.json import copy_json
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TranscriptItem, TurnRequest
from .._repair.violations import Change, Violation
from .._schema.compiler import CompiledSchema
from .._wire.body import add_extras
from .._wire.losses import EncodedRequest, Loss, cache_losses
from .._wire.native_search import always_offered, native_search_of, native_tools
from .._wire.offered import answer_schema, choice_of, compiled, offered, schema_losses
from .._wire.other_model import ModelNames
from .._wire.reading import response_place
from ._cache import mark
from ._decode import tidy, turn_of
from ._encode import Rendering, is_manual
from ._facts import FACTS, NAME
from ._history import read_history
from ._rules import check, repair
from ._stream import StreamDecoder

__all__ = [
    "DEFAULT_MAX_TOKENS",
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

DEFAULT_MAX_TOKENS: Final = 4096
"""What `encode_request` asks for where the request sets no bound: the API demands one, and every
model takes this. `max_output_tokens` overrides it."""

_MODES: Final = {"auto": "auto", "required": "any", "none": "none"}


def compile(  # noqa: A001 (all dialects have the same names)
    definition: ToolDef, *, strict: bool = False
) -> CompiledSchema:
    """Compile a tool's input schema into what this dialect takes.

    Args:
        definition: The tool.
        strict: Whether the tool is offered in strict mode.

    Returns:
        The schema, the decoder of arguments, and what the provider will not enforce.

    Raises:
        ToolDefinitionError: The name or the schema has no form here.

    Example:
        >>> tool = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> compile(tool, strict=True).schema["additionalProperties"]
        False
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

    In strict mode the API takes at most 20 tools in one request, and 24 optional properties in all
    of them together; it compiles their schemas into one grammar, and refuses one that is too large.

    Args:
        toolset: A toolset, or an iterable of `ToolDef`.
        available: Which of its tools are on offer; None for those that are on.
        descriptions: Pairs of a selector and the text that the model reads instead.
        strict: Whether the provider holds the model to the schema.

    Returns:
        One object a tool, in order; yours to change.

    Raises:
        ToolDefinitionError: A name or schema has no form here.

    Example:
        >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> tools([echo])
        [{'name': 'echo', 'input_schema': {'type': 'object', 'properties': {}}}]
    """
    return [_tool(definition, strict) for definition in offered(toolset, available, descriptions)]


def _tool(definition: ToolDef, strict: bool) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": definition.name}
    if definition.description:
        tool["description"] = definition.description
    tool["input_schema"] = copy_json(compiled(definition, FACTS, strict).schema)
    if strict:
        tool["strict"] = True
    return tool


def tool_choice(requirement: Any) -> dict[str, Any]:
    """Say what the model is asked to do, for the request field `tool_choice`.

    Args:
        requirement: A `ToolRequirement`, or a `ToolChoice`.

    Example:
        >>> from lutum_py import ToolChoice
        >>> tool_choice(ToolChoice("specific", "echo"))
        {'type': 'tool', 'name': 'echo'}
    """
    choice = choice_of(requirement)
    if choice.mode == "specific":
        return {"type": "tool", "name": choice.name}
    return {"type": _MODES[choice.mode]}


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
        >>> fields["output_config"]["format"]["type"]
        'json_schema'
    """
    definition, schema = answer_schema(answer, FACTS, strict=True)
    schema = {"description": definition.description, **schema}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def decode(response: Mapping[str, Any]) -> AssistantTurn:
    """Read a response.

    Args:
        response: The JSON of a message; of an SDK object, `response.to_dict(mode="json")`.

    Returns:
        The turn; its payload is the response, without fields that are null. The arguments of a
        call, which come as an object, are compact JSON in the order that it has.

    Raises:
        DialectError: It is no response, an error, or broken; `where` says at which place.

    Example:
        >>> call = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
        >>> decode({"content": [call], "stop_reason": "tool_use"}).tool_calls[0].arguments
        '{"a":1}'
    """
    return turn_of(response_place(NAME, response, tidy))


def messages(committed: Iterable[TranscriptItem]) -> list[dict[str, Any]]:
    """Render a committed round, or any part of a transcript, for the request field `messages`.

    Messages of system and developer are left out, because they stand in the request field
    `system`; `encode_request` puts them there.

    A call by a name that the API refuses goes out under another; `encode_request` reports it.

    Args:
        committed: Messages, turns and results, oldest first.

    Returns:
        One message a turn, and one for all that stands between two turns; yours to change.

    Raises:
        MisuseError: What is passed is no committed round and no list of items, such as a plan.

    Example:
        >>> from lutum_py._transcript.message import Message
        >>> messages([Message("user", "Hello")])
        [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}]
    """
    return Rendering.of(committed).said


def encode_request(
    request: TurnRequest,
    *,
    strict: bool = False,
    model: ModelNames = None,
    native_search: bool = False,
) -> EncodedRequest:
    """Make the body of a request, without the model's name.

    `extra` goes in last and untouched; `output_config` in it is joined with that of an answer, and
    tools in it, such as those that the provider runs itself, come after the tools of the request.

    Args:
        request: What is asked of the model.
        strict: Whether the tools are offered in strict mode, as `tools` offers them.
        model: The model that is asked, by one name or all that it goes by. What only the model that
            made a turn can read is not sent to another: blocks of
            thinking.
        native_search: Whether deferred tools are sent with `defer_loading`, and what a search found
            as references to them; not every model and host takes that.

    Returns:
        The body, and on its `losses` what it could not carry. `max_tokens`, which the API demands,
        is `DEFAULT_MAX_TOKENS` where the request sets no bound.

    Raises:
        ToolDefinitionError: A tool's name or schema has no form here.
        InvalidValueError: The conversation does not begin with what the user says.

    Example:
        >>> from lutum_py import Message
        >>> said = [Message("system", "Be brief."), Message("user", "Hello")]
        >>> body = encode_request(TurnRequest(items=said))
        >>> body["system"], body["max_tokens"]
        ('Be brief.', 4096)
    """
    names = [definition.name for definition in request.tools]
    native = native_search_of(request, native_search)
    rendering = Rendering.of(request.items, names, model, native, whole=is_manual(request.extra))
    limit = request.max_output_tokens
    body: dict[str, Any] = {
        "messages": rendering.said if "messages" in request.extra else rendering.to_send(),
        "max_tokens": DEFAULT_MAX_TOKENS if limit is None else limit,
    }
    if len(rendering.system) == 1:
        body["system"] = rendering.system[0]
    elif rendering.system:
        body["system"] = [{"type": "text", "text": text} for text in rendering.system]
    losses = [*rendering.losses, *cache_losses(request.cache, NAME, "ttl")]
    offer: list[dict[str, Any]] = []
    for definition, is_deferred in native_tools(request, native, rendering.loaded):
        losses.extend(schema_losses(definition, FACTS, strict))
        offer.append(_tool(definition, strict) | ({"defer_loading": True} if is_deferred else {}))
    if offer:
        body["tools"] = offer
        choice = tool_choice(request.tool_choice)
        if request.parallel_tool_calls is not None and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
        body["tool_choice"] = choice
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.answer is not None:
        body |= answer_format(request.answer)
        losses.extend(schema_losses(request.answer, FACTS, True))
    if request.cache is not None:
        mark(body, request.cache, rendering, len(always_offered(request)))
    add_extras(body, request.extra, joined=("output_config",))
    return EncodedRequest(body, losses)
