"""What an author says about a tool besides its parameters and its output: one record for all ways.

The decorators fill it, what is in the declaration itself fills its gaps, and the definition is
made of it. An option is added here twice, to the functions that take it, and to `ToolDef`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypedDict, get_args

from pydantic import create_model
from pydantic.errors import PydanticUserError

from .._text.escaping import names_for_message
from .._text.immutable import Immutable, dataclass
from .._text.json import (
    compact_json,
    copy_json,
    digest_of,
    is_array,
    is_mapping,
    is_object,
    is_seconds,
    sendable,
    shorten,
)
from .._text.names import is_plain, is_sendable, stand_in
from ..errors import MisuseError, ToolDefinitionError
from .signature import reason_of, type_name

if TYPE_CHECKING:
    from .arguments import Arguments
    from .capabilities import ToolCapabilities
    from .output import Output
    from .schema_reader import JsonSchema

Caller: TypeAlias = Literal["model", "program"]
"""Who may call a tool: the model, or a program of the model's that its provider runs."""

if TYPE_CHECKING:

    class ToldOfTool(TypedDict, total=False):
        """What every decorator takes, for type checkers alone: the functions spell it out."""

        name: str | None
        description: str | None
        title: str | None
        timeout: float | None
        category: str | None
        capabilities: ToolCapabilities | None
        idempotent: bool
        strict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Hold what was said about a tool; None stands for nothing.

    Raises:
        ToolDefinitionError: `skip` is not a collection of names.
    """

    name: str | None = None
    description: str | None = None
    title: str | None = None
    skip: Sequence[str] = ()
    category: str | None = None
    capabilities: ToolCapabilities | None = None
    timeout: float | None = None
    idempotent: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.skip, str):
            raise ToolDefinitionError(f"skip= takes names in a tuple: write skip=({self.skip!r},).")
        if not isinstance(self.skip, Collection):
            raise ToolDefinitionError(
                f"skip= takes names in a tuple, as in skip=('db',), not {shorten(self.skip)}."
            )
        object.__setattr__(self, "skip", tuple(self.skip))

    # `@tool_fn(description="...")` wins over the docstring, and an empty text wins too: it was
    # said.
    def or_else(self, *, name: str, description: str) -> ToolOptions:
        """Fill in what the declaration itself says, if the author said nothing else."""
        return replace(
            self,
            name=name if self.name is None else self.name,
            description=description if self.description is None else self.description,
        )

    def checked(self, place: str) -> dict[str, Any]:
        """Return what a definition is told, by name.

        Args:
            place: What is declared, for messages.

        Raises:
            ToolDefinitionError: Something is of the wrong kind; the text names it.
        """
        self._check_texts(place)
        if self.capabilities is not None:
            from .capabilities import ToolCapabilities

            if not isinstance(self.capabilities, ToolCapabilities):
                raise ToolDefinitionError(
                    f"{place}: capabilities={shorten(self.capabilities)} are not "
                    "`ToolCapabilities`. Write `capabilities=ToolCapabilities(...)`."
                )
        for field in ("idempotent", "strict"):
            check_bool(f"{place}: {field}=", getattr(self, field))
        timeout = self.timeout
        if timeout is not None and not is_seconds(timeout):
            raise ToolDefinitionError(
                f"{place}: timeout={shorten(timeout)} is not a positive number of seconds. Leave "
                "it out for none."
            )
        return {name: getattr(self, name) for name in TOLD}

    def _check_texts(self, place: str) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ToolDefinitionError(
                f"{place} needs a name, got {shorten(self.name)}. Pass `name=` with a text."
            )
        for field in ("name", "description", "title", "category"):
            text = getattr(self, field)
            if not (isinstance(text, str) or (text is None and field != "description")):
                raise ToolDefinitionError(
                    f"{place}: {field}={shorten(text)} is not text. Give a text, or leave it out."
                )
            try:
                (text or "").encode()
            except UnicodeEncodeError as error:
                raise ToolDefinitionError(
                    f"{place}: the {field} holds half of a surrogate pair at position "
                    f"{error.start}, which UTF-8 cannot carry to a provider. Take it out."
                ) from None


def check_bool(said: str, flag: object) -> None:
    """Refuse what is neither True nor False: a text such as `"no"` would count as True.

    Args:
        said: What was declared and where, for the message.
        flag: The value.

    Raises:
        ToolDefinitionError: It is something else.
    """
    if not isinstance(flag, bool):
        raise ToolDefinitionError(f"{said}{shorten(flag)} is neither True nor False.")


def read_callers(given: object) -> tuple[Caller, ...]:
    """Take who may call a tool, from whatever lists it.

    Raises:
        ToolDefinitionError: It is not a list of callers.
    """
    said: Any = given
    if isinstance(given, Iterable) and not isinstance(given, str):
        listed: tuple[Any, ...] = tuple(said)
        if all(each in get_args(Caller) for each in listed):
            return listed
    raise ToolDefinitionError(
        f"`callers=` takes who may call a tool, not {shorten(said)}. Write "
        '`callers=("model", "program")`.'
    )


TOLD = tuple(name for name in ToolOptions.__annotations__ if name != "skip")
"""The options that a definition keeps; the others are used up while it is made."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise MisuseError(
        "The schema of a tool is read-only, because its digest, its validator and what was sent "
        "would no longer agree with it. Edit a copy, as `copy.deepcopy(schema)` gives one."
    )


