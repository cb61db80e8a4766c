"""The laws of serving a toolset: each call is a round, and nothing outlives its request."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from mcp import Client, MCPError, ServerSession
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ElicitRequest,
    ElicitResult,
    EmbeddedResource,
    ErrorData,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
)
from pydantic import AfterValidator, Base64Bytes

from lutum_py import (
    AnyToolCall,
    Attachment,
    Block,
    Complete,
    Reject,
    RejectedCall,
    Reply,
    RunNormally,
    Skip,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities
from lutum_py.context import RunIdentity
from lutum_py.errors import (
    ExecutionFailed,
    HookError,
    InvalidValueError,
    MisuseError,
    OutcomeUnknown,
    ToolDefinitionError,
    UnknownToolError,
)
from lutum_py.mcp import create_server
from lutum_py.tools import ResultCap

from .servers import KINDS, connected, over_http


@dataclass
class Node:
    """A tree."""

    name: str
    children: list[Node]


RAN: list[Any] = []


@tool_fn(title="Add two numbers", capabilities=ToolCapabilities(effects=["introspect_runtime"]))
def add(a: int, b: int = 1) -> int:
    """Add."""
    RAN.append((a, b))
    return a + b


@tool_fn(capabilities=ToolCapabilities(effects=["persist_memory"]), idempotent=True)
def keep(note: str) -> dict[str, str]:
    RAN.append(note)
    return {"kept": note}


@tool_fn(capabilities=ToolCapabilities(effects=["delete_file"]))
async def wipe(path: str) -> str:
    RAN.append(path)
    return f"wiped {path}"


@tool_fn(idempotent=True)
def tree(depth: int) -> Node:
    return Node("root", [])


@tool_fn(capabilities=ToolCapabilities(effects=["write_file", "network_request"]))
def fail(how: str) -> Any:
    """Fail in one of many ways."""
    if how == "said":
        raise ExecutionFailed("the disk is full")
    if how == "object":
        return {"n": 1}
    if how == "list":
        return [1]
    raise ValueError("secret: /etc/passwd")


@tool_fn
def perhaps(how: str) -> int | None:
    """Give a number, or none."""
    return int(how) if how else None


@tool_fn
def unfit() -> int:
    """Give what it does not declare."""
    given: Any = "secret"
    return given  # type: ignore[no-any-return]


@tool_fn
def whoami(user: Annotated[str, Skip()]) -> str:
    return user


class Tools(Toolset):
    add = tool(add)
    keep = tool(keep)
    wipe = tool(wipe, off=True)
    tree = tool(tree)
    fail = tool(fail)
    unfit = tool(unfit)
    perhaps = tool(perhaps)


class Count(ToolInput[int]):
    """Count."""

    to: int


class Undone(Toolset):
    count = tool(Count)
    whoami = tool(whoami)


@pytest.fixture(autouse=True)
def ran() -> list[Any]:
    RAN.clear()
    return RAN


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


@pytest.mark.parametrize("kind", KINDS)
async def test_tools_on_offer_are_listed_with_all_that_is_known(kind: str) -> None:
    """Names, titles, schemas and hints are as declared; outputs as each protocol has them."""
    server = create_server(Tools, version="2", instructions="Be brief.")
    async with connected(server, kind) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        assert client.instructions == "Be brief."
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("Tools", "2")
    assert list(listed) == ["add", "keep", "tree", "fail", "unfit", "perhaps"]
    first = listed["add"]
    assert (first.title, first.description) == ("Add two numbers", "Add.")
    assert first.input_schema["required"] == ["a"]
    assert (first.output_schema is None) is ("legacy" in kind)
    assert listed["keep"].output_schema is not None
    tree_schema = listed["tree"].output_schema
    assert tree_schema is not None
    assert tree_schema["type"] == "object"
    assert listed["tree"].description is None
    hints = {
        name: each.annotations and each.annotations.model_dump(exclude_none=True)
        for name, each in listed.items()
    }
    assert hints == {
        "add": {"read_only_hint": True, "destructive_hint": False, "open_world_hint": False},
        "keep": {
            "read_only_hint": False,
            "destructive_hint": False,
            "idempotent_hint": True,
            "open_world_hint": False,
        },
        "tree": None,
        "fail": {"read_only_hint": False, "open_world_hint": True},
        "unfit": None,
        "perhaps": None,
    }


async def test_deferred_tools_are_served_like_any_other() -> None:
    """A client sees a tool that a model of ours would have to look for."""

    class Many(Toolset):
        more = tool(add, deferred=True)
        keep = tool(keep)
        hidden = tool(wipe, off=True)

    for available, names in ((None, ["keep", "add"]), ([Many.keep], ["keep"])):
        async with connected(create_server(Many, available=available)) as client:
            assert [each.name for each in (await client.list_tools()).tools] == names
            result = await client.call_tool("add", {"a": 2})
            assert result.is_error is ("add" not in names)


async def test_what_is_irreversible_is_hinted_and_what_is_undeclared_is_not() -> None:
    """Hints claim no more than was declared."""

    @tool_fn
    def plain() -> str:
        return ""

    tools = Toolset.of("Some", plain, wipe)
    async with connected(create_server(tools, name="other")) as client:
        listed = {each.name: each.annotations for each in (await client.list_tools()).tools}
        assert client.server_info is not None
        assert client.server_info.name == "other"
    assert listed["plain"] is None
    assert listed["wipe"] is not None
    assert listed["wipe"].destructive_hint is True


REFERRED: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}


async def test_an_output_is_an_object_also_by_a_reference() -> None:
    """The protocol wants the type of an output at the root, where it may be said elsewhere."""
    definitions = [
        ToolDef.from_json_schema(name=name, input_schema={}, output_schema=schema)
        for name, schema in (("a", REFERRED), ("c", {"type": "string"}))
    ]
    does = {each.name: lambda arguments: "x" for each in definitions}
    tools = Toolset.from_definitions("Referring", definitions, functions=does)
    async with connected(create_server(tools), "legacy") as client:
        listed = {each.name: each.output_schema for each in (await client.list_tools()).tools}
    assert listed == {"a": {**REFERRED, "type": "object"}, "c": None}


def test_an_output_without_an_end_cannot_be_served() -> None:
    """A schema that no output could be held against is found before a server is made."""
    endless = ToolDef.from_json_schema(name="a", input_schema={}, output_schema={"$ref": "#"})
    with pytest.raises(ToolDefinitionError, match="the output of tool 'a'"):
        Toolset.from_definitions("Endless", [endless], functions={"a": lambda arguments: 1})


@pytest.mark.parametrize("kind", KINDS)
async def test_outputs_are_text_for_models_and_data_for_programs(kind: str) -> None:
    """Objects are structured for all, other data from 2026 on, and texts never."""
    is_modern = "legacy" not in kind
    server = create_server(Tools, available=[Tools])
    async with connected(server, kind) as client:
        for name, arguments, text, structure in (
            ("add", {"a": 2}, "3", 3 if is_modern else None),
            ("keep", {"note": "x"}, '{"kept":"x"}', {"kept": "x"}),
            ("wipe", {"path": "/"}, "wiped /", None),
            (
                "tree",
                {"depth": 1},
                '{"name":"root","children":[]}',
                {"name": "root", "children": []},
            ),
            ("fail", {"how": "object"}, '{"n":1}', {"n": 1}),
            ("perhaps", {"how": "3"}, "3", 3 if is_modern else None),
            ("perhaps", {"how": ""}, "null", None),
            ("fail", {"how": "list"}, "[1]", [1] if is_modern else None),
        ):
            result = await client.call_tool(name, arguments)
            assert (text_of(result), result.structured_content) == (text, structure)
            assert not result.is_error
    assert RAN == [(2, 1), "x", "/"]


async def test_attachments_are_content() -> None:
    """Files go out in their own form, and what is elsewhere as a link."""

    def file(media_type: Any, mime: str, url: str, **fields: Any) -> Attachment:
        return Attachment(media_type=media_type, mime_type=mime, url=url, **fields)

    @tool_fn
    def show() -> Reply[str]:
        files = [
            file("image", "image/png", "data:image/png;base64,aaaa"),
            file("audio", "audio/wav", "data:audio/wav;base64,aaaa"),
            file("file", "a/b", "data:a/b;base64,aaaa", caption="x.bin"),
            file("video", "video/mp4", "data:video/mp4;base64,aaaa"),
            file("image", "image/png", "https://example.org/a.png", size=3),
            file("image", "image/png", "https://example.org/", caption="b"),
            file("file", "text/plain", "data:text/plain,hi"),
        ]
        return Reply("", attachments=files)

    async with connected(create_server(Toolset.of("Files", show))) as client:
        content = (await client.call_tool("show", {})).content
    assert content == [
        ImageContent(data="aaaa", mime_type="image/png"),
        AudioContent(data="aaaa", mime_type="audio/wav"),
        EmbeddedResource(
            resource=BlobResourceContents(uri="attachment:x.bin", mime_type="a/b", blob="aaaa")
        ),
        EmbeddedResource(
            resource=BlobResourceContents(
                uri="attachment:video", mime_type="video/mp4", blob="aaaa"
            )
        ),
        ResourceLink(name="a.png", uri="https://example.org/a.png", mime_type="image/png", size=3),
        ResourceLink(name="b", uri="https://example.org/", mime_type="image/png"),
        ResourceLink(name="plain,hi", uri="data:text/plain,hi", mime_type="text/plain"),
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_client_did_wrong_is_told_to_its_model(kind: str) -> None:
    """Unknown names, tools that are off and bad arguments are errors with what to do."""
    async with connected(create_server(Tools), kind) as client:
        for name, arguments, said in (
            ("ad", {}, "Did you mean `add`?"),
            ("wipe", {"path": "/"}, "not available"),
            ("add", {"a": "x"}, "`a`"),
            ("add", {"a": 1, "c": 2}, "no such field"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert said in text_of(result)
            assert "Rejected" not in text_of(result)
    assert RAN == []


@pytest.mark.parametrize("kind", KINDS)
async def test_only_what_was_meant_for_the_client_is_told(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A `ToolError` is told; any other exception is logged, and its text stays here."""
    told_of: list[Any] = []

    async def reported(progress: float, total: Any, message: Any) -> None:
        told_of.append(message)

    async with connected(create_server(Tools), kind) as client:
        told = await client.call_tool("fail", {"how": "said"})
        assert text_of(told) == "[execution_failed] Execution failed: the disk is full"
        for name, arguments in (("fail", {"how": "raise"}), ("unfit", {})):
            caplog.clear()
            result = await client.call_tool(name, arguments, progress_callback=reported)
            assert (text_of(result), result.is_error) == (f"Tool {name!r} failed.", True)
            records = [each for each in caplog.records if each.name == "lutum.mcp"]
            assert [(each.levelno, bool(each.exc_info)) for each in records] == [
                (logging.ERROR, True)
            ]
    assert told_of == []
    with pytest.raises(
        MisuseError, match="create_server takes True or False for `show_errors`, not 'no'"
    ):
        create_server(Tools, show_errors="no")  # type: ignore[arg-type]
    async with connected(create_server(Tools, show_errors=True), kind) as client:
        result = await client.call_tool("fail", {"how": "raise"})
        assert text_of(result) == "Tool 'fail' failed: secret: /etc/passwd"


