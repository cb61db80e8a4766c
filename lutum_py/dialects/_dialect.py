"""What every dialect does, once: the functions of its module are the methods of one record.

The module of a dialect makes the record of what only that wire has, and names the methods:

    DIALECT: Final = Dialect(facts=FACTS, tool=_tool, choice=_choice, ...)
    decode: Final = DIALECT.decode

So the parameters are the same for all, they are described in one place, and a wire that is new
writes down nothing but what is new about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from .. import AssistantTurn, ToolDef, Transcript, TurnRequest
from .._text.json import JsonObject, copy_json, is_mapping, is_sequence
from ..errors import HistoryError, MisuseError
from ..turns import ToolChoice, TranscriptItem
from ..typing import Descriptions, JsonSchema
from . import DIALECTS
from ._facts import Facts
from ._findings import Change, EncodedRequest, Loss, Violation, cache_losses
from ._history import NOTHING_SAID, History
from ._offered import (
    NativeSearch,
    answer_schema,
    as_sent,
    choice_of,
    native_search_of,
    offered,
    schema_losses,
)
from ._reading import Place, WireCall, is_tidy_json, response_place
from ._rendering import ModelNames, Rendering
from ._repair import Form
from ._schema.compiler import CompiledSchema, compile_schema
from ._schema.nodes import refused_keys, with_keys_sent, without_stand_ins
from .hosts import Host

PUBLIC: Final = [
    *("NAME", "StreamDecoder", "answer_format", "check", "compile", "decode", "encode_request"),
    *("messages", "read_history", "repair", "tool_choice", "tools", "wire_name"),
]
"""The names that the module of every dialect has."""

C = TypeVar("C")
"""What a wire writes for a choice of tools."""
R = TypeVar("R", bound=Rendering)


# Compared by identity, as the facts are, and pickled by name: a tool may hold a dialect's function.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dialect(Generic[C]):
    """Hold what one wire has of its own, and do with it what every dialect does.

    Attributes:
        facts: What is known of it.
        tool: Describes one tool, given its definition, its schema, which is the tool's to keep, and
            whether it is offered in strict mode.
        choice: Writes a choice of tools.
        answer: Gives the request fields for a final answer, of its definition and schema.
        tidy: Copies a response as it is kept: without null fields, and in the form of the wire.
        untidy: One of these is in the JSON of each payload that `tidy` would change; none if
            its JSON does not tell.
        is_tidy: Tells of all other payloads whether `tidy` would leave them, if their JSON does
            not tell all.
        turn: Reads a tidy response.
        rendering: What was said, on its way to the wire.
        body: Makes the body of a request, without its extras.
        form: How a request holds its conversation, and what the provider refuses of one.
        history: Reads a conversation that the provider would take.
        calls_in: Yields the calls of a payload, in order.
        say: Lets a payload say another text.
        offer: Puts the tools together for the request field; a list of them, as a rule.
        host: The host that it is for, where one has ways of its own.
        fit: Renders a request for a host, in place, and gives what is lost by that.
        hosted: Makes the dialect as a host speaks it; None where there is one host alone.
        joined: The fields of a body that hold several things, of which the request may have said
            one: what the user says as an extra is added to that.
    """

    facts: Facts
    tool: Callable[[ToolDef, JsonSchema, bool], JsonObject]
    choice: Callable[[ToolChoice], C]
    answer: Callable[[ToolDef, JsonSchema], JsonObject]
    tidy: Callable[[Any], Any]
    turn: Callable[[Place], AssistantTurn]
    rendering: type[Rendering]
    body: Callable[[Draft[C]], JsonObject]
    form: Form
    history: Callable[[History], None]
    untidy: tuple[bytes, ...] = ()
    is_tidy: Callable[[JsonObject], bool] | None = None
    calls_in: Callable[[JsonObject], Iterable[WireCall]] = lambda _: ()
    say: Callable[[JsonObject, str], None] = lambda _, __: None
    offer: Callable[[list[JsonObject]], list[JsonObject]] = list
    joined: Collection[str] = ()
    host: Host | None = None
    fit: Callable[[JsonObject, Host], Iterable[Loss]] | None = None
    hosted: Callable[[Host], Dialect[C]] | None = None

    # By its name, as in ("openai_chat",): pickle refuses the lambdas in it, and what comes back
    # from another process has to be the very record of this one, since records are compared by
    # identity.
    def __reduce__(self) -> tuple[Callable[[str], Dialect[Any]], tuple[str]]:
        return dialect_of, (self.facts.name,)

    def __repr__(self) -> str:
        return f"<dialect {self.facts.name}>"

    def compile(self, definition: ToolDef, *, strict: bool = False) -> CompiledSchema:
        """Compile a tool's input schema into what the dialect takes.

        Args:
            definition: The tool.
            strict: Whether the tool is offered in strict mode; a provider that has none for a
                single tool takes the same schema either way.

        Returns:
            The schema, the decoder of arguments, and what the provider will not enforce.

        Raises:
            ToolDefinitionError: The schema has no form in the dialect.
            MisuseError: It is not a `ToolDef`, but for example a selector.

        Example:
            >>> from lutum_py.dialects import openai_chat
            >>> tool = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
            >>> openai_chat.compile(tool).schema
            {'type': 'object', 'properties': {}}
        """
        if not isinstance(definition, ToolDef):
            remedy = "Pass `AppTools.search.definition`."
            raise MisuseError.of_field("compile", "definition", "a ToolDef", definition, remedy)
        compiled = compile_schema(definition, self.facts, strict)
        schema, refused = self._sent(compiled)
        if not refused:
            return replace(compiled, schema=schema)
        decode = compiled.decoder

        def decoder(arguments: object) -> Any:
            return decode(without_stand_ins(arguments, refused))

        return replace(compiled, schema=schema, decoder=decoder)

    def strict_decoder(self, definition: ToolDef) -> Callable[[Any], Any]:
        """Return what turns the arguments of a call in strict mode into the author's form.

        Raises:
            ToolDefinitionError: The schema has no form in strict mode.
        """
        return compile_schema(definition, self.facts, strict=True).decoder

    def _sent(self, compiled: CompiledSchema) -> tuple[JsonSchema, dict[str, str]]:
        """Copy a schema as it goes out, and give the keys for which it has stand-ins."""
        # Copied: what was compiled is kept for requests, and this one is the caller's to change.
        refused = refused_keys(compiled.schema, self.facts.property_keys)
        return copy_json(with_keys_sent(compiled.schema, refused)), refused

    def tools(
        self,
        toolset: object,
        *,
        available: object = None,
        descriptions: Descriptions = (),
        strict: bool = False,
    ) -> list[JsonObject]:
        """Describe the tools on offer, for the request field that holds them.

        Args:
            toolset: A toolset, or an iterable of `ToolDef`.
            available: Which of its tools are on offer; None for those that are on.
            descriptions: Pairs of a selector and the text that the model reads instead.
            strict: Whether the provider holds the model to the schemas, if it can.

        Returns:
            What the field holds, with the tools in order; yours to change.

        Raises:
            ToolDefinitionError: A schema has no form in the dialect.

        Example:
            >>> from lutum_py.dialects import anthropic_messages
            >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
            >>> anthropic_messages.tools([echo])
            [{'name': 'echo', 'input_schema': {'type': 'object', 'properties': {}}}]
        """
        on_offer = offered(toolset, available, descriptions)
        return self.offer([self.tool_of(each, strict) for each in on_offer])

    def tool_of(self, definition: ToolDef, strict: bool) -> JsonObject:
        """Describe one tool."""
        strict = strict and (self.facts.calls_strictly or "program" not in definition.callers)
        schema, _ = self._sent(compile_schema(definition, self.facts, strict))
        return self.tool(as_sent(definition, self.facts), schema, strict)

    def wire_name(self, name: str) -> str:
        """Return the name under which a tool goes out, for texts of yours that speak of it.

        A name that the provider takes goes out as it is. For any other goes its stand-in, which is
        made of the name alone: the same in every request, process and dialect.

        Args:
            name: The tool's own name.

        Raises:
            MisuseError: It is not text, such as a selector: pass its `name`.

        Example:
            >>> from lutum_py.dialects import gemini_generate_content, openai_chat
            >>> openai_chat.wire_name("math.factorial")
            'math_factorial_ad6b7ebf6789'
            >>> gemini_generate_content.wire_name("math.factorial")
            'math.factorial'
        """
        MisuseError.check("wire_name", "name", "the name of a tool", name, str)
        return self.facts.wire_name(name)

    def tool_choice(self, requirement: object) -> C:
        """Say what the model is asked to do, for the request field that holds the choice of a tool.

        Args:
            requirement: A `ToolRequirement`, or a `ToolChoice`.

        Raises:
            MisuseError: It is neither.

        Example:
            >>> from lutum_py.dialects import anthropic_messages
            >>> anthropic_messages.tool_choice(ToolChoice("specific", "echo"))
            {'type': 'tool', 'name': 'echo'}
        """
        return self.choice(choice_of(requirement, self.facts))

    def answer_format(self, answer: object) -> JsonObject:
        """Hold the text of the model to the schema of a final answer: the request fields for it.

        Args:
            answer: An `Answer`, or `request.answer`.

        Raises:
            ToolDefinitionError: The schema has no form in the dialect.
            MisuseError: It is not an answer.

        Example:
            >>> from lutum_py import Answer
            >>> from lutum_py.dialects import anthropic_messages
            >>> fields = anthropic_messages.answer_format(Answer(list[int], by="format"))
            >>> fields["output_config"]["format"]["type"]
            'json_schema'
        """
        return self.answer(*answer_schema(answer, self.facts, strict=self.is_strict))

    @property
    def is_strict(self) -> bool:
        """Whether the provider has a strict mode, which then holds for answers too."""
        return self.facts.strictness is not None

    def decode(self, response: Mapping[str, object]) -> AssistantTurn:
        """Read a response.

        Args:
            response: The JSON of a response; the page of the dialect says how an SDK object gives
                it.

        Returns:
            The turn; its payload is the response, without fields that are null. Arguments that came
            as an object are compact JSON in the order that it has. Of two calls with one id, the
            later gets a number, as `c1_2`, and a call without a name has the name `""`, of which
            the round makes an issue; the payload has the same. Where the finish reason says
            that the model refused, or that a filter or guardrail ended the turn, there is a
            `RefusalItem`.

        Raises:
            DialectError: It is not a response, an error, or broken; `where` says at which place.

        Example:
            >>> from lutum_py.dialects import openai_chat
            >>> said = {"role": "assistant", "content": "Hello"}
            >>> openai_chat.decode({"choices": [{"message": said, "finish_reason": "stop"}]}).text
            'Hello'
        """
        return self.turn(response_place(self.facts.name, response, self.tidy))

    def decode_at(self, response: object, position: str = "") -> AssistantTurn:
        """Read a response that stands somewhere, which errors then say."""
        return self.turn(response_place(self.facts.name, response, self.tidy, position))

    def decode_saved(self, payload: JsonObject) -> AssistantTurn:
        """Read the payload of a turn that was just parsed from JSON; the turn may keep it."""
        is_tidy = self.untidy and is_tidy_json(payload, self.untidy)
        if is_tidy and (self.is_tidy is None or self.is_tidy(payload)):
            return self.turn(Place(self.facts.name, payload))  # no copy is needed
        return self.decode_at(payload)

    def with_arguments(self, payload: JsonObject, place: int, text: str) -> JsonObject:
        """Copy a payload with other arguments of one call.

        Args:
            payload: The payload of a turn.
            place: Which of its calls it is, from 0.
            text: The arguments.
        """
        changed: JsonObject = copy_json(payload)
        list(self.calls_in(changed))[place].write(text)
        return changed

    def with_text(self, payload: JsonObject, text: str) -> JsonObject:
        """Copy a payload that says another text."""
        changed: JsonObject = copy_json(payload)
        self.say(changed, text)
        return changed

    def at(self, host: Host | None) -> Dialect[C]:
        """Return the dialect as a host speaks it.

        Raises:
            MisuseError: It is no host.
        """
        if host is None:
            return self
        wish = "a Host of `lutum_py.dialects.hosts`"
        MisuseError.check(self.facts.name, "host", wish, host, Host)
        return self if self.hosted is None else self.hosted(host)

    def fitted(self, request: JsonObject) -> Iterable[Loss]:
        """Render a request for the host, in place, and give what is lost by that."""
        if self.fit is None or self.host is None:
            return ()
        return self.fit(request, self.host)

    def messages(
        self, committed: Iterable[TranscriptItem], *, host: Host | None = None
    ) -> list[JsonObject]:
        """Render a committed round, or any part of a transcript, for the list of the conversation.

        If the provider keeps instructions apart, messages of system and developer are left out;
        `encode_request` puts them in their place. A call by a name that the provider refuses goes
        out under the name's stand-in.

        Args:
            committed: Messages, turns and results, oldest first.
            host: The host, where it departs from OpenAI's ways; without effect in other dialects.

        Returns:
            What everybody said, as the provider takes it; yours to change.

        Raises:
            MisuseError: What is passed is neither a committed round nor a list of items, such as a
                plan.

        Example:
            >>> from lutum_py import Message
            >>> from lutum_py.dialects import openai_chat
            >>> openai_chat.messages([Message("user", "Hello")])
            [{'role': 'user', 'content': 'Hello'}]
        """
        dialect = self.at(host)
        request: JsonObject = {self.facts.key: dialect.rendering.of(committed).said}
        dialect.fitted(request)
        said: list[JsonObject] = request[self.facts.key]
        return said

    def read_history(self, request: object) -> tuple[Transcript, list[Loss]]:
        """Read a conversation that was kept elsewhere, to go on with it here.

        Instructions that a body holds beside its conversation become the first messages.

        Args:
            request: A request body, or the list of its conversation, which may be empty; it is not
                changed.

        Returns:
            The transcript, and what it could not hold, each with its place. `messages` of the
            transcript gives the list again, but for what was lost.

        Raises:
            HistoryError: The provider would refuse it; `repair` fixes that.
            DialectError: A turn of the model is broken; `where` says at which place.

        Example:
            >>> from lutum_py.dialects import openai_chat
            >>> said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
            >>> transcript, losses = openai_chat.read_history(said)
            >>> transcript[1].text, losses
            ('Yes?', [])
        """
        # First, because the readers rely on it: they take the next result for that of the next
        # call, and look for nothing. What is wrong with the request as a whole, such as tools that
        # are not declared, they do not meet.
        found = replace(self.form, whole=()).check(request)
        # That nobody has said anything yet, a transcript may hold.
        if any(violation.rule != NOTHING_SAID for violation in found):
            raise HistoryError(self.check(request), dialect=self.facts.name)
        history = History(
            self.facts,
            request,
            decode=self.decode_at,
            is_rejoined=self.rendering.joins_messages,
        )
        self.history(history)
        return history.read()

    def encode_request(
        self,
        request: TurnRequest,
        *,
        strict: bool = False,
        model: ModelNames = None,
        native_search: bool = False,
        host: Host | None = None,
    ) -> EncodedRequest:
        """Make the body of a request, without the model's name.

        `extra` goes in last and untouched. Tools in it, such as those that the provider runs
        itself, come after the tools of the request; a field that holds several things, such as the
        format of an answer beside others, is joined with what the request says in it.

        Args:
            request: What is asked of the model.
            strict: Whether the tools are offered in strict mode, as `tools` offers them.
            model: The model that is asked, by one name or all that it goes by. What only the model
                that made a turn can read, such as its reasoning, is not sent to another.
            native_search: Whether deferred tools are sent as such, and what a search found as
                references to them; without effect where the provider knows no deferred tools.
            host: The host, where it departs from OpenAI's ways; without effect in other dialects.

        Returns:
            The body, and on its `losses` what it could not carry.

        Raises:
            ToolDefinitionError: A tool's schema has no form in the dialect.
            InvalidValueError: The provider refuses how the conversation begins.
            MisuseError: It is no request, or the native search has another name than the provider's
                own.

        Example:
            >>> from lutum_py import Message
            >>> from lutum_py.dialects import openai_chat
            >>> said = TurnRequest(items=[Message("user", "Hello")], temperature=0.5)
            >>> openai_chat.encode_request(said)
            {'messages': [{'role': 'user', 'content': 'Hello'}], 'temperature': 0.5}
        """
        if not isinstance(request, TurnRequest):
            remedy = "What was said alone goes to `messages`, or into `TurnRequest(items=said)`."
            place = ("encode_request", "request", "a TurnRequest")
            raise MisuseError.of_field(*place, request, remedy)
        dialect = self.at(host)
        draft = Draft(dialect, request, strict, model, native_search)
        body = dialect.body(draft)
        draft.losses += dialect.fitted(body)
        # An extra wins, since it is the only word for what this library does not know. But some
        # fields hold several things, of which both sides may say some.
        for key, value in request.extra.items():
            if key in self.joined and is_mapping(value):
                body[key] = dict(body.get(key, {}))
                for name, each in value.items():
                    _add(body[key], name, each)
            else:
                _add(body, key, value)
        return EncodedRequest(body, draft.losses)

    def check(self, request: object, *, host: Host | None = None) -> list[Violation]:
        """Find what a conversation breaks of the provider's rules.

        Args:
            request: A request body, or the list of its conversation; anything else is a violation.
            host: The host, where it departs from OpenAI's ways; without effect in other dialects.

        Returns:
            Every violation, in the order of the list; none for a request that is well formed.

        Example:
            >>> from lutum_py.dialects import openai_chat
            >>> result = {"role": "tool", "tool_call_id": "c1", "content": "3"}
            >>> [violation.rule for violation in openai_chat.check([result])]
            ['orphan_result']
        """
        return self.at(host).form.check(request)

    def repair(self, request: object, *, host: Host | None = None) -> tuple[Any, list[Change]]:
        """Fix a conversation so that `check` finds nothing.

        A call that nobody answered gets a result that says that its outcome is unknown.

        Args:
            request: A request body, or the list of its conversation; it is not changed.
            host: The host, where it departs from OpenAI's ways; without effect in other dialects.

        Returns:
            A repaired copy of the same shape, and what was changed.

        Example:
            >>> from lutum_py.dialects import openai_chat
            >>> call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            >>> repaired, changes = openai_chat.repair(
            ...     [{"role": "assistant", "tool_calls": [call]}]
            ... )
            >>> repaired[1]["content"]
            'Outcome unknown: the conversation holds no result for this call. It may ...'
        """
        return self.at(host).form.repair(request)


def _add(fields: JsonObject, key: str, value: Any) -> None:
    """Put an extra in, and tools after those that are there.

    {"tools": [ours]} and {"tools": [web_search]} go out as one list, where a plain update would
    take all tools of the program away.
    """
    has_tools = key == "tools" and is_sequence(value)
    fields[key] = [*fields.get(key, ()), *value] if has_tools else value


@dataclass(slots=True, eq=False)
class Draft(Generic[C]):
    """A request on its way to a body: the pieces of it, and what is lost as each is asked for.

    Attributes:
        dialect: The dialect that writes it.
        request: What is asked of the model.
        strict: Whether the tools are offered in strict mode.
        model: The model that is asked.
        native_search: Whether deferred tools are sent as such.
        losses: What was lost so far.
    """

    dialect: Dialect[C]
    request: TurnRequest
    strict: bool
    model: ModelNames
    native_search: bool
    losses: list[Loss] = field(default_factory=list[Loss])

    def render(
        self,
        rendering: type[R],
        *cached_by: str,
        found: object = None,
        start: int = 0,
        whole: bool = False,
    ) -> R:
        """Render what was said.

        Args:
            rendering: What renders it.
            cached_by: The fields of `request.cache` that the dialect has a word for.
            found: What the results of searches may name.
            start: How many of the first items go out in another way.
            whole: Whether turns go back whole, whatever was cut before them.
        """
        request = self.request
        rendered = rendering.of(request.items, self.model, found, start, whole)
        self.losses += rendered.losses
        self.losses += cache_losses(request.cache, self.dialect.facts.name, *cached_by)
        return rendered

    def tool(self, definition: ToolDef) -> JsonObject:
        """Describe one tool."""
        self.losses += schema_losses(definition, self.dialect.facts, self.strict)
        return self.dialect.tool_of(definition, self.strict)

    def tools(self) -> list[JsonObject]:
        """Describe the tools on offer."""
        return self.dialect.offer([self.tool(each) for each in self.request.tools])

    def searches(self) -> NativeSearch | None:
        """Give what the results of searches may name, if deferred tools are sent as such."""
        return native_search_of(self.request, wanted=self.native_search, strict=self.strict)

    def asked(self, **names: str) -> JsonObject:
        """Return what is asked of the model by some fields, under the names of the wire.

        Args:
            names: By the fields of a request, those names.
        """
        # None is "not asked", and leaves the field out: a null would be refused by some hosts, and
        # zero, as of the temperature, has to stay.
        said = {name: getattr(self.request, field) for field, name in names.items()}
        return {name: value for name, value in said.items() if value is not None}

    def lose_parallel(self) -> None:
        """Note that the dialect has no word for parallel calls."""
        if self.request.parallel_tool_calls is not None:
            name = self.dialect.facts.name
            text = f"{name} has no field for it: the model decides on parallel calls"
            self.losses.append(Loss("parallel_tool_calls", text))

    def choice(self) -> C:
        """Say what the model is asked to do."""
        return self.dialect.tool_choice(self.request.tool_choice)

    def answer(self) -> JsonObject:
        """Return the fields that hold the text to a final answer, if one is asked for so."""
        answer, dialect = self.request.answer, self.dialect
        if answer is None:
            return {}
        self.losses += schema_losses(answer, dialect.facts, dialect.is_strict)
        return dialect.answer_format(answer)


def dialect_of(name: str) -> Dialect[Any]:
    """Return the record of a dialect in the list."""
    found: Dialect[Any] = import_module(DIALECTS[name]).DIALECT
    return found
