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

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ... import ToolDef
from ..._text.json import JsonObject
from ...turns import ToolChoice
from ...typing import JsonSchema
from .._dialect import PUBLIC, Dialect, Draft
from .._offered import described
from .._openai import UNTIDY, openai_body
from .._openai import with_json_arguments as with_json_arguments
from ..hosts import Host
from ._decode import FACTS, calls_in, say, tidy, turn_of
from ._decode import NAME as NAME
from ._messages import Rendering
from ._messages import read_history as _read_history
from ._rules import REQUEST_FORM, facts_at, fit, form_at
from ._stream import StreamDecoder as StreamDecoder


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> JsonObject:
    return {"type": "function", "function": described(definition, "parameters", schema, strict)}


def _choice(choice: ToolChoice) -> str | JsonObject:
    if choice.mode == "specific":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _answer(definition: ToolDef, schema: JsonSchema) -> JsonObject:
    about = {"name": definition.name, "description": definition.description}
    form = {**about, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _body(draft: Draft[str | JsonObject]) -> JsonObject:
    rendering = draft.dialect.rendering
    body: JsonObject = {"messages": draft.render(rendering, "key", "retention").said}
    return openai_body(draft, body, draft.tools(), limit="max_completion_tokens")


@lru_cache(maxsize=64)
def _hosted(host: Host) -> Dialect[Any]:
    facts = facts_at(host)
    own = {"facts": facts, "takes_files_in_results": host.files_in_results}
    rendering = type("Rendering", (Rendering,), own)
    return replace(DIALECT, facts=facts, rendering=rendering, form=form_at(host), host=host)


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
    form=REQUEST_FORM,
    history=_read_history,
    fit=fit,
    hosted=_hosted,
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
    __all__ = sorted([*PUBLIC, "with_json_arguments"])  # noqa: PLE0605 - it is a list
