"""OpenAI Responses, and the hosts that speak it.

What it does otherwise than the dialects do in common:

- `tools` says about each tool whether it is strict: the API would make it so by itself.
- `decode` takes the JSON of a `response`; of an SDK object, `response.to_dict(mode="json")`. If
  the response is incomplete, the finish reason is the reason of that, else it is the status.
- Calls of the API's own tools that the program answers are calls of the turn, by the name of their
  item: `local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call` and
  `mcp_approval_request`. The arguments are the `action` or `operation`; of a computer `action` or
  `actions` and `pending_safety_checks`, of an approval `server_label`, `name` and `arguments`. So a
  tool of that name runs them. Put the API's own tool into `extra`, as `{"tools": [{"type":
  "shell"}]}`; it is offered in place of yours.
- `messages` makes several items of a turn that had several. A result goes into the item that
  answers the call. Of a shell, an output in the form of the wire, with `stdout`, `stderr` and
  `outcome`, goes as it is; of a computer, the last picture of a result goes, and without one the
  call is left out and the result said as a message; an approval is given by `true` alone.
- `read_history` reads the `instructions` of a body. What the provider keeps, as under
  `previous_response_id`, is not in the body, and is not read.
- `encode_request` leaves out the reasoning of another model, and the ids of what came with it. With
  `native_search`, deferred tools are sent with `defer_loading`, and the search as the API's own,
  which your program answers. There it has one name: make it by `tool_search(name="tool_search")`.
- `allowed_callers` is what `tool(f, callers=...)` says, and a result repeats who called. A tool
  that programs may call is sent with the schema of its output, unless that may be a text.
- `with_json_arguments` is for hosts that refuse arguments in a history that are no JSON.

Source of the format: the OpenAI API reference, "Responses", and its guides on function calling and
reasoning models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ... import ToolDef
from ..._text.json import JsonObject
from ...turns import ToolChoice
from ...typing import JsonSchema
from .._dialect import PUBLIC, Dialect, Draft
from .._offered import native_tools
from .._openai import UNTIDY, openai_body
from .._openai import with_json_arguments as _with_json_arguments
from .._reading import objects_in
from ..hosts import Host
from ._decode import FACTS, PROGRAM_CALLS, calls_in, say, tidy, turn_of
from ._decode import NAME as NAME
from ._messages import Rendering, checked, described, tool_of
from ._messages import read_history as _read_history
from ._rules import FORM
from ._stream import StreamDecoder as StreamDecoder


def _choice(choice: ToolChoice) -> str | JsonObject:
    if choice.mode == "specific":
        return {"type": "function", "name": choice.name}
    return choice.mode


def _answer(definition: ToolDef, schema: JsonSchema) -> JsonObject:
    about = {"name": definition.name, "description": definition.description}
    form = {"type": "json_schema", **about, "schema": schema, "strict": True}
    return {"text": {"format": form}}


def _body(draft: Draft[str | JsonObject]) -> JsonObject:
    native = checked(draft.searches())
    rendering = draft.render(Rendering, "key", "retention", found=native)
    # The API's own tool stands for the function that runs its calls: {"type": "shell"}, and none
    # by the name `shell_call`.
    own = {str(tool.get("type")) for tool in objects_in(draft.request.extra.get("tools"))}
    stood_for = {kind for kind, known in PROGRAM_CALLS.items() if not own.isdisjoint(known.tools)}
    tools = [
        described(draft.tool(definition), is_deferred, native)
        for definition, is_deferred in native_tools(draft.request, native, rendering.loaded)
        if definition.name not in stood_for
    ]
    return openai_body(draft, {"input": rendering.said}, tools, limit="max_output_tokens")


def _fit(request: JsonObject, host: Host) -> tuple[()]:
    if host.parses_arguments:
        request.update(_with_json_arguments(request))
    return ()


def _hosted(host: Host) -> Dialect[Any]:
    return replace(DIALECT, host=host)


DIALECT: Final = Dialect(
    facts=FACTS,
    tool=tool_of,
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
    joined=("text",),
    fit=_fit,
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
with_json_arguments: Final = _with_json_arguments

if not TYPE_CHECKING:  # checkers take what has a public name
    __all__ = sorted([*PUBLIC, "with_json_arguments"])  # noqa: PLE0605 - it is a list
