"""What a function says about its tool: its docstring, signature, annotations and their marks.

A docstring is prose with sections in it, in any mix of the Google, NumPy and Sphinx styles. Line by
line, each style is asked whether a section of it begins there; what none of them takes is prose, so
that nothing an author wrote is lost, be it a title without a body or a line without a colon.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, is_dataclass
from functools import partial
from math import isfinite
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    NamedTuple,
    NotRequired,
    Optional,
    Required,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import Format, ReadOnly, TypeAliasType, is_typeddict

from .._text.escaping import names_for_message
from .._text.immutable import dataclass
from .._text.json import cut, shorten
from .._text.on_demand import ONCE
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .schema_reader import JsonSchema


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart: its prose, and the description of each parameter in order.

    A parameter that is named without a word about it has an empty description.
    """

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


_ABOUT_PARAMETERS: Final = frozenset({"args", "arguments", "attributes", "parameters", "params"})
_OTHER: Final = ("keyword ", "other ")
"""What may be before these in a title, as in `Keyword Args:`."""
_DROPPED: Final = frozenset({"except", "exception", "raise", "return", "yield"})
"""What no model is told about, in the singular, as a title and as a field."""
_DROPPED_TITLES: Final = _DROPPED | {"example", "receive", "warn"}
_DROPPED_FIELDS: Final = _DROPPED | {"rtype", "type", "vartype", "ytype"}
_PARAMETER_FIELDS: Final = frozenset(
    {*("arg", "argument", "key", "keyword", "kwarg", "param", "parameter"), "cvar", "ivar", "var"}
)

# Decoration of a name: `*args`, reST's escaped `\*args`, Markdown's quotes.
_DECORATION: Final = "*\\`"
_NAME: Final = r"[*\\`]*[^\W\d]\w*`*"
_NAMES: Final = rf"{_NAME}(?:\s*,\s*{_NAME})*"
# Compiled by those that have such sections.
_GOOGLE_ENTRY: Final = rf"(?P<names>{_NAMES})\s*(?:\(.*?\))?\s*:(?!//)(?P<text>.*)"
_NUMPY_ENTRY: Final = rf"{_NAMES}\s*(?::.*)?"
_FIELD: Final = r":(?P<kind>\w+)(?:\s+(?P<argument>[^:]*))?:(?:\s+(?P<text>.*))?"
_FIELD_ARGUMENT: Final = rf"(?:.*?\s)??(?P<names>{_NAMES})\s*"


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines up to `end` that are not prose, with the entries that count: names, and their lines.

    `leading` is what is in a section before its first entry.
    """

    end: int
    entries: Sequence[tuple[str, list[str]]] = ()
    leading: Sequence[str] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Take a Google, NumPy or Sphinx docstring apart, whatever it holds.

    The description keeps every paragraph outside the sections of parameters, results, exceptions
    and examples. What only resembles a section (a title without an indented body, a body without an
    entry) is prose. Of two descriptions of one name, the first that is not empty counts.

    >>> parse_docstring(":param str query: What to search for.").parameters
    {'query': 'What to search for.'}
    """
    if not text:
        return Docstring()
    from inspect import cleandoc

    lines = cleandoc(text).split("\n")
    paragraphs: list[list[str]] = [[]]
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        # Each reader looks at one line and says where its section ends, or that none begins there.
        section = (
            _google_section(lines, position)
            or _numpy_section(lines, position)
            or _field_section(lines, position)
        )
        if section is None:
            paragraphs[-1].append(lines[position])
            position += 1
            continue
        for names, described in section.entries:
            for name in names.split(","):
                bare = name.strip().strip(_DECORATION)
                parameters[bare] = parameters.get(bare) or " ".join(" ".join(described).split())
        paragraphs += [list(section.leading), []]
        position = section.end
    prose = ("\n".join(paragraph).strip("\n") for paragraph in paragraphs)
    return Docstring("\n\n".join(part for part in prose if part).strip(), parameters)


def _is_dropped(title: str) -> bool:
    return title.removesuffix("s") in _DROPPED_TITLES


def _is_about_parameters(title: str) -> bool:
    start = title.partition(" ")[0] + " "
    return (title.removeprefix(start) if start in _OTHER else title) in _ABOUT_PARAMETERS


