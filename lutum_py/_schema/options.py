"""What an author says about a tool besides its parameters and its output: one record for all ways.

The decorators fill it, what is in the declaration itself fills its gaps, and the definition is
made of it. An option is added here twice, to the functions that take it, and to `ToolDef`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

from .._text.immutable import dataclass
from .._text.json import is_seconds, shorten
from ..errors import ToolDefinitionError

Caller: TypeAlias = Literal["model", "program"]
"""Who may call a tool: the model, or a program of the model's that its provider runs."""

if TYPE_CHECKING:
    from .capabilities import ToolCapabilities

    class ToldOfTool(TypedDict, total=False):
        """What every decorator takes, for type checkers alone: the functions spell it out."""

        name: str | None
        description: str | None
        title: str | None
        timeout: float | None
        category: str | None
        capabilities: ToolCapabilities | None
        idempotent: bool
        strict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Hold what was said about a tool; None stands for nothing.

    Raises:
        ToolDefinitionError: `skip` is not a collection of names.
    """

    name: str | None = None
    description: str | None = None
    title: str | None = None
    skip: Sequence[str] = ()
    category: str | None = None
    capabilities: ToolCapabilities | None = None
    timeout: float | None = None
    idempotent: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.skip, str):
            raise ToolDefinitionError(f"skip= takes names in a tuple: write skip=({self.skip!r},).")
        if not isinstance(self.skip, Collection):
            raise ToolDefinitionError(
                f"skip= takes names in a tuple, as in skip=('db',), not {shorten(self.skip)}."
            )
        object.__setattr__(self, "skip", tuple(self.skip))

    # `@tool_fn(description="...")` wins over the docstring, and an empty text wins too: it was
    # said.
    def or_else(self, *, name: str, description: str) -> ToolOptions:
        """Fill in what the declaration itself says, if the author said nothing else."""
        return replace(
            self,
            name=name if self.name is None else self.name,
            description=description if self.description is None else self.description,
        )

    def checked(self, place: str) -> dict[str, Any]:
        """Return what a definition is told, by name.

        Args:
            place: What is declared, for messages.

        Raises:
            ToolDefinitionError: Something is of the wrong kind; the text names it.
        """
        self._check_texts(place)
        if self.capabilities is not None:
            from .capabilities import ToolCapabilities

            if not isinstance(self.capabilities, ToolCapabilities):
                raise ToolDefinitionError(
                    f"{place}: capabilities={shorten(self.capabilities)} are not "
                    "`ToolCapabilities`. Write `capabilities=ToolCapabilities(...)`."
                )
        for field in ("idempotent", "strict"):
            check_bool(f"{place}: {field}=", getattr(self, field))
        timeout = self.timeout
        if timeout is not None and not is_seconds(timeout):
            raise ToolDefinitionError(
                f"{place}: timeout={shorten(timeout)} is not a positive number of seconds. Leave "
                "it out for none."
            )
        return {name: getattr(self, name) for name in TOLD}

    def _check_texts(self, place: str) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ToolDefinitionError(
                f"{place} needs a name, got {shorten(self.name)}. Pass `name=` with a text."
            )
        for field in ("name", "description", "title", "category"):
            text = getattr(self, field)
            if not (isinstance(text, str) or (text is None and field != "description")):
                raise ToolDefinitionError(
                    f"{place}: {field}={shorten(text)} is not text. Give a text, or leave it out."
                )
            try:
                (text or "").encode()
            except UnicodeEncodeError as error:
                raise ToolDefinitionError(
                    f"{place}: the {field} holds half of a surrogate pair at position "
                    f"{error.start}, which UTF-8 cannot carry to a provider. Take it out."
                ) from None


def check_bool(said: str, flag: object) -> None:
    """Refuse what is neither True nor False: a text such as `"no"` would count as True.

    Args:
        said: What was declared and where, for the message.
        flag: The value.

    Raises:
        ToolDefinitionError: It is something else.
    """
    if not isinstance(flag, bool):
        raise ToolDefinitionError(f"{said}{shorten(flag)} is neither True nor False.")


def read_callers(given: object) -> tuple[Caller, ...]:
    """Take who may call a tool, from whatever lists it.

    Raises:
        ToolDefinitionError: It is not a list of callers.
    """
    said: Any = given
    if isinstance(given, Iterable) and not isinstance(given, str):
        listed: tuple[Any, ...] = tuple(said)
        if all(each in get_args(Caller) for each in listed):
            return listed
    raise ToolDefinitionError(
        f"`callers=` takes who may call a tool, not {shorten(said)}. Write "
        '`callers=("model", "program")`.'
    )


TOLD = tuple(name for name in ToolOptions.__annotations__ if name != "skip")
"""The options that a definition keeps; the others are used up while it is made."""
