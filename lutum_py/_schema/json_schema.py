"""JSON schemas that pydantic writes of types, with texts that only the source of a class has."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum, Flag
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonRef,
    JsonSchemaMode,
    JsonSchemaWarningKind,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .._text.immutable import dataclass
from .._text.json import compact_json, infinity_in, is_array, is_object, shorten
from .inner_texts import describe_inside, hints_of
from .read_back import NOWHERE, Core, accepts, exact_data, paths_of, told_names
from .schema_reader import NAMES, JsonSchema, follow, localized, subschemas
from .secrets import Masking
from .signature import is_surely_json, own_docstring, parsed, texts_in, type_name

if TYPE_CHECKING:
    import ast

    from pydantic_core import core_schema


@dataclass(frozen=True, slots=True)
class _ClassSource:
    """A class statement in a file: where it stands, and what its body annotates and documents."""

    qualname: str
    first_line: int
    last_line: int
    annotated: tuple[str, ...]
    docstrings: Mapping[str, str]


def attribute_docstrings(cls: type) -> dict[str, str]:
    """Return the string literals that directly follow the fields of a class body, or members.

    Only the class's own body counts, not what it inherits. Where its source is not to be had
    (`exec`, a file edited since, some prompts), the answer is empty; at a prompt that is warned of.
    """
    for path, source in _sources(cls):
        try:
            classes = _classes_in(source)
        except (SyntaxError, ValueError):
            continue
        found = _pick(cls, path, [one for one in classes if one.qualname == cls.__qualname__])
        if found:
            kept = found.docstrings if issubclass(cls, Enum) else found.annotated
            return {name: text for name, text in found.docstrings.items() if name in kept}
    fields: Mapping[str, Any] = getattr(cls, "model_fields", {})
    if _is_typed_in(cls) and not all(field.description for field in fields.values()):
        warnings.warn(
            f"The source of `{cls.__qualname__}` is not to be had here, so texts under its fields "
            "reach no model. Describe them with `Field(description=...)`, or write the class in a "
            "file.",
            UserWarning,
            stacklevel=2,
        )
    return {}


def _is_typed_in(cls: type) -> bool:
    """Whether a class was written at a prompt or in a notebook, which have no file of it."""
    if cls.__module__ != "__main__":
        return False
    module = sys.modules["__main__"]
    spec = getattr(module, "__spec__", None)
    is_asyncio = spec is not None and spec.name == "asyncio.__main__"  # `python -m asyncio`
    return is_asyncio or getattr(module, "__file__", None) is None


def _sources(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the texts that a class may be in, with their names: one, or of a notebook each cell.

    The cell that is being run comes first, then the last one that was.
    """
    import inspect
    import linecache

    if not _is_typed_in(cls):
        with suppress(TypeError, OSError):
            path = inspect.getsourcefile(cls)
            if path is not None:
                linecache.checkcache(path)
                yield path, "".join(linecache.getlines(path, vars(sys.modules[cls.__module__])))
        return
    # What is typed in is kept there by IPython, and by the prompt from Python 3.13 on; newer ones
    # keep it in a table beside the one of files.
    kept = [*linecache.cache.values(), *getattr(linecache, "_interactive_cache", {}).values()]
    cells = {each[3]: "".join(each[2]) for each in kept if len(each) > 1 and each[1] is None}
    running, frame = list[str](), inspect.currentframe()
    while frame := frame and frame.f_back:
        running.append(frame.f_code.co_filename)
    for name in dict.fromkeys((*running, *reversed(cells))):
        if f"class {cls.__name__}" in cells.get(name, ""):
            yield name, cells[name]


def _pick(cls: type, path: str, candidates: list[_ClassSource]) -> _ClassSource | None:
    """Choose among class statements of one qualified name.

    Python 3.13 and later know the line. Earlier, the annotated names must agree; where that leaves
    several, it is the statement being run now (as in a decorator or metaclass), else the last one.
    """
    import inspect

    # Two classes of one name may be in one file, as in the branches of an `if`. Which of the two
    # this is shows by its line, or else by what it annotates.
    line = cls.__dict__.get("__firstlineno__")
    if line is not None:
        return next((one for one in candidates if one.first_line == line), None)
    # Asked of the class, Python 3.14 would evaluate the annotations.
    annotated = tuple(cls.__dict__.get("__annotations__", ()))  # noqa: RUF063
    candidates = [one for one in candidates if one.annotated == annotated]
    if len(candidates) > 1:
        frame = inspect.currentframe()
        # A decorator runs while the class statement does: its lines are where that frame stands.
        while frame and (frame := frame.f_back):
            for one in candidates:
                if frame.f_code.co_filename == path and (
                    one.first_line <= frame.f_lineno <= one.last_line
                ):
                    return one
    return candidates[-1] if candidates else None


