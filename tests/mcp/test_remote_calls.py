"""The laws of a call that goes to a server: sent once, and told as far as it is known."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context as MCPContext
from mcp.types import (
    HEADER_MISMATCH,
    REQUEST_TIMEOUT,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

from lutum_py import (
    AssistantTurn,
    Attachment,
    CallStatus,
    Labels,
    Session,
    ToolContext,
    ToolMetadata,
    ToolResult,
)
from lutum_py.capabilities import ToolCapabilities
from lutum_py.context import CancellationToken, ToolEvent
from lutum_py.errors import MisuseError, TimedOut
from lutum_py.execution import execute, outcomes_of
from lutum_py.mcp import Limits, remote_tools

from .servers import (
    KINDS,
    OBJECT,
    REPOSITORY,
    Answer,
    Request,
    Served,
    by_stdio,
    call_of,
    connected,
    described,
    said,
)

COUNT: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
PIXEL = b64encode(b"pixel").decode()


async def result_of(answer: Answer, *, output: Any = None, **options: Any) -> ToolResult:
    """What a call comes to whose server answers so."""
    server = Served([described(output_schema=output)], answer)
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote", **options)
        return await call_of(remote).call()


def content(*blocks: Any, **fields: Any) -> CallToolResult:
    return CallToolResult(content=list(blocks), **fields)


ANSWERS: list[tuple[CallToolResult, Any, str]] = [
    (said("hello"), "hello", "hello"),
    (content(), "", ""),
    (content(structured_content={"n": 1}), {"n": 1}, '{"n":1}'),
    (content(structured_content=[1, 2]), [1, 2], "[1,2]"),
    (content(structured_content="plain"), "plain", "plain"),
    (said("one", structured_content={"n": 1}), {"n": 1}, "one"),
    (said('{\n  "n": 1\n}', structured_content={"n": 1}), {"n": 1}, '{"n":1}'),
    (said("plain", structured_content="plain"), "plain", "plain"),
    (
        content(
            TextContent(text="Found:"),
            TextContent(text='{"n": 1}'),
            TextContent(text='{"n":1}'),
            structured_content={"n": 1},
        ),
        {"n": 1},
        'Found:\n{"n":1}',
    ),
    (said("[" * 9000, structured_content=[]), [], "[" * 9000),
]


async def test_structure_is_for_the_program_and_text_for_the_model() -> None:
    """The output is the structure, or else the text; the model reads nothing twice."""
    for answer, output, read in ANSWERS:
        result = await result_of(answer)
        shown = (result.output, result.model_text, result.status)
        assert shown == (output, read, "success"), answer


async def test_files_come_as_attachments_and_links_as_lines() -> None:
    """What carries a file becomes an attachment; what names one a line, and nothing is fetched."""
    text = TextResourceContents(uri="file:///a.txt", text="hi")
    blob = BlobResourceContents(uri="file:///a.bin", blob=PIXEL)
    film = BlobResourceContents(uri="film", blob=PIXEL, mime_type="video/mp4")
    result = await result_of(
        content(
            ImageContent(data=PIXEL, mime_type="image/png"),
            AudioContent(data=PIXEL, mime_type="audio/wav"),
            EmbeddedResource(resource=blob),
            EmbeddedResource(resource=film),
            EmbeddedResource(resource=text),
            ResourceLink(name="b\x1b", uri="file:///b", description="Two\nlines"),
            ResourceLink(name="c", uri="file:///c"),
        )
    )
    assert result.model_text.splitlines() == [
        "[file:///a.txt]",
        "hi",
        "[link] b\\x1b <file:///b>: Two lines",
        "[link] c <file:///c>",
    ]
    assert result.attachments == (
        Attachment(
            media_type="image", mime_type="image/png", url=f"data:image/png;base64,{PIXEL}", size=5
        ),
        Attachment(
            media_type="audio", mime_type="audio/wav", url=f"data:audio/wav;base64,{PIXEL}", size=5
        ),
        Attachment(
            media_type="file",
            mime_type="application/octet-stream",
            url=f"data:application/octet-stream;base64,{PIXEL}",
            caption="file:///a.bin",
            size=5,
        ),
        Attachment(
            media_type="video",
            mime_type="video/mp4",
            url=f"data:video/mp4;base64,{PIXEL}",
            caption="film",
            size=5,
        ),
    )


async def test_what_carries_no_file_is_a_line() -> None:
    """Data that is no base64, and a type that is none, are told in the text."""
    odd = BlobResourceContents(uri="x", blob="*", mime_type="a/b")
    result = await result_of(
        content(
            ImageContent(data="no base64", mime_type="image/png"),
            ImageContent(data=PIXEL, mime_type="image/png;x=\r\n"),
            EmbeddedResource(resource=odd),
        )
    )
    assert result.attachments == ()
    assert result.model_text.splitlines() == [
        "[image of type image/png, which cannot be read]",
        "[image of type image/png;x=, which cannot be read]",
        "[file x of type a/b, which cannot be read]",
    ]


async def test_an_error_of_the_tool_is_kept_whole() -> None:
    """`isError` is an error with all that came along."""
    image = ImageContent(data=PIXEL, mime_type="image/png")
    result = await result_of(
        content(TextContent(text="full"), image, structured_content={"n": "x"}, is_error=True),
        output=COUNT,
    )
    assert (result.status, result.code, result.output) == ("error", "tool_error", {"n": "x"})
    assert result.model_text == "[tool_error] full"
    assert len(result.attachments) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (content(structured_content={"code": "FULL", "wait": 30}), '{"code":"FULL","wait":30}'),
        (said('{ "code": "FULL" }', structured_content={"code": "FULL"}), '{"code":"FULL"}'),
        (said(" ", structured_content={"code": "FULL"}), '{"code":"FULL"}'),
        (said("no room", structured_content={"code": "FULL"}), "no room"),
        (content(structured_content="no room"), "no room"),
        (said("no room", structured_content="no room"), "no room"),
        (content(structured_content=["no room"]), '["no room"]'),
        (content(structured_content=False), None),
        (content(structured_content=" "), None),
        (content(structured_content={}), None),
        (content(structured_content=None), None),
        (said("\n"), None),
        (content(), None),
    ],
)
async def test_the_model_reads_why_a_tool_failed_wherever_the_server_says_it(
    answer: CallToolResult, reason: str | None
) -> None:
    """The text of an error is what the model reads; where there is none, the structure is."""
    result = await result_of(answer.model_copy(update={"is_error": True}))
    assert (result.status, result.code) == ("error", "tool_error")
    reason = reason or "The tool failed, and the server does not say why."
    assert result.model_text == f"[tool_error] {reason}"


@pytest.mark.parametrize(
    ("answer", "output", "said"),
    [
        (said("one", structured_content={"n": "1"}), {"n": "1"}, "`$.n`"),
        (said("one"), None, "is missing"),
        (content(structured_content={}), {}, "'n' is a required"),
    ],
)
async def test_an_output_that_does_not_fit_says_that_the_tool_ran(
    answer: CallToolResult, output: Any, said: str
) -> None:
    """Structure against the schema is an error that keeps what came."""
    result = await result_of(answer, output=COUNT)
    assert (result.status, result.code) == ("error", "invalid_output")
    assert result.model_text.startswith("[invalid_output] The tool ran, and ")
    assert said in result.model_text
    assert result.output == (output if output is not None else "one")
    assert (await result_of(content(structured_content={"n": 1}), output=COUNT)).is_success


async def test_a_result_that_is_none_of_json_says_that_the_tool_ran() -> None:
    """A number that Python does not read is no output."""
    result = await result_of(content(structured_content=10**5000))
    assert (result.code, result.status) == ("invalid_output", "error")


async def test_a_result_has_a_limit() -> None:
    """What is longer is not kept, whatever it is made of."""
    link = ResourceLink(name="n", uri="u" * 40)
    text = EmbeddedResource(resource=TextResourceContents(uri="u", text="x" * 40))
    blob = EmbeddedResource(resource=BlobResourceContents(uri="u", blob=PIXEL * 5))
    image = ImageContent(data=PIXEL * 5, mime_type="image/png")
    long: tuple[Any, ...] = (TextContent(text="x" * 40), link, text, blob, image)
    for block in long:
        result = await result_of(content(block), limits=Limits(result=30))
        assert (result.code, result.status) == ("result_too_large", "error")
        assert "x" * 9 not in result.result
    structured = content(structured_content=["x" * 40])
    assert (await result_of(structured, limits=Limits(result=30))).code == "result_too_large"
    assert (await result_of(said("x" * 30), limits=Limits(result=30))).is_success


async def test_an_answer_that_is_no_result_leaves_a_doubt() -> None:
    """What is not of the protocol leaves that call in doubt, and the connection goes on."""
    server = Served([described()])
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        dispatcher: Any = client.session._dispatcher
        send = dispatcher.send_raw_request

        async def raw(method: str, *rest: Any) -> Any:
            got = await send(method, *rest)
            return {"resultType": "task", "taskId": "x"} if method == "tools/call" else got

        dispatcher.send_raw_request = raw
        result = await call_of(remote).call()
        assert (result.code, result.status) == ("invalid_output", "indeterminate")
        assert "not a result of the protocol" in result.model_text
    assert len(server.received) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_of_the_server_leaves_a_doubt(kind: str) -> None:
    """An error of the protocol is told with its number, on one line."""

    async def refuses(request: Request, params: CallToolRequestParams) -> Answer:
        raise MCPError(-32050, "not\nfor \x1b[2Kyou")

    async with connected(Served([described()], refuses), kind) as client:
        result = await call_of(await remote_tools(client, "Remote")).call()
    assert (result.code, result.status) == ("mcp_error", "indeterminate")
    assert result.model_text == (
        "[mcp_error] Outcome unknown: the server answered with error -32050 (not for "
        "\\x1b[2Kyou). The tool may have had its effects."
    )


async def test_a_header_that_does_not_match_is_a_change() -> None:
    """A server that has another schema by now did not run the tool, and is not asked again."""

    async def refuses(request: Request, params: CallToolRequestParams) -> Answer:
        raise MCPError(HEADER_MISMATCH, "stale")

    server = Served([described()], refuses)
    async with connected(server) as client:
        result = await call_of(await remote_tools(client, "Remote")).call()
    assert (result.code, result.status, len(server.received)) == ("tool_changed", "error", 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_that_changed_is_not_called(kind: str) -> None:
    """Between the listing and the call a tool may go or change: then it is not called."""
    server = Served([described("a"), described("b"), described("c")])
    async with connected(server, kind) as client:
        remote = await remote_tools(client, "Remote")
        changed = {**OBJECT, "required": ["x"], "properties": {"x": {}}}
        server.tools = [described("a", input_schema=changed), described("b", description="new")]
        for name, code in (("a", "tool_changed"), ("b", None), ("c", "tool_changed")):
            result = await call_of(remote, name).call()
            assert result.code == code
    assert [each.name for each in server.received] == ["b"]


async def test_a_tool_that_cannot_be_looked_up_is_not_called() -> None:
    """What goes wrong before the call was sent had no effects, and is told so."""
    server = Served([described()])
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        for error, code in (
            (MCPError(-32050, "no"), "mcp_error"),
            (MCPError(REQUEST_TIMEOUT, "late"), "timed_out"),
            (anyio.ClosedResourceError(), "connection_lost"),
        ):
            session: Any = client.session
            kept, session.list_tools = session.list_tools, fails_with(error)
            result = await call_of(remote).call()
            session.list_tools = kept
            assert (result.status, result.code) == ("error", code)
        server.tools = [described(input_schema={"type": "object", "default": 10**5000})]
        assert (await call_of(remote).call()).code == "tool_changed"
    assert server.received == []


def fails_with(error: Exception) -> Any:
    async def fails(*_: Any, **__: Any) -> Any:
        raise error

    return fails


async def test_a_listing_that_is_none_keeps_the_call_back() -> None:
    """Where the look-up finds no listing at all, the tool is not called."""
    server = Served([described()])
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        dispatcher: Any = client.session._dispatcher
        send = dispatcher.send_raw_request

        async def raw(method: str, *rest: Any) -> Any:
            return {"tools": 3} if method == "tools/list" else await send(method, *rest)

        dispatcher.send_raw_request = raw
        result = await call_of(remote).call()
        assert (result.status, result.code) == ("error", "mcp_error")
        assert result.model_text.endswith("The tool was not called.")
    assert server.received == []


async def test_a_trusted_server_is_not_looked_up() -> None:
    """Verifying goes by trust, where the user says nothing else."""
    for trusted, verify, more in (
        (True, None, 0),
        (True, True, 1),
        (False, None, 1),
        (False, False, 0),
    ):
        server = Served([described()])
        async with connected(server) as client:
            remote = await remote_tools(client, "Remote", trusted=trusted, verify=verify)
            assert (await call_of(remote).call()).is_success
        assert server.listings == 1 + more


async def test_no_cache_answers_for_a_server() -> None:
    """A server is asked before each call, however long it says that its listing holds."""
    server = Served([described()])

    async def listed(request: Request, params: Any) -> ListToolsResult:
        server.listings += 1
        return ListToolsResult(tools=server.tools, ttl_ms=60_000)

    server.server = Server("fresh", on_list_tools=listed, on_call_tool=server.call)
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        assert (await call_of(remote).call()).is_success
        assert server.listings == 2
        server.tools = [described("other")]
        assert (await call_of(remote).call()).code == "tool_changed"
        assert (await remote.refresh()).changed_since(remote) == {"other": "added", "t": "removed"}
        assert server.listings == 4


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_of_functions_is_one_like_any_other(kind: str) -> None:
    """What the SDK makes of plain functions is listed, called, and fails as it should."""
    functions = MCPServer("functions")

    @functions.tool()
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    @functions.tool()
    async def fail(context: MCPContext) -> str:
        await context.report_progress(1, 2, "half")
        raise ValueError("no luck")

    events: list[Any] = []
    async with connected(functions, kind) as client:
        remote = await remote_tools(client, "Remote")
        assert not remote.refused
        result = await call_of(remote, "add", a=2).call()
        assert (result.output, result.model_text) == ({"result": 3}, "3")
        call = call_of(remote, "fail")
        result = await call.call(context=ToolContext.for_call(call, sink=events.append))
        assert (result.status, result.code) == ("error", "tool_error")
        assert result.model_text == "[tool_error] Error executing tool fail"
    assert [event.content["progress"] for event in events] == [0.5]


async def test_progress_is_reported_within_its_range() -> None:
    """Figures of a server become a report, brought into range, with its words made legible."""
    figures: list[tuple[float, float | None, str | None]] = [
        (1, 4, "a\u202eb"),
        (9, 4, None),
        (2, None, None),
        (0.5, None, None),
        (-1, 0, None),
        (float("nan"), float("inf"), None),
    ]

    async def reports(request: Request, params: CallToolRequestParams) -> Answer:
        for each in figures:
            await request.session.report_progress(*each)
        return said()

    events: list[ToolEvent] = []
    async with connected(Served([described()], reports)) as client:
        remote = await remote_tools(client, "Remote")
        call = call_of(remote)
        await call.call(context=ToolContext.for_call(call, sink=events.append))
    names = ("progress", "loaded", "total", "message")
    assert [tuple(event.content.get(name) for name in names) for event in events] == [  # type: ignore[union-attr]
        (0.25, 1, 4, "ab"),
        (1.0, 9, 4, None),
        (None, 2, None, None),
        (None, None, None, None),
        (None, None, None, None),
        (None, None, None, None),
    ]


class Hanging:
    """A tool that never answers, and keeps whether it was stopped."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

    async def __call__(self, request: Request, params: CallToolRequestParams) -> Answer:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        raise AssertionError


