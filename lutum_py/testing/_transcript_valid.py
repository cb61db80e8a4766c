"""Say everything that is wrong with a conversation, whoever holds it and in whatever form."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

from .. import AssistantTurn, Message, ToolResult, TurnRequest
from .._text.json import is_array, is_object, shorten
from ..dialects import DIALECTS
from ..errors import InvalidValueError, MisuseError
from ..turns import TranscriptItem, faults_in

Dialect: TypeAlias = "ModuleType | str"
"""A dialect: its module, as in `lutum_py.dialects.openai_chat`, or its name."""


def assert_transcript_valid(conversation: object, dialect: Dialect | None = None) -> None:
    """Make sure that a provider would take a conversation.

    Args:
        conversation: A `Session`, a `Transcript`, the items of one, a `TurnRequest`; or, with a
            dialect, a request body of that provider or its list of messages.
        dialect: The provider's format, as a module of `lutum_py.dialects` or its name. For a
            conversation of the library: what it is rendered to, to be checked in that form too.

    Raises:
        AssertionError: It breaks a rule; the text lists every violation with its place.
        MisuseError: It is not a conversation, or one in a provider's format without the dialect.

    Example:
        >>> from lutum_py import Session
        >>> session = Session()
        >>> session.push_user("Hello")
        >>> assert_transcript_valid(session)
        >>> result = {"role": "tool", "tool_call_id": "c1", "content": "3"}
        >>> try:
        ...     assert_transcript_valid([result], "openai_chat")
        ... except AssertionError as error:
        ...     print(str(error).partition(":")[0])
        The conversation is invalid as openai_chat, in 1 place
    """
    __tracebackhide__ = True
    problems = transcript_problems(conversation, dialect)
    if problems:
        where = "" if dialect is None else f" as {dialect_of(dialect).NAME}"
        count = "1 place" if len(problems) == 1 else f"{len(problems)} places"
        lines = "".join(f"\n- {problem}" for problem in problems)
        raise AssertionError(f"The conversation is invalid{where}, in {count}:{lines}")


def transcript_problems(conversation: object, dialect: Dialect | None = None) -> list[str]:
    """List what is wrong with a conversation; see `assert_transcript_valid`."""
    module = None if dialect is None else dialect_of(dialect)
    items = _items_of(conversation)
    if items is not None:
        problems = [str(fault) for fault in faults_in(items)]
        if problems or module is None:
            return problems
        try:
            body = module.encode_request(TurnRequest(items=items))
        except InvalidValueError as refused:  # the provider wants somebody else to begin
            return [str(refused)]
        return [str(each) for each in module.check(body)]
    if module is None:
        raise MisuseError(
            f"{shorten(conversation)} is not a conversation of this library. If it is a provider's "
            "request body or list of messages, name the format, as in "
            '`assert_transcript_valid(messages, "openai_chat")`.'
        )
    return [str(violation) for violation in module.check(conversation)]


def dialect_of(dialect: Dialect) -> Any:
    """Find the module of a dialect.

    Raises:
        MisuseError: There is no such dialect.
    """
    name = dialect if isinstance(dialect, str) else getattr(dialect, "NAME", None)
    if name not in DIALECTS:
        raise MisuseError(f"{shorten(dialect)} is not a dialect. There are {', '.join(DIALECTS)}.")
    return import_module(DIALECTS[name])


def _items_of(conversation: object) -> list[TranscriptItem] | None:
    """Return the items of a conversation in the library's own form; None if it is in another."""
    source: Any = conversation
    if isinstance(conversation, TurnRequest):
        source = conversation.items
    elif not hasattr(conversation, "__iter__"):
        source = getattr(conversation, "transcript", None)
    if source is None or is_object(source) or isinstance(source, str | bytes):
        return None
    items: list[Any] = list(source)
    if is_array(source) and items and not any(isinstance(item, _ITEMS) for item in items):
        return None
    return items


_ITEMS = (Message, AssistantTurn, ToolResult)
