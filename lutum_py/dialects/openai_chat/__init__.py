"""OpenAI Chat Completions, and the many hosts that speak it.

Source of the format: the OpenAI API reference, "Chat Completions"; for what hosts add, the
references of Groq, Mistral, OpenRouter and DeepSeek.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._declare.offer import Descriptions
from ..._schema.definition import ToolDef
from ..._text.json import copy_json
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TranscriptItem, TurnRequest
from .._repair.violations import Change, Violation
from .._schema.compiler import CompiledSchema
from .._wire.body import openai_body
from .._wire.losses import EncodedRequest, Loss, cache_losses
from .._wire.offered import answer_schema, choice_of, compiled, offered, schema_losses
from .._wire.other_model import ModelNames
from .._wire.reading import response_place
from . import _decode as _chat_turn
from ._encode import Rendering
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


def compile(  # noqa: A001 (all dialects have the same names)
    definition: ToolDef, *, strict: bool = False
) -> CompiledSchema:
    """Compile a tool's input schema into what this dialect takes.

    Args:
        definition: The tool.
        strict: Whether the tool is offered in strict mode ("Structured Outputs").

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
        strict: Whether the provider holds the model to the schema.

    Returns:
        One object a tool, in order; yours to change.

    Raises:
        ToolDefinitionError: A name or schema has no form here.

    Example:
        >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> tools([echo])[0]["function"]["name"]
        'echo'
    """
    return [_tool(definition, strict) for definition in offered(toolset, available, descriptions)]


def _tool(definition: ToolDef, strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": definition.name}
    if definition.description:
        function["description"] = definition.description
    function["parameters"] = copy_json(compiled(definition, FACTS, strict).schema)
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def tool_choice(requirement: Any) -> str | dict[str, Any]:
    """Say what the model is asked to do, for the request field `tool_choice`.

    Args:
        requirement: A `ToolRequirement`, or a `ToolChoice`.

    Example:
        >>> from lutum_py import ToolChoice
        >>> tool_choice(ToolChoice("specific", "echo"))
        {'type': 'function', 'function': {'name': 'echo'}}
    """
    choice = choice_of(requirement)
    if choice.mode == "specific":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


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
        >>> fields["response_format"]["type"], fields["response_format"]["json_schema"]["name"]
        ('json_schema', 'answer')
    """
    definition, schema = answer_schema(answer, FACTS, strict=True)
    about = {"name": definition.name, "description": definition.description}
    form = {**about, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def decode(response: Mapping[str, Any]) -> AssistantTurn:
    """Read a response.

    Args:
        response: The JSON of a `chat.completion`; of an SDK object,
            `response.to_dict(mode="json")`.

    Returns:
        The turn of the first choice; its payload is the response, without fields that are null.

    Raises:
        DialectError: It is no response, an error, or broken; `where` says at which place.

    Example:
        >>> said = {"role": "assistant", "content": "Hello"}
        >>> decode({"choices": [{"message": said, "finish_reason": "stop"}]}).text
        'Hello'
    """
    return _chat_turn.turn_of(response_place(NAME, response, _chat_turn.tidy))


def messages(committed: Iterable[TranscriptItem]) -> list[dict[str, Any]]:
    """Render a committed round, or any part of a transcript, for the request field `messages`.

    A call by a name that the API refuses goes out under another; `encode_request` reports it.

    Args:
        committed: Messages, turns and results, oldest first.

    Returns:
        One object an item; yours to change.

    Raises:
        MisuseError: What is passed is no committed round and no list of items, such as a plan.

    Example:
        >>> from lutum_py import Message
        >>> messages([Message("user", "Hello")])
        [{'role': 'user', 'content': 'Hello'}]
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

    `extra` goes in last and untouched; tools in it, such as those that a host runs itself, come
    after the tools of the request. Hosts that know only the older `max_tokens` take it as an extra.

    Args:
        request: What is asked of the model.
        strict: Whether the tools are offered in strict mode, as `tools` offers them.
        model: The model that is asked, by one name or all that it goes by. What only the model that
            made a turn can read is not sent to another: its
            reasoning.
        native_search: Without effect: the API knows no deferred tools, and loaded ones go out as
            any others.

    Returns:
        The body, and on its `losses` what it could not carry.

    Raises:
        ToolDefinitionError: A tool's name or schema has no form here.

    Example:
        >>> from lutum_py import Message
        >>> encode_request(TurnRequest(items=[Message("user", "Hello")], temperature=0.5))
        {'messages': [{'role': 'user', 'content': 'Hello'}], 'temperature': 0.5}
    """
    names = [definition.name for definition in request.tools]
    rendering = Rendering.of(request.items, names, model)
    losses = [*rendering.losses, *cache_losses(request.cache, NAME, "key", "retention")]
    for definition in request.tools:
        losses.extend(schema_losses(definition, FACTS, strict))
    offer = [_tool(definition, strict) for definition in request.tools]
    fields: dict[str, Any] = {}
    if request.answer is not None:
        fields = answer_format(request.answer)
        losses.extend(schema_losses(request.answer, FACTS, True))
    body = openai_body(
        request,
        {"messages": rendering.said, **fields},
        tools=offer,
        tool_choice=tool_choice(request.tool_choice),
        limit="max_completion_tokens",
    )
    return EncodedRequest(body, losses)