# `Args:` with `    city: Where.` under it. A title alone is prose: "Returns: the weather" says
# something to the model.
def _google_section(lines: list[str], start: int) -> _Section | None:
    """Read `Title:` and the indented lines under it."""
    written, colon, rest = lines[start].partition(":")
    title = written.lower() if colon and written[:1].isupper() and written.isascii() else ""
    if not title or rest.strip() or not (_is_dropped(title) or _is_about_parameters(title)):
        return None
    end = start + 1
    while end < len(lines) and _is_inside(lines[end]):
        end += 1
    body = lines[start + 1 : end]
    first = next((line for line in body if line.strip()), None)
    if first is None:
        return None
    if _is_dropped(title):
        return _Section(end)
    leading: list[str] = []
    entries: list[tuple[str, list[str]]] = []
    for line in body:
        bare = line.strip()
        entry = re.fullmatch(_GOOGLE_ENTRY, bare) if _depth(line) <= _depth(first) else None
        if entry:
            entries.append((entry["names"], [entry["text"]]))
        elif entries:
            # A line without a colon continues the entry above, however it is indented.
            entries[-1][1].append(bare)
        else:
            leading.append(bare)
    return _Section(end, entries, leading) if entries else None


# `Parameters`, a line of dashes, `city : str` and an indented text.
def _numpy_section(lines: list[str], start: int) -> _Section | None:
    """Read an underlined title and what is under it."""
    title = lines[start].strip().lower() if _is_underlined(lines, start) else ""
    end = start + 2
    if _is_dropped(title):
        while end < len(lines) and not _is_underlined(lines, end):
            end += 1
        return _Section(end)
    if not _is_about_parameters(title):
        return None
    while end < len(lines) and (_is_inside(lines[end]) or _is_numpy_entry(lines, end)):
        end += 1
    body = lines[start + 2 : end]
    while body and not body[0].strip():
        del body[0]
    if not body or _is_inside(body[0]):
        return None
    entries: list[tuple[str, list[str]]] = []
    for line in body:
        if _is_inside(line):
            entries[-1][1].append(line)
        else:
            entries.append((line.partition(":")[0], []))
    return _Section(end, entries)


def _is_numpy_entry(lines: list[str], at: int) -> bool:
    """Tell `name : type` from prose.

    After a blank line, only an indented description makes an entry.
    """
    if _is_underlined(lines, at) or not re.fullmatch(_NUMPY_ENTRY, lines[at]):
        return False
    described = at + 1 < len(lines) and lines[at + 1] != "" and _is_inside(lines[at + 1])
    return described or lines[at - 1].strip() != ""


# `:param str city: Where.`, perhaps with `:type city: str` beside it, which is dropped: the schema
# says the type.
def _field_section(lines: list[str], start: int) -> _Section | None:
    """Read `:param type name: text` or another field, with the lines that continue it."""
    match = _field(lines[start])
    if match is None:
        return None
    argument = re.fullmatch(_FIELD_ARGUMENT, match["argument"] or "")
    kept = match["kind"] in _PARAMETER_FIELDS and argument is not None
    if not kept and match["kind"].removesuffix("s") not in _DROPPED_FIELDS:
        return None
    end = start + 1
    # As in Markdown, a paragraph goes on without indentation until a blank line.
    while end < len(lines) and (
        _is_inside(lines[end]) or (lines[end - 1].strip() and not _field(lines[end]))
    ):
        end += 1
    if argument is None or not kept:
        return _Section(end)
    described = [match["text"] or "", *lines[start + 1 : end]]
    return _Section(end, [(argument["names"], described)])


def _field(line: str) -> re.Match[str] | None:
    return re.fullmatch(_FIELD, line) if line.startswith(":") else None


def _is_inside(line: str) -> bool:
    return not line or line[0].isspace()


def _is_underlined(lines: list[str], at: int) -> bool:
    if _is_inside(lines[at]) or at + 1 == len(lines):
        return False
    line = lines[at + 1].rstrip()
    return len(line) > 2 and line.strip(line[0]) == "" and line[0] in "-="


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


REQUIRED: Any = inspect.Parameter.empty
"""Stands for a default that is not there."""

_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
VARIADIC: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


# Python 3.14 evaluates annotations when somebody asks for them, and fails where one names what has
# no value yet, or for checkers only. Here that is a reference, as if it were written in quotes.
_IS_LAZY: Final = sys.version_info >= (3, 14)
_FORMAT: Final[dict[str, Any]] = {"format": Format.FORWARDREF} if _IS_LAZY else {}
_ANNOTATION_FORMAT: Final = {f"annotation_{key}": value for key, value in _FORMAT.items()}


