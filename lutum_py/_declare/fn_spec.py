"""What a function says about the tool that it becomes: input, output, and how it is run."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from .._call.reply import without_replies
from .._call.spec import FnSpec, ToolSpec
from .._schema.arguments import Arguments, PlainArguments
from .._schema.invocation import Invocation
from .._schema.options import ToolOptions
from .._schema.output import Output
from .._schema.plain_types import is_plain, plain_schema
from .._schema.signature import (
    REQUIRED,
    Signature,
    own_docstring,
    read_signature,
    reason_of,
    type_name,
)
from ..errors import ToolDefinitionError
from .define import define

if TYPE_CHECKING:
    from .._schema.input_model import FnInput


def fn_spec(tool: Any, frame: FrameType | None) -> ToolSpec[Any, Any]:
    """Make the specification of a decorated function.

    Args:
        tool: What the decorator made: it wraps the function, and has the decorator's arguments.
        frame: Where it was decorated, for annotations that name what is local there.

    Raises:
        ToolDefinitionError: The function cannot become a tool.
        NameError: An annotation names what is not defined yet.
    """
    function, input_type = tool.__wrapped__, tool._input_type
    options: ToolOptions = tool._options
    names = _local_names(tool, frame)
    signature = read_signature(function, tool._docstring, skip=options.skip, namespace=names)
    qualname: str = tool.__qualname__
    place = f"Tool function `{qualname}`"
    if input_type is not None:
        _check_input(place, signature, input_type)
    # `web_search` becomes `WebSearchInput`, and its calls `WebSearchInputCall`.
    words = re.findall(r"[^\W_]+", function.__name__)
    input_name = "".join(word[:1].upper() + word[1:] for word in words) + "Input"
    arguments, fields = _arguments(tool, input_name, signature, options.strict)
    if fields is None:
        input_name = arguments.type.__name__
        # The class is described where it is: for the tool, or else for its input.
        about = own_docstring(arguments.type)
        if tool._is_silent:
            options = replace(options, description=about)
        else:
            arguments.about = about
    declared = without_replies(place, signature.output)
    output = Output(None if declared is REQUIRED or declared is Any else declared)
    make: Any = FnSpec if input_type is None else ToolSpec
    made: ToolSpec[Any, Any] = make(
        definition=define(place, options, arguments=arguments, output=output),
        origin=tool,
        arguments=arguments,
        output=output,
        invocation=Invocation(function, signature, fields),
        named=(input_name, function.__module__, qualname),
    )
    return made


def _arguments(
    tool: Any, name: str, signature: Signature, strict: bool
) -> tuple[Arguments, dict[str, str] | None]:
    """Return what decodes the input, and each parameter's field; None if one is the input."""
    parameters = signature.parameters

    def model() -> type[FnInput]:
        from .._schema.input_model import build_input_model

        return build_input_model(
            name,
            parameters,
            fields,
            module=tool.__module__,
            qualname=f"{tool.__qualname__}.Input",
            strict=strict,
        )

    # Plain types, such as str and list[int], are described and decoded without a pydantic model,
    # which is then made only if somebody asks for `Input`.
    schema = plain_schema(parameters)
    if schema is not None:
        fields = {parameter.name: parameter.name for parameter in parameters}
        return PlainArguments(schema, model), fields
    # Making the first pydantic model costs as much as importing pydantic.
    from pydantic.fields import FieldInfo

    from .._schema.input_model import field_names, sole_input

    if sole_input(parameters) is not None:
        return _sole_argument(f"Tool function `{tool.__qualname__}`", signature, strict), None
    fields = field_names(parameters)
    plain = all(
        is_plain(Annotated[each.annotation, each.default])
        if isinstance(each.default, FieldInfo)
        else is_plain(each.annotation)
        for each in parameters
    )
    return Arguments(model(), strict=strict, is_plain=plain), fields


def _check_input(place: str, signature: Signature, input_type: Any) -> None:
    """Make sure that the one visible parameter is what `input=` says.

    Raises:
        ToolDefinitionError: Its type is another, or there are more parameters.
    """
    said = f"{place}: `input={type_name(input_type)}`"
    if not signature.parameters:
        raise ToolDefinitionError(
            f"{said} names the type of the input, but no parameter is visible to the model. Give "
            "one that type."
        )
    for parameter in signature.parameters:
        annotation = parameter.annotation
        # `Annotated[SearchArgs, Field(...)]` is `SearchArgs` to whoever wrote `input=SearchArgs`.
        plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        if plain != input_type:
            raise ToolDefinitionError(
                f"{said} is the whole input, but parameter `{parameter.name}` of type "
                f"`{type_name(plain)}` is visible to the model as well. Hide it with "
                f"`skip=({parameter.name!r},)`, or leave `input=` out."
            )
    from .._schema.input_model import sole_input

    if sole_input(signature.parameters) is None:
        raise ToolDefinitionError(
            f"{said} is not the whole input of the function. Let one parameter, without a default, "
            "have that type: a pydantic model, a dataclass or a `TypedDict`."
        )


def _sole_argument(place: str, signature: Signature, strict: bool) -> Arguments:
    parameter = signature.parameters[0]
    try:
        return Arguments(parameter.annotation, strict=strict)
    except NameError:
        raise
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: parameter `{parameter.name}` of type `{type_name(parameter.annotation)}` "
            f"has no schema ({reason_of(error)}). Use types that pydantic knows."
        ) from error


def _local_names(tool: Any, frame: FrameType | None) -> dict[str, Any] | None:
    """Collect what annotations may name besides the module: the locals around the definition.

    Those of a class body count, and those of the function around it; those of a helper that only
    applies the decorator do not.
    """
    # A function written in `make.<locals>.Tools` may name what is local to `make` and to the body
    # of `Tools`; frames further out belong to whoever called.
    written: str = inspect.unwrap(tool).__qualname__
    names: dict[str, Any] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        if not written.startswith(f"{frame.f_code.co_qualname}."):
            break
        names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names or None
