"""Run a tool's function on a decoded input, when the user asks for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ._context import ToolContext
from ._signature import Signature
from ._suggestion import names_for_message

__all__ = ["Invocation"]


class Invocation:
    """Know how to call one function: which argument goes where, and what the caller must add.

    Args:
        function: The function as the author wrote it.
        signature: What was read of it.
        fields: The field of the input for each visible parameter; None where the input as a whole
            is the one visible argument.
    """

    __slots__ = (
        "_arguments",
        "_as_is",
        "_required",
        "context",
        "function",
        "hidden",
        "is_async",
        "positional",
        "whole",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        fields: Mapping[str, str] | None,
    ) -> None:
        self.function = function
        self.is_async = signature.is_async
        self.context = signature.context
        self.hidden = signature.hidden
        self.positional = signature.positional
        self.whole = signature.parameters[0].name if fields is None else None
        self._arguments = tuple((fields or {}).items())
        self._required = frozenset(n for n, h in signature.hidden.items() if h.required)
        # Nothing renamed, hidden or positional: the fields are the keyword arguments.
        self._as_is = (
            fields is not None
            and not signature.positional
            and not signature.hidden
            and signature.context is None
            and all(name == field for name, field in fields.items())
        )

    def start(self, call: Any, input: Any, skipped: dict[str, Any]) -> Any:
        """Call the function: gives its output, or an awaitable of it where it is async.

        Raises:
            TypeError: A hidden parameter is missing, or one was passed that there is none of.
        """
        if self._as_is and not skipped:
            return self.function(**input.__dict__)
        positional, keywords = self.bind(call, input, skipped)
        return self.function(*positional, **keywords)

    def bind(
        self, call: Any, input: Any, skipped: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Lay out the arguments: by position where the function wants that, else by name."""
        keywords = dict(skipped)
        if skipped.keys() - self.hidden.keys() - {self.context}:
            self._refuse_unknown(call, skipped)
        if self.whole is not None:
            keywords[self.whole] = input
        else:
            for name, field in self._arguments:
                keywords[name] = getattr(input, field)
        if self.context is not None and keywords.get(self.context) is None:
            keywords[self.context] = ToolContext.noop(call)
        if missing := self._required - keywords.keys():
            listed = ", ".join(f"{name}=..." for name in sorted(missing))
            raise TypeError(
                f"Tool `{call.name}` (call {call.id!r}) needs {names_for_message(sorted(missing))}, "
                f"which the model does not see. Pass it where you run the call: "
                f"`call.call({listed})`."
            )
        positional = [keywords.pop(name) for name in self.positional if name in keywords]
        return positional, keywords

    def _refuse_unknown(self, call: Any, skipped: dict[str, Any]) -> None:
        unknown = sorted(skipped.keys() - self.hidden.keys() - {self.context})
        hidden = names_for_message([*self.hidden, *filter(None, [self.context])])
        visible = [name for name, _ in self._arguments if name in unknown]
        why = "is filled in by the model" if visible else "is no parameter that is hidden from it"
        raise TypeError(
            f"Tool `{call.name}` (call {call.id!r}): `{unknown[0]}` {why}. What can be passed here: "
            f"{hidden}."
        )

    async def run(self, call: Any, input: Any, skipped: dict[str, Any]) -> Any:
        """Run the function to its end: an async one here, a sync one in a worker thread."""
        if self.is_async:
            return await self.start(call, input, skipped)
        import asyncio

        output = await asyncio.to_thread(self.start, call, input, skipped)
        return await output if inspect.isawaitable(output) else output

    def run_sync(self, call: Any, input: Any, skipped: dict[str, Any]) -> Any:
        """Run a sync function here.

        Raises:
            TypeError: The function is async.
        """
        if not self.is_async:
            output = self.start(call, input, skipped)
            if not inspect.iscoroutine(output):
                return output
            output.close()
        raise TypeError(
            f"Tool `{call.name}` (call {call.id!r}) is async: use `await call.call()` instead of "
            "`call.call_sync()`, or `asyncio.run(call.call())` outside of a loop."
        )