HINTS = {
    "none": ToolAnnotations(),
    "idempotent": ToolAnnotations(idempotent_hint=True),
    "reading": ToolAnnotations(read_only_hint=True),
}


@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_token_stops_the_call_and_tells_the_server(kind: str, hints: str) -> None:
    """A call that is asked to stop ends at once, in doubt unless its tool only reads."""
    hangs = Hanging()
    server = Served([described(annotations=HINTS[hints])], hangs)
    async with connected(server, kind) as client:
        remote = await remote_tools(client, "Remote", trusted=True)
        call, token = call_of(remote), CancellationToken()
        running = asyncio.create_task(
            call.call(context=ToolContext.for_call(call, cancellation=token))
        )
        await hangs.started.wait()
        token.cancel("enough")
        result = await running
        await hangs.stopped.wait()
        status = "cancelled" if hints == "reading" else "indeterminate"
        assert (result.status, result.code) == (status, "cancelled")
        assert "enough" in result.model_text
        again = call_of(remote)
        late = await again.call(context=ToolContext.for_call(again, cancellation=token))
        assert (late.status, late.code) == ("cancelled", "cancelled")
    assert len(server.received) == 1


async def test_a_token_without_a_reason_stops_too() -> None:
    """Nobody has to say why."""
    token = CancellationToken()
    token.cancel()
    async with connected(Served([described()])) as client:
        call = call_of(await remote_tools(client, "Remote"))
        result = await call.call(context=ToolContext.for_call(call, cancellation=token))
    assert result.model_text == "[cancelled] Cancelled: the call was asked to stop"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deadline_stops_the_call_and_tells_the_server(kind: str) -> None:
    """Under `execute`, in `call()` and by the client's own clock a deadline leaves a doubt."""
    hangs = Hanging()
    async with connected(Served([described()], hangs), kind) as client:
        remote = await remote_tools(client, "Remote", timeout=0.5, verify=False)
        result = await execute(call_of(remote))
        assert isinstance(result, ToolResult)
        assert (result.status, result.code) == ("indeterminate", "timed_out")
        await hangs.stopped.wait()
        with pytest.raises(TimedOut) as caught:
            await call_of(remote).call()
        assert caught.value.is_in_doubt
    for hints, known in HINTS.items():
        status = "error" if hints == "reading" else "indeterminate"
        server = Served([described(annotations=known)], Hanging())
        async with connected(server, kind) as client:
            remote = await remote_tools(client, "Remote", trusted=True)
            client.session._session_read_timeout_seconds = 0.2  # from here on: not to list
            result = await call_of(remote).call()
        assert (result.status, result.code) == (status, "timed_out")


