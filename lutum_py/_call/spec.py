"""What a declaration comes to: one tool, ready to be named by toolsets and to make calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

from pydantic import ValidationError

from .._schema.arguments import Arguments, InputText, UndescribedInput
from .._schema.definition import Caller, ToolDef, check_bool, read_callers
from .._schema.invocation import Invocation
from .._schema.output import Output
from .._schema.secrets import MASK
from .._schema.signature import type_name
from .._text.escaping import names_for_message
from .._text.immutable import Immutable, dataclass
from .._text.json import compact_json, cut, is_seconds, parse_json, shorten, size_of
from .._text.on_demand import ONCE
from ..errors import FieldIssue, ToolDefinitionError, ToolInputError

if TYPE_CHECKING:
    from .._transcript.result_cap import ResultCap
    from .drivers import HookGenerator

P = ParamSpec("P")
In = TypeVar("In")
Out = TypeVar("Out")


class ToolSpec(Immutable, Generic[In, Out]):
    """Hold all that a tool is, apart from the names that toolsets give it.

    Attributes:
        definition: Name, description and schemas.
        origin: What the author declared: the decorated function, or the model class.
        arguments: Decodes and checks inputs.
        output: Checks and encodes outputs.
        invocation: Runs the function; None for a tool that is only an input model.
        validate_json: The straight way from argument text to input, kept here for the hot path.
        call_type: The class of its calls, as in `WebSearchInputCall`.
        handled_type: The class of its handled calls, as in `WebSearchInputHandled`.
        free_selector: The tool's selector outside of any toolset, for calls that are made by hand.
    """

    # The last four attributes are made with the first call. What makes the last three is in a layer
    # above this one, so `selector` gives it to the class.

    definition: ToolDef
    origin: Any
    arguments: Arguments
    output: Output
    invocation: Invocation | None
    validate_json: Callable[[str], Any]
    call_type: type[Any]
    handled_type: type[Any]
    free_selector: Any
    # What the names of the classes of calls begin with, the module of the tool, and its name there.
    _named: tuple[str, str, str]
    _is_made: bool
    __slots__ = tuple(__annotations__)
    _make: ClassVar[Callable[[AnySpec], None]]

    def __init__(
        self,
        *,
        definition: ToolDef,
        origin: Any,
        arguments: Arguments,
        output: Output,
        invocation: Invocation | None,
        named: tuple[str, str, str],
    ) -> None:
        self._put(
            definition=definition,
            origin=origin,
            arguments=arguments,
            output=output,
            invocation=invocation,
            _named=named,
            _is_made=False,
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Asked only while the slot is empty, so once for each name: after that the attribute
            # is found without this.
            if name == "validate_json":
                self._put(validate_json=self.arguments.validate_json)
            elif name in ("call_type", "handled_type", "free_selector"):
                with ONCE:
                    if not self._is_made:  # else another thread was quicker
                        self._make()
                        self._put(_is_made=True)
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return object.__getattribute__(self, name)

    def parameter_named(self, name: str) -> str | None:
        """Return the parameter of the tool's function that has a name, also on the wire.

        A parameter's own name comes before the names on the wire of others.
        """
        known: Mapping[str, str] = {} if self.invocation is None else self.invocation.fields
        if name in known:
            return name
        meant = {field for fields in self.arguments.keys_of(name).values() for field in fields}
        found = [parameter for parameter, field in known.items() if field in meant]
        return found[0] if len(found) == 1 else None

    def take(
        self, tool: str, value: Any, before: InputText | None = None, *, by_name: bool = False
    ) -> tuple[In, InputText]:
        """Check an input that a program made for one of this tool's calls, and describe it.

        Args:
            tool: The tool's wire name, for messages.
            value: The input.
            before: The text of the input that it takes the place of, with what was read from it.
            by_name: Whether it is a dict by the fields' own names, not by their wire names.

        Returns:
            The input that runs, and its text.

        Raises:
            ToolInputError: It does not fit, or no text describes it; the error names every such
                field.
        """
        name = type_name(self.arguments.type)
        try:
            taken: tuple[In, InputText] = self.arguments.take(value, before, by_name=by_name)
        except ValidationError as error:
            raise self._unfit(
                tool, "This input does not fit", error, f"Pass a valid `{name}`."
            ) from (None if self.has_secrets else error)
        except RecursionError:
            raise ToolInputError(
                f"This input does not fit tool `{tool}`: it is nested too deeply, or holds itself. "
                f"Pass a valid `{name}`.",
                tool=tool,
            ) from None
        except UndescribedInput as error:
            named = names_for_message(error.names) if error.names else "it"
            raise ToolInputError(
                f"This input of tool `{tool}` is not what its own arguments give: written out and "
                f"validated again, {named} would be different, so nobody could be shown what "
                f"runs. Leave what its validators change as it came, or let the serializers of "
                f"`{name}` write what its fields accept.",
                tool=tool,
                fields=tuple([FieldIssue(each, "would be different") for each in error.names]),
            ) from None
        except ValueError as error:
            hides = self.has_secrets
            why = "its text is hidden" if hides else cut(" ".join(str(error).split()), 200)
            raise ToolInputError(
                f"This input of tool `{tool}` has no JSON form ({why}), so nobody could be shown "
                f"what runs. Pass a valid `{name}`, or give its types a form, as by a serializer.",
                tool=tool,
            ) from (None if hides else error)
        return taken

    def read_again(self, text: InputText) -> In:
        """Make an input of its text.

        Raises:
            ToolInputError: It does not fit, or not any more.
        """
        try:
            made: In = self.arguments.read(text)
        except ValidationError as error:
            remedy = "Call it again with corrected arguments."
            said = "The arguments do not fit"
            raise self._unfit(self.definition.name, said, error, remedy) from (
                None if self.has_secrets else error
            )
        return made

    def _unfit(self, tool: str, said: str, error: ValidationError, remedy: str) -> ToolInputError:
        issues = self._issues_of(error)
        text = f"{said} tool `{tool}`: {'; '.join(map(str, issues))}. {remedy}"
        return ToolInputError(text, tool=tool, fields=issues)

    # All that is shown of arguments comes from here: logs, rows, events, questions, pages, spans.

    @property
    def has_secrets(self) -> bool:
        """Whether something in the input is declared to be secret."""
        return self.arguments.masking.found

    def shown_input(self, text: InputText) -> Any:
        """Return an input as plain data to be looked at: secrets masked, None without a text."""
        return None if text.json is None else self.arguments.masking.masked(text.data)

    def shown_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names of arguments to be looked at, with one mask for all that are secret."""
        masking = self.arguments.masking
        if not masking.found:
            return tuple(names)
        return tuple(dict.fromkeys(MASK if masking.hides_key(each) else each for each in names))

    def shown_json(self, text: InputText) -> str:
        """Encode an input to be looked at: secrets masked."""
        shown = self.shown_input(text)
        return "an input without a JSON form" if shown is None else compact_json(shown)

    def shown_text(self, text: str, *, fits: bool = True) -> str:
        """Return arguments as the model wrote them, with secrets masked.

        Args:
            text: What it wrote.
            fits: Whether an input was made of it; else a secret may stand anywhere.

        Returns:
            The text, or its size if the places of secrets cannot be told.
        """
        if not self.has_secrets:
            return text
        if not fits:
            return size_of(text)
        try:
            return compact_json(self.arguments.masking.masked(parse_json(text.strip() or "{}")))
        except (ValueError, RecursionError):
            return size_of(text)

    def issues_of(self, error: ValidationError, *, redact: bool = False) -> tuple[FieldIssue, ...]:
        """Say what is wrong with arguments that do not fit; a secret is not repeated.

        Args:
            error: What pydantic found.
            redact: Whether to hide all values that came.
        """
        return self._issues_of(error, [*self.definition.input_schema.get("properties", ())], redact)

    def _issues_of(
        self, error: ValidationError, known: Sequence[str] = (), redact: bool = False
    ) -> tuple[FieldIssue, ...]:
        from .._schema.field_issues import field_issues

        return field_issues(error, known=known, redact=redact, masking=self.arguments.masking)

    def __repr__(self) -> str:
        return f"ToolSpec({self.definition.name!r})"