@tool_fn(idempotent=True)
async def pass_on(how: str, ctx: ToolContext) -> str:
    """Tell what another tool said."""
    if ctx.inner is None:
        ctx.request_calls([("fail", {"how": how})])
    return ctx.inner.results[0].model_text


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_not_meant_for_the_client_is_not_passed_on(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a call within another the text stays here too, though the asking call reads it."""
    both = Toolset.of("Both", fail, pass_on)
    hooks = both.HookSet()
    seen: list[str] = []

    @hooks.after(both["fail"])
    def show(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(result.model_text)

    for how, told, logged in (
        ("said", "[execution_failed] Execution failed: the disk is full", []),
        ("raise", "[execution_failed] Tool 'fail' failed.", [logging.ERROR]),
    ):
        caplog.clear()
        async with connected(create_server(both, hooks=hooks), kind) as client:
            assert text_of(await client.call_tool("pass_on", {"how": how})) == told
        records = [each for each in caplog.records if each.name == "lutum.mcp"]
        assert [each.levelno for each in records] == logged
    assert "secret" in seen[-1]
    async with connected(create_server(both, show_errors=True), kind) as client:
        result = await client.call_tool("pass_on", {"how": "raise"})
        assert text_of(result) == "[execution_failed] Tool 'fail' failed: secret: /etc/passwd"


async def test_a_client_is_told_what_is_in_doubt() -> None:
    """It is no plain failure where a tool says that nobody knows, and where it was cut off and
    raised something on being stopped, whose text stays here.
    """

    @tool_fn
    def pay() -> str:
        raise ExceptionGroup("both", [OutcomeUnknown("the bank is silent"), OSError("secret")])

    @tool_fn(timeout=0.01)
    async def late() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("secret")
        return ""

    async with connected(create_server(Toolset.of("Bank", pay, late))) as client:
        said = [await client.call_tool(name, {}) for name in ("pay", "late")]
    assert all(each.is_error for each in said)
    assert [text_of(each) for each in said] == [
        "[outcome_unknown] Outcome unknown: the bank is silent",
        (
            "[timed_out] Outcome unknown: the tool did not finish within 0.01 seconds and raised "
            "OSError. It may have had its effects."
        ),
    ]


async def test_a_cap_lets_no_text_out() -> None:
    """A result that was cut off to fit is still that of an exception, which stays here."""

    @tool_fn
    def long() -> str:
        raise ValueError("secret " * 500)

    class Capped(Toolset):
        wordy = tool(long, result_cap=ResultCap(400))

    async with connected(create_server(Capped)) as client:
        result = await client.call_tool("long", {})
    assert text_of(result) == "Tool 'long' failed."


def deciding(**decisions: Any) -> Any:
    """A hook set of `Tools` that decides as it is told."""
    hooks = Tools.HookSet()

    @hooks.on(Tools.add)
    def on_add(metadata: ToolMetadata, input: Any) -> Any:
        return decisions.get("hook", RunNormally(input))

    @hooks.gate()
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        decision = decisions.get("gate")
        return decision(metadata, input) if callable(decision) else decision

    return hooks


@pytest.mark.parametrize("kind", KINDS)
async def test_hooks_and_gates_decide_as_in_any_round(kind: str) -> None:
    """A call is completed, blocked or changed by hooks before it is run, and its result after."""
    for hooks, text, is_error in (
        (deciding(hook=Complete(7)), "7", False),
        (deciding(gate=Block("not now")), "not now", True),
    ):
        async with connected(create_server(Tools, hooks=hooks), kind) as client:
            result = await client.call_tool("add", {"a": 1})
            assert (text_of(result), result.is_error) == (text, is_error)
    assert RAN == []

    def doubling(call: AnyToolCall) -> AnyToolCall:
        call.input = {"a": 21, "b": 21}
        return call

    hooks = Tools.HookSet()

    @hooks.after(Tools.fail)
    def coerce(call: AnyToolCall, result: ToolResult) -> ToolResult:
        return ToolResult(
            id=result.id, name=result.name, arguments=result.arguments, result='"coerced"'
        )

    async with connected(create_server(Tools, hooks=hooks), kind) as client:
        assert text_of(await client.call_tool("fail", {"how": "raise"})) == "coerced"
    async with connected(create_server(Tools, hooks=doubling), kind) as client:
        assert text_of(await client.call_tool("add", {"a": 1})) == "42"


async def test_a_plain_function_may_reject() -> None:
    """What rejects a call tells its reason, without the mark of a rejection."""

    def no(call: AnyToolCall) -> RejectedCall:
        return call.reject("never")

    async with connected(create_server(Tools, hooks=no)) as client:
        assert text_of(await client.call_tool("add", {"a": 1})) == "never"


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_a_hook_that_raises_is_a_failure_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error of hooks stays here, and leaves no open round behind."""

    def broken(metadata: ToolMetadata, input: Any) -> Any:
        raise ValueError("secret")

    async with connected(create_server(Tools, hooks=deciding(gate=broken))) as client:
        result = await client.call_tool("add", {"a": 1})
    gc.collect()
    assert (text_of(result), result.is_error) == ("Tool 'add' failed.", True)
    assert "secret" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
async def test_what_fails_after_the_tool_ran_is_told_as_that(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client must not take a hook that raises about a result for a tool that did nothing."""
    hooks = Tools.HookSet()

    @hooks.after(Tools.add)
    def broken(call: AnyToolCall, result: ToolResult) -> None:
        raise ValueError("secret")

    RAN.clear()
    for show, text in ((False, "."), (True, ": ")):
        server = create_server(Tools, hooks=hooks, show_errors=show)
        async with connected(server, kind) as client:
            result = await client.call_tool("add", {"a": 1})
        told = f"Tool 'add' ran, and what followed failed{text}"
        assert result.is_error
        assert text_of(result).startswith(told) if show else text_of(result) == told
    assert "secret" in caplog.text


async def test_hidden_parameters_and_contexts_come_from_the_server() -> None:
    """Values may depend on the request, and a context may be of your own making."""
    seen: list[Any] = []

    @tool_fn
    def who(user: Annotated[str, Skip()], ctx: ToolContext) -> str:
        ctx.report_progress("running", "awaiting", 0.5)
        seen.append(ctx.run.actor)
        return user

    def context(call: AnyToolCall, request: Any, sink: Any) -> ToolContext:
        return ToolContext.for_call(call, sink=sink, run=RunIdentity(actor=request.method))

    tools = Toolset.of("Who", who)
    for skipped in ({"user": "ann"}, lambda request: {"user": "ann"}):
        server = create_server(tools, skipped=skipped, context=context)
        async with connected(server) as client:
            assert text_of(await client.call_tool("who", {})) == "ann"
    assert seen == ["tools/call", "tools/call"]


async def test_a_hidden_parameter_that_a_function_forgot_is_a_failure() -> None:
    """What only the call shows to be missing is logged, and told as any failure."""
    server = create_server(Toolset.of("Who", whoami), skipped=lambda request: {})
    async with connected(server) as client:
        result = await client.call_tool("whoami", {})
    assert (text_of(result), result.is_error) == ("Tool 'whoami' failed.", True)


async def test_handlers_do_tools_without_functions() -> None:
    """A table of handlers serves input models."""
    run = Undone.Handlers()

    @run.on(Undone.count)
    def count(input: Count) -> int:
        return input.to

    server = create_server(Undone, handlers=run, skipped={"user": "ann"})
    async with connected(server) as client:
        assert text_of(await client.call_tool("count", {"to": 3})) == "3"
        assert text_of(await client.call_tool("whoami", {})) == "ann"


def test_what_no_call_could_do_is_found_at_once() -> None:
    """No toolset, nobody to do a tool, no value, another's handlers: told when it is made."""
    for nothing in (Toolset, int, "Tools"):
        with pytest.raises(MisuseError, match="served is a toolset"):
            create_server(nothing)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="These tools of Undone have no function: `count`"):
        create_server(Undone, skipped={"user": "x"})
    with pytest.raises(MisuseError, match="`skipped`, not 5"):
        create_server(Tools, skipped=5)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="context=5: pass a function that makes"):
        create_server(Tools, context=5)  # type: ignore[arg-type]
    texts: tuple[Any, ...] = ({"name": 5}, {"version": None}, {"instructions": 5})
    for wrong in texts:
        with pytest.raises(MisuseError, match="create_server takes a text"):
            create_server(Tools, **wrong)
    with pytest.raises(MisuseError, match="`whoami` needs `user`"):
        create_server(Undone, available=[Undone.whoami])
    with pytest.raises(MisuseError, match="are of Tools"):
        create_server(Undone, handlers=Tools.Handlers())
    with pytest.raises(UnknownToolError):
        create_server(Tools, available=["nothing"])
    with pytest.raises(HookError, match="The hooks are of Undone"):
        create_server(Tools, hooks=Undone.HookSet())
    for no_hooks in (3, Undone, [deciding()], Tools.HookSet):
        with pytest.raises(MisuseError, match="decides about no call"):
            create_server(Tools, hooks=no_hooks)  # type: ignore[arg-type]
    for keys in (5, "secret" * 8, b"secret" * 8):
        with pytest.raises(MisuseError, match=r"`state_keys`, not a \w+\. Write `state_keys=\["):
            create_server(Tools, state_keys=keys)  # type: ignore[arg-type]
    for wrong in ({"limit": 0}, {"default_timeout": 0}, {"state_keys": ["short"]}):
        with pytest.raises(InvalidValueError):
            create_server(Tools, **wrong)