async def test_a_cancelled_task_stays_cancelled() -> None:
    """The task's own cancellation goes on, tells the server, and an abort tells the model."""
    hangs, session = Hanging(), Session()
    async with connected(Served([described()], hangs)) as client:
        remote = await remote_tools(client, "Remote")
        turn = AssistantTurn(tool_calls=[ToolMetadata(id="c1", name="t", arguments="{}")])
        plan = remote.toolset.read_turn(turn).round.plan()  # type: ignore[union-attr]
        running = asyncio.create_task(plan.pending[0].call())
        await hangs.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await hangs.stopped.wait()
        assert plan.pending[0].status is CallStatus.RUNNING
        (result,) = plan.abort(session, "The user left.").results
        assert result.status == "indeterminate"


async def test_a_call_runs_in_the_loop_of_its_client() -> None:
    """Elsewhere, and from sync code, it is a mistake that says what to do."""
    server = Served([described()])
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote")
        with pytest.raises(MisuseError, match="is async"):
            call_of(remote).call_sync()
        elsewhere = asyncio.to_thread(asyncio.run, _call(remote))
        with pytest.raises(MisuseError, match="another one"):
            await elsewhere
    assert server.received == []


async def _call(remote: Any) -> ToolResult:
    return await call_of(remote).call()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_that_dies_leaves_a_doubt(mode: str) -> None:
    """A process that ends in the middle of a call may have done it; what was not sent was not."""
    reads = ToolCapabilities(effects=["read_file"])
    async with by_stdio("-m", "tests.mcp.process", mode=mode) as client:
        remote = await remote_tools(client, "Remote", verify=False)
        careful = await remote_tools(client, "Careful", verify=True)
        harmless = await remote_tools(client, "Harmless", verify=False, capabilities={"ok": reads})
        assert (await call_of(remote, "ok").call()).model_text == "done"
        result = await call_of(remote, "die").call()
        assert (result.status, result.code) == ("indeterminate", "connection_lost")
        result = await call_of(careful, "ok").call()
        assert (result.status, result.code) == ("error", "connection_lost")
        assert "Not called" in result.model_text
        result = await call_of(harmless, "ok").call()
        assert (result.status, result.code) == ("error", "connection_lost")
        assert "Not called" in result.model_text


