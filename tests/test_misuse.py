"""The laws of wrong arguments: whatever is passed, a clear error says what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, AliasPath, Field

from lutum_py import (
    Handlers,
    HookSet,
    Session,
    ToolAvailability,
    ToolContext,
    ToolMetadata,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.context import State
from lutum_py.dialects import openai_chat
from lutum_py.errors import DeveloperError, MisuseError, ToolDefinitionError
from lutum_py.execution import execute_all_sync, execute_sync
from lutum_py.sinks import ThrottledSink
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.declared import declare
from tests.private import decode


@tool_fn
def ping(host: str = "localhost") -> str:
    """Ping a host."""
    return host


class Net(Toolset):
    ping = tool(ping)


class Service:
    @classmethod
    @tool_fn
    def shared(cls, a: int) -> int:
        """Take a number."""
        return a

    @tool_fn
    def own(self, a: int) -> int:
        """Take a number."""
        return a


WRONG: list[Any] = [None, 3, object()]
USES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "match": (Net.ping.match, "A selector matches calls, as a round or plan has them in"),
    "matches": (Net.ping.matches, "A selector matches calls, as a round or plan has them in"),
    "decode": (
        lambda given: decode(Net.ping, given),
        "A call is decoded from its ToolMetadata, not from ",
    ),
    "only": (ToolAvailability.only, "Tools are named by a list of selectors or wire names, as in"),
    "default plus": (ToolAvailability.default_plus, "Tools are named by a list of selectors or"),
    "definitions": (Net.definitions_for, "Tools are named by a list of selectors or wire names"),
    "require": (
        lambda given: turn().require(given).request(),
        "What a turn asks of the model is a ToolRequirement, not ",
    ),
    "describe": (
        lambda given: turn().describe_tool(Net.ping, given).request(),
        "Descriptions come as pairs of a selector and a text, as in `[(AppTools.search, ",
    ),
    "pairs": (
        lambda given: turn().describe_many_tools([given]).request(),
        "Descriptions come as pairs of a selector and a text, as in `[(AppTools.search, ",
    ),
    "call": (Net.parse_tool_call, "parse_tool_call takes a ToolMetadata, not "),
    "extra": (
        lambda given: turn().extra(given),
        "`.extra` takes a mapping of request fields, not ",
    ),
    "many": (
        lambda given: turn().describe_many_tools(given),
        "`.describe_many_tools` takes pairs of a tool and a text",
    ),
    "definitions to make": (
        lambda given: Toolset.from_definitions("Made", given),
        "from_definitions takes a list of ToolDefs, not ",
    ),
    "plan": (Net.load_plan, "A saved plan is loaded from its text, not from "),
    "run": (execute_sync, "What is run is a call, not "),
    "run all": (execute_all_sync, "Calls are run from a list, not from "),
    "states": (
        lambda given: State([given]),  # type: ignore[arg-type]
        "State takes a mapping or None for `values`, not ",
    ),
    "load state": (State.load_json, "A saved state is loaded from its text, not from "),
    "state": (lambda given: State().set(given, 1), "A state is set by a StateKey, not by "),
    "state read": (lambda given: State().get(given), "A state is read by a StateKey, not by "),
    "state of a context": (
        lambda given: ToolContext("c", "ping").state(given),
        "A state is read by a StateKey, not by ",
    ),
    "suspend": (
        lambda given: ping.Call(ToolMetadata(id="c", name="ping", arguments="{}"), {}).suspend(
            given
        ),
        "Call 'c' of tool `ping` waits under a SuspendTicket, not ",
    ),
    "hook set": (HookSet, "HookSet takes a toolset for `toolset`, not "),
    "handlers": (Handlers, "Handlers takes a toolset for `toolset`, not "),
    "compile": (openai_chat.compile, "compile takes a ToolDef for `definition`, not "),
    "load": (Transcript.load_json, "A saved transcript is loaded from its text, not from "),
    "sink": (ThrottledSink, "ThrottledSink takes a function of an event for `sink`, not "),
    "with_name": (ping.definition.with_name, "ToolDef takes a text for `name`, not "),
    "with_description": (
        ping.definition.with_description,
        "ToolDef takes a text for `description`, not ",
    ),
}


def turn() -> Any:
    return Session().text_turn(ScriptedModel([])).tools(Net)


@pytest.mark.parametrize("use", USES)
@over("given", WRONG)
def test_a_wrong_argument_is_told(use: str, given: Any) -> None:
    """What is wanted, and what came, stands in an error of the developer's branch."""
    call, said = USES[use]
    with pytest.raises(MisuseError) as caught:
        call(given)
    assert str(caught.value).startswith(said)
    assert isinstance(caught.value, DeveloperError)


@pytest.mark.parametrize("given", [3, object()], ids=["number", "object"])
def test_descriptions_are_pairs_or_a_mapping(given: Any) -> None:
    """Descriptions that cannot be gone through are told how they are written."""
    for tools in (Net, [ping.definition]):
        with pytest.raises(MisuseError, match="Descriptions are pairs or a mapping, not "):
            openai_chat.tools(tools, descriptions=given)


@pytest.mark.parametrize("given", [None, 3, "no name", ["x"]])
def test_a_toolset_made_at_run_time_has_a_name(given: Any) -> None:
    """Whatever is no Python name is refused for the name of a class."""
    with pytest.raises(ToolDefinitionError):
        Toolset.from_definitions(given, [ping.definition])


def test_no_name_selects_nothing() -> None:
    """Trying a name never raises, also where it is none."""
    given: Any = ["ping"]
    assert Net.Selector.try_from_name(given) is None


def test_a_class_method_is_told_how_it_is_declared() -> None:
    """Nobody would pass the class, so that a class method is no tool."""
    bounds: list[Any] = [Service.shared, Service().shared]
    for bound in bounds:
        with pytest.raises(ToolDefinitionError):
            tool(bound)


LENIENT = """
@tool_fn
def f(
    a: int = unset,
    b: int = None,
    c: list[int] = [],
    d: Annotated[list[int], Field(default_factory=count)] = ...,
    e: float = 1,
    f: float = float("inf"),
    g: Annotated[int, AfterValidator(stumble)] = 3,
    h: Annotated[int, Field(validation_alias="hh")] = 3,
    i: Annotated[int, Field(validation_alias=AliasPath("at", 0))] = 3,
    j: Annotated[int, Field(validation_alias=AliasPath("at", 1))] = 3,
    k: Annotated[float, Field(allow_inf_nan=False)] = float("inf"),
) -> None:
    pass
"""


def test_defaults_that_stand_for_something_are_the_authors() -> None:
    """Only plain data is judged as a default: no factory is run, and no word said of a sentinel."""
    made: list[list[int]] = []

    def stumble(value: int) -> int:
        raise KeyError(value)

    scope = {
        "AfterValidator": AfterValidator,
        "AliasPath": AliasPath,
        "Annotated": Annotated,
        "Field": Field,
        "count": lambda: made.append([]),
        "stumble": stumble,
        "tool_fn": tool_fn,
        "unset": object(),
    }
    assert list(declare(scope, LENIENT).Input.model_fields) == [*"abcdefghijk"]
    assert not made
