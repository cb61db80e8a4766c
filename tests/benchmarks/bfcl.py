"""A public benchmark's function sets in every dialect: `python -m tests.benchmarks.bfcl [FOLDER]`.

They are those of the Berkeley Function Calling Leaderboard, which the package `bfcl-eval` holds:
name its folder `bfcl_eval/data`, or let `BFCL_DATA` name it. Without it nothing is tried, and said.

Of each set a toolset is made, as a user would who has these functions. It is offered in each
dialect, and each of its tools is called by the name that went out. What is counted is which sets
can be offered, and which calls come back under the tool's own name.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from lutum_py import (
    AssistantTurn,
    Message,
    NeedsTools,
    ToolDef,
    ToolMetadata,
    Toolset,
    TurnRequest,
)
from lutum_py.dialects import DIALECTS
from lutum_py.errors import ToolDefinitionError
from lutum_py.testing import ScriptedClient

FOLDER: Final = "BFCL_DATA"
ABSENT: Final = (
    "Skipped: no function sets. `pip download --no-deps bfcl-eval`, unpack the wheel, and pass its "
    f"folder bfcl_eval/data, or let {FOLDER} name it."
)
# The benchmark names types as Python, Java and JavaScript do; what it has no word for takes
# anything.
_TYPES: Final = {
    **dict.fromkeys(("dict", "object", "hashmap", "hashtable", "map"), "object"),
    **dict.fromkeys(("array", "list", "tuple", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("string", "char"), "string"),
}
_WORDS: Final = ("description", "default", "enum", "format", "minimum", "maximum", "pattern")


# Questions of several turns name the classes of the functions, which are described in a file each.
_FILES: Final = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MemoryAPI": "memory_kv",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
    "WebSearchAPI": "web_search",
}


def schema_of(said: Any) -> dict[str, Any]:
    """Give the JSON schema of a parameter, or of all of them, as the benchmark writes it."""
    if not isinstance(said, dict):
        return {}
    node: dict[str, Any] = {key: said[key] for key in _WORDS if said.get(key) is not None}
    kind = _TYPES.get(str(said.get("type")).lower())
    if kind is not None:
        node["type"] = kind
    if isinstance(said.get("properties"), dict):
        properties: dict[str, Any] = said["properties"]
        node["properties"] = {name: schema_of(part) for name, part in properties.items()}
        listed: Any = said.get("required")
        node["required"] = [each for each in listed or () if each in properties]
    if "items" in said:
        node["items"] = schema_of(said["items"])
    return node


def function_sets(folder: Path) -> Iterator[list[ToolDef]]:
    """Give each function set of the benchmark's questions."""
    for path in sorted(folder.glob("BFCL_*.json")):
        for asked in _objects(path):
            # One file holds lists of ids, no questions; a few questions come without a function.
            functions = [*(asked.get("function") or ())] if "id" in asked else []
            for name in asked.get("involved_classes") or ():
                functions += _objects(folder / "multi_turn_func_doc" / f"{_FILES[name]}.json")
            if functions:
                yield [
                    ToolDef.from_json_schema(
                        name=each["name"],
                        description=each.get("description") or "",
                        input_schema={**schema_of(each.get("parameters")), "type": "object"},
                    )
                    for each in functions
                ]


def _objects(path: Path) -> list[dict[str, Any]]:
    """Read a file with an object a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


@dataclass(slots=True)
class Counted:
    """What came of the sets in one dialect."""

    sets: int = 0
    offered: int = 0
    renamed: int = 0
    calls: int = 0
    stand_ins: int = 0
    back: int = 0


def tried(toolset: type[Toolset], dialect: str, counted: Counted) -> None:
    """Offer a set in a dialect, let a model call each of its tools, and count what came back."""
    module: Any = import_module(DIALECTS[dialect])
    definitions = toolset.definitions()
    counted.sets += 1
    asked = TurnRequest(items=[Message("user", "Go")], tools=definitions)
    try:
        body = module.encode_request(asked)
    except ToolDefinitionError:
        return
    counted.offered += not module.check(body)
    names = [each.name for each in definitions]
    sent = [module.wire_name(name) for name in names]
    calls = [
        ToolMetadata(id=f"c{number}", name=name, arguments="{}") for number, name in enumerate(sent)
    ]
    script = [AssistantTurn(tool_calls=calls)]
    outcome = toolset.read_turn(
        module.decode(ScriptedClient(script, dialect, check=False).create())
    )
    assert isinstance(outcome, NeedsTools)
    opened = outcome.round
    opened.discard()
    known = [issue.reason == "invalid_arguments" for issue in opened.recoverable_tool_call_issues]
    found = [call.name for call in opened.turn.tool_calls]
    stand_ins = sum(name != out for name, out in zip(names, sent, strict=True))
    counted.calls += len(names)
    counted.stand_ins += stand_ins
    counted.renamed += stand_ins > 0
    counted.back += sum(map(str.__eq__, names, found)) if all(known) else 0


def counts(folder: Path) -> tuple[dict[str, Counted], int]:
    """Try all sets of a folder; give what came of them by dialect, and how many are no toolset."""
    counted = {dialect: Counted() for dialect in DIALECTS}
    unmade = 0
    for definitions in function_sets(folder):
        try:
            toolset = Toolset.from_definitions("Functions", definitions)
        except ToolDefinitionError:  # two functions of one name
            unmade += 1
            continue
        for dialect, each in counted.items():
            tried(toolset, dialect, each)
    return counted, unmade


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bfcl", description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.environ.get(FOLDER))
    folder = parser.parse_args(arguments).folder
    if folder is None or not any(Path(folder).glob("BFCL_*.json")):
        print(ABSENT)
        return 0
    counted, unmade = counts(Path(folder))
    print("| dialect | sets | offered | with stand-ins | calls | by stand-ins | own name back |")
    print("|---|---|---|---|---|---|---|")
    for dialect, each in counted.items():
        row = (each.sets, each.offered, each.renamed, each.calls, each.stand_ins, each.back)
        print(f"| `{dialect}` | {' | '.join(f'{number:,}' for number in row)} |")
    print(f"No toolset, because two functions have one name: {unmade:,}")
    return int(any(each.offered < each.sets or each.back < each.calls for each in counted.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
