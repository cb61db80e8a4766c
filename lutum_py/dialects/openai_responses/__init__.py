"""OpenAI Responses, and the hosts that speak it.

Source of the format: the OpenAI API reference, "Responses", and its guides on function calling and
reasoning models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._declare.offer import Descriptions
from ..._schema.definition import ToolDef
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TranscriptItem, TurnRequest
from .._repair.violations import Change, Violation
from .._schema.compiler import CompiledSchema
from .._wire.body import openai_body
from .._wire.losses import EncodedRequest, Loss, cache_losses
from .._wire.offered import answer_schema, choice_of, compiled, offered, schema_losses
from .._wire.other_model import ModelNames
from .._wire.reading import response_place
from . import _decode as _responses_turn
from ._encode import Rendering
from ._encode_tools import described, found_of, offer_of, tool_of
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
        strict: Whether the provider holds the model to the schema; it would do so by itself.

    Returns:
        One object a tool, in order; yours to change.

    Raises:
        ToolDefinitionError: A name or schema has no form here.

    Example:
        >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
        >>> tools([echo])[0]["name"]
        'echo'
    """
    return [tool_of(definition, strict) for definition in offered(toolset, available, descriptions)]


def tool_choice(requirement: Any) -> str | dict[str, Any]:
    """Say what the model is asked to do, for the request field `tool_choice`.

    Args:
        requirement: A `ToolRequirement`, or a `ToolChoice`.

    Example:
        >>> from lutum_py import ToolChoice
        >>> tool_choice(ToolChoice("specific", "echo"))
        {'type': 'function', 'name': 'echo'}
    """
    choice = choice_of(requirement)
    if choice.mode == "specific":
        return {"type": "function", "name": choice.name}
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
        >>> fields["text"]["format"]["type"], fields["text"]["format"]["name"]
        ('json_schema', 'answer')
    """
    definition, schema = answer_schema(answer, FACTS, strict=True)
    about = {"name": definition.name, "description": definition.description}
    form = {"type": "json_schema", **about, "schema": schema, "strict": True}
    return {"text": {"format": form}}


def decode(response: Mapping[str, Any]) -> AssistantTurn:
    """Read a response.

    Args:
        response: The JSON of a `response`; of an SDK object, `response.to_dict(mode="json")`.

    Returns:
        The turn; its payload is the response, without fields that are null. Where the response is
        incomplete, the finish reason is the reason of that, else it is the status.

    Raises:
        DialectError: It is no response, it failed, or it is broken; `where` says at which place.

    Example:
        >>> part = {"type": "output_text", "text": "Hello"}
        >>> decode({"status": "completed", "output": [{"type": "message", "content": [part]}]}).text
        'Hello'
    """
    return _responses_turn.turn_of(response_place(NAME, response, _responses_turn.tidy))


def messages(committed: Iterable[TranscriptItem]) -> list[dict[str, Any]]:
    """Render a committed round, or any part of a transcript, for the request field `input`.

    A call by a name that the API refuses goes out under another; `encode_request` reports it.

    Args:
        committed: Messages, turns and results, oldest first.

    Returns:
        The input items, several for a turn that had several; yours to change.

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
    native_search: bool = False,
) -> EncodedRequest:
    """Make the body of a request, without the model's name.

    `extra` goes in last and untouched; `text` in it is joined with the format of an answer, and
    tools in it, such as a web search that OpenAI runs, come after the tools of the request.

    Args:
        request: What is asked of the model.
        strict: Whether the tools are offered in strict mode, as `tools` offers them.
        model: The model that is asked, by one name or all that it goes by. What only the model that
            made a turn can read is not sent to another: its
            reasoning, and the ids of what came with it.
        native_search: Whether deferred tools are sent with `defer_loading`, and the search as the
            API's own, which your program answers. There the search has one name: make it with
            `tool_search(name="tool_search")`.

    Returns:
        The body, and on its `losses` what it could not carry.

    Raises:
        ToolDefinitionError: A tool's name or schema has no form here.
        MisuseError: The native search has another name.

    Example:
        >>> from lutum_py import Message
        >>> encode_request(TurnRequest(items=[Message("user", "Hello")], max_output_tokens=9))
        {'input': [{'role': 'user', 'content': 'Hello'}], 'max_output_tokens': 9}
    """
    names = [definition.name for definition in request.tools]
    found = found_of(request, strict=strict, native_search=native_search)
    rendering = Rendering.of(request.items, names, model, found)
    losses = [*rendering.losses, *cache_losses(request.cache, NAME, "key", "retention")]
    offer = offer_of(request, found, rendering.loaded)
    for definition, _ in offer:
        losses.extend(schema_losses(definition, FACTS, strict))
    fields: dict[str, Any] = {}
    if request.answer is not None:
        fields = answer_format(request.answer)
        losses.extend(schema_losses(request.answer, FACTS, True))
    body = openai_body(
        request,
        {"input": rendering.said, **fields},
        tools=[described(each, is_deferred, found, strict) for each, is_deferred in offer],
        tool_choice=tool_choice(request.tool_choice),
        limit="max_output_tokens",
    )
    return EncodedRequest(body, losses)
