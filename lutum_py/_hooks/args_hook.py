"""An execution hook that is called with the parameters of the tool's own function."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from .._call.deciding import with_arguments
from .._call.decisions import RunNormally
from .._call.selector import AnySelector
from .._call.spec import FnSpec
from .._schema.signature import function_name, signature_of
from .._text.json import is_mapping, shorten
from .._text.suggestion import names_for_message
from .._transcript.assistant import ToolMetadata
from ..errors import HookError
from .registered_hook import bare


class ArgsHook:
    """Call a hook of a function's own parameters as the pipeline calls any execution hook.

    Raises:
        HookError: The tool is not a function tool, or has a parameter that a hook cannot be given;
            or the hook takes other parameters.
    """

    def __init__(self, function: Any, selector: AnySelector) -> None:
        if not callable(function):
            raise HookError(
                f"An execution hook is a function, not {shorten(function)}. Pass the function "
                "itself."
            )
        self.function = function
        self.spec = selector.spec
        # The pipeline, and what it writes down, names a hook by its function: the user's, and not
        # this class.
        self.__qualname__ = function_name(function)
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
        unfit = invocation.unfit(self.function)
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
        """Ask the hook; None leaves the input as it is, a mapping has the arguments to change."""
        invocation: Any = self.spec.invocation
        # The function may take a `ToolContext`, which knows its call. This one is of no plan, so a
        # hook cannot do anything to the call that it is asked about.
        call = self.spec.call_type(metadata, input)
        positional, keywords = invocation.bind(call, input, {})
        answer: Any = self.function(*positional, **keywords)
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