class _ReadOnly:
    """What refuses to be changed; a copy is plain, and may be."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = _refuse

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return copy_json(self)

    def __reduce__(self) -> tuple[object, ...]:
        copied: object = copy_json(self)
        return (type(copied), (copied,))


# A `MappingProxyType` would do, but `json.dumps` and the SDKs of providers ask whether they have a
# dict. So it is one, all of whose ways to change it refuse.
class _ReadOnlyObject(_ReadOnly, dict[str, Any]):
    """A JSON object that refuses to be changed; what reads a dict reads it."""

    __slots__ = ()
    __ior__ = popitem = setdefault = update = _refuse


class _ReadOnlyArray(_ReadOnly, list[Any]):
    """A JSON array that refuses to be changed; everything that reads a list reads it."""

    __slots__ = ()
    __iadd__ = __imul__ = append = extend = insert = remove = reverse = sort = _refuse


def read_only(value: Any) -> Any:
    """Copy plain JSON data so that the copy refuses to be changed; one that does is given back."""
    if isinstance(value, _ReadOnlyObject):
        return value
    if is_object(value):
        return _ReadOnlyObject({key: read_only(part) for key, part in value.items()})
    if is_array(value):
        return _ReadOnlyArray([read_only(part) for part in value])
    return value


class ToolDef(Immutable):
    """Describe one tool: its name, its text, its schemas, and hints for the program.

    Made by `@tool_fn` and `@tool_input`, or by `ToolDef.from_json_schema`. The schemas are computed
    on first use and kept. They are plain dicts and lists that cannot be changed, because the
    digest, the validator and the wire depend on them; `copy.deepcopy(schema)` returns a copy that
    you can edit.

    Attributes:
        name: The name on the wire.
        description: What the model is told about the tool.
        title: A name for people, or None.
        category: A word by which the program groups tools, or None.
        capabilities: What the tool does to the world.
        timeout: Seconds that a run may take, in `call()` and under `execution`; None for no limit.
        idempotent: Whether a second run of the same call does no harm.
        strict: Whether arguments have to be of the very type, without coercion.
        callers: Who may call it, if a toolset says so: the model, and programs of the model's
            that its provider runs.
        is_foreign: Whether the tool is known by its JSON schema only, so that this is what checks
            arguments.

    Raises:
        MisuseError: Name or description are not text, the schema is not a dict, or the timeout is
            not a positive number of seconds.
        ToolDefinitionError: `callers` are not a list of callers.
    """

    name: str
    description: str
    title: str | None
    category: str | None
    timeout: float | None
    idempotent: bool
    strict: bool
    callers: tuple[Caller, ...]
    is_foreign: bool
    _capabilities: ToolCapabilities | None
    _input: JsonSchema | Callable[[], JsonSchema]
    _output: JsonSchema | Callable[[], JsonSchema] | None
    _digest: str | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        *,
        name: str,
        description: str,
        input_schema: JsonSchema | Callable[[], JsonSchema],
        output_schema: JsonSchema | Callable[[], JsonSchema] | None = None,
        title: str | None = None,
        category: str | None = None,
        capabilities: ToolCapabilities | None = None,
        timeout: float | None = None,
        idempotent: bool = False,
        strict: bool = False,
        callers: Iterable[Caller] = (),
    ) -> None:
        for field, text in (("name", name), ("description", description)):
            MisuseError.check("ToolDef", field, "a text", text, str)
        if not (isinstance(input_schema, dict) or callable(input_schema)):
            raise MisuseError.of_field("ToolDef", "input_schema", "a dict", input_schema)
        if not (timeout is None or is_seconds(timeout)):
            wish = "a positive number of seconds or None"
            raise MisuseError.of_field("ToolDef", "timeout", wish, timeout)
        self._put(
            name=name,
            description=sendable(description),  # that of one turn may be of data
            title=title,
            category=category,
            timeout=timeout,
            idempotent=idempotent,
            strict=strict,
            callers=read_callers(callers),
            is_foreign=isinstance(input_schema, dict),
            _capabilities=capabilities,
            _input=read_only(input_schema),
            _output=read_only(output_schema),
            _digest=None,
        )

    @classmethod
    def from_json_schema(
        cls,
        *,
        name: str,
        input_schema: Mapping[str, object],
        description: str = "",
        title: str | None = None,
        output_schema: Mapping[str, object] | None = None,
        category: str | None = None,
        capabilities: ToolCapabilities | None = None,
        timeout: float | None = None,
        idempotent: bool = False,
    ) -> ToolDef:
        """Describe a tool that is known only by its JSON schema, such as one of an MCP server.

        Args:
            name: The name on the wire.
            input_schema: A JSON schema of an object.
            description: What the model is told about the tool.
            title: A name for people.
            output_schema: A JSON schema of the output, if there is one.
            category: A word by which the program groups tools.
            capabilities: What the tool does to the world.
            timeout: Seconds that a run may take, in `call()` and under `execution`.
            idempotent: Whether a second run of the same call does no harm.

        Raises:
            ToolDefinitionError: The name is empty, or the schema is not that of an object.

        Example:
            >>> echo = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
            >>> echo.input_schema
            {'type': 'object', 'properties': {}}
        """
        place = f"Tool {shorten(name)}"
        options = ToolOptions(
            name=name,
            description=description,
            title=title,
            category=category,
            capabilities=capabilities,
            timeout=timeout,
            idempotent=idempotent,
        )
        return cls(
            **options.checked(place),
            input_schema=object_schema(place, _json_object(place, "input", input_schema)),
            output_schema=None
            if output_schema is None
            else _json_object(place, "output", output_schema),
        )

    @property
    def capabilities(self) -> ToolCapabilities:
        """What the tool does to the world."""
        if self._capabilities is None:
            from .capabilities import ToolCapabilities

            made = ToolCapabilities()
            self._put(_capabilities=made)
            return made
        return self._capabilities

    @property
    def input_schema(self) -> JsonSchema:
        """The JSON schema of the arguments: always that of an object."""
        if callable(self._input):
            # A source that is a function is asked once: another thread may do it as well, and both
            # come to the same.
            made: JsonSchema = read_only(self._input())
            self._put(_input=made)
            return made
        return self._input

    @property
    def output_schema(self) -> JsonSchema | None:
        """The JSON schema of the output, or None if the tool does not declare one."""
        if callable(self._output):
            made: JsonSchema = read_only(self._output())
            self._put(_output=made)
            return made
        return self._output

    @property
    def digest(self) -> str:
        """A digest of what decides whether a call is valid: the name and the input schema.

        Titles, descriptions and examples are left out, so that correcting a typo ends no approval.
        """
        if self._digest is None:
            made = digest_of([self.name, without_remarks(self.input_schema)])
            self._put(_digest=made)
            return made
        return self._digest

    @property
    def only_reads(self) -> bool:
        """Whether the tool declares effects, and none of them changes anything.

        Then a run that was cut off leaves nothing in doubt. `idempotent` is not enough for this,
        because a model that reads about an error may call again with other arguments, and so with
        another key.
        """
        effects = self.capabilities.effects
        return bool(effects) and not any(each.mutating for each in effects)

    def with_timeout(self, timeout: float | None) -> ToolDef:
        """Return the same definition with another limit on the time of a run, in seconds."""
        return self._but(timeout=timeout)

    def with_callers(self, callers: Iterable[Caller]) -> ToolDef:
        """Return the same definition with others who may call it."""
        return self._but(callers=callers)

    def with_name(self, name: str) -> ToolDef:
        """Return the same definition under another wire name."""
        return self._but(name=name)

    def with_description(self, description: str) -> ToolDef:
        """Return the same definition with another description."""
        return self._but(description=description)

    def _but(self, **changed: Any) -> ToolDef:
        return ToolDef(
            **{**self._told(), **changed},
            input_schema=self.input_schema if self.is_foreign else lambda: self.input_schema,
            output_schema=None if self._output is None else lambda: self.output_schema or {},
        )

    def _told(self) -> dict[str, Any]:
        slots = ("_capabilities" if name == "capabilities" else name for name in TOLD)
        told = {name: getattr(self, slot) for name, slot in zip(TOLD, slots, strict=True)}
        return {**told, "callers": [*self.callers]}

    def to_dict(self) -> dict[str, Any]:
        """Return the whole definition as plain data."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": copy_json(self.input_schema),
            "output_schema": copy_json(self.output_schema),
            **self._told(),
            "capabilities": self.capabilities.to_dict(),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolDef):
            return NotImplemented
        # As they are written: a model reads the order of properties, and 1 is not true to it. What
        # was made for one definition is given for another that equals it.
        return self is other or repr(self.to_dict()) == repr(other.to_dict())

    def __hash__(self) -> int:
        return hash((ToolDef, self.name, self.description))

    def __repr__(self) -> str:
        return f"ToolDef(name={self.name!r}, description={shorten(self.description, 60)})"

    def __reduce__(self) -> tuple[object, ...]:
        data = self.to_dict()
        data["capabilities"] = self.capabilities
        return (_restore, (data, self.is_foreign))