def annotations_of(owner: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of a function, or those in the body of a class.

    >>> def greet(name: "Later", loud: bool) -> None: ...
    >>> list(annotations_of(greet))  # `Later` is not looked up
    ['name', 'loud', 'return']
    """
    return inspect.get_annotations(owner, **_FORMAT)


def signature_of(function: Callable[..., Any], **options: Any) -> inspect.Signature:
    """Return the signature of whatever can be called.

    Args:
        function: The function.
        **options: What `inspect.signature` takes.

    Raises:
        TypeError: It cannot be called.
        ValueError: It does not tell, as some functions of C do not.

    >>> str(signature_of(lambda metadata, input: None))
    '(metadata, input)'
    """
    return inspect.signature(function, **_ANNOTATION_FORMAT, **options)


def has_signature(function: object) -> bool:
    """Whether something can be called, and tells what it takes: some functions of C do not.

    >>> has_signature(len), has_signature(int), has_signature(3)
    (True, False, False)
    """
    checked: Any = function
    try:
        signature_of(checked)
    except (TypeError, ValueError):
        return False
    return True


SKIPPED: Final = "lutum_skipped"
"""The key by which the metadata of a core schema has it that there is a `Skip()`."""


class Skip:
    """Mark a parameter that the model must not see: `db: Annotated[Database, Skip()]`.

    The value is passed where the call is run, as in `await call.call(db=db)`. The mark may be in a
    type alias or in one member of a union. Only a parameter of a function can be hidden: for a
    field of a model, or a part of a parameter, the mark is an error.
    """

    __slots__ = ()

    # pydantic ignores marks that it does not know. This leaves a trace in the core schema, so that
    # a mark that hides nothing is found, wherever it is. `Skip` itself may be the mark.
    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Callable[[Any], Any]) -> Any:
        schema = handler(source)
        return {**schema, "metadata": {**schema.get("metadata", {}), SKIPPED: True}}

    def __repr__(self) -> str:
        return "Skip()"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills in."""

    name: str
    annotation: Any
    default: Any
    description: str | None


class ModelName(NamedTuple):
    """Name the model that has a field for each parameter of a function.

    Attributes:
        name: The name of the class, as `WebSearchInput`.
        module: The module of the function.
        owner: What the class stands in, as the function, by its qualified name.
    """

    name: str
    module: str
    owner: str

    @property
    def place(self) -> str:
        """What is declared, for messages."""
        return f"Tool function `{self.owner}`"


@dataclass(frozen=True, slots=True)
class Signature:
    """Say how a function is called and what the model is told about it.

    Attributes:
        parameters: What the model fills in, in order.
        hidden: The default of each parameter that the program fills in; `REQUIRED` for none.
        context: The name of the `ToolContext` parameter, if there is one.
        positional: The names that have to be passed by position, in order.
        output: The annotated return type, or `REQUIRED` where there is none.
        is_async: Whether calling the function gives an awaitable.
    """

    parameters: tuple[Parameter, ...]
    hidden: Mapping[str, Any]
    context: str | None
    positional: tuple[str, ...]
    output: Any
    is_async: bool


def read_signature(
    function: Callable[..., object],
    docstring: Docstring,
    *,
    skip: Collection[str],
    namespace: Mapping[str, object] | None,
) -> Signature:
    """Decide what each parameter of a function is.

    Args:
        function: The function to read.
        docstring: Its parsed docstring, for the descriptions of the parameters. Where it has none,
            a text in the annotation is one.
        skip: Names of parameters to hide.
        namespace: Local names of the place of definition, for annotations that are strings.

    Raises:
        ToolDefinitionError: The signature cannot be that of a tool.
        NameError: An annotation names something that is not defined yet.
    """
    place = f"Tool function `{function.__qualname__}`"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            f"{place} is a generator: a call has exactly one result. Return a list, or report "
            "what comes in between with `ToolContext.report_progress`."
        )
    signature = signature_of(function)
    known = signature.parameters
    if unknown := [name for name in skip if name not in known]:
        raise ToolDefinitionError(
            f"{place} has no parameter `{unknown[0]}` to skip; it has "
            f"{names_for_message(known)}. Correct `skip=`."
        )
    if undocumented := [name for name in docstring.parameters if name not in known]:
        raise ToolDefinitionError(
            f"{place}: the docstring documents `{undocumented[0]}`, but the function has no such "
            f"parameter; it has {names_for_message(known)}. Rename or remove the entry."
        )
    written = _annotations_in(signature)
    shown = [name for name in known if name not in skip]
    marked: set[str] = set()
    try:
        hints = _resolve(place, function, written, set(shown), namespace)
    except (NameError, ToolDefinitionError):
        # A hidden type often is imported for checkers only, so that the annotation as a whole has
        # no value when the program runs.
        scope = _Scope({**_names_around(function, written), **(namespace or {})})
        marked = {name for name in shown if _is_skipped(parts_of(written.get(name), scope))}
        hints = _resolve(place, function, written, {*shown} - marked, namespace)
    own = {name: hint for name, hint in annotations_of(function).items() if name in hints}
    if any(hint is not written[name] for name, hint in own.items()):
        with suppress(NameError):  # what has no value here contradicts nothing
            _check_own(place, _resolve(place, function, own, {*own}, namespace), hints)
    visible: list[Parameter] = []
    hidden: dict[str, object] = {}
    context: str | None = None
    for index, (name, parameter) in enumerate(known.items()):
        if stars := VARIADIC.get(parameter.kind):
            raise ToolDefinitionError(
                f"{place} takes `{stars}{name}`, which has no schema. Name each parameter, or take "
                f"one `{name}: list[...]` or `{name}: dict[str, ...]`."
            )
        bare = parameter.annotation is REQUIRED
        if name in skip or name in marked or (index == 0 and bare and name in ("self", "cls")):
            hidden[name] = parameter.default
            continue
        if bare:
            raise ToolDefinitionError(
                f"{place}: parameter `{name}` has no annotation. Write `{name}: str` (or what it "
                f"is), or hide it from the model with `skip=({name!r},)`."
            )
        annotation = hints[name]
        parts = parts_of(annotation)
        if _has_context(parts):
            if context is not None:
                raise ToolDefinitionError(
                    f"{place} takes two contexts, `{context}` and `{name}`. Keep one."
                )
            context = name
        elif _is_skipped(parts):
            hidden[name] = parameter.default
        else:
            about = docstring.parameters.get(name) or text_in(parts)
            visible.append(Parameter(name, annotation, parameter.default, about))
    output, is_async = hints.get("return", REQUIRED), inspect.iscoroutinefunction(function)
    if not is_async and get_origin(output) in (Awaitable, Coroutine):
        # A plain function that hands out a coroutine is called like an async one.
        output, is_async = get_args(output)[-1], True
    return Signature(
        parameters=tuple(visible),
        hidden=hidden,
        context=context,
        positional=tuple(n for n, p in known.items() if p.kind is _POSITIONAL_ONLY),
        output=type(None) if output is None else output,
        is_async=is_async,
    )