AnySpec: TypeAlias = ToolSpec[Any, Any]
"""The specification of a tool whose types nobody here needs to know."""


class FnSpec(ToolSpec[Any, Out], Generic[P, Out]):
    """Hold what a function tool is, whose calls carry the function's own parameters."""

    __slots__ = ()


class HasSpec(Protocol[In, Out]):
    """Anything that `tool(...)` takes and that has an input type, such as an input model."""

    def __lutum_tool__(self) -> ToolSpec[In, Out]:
        """Return the tool's specification."""
        ...


def spec_of(declared: Any) -> AnySpec:
    """Return the specification of what is declared as a tool, in whichever way."""
    if isinstance(declared, MethodType):
        function: Any = declared.__func__
        bound: AnySpec = function.__lutum_bound__(declared)
        return bound
    make = getattr(declared, "__lutum_fn__", None) or declared.__lutum_tool__
    spec: AnySpec = make()
    return spec


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "..."


UNSET: Final[Any] = _Unset.UNSET
"""Stands for an option that was left out: the group or class decides. None would lift it."""

_OrUnset: TypeAlias = Literal[_Unset.UNSET]

Condition: TypeAlias = bool | Callable[[Any], bool | Awaitable[bool]]
"""Whether calls need an approval, or a function of the input that decides this."""


