"""A dialect for a small provider, as pure functions on plain dicts: see "Write a dialect"."""

from __future__ import annotations

from typing import Any

from lutum_py import ToolDef
from lutum_py.dialects import Change, CompiledSchema, EncodedRequest, Loss, Violation
from lutum_py.dialects.authoring import Dialect, Draft, copy_json
from lutum_py.errors import ToolDefinitionError
from lutum_py.turns import ToolChoice
from lutum_py.typing import JsonSchema

from ._decode import turn_of
from ._encode import Rendering
from ._facts import FACTS, NAME
from ._history import read_history as _read_history
from ._rules import FORM
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

_MODES = {"auto": "may", "required": "must", "none": "never"}


def _tool(definition: ToolDef, schema: JsonSchema, strict: bool) -> dict[str, Any]:
    return {"name": definition.name, "about": definition.description, "input": schema}


def _choice(choice: ToolChoice) -> str | dict[str, Any]:
    return {"name": choice.name} if choice.mode == "specific" else _MODES[choice.mode]


def _answer(definition: ToolDef, schema: JsonSchema) -> dict[str, Any]:
    raise ToolDefinitionError(f"{NAME} holds no text to a schema. Ask for it with `by='tool'`.")


def _body(draft: Draft[str | dict[str, Any]]) -> dict[str, Any]:
    request = draft.request
    body = {"messages": draft.render(Rendering).said, **draft.answer()}
    if request.tools:
        body["tools"] = draft.tools()
        body["call"] = draft.choice()
    if request.max_output_tokens is not None:
        body["limit"] = request.max_output_tokens
    for field in ("temperature", "parallel_tool_calls"):
        if getattr(request, field) is not None:
            draft.losses.append(Loss(field, f"{NAME} has no word for it"))
    return body


DIALECT = Dialect(
    facts=FACTS,
    tool=_tool,
    choice=_choice,
    answer=_answer,
    tidy=copy_json,
    turn=turn_of,
    rendering=Rendering,
    body=_body,
    form=FORM,
    history=_read_history,
)

answer_format = DIALECT.answer_format
check = DIALECT.check
compile = DIALECT.compile
decode = DIALECT.decode
encode_request = DIALECT.encode_request
messages = DIALECT.messages
read_history = DIALECT.read_history
repair = DIALECT.repair
tool_choice = DIALECT.tool_choice
tools = DIALECT.tools
wire_name = DIALECT.wire_name
