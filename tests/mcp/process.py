"""A server as a process, on standard streams or HTTP: `python -m tests.mcp.process [http]`.

What it is called with is appended to the file in `CALLS`, one line a call.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import stdio_server
from mcp.types import CallToolRequestParams, InputRequiredResult

from .servers import Answer, Request, Served, described, form, over_http, said

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def noted(what: dict[str, Any]) -> None:
    if path := os.environ.get("CALLS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


async def does(request: Request, params: CallToolRequestParams) -> Answer:
    answers = {key: each.model_dump() for key, each in (params.input_responses or {}).items()}
    noted({"tool": params.name, "answers": answers, "state": params.request_state})
    if params.name == "die":
        os._exit(3)
    if params.name == "hang":
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            noted({"stopped": type(error).__name__})
            raise
    if params.name == "ask" and not answers:
        return InputRequiredResult(
            input_requests={"amount": form(SCHEMA, "How many?")}, request_state="state 1"
        )
    return said(json.dumps(answers) if answers else "done")


served = Served([described(name) for name in ("ok", "die", "hang", "ask")], does)


async def main() -> None:
    if sys.argv[1:] == ["http"]:
        async with over_http(served.server) as url:
            print(url, flush=True)
            await asyncio.Event().wait()
    async with stdio_server() as (incoming, outgoing):
        options = served.server.create_initialization_options()
        await served.server.run(incoming, outgoing, options)


if __name__ == "__main__":
    asyncio.run(main())