class Parts(NamedTuple):
    """Hold what an annotation as a whole may be, and how it is marked.

    Attributes:
        types: Each member of the unions in it, without `Annotated`.
        marks: What the `Annotated` around it and around each member add.
    """

    types: tuple[Any, ...] = ()
    marks: tuple[Any, ...] = ()


# Python has a class of its own for aliases, and so has `typing_extensions`.
ALIASES: Final = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))


AROUND: Final = (NotRequired, ReadOnly, Required)
"""What stands around the type of a field, and says nothing of its values."""


class _Scope(NamedTuple):
    """Hold what names mean where an annotation is written.

    Attributes:
        names: What its source may name.
        meaning: What the type parameters of an alias stand for, each with the scope of that.
        ancestors: The aliases that the annotation is in.
    """

    names: Mapping[str, Any] = {}
    meaning: Mapping[Any, tuple[Any, Any]] = {}
    ancestors: tuple[Any, ...] = ()


_NO_SCOPE: Final = _Scope()


# An author who writes `type Live[T] = Annotated[T, Skip()] | None` hides each `x: Live[Database]`.
# Within a container, as in `list[Annotated[T, Skip()]]`, a mark is not one of the parameter.
def parts_of(annotation: Any, scope: _Scope = _NO_SCOPE) -> Parts:
    """Walk through `Annotated`, unions and aliases, down to types and marks.

    Args:
        annotation: The annotation, or the source of one. What has no value here is no type.
        scope: What names mean in it.

    >>> parts_of(Annotated[int, "How many."] | None)
    Parts(types=(<class 'int'>, <class 'NoneType'>), marks=('How many.',))
    """
    if isinstance(annotation, str | ForwardRef):
        source = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        try:
            return _parts_of_tree(parsed(source.strip(), "eval").body, scope)
        except SyntaxError:
            return Parts()
    origin, args = get_origin(annotation), get_args(annotation)
    alias = origin or annotation
    if origin is Annotated:
        return _joined([parts_of(args[0], scope)], args[1:])
    if origin in (Union, UnionType, *AROUND):
        return _joined([parts_of(each, scope) for each in args])
    if isinstance(alias, ALIASES) and alias not in scope.ancestors:
        given = zip(alias.__type_params__, args, strict=False)
        meaning = {each: (arg, scope) for each, arg in given}
        names = vars(sys.modules[alias.__module__]) if alias.__module__ in sys.modules else {}
        return parts_of(alias.__value__, _Scope(names, meaning, (*scope.ancestors, alias)))
    if annotation.__class__ is typing.TypeVar and annotation in scope.meaning:
        return parts_of(*scope.meaning[annotation])
    return Parts((annotation,))


