"""The wire formats of the providers, each as pure functions on plain dicts.

A dialect is one public module: `openai_chat`, `openai_responses`, `anthropic_messages`,
`gemini_generate_content`. None of them imports an SDK, and all of them have the same names:

| name | what it does |
|---|---|
| `NAME` | the dialect's name, as it stands on every turn that it decoded |
| `tools(toolset, *, available=None, descriptions=(), strict=False)` | the tools on offer |
| `tool_choice(requirement)` | the value of the request field that asks for a call |
| `decode(response)` | one response → an `AssistantTurn` |
| `messages(committed)` | turns and results → what goes back to the provider |
| `encode_request(request, *, strict=False)` | a `TurnRequest` → the body, with its `losses` |
| `StreamDecoder()` | `feed(event)` → events, `close()` → the last ones, `finish()` → the turn |
| `check(request)` | the rules that a request body, or its list of messages, breaks |
| `repair(request)` | what it was given, mended, and the list of changes |
| `compile(definition, *, strict=False)` | one tool's schema in this dialect |

`sse.events(chunks)` splits the text of an event stream for users of a plain HTTP client.

Behind them stand small private modules. Those that all dialects share:

- `_reading`: `Place`, typed access to untrusted JSON that fails with a `DialectError(where=...)`;
  `response_place(dialect, response)` and `read_event(dialect, event, number)` begin it.
- `_losses`: `Loss`, what a request could not carry over; `EncodedRequest`, a dict with `losses`.
- `_violations`: `Violation`, `Change`, `NOT_SHOWN`, `OUTCOME_UNKNOWN`. `_conversation`: `Form`,
  which finds the conversation in a request that may be anything, has the dialect mend it and puts
  it back; `_mending`: `Mending`, the notes of one pass over it; `_pairing`: `pair`, which result
  answers which call, and `FreshIds`.
- `_tool_names`: `WireNames`, what goes out for a name that the provider refuses;
  `check_tool_name(dialect, name)`. `_declared_names`: where names stand outside the conversation.
- `_rendered_items`: `rendered_items(items)`, each with its position, or why they cannot be
  rendered; `_front_rendering`: `FrontRendering`, for an API with one place for instructions.
- `_compiled`: `compiled`, the schema of a tool, kept; `schema_losses`.
- `_replay`: `own_payload(turn, dialect)`, `foreign_losses(position, turn, dialect)`,
  `without_nulls(payload, free)`.
- `_offered`: `offered(toolset, ...)`, `choice_of(requirement)`.
- `_partial`: `PartialArguments`, a best-effort view of argument text that is still coming in.
- `_ids`: `own_id(...)`, a stable id for a call that came without one.
- `_json_stream`: `ObjectSplitter`, whole objects out of JSON text in chunks (used by `sse`).
- `_attached`: `data_of(attachment)`, what a `data:` URL carries.
- `_streaming`: `StreamReader`, from which every `StreamDecoder` inherits: it numbers events, keeps
  those that nobody knows, remembers that the stream broke, and ends with exactly one
  `TurnFinished`; a dialect fills in `_take`, `_end` and `_so_far`, and raises
  `BrokenStream(where, problem)` in `_end`. `_call_reports`: `CallReports`, which sees to it that
  each call is begun and completed once.
"""
