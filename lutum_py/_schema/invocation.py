"""Run a tool's function on a decoded input, when the user asks for it.

Which argument goes where is worked out once, when the tool is declared. Most functions take their
fields as keyword arguments and nothing else; those are called straight.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import CoroutineType, MethodType
from typing import Any, ClassVar, NoReturn, Self

from .._text.escaping import names_for_message
from .._text.immutable import SetOnce
from ..errors import MisuseError
from .signature import REQUIRED, Parameter, Signature, read_others, signature_of


class Invocation(SetOnce):
    """Know how to call one function: which argument goes where, and what the caller must add.

    Args:
        function: The function as the author wrote it.
        signature: What was read of it.
        fields: The field of the input for each visible parameter; None if the input as a whole
            is the one visible argument.

    Attributes:
        fields: The field of each visible parameter; the parameter itself if it is the input.
        whole: The visible parameter that is the input; None if it is made of fields.
        required: The hidden parameters without a default.
        is_as_is: Whether the fields of the input are the keyword arguments of the function, and all
            of them, unless more is passed: such a function is called straight, also elsewhere.
    """

    __slots__ = (
        *("annotations", "context", "fields", "function", "hidden", "is_as_is", "is_async"),
        *("is_handler", "positional", "required", "signature", "whole"),
    )
    _way: ClassVar[str] = "it is read of a function. Declare the tool with another function."

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        fields: Mapping[str, str] | None,
        *,
        is_handler: bool = False,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.signature = signature
        self.is_handler = is_handler
        self.is_async: bool = signature.is_async
        self.context: str | None = signature.context
        self.hidden: Mapping[str, object] = signature.hidden
        self.positional: tuple[str, ...] = signature.positional
        self.annotations: dict[str, object] = {
            each.name: each.annotation for each in signature.parameters
        }
        self.fields: Mapping[str, str] = fields or {each: each for each in self.annotations}
        self.whole: str | None = signature.parameters[0].name if fields is None else None
        self.required: frozenset[str] = frozenset(
            n for n, default in signature.hidden.items() if default is REQUIRED
        )
        # Nothing renamed, hidden or positional: the fields are the keyword arguments. A subclass
        # calls the function in a way of its own, so nobody calls it straight.
        self.is_as_is: bool = (
            type(self) is Invocation
            and fields is not None
            and not signature.positional
            and not signature.hidden
            and signature.context is None
            and all(name == field for name, field in fields.items())
        )

    @classmethod
    def of_handler(cls, function: Callable[..., Any], own: Invocation | None) -> Self:
        """Know how to call a function that runs a tool instead of the tool's own.

        Args:
            function: A function of the tool's input, or of the parameters of its function.
            own: How the tool's own function is called; None if the input is passed whole, as
                the first argument.
        """
        # A handler `(input, db)` is called with what the tool's own function would be, by the
        # handler's own names, and `db` is asked of whoever runs the call.
        names = list(signature_of(function).parameters)
        if own is None:
            visible = names[:1] or ["input"]
            positional, fields = tuple(visible), None
        else:
            visible, positional = [*own.annotations], own.positional
            fields = own.own_fields
        hidden, context, is_async = read_others(function, [*visible, *names[: len(positional)]])
        if own is not None:
            if own.context is not None:
                hidden.pop(own.context, None)
                context = own.context
            hidden |= {name: own.hidden[name] for name in positional if name in own.hidden}
        signature = Signature(
            parameters=tuple(Parameter(name, Any, None, None) for name in visible),
            hidden=hidden,
            context=context,
            positional=positional,
            output=Any,
            is_async=is_async,
        )
        return cls(function, signature, fields, is_handler=True)

    @property
    def own_fields(self) -> Mapping[str, str] | None:
        """The field for each visible parameter; None if the input as a whole is the one."""
        return self.fields if self.whole is None else None

    def bound_to(self, instance: object) -> Invocation | None:
        """Say how to call the function as a method of an instance; None if it is not one."""
        own = self.signature
        name = next(iter(signature_of(self.function).parameters), None)
        if name not in own.hidden:
            return None
        signature = replace(
            own,
            hidden={other: hidden for other, hidden in own.hidden.items() if other != name},
            positional=tuple(other for other in own.positional if other != name),
        )
        return Invocation(MethodType(self.function, instance), signature, self.own_fields)

    def start(self, call: object, input: object, skipped: dict[str, object]) -> Any:
        """Call the function: gives its output, or an awaitable of it where it is async.

        Raises:
            MisuseError: A hidden parameter is missing, or one was passed that is unknown.
        """
        if self.is_as_is and not skipped:
            return self.function(**input.__dict__)
        positional, keywords = self.bind(call, input, skipped)
        return self.function(*positional, **keywords)

    def bind(
        self, call: Any, input: object, skipped: dict[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        """Lay out the arguments: by position where the function wants that, else by name."""
        if skipped or self.required:
            self.check(call, skipped)
        keywords = {**skipped, **self.arguments_of(input)}
        if self.context is not None and keywords.get(self.context) is None:
            from .._context.context import ToolContext

            keywords[self.context] = ToolContext.noop(call)
        # One that was left out must not let the next one slip into its place.
        # For `def move(x, y, /, *, db)` the call has `{"x": 1, "y": 2}`, and Python takes x and y
        # by place alone.
        positional = [
            keywords.pop(name) if name in keywords else self.hidden[name]
            for name in self.positional
        ]
        return positional, keywords

    def arguments_of(self, input: object) -> dict[str, object]:
        """Return what the model filled in, by the parameters of the function."""
        if self.whole is not None:
            return dict.fromkeys(self.annotations, input)
        return {name: getattr(input, field) for name, field in self.fields.items()}

    def unfit(
        self, function: Callable[..., object], names: Mapping[str, str] | None = None
    ) -> str | None:
        """Say why a function cannot be called with what a call passes; None if it can.

        Args:
            function: The function.
            names: What it calls parameters, where that is another name.
        """
        needed = [*self.annotations, *self.required, *filter(None, [self.context])]
        keywords = {(names or {}).get(name, name): name for name in needed}
        positional = [keywords.pop(name, name) for name in self.positional]
        try:
            signature_of(function).bind(*positional, **keywords)
        except TypeError as error:
            return str(error)
        return None

    def input_of(self, tool: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        """Make the fields of an input, or the whole one, of arguments as the function takes them.

        What the model does not fill in is passed over: a context, and hidden parameters by name.

        Raises:
            MisuseError: The function takes no such argument.
        """
        signature, visible = signature_of(self.function), [*self.annotations]
        kept = [signature.parameters[name] for name in visible]
        if self.context is not None:
            from .._context.context import ToolContext

            args = tuple(each for each in args if not isinstance(each, ToolContext))
        passed_over = {*self.hidden, self.context}
        sent = {name: value for name, value in kwargs.items() if name not in passed_over}
        try:
            given = signature.replace(parameters=kept).bind(*args, **sent).arguments
        except TypeError as error:
            raise MisuseError(
                f"These are not arguments of tool `{tool}`: {error}. What the model fills in: "
                f"{names_for_message(visible)}."
            ) from None
        if self.whole is not None:
            return given[self.whole]
        return {field: given[name] for name, field in self.fields.items() if name in given}

    def input_with(self, tool: str, input: object, changes: Mapping[str, object]) -> Any:
        """Make the same of an input in which some arguments are changed.

        Raises:
            MisuseError: The function takes no such argument, or the model does not fill it in.
        """
        if unknown := [name for name in changes if name not in self.annotations]:
            raise MisuseError(
                f"{names_for_message(map(str, unknown))} cannot be changed in a call of tool "
                f"`{tool}`. What the model fills in: {names_for_message(self.annotations)}."
            )
        arguments = {**self.arguments_of(input), **changes}
        if self.whole is not None:
            return arguments[self.whole]
        return {field: arguments[name] for name, field in self.fields.items()}

    def check(self, call: Any, skipped: dict[str, object]) -> None:
        """Make sure that what the model does not fill in is given, and nothing else.

        Raises:
            MisuseError: A hidden parameter is missing, or one was passed that is unknown.
        """
        if unknown := sorted(skipped.keys() - self.hidden.keys() - {self.context}):
            hidden = names_for_message([*self.hidden, *filter(None, [self.context])])
            why = "is not a parameter of the function"
            remedy = (
                " `execution.run(plan, skipped={...})` gives each of several tools what it takes."
            )
            if unknown[0] in self.annotations:
                why, remedy = "is filled in by the model", ""
            raise MisuseError(
                f"Tool `{call.name}` (call {call.id!r}): `{unknown[0]}` {why}. What can be passed "
                f"here: {hidden}.{remedy}"
            )
        if missing := sorted(self.required - skipped.keys()):
            listed = ", ".join(f"{name}=..." for name in missing)
            raise MisuseError(
                f"Tool `{call.name}` (call {call.id!r}) needs {names_for_message(missing)}, which "
                "the model does not see. Pass it where you run the call: "
                f"`{'await ' * self.is_async}{self._run(listed, sync=not self.is_async)}`."
            )

    def _run(self, given: str = "", *, sync: bool = False) -> str:
        """Write what a program says to have a call run."""
        if self.is_handler:
            run = "run.call_sync" if sync else "run"
            return f"{run}(call, {given})" if given else f"{run}(call)"
        return f"call.{'call_sync' if sync else 'call'}({given})"

    async def run(self, call: Any, input: object, skipped: dict[str, object]) -> Any:
        """Run the function to its end: an async one here, any other in a worker thread."""
        if self.is_async:
            return await self.start(call, input, skipped)
        # Not in asyncio's pool: it is small, is waited for at the end, and never ends where a
        # function raises StopIteration.
        from .._text.waiting import run_in_thread, wait_for_thread

        thread = run_in_thread(partial(self.start, call, input, skipped), call.name)
        await wait_for_thread(thread)
        output = thread.result().result()
        return await output if inspect.isawaitable(output) else output

    def run_sync(self, call: object, input: object, skipped: dict[str, object]) -> Any:
        """Run a sync function here.

        Raises:
            MisuseError: The function is async.
        """
        if self.is_async:
            self.refuse_sync(call)
        if self.is_as_is and not skipped:
            output = self.function(**input.__dict__)
        else:
            output = self.start(call, input, skipped)
        if output.__class__ is CoroutineType:
            output.close()
            self.refuse_sync(call)
        return output

    def refuse_sync(self, call: Any) -> NoReturn:
        """Say that the function is async."""
        raise MisuseError(
            f"Tool `{call.name}` (call {call.id!r}) is async: use `await {self._run()}` instead of "
            f"`{self._run(sync=True)}`, or `asyncio.run({self._run()})` outside of a loop."
        )