# Questions.

ASK = SuspendTicket(message="Add them?")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "why": {"type": "string"},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
        "sizes": {"type": "array", "items": {"anyOf": [{"const": "s", "title": "Small"}]}},
    },
    "required": ["why"],
}


class Person:
    """Whoever sits at the client: answers as told, and keeps what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, context: Any, params: Any) -> Any:
        self.asked.append((params.message, params.requested_schema))
        return self.answers.pop(0)


def yes(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_gate_asks_the_user_of_the_client(kind: str) -> None:
    """Accepted, the call runs as it was shown; else it does not, and the model is told."""
    hooks = deciding(gate=Suspend(ASK))
    for answer, text, is_error in (
        (yes(), "3", False),
        (ElicitResult(action="decline"), "Cancelled: the user declined.", True),
        (ElicitResult(action="cancel"), "Cancelled: the user did not answer.", True),
    ):
        RAN.clear()
        person = Person(answer)
        server = create_server(Tools, hooks=hooks)
        async with connected(server, kind, elicitation_callback=person) as client:
            result = await client.call_tool("add", {"a": 2})
        assert (text_of(result), result.is_error) == (text, is_error)
        assert person.asked == [("Add them?", {"type": "object", "properties": {}})]
        assert bool(RAN) is not is_error


@tool_fn
def unpack(raw: Base64Bytes, cents: Annotated[int, AfterValidator(lambda c: c * 100)]) -> str:
    """Unpack bytes, and pay for that."""
    return f"{raw.decode()} for {cents}"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_shown_to_the_user_of_the_client_is_what_runs(kind: str) -> None:
    """An input is validated once, also where the whole plan is with the client meanwhile."""
    tools = Toolset.of("Unpacking", tool(unpack, needs_approval=True))
    person = Person(yes())
    async with connected(create_server(tools), kind, elicitation_callback=person) as client:
        result = await client.call_tool("unpack", {"raw": "YUdrPQ==", "cents": 5})
    assert text_of(result) == "aGk= for 500"
    assert person.asked[0][0] == 'unpack {"raw":"YUdrPQ==","cents":5}?'


@tool_fn(idempotent=True)
async def adds(each: list[int], ctx: ToolContext) -> list[str]:
    """Add one to each, by calls of another tool."""
    if ctx.inner is None:
        ctx.request_calls([("add", {"a": number}) for number in each], state=b"began")
    assert ctx.inner.state == b"began"
    return [result.model_text for result in ctx.inner.results]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_asks_for_others_is_one_request(kind: str) -> None:
    """Each call within is decided about and shown to after-hooks, and a question names the path."""
    both = Toolset.of("Both", add, adds)
    seen: list[str] = []

    def ask(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(ASK)

    def show(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(call.name)

    for hooks in (both.HookSet(), None):
        if hooks is not None:
            hooks.gate(both["add"])(ask)
            hooks.after()(show)
        person = Person(yes(), ElicitResult(action="decline"))
        server = create_server(both, hooks=hooks, show_errors=True)
        async with connected(server, kind, elicitation_callback=person) as client:
            result = await client.call_tool("adds", {"each": [1, 2]})
        asked = [message.partition(" (call mcp_") for message, _ in person.asked]
        if hooks is None:
            assert (text_of(result), asked) == ('["2","3"]', [])
            continue
        assert text_of(result) == '["2","Cancelled: the user declined."]'
        assert [tools for tools, _, _ in asked] == ["adds > add"] * 2
        assert [path.rpartition("/")[2] for _, _, path in asked] == [
            "1): Add them?",
            "2): Add them?",
        ]
    assert seen == ["add", "adds"]


@tool_fn
async def order(item: str, ctx: ToolContext) -> str:
    """Order, once somebody said why."""
    RAN.append(item)
    if ctx.resume is None:
        ctx.suspend(
            SuspendTicket(
                action="explain",
                response_schema=FORM,
                resume_mode="pass_decision_to_tool",  # type: ignore[arg-type]
            )
        )
    return f"{item}: {ctx.resume.result['why']}"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_approved_call_passes_its_hooks(kind: str) -> None:
    """Before-hooks are told of a call that was approved, and a gate may block it by now."""
    gate: list[Any] = [Suspend(ASK), Suspend(ASK), Suspend(ASK), Block("closed by now")]
    hooks = deciding(gate=lambda metadata, input: gate.pop(0))
    told: list[str] = []

    def tell(metadata: ToolMetadata, input: Any) -> None:
        told.append(metadata.name)

    hooks.before(Tools.add)(tell)
    server = create_server(Tools, hooks=hooks)
    async with connected(server, kind, elicitation_callback=Person(yes(), yes())) as client:
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
        result = await client.call_tool("add", {"a": 2})
    assert (text_of(result), result.is_error) == ("closed by now", True)
    assert told == ["add"]
    assert RAN == [(1, 1)]


@pytest.mark.parametrize("kind", ["direct", "legacy"])
async def test_a_function_that_asks_is_asked_once(kind: str) -> None:
    """A plain function in the place of hooks does not make an approved call wait again."""
    asked: list[str] = []

    def hooks(call: AnyToolCall) -> SuspendedCall:
        asked.append(call.name)
        return call.suspend(ASK)

    server = create_server(Tools, hooks=hooks)
    async with connected(server, kind, elicitation_callback=Person(yes())) as client:
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
    assert asked == ["add"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_asks_by_its_own_form(kind: str) -> None:
    """A tool that suspends itself gets the fields of its form, after its gate was answered."""
    tools = Toolset.of("Orders", order)
    hooks = tools.HookSet()

    @hooks.gate()
    def gate(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(ASK)

    person = Person(yes(), yes(why="hungry"))
    server = create_server(tools, hooks=hooks)
    async with connected(server, kind, elicitation_callback=person) as client:
        result = await client.call_tool("order", {"item": "pie"})
    assert text_of(result) == "pie: hungry"
    assert [message for message, _ in person.asked] == ["Add them?", "explain: order"]
    asked = person.asked[1][1]
    assert asked["required"] == ["why"]
    assert RAN == ["pie", "pie"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_that_does_not_fit_runs_nothing(kind: str) -> None:
    """What the form does not allow is told, and the tool is not run again."""
    person = Person(yes(other=1))
    server = create_server(Toolset.of("Orders", order))
    async with connected(server, kind, elicitation_callback=person) as client:
        result = await client.call_tool("order", {"item": "pie"})
    assert result.is_error
    assert "does not fit the response schema" in text_of(result)
    assert RAN == ["pie"]


NO_FORMS: list[Any] = [
    {"type": "boolean"},
    {"type": "object", "properties": {"a": {"type": "object"}}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
    {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [{}]}}}},
    {"type": "object", "properties": {"a": True}},
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    {"type": "object", "properties": [], "x": 1},
    {"type": "object", "anyOf": [{"required": ["a"]}]},
]


async def test_a_cancellation_of_a_function_of_the_server_is_a_failure() -> None:
    """A client whose request was not cancelled has an answer, whatever a function awaited."""

    def skipped(request: Any) -> Any:
        raise asyncio.CancelledError

    server = create_server(Tools, skipped=skipped)
    async with connected(server, "direct") as client:
        result = await client.call_tool("add", {"a": 1})
    assert result.is_error
    assert text_of(result) == "Tool 'add' failed."


@tool_fn
async def both(ctx: ToolContext) -> str:
    """Add, and order."""
    if ctx.inner is None:
        ctx.request_calls([("add", {"a": 1}), ("order", {"item": "pie"})])
    return "done"


@pytest.mark.parametrize("person", [None, Person(yes(other=1))])
async def test_a_client_reads_what_was_done_within_its_call(person: Person | None) -> None:
    """Where nobody answers, the call of the client is not told as one that did nothing."""
    server = create_server(Toolset.of("Orders", both, order, add))
    async with connected(server, "direct", elicitation_callback=person) as client:
        result = await client.call_tool("both", {})
    assert result.is_error
    text = text_of(result)
    assert "The tool was not run again. Tool 'both' was started, and did not go on." in text
    assert "/1 of tool add: success" in text
    assert "/2 of tool order: indeterminate" in text


async def test_a_client_reads_what_was_never_started_within_its_call() -> None:
    """A call within that waits for its approval is told as one that did nothing."""
    made = Toolset.of("Orders", both, tool(order, needs_approval=True), add)
    async with connected(create_server(made), "direct", elicitation_callback=None) as client:
        result = await client.call_tool("both", {})
    assert "/1 of tool add: success" in text_of(result)
    assert "/2 of tool order: not executed" in text_of(result)


@pytest.mark.parametrize("kind", ["direct", "legacy"])
async def test_a_question_that_is_no_form_is_named(kind: str) -> None:
    """Where no form can ask it, or the client shows none, the model is told what was asked."""
    tickets = [SuspendTicket(message="Q?", response_schema=schema) for schema in NO_FORMS]
    tickets.append(SuspendTicket(message="Q?", resume_mode="use_decision_as_tool_result"))  # type: ignore[arg-type]
    for ticket in tickets:
        server = create_server(Tools, hooks=deciding(gate=Suspend(ticket)))
        async with connected(server, kind) as client:
            result = await client.call_tool("add", {"a": 1})
        assert result.is_error
        assert text_of(result).endswith("which this client cannot give: Q? The tool was not run.")
    server = create_server(Toolset.of("Orders", order))
    async with connected(server, kind, elicitation_callback=None) as client:
        result = await client.call_tool("order", {"item": "pie"})
    assert text_of(result).endswith("explain: order The tool was not run again.")
    assert RAN == ["pie"]


async def test_a_client_that_fails_to_ask_is_told_so() -> None:
    """On the older protocol a client may refuse in the middle of a call."""
    person = Person(ErrorData(code=-1, message="no"))
    server = create_server(Tools, hooks=deciding(gate=Suspend(ASK)))
    async with connected(server, "legacy", elicitation_callback=person) as client:
        result = await client.call_tool("add", {"a": 1})
    assert "which this client cannot give: Add them?" in text_of(result)
    assert RAN == []


async def _asked(client: Client, **arguments: Any) -> InputRequiredResult:
    result = await client.session.call_tool("add", arguments, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


@pytest.mark.parametrize("kind", ["direct", "http"])
async def test_a_state_that_is_not_ours_runs_nothing(kind: str) -> None:
    """Edited, of another call, of another server or without an answer: an error of the protocol."""
    server = create_server(Tools, hooks=deciding(gate=Suspend(ASK)))
    other = create_server(Tools, hooks=deciding(gate=Suspend(ASK)))
    async with connected(other, kind) as client:
        foreign = (await _asked(client, a=1)).request_state
    async with connected(server, kind) as client:
        asked = await _asked(client, a=1)
        (request,) = (asked.input_requests or {}).values()
        assert isinstance(request, ElicitRequest)
        state = asked.request_state or ""
        answers: Any = {"decision": yes()}
        edited = state[:-5] + ("aaaaa" if state[-5:] != "aaaaa" else "bbbbb")
        wrong: list[tuple[Any, Any, Any]] = [
            ({"a": 1}, edited, answers),
            ({"a": 2}, state, answers),
            ({"a": 1}, foreign, answers),
            ({"a": 1}, state, {}),
            ({"a": 1}, state, {"other": yes()}),
        ]
        for arguments, given, told in wrong:
            with pytest.raises(MCPError, match=r"requestState|inputResponses"):
                await client.call_tool("add", arguments, request_state=given, input_responses=told)
        assert RAN == []
        first = await client.call_tool(
            "add", {"a": 1}, request_state=state, input_responses=answers
        )
        assert text_of(first) == "2"


async def test_a_state_is_honoured_for_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late answer is an error of the protocol, and nothing runs."""
    server = create_server(Tools, hooks=deciding(gate=Suspend(ASK)))
    answers: Any = {"decision": yes()}
    async with connected(server) as client:
        state = (await _asked(client, a=1)).request_state
        good: Any = {"request_state": state, "input_responses": answers}
        real = time.time
        with monkeypatch.context() as later:
            later.setattr(time, "time", lambda: real() + 601)
            with pytest.raises(MCPError, match="expired"):
                await client.call_tool("add", {"a": 1}, **good)
        assert RAN == []
        assert text_of(await client.call_tool("add", {"a": 1}, **good)) == "2"