def _json_object(place: str, which: str, schema: object) -> JsonSchema:
    if not is_mapping(schema):
        raise ToolDefinitionError(
            f"{place}: the {which} schema must be a JSON object, got {shorten(schema)}. Pass "
            '{"type": "object", "properties": {...}}.'
        )
    from .schema_reader import misshapen_in

    try:
        copied: JsonSchema = copy_json(schema)
        compact_json(copied).encode()
    except UnicodeEncodeError as error:
        raise ToolDefinitionError(
            f"{place}: the {which} schema holds half of a surrogate pair, "
            f"{error.object[error.start]!r}, which UTF-8 cannot carry to a provider. Take it out."
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(
            f"{place}: the {which} schema is not plain JSON data ({error}). Make it of dicts, "
            "lists, texts, finite numbers, booleans and None."
        ) from error
    fault = misshapen_in(copied)
    if fault is not None:
        raise ToolDefinitionError(
            f"{place}: at `{fault.path}` of the {which} schema, {fault.problem}. {fault.remedy}"
        )
    return copied


def object_schema(place: str, schema: JsonSchema) -> JsonSchema:
    """Check that a schema describes an object, and give it `properties` if it has none.

    Some hosts refuse an object schema without `properties`.

    Raises:
        ToolDefinitionError: The schema describes something else than an object.
    """
    # A schema may say what it is behind references and unions: `{"$ref": "#/$defs/A"}` is followed
    # until a type is named. What never names one is taken for an object.
    foreign = _foreign_type(schema)
    if foreign is not None:
        raise ToolDefinitionError(
            f"{place}: the arguments of a tool are always a JSON object, but this input schema "
            f"{foreign}. Put the value into a field of a model, as in `items: list[int]`."
        )
    if not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf"}:
        schema.setdefault("type", "object")
        schema.setdefault("properties", {})
    return schema


def _foreign_type(root: JsonSchema) -> str | None:
    """Say what else than an object the arguments of a schema would be."""
    if root.get("type") == "object":  # nearly always
        return None
    from .schema_reader import alternatives, follow

    seen: set[str] = set()
    waiting: list[Any] = [root]
    for schema in waiting:  # which grows
        kind = schema.get("type") if is_object(schema) else "object"
        reference = schema.get("$ref") if kind is None else None
        if kind not in (None, "object"):
            return f"is of type {kind!r}"
        if isinstance(reference, str):
            if reference not in seen:
                waiting.append(follow(reference, root))
            elif len(waiting) == len(seen) + 1:
                return "only refers to itself"
            seen.add(reference)
        elif kind is None:
            waiting += [*alternatives(schema), *schema.get("allOf", ())]
    return None


def without_remarks(schema: object) -> Any:
    """Copy a schema without what is for people."""
    from .schema_reader import REMARKS, with_subschemas

    if not is_object(schema):
        return schema
    kept = {key: part for key, part in schema.items() if key not in REMARKS}
    return with_subschemas(kept, without_remarks)


def _restore(data: dict[str, Any], is_foreign: bool) -> ToolDef:
    schema = data.pop("input_schema")
    return ToolDef(**data, input_schema=schema if is_foreign else lambda: schema)


def define(place: str, options: ToolOptions, *, arguments: Arguments, output: Output) -> ToolDef:
    """Make a tool's definition, and check now what would otherwise fail on first use.

    Raises:
        ToolDefinitionError: An option is of the wrong kind, or the input or output type has no
            schema.
    """
    told = options.checked(place)
    if not arguments.is_plain and arguments.skipped is not None:
        where = ".".join(arguments.skipped) or "the input"
        raise ToolDefinitionError(
            f"{place}: `{where}` has a `Skip()`, which hides parameters of a function only, each "
            "as a whole, so the model would fill it in. Take it out of the input, and let a "
            "function with `@tool_fn` take it as a parameter: `name: Annotated[..., Skip()]`."
        )

    # Functions, because a schema takes longer to make than the rest of a declaration, and in many
    # programs only some of the tools are ever on offer. What is checked below is made at once.
    definition = ToolDef(
        **told,
        input_schema=lambda: object_schema(place, arguments.json_schema()),
        output_schema=None if output.type is None else lambda: output.json_schema() or {},
    )
    if options.capabilities is not None:
        check_targets(place, definition, arguments)
    if not arguments.is_plain:
        try:
            definition.input_schema  # noqa: B018 - computed now, and kept
        except PydanticUserError as error:
            fault = _without_schema(arguments.type, error)
            raise ToolDefinitionError(f"{place}: {fault}") from error
    try:
        output.check()
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: its output type `{type_name(output.type)}` has no schema "
            f"({reason_of(error)}). Use a type that pydantic knows, or `Any`."
        ) from error
    return definition


