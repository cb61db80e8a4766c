"""`Answer`: a final answer of a type, and how the model is asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, cast

from .._call.call_state import DecodedCall
from .._call.spec import AnySpec, ToolSpec
from .._schema.arguments import NO_ARGUMENTS, Arguments
from .._schema.definition import ToolDef, ToolOptions, define
from .._schema.output import Output
from .._schema.signature import (
    REQUIRED,
    ModelName,
    Parameter,
    is_model,
    is_object_type,
    reason_of,
    type_name,
)
from .._text.immutable import Settled
from .._text.json import is_object, shorten
from .._text.names import is_sendable
from .._transcript.assistant import ToolMetadata
from ..errors import FieldIssue, InvalidArgumentsError, MisuseError, ToolDefinitionError

if TYPE_CHECKING:
    from typing_extensions import TypeForm

A = TypeVar("A")

ACCEPTED = "accepted"
"""What the model reads of a call that gave the answer."""

_FIELD = "answer"
_DESCRIPTION = "Give the final answer."


class Answer(Settled, Generic[A]):
    """Ask for a final answer of a type, by a tool or by the provider's response format.

    A type whose JSON is not an object is put into one field, `answer`.

    Args:
        type: Any type that pydantic knows, such as `Invoice | Refund` or `list[Invoice]`.
        by: `tool`: the model answers by calling a tool, which works with every provider, beside
            other tools. `format`: the text of the model is the answer, and the provider makes it
            fit the schema.
        name: The name of the tool, or of the format.
        description: What the model is told about the answer; by default the docstring of a model.

    Raises:
        ToolDefinitionError: The type has no JSON schema, or no tool may have the name.
        MisuseError: `by` is neither of the two.

    Example:
        >>> from typing import Literal
        >>> Answer(Literal["yes", "no"], by="format", name="verdict")
        Answer(Literal['yes', 'no'], by='format', name='verdict')
    """

    spec: ToolSpec[Any, Any]
    """The tool that is called with the answer."""
    type: TypeForm[A]
    by: Literal["tool", "format"]
    name: str
    _way: ClassVar[str] = "it stays for good. Make another one, as in `Answer(int, name=...)`."

    def __init__(
        self,
        type: TypeForm[A],  # noqa: A002 - the field's own word
        /,
        *,
        by: Literal["tool", "format"] = "tool",
        name: str = "answer",
        description: str | None = None,
    ) -> None:
        if by not in ("tool", "format"):
            raise MisuseError(
                f"An answer comes by='tool' or by='format', not by={shorten(by)}. Take the first "
                "if tools are on offer as well."
            )
        self._description = description
        # A tool in all but name: what a model sends as the answer is decoded, coerced and refused
        # in the same way as the arguments of a call.
        spec = _spec_of(type, name, description)
        vars(self).update(type=type, by=by, name=name, spec=spec)

    @property
    def definition(self) -> ToolDef:
        """Name, description and schema of the answer, as a tool has them."""
        return self.spec.definition

    def value_of(self, input: object) -> A:
        """Take the answer out of the field that it was put into, if it was."""
        return cast("A", getattr(input, _FIELD) if _is_wrapped(self.type) else input)

    def partial_of(self, data: object) -> Any:
        """Return the answer so far, as plain data."""
        if not _is_wrapped(self.type):
            return data
        return data.get(_FIELD) if is_object(data) else None

    def read_text(self, text: str, *, redact: bool) -> tuple[A | None, tuple[FieldIssue, ...]]:
        """Read an answer that is a text; if it is not one, say what is wrong with it.

        Raises:
            ToolInputError: A validator of the type broke.
        """
        if text.strip() in NO_ARGUMENTS:
            # For a tool this is a call without arguments; a text like that is no answer at all.
            issue = FieldIssue("", "There is no answer: give a JSON object", repr(text))
            return None, (issue,)
        metadata = ToolMetadata(id=self.name, name=self.name, arguments=text)
        try:
            call = DecodedCall.decode(self.spec.free_selector, metadata, redact=redact).call
        except InvalidArgumentsError as error:
            return None, error.fields
        return self.value_of(call.input), ()

    def __reduce__(self) -> tuple[object, ...]:
        return _made, (self.type, self.by, self.name, self._description)

    def __repr__(self) -> str:
        return f"Answer({type_name(self.type)}, by={self.by!r}, name={self.name!r})"


def answer_of(given: Any) -> Answer[Any]:
    """Return an `Answer` as it is, and make one, by a tool, of a type."""
    kind: Any = Answer  # as a class it would narrow to an answer of an unknown type
    return cast("Answer[Any]", given if isinstance(given, kind) else kind(given))


def _made(kind: Any, by: Any, name: str, description: str | None) -> Answer[Any]:
    return Answer(kind, by=by, name=name, description=description)


def _is_wrapped(kind: object) -> bool:
    # `list[Invoice]` goes out as `{"answer": [...]}`, since providers want an object at the root. A
    # model, a dataclass and a `TypedDict` are objects already; a `RootModel` is only what its root
    # is.
    is_root = is_model(kind) and kind.__pydantic_root_model__
    return is_root or not is_object_type(kind)


def _spec_of(kind: Any, name: Any, description: str | None) -> AnySpec:
    from .._schema.input_model import build_input_model

    place = f"Answer `{type_name(kind)}`"
    try:
        if _is_wrapped(kind):
            model: Any = build_input_model(
                ModelName("AnswerInput", __name__, "Answer"),
                (Parameter(_FIELD, kind, REQUIRED, None),),
                {_FIELD: _FIELD},
                strict=False,
            )
        else:
            model = kind
        arguments = Arguments(model)
    except Exception as error:
        raise _no_schema(place, error) from error
    # From the class itself: `kind.__doc__` would find the docstring of a base, such as that of
    # `BaseModel`, and the model would be told about pydantic.
    own = (kind.__dict__.get("__doc__") if isinstance(kind, type) else None) or _DESCRIPTION
    told = ToolOptions(name=name, description=own if description is None else description)
    try:
        definition = define(place, told, arguments=arguments, output=Output(str))
    except ToolDefinitionError as error:
        if error.__cause__ is None or not _is_wrapped(kind):
            raise
        raise _no_schema(place, error) from error
    if not is_sendable(name):
        raise ToolDefinitionError(
            f"{place}: the name {shorten(name)} holds a control. Give it another, as in "
            "`name='answer'`."
        )
    return ToolSpec(
        definition=definition,
        origin=kind,
        arguments=arguments,
        output=Output(str),
        invocation=None,
        named=("Answer", __name__, "Answer"),
    )


def _no_schema(place: str, error: Exception) -> ToolDefinitionError:
    # The error is about a parameter, the field that the type is put into, which no user knows: its
    # cause is what is wrong with the type.
    cause = error.__cause__ if isinstance(error, ToolDefinitionError) else error
    reason = reason_of(cause if isinstance(cause, Exception) else error)
    return ToolDefinitionError(f"{place} has no schema ({reason}). Use a type that pydantic knows.")