def _joined(inner: Iterable[Parts], marks: Iterable[object] = ()) -> Parts:
    types, inner_marks = zip(*inner, strict=True)
    return Parts(sum(types, ()), (*sum(inner_marks, ()), *marks))


# Of `Annotated["Database", Skip()] | None` each mark is evaluated alone: `Database` may be imported
# for checkers only, and `Skip` has to be there to be written.
def _parts_of_tree(tree: object, scope: _Scope) -> Parts:
    if isinstance(tree, ast.BinOp):
        return _joined(_parts_of_tree(each, scope) for each in (tree.left, tree.right))
    value = _value_of(tree, scope)
    if value is None and isinstance(tree, ast.Subscript):
        head, inside = _value_of(tree.value, scope), tree.slice
        inner = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if head is Annotated:
            marks = [_value_of(each, scope) for each in inner[1:]]
            return _joined([_parts_of_tree(inner[0], scope)], marks)
        if head in (Union, Optional, *AROUND):
            return _joined(_parts_of_tree(each, scope) for each in inner)
        value = head  # of an alias the marks are known, whatever it is given
    return parts_of(value, scope)


def _value_of(tree: Any, scope: _Scope) -> Any:
    """Evaluate a part of an annotation; None where it has no value here."""
    try:
        return eval(compile(ast.Expression(tree), "<annotation>", "eval"), dict(scope.names))
    except Exception:  # noqa: BLE001 - whoever needs the whole annotation says what is missing
        return None


def read_others(
    function: Callable[..., object], taken: Collection[str]
) -> tuple[dict[str, Any], str | None, bool]:
    """Read what a function takes that runs a tool instead of the tool's own function.

    Args:
        function: The function, or anything that is called like one.
        taken: The parameters by which it gets what the model filled in.

    Returns:
        The other parameters, which the program fills in, with their defaults; the name of the
        `ToolContext` parameter, if there is one; and whether calling gives an awaitable.
    """
    plain = _plain(function)
    hidden: dict[str, object] = {}
    context: str | None = None
    for name, parameter in signature_of(function).parameters.items():
        if name in taken or parameter.kind in VARIADIC:
            continue
        hints: dict[str, object] = {}
        with suppress(NameError, ToolDefinitionError):  # what has no value here is not a context
            hints = _resolve("A handler", plain, {name: parameter.annotation}, {name}, None)
        if context is None and is_context(hints.get(name)):
            context = name
        else:
            hidden[name] = parameter.default
    return hidden, context, inspect.iscoroutinefunction(plain)


def _plain(function: Any) -> Any:
    """Find the function that has the annotations of whatever can be called."""
    plain = inspect.unwrap(function)
    while isinstance(plain, partial):
        plain = plain.func
    return plain if inspect.isroutine(plain) else type(plain).__call__


def hint_of(function: Callable[..., object], name: str) -> Any:
    """Evaluate one annotation; `REQUIRED` where there is none, or where it has no value here."""
    plain = _plain(function)
    written = annotations_of(plain)
    return plain_hint(written.get(name, REQUIRED), _names_around(plain, written))


def plain_hint(annotation: object, names: dict[str, object] | None = None) -> Any:
    """Return an annotation without `Annotated`; `REQUIRED` where it has no value here."""
    carrier: object = SimpleNamespace(__annotations__={"it": annotation})
    with suppress(Exception):
        return typing.get_type_hints(carrier, globalns=names)["it"]
    return REQUIRED


