"""One registered hook, and the lists in which a hook set keeps them.

Hooks review a call in the order of registration. Within one list that is its own order; when the
lists of several places are joined, a counter that all hook sets share says which hook came first.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._call.deciding import with_arguments
from .._call.decisions import RunNormally
from .._call.selector import AnySelector
from .._call.spec import FnSpec
from .._declare.hook_names import HOOK_KINDS, Phase
from .._declare.toolset_meta import ToolsetMeta
from .._schema.signature import function_name, has_signature, signature_of
from .._text.json import is_mapping, shorten
from .._text.suggestion import names_for_message
from .._transcript.assistant import ToolMetadata
from ..errors import HookError

if TYPE_CHECKING:
    from .._call.call import AnyToolCall
    from .._call.decisions import Block, Complete, Suspend
    from .._context.suspension import Decision
    from .._transcript.result import ToolResult
    from .._transcript.transcript import Transcript

_order = itertools.count()
_order_of = attrgetter("order")


class RegisteredHook:
    """One function in one phase, and when it was registered.

    Attributes:
        function: The function.
        name: Its qualified name, for messages and records.
        order: Its place among all that were registered.
        takes_decision: Whether it is a gate that also takes the decision.
        any_after: Whether any after-hook was ever registered: most programs have none, and need
            not look for those that a commit would miss.
    """

    any_after: ClassVar[bool] = False

    __slots__ = ("function", "name", "order", "takes_decision")

    def __init__(self, function: Any, phase: Phase) -> None:
        if not callable(function):
            raise HookError(
                f"{HOOK_KINDS[phase].named} is a function, not {shorten(function)}. Pass the "
                "function itself."
            )
        signature = _signature_of(function)
        if signature is not None:
            _check_parameters(function, signature, phase)
        if phase == "after":
            RegisteredHook.any_after = True
        self.function: Any = function
        self.name: str = function_name(function)
        # `next` of a counter is one step in C, which two threads cannot do half of each.
        self.order = next(_order)
        self.takes_decision = (
            phase == "gate" and signature is not None and _takes_decision(signature)
        )


def _signature_of(function: Any) -> inspect.Signature | None:
    """Read the parameters of a function; those of what it wraps only if it takes `*args`."""
    try:
        own = signature_of(function, follow_wrapped=False)
        if any(each.kind is each.VAR_POSITIONAL for each in own.parameters.values()):
            return signature_of(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return None
    return own


def _check_parameters(function: Any, signature: inspect.Signature, phase: Phase) -> None:
    """Refuse a function that cannot be called as hooks of its phase are.

    Raises:
        HookError: It takes other parameters; the text says which it would have to take.
    """
    wanted = HOOK_KINDS[phase].takes
    # A gate may take the decision as well.
    for given in (wanted, (*wanted, "decision")) if phase == "gate" else (wanted,):
        with suppress(TypeError):
            signature.bind(*given)
            return
    name = function_name(function)
    raise HookError(
        f"{HOOK_KINDS[phase].named} is called with ({', '.join(wanted)}), but `{name}` takes "
        f"{bare(signature)}. Give it these parameters.",
        hook=name,
    )


def bare(signature: inspect.Signature) -> str:
    """Write a signature without its annotations."""
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _takes_decision(signature: inspect.Signature) -> bool:
    """Whether a gate has a third parameter that is meant for the decision.

    One with a default is not, unless its name is `decision`: `lambda metadata, input, limit=limit:
    ...` is how a lambda keeps a value, and a decision in its place would do harm.
    """
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 3:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    third = positional[2]
    return third.default is third.empty or third.name == "decision"


class ArgsHook:
    """Call a hook of a function's own parameters as the pipeline calls any execution hook.

    Raises:
        HookError: The tool is not a function tool, or has a parameter that a hook cannot be given;
            or the hook takes other parameters.
    """

    def __init__(self, function: Any, selector: AnySelector) -> None:
        if not has_signature(function):
            raise HookError(
                f"An execution hook is a function, not {shorten(function)}. Pass the function "
                "itself."
            )
        self.function = function
        self.spec = selector.spec
        # The pipeline, and what it writes down, names a hook by its function: the user's, and not
        # this class.
        self.__qualname__ = function_name(function)
        self._names: dict[str, str] = {}
        self._check(selector)

    def _check(self, selector: AnySelector) -> None:
        invocation = self.spec.invocation
        if invocation is None or not isinstance(self.spec, FnSpec):
            raise HookError(
                f"Tool `{selector.name}` has no function with parameters of its own. Write "
                "`@hooks.on(selector)` above a function of `(metadata, input)`.",
                tool=selector.name,
            )
        if invocation.required:
            raise HookError(
                f"Tool `{selector.name}` takes {names_for_message(sorted(invocation.required))}, "
                "which nobody passes to a hook. Write `@hooks.on(selector)` above a function of "
                "`(metadata, input)`, or give it a default.",
                tool=selector.name,
            )
        # It may call a parameter by its name on the wire.
        for name in signature_of(self.function).parameters:
            parameter = self.spec.parameter_named(name)
            if parameter is not None and parameter not in (name, *invocation.positional):
                self._names[parameter] = name
        unfit = invocation.unfit(self.function, self._names)
        if unfit is not None:
            taken = signature_of(invocation.function)
            raise HookError(
                f"An execution hook of tool `{selector.name}` is called with the parameters of "
                f"its function, {bare(taken)}, but `{self.__qualname__}` takes "
                f"{bare(signature_of(self.function))}: {unfit}. Give it these parameters.",
                hook=self.__qualname__,
                tool=selector.name,
            )

    def __call__(self, metadata: ToolMetadata, input: Any) -> Any:
        """Call the hook; None leaves the input as it is, a mapping has the arguments to change."""
        invocation: Any = self.spec.invocation
        # The function may take a `ToolContext`, which knows its call. This one is of no plan, so a
        # hook cannot do anything to the call that it reviews.
        call = self.spec.call_type(metadata, input)
        keywords: dict[str, Any]
        positional, keywords = invocation.bind(call, input, {})
        named = {self._names.get(name, name): value for name, value in keywords.items()}
        answer: Any = self.function(*positional, **named)
        # Awaited only if there is something to await, so that a plain function can be asked from
        # sync code.
        if hasattr(answer, "__await__"):
            return self._awaited(answer, metadata, input)
        return self._decision(answer, metadata, input)

    async def _awaited(self, answer: Awaitable[Any], metadata: ToolMetadata, input: Any) -> Any:
        return self._decision(await answer, metadata, input)

    def _decision(self, answer: Any, metadata: ToolMetadata, input: Any) -> Any:
        if answer is None:
            return RunNormally(input)
        if not is_mapping(answer):
            return answer
        return with_arguments(self.spec, metadata.name, input, answer)


class CallGate:
    """Base of stock gates: they take the call and the decision by which it goes on, if any.

    Attributes:
        transcript: The conversation that the gate goes by, if it goes by one: a call of another
            conversation is refused.
    """

    transcript: Transcript | None = None

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError


class PhaseHooks:
    """The hooks of one place, a list for each phase.

    Attributes:
        changes: Another object with each change of any place: what was worked out under an older
            one is stale. It is not a counter, since two threads that add at once may count one.
    """

    changes: ClassVar[object] = object()

    __slots__ = ("_hooks",)

    def __init__(self) -> None:
        self._hooks: dict[Phase, list[RegisteredHook]] = {phase: [] for phase in HOOK_KINDS}

    def of(self, phase: Phase) -> list[RegisteredHook]:
        """Return the list of a phase."""
        return self._hooks[phase]

    def add(self, phase: Phase, hook: RegisteredHook) -> None:
        """Add a hook after those of its phase; of descriptions there is one at most."""
        hooks = self.of(phase)
        if phase == "description":
            hooks[:] = [hook]
        else:
            hooks.append(hook)
        PhaseHooks.changes = object()

    def all(self) -> Iterator[tuple[Phase, RegisteredHook]]:
        """Yield every hook with its phase."""
        for phase in HOOK_KINDS:
            for hook in self.of(phase):
                yield phase, hook

    def copy(self) -> PhaseHooks:
        """Return lists of their own with the same hooks."""
        made = PhaseHooks()
        made._hooks = {phase: [*hooks] for phase, hooks in self._hooks.items()}
        return made


NO_HOOKS: Final[list[RegisteredHook]] = []


def in_order(places: tuple[PhaseHooks, ...], phase: Phase) -> list[RegisteredHook]:
    """List the hooks of one phase, those first that were registered first."""
    filled = [hooks for place in places if (hooks := place.of(phase))]
    # The list itself, and no copy: nearly every tool has its hooks in one place.
    if len(filled) < 2:
        return filled[0] if filled else NO_HOOKS
    return sorted(itertools.chain(*filled), key=_order_of)


# `guard`, `guard#2`: a saved plan names the hooks that reviewed its calls, and another process has
# other function objects. The name alone would not tell two lambdas of one line apart.
def keyed(hooks: Iterable[RegisteredHook]) -> Iterator[tuple[str, RegisteredHook]]:
    """Yield each hook with a key that is the same in another process: its name, counted."""
    seen: dict[str, int] = {}
    for hook in hooks:
        count = seen[hook.name] = seen.get(hook.name, 0) + 1
        yield (hook.name if count == 1 else f"{hook.name}#{count}"), hook


def cannot_register(phase: Phase, given: object, toolset: Any) -> HookError:
    """Make the error for a decorator that got something else than a selector."""
    kind, has_groups = HOOK_KINDS[phase], phase in ("gate", "before", "after")
    first = next(iter(toolset), None)
    example = "tool" if first is None else ".".join(first.path)
    remedy = f"Name a tool, as in `{toolset.__name__}.{example}`"
    if isinstance(given, ToolsetMeta):
        if has_groups:
            remedy += f", or a toolset that {toolset.__name__} nests"
    elif callable(given):
        remedy = f"Write `@hooks.{kind.verb}(selector)`"
        if has_groups:
            remedy += f", or `@hooks.{kind.verb}()`,"
        remedy += " above the function"
    return HookError(f"{kind.named} cannot be registered for {shorten(given)}. {remedy}.")