class Rule(Protocol):
    """A rule, which reviews each call of a tool.

    Attributes:
        name: What it is called in steps, records and messages.
    """

    name: str

    def review(self, review: Any, /) -> HookGenerator[None]:
        """Review one call; return the call to go on with, or its outcome."""
        ...


Conditions: TypeAlias = tuple[Condition, ...]
"""The conditions under which a call needs an approval; empty for a tool that never does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """Hold what was said about a member.

    Attributes:
        off: Whether it is left out unless it is asked for.
        deferred: Whether it is left out until a search of the model loads it.
        prefix: Stands before the wire name of each tool.
        result_cap: The bound on what a model reads of a result; None lifts one that is around.
        timeout: Seconds that a run may take; None lifts those that stand around.
        needs_approval: Whether a call has to be approved, or a function of its input that decides
            this.
        approvals_around: The conditions of the groups around it, the outermost first: nothing
            within a group takes them away.
        approval_message: What the person is told, with names of arguments in braces.
        rules: What reviews each call: its own, then those of the groups from the inside out.
        callers: Who may call it; empty if nothing is said.

    Raises:
        ToolDefinitionError: An option is of the wrong kind.
    """

    off: bool = False
    deferred: bool = False
    prefix: str = ""
    result_cap: ResultCap | _OrUnset | None = UNSET
    timeout: float | _OrUnset | None = UNSET
    needs_approval: Condition | _OrUnset = UNSET
    approvals_around: tuple[Condition, ...] = ()
    approval_message: str | None = None
    rules: tuple[Rule, ...] = ()
    callers: Sequence[Caller] = ()

    def __post_init__(self) -> None:
        check_bool("`off=`: ", self.off)
        check_bool("`deferred=`: ", self.deferred)
        if not isinstance(self.prefix, str):
            raise ToolDefinitionError(f"`prefix=` takes a text, not {shorten(self.prefix)}.")
        if self.result_cap is not None and self.result_cap is not UNSET:
            _check_cap(self.result_cap)
        for condition in (self.needs_approval, *self.approvals_around):
            if not (isinstance(condition, bool | _Unset) or callable(condition)):
                raise ToolDefinitionError(
                    f"`needs_approval=` takes True, False or a function of the input, not "
                    f"{shorten(condition)}. Write `needs_approval=lambda input: input.amount > 5`."
                )
        if not (isinstance(self.timeout, _Unset | None) or is_seconds(self.timeout)):
            raise ToolDefinitionError(
                "`timeout=` takes a positive number of seconds or None, not "
                f"{shorten(self.timeout)}."
            )
        object.__setattr__(self, "callers", read_callers(self.callers))

    def inside(self, outer: MemberOptions) -> MemberOptions:
        """Return the options of this member inside of a group or class that has options, too."""
        if outer is PLAIN:
            return self
        # Three ways inward: what holds for a group holds for all in it (`off`, `deferred`), what
        # was said nearer to the tool wins (`timeout`, `result_cap`), and what a group asks cannot
        # be taken away from inside (`approvals_around`, `rules`).
        return replace(
            self,
            off=self.off or outer.off,
            deferred=self.deferred or outer.deferred,
            prefix=outer.prefix + self.prefix,
            result_cap=outer.result_cap if self.result_cap is UNSET else self.result_cap,
            timeout=outer.timeout if self.timeout is UNSET else self.timeout,
            needs_approval=(
                outer.needs_approval if self.needs_approval is UNSET else self.needs_approval
            ),
            approvals_around=outer.approvals_around + self.approvals_around,
            rules=self.rules + outer.rules,
        )


def _check_cap(result_cap: object) -> None:
    from .._transcript.result_cap import ResultCap

    if not isinstance(result_cap, ResultCap):
        raise ToolDefinitionError(
            f"`result_cap=` takes a ResultCap or None, not {shorten(result_cap)}. Write "
            "`result_cap=ResultCap(20_000)`."
        )


PLAIN: Final = MemberOptions()


def conditions_of(options: MemberOptions) -> Conditions:
    """Return the conditions for an approval: those of the member's groups, then its own."""
    own: Any = options.needs_approval
    around = options.approvals_around
    return around if own is UNSET or own is False else (*around, own)