def _check_own(place: str, own: Mapping[str, object], hints: Mapping[str, object]) -> None:
    """Make sure that a function's own annotations are those of its signature."""
    for name, hint in own.items():
        said = {type_name(type(None) if each is None else each) for each in (hint, hints[name])}
        if len(said) > 1 and hint != hints[name]:
            raise ToolDefinitionError(
                f"{place}: `{name}` is `{type_name(hints[name])}` in the signature, and "
                f"`{type_name(hint)}` in the annotations. A decorator that changes "
                "`__signature__` should change `__annotations__` with it."
            )


def _annotations_in(signature: inspect.Signature) -> dict[str, Any]:
    """Return the annotations of a signature, in the form of those of a function."""
    found = {name: each.annotation for name, each in signature.parameters.items()}
    found["return"] = signature.return_annotation
    return {name: hint for name, hint in found.items() if hint is not REQUIRED}


def _resolve(
    place: str,
    function: Callable[..., object],
    written: Mapping[str, object],
    wanted: set[str],
    namespace: Mapping[str, object] | None,
) -> dict[str, Any]:
    """Evaluate the annotations that matter: a hidden one may name what exists for checkers only."""
    raw = {name: hint for name, hint in written.items() if name in wanted or name == "return"}
    if not any(map(_may_hold_source, raw.values())):
        return raw
    # `get_type_hints` evaluates all annotations of what it is given. This carries only those that
    # matter: that of a hidden parameter may name what only checkers import.
    carrier: object = SimpleNamespace(
        __annotations__=raw, __type_params__=getattr(function, "__type_params__", ())
    )
    try:
        return typing.get_type_hints(
            carrier,
            globalns=_names_around(function, written),
            localns=dict(namespace) if namespace else None,
            include_extras=True,
        )
    except NameError:
        raise
    except Exception as error:
        written_as = {name: hint for name, hint in raw.items() if isinstance(hint, str)}
        broken = next((n for n, hint in written_as.items() if str(hint) in str(error)), None)
        which = "an annotation" if broken is None else f"the annotation of `{broken}`"
        raise ToolDefinitionError(
            f"{place}: {which} cannot be evaluated ({reason_of(error)}). Write a type."
        ) from error


def _names_around(function: Callable[..., object], written: Mapping[str, object]) -> dict[str, Any]:
    """List the names of the function's module, and ours where it knows them for checkers only."""
    plain: object = inspect.unwrap(function)
    around: dict[str, object] = getattr(plain, "__globals__", {})  # a function of C has none
    if not any("ToolContext" in str(each) for each in written.values()):
        return dict(around)
    from .._context.context import ToolContext

    return {"ToolContext": ToolContext, **around}


# `list["Node"]` keeps the string inside; a plain class cannot.
_MAY_NEST_STRINGS = {
    type(list[int]),
    type(int | None),
    type(typing.List[int]),  # noqa: UP006
    type(Union[int, None]),  # noqa: UP007
    type(Annotated[int, 0]),
    ForwardRef,
}


def _may_hold_source(hint: object) -> bool:
    return isinstance(hint, str) or hint.__class__ in _MAY_NEST_STRINGS


def is_context(annotation: object) -> bool:
    """Whether a parameter takes a `ToolContext`."""
    return _has_context(parts_of(annotation))


def _has_context(parts: Parts) -> bool:
    # Whoever names the class has loaded it; most tools do without. Another thread may be about to.
    module = sys.modules.get(f"{__name__.partition('.')[0]}._context.context")
    context = getattr(module, "ToolContext", None)
    return context is not None and any(part is context for part in parts.types)


def _is_skipped(parts: Parts) -> bool:
    return any(map(_is_skip, parts.marks))


def _is_skip(mark: object) -> bool:
    return isinstance(mark, Skip) or mark is Skip


def holds_skip(annotation: Any) -> bool:
    """Whether there is a `Skip()` anywhere in an annotation, also inside a container.

    >>> holds_skip(list[Annotated[int, Skip()] | None])
    True
    """
    waiting, aliases = [annotation], set[Any]()
    while waiting:
        part = waiting.pop()
        if _is_skip(part):
            return True
        if isinstance(part, list | tuple):  # the marks of a field, or what a function takes
            waiting += part
        elif args := get_args(part):
            waiting += [*args, get_origin(part)]
        elif isinstance(part, ALIASES) and part not in aliases:
            aliases.add(part)
            waiting.append(part.__value__)
    return False


