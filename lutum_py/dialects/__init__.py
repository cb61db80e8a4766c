"""The wire formats of the providers, each as pure functions on plain dicts.

A dialect is one public module: `openai_chat`, `openai_responses`, `anthropic_messages`,
`gemini_generate_content`, `bedrock_converse`. None of them imports an SDK, and all of them have the
same names:

| name | what it does |
|---|---|
| `NAME` | the dialect's name, as it is on every turn that it decoded |
| `tools(toolset, *, available=None, descriptions=(), strict=False)` | the tools on offer |
| `tool_choice(requirement)` | the value of the request field that asks for a call |
| `answer_format(answer)` | the request fields that hold the text to a final answer of a type |
| `decode(response)` | one response → an `AssistantTurn` |
| `messages(committed)` | turns and results → what goes back to the provider |
| `read_history(request)` | a conversation that was kept elsewhere → a transcript, and its losses |
| `encode_request(request, *, strict=False, model=None)` | a `TurnRequest` → a body with `losses` |
| `StreamDecoder()` | `feed(event)` → events, `close()` → the last ones, `finish()` → the turn |
| `check(request)` | the rules that a request body, or its list of messages, breaks |
| `repair(request)` | what it was given, repaired, and the list of changes |
| `compile(definition, *, strict=False)` | one tool's schema in this dialect |
| `wire_name(name)` | the name under which a tool goes out |

What these give is here: `CompiledSchema`, `EncodedRequest`, `Loss`, `Violation` and `Change`.
`recognize(request)` finds the dialects that a body may be of.

`hosts` has records of the hosts that speak OpenAI's formats, for the parameter `host` of
`encode_request`, `messages`, `check` and `repair`. `sse.events(chunks)` splits the text of an event
stream for users of a plain HTTP client. `authoring` has the parts for a dialect of your own.

`_dialect` has these functions once, as methods of a record that each dialect makes. The package of
each has the same files: `_decode` (what is known of it, and a response as a turn), `_messages` (a
transcript as messages, and back), `_stream`, `_rules` (of a request that may be broken; short ones
are in `_messages`) and `_wire_form` (for the testing kit). They share:

- `_reading`: reading JSON that somebody else wrote.
- `_offered`: the tools on offer, and what is asked of the model.
- `_rendering`, `_history`: a transcript on its way to the wire, and back.
- `_schema/`: the compiler of schemas.
- `_stream`: the decoder of streams, from which each `StreamDecoder` inherits.
- `_blocks`: rules, rendering and stream of wires whose messages hold blocks, over a record of how
  one of them writes these (`BLOCKS`, beside its facts).
- `_openai`: what the two formats of OpenAI have in common.
- `_repair`: finding a conversation and repairing it; which result answers which call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._text.on_demand import on_demand
from ._findings import Change, EncodedRequest, Loss, Violation
from ._schema.compiler import CompiledSchema
from ._schema.nodes import SchemaLoss

if TYPE_CHECKING:
    from ._facts import recognize
    from ._rendering import ModelNames
    from ._schema.nodes import conjoined

__all__ = [
    "DIALECTS",
    "Change",
    "CompiledSchema",
    "EncodedRequest",
    "Loss",
    "ModelNames",
    "SchemaLoss",
    "Violation",
    "conjoined",
    "recognize",
]

DIALECTS: Final[dict[str, str]] = {
    "openai_chat": "lutum_py.dialects.openai_chat",
    "openai_responses": "lutum_py.dialects.openai_responses",
    "anthropic_messages": "lutum_py.dialects.anthropic_messages",
    "gemini_generate_content": "lutum_py.dialects.gemini_generate_content",
    "bedrock_converse": "lutum_py.dialects.bedrock_converse",
}
"""Every dialect, by name, with the package that it is: the one list of them.

The testing kit and the command line know the dialects from here. One of your own belongs here
before they are used.
"""

if not TYPE_CHECKING:  # else every misspelt name would have a type
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "dialects._facts": ("recognize",),
            "dialects._rendering": ("ModelNames",),
            "dialects._schema.nodes": ("conjoined",),
        },
        inner=(*DIALECTS, "authoring", "hosts", "sse"),
    )
