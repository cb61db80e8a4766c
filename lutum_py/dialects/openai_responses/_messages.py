"""A transcript becomes the input items of OpenAI Responses.

A turn of this dialect goes back as the items that came, in their order: a call without the
reasoning before it is refused. Left out is what the API sends and does not take: the status of a
reasoning item, who created an item, and reasoning of a response that was not stored and is not
encrypted, which the API could not find again. Of a turn of another model the reasoning is left out,
which only that model decrypts, and the ids of its other items, by which the API would ask for that
reasoning: "was provided without its required 'reasoning' item". What may not go without an id,
because the provider ran it, is left out as well. (pydantic/pydantic-ai#2950 leaves the ids out for
the same reason; which items need one is in the SDK's types.) A turn of another dialect goes out in
the neutral view. (OpenAI API reference: "Create a model response", input; guide "Reasoning
models".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ... import AssistantTurn, Attachment, Message, ToolDef, ToolResult
from ..._text.escaping import names_for_message
from ..._text.json import (
    JsonObject,
    compact_json,
    copy_json,
    is_array,
    is_mapping,
    is_object,
    parse_json,
)
from ...errors import MisuseError
from ...schemas import branches, types_in
from ...turns import RefusalItem, TextItem, ToolCallItem
from ...typing import JsonSchema
from .._findings import NOT_SHOWN, Loss
from .._history import History
from .._offered import NativeSearch, as_sent, callers_of
from .._openai import OpenAIRendering, named_data, read_parts
from .._reading import arguments_object, named_text, objects_in, send_as_text, text_or_none
from .._rendering import LED_NOWHERE, ModelNames, told_apart
from .._schema.compiler import compile_schema
from ._decode import (
    ANSWER_KINDS,
    APPROVAL,
    CALLS,
    COMPUTER,
    FACTS,
    NAME,
    PATCH,
    PROGRAM_CALLS,
    REQUIRED,
    SEARCH,
    SEARCH_CALL,
    SEARCH_OUTPUT,
    SHELL,
    answer_form,
    answered_id,
    calls_of,
    is_call,
    is_id_refused,
    made_answer,
    unanswered,
)
from ._rules import Item

_CLIENT: Mapping[str, str] = {"execution": "client", "status": "completed"}

_WITHOUT_ID: Final = frozenset({*CALLS, SEARCH_CALL, "tool_search_output"})


class Rendering(OpenAIRendering):
    """Collect the items of everybody."""

    facts = FACTS
    found: NativeSearch | None
    roles_with_files = frozenset({"system", "developer", "user"})
    growing = (*OpenAIRendering.growing, "_ids", "_held", "_told")

    def __init__(self, model: ModelNames = None, found: NativeSearch | None = None) -> None:
        super().__init__(model, found)
        # Ids of items, which are not those of calls: {"id": "fc_1", "call_id": "call_1", ...}. Both
        # have to be unique, each among its own.
        self._ids: set[str] = set()
        self._searches: set[str] = set()
        # A turn with a call of the program and what answers it, until all of that is known: what
        # has no answer is not sent as it came. `_told` are results that no item can hold.
        self._held: list[JsonObject] = []
        self._told: list[JsonObject] = []
        self._held_at = ""

    def finish(self) -> None:
        """Write down the last turn, if it waits for its results."""
        if not (self._held or self._told):
            return
        output, answers = self._answered(self._held, self._held_at)
        for item in output:
            self.said.append(item)
            if id(item) in answers:
                self.said.append(answers[id(item)])
        self.said += self._told
        self._held, self._told = [], []

    def _message(self, message: Message, position: str) -> None:
        self.finish()
        super()._message(message, position)

    def _attached(self, attachment: Attachment) -> JsonObject | None:
        data = attachment.base64
        if attachment.media_type == "image":
            return {"type": "input_image", "image_url": attachment.url, "detail": "auto"}
        if attachment.media_type == "file":
            file = {"file_url": attachment.url} if data is None else named_data(attachment)
            return {"type": "input_file", **file}
        return None

    def _text(self, text: str) -> JsonObject:
        return {"type": "input_text", "text": text}

    def _result(self, result: ToolResult, position: str) -> None:
        # Set when the turn was rendered: {"c1": {"type": "custom_tool_call_output", "call_id":
        # "x9"}}. A result alone does not know which kind of call it answers, nor the id that this
        # one went out by.
        form = self._answers.get(result.id)
        if form is None:
            form = {"type": "function_call_output", "call_id": result.id}
        said = self._held or self.said
        if form["type"] in ANSWER_KINDS:
            answer = self._answer(form, result, position)
            if answer is None:
                self._told.append({"role": "user", "content": result.model_text})
            else:
                said.append(answer)
            return
        found = self.found if result.id in self._searches else None
        names = [] if found is None else found.found_by(result)
        if found is not None and names:
            self.loaded.update(names)
            tools = _loaded(found, names)
            said.append({**form, **_CLIENT, "type": SEARCH_OUTPUT, "tools": tools})
        else:
            said.append({**form, "output": self._output(result, position)})

    def _answer(self, form: JsonObject, result: ToolResult, position: str) -> JsonObject | None:
        """Make the answer of a call that is no function; None if it cannot hold the result."""
        kind, files = form["type"], result.attachments
        if kind == COMPUTER:
            pictures = [file.url for file in files if file.media_type == "image"]
            if not (pictures and result.is_success):
                return None
            if result.model_text not in _SILENT:
                self.losses.append(Loss(position, f"a {kind} holds a picture and no text"))
            shown = {"type": "computer_screenshot", "image_url": pictures[-1]}
            return {**form, "output": shown}
        self.lose_files(files, position, f"a {kind}")
        text = named_text(result, files)
        if kind == SHELL:
            return {**form, "output": shell_output(text, result.is_success)}
        if kind == PATCH:
            return {
                **form,
                "status": "completed" if result.is_success else "failed",
                "output": text,
            }
        if kind == APPROVAL:
            is_approved = result.is_success and _is_approval(_parsed(text))
            return {**form, "approve": is_approved, **({} if is_approved else {"reason": text})}
        return {**form, "output": text}

    def _output(self, result: ToolResult, position: str) -> str | list[JsonObject]:
        if not result.attachments:
            return result.model_text
        parts = self.parts_of_result(result, position)
        if any(part["type"] != "input_text" for part in parts):
            return parts
        return named_text(result, result.attachments)

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        self.finish()
        payload = self.payload_of(turn, position)
        if payload is None:
            said = list(_neutral(turn))
            if self.found is not None:
                said = list(map(_as_search, said))
        else:
            output = copy_json(payload["output"])
            if told_apart(turn, self.model):
                output, lost = _of_other(output)
                if lost:
                    self.keep_back(turn, position, f"the {', the '.join(lost)}")
            stored = payload.get("store") is not False
            said = list(self._replay(output, stored, position))
        sent = calls_of(said)
        # The name in an approval is that of a tool of a server.
        self.facts.send_names(call for call in sent if call["type"] not in PROGRAM_CALLS)
        for call in sent:
            self.ids.send(call, "call_id", is_own=payload is not None)
        calls = list(zip(turn.tool_calls, sent, strict=True))
        # The form of each answer, by our id of the call: with the host's id, if any.
        self._answers = {call.id: answer_form(each) for call, each in calls}
        self._searches = {call.id for call, each in calls if each["type"] == SEARCH_CALL}
        if unanswered(said):
            self._held, self._held_at = said, position
        else:
            self.said.extend(said)

    def _replay(
        self, output: list[JsonObject], stored: bool, position: str
    ) -> Iterator[JsonObject]:
        while output and output[-1].get("type") == "reasoning":
            # The answer was cut off before the message or call that the reasoning led to.
            self.losses.append(Loss(position, LED_NOWHERE))
            output.pop()
        for item in output:
            kind = item.get("type") or "message"
            for made in (item, *objects_in(item.get("output"))):
                made.pop("created_by", None)
            if kind == "message":
                item["role"] = "assistant"
                item.setdefault("content", [])
            elif kind in CALLS:
                send_as_text(item, CALLS[kind])
            elif kind == "reasoning":
                item.pop("status", None)
                if not (stored or item.get("encrypted_content") or item.get("content")):
                    why = "its reasoning was neither stored nor encrypted, so it cannot go back; "
                    why += "ask for `reasoning.encrypted_content`"
                    self.losses.append(Loss(position, why))
                    continue
            for key, empty in REQUIRED.get(kind, {}).items():
                item.setdefault(key, copy_json(empty))
            # Some hosts number the items of each response again, and an id may stand only once.
            item_id = item.get("id")
            if isinstance(item_id, str) and kind != "item_reference":
                if item_id in self._ids or is_id_refused(item_id):
                    del item["id"]
                self._ids.add(item_id)
            yield item

    def _answered(
        self, output: list[JsonObject], position: str
    ) -> tuple[list[JsonObject], dict[int, JsonObject]]:
        """Answer the calls that the program has to answer and that are no functions."""
        answers: dict[int, JsonObject] = {}
        for place in reversed(unanswered(output)):
            item = output[place]
            made = made_answer(item)
            text = f"nobody answered its {item['type']}, which goes out with an answer that says so"
            if made is not None:
                answers[id(item)] = made
            else:
                text = f"no picture answers its {item['type']}, which is not sent"
                # Reasoning goes back with what it led to, or not at all.
                begin = place
                while begin and output[begin - 1].get("type") == "reasoning":
                    begin -= 1
                del output[begin : place + 1]
            self.losses.append(Loss(position, text))
        return output, answers


_SILENT: Final = frozenset({"", "null", "{}"})


def shell_output(text: str, is_success: bool) -> list[JsonObject]:
    """Return what a shell printed: as a tool gives it in the form of the wire, or as one text."""
    given = _parsed(text)
    listed = given if is_array(given) else ()
    printed = [dict(each) for each in listed if is_object(each) and each.keys() >= _PRINTED]
    if printed and printed == given:
        return printed
    stdout, stderr = (text, "") if is_success else ("", text)
    outcome = {"type": "exit", "exit_code": 0 if is_success else 1}
    return [{"stdout": stdout, "stderr": stderr, "outcome": outcome}]


def _is_approval(said: object) -> bool:
    return said is True or (is_object(said) and said.get("approve") is True)


def _parsed(text: str) -> object:
    with suppress(ValueError):
        return parse_json(text)
    return None


_PRINTED: Final = frozenset({"stdout", "stderr", "outcome"})


def _of_other(output: list[JsonObject]) -> tuple[list[JsonObject], list[str]]:
    """Return items as another model takes them, and say what is left out.

    What may have no id goes without; a message does so in the form that a program writes.
    """
    # ["reasoning", "message", "function_call", "web_search_call"] of another model become
    # ["message", "function_call"]: its words and its calls, which results answer, and nothing that
    # leads back to it.
    kept: list[JsonObject] = []
    lost: dict[str, None] = {}
    asked = {id(call) for call in calls_of(output)}
    for item in output:
        kind = item.get("type") or "message"
        if kind in PROGRAM_CALLS and id(item) in asked:
            # The other model may not have this tool of the API.
            program = PROGRAM_CALLS[kind]
            arguments = compact_json(program.asked_in(item))
            call_id = item.get(program.id_key)
            call = {"type": "function_call", "call_id": call_id, "name": kind}
            kept.append({**call, "arguments": arguments})
        elif kind == "reasoning":
            lost["reasoning"] = None
        elif kind == "message":
            text = "".join(map(_words, item.get("content") or ()))
            if text:
                # Whether it is a remark or the answer is for every model to know.
                phase = {"phase": item["phase"]} if item.get("phase") else {}
                kept.append({"role": "assistant", "content": text, **phase})
        # The id would lead the API to the reasoning of the other model, which is left out above.
        elif kind in _WITHOUT_ID:
            item.pop("id", None)
            item.pop("caller", None)  # a program, which is left out below
            kept.append(item)
        else:
            lost[f"{kind} that the provider ran"] = None
    return kept, list(lost)


def _words(part: Mapping[str, object] | str) -> str:
    # Some hosts send text in place of the parts; then each is a letter.
    return part if isinstance(part, str) else str(part.get("text") or part.get("refusal") or "")


def _neutral(turn: AssistantTurn) -> Iterator[JsonObject]:
    silent = True
    for item in turn.items:
        if isinstance(item, TextItem | RefusalItem):
            if not item.text:
                continue
            yield {"role": "assistant", "content": item.text}
        elif isinstance(item, ToolCallItem):
            call = item.metadata
            yield {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments if call.arguments.strip() else "{}",
            }
        else:
            continue
        silent = False
    # The turn said nothing that this wire has a form for. It stays as an empty message, so that
    # what was said before it and after it stays apart.
    if silent:
        yield {"role": "assistant", "content": ""}


def _as_search(item: JsonObject) -> JsonObject:
    """Make a search of a call by its name, as which another provider sent it."""
    if item.get("type") != "function_call" or item["name"] != SEARCH:
        return item
    arguments, is_read = arguments_object(item["arguments"])
    if not is_read:
        return item
    call = {"type": SEARCH_CALL, "call_id": item["call_id"], "arguments": arguments}
    return {**call, **_CLIENT}


_DEFERRED: Final = {"defer_loading": True}


def tool_of(definition: ToolDef, schema: JsonSchema, strict: bool) -> JsonObject:
    """Describe a function tool."""
    tool: JsonObject = {"type": "function", "name": definition.name}
    if definition.description:
        tool["description"] = definition.description
    tool["parameters"] = schema
    tool["strict"] = strict
    output = definition.output_schema
    # A program gets a text as it is; what has a schema is read as JSON for it.
    if "program" in definition.callers and output is not None and not _may_be_text(output):
        tool["output_schema"] = copy_json(output)
    return tool | callers_of(definition, FACTS)


def _may_be_text(schema: JsonSchema) -> bool:
    """Tell whether a value of a schema may be a text, as one of unknown type may."""
    parts = branches(schema, [schema])
    named = {kind for part in parts for kind in types_in(part)}
    return "string" in named or not named


def _loaded(native: NativeSearch, names: Iterable[str]) -> list[JsonObject]:
    """Describe tools that a result loads."""
    definitions = {each.name: each for each in native.definitions}
    tools: list[JsonObject] = []
    for definition in map(definitions.__getitem__, names):
        schema = copy_json(compile_schema(definition, FACTS, native.strict).schema)
        tools.append(tool_of(as_sent(definition, FACTS), schema, native.strict) | _DEFERRED)
    return tools


def checked(native: NativeSearch | None) -> NativeSearch | None:
    """Return what results may name, if the search has the API's own name.

    Raises:
        MisuseError: It has another.
    """
    if native is not None and native.searches != frozenset({SEARCH}):
        raise MisuseError(
            f"{NAME} knows a search for tools as `{SEARCH}` only, and this toolset has "
            f"{names_for_message(sorted(native.searches))}. Make one search, by "
            f"`tool_search(name={SEARCH!r})`, or leave `native_search` out."
        )
    return native


def described(tool: JsonObject, is_deferred: bool, found: NativeSearch | None) -> JsonObject:
    """Describe a tool of a request, the search for others among them."""
    # On this wire the search is a kind of tool and has no name: {"type": "tool_search",
    # "execution": "client", "parameters": {...}} stands for our function tool of that name.
    if found is not None and tool["name"] == SEARCH:
        about: JsonObject = {key: tool[key] for key in ("description", "parameters") if key in tool}
        tool = {"type": SEARCH, "execution": "client", **about}
    return tool | _DEFERRED if is_deferred else tool


def read_history(history: History) -> None:
    """Read an input; the `instructions` of a body become the first message.

    What the provider keeps, as under `previous_response_id`, is not in the body, and is not read.
    """
    instructions = history.body.get("instructions")
    if isinstance(instructions, str):
        history.say("system", [instructions], "instructions")
    items = [(position, _item(given)) for position, given in history.listed()]
    programs = {
        (program.answer, text_or_none(item.value.get(program.id_key)))
        for _, item in items
        if (program := PROGRAM_CALLS.get(item.kind)) is not None and is_call(item.value)
    }
    # All calls are looked up before the first result: where the provider keeps the beginning, a
    # result may stand in front of everything, and answers a call that is nowhere in this list.
    asked = {item.key for _, item in items if item.call}
    output: list[JsonObject] = []
    started = ""
    for position, item in items:
        call_id = answered_id(item.value)
        is_answer = (item.kind, call_id) in programs
        if not (item.result or is_answer or item.is_said_to_model):
            started = started if output else position
            output.append(item.value)
            continue
        _turn(output, started, history)
        output = []
        fields = item.value
        if item.is_said_to_model:
            said = read_parts(fields["content"], f"{position}.content", history)
            history.say(fields["role"], said, position)
            history.rest(fields, ("type", "role", "content", "status", "id"), position)
        elif is_answer:
            _answer_program(fields, call_id, position, history)
        elif item.key not in asked:
            # The call stands with the provider, who alone knows what it was.
            history.lose(position, "it answers a call that the request does not show")
            history.say("user", [NOT_SHOWN], position)
        else:
            _answer(fields, call_id, position, history)
    _turn(output, started, history)


def _item(given: Any) -> Item:
    if isinstance(given, str):  # in place of the list
        return Item(0, {"role": "user", "content": given})
    item = Item(0, given)
    if item.kind == "item_reference":
        item.value = {**given, "type": item.kind}
    return item


def _turn(output: list[JsonObject], position: str, history: History) -> None:
    if output:
        history.respond({"output": output}, position)


def _answer(
    fields: Mapping[str, object], call_id: str | None, position: str, history: History
) -> None:
    if fields["type"] == SEARCH_OUTPUT:
        # What the program found for a search has a form of its own, and no text.
        history.lose(position, "it comes back as the output of a function")
        tools = compact_json({"tools": fields.get("tools")})
        history.answer_json(tools, position, call_id=call_id)
        return
    said = read_parts(fields["output"], f"{position}.output", history)
    is_done = fields.get("status") in (None, "completed")
    if not is_done:
        history.lose(
            f"{position}.status", "the call did not end well, which a result has no word for"
        )
    history.answer(said, position, is_error=None if is_done else True, call_id=call_id)
    history.rest(fields, ("type", "call_id", "caller", "output", "status", "id"), position)


def _answer_program(
    fields: Mapping[str, Any], call_id: str | None, position: str, history: History
) -> None:
    """Read the answer of a call that is no function."""
    kind, output, where = fields["type"], fields.get("output"), f"{position}.output"
    answered = partial(history.answer, position=position, call_id=call_id)
    if kind == SHELL:
        # As `shell_output` writes one text.
        texts = [
            (text, is_success)
            for is_success, key in ((True, "stdout"), (False, "stderr"))
            for text in (each.get(key) for each in objects_in(output))
            if isinstance(text, str) and output == shell_output(text, is_success)
        ]
        if texts:
            (said, is_success), *_ = texts
            answered([said], is_error=not is_success)
        else:
            history.answer_json(compact_json(output), position, call_id=call_id)
    elif kind == PATCH:
        answered([output or ""], is_error=fields.get("status") == "failed")
    elif kind == COMPUTER:
        url = output.get("image_url") if is_mapping(output) else None
        answered([*history.file(where, url=url, media_type="image")])
    elif kind == APPROVAL:
        reason = fields.get("reason") or ""
        if fields.get("approve") is True:
            history.answer_json("true", position, call_id=call_id)
        else:
            answered([reason], is_error=True)  # whatever it says, nobody approved
    else:
        answered(read_parts(output, where, history))
    known = ("type", "output", "status", "approve", "reason", "caller", "max_output_length", "id")
    history.rest(
        fields,
        (*known, "call_id", "approval_request_id", "acknowledged_safety_checks"),
        position,
    )
