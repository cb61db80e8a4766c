"""Which tools a request offers, under which names, and what it asks of the model."""

from __future__ import annotations

import re
from typing import Any

from .._definition import ToolDef
from .._offer import Descriptions, offered_definitions
from .._request import ToolChoice
from ..errors import ToolDefinitionError

__all__ = ["check_tool_name", "choice_of", "offered"]

# As the API references have it: OpenAI, function `name`; Anthropic, tool `name`; Gemini,
# `FunctionDeclaration.name`.
_NAMES: dict[str, tuple[re.Pattern[str], str]] = {
    "openai_chat": (
        re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        "letters, digits, `_` and `-`, at most 64 characters",
    ),
    "openai_responses": (
        re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        "letters, digits, `_` and `-`, at most 64 characters",
    ),
    "anthropic_messages": (
        re.compile(r"[a-zA-Z0-9_-]{1,128}"),
        "letters, digits, `_` and `-`, at most 128 characters",
    ),
    "gemini_generate_content": (
        re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
        "letters, digits, `_`, `.`, `:` and `-`, a letter or `_` first, at most 64 characters",
    ),
}


def offered(
    toolset: Any, available: Any = None, descriptions: Descriptions = ()
) -> tuple[ToolDef, ...]:
    """Give the definitions on offer, with the descriptions of this turn.

    Args:
        toolset: A toolset, or an iterable of `ToolDef`.
        available: Which tools of a toolset are on offer; None for those that are on.
        descriptions: Pairs, or a mapping, of a selector or wire name and the text that the model
            reads.

    Raises:
        TypeError: `toolset` is neither, or `available` is given with plain definitions.
    """
    # A toolset is a class, and iterable too: over its selectors, which are no definitions.
    if isinstance(toolset, type):
        return offered_definitions(toolset, available, descriptions)
    if available is not None:
        raise TypeError("`available` chooses among a toolset; pass the ToolDefs that are on offer")
    definitions = tuple(toolset)
    for definition in definitions:
        if not isinstance(definition, ToolDef):
            raise TypeError(f"expected a toolset or ToolDefs, got {definition!r}")
    pairs = dict(descriptions)
    texts = {str(getattr(tool, "name", tool)): text for tool, text in pairs.items()}
    return tuple(
        definition.with_description(texts[definition.name])
        if definition.name in texts
        else definition
        for definition in definitions
    )


def check_tool_name(dialect: str, name: str) -> None:
    """Refuse a name that the provider refuses.

    Raises:
        ToolDefinitionError: It has other characters, or more of them, than the dialect allows.
    """
    pattern, rule = _NAMES[dialect]
    if pattern.fullmatch(name) is None:
        raise ToolDefinitionError(
            f"The tool name {name!r} is refused by {dialect}, which takes {rule}. "
            "Give the tool another name, as in `@tool_fn(name=...)`."
        )


def choice_of(requirement: ToolChoice | Any) -> ToolChoice:
    """Take a `ToolChoice`, or a requirement that has one.

    Raises:
        TypeError: It is neither.
    """
    choice = getattr(requirement, "choice", requirement)
    if isinstance(choice, ToolChoice):
        return choice
    raise TypeError(f"expected a ToolRequirement or ToolChoice, got {requirement!r}")