@lru_cache(maxsize=4)
def _classes_in(source: str) -> tuple[_ClassSource, ...]:
    """List the class statements of a source text, in order."""
    return tuple(_walk(parsed(source), ""))


def _walk(node: ast.AST, prefix: str) -> Iterator[_ClassSource]:
    import ast

    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef):
            yield _describe(child, prefix + child.name)
            inner = f"{prefix}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{child.name}.<locals>."
        yield from _walk(child, inner)


def _describe(node: ast.ClassDef, qualname: str) -> _ClassSource:
    import ast
    from inspect import cleandoc

    # `city: str` and a text on the next line document each other only in the source: Python drops
    # the text. A comment is not taken, since it is for readers of the program.
    annotated: dict[str, None] = {}
    docstrings: dict[str, str] = {}
    name = ""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=target)):
                name = target
                annotated[name] = None
            case ast.Assign(targets=[ast.Name(id=target)]):
                name = target  # a member, if the class is an enum
            case ast.Expr(value=ast.Constant(value=str(text))) if name and text.strip():
                docstrings[name] = cleandoc(text)
                name = ""
            case _:
                name = ""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return _ClassSource(qualname, first, node.end_lineno or first, tuple(annotated), docstrings)


_PLAIN: Final = {"bool": bool, "float": float, "int": int, "str": str}


class _PlainSchema(GenerateJsonSchema):
    """Leave out titles made from field names; say nothing if a default has no JSON form."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - as in the base
        "skipped-choice",
        "non-serializable-default",
    }

    _parts: Any = ()
    """The definitions of the core schema, which its parts refer to."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchema:
        self._parts = schema.get("definitions", ())
        return super().generate(schema, mode)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchema:
        made = super().default_schema(schema)
        inner = schema["schema"]
        # A null that is sent for what may be left out is taken for that, whatever the type.
        default = made.get("default")
        is_sure = inner.keys() <= {"type", "metadata"} and _PLAIN.get(inner["type"]) is type(
            default
        )
        if default is None or is_sure:
            return made
        # pydantic masks a secret, and writes a model under names that it may not read.
        text = compact_json(default)
        try:
            exact_data(NOWHERE, accepts(inner, self._parts).validate_json(text))
        except Exception:  # noqa: BLE001 - a validator of the author's may raise anything
            del made["default"]
        return made

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        return False

    def encode_default(self, dft: object) -> Any:
        if is_surely_json(dft):  # to make a serializer for each of these is slow
            return dft
        encoded = super().encode_default(dft)
        if infinity_in(encoded) is not None:
            raise PydanticSerializationError("JSON has neither NaN nor infinities")
        return encoded