def text_in(parts: Parts) -> str | None:
    """Return what an annotation says in words: as a text, in a `Doc`, or in a `Field`."""
    said = (
        mark if isinstance(mark, str) else getattr(mark, _WORDS.get(type(mark).__name__, ""), None)
        for mark in parts.marks
    )
    return next((each for each in said if isinstance(each, str)), None)


_WORDS: Final = {"Doc": "documentation", "FieldInfo": "description"}


def texts_in(owner: type[object]) -> dict[str, str]:
    """Return what the annotations in the body of a class say in words, by the names of fields."""
    scope = _Scope(vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {})
    said = {name: text_in(parts_of(hint, scope)) for name, hint in annotations_of(owner).items()}
    return {name: text for name, text in said.items() if text is not None}


def own_docstring(owner: type[object]) -> str:
    """Return the docstring of a class that its author wrote, not one of a base or a dataclass."""
    own = vars(owner).get("__doc__") or ""
    makes = is_dataclass(owner) or hasattr(owner, "_fields")
    is_made = makes and own.startswith(f"{owner.__name__}(")
    return "" if is_made else inspect.cleandoc(own)


def function_name(function: object) -> str:
    """Name whatever can be called, for messages and records."""
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name


def reason_of(error: Exception) -> str:
    """Return the first line of an error's text, for a message with advice of its own."""
    first = str(error).split("\n", 1)[0]
    return cut(first.partition(". Set `arbitrary_types_allowed")[0].rstrip("."), 200)


def type_name(annotation: Any) -> str:
    """Show a type in a message: a class by its name, anything else as it is written."""
    if get_origin(annotation) is Annotated:  # the constraints are told where one is broken
        annotation = get_args(annotation)[0]
    plain = isinstance(annotation, type) and get_origin(annotation) is None
    return annotation.__name__ if plain else shorten(_Shown(annotation), 120)


class _Shown:
    """Show an annotation without the module that every reader knows."""

    def __init__(self, annotation: object) -> None:
        self.annotation = annotation

    def __repr__(self) -> str:
        return repr(self.annotation).replace("typing.", "").replace("collections.abc.", "")