async def test_answers_without_a_state_approve_nothing() -> None:
    """A client cannot bring an approval along with its first round."""
    server = create_server(Tools, hooks=deciding(gate=Suspend(ASK)))
    async with connected(server) as client:
        result = await client.session.call_tool(
            "add", {"a": 1}, input_responses={"decision": yes()}, allow_input_required=True
        )
    assert isinstance(result, InputRequiredResult)
    assert RAN == []


async def test_processes_that_share_a_key_serve_the_same_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever has the key goes on, unless its tool is another by now."""
    keys = ["k" * 32]
    hooks = deciding(gate=Suspend(ASK))
    one = create_server(Tools, hooks=hooks, state_keys=keys)
    async with connected(one) as client:
        state = (await _asked(client, a=1)).request_state
    async with connected(create_server(Tools, hooks=hooks, state_keys=keys)) as client:
        result = await client.call_tool(
            "add", {"a": 1}, request_state=state, input_responses={"decision": yes()}
        )
        assert text_of(result) == "2"

    @tool_fn(name="add")
    def changed(a: int, b: int = 1, c: int = 1) -> int:
        raise AssertionError

    newer = create_server(Toolset.of("Newer", changed), name="Tools", state_keys=keys)
    async with connected(newer) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.call_tool(
                "add", {"a": 1}, request_state=state, input_responses={"decision": yes()}
            )
    assert "has changed since" in caplog.text


# Progress, limits, cancellation.


@pytest.mark.parametrize("kind", KINDS)
async def test_progress_goes_out_in_order_and_rises(kind: str) -> None:
    """Reports of any thread come before the answer, each figure above the last."""

    @tool_fn
    def count(ctx: ToolContext) -> str:
        ctx.report_progress("running", "begin")
        for done in (1, 2, 2, 1):
            ctx.report_progress("running", f"{done} of 4", loaded=done, total=4)
        ctx.report_activity("other", {"x": 1})
        ctx.emit_observer("not for you")
        ctx.report_progress("done", None, 1.0)
        return "done"

    got: list[tuple[float, float | None, str | None]] = []

    async def reported(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, total, message))

    async with connected(create_server(Toolset.of("Counting", count)), kind) as client:
        result = await client.call_tool("count", {}, progress_callback=reported)
        assert text_of(result) == "done"
    figures = [each[0] for each in got]
    assert figures == sorted(set(figures))
    assert [each[2] for each in got] == ["begin", "1 of 4", "2 of 4", "2 of 4", "1 of 4", None]
    assert [round(each[0], 6) for each in got] == [0, 1, 2, 2, 2, 2]


async def test_progress_rises_over_all_calls_of_a_request() -> None:
    """Calls within another report to the same client, each from the beginning."""

    @tool_fn
    def half(ctx: ToolContext) -> None:
        for done in (0.5, 1.0):
            ctx.report_progress("running", str(done), done)

    @tool_fn(idempotent=True)
    def twice(ctx: ToolContext) -> None:
        ctx.report_progress("running", "begin")
        if ctx.inner is None:
            ctx.request_calls([("half", {}), ("half", {})])

    got: list[tuple[float, str | None]] = []

    async def reported(progress: float, total: Any, message: str | None) -> None:
        got.append((progress, message))

    async with connected(create_server(Toolset.of("Halves", half, twice))) as client:
        assert not (await client.call_tool("twice", {}, progress_callback=reported)).is_error
    figures = [each for each, _ in got]
    assert figures == sorted(set(figures))
    assert [each for _, each in got] == ["begin", "0.5", "1.0", "0.5", "1.0", "begin"]


@pytest.mark.parametrize("error", [ConnectionError, asyncio.CancelledError])
async def test_a_report_that_cannot_be_sent_loses_no_result(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """What a tool gave is told, whatever became of its reports."""

    @tool_fn
    def report(ctx: ToolContext) -> str:
        ctx.report_progress("running", "half", 0.5)
        return "done"

    async def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(ServerSession, "report_progress", broken)
    async with connected(create_server(Toolset.of("Reports", report))) as client:
        assert text_of(await client.call_tool("report", {})) == "done"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_is_cancelled_while_its_reports_go_out_ends(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own cancellation is no failure of a report: the report is given up."""
    begun, given_up = asyncio.Event(), asyncio.Event()

    @tool_fn
    def report(ctx: ToolContext) -> str:
        ctx.report_progress("running", "half", 0.5)
        return "done"

    async def stuck(*_: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    monkeypatch.setattr(ServerSession, "report_progress", stuck)
    async with connected(create_server(Toolset.of("Reports", report)), kind) as client:
        task = asyncio.create_task(client.call_tool("report", {}))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(given_up.wait(), 10)


async def test_a_slow_client_gets_the_latest_reports() -> None:
    """A flood of reports is bounded, and what is dropped is the oldest of what waits."""

    @tool_fn
    async def flood(ctx: ToolContext) -> str:
        for number in range(1, 2001):
            ctx.report_progress("running", loaded=number)
        return "done"

    got: list[float] = []

    async def reported(progress: float, total: Any, message: Any) -> None:
        got.append(progress)

    async with connected(create_server(Toolset.of("Floods", flood))) as client:
        await client.call_tool("flood", {}, progress_callback=reported)
    assert len(got) <= 256
    assert got[-1] == 2000


async def test_calls_run_at_once_up_to_the_limit() -> None:
    """As many run at once as the limit says, and all without one."""
    running, most, free = 0, 0, asyncio.Event()

    @tool_fn
    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            free.set()
        await asyncio.sleep(0)
        if limit is None:
            await free.wait()
        running -= 1
        return "done"

    for limit, expected in ((None, 3), (2, 2)):
        running = most = 0
        server = create_server(Toolset.of("Work", work), limit=limit)
        async with connected(server) as client:
            await asyncio.gather(*(client.call_tool("work", {}) for _ in range(3)))
        assert most == expected


async def test_a_deadline_is_told() -> None:
    """A call that takes longer than it may is told as one in doubt."""

    @tool_fn
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    async with connected(create_server(Toolset.of("Hangs", hang), default_timeout=0.05)) as client:
        result = await client.call_tool("hang", {})
    assert result.is_error
    assert text_of(result).startswith("[timed_out] Outcome unknown")


@pytest.mark.parametrize("is_sync", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancelled_request_cancels_the_token(kind: str, is_sync: bool) -> None:
    """A client that gives up stops the tool by its token, and the server goes on to serve."""
    started, stopped = threading.Event(), threading.Event()
    shared: list[Any] = []

    def waits(ctx: ToolContext) -> str:
        started.set()
        if ctx.cancellation.wait(10):
            stopped.set()
        return ""

    async def async_waits(ctx: ToolContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if ctx.cancellation.is_cancelled:
                stopped.set()
            raise
        return ""

    def context(call: AnyToolCall, request: Any, sink: Any) -> ToolContext:
        made = ToolContext.for_call(call, sink=sink)
        shared.append(made.cancellation)
        return made

    waiting = tool_fn(name="waits")(waits if is_sync else async_waits)
    tools = Toolset.of("Waits", waiting, add)
    async with connected(create_server(tools, context=context), kind) as client:
        task = asyncio.create_task(client.call_tool("waits", {}))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(stopped.wait, 10)
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
    assert not shared[0].is_cancelled


async def test_sessions_see_nothing_of_each_other() -> None:
    """Calls of several clients at once get their own answers, and nothing is left of them."""
    server = create_server(Tools)
    async with over_http(server) as url:

        async def many(number: int) -> list[str]:
            async with Client(url) as client:
                calls = [client.call_tool("add", {"a": number, "b": each}) for each in range(9)]
                return [text_of(result) for result in await asyncio.gather(*calls)]

        answers = await asyncio.gather(*(many(number * 100) for number in range(4)))
    assert answers == [[str(number * 100 + each) for each in range(9)] for number in range(4)]


class Guarded(Toolset):
    add = tool(add, needs_approval=True)


@pytest.mark.parametrize("kind", ["direct", "legacy"])
async def test_an_answer_to_a_function_is_no_approval_of_a_served_tool(kind: str) -> None:
    """What a function in the place of hooks asks is one question, and the approval another."""
    RAN.clear()
    person = Person(yes(), ElicitResult(action="decline"), yes(), yes())
    server = create_server(Guarded, hooks=lambda call: call.suspend(ASK))
    async with connected(server, kind, elicitation_callback=person) as client:
        assert (await client.call_tool("add", {"a": 1})).is_error
        assert RAN == []
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
    assert [message for message, _ in person.asked] == ["Add them?", 'add {"a":1,"b":1}?'] * 2


async def _halved(a: int) -> Any:
    await asyncio.sleep(0)
    return Reject("It is odd.") if a % 2 else {"a": a // 2}


async def _is_much(input: Any) -> bool:
    await asyncio.sleep(0)
    return bool(input.a > 4)


class Ruled(Toolset):
    add = tool(add, rule=_halved, needs_approval=_is_much)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_declared_beside_a_served_tool_may_be_async(kind: str) -> None:
    """A rule and the need for an approval are awaited, without any hooks as well."""
    RAN.clear()
    person = Person(yes())
    server = create_server(Ruled)
    async with connected(server, kind, elicitation_callback=person) as client:
        assert text_of(await client.call_tool("add", {"a": 4})) == "3"
        assert "It is odd." in text_of(await client.call_tool("add", {"a": 3}))
        assert person.asked == []
        assert text_of(await client.call_tool("add", {"a": 10})) == "6"
    assert [message for message, _ in person.asked] == ['add {"a":5,"b":1}?']


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("content", "schema", "runs"),
    [
        ({"approve": False}, None, False),
        ({"approve": "no"}, None, False),
        ({"approve": None, "note": ""}, None, False),
        ({"approve": True}, None, True),
        ({"approve": False}, {"approve": {"type": "boolean"}}, False),
        ({"approve": True}, {"approve": {"type": "boolean"}}, True),
    ],
)
async def test_a_form_that_says_no_is_a_decline(
    kind: str, content: Any, schema: Any, runs: bool
) -> None:
    """A client may send off a form in which its user said no: then nothing runs."""
    RAN.clear()
    form = None if schema is None else {"type": "object", "properties": schema}
    hooks = deciding(gate=Suspend(SuspendTicket(message="Add them?", response_schema=form)))
    person = Person(yes(**content))
    async with connected(
        create_server(Tools, hooks=hooks), kind, elicitation_callback=person
    ) as client:
        result = await client.call_tool("add", {"a": 2})
    assert (bool(RAN), result.is_error) == (runs, not runs)
    assert runs or text_of(result) == "Cancelled: the user declined."
