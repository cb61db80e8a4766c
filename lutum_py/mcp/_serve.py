"""`create_server`: a toolset as a server of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import ListToolsResult, PaginatedRequestParams

from .. import Handlers, ToolAvailability, Toolset
from .._hooks.registered_hook import HookPlaces
from .._text.escaping import names_for_message
from .._text.json import shorten
from .._toolsets.members import members_of
from ..errors import InvalidValueError, MisuseError
from ..execution._settings import Settings, check_flag, check_function
from ..typing import AnySelector, Available, Hooks
from ._served_call import ContextForRequest, Request, Serving, SkippedFor, is_modern, offered_tool


def create_server(
    toolset: type[Toolset],
    *,
    name: str | None = None,
    version: str = "",
    instructions: str | None = None,
    hooks: Hooks | None = None,
    available: Available = None,
    context: ContextForRequest | None = None,
    skipped: SkippedFor | None = None,
    handlers: Handlers[Any] | None = None,
    limit: int | None = None,
    default_timeout: float | None = None,
    state_keys: Sequence[bytes | str] | None = None,
    show_errors: bool = False,
) -> Server[Any]:
    """Make a server of a toolset; run it by a transport of the SDK.

    Each call is a round of its own: decoded, decided by the hooks and gates, run, shown to the
    after-hooks. A call that waits for a decision asks the client's user.

    Args:
        toolset: The toolset.
        name: What the server is called; by default as the toolset.
        version: Its version.
        instructions: What the client's model may be told about the server.
        hooks: A hook set, an object like one, or a plain function of a call.
        available: Which tools are on offer; by default those that are on, and those that are
            deferred, which clients see like any other.
        context: Makes the context of each call, from the call, the SDK's request and the sink
            that sends progress to the client.
        skipped: Values of hidden parameters, or a function of the SDK's request that gives them.
        handlers: What runs the tools; left out, their own functions do.
        limit: How many calls may run at once; None for all of them.
        default_timeout: Seconds that a call may take, for tools that set no timeout.
        state_keys: Secrets of at least 32 bytes by which the state of a call that waits is sealed,
            if several processes serve the same clients; the first seals, all of them open.
        show_errors: Whether the client is told the text of any exception.

    Raises:
        MisuseError: It is not a toolset, a tool on offer has no function, a hidden parameter has no
            value, the hooks are neither a hook set nor a function, or an argument has another kind.
        HookError: The hooks belong to another toolset.
        InvalidValueError: A number of seconds is invalid, the limit is below 1, or a state key is
            none.
        UnknownToolError: `available` names no tool of the toolset.
        ToolDefinitionError: The schema of an output is invalid.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     add = tool(add)
        >>> create_server(Sums, version="1.0").name
        'Sums'
    """
    is_class = isinstance(toolset, type) and issubclass(toolset, Toolset)
    if not is_class or toolset is Toolset:
        raise MisuseError(f"What is served is a toolset, not {shorten(toolset)}. Pass its class.")
    # Checked here as it is for each call, so that a wrong one is found before the first.
    settings = Settings(
        limit=limit, default_timeout=default_timeout, raise_errors=True, handlers=handlers
    )
    check_flag("show_errors", show_errors)
    check_function("context", context)
    for field, text, kind in (
        ("name", name, str | None),
        ("version", version, str),
        ("instructions", instructions, str | None),
    ):
        MisuseError.check("create_server", field, "a text", text, kind)
    if not (callable(skipped) or isinstance(skipped, Mapping | None)):
        raise MisuseError.of_field(
            "create_server", "skipped", "a dict, a function of a request or None", skipped
        )
    keys: object = state_keys
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence | None):
        raise MisuseError(  # which shows nothing of a secret
            f"create_server takes a list of secrets for `state_keys`, not a {type(keys).__name__}. "
            "Write `state_keys=[secret]`."
        )
    if handlers is not None and handlers.toolset is not toolset:
        raise MisuseError(
            f"handlers= are of {handlers.toolset.__qualname__}, and {toolset.__qualname__} is "
            "served. Make them with its own `Handlers()`."
        )
    if available is None:
        # Clients look for tools by themselves: there is nothing to be loaded first.
        available = ToolAvailability.default_plus(members_of(toolset).offer.deferred.selectors)
    offered = members_of(toolset).offer.resolve(available)
    _check_hooks(hooks, offered.selectors)
    _check_served(toolset, offered.selectors, handlers, skipped)
    serving = Serving(
        toolset=toolset,
        offered=offered,
        hooks=hooks,
        context=context,
        skipped=skipped,
        settings=settings,
        gate=nullcontext() if limit is None else asyncio.Semaphore(limit),
        show_errors=show_errors,
    )
    listed = {
        era: [offered_tool(each, modern=era) for each in offered.definitions]
        for era in (False, True)
    }

    async def list_tools(request: Request, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed[is_modern(request.protocol_version)])

    def input_schema(tool: str) -> Mapping[str, Any] | None:
        selector = offered.by_name.get(tool)
        return None if selector is None else selector.definition.input_schema

    title = toolset.__name__ if name is None else name
    server: Server[Any] = Server(
        title,
        version=version,
        instructions=instructions,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=serving.answer,
    )
    try:
        security = (
            RequestStateSecurity.ephemeral()
            if state_keys is None
            else RequestStateSecurity(keys=list(state_keys))
        )
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"`state_keys=` cannot be used: {error}") from None
    server.middleware.append(RequestStateBoundary(security, default_audience=title))
    return server


def _check_hooks(hooks: Hooks | None, selectors: Sequence[AnySelector]) -> None:
    """Find before the first call hooks that could decide about none.

    Raises:
        MisuseError: They are nothing that decides.
        HookError: They belong to another toolset.
    """
    given: object = hooks
    if isinstance(given, HookPlaces):
        for selector in selectors:
            given._places_for(selector)
    elif (
        isinstance(given, type)
        or getattr(given, "__name__", None) == "HookSet"  # the method, which nobody called
        or not (given is None or callable(given) or hasattr(given, "hook_tool_call"))
    ):
        raise MisuseError(
            f"hooks={shorten(given)} decides about no call. Pass a hook set, as of "
            "`YourToolset.HookSet()`, an object like one, or a function of a call."
        )


def _check_served(
    toolset: type[Toolset],
    selectors: Sequence[AnySelector],
    handlers: Handlers[Any] | None,
    skipped: SkippedFor | None,
) -> None:
    """Find before the first call what no call could do.

    Raises:
        MisuseError: A tool has no function, or a hidden parameter no value.
    """
    undone: list[str] = []
    for selector in selectors:
        done_by = selector.spec.invocation if handlers is None else handlers._done_by(selector)
        if done_by is None:
            undone.append(".".join(selector.path))
            continue
        known = done_by.required if skipped is None or not callable(skipped) else ()
        missing = sorted(name for name in known if name not in (skipped or {}))  # type: ignore[operator]
        if missing:
            raise MisuseError(
                f"Tool `{selector.name}` needs {names_for_message(missing)}, which the client does "
                f"not see. Pass `skipped={{{missing[0]!r}: ...}}`."
            )
    if undone:
        raise MisuseError(
            f"These tools of {toolset.__qualname__} have no function: {names_for_message(undone)}. "
            "Pass `handlers=` for them, or leave them out with `available=`."
        )