def parsed(source: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    """Parse Python source, in one thread at a time.

    Python 3.11 counts how deep a tree is for all threads together, and fails where they meet.
    """
    with ONCE:
        return ast.parse(source, mode=mode)


_PLAIN = frozenset({str, int, float, bool, NoneType})
UNIONS: Final = (Union, UnionType)
_CONTAINERS = frozenset({list, dict, tuple, *UNIONS})
_JSON_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_SURELY_WHOLE: Final = 2**53
"""Integers below it are the same for every reader of JSON."""
_UNSORTED: Final = ("default", "properties")
"""Parameters whose schema pydantic leaves unsorted, since it takes their name for a keyword."""


# `list[str]`, `dict[str, int] | None` and `Literal["a"]` are plain; `datetime`, a model and a class
# of the author's are not: what validates these may run other code.
def is_plain(annotation: Any) -> bool:
    """Whether a type is made of texts, numbers, booleans, None, literals and plain containers.

    Such a type always has a core schema and a JSON schema, so neither has to be tried out.
    """
    origin = get_origin(annotation)
    if origin is None:
        # By identity: what is not a type at all, such as `[int]`, need not have a hash.
        return annotation is None or annotation is ... or any(annotation is t for t in _PLAIN)
    if origin is Annotated:
        from pydantic.fields import FieldInfo

        # What its author leaves out of what is written has to be written all the same, what is read
        # at a path alone has to be read by its name as well, and what is written under another name
        # than it is read by is looked up elsewhere.
        return is_plain(annotation.__origin__) and all(
            type(mark) is FieldInfo
            and not (mark.exclude or getattr(mark, "exclude_if", None))
            and isinstance(mark.validation_alias, str | None)
            and mark.validation_alias == mark.serialization_alias
            for mark in annotation.__metadata__
        )
    if origin is Literal:
        return all(type(value) in _PLAIN for value in get_args(annotation))
    return origin in _CONTAINERS and all(is_plain(part) for part in get_args(annotation))


def is_shallow(annotation: Any) -> bool:
    """Whether a value of a type is fixed, or a list or dict of what is fixed."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_shallow(annotation.__origin__)
    if origin in UNIONS:
        return all(map(is_shallow, get_args(annotation)))
    if origin in (list, dict):
        return all(map(is_fixed, get_args(annotation)))
    return is_fixed(annotation)


def is_fixed(annotation: Any) -> bool:
    """Whether no value of a type can be changed in place: texts, numbers, and tuples of such."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_fixed(annotation.__origin__)
    if origin in (tuple, *UNIONS):
        return all(is_fixed(part) for part in get_args(annotation))
    return origin not in _CONTAINERS and is_plain(annotation)


def can_carry(model: type[object], name: str) -> bool:
    """Whether a field of a model derived from this one may be called so."""
    return not name.startswith("_") and not hasattr(model, name)


def is_model(input_type: object) -> TypeGuard[type[BaseModel]]:
    """Whether a type is a pydantic model."""
    return isinstance(input_type, type) and issubclass(input_type, BaseModel)


def is_object_type(input_type: Any) -> bool:
    """Whether the JSON of a type is an object: of a model, a dataclass or a `TypedDict`."""
    plain: Any = type  # as a class it would narrow to a class of an unknown type
    is_class = isinstance(input_type, plain)
    return is_class and (
        is_model(input_type) or is_dataclass(input_type) or is_typeddict(input_type)
    )


def plain_schema(parameters: tuple[Parameter, ...]) -> JsonSchema | None:
    """Write the schema of an object with these fields; None if that takes pydantic.

    It does where a default may not fit its type, where a field cannot have the parameter's name,
    and where that name makes pydantic write in another order.
    """
    properties: JsonSchema = {}
    for parameter in parameters:
        name, written = parameter.name, _schema_of(parameter.annotation)
        if written is None or name in _UNSORTED or not can_carry(BaseModel, name):
            return None
        about, default = parameter.description, parameter.default
        if default is not REQUIRED:
            if not _fits(default, parameter.annotation):
                return None
            written["default"] = default
        if about is not None:
            written["description"] = about
        properties[name] = dict(sorted(written.items()))
    required = [each.name for each in parameters if each.default is REQUIRED]
    # In pydantic's order of keys, so that the digest of a tool is the same whoever wrote its
    # schema.
    return {
        "additionalProperties": False,
        "properties": properties,
        **({"required": required} if required else {}),
        "type": "object",
    }


def _schema_of(annotation: Any) -> JsonSchema | None:
    origin = get_origin(annotation)
    if origin is None:
        # By identity: what is not a type at all need not have a hash.
        name = next((name for kind, name in _JSON_NAMES.items() if kind is annotation), None)
        return None if name is None else {"type": name}
    parts = get_args(annotation)
    if origin is list and len(parts) == 1:
        items = _schema_of(parts[0])
        return None if items is None else {"items": items, "type": "array"}
    if origin is dict and len(parts) == 2 and parts[0] is str:
        values = _schema_of(parts[1])
        return None if values is None else {"additionalProperties": values, "type": "object"}
    if origin is Literal and parts and all(type(each) is str for each in parts):
        told = {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        return {**told, "type": "string"}
    return _choice_of(parts) if origin in UNIONS else None


# `str | None` becomes `{"anyOf": [{"type": "string"}, {"type": "null"}]}`, to the letter what
# pydantic writes: the digest of a tool must not depend on who wrote its schema.
def _choice_of(parts: tuple[object, ...]) -> JsonSchema | None:
    choices = [_schema_of(each) for each in parts if each is not NoneType]
    if any(each is None or each in choices[:at] for at, each in enumerate(choices)):
        return None  # of two that are the same on the wire, as `list` and `List` are, one is told
    if NoneType in parts:  # pydantic has it last, wherever it stands
        choices.append({"type": "null"})
    return {"anyOf": choices}


def is_surely_json(value: Any) -> bool:
    """Whether a value is in JSON what it is in Python, for every reader, as most defaults are."""
    kind: object = value.__class__
    if kind is str:
        return bool(value.isascii())
    if kind is int:
        return bool(abs(value) < _SURELY_WHOLE)
    return value is None or kind is bool or (kind is float and isfinite(value))


def _fits(default: object, annotation: object) -> bool:
    """Whether a default surely is of a type, and JSON."""
    if default is None:
        return True
    if not is_surely_json(default):
        return False
    kind: object = default.__class__
    origin = get_origin(annotation)
    if origin is None:
        return annotation is kind
    parts = get_args(annotation)
    if origin is Literal:
        return default in parts
    return origin in UNIONS and any(each is kind for each in parts)
