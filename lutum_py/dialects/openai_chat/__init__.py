"""OpenAI Chat Completions, and the many hosts that speak it.

What it does otherwise than the dialects do in common:

- `decode` takes the JSON of a `chat.completion`, of which the first choice is read; of an SDK
  object, `response.to_dict(mode="json")`.
- `messages` makes one message of each item, instructions among them.
- `encode_request` asks for `max_completion_tokens`; hosts that know only the older `max_tokens`
  take it as an extra. Of a turn of another model the reasoning is left out. The API knows no
  deferred tools: `native_search` is without effect.
- `encode_request`, `messages`, `check` and `repair` take the `host` that the request is for, a
  record of `lutum_py.dialects.hosts`, where it departs from OpenAI's ways.
- `with_json_arguments` is for hosts that refuse arguments in a history that are no JSON.

Source of the format: the OpenAI API reference, "Chat Completions"; for what hosts add, the
references of Groq, Mistral, OpenRouter and DeepSeek.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ..._schema.definition import ToolDef
from ..._schema.schema_reader import JsonSchema
from ..._transcript.request import ToolChoice, TranscriptItem, TurnRequest
from ...errors import MisuseError
from .._dialect import PUBLIC, Dialect, Draft
from .._findings import Change, EncodedRequest, Violation
from .._openai import UNTIDY, openai_body
from .._openai import with_json_arguments as with_json_arguments
from .._wire.offered import described
from .._wire.replay import ModelNames
from ..hosts import Host
from ._decode import tidy, turn_of
from ._encode import Rendering
from ._facts import FACTS
from ._facts import NAME as NAME
from ._history import read_history as _read_history
from ._request_rules import REQUEST_FORM, facts_at, fit, form_at
from ._stream import StreamDecoder as StreamDecoder


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> dict[str, Any]:
    return {"type": "function", "function": described(definition, "parameters", schema, strict)}


def _choice(choice: ToolChoice) -> str | dict[str, Any]:
    if choice.mode == "specific":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _answer(definition: ToolDef, schema: JsonSchema) -> dict[str, Any]:
    about = {"name": definition.name, "description": definition.description}
    form = {**about, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _body(draft: Draft[str | dict[str, Any]]) -> dict[str, Any]:
    dialect = draft.dialect
    body: dict[str, Any] = {"messages": draft.render(dialect.rendering, "key", "retention").said}
    openai_body(draft, body, draft.tools(), limit="max_completion_tokens")
    if dialect.host is not None:
        draft.losses += fit(body, dialect.host)
    return body


DIALECT: Final = Dialect(
    facts=FACTS,
    tool=_tool,
    choice=_choice,
    answer=_answer,
    tidy=tidy,
    untidy=UNTIDY,
    turn=turn_of,
    rendering=Rendering,
    body=_body,
    form=REQUEST_FORM,
    history=_read_history,
)


@lru_cache(maxsize=64)
def dialect_at(host: Host | None) -> Dialect[Any]:
    """Return the dialect as a host speaks it.

    Raises:
        MisuseError: It is no host.
    """
    if host is None:
        return DIALECT
    MisuseError.check("openai_chat", "host", "a Host of `lutum_py.dialects.hosts`", host, Host)
    facts = facts_at(host)
    own = {"facts": facts, "takes_files_in_results": host.files_in_results}
    rendering = type("Rendering", (Rendering,), own)
    return replace(DIALECT, facts=facts, rendering=rendering, form=form_at(host), host=host)


def check(request: Any, *, host: Host | None = None) -> list[Violation]:
    """Find what a conversation breaks of the rules of OpenAI, or of a host.

    Args:
        request: A request body, or the list of its conversation; anything else is a violation.
        host: The host, if it has ways of its own.

    Returns:
        Every violation, in the order of the list; none for a request that is well formed.

    Example:
        >>> from lutum_py.dialects.hosts import XAI
        >>> call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        >>> result = {"role": "tool", "tool_call_id": "1", "content": "3"}
        >>> said = [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
        >>> check(said), [each.rule for each in check(said, host=XAI)]
        ([], ['message_without_content'])
    """
    return dialect_at(host).check(request)


def repair(request: Any, *, host: Host | None = None) -> tuple[Any, list[Change]]:
    """Fix a conversation so that `check` finds nothing, for OpenAI or for a host.

    Args:
        request: A request body, or the list of its conversation; it is not changed.
        host: The host, if it has ways of its own.

    Returns:
        A repaired copy of the same shape, and what was changed.

    Example:
        >>> from lutum_py.dialects.hosts import GROQ
        >>> said = [{"role": "assistant", "content": "Hi", "reasoning_content": "Greet."}]
        >>> repair(said, host=GROQ)[0]
        [{'role': 'assistant', 'content': 'Hi'}]
    """
    return dialect_at(host).repair(request)


def messages(
    committed: Iterable[TranscriptItem], *, host: Host | None = None
) -> list[dict[str, Any]]:
    """Render a committed round, or any part of a transcript, for the list of the conversation.

    Args:
        committed: Messages, turns and results, oldest first.
        host: The host, if it has ways of its own.

    Returns:
        What everybody said, as the provider takes it; yours to change.

    Raises:
        MisuseError: What is passed is neither a committed round nor a list of items, such as a
            plan.

    Example:
        >>> from lutum_py import Message
        >>> messages([Message("user", "Hello")])
        [{'role': 'user', 'content': 'Hello'}]
    """
    said = dialect_at(host).messages(committed)
    if host is not None:
        fit({"messages": said}, host)
    return said


def encode_request(
    request: TurnRequest,
    *,
    strict: bool = False,
    model: ModelNames = None,
    native_search: bool = False,
    host: Host | None = None,
) -> EncodedRequest:
    """Make the body of a request, without the model's name.

    Args:
        request: What is asked of the model.
        strict: Whether the tools are offered in strict mode, as `tools` offers them.
        model: The model that is asked, by one name or all that it goes by.
        native_search: Without effect here: the API knows no deferred tools.
        host: The host, if it has ways of its own. What its ways cost is on the `losses`.

    Returns:
        The body, and on its `losses` what it could not carry.

    Raises:
        ToolDefinitionError: A tool's schema has no form in the dialect.
        MisuseError: It is no request, or no host.

    Example:
        >>> from lutum_py import Message
        >>> from lutum_py.dialects.hosts import MISTRAL
        >>> said = TurnRequest(items=[Message("user", "Hello")], max_output_tokens=50)
        >>> encode_request(said, host=MISTRAL)
        {'messages': [{'role': 'user', 'content': 'Hello'}], 'max_tokens': 50}
    """
    dialect = dialect_at(host)
    return dialect.encode_request(request, strict=strict, model=model, native_search=native_search)


answer_format: Final = DIALECT.answer_format
compile: Final = DIALECT.compile  # noqa: A001 (all dialects have the same names)
decode: Final = DIALECT.decode
read_history: Final = DIALECT.read_history
tool_choice: Final = DIALECT.tool_choice
tools: Final = DIALECT.tools
wire_name: Final = DIALECT.wire_name

if not TYPE_CHECKING:  # checkers take what has a public name
    __all__ = sorted([*PUBLIC, "with_json_arguments"])  # noqa: PLE0605 - it is a list
