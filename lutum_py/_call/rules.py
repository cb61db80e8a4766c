"""Rules: hooks that are declared beside the tool, so that nobody can forget them.

They review a call whenever it is decided about, after execution hooks and before gates: the tool's
own first, then those of the groups around it, from the inside out. The approval is asked for right
after them. A call of a tool with a rule or an approval starts only once both have let it pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from .._schema.signature import (
    REQUIRED,
    VARIADIC,
    function_name,
    has_signature,
    hint_of,
    is_context,
    plain_hint,
    signature_of,
    type_name,
)
from .._text.escaping import meant_by, names_for_message
from .._text.json import is_mapping, shorten
from ..errors import ToolDefinitionError
from .deciding import OF_ARGUMENTS, Review, Reviewer, with_arguments
from .decisions import Complete, Reject, RunNormally
from .drivers import HookGenerator
from .spec import FnSpec

if TYPE_CHECKING:
    from .call_state import DecodedCall
    from .spec import AnySpec

_OF_INPUT = "None, another input, Complete(output) or Reject(reason)"


class CallRule:
    """The rule of a group or class: a function of the call, as `apply_hooks` takes one.

    Raises:
        ToolDefinitionError: It is not a function.
    """

    def __init__(self, function: Any) -> None:
        if not callable(function) or isinstance(function, type):
            raise ToolDefinitionError(
                f"`rule=` of a toolset takes a function of a call, not {shorten(function)}. It "
                "gives the call, or what `call.reject(reason)` and the like give."
            )
        self.function = function
        self.name = function_name(function)

    def review(self, review: Review) -> HookGenerator[None]:
        """Let it review one call."""
        return review.ask_function(self.function)


class ArgsRule:
    """The rule of one tool: a function of those of its parameters that it names, or of its input.

    Raises:
        ToolDefinitionError: It is not a function, or takes a parameter that the tool lacks.
    """

    def __init__(self, spec: AnySpec, function: Any) -> None:
        self._place = f"Tool `{spec.definition.name}`: `rule="
        if not has_signature(function) or isinstance(function, type):
            raise ToolDefinitionError(f"{self._place}{shorten(function)}` is not a function.")
        self.function = function
        self.name = function_name(function)
        self._place += f"{self.name}`"
        self._invocation: Any = spec.invocation if isinstance(spec, FnSpec) else None
        self._spec = spec
        self._contexts: list[str] = []
        self._positional: list[str] = []
        # What the rule calls parameters: it may know one by its name on the wire.
        self._parameters: dict[str, str] = {}
        given = signature_of(function).parameters
        if self._invocation is None:
            self._check_input(spec, [*given])
            return
        for name, parameter in given.items():
            if stars := VARIADIC.get(parameter.kind):
                raise ToolDefinitionError(
                    f"{self._place} takes `{stars}{name}`. Name each parameter."
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(name)
            self._check(name, self._invocation.annotations, self._invocation.context)

    def _check(self, name: str, known: Mapping[str, Any], context: str | None) -> None:
        hint = hint_of(self.function, name)
        if is_context(hint) or name == context:
            self._contexts.append(name)
        elif (parameter := self._spec.parameter_named(name)) is None:
            raise ToolDefinitionError(
                f"{self._place} takes `{name}`, which the model does not fill in."
                f"{meant_by(name, known)} There are {names_for_message(known)}."
            )
        else:
            self._parameters[name] = parameter
            self._check_hint(name, hint, known[parameter])

    def _check_input(self, spec: AnySpec, names: list[str]) -> None:
        try:
            signature_of(self.function).bind(None)
        except TypeError:
            raise ToolDefinitionError(
                f"{self._place} takes {names_for_message(names)}, and is called with the input "
                "alone. Write a function of `(input)`."
            ) from None
        hint = hint_of(self.function, names[0])
        if hint is REQUIRED and spec.arguments.keys_of(names[0]):
            raise ToolDefinitionError(
                f"{self._place} takes `{names[0]}`, which is a field of the input, and is called "
                f"with the input as a whole. Write a function of `(input)`, and look at "
                f"`input.{names[0]}`; or annotate the parameter with the type of the input."
            )
        if spec.arguments.type != dict[str, Any]:  # a schema may be written as any `TypedDict`
            self._check_hint(names[0], hint, spec.arguments.type)

    def _check_hint(self, name: str, hint: Any, wanted: Any) -> None:
        # Only the same type fits: whether a wider one would do is for a type checker to say.
        wanted = plain_hint(wanted)
        if hint is REQUIRED or hint in (object, Any) or _is_same(hint, wanted):
            return
        raise ToolDefinitionError(
            f"{self._place} takes `{name}: {type_name(hint)}`, and the tool has "
            f"`{name}: {type_name(wanted)}`. Write the same, `object`, or no annotation."
        )

    def review(self, review: Review) -> HookGenerator[None]:
        """Let it review one call, as an execution hook does."""
        call = review.call
        shown: Any = call.input_for_hook()
        # Called twice: first the function, which may be async, then what is made of its answer.
        # Both may raise, and both are then errors of this rule, under its name.
        asked = Reviewer(self.name, call)
        said: Any = yield from asked.ask(self._answer, call, shown)
        said = yield from asked.ask(self._decision, call, shown, said)
        wanted = _OF_INPUT if self._invocation is None else OF_ARGUMENTS
        review.apply(self.name, said, shown, None, wanted)
        review.take_changes(self.name)

    def _answer(self, call: DecodedCall, shown: Any) -> Any:
        if self._invocation is None:
            return self.function(shown)
        given = self._invocation.arguments_of(shown)
        values = {name: given[parameter] for name, parameter in self._parameters.items()}
        if self._contexts:
            from .._context.context import ToolContext

            # Nobody runs the tool yet, so there is nobody to report to.
            values |= dict.fromkeys(self._contexts, ToolContext.noop(call.call))
        by_place = [values.pop(name) for name in self._positional]
        return self.function(*by_place, **values)

    def _decision(self, call: DecodedCall, shown: Any, said: Any) -> Any:
        if said is None:
            return RunNormally(shown)
        if self._invocation is None:
            is_decision = said.__class__ in (Complete, Reject, RunNormally)
            return said if is_decision else RunNormally(said)
        if is_mapping(said):
            return with_arguments(call.spec, call.name, shown, said)
        return said


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether annotations say the same, as `Optional[List[int]]` and `list[int] | None`."""
    if one == other:
        return True
    heads = [get_origin(each) or each for each in (one, other)]
    head, head_of_other = (Union if each is UnionType else each for each in heads)
    parts, parts_of_other = get_args(one), get_args(other)
    return (
        head == head_of_other
        and len(parts) == len(parts_of_other)
        and all(map(_is_same, parts, parts_of_other))
    )
