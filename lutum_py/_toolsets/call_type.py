"""`AppTools.Call`: the class of all calls of a toolset, which pydantic reads, writes and describes.

Its JSON is tagged: `{"tool": "web_search", "input": {"query": "tea"}}`, with the wire name of the
tool and the arguments as the model sends them. What is read is a new call under an id of its own:
nobody has decided about it, whatever was decided about the one that was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from uuid import uuid4

from pydantic_core import (
    PydanticCustomError,
    PydanticSerializationError,
    ValidationError,
    core_schema,
)

from .._call.call import AnyToolCall
from .._call.call_state import DecodedCall
from .._schema.arguments import NOTHING, InputText
from .._schema.field_issues import hidden
from .._schema.schema_reader import JsonSchema
from .._text.json import compact_json, is_mapping, shorten
from .._transcript.assistant import ToolMetadata
from ..errors import MisuseError
from .members import Members

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core.core_schema import CoreSchema, ValidatorFunctionWrapHandler

    from .._call.selector import AnySelector, Selector
    from .._call.spec import AnySpec


def calls_type(members: Members) -> type:
    """Make the class of the calls of a toolset."""
    toolset, name = members.toolset, members.toolset.__qualname__
    return _CallsType(
        f"{toolset.__name__}Call",
        (_Calls,),
        {
            "__slots__": (),
            "__module__": toolset.__module__,
            "__qualname__": f"{name}.Call",
            "__doc__": f"A call of any tool of {name}; as JSON, its tool and its input.",
            "members": members,
        },
    )


class _CallsType(type):
    """Make every call of the toolset's tools an instance, as a union of their classes would."""

    members: Members

    def __instancecheck__(cls, instance: object) -> bool:
        kinds = tuple(selector.spec.call_type for selector in cls.members.selectors)
        return isinstance(instance, kinds)

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        name = cls.members.toolset.__qualname__
        raise MisuseError(
            f"{name}.Call stands for calls of all its tools, and makes none. Decode one with "
            f"`{name}.parse_tool_call(metadata)`, or read one with `TypeAdapter({name}.Call)`."
        )


class _Calls:
    """What the class of each toolset inherits: its schema."""

    __slots__ = ()

    members: Members

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        members = cls.members

        def read(value: object, handler: ValidatorFunctionWrapHandler) -> object:
            if not isinstance(value, AnyToolCall):
                try:
                    return handler(value)
                except ValidationError as error:
                    # The first step of a place is the tool, as in ("web_search", "input", "query").
                    # Pydantic's error quotes what came, which may be a secret if one of these tools
                    # has any.
                    named = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
                    known = members.selectors
                    tools = [each for each in known if each.name in named] or known
                    if not any(each.spec.has_secrets for each in tools):
                        raise
                    shown: dict[object, Any] = {each.name: each.spec.shown_names for each in tools}
                    raise hidden(error, shown) from None
            if _member(members, value) is None:
                raise PydanticCustomError("tool_call", "this is a call of another toolset")
            return value

        return core_schema.no_info_wrap_validator_function(
            read,
            _any_of([_form_of(selector, handler) for selector in members.selectors]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda call: _written(members, call), return_schema=core_schema.any_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> JsonSchema:
        # What is written is what is read.
        made: JsonSchema = handler({key: schema[key] for key in schema if key != "serialization"})
        made.pop("discriminator", None)  # OpenAPI's wants a name for each form; `const` says it all
        return made


def _any_of(forms: list[tuple[str, CoreSchema]]) -> CoreSchema:
    if forms:
        return core_schema.tagged_union_schema(dict(forms), discriminator="tool")

    def refuse(_: object) -> NoReturn:
        raise PydanticCustomError("no_tools", "this toolset has no tools to call")

    return core_schema.no_info_before_validator_function(refuse, core_schema.dict_schema())


def _form_of(selector: Selector, handler: GetCoreSchemaHandler) -> tuple[str, CoreSchema]:
    """Return the wire name of a tool, and the schema of its calls."""
    spec = selector.spec
    # Read as {"tool": "web_search", "input": {"query": "tea"}}: the input goes through the tool's
    # own decoder as text, so that it is coerced and refused exactly as one of the model is.
    shape: Any = Annotated[spec.arguments.type, _Input(spec)]

    def made(data: dict[str, str]) -> AnyToolCall:
        metadata = ToolMetadata(id=uuid4().hex, name=selector.name, arguments=data["input"])
        return DecodedCall.decode(selector, metadata).call

    fields = {
        "tool": core_schema.typed_dict_field(core_schema.literal_schema([selector.name])),
        "input": core_schema.typed_dict_field(handler.generate_schema(shape)),
    }
    form = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
    return selector.name, core_schema.no_info_after_validator_function(made, form)


class _Input:
    """What is said about an input in an annotation: it is read and described as the model's."""

    def __init__(self, spec: AnySpec) -> None:
        self.spec = spec

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            lambda value, _: self._text_of(value), handler(source)
        )

    def _text_of(self, value: object) -> str:
        arguments = self.spec.arguments
        try:
            text = compact_json(value) if is_mapping(value) else None
        except (TypeError, ValueError, RecursionError):
            text = None
        if text is None:
            made, taken = arguments.take(value)
            text = compact_json(
                taken.set_data if arguments.keeps_names else arguments.to_wire(made)
            )
        arguments.validate_json(text)
        return text

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> JsonSchema:
        own = self.spec.definition.input_schema
        # What is written is what is read: pydantic would describe the names of a result.
        is_read = self.spec.arguments.keeps_names or handler.mode == "validation"
        if self.spec.arguments.type != _PLAIN and is_read:
            described: JsonSchema = handler(schema)
            if own.get("additionalProperties") is False:
                handler.resolve_ref_schema(described)["additionalProperties"] = False
            return described
        from .._schema.json_schema import without_references

        return without_references(own)


_PLAIN: Any = dict[str, Any]
"""The type of an input that is known by a JSON schema only."""


def _member(members: Members, call: object) -> AnySelector | None:
    """Return the member of a toolset that a call is of, if it is one of its calls."""
    own: AnySelector | None = getattr(call, "selector", None)
    if own is None or members.by_name.get(own.name) is own:
        return own
    return own._reaches(members.toolset)


def _written(members: Members, call: Any) -> dict[str, object]:
    member = _member(members, call)
    if member is None:
        raise PydanticSerializationError(
            f"{shorten(call)} is not a call of {members.toolset.__qualname__}, and is not written "
            "as one."
        )
    record = call._record
    text: InputText = record.text_or_raise()
    sent = call.spec.arguments.sent_by_model(record.current_input, text, call.metadata.arguments)
    if sent is NOTHING:
        raise PydanticSerializationError(
            f"The input of call {call.id!r} of tool `{call.name}` cannot be written as a model "
            "sends it: its validators would make another one of that. Send the call as "
            "`plan.detach` gives it, or save its plan."
        )
    return {"tool": member.name, "input": sent}