class _InputSchema(_PlainSchema):
    """Also describe fields by the texts under them, in every class that an input is made of.

    Values that an author named by hand have to fit.
    """

    def generate_inner(self, schema: Any) -> JsonSchema:
        made = super().generate_inner(_with_members(schema) if schema["type"] == "enum" else schema)
        if (
            self.mode == "validation"
            and ("enum" in made or "const" in made)
            and "metadata" in schema
        ):
            inner = schema["schema"] if schema["type"].endswith("-field") else schema
            for each in made.get("enum", [made.get("const")]):
                try:
                    accepts(inner, self._parts).validate_json(compact_json(each))
                except ValidationError as error:
                    said = error.errors(include_url=False)[0]["msg"]
                    fault = f"its schema names {shorten(each)}, which is refused: {said}"
                    raise PydanticUserError(fault, code=None) from None
                except Exception:  # noqa: BLE001 - a validator may want what only a call has
                    continue
        return made

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchema:
        made = super().model_schema(schema)
        return self._described(made, schema["cls"], self._fields(made, schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchema:
        made = super().dataclass_schema(schema)
        return self._described(made, schema["cls"], self._fields(made, schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchema:
        made = super().typed_dict_schema(schema)
        return self._described(made, schema.get("cls", dict), self._fields(made, schema))

    def named_tuple_schema(self, schema: Any) -> JsonSchema:
        # From pydantic 2.14 on; before, a named tuple is a call of the class.
        return self._of_tuple(super().named_tuple_schema(schema), schema["cls"])

    def call_schema(self, schema: core_schema.CallSchema) -> JsonSchema:
        return self._of_tuple(super().call_schema(schema), schema["function"])

    def _of_tuple(self, made: JsonSchema, cls: Any) -> JsonSchema:
        names: tuple[str, ...] = getattr(cls, "_fields", ())
        entries = dict(zip(names, made.get("prefixItems", ()), strict=False))
        if entries and (about := own_docstring(cls)):
            made.setdefault("description", about)
        return self._described(made, cls, entries) if entries else made

    def _fields(self, made: JsonSchema, schema: Any) -> dict[str, Any]:
        told = made.get("properties", {})
        return {name: told.get(key) for name, key in told_names(schema, self.mode).items()}

    def _described(self, made: JsonSchema, cls: Any, entries: dict[str, Any]) -> JsonSchema:
        """Put the texts of a class's annotations, and under them, where none is.

        Args:
            made: The schema of the class.
            cls: The class.
            entries: The schema of each of its fields, which is a part of that.
        """
        texts: dict[str, str] = {}
        if not hasattr(cls, "__is_of_function__"):  # that one's docstring has described them
            for base in reversed(cls.__mro__):
                module = base.__module__.partition(".")[0]
                is_ours = issubclass(base, BaseModel) and module != "pydantic"
                if is_ours or base is cls or is_dataclass(base):
                    texts.update({**attribute_docstrings(base), **texts_in(base)})
        for name, text in texts.items():
            if is_object(entry := entries.get(name)):
                entry.setdefault("description", text)
        for name, hint in hints_of(cls).items():
            if is_object(entry := entries.get(name)):
                describe_inside(entry, hint, self._follow, f"`{cls.__qualname__}.{name}`")
        return made

    def _follow(self, reference: str) -> Any:
        return self.get_schema_from_definitions(JsonRef(reference))


def _with_members(schema: Core) -> Any:
    """Describe the members of an enum by the texts under them, or by their docstrings."""
    under = attribute_docstrings(schema["cls"])
    said: dict[Any, Any] = {
        each: under.get(each.name, each.__dict__.get("__doc__")) for each in schema["members"]
    }
    lines = [
        f"- {compact_json(to_jsonable_python(each.value))}: {text}"
        for each, text in said.items()
        if isinstance(text, str)
    ]

    def described(part: Any, handler: Any) -> Any:
        made = handler(part)
        whole = handler.resolve_ref_schema(made)
        whole["description"] = "\n".join([*filter(None, [whole.get("description")]), *lines])
        return made

    # As the last of these: pydantic's own puts the docstring of the class there.
    metadata = schema.get("metadata", {})
    known = metadata.get("pydantic_js_functions", ())
    added = {**metadata, "pydantic_js_functions": [*known, described]}
    return {**schema, "metadata": added} if lines else schema


class _OutputSchema(_InputSchema):
    """Describe what a result contains, where pydantic describes the value that it is made of."""

    def ser_schema(self, schema: Any) -> JsonSchema | None:
        made = super().ser_schema(schema)
        module = str(getattr(schema.get("function"), "__module__", ""))
        # Of a serializer without a return type nobody knows what it writes; pydantic's own write
        # what its schema says.
        is_open = schema["type"].startswith("function-") and made is None
        return {} if is_open and module.partition(".")[0] != "pydantic" else made

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchema:
        made = super().float_schema(schema)
        if self._config.ser_json_inf_nan != "strings":
            return made
        return {"anyOf": [made, {"enum": ["Infinity", "-Infinity", "NaN"], "type": "string"}]}

    def _moment(self, schema: Core) -> JsonSchema:
        if getattr(self._config, "ser_json_temporal", "iso8601") != "iso8601":
            return {"type": "number"}
        made: JsonSchema = getattr(super(), f"{schema['type']}_schema")(schema)
        return made

    date_schema = datetime_schema = time_schema = timedelta_schema = _moment

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchema:
        made = super().decimal_schema(schema)
        return {key: part for key, part in made.items() if key != "pattern"}  # not of `1E+30`

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchema:
        made = super().enum_schema(schema)
        if issubclass(schema["cls"], Flag):  # several members at once are a value as well
            del made["enum"]
        return made


# A field `pin: SecretStr = Field(alias="PIN")` may be met as `pin` or `PIN`: in data, in errors of
# pydantic, in what a class writes itself. A mask that knew one of the names would let the other
# through.
class _NamedSchema(_PlainSchema):
    """Also say which other names a field has, and what pydantic's types keep secret.

    A model is told one name of each field. It is also taken under its other ones, written under
    one, and loaded by the name that it has in its class.
    """

    def generate_inner(self, schema: Any) -> JsonSchema:
        made = super().generate_inner(schema)
        return {**made, "writeOnly": True} if _makes_secret(schema) else made

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchema:
        return _with_names(super().model_fields_schema(schema), schema["fields"].items())

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchema:
        return _with_names(super().typed_dict_schema(schema), schema["fields"].items())

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchema:
        fields = [(field["name"], field) for field in schema["fields"]]
        return _with_names(super().dataclass_args_schema(schema), fields)


def _makes_secret(schema: Core) -> bool:
    """Whether pydantic makes a `Secret[T]` there: its other secret types it marks itself."""
    if not schema["type"].startswith("function-"):
        return False
    makes: Any = schema.get("function", {}).get("function")
    name: str = getattr(makes, "__qualname__", "")
    return name.startswith("Secret.") and makes.__module__ == SecretStr.__module__


def _with_names(made: JsonSchema, fields: Iterable[tuple[str, Core]]) -> JsonSchema:
    """Say for each name which properties may be meant by it, and of which fields these are."""
    properties = made.get("properties", {})
    meant: dict[str, dict[str, list[str]]] = {}
    for name, field in fields:
        names = dict.fromkeys([name, field.get("serialization_alias", name)])
        names |= dict.fromkeys(str(path[0]) for path in paths_of(name, field))
        told = [each for each in names if each in properties]
        for each in names:
            of_name = meant.setdefault(each, {})
            for known in told:
                of_name.setdefault(known, []).append(name)
    return {**made, NAMES: meant}


def masking_of(source: type[BaseModel] | TypeAdapter[Any]) -> Masking:
    """Find what is secret in a type of pydantic's, under whichever names."""
    return Masking(json_schema_of(source, generator=_NamedSchema), is_closed=True)


def input_schema_of(source: type[BaseModel] | TypeAdapter[Any]) -> JsonSchema:
    """Return the schema of an input, with the texts under its fields."""
    return json_schema_of(source, generator=_InputSchema)


def output_schema_of(source: TypeAdapter[Any], output_type: object) -> JsonSchema:
    """Return the schema of an output, with the texts under its fields and in its type."""
    schema = json_schema_of(source, "serialization", generator=_OutputSchema)
    place = f"An output `{type_name(output_type)}`"
    describe_inside(schema, output_type, lambda reference: follow(reference, schema), place)
    return schema


def json_schema_of(
    source: type[BaseModel] | TypeAdapter[Any],
    mode: JsonSchemaMode = "validation",
    *,
    generator: type[GenerateJsonSchema] = _PlainSchema,
) -> JsonSchema:
    """Return the schema, its root resolved and without the class's own title and docstring."""
    if isinstance(source, TypeAdapter):
        schema = source.json_schema(schema_generator=generator, mode=mode)
    else:
        schema = source.model_json_schema(schema_generator=generator, mode=mode)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        root, definitions = follow(reference, schema), schema["$defs"]
        schema = {**root, "$defs": definitions}
        if not _refers(schema, reference):
            others = {key: part for key, part in definitions.items() if part is not root}
            schema = {**root, **({"$defs": others} if others else {})}
    # An input's is the description of its tool, and that of an enum is about its members as well.
    dropped = (
        ("title",) if "enum" in schema or mode == "serialization" else ("title", "description")
    )
    return {key: part for key, part in schema.items() if key not in dropped}


def _refers(schema: object, reference: str) -> bool:
    return is_object(schema) and (
        schema.get("$ref") == reference
        or any(_refers(part, reference) for _, _, part in subschemas(schema))
    )


def without_references(schema: JsonSchema) -> JsonSchema:
    """Replace each reference by what it leads to; one that leads back to itself takes anything."""
    inlined: JsonSchema = _inlined(schema, localized(schema), ())
    return inlined


def _inlined(schema: object, root: object, within: tuple[str, ...]) -> Any:
    if is_array(schema):
        return [_inlined(part, root, within) for part in schema]
    if not is_object(schema):
        return schema
    made = {
        key: _inlined(part, root, within)
        for key, part in schema.items()
        if key not in ("$ref", "$defs", "definitions", "$id", "$anchor")
    }
    reference = schema.get("$ref")
    if reference is None or reference in within:
        return made
    target = follow(reference, root)
    return {**_inlined(target, root, (*within, reference)), **made} if is_object(target) else made