def check_targets(place: str, definition: ToolDef, arguments: Arguments) -> None:
    """Make sure that what an effect is said to act on is an argument, by any of its names.

    Raises:
        ToolDefinitionError: The tool has no such argument.
    """
    from .schema_reader import names_in

    for effect in definition.capabilities.effects:
        if effect.target is not None and not arguments.may_have(effect.target):
            known = names_in(definition.input_schema)
            raise ToolDefinitionError(
                f"{place}: effect {effect.kind.value!r} has the target {effect.target!r}, which "
                f"is not an argument. The arguments are {names_for_message(known)}."
            )


def _without_schema(input_type: Any, error: PydanticUserError) -> str:
    """Name the field that has no JSON schema: pydantic names only the type that it cannot do."""
    from .input_model import FnInput
    from .json_schema import input_schema_of

    # pydantic says that it cannot make a schema of `Callable`, and not where that stands. So each
    # field is tried alone, and the first that fails is named.
    is_ours = issubclass(input_type, FnInput) if isinstance(input_type, type) else False
    for name, field in getattr(input_type, "model_fields", {}).items():
        shown = (field.alias or name) if is_ours else name
        probe: Any = {"probe": (field.annotation, field)}
        try:
            input_schema_of(create_model("Probe", **probe))
        except PydanticUserError as found:
            skip = f"`skip=({shown!r},)` or `Annotated[..., Skip()]`"
            hide = f", or hide the parameter from the model with {skip}" if is_ours else ""
            return (
                f"{'parameter' if is_ours else 'field'} `{shown}` of type "
                f"`{type_name(field.annotation)}` has no JSON schema ({reason_of(found)}). Use a "
                f"type that JSON can carry{hide}."
            )
    return f"its arguments have no JSON schema ({reason_of(error)}). Use types that JSON can carry."


def check_names(owner: str, paths: Mapping[str, str]) -> None:
    """Refuse names that cannot be sent, and two tools that could go out under one name.

    Args:
        owner: What has the tools, for messages.
        paths: Where each tool is, by its name.

    Raises:
        ToolDefinitionError: A name is empty or holds a control or half of a surrogate pair, or the
            stand-in of one tool's name is the name, or the stand-in, of another.
    """
    made: dict[str, str] = {}
    for name, path in paths.items():
        if is_plain(name):
            continue
        place = f"{owner}: the name {shorten(name)} of {path}"
        if not is_sendable(name):
            raise ToolDefinitionError(
                f"{place} is empty, or holds a control or half of a surrogate pair. Give the tool "
                "another, as in `@tool_fn(name=...)`."
            )
        goes_out = stand_in(name)
        other = goes_out if goes_out in paths else made.setdefault(goes_out, name)
        if other != name:
            raise ToolDefinitionError(
                f"{place} goes out as {goes_out!r} if a provider refuses it, and so does or is "
                f"the name {shorten(other)} of {paths[other]}. Rename one."
            )