async def test_a_process_is_told_that_its_call_is_cut_off(tmp_path: Path) -> None:
    """Over standard input and output the server learns of a deadline, and goes on to serve."""
    calls = tmp_path / "calls"
    async with by_stdio_noting(calls) as client:
        remote = await remote_tools(client, "Remote", verify=False)
        result = await execute(call_of(remote, "hang"), default_timeout=1)
        assert isinstance(result, ToolResult)
        assert (result.status, result.code) == ("indeterminate", "timed_out")
        assert (await call_of(remote, "ok").call()).is_success
    lines = [json.loads(line) for line in calls.read_text(encoding="utf-8").splitlines()]
    assert [each.get("tool", "stopped") for each in lines] == ["hang", "stopped", "ok"]


def by_stdio_noting(calls: Path) -> Any:
    code = f"import os, runpy; os.environ['CALLS'] = {str(calls)!r}; "
    return by_stdio("-c", code + "runpy.run_module('tests.mcp.process', run_name='__main__')")


async def test_a_connection_that_breaks_ends_the_task_of_its_client() -> None:
    """Over HTTP the SDK ends its client's block; what comes out holds what the call came to."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.mcp.process", "http"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    outcomes: Any = ()

    async def loop() -> None:
        nonlocal outcomes
        async with Client(url) as client:
            remote = await remote_tools(client, "Remote", verify=False)
            try:
                await execute(call_of(remote, "die"))
            except asyncio.CancelledError as error:
                outcomes = outcomes_of(error)
                raise

    with pytest.raises(ExceptionGroup):
        await loop()
    await process.wait()
    assert [(each.status, each.code) for each in outcomes] == [("indeterminate", "cancelled")]


async def test_a_server_labels_its_results() -> None:
    """What `_meta.ifc` says are the labels, also of an error; trust only of a trusted server."""
    ifc = {"ifc": {"integrity": "trusted", "confidentiality": ["ann"]}}
    fit, unfit = {"n": 1}, {"n": "x"}
    for fields, output in (
        ({"structured_content": fit}, COUNT),
        ({"structured_content": unfit}, COUNT),
        ({"is_error": True}, None),
    ):
        answer = CallToolResult.model_validate({"content": [], "_meta": ifc, **fields})
        for trusted in (True, False):
            result = await result_of(answer, output=output, trusted=trusted)
            assert result.labels == Labels(True if trusted else None, ["ann"]), (fields, trusted)
