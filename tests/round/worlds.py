"""A world of files and rows, and plans of random calls that are run in it.

What a call does takes time: it reads when it begins, and changes the world when it ends. Whoever
runs calls at once therefore loses an edit where two of them meet. `fault` runs a plan in turn, and
then at once, begins each call as soon as the plan's order lets it, and says how the two differ.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, TypeAlias, TypeVar

from lutum_py import AnyToolCall, NeedsTools, ToolDef, ToolRound, ToolRoundPlan, Toolset
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.testing import ScriptedModel

T = TypeVar("T", bound=Toolset)
World: TypeAlias = dict[tuple[str, str], str]
Changes: TypeAlias = dict[tuple[str, str], str | None]

FILE_NAMES = (
    "a",
    "A",
    "./a",
    "d/a",
    "d/../a",
    "d/b",
    "D\\b",
    "d",
    "d/*",
    "/srv/a",
    "../a",
    "",
    "b ",
)
KEYS = (1, "1", 2, "x", "X ", "y", None)


def file_named(path: str) -> str:
    """What a system without case calls a file, seen from /srv, where `..` stays in it."""
    path = path.strip().replace("\\", "/").lower().removesuffix("/*")
    return posixpath.normpath(posixpath.join("/srv", path))


def key_named(key: object) -> str:
    return str(key).strip().lower()


def below(world: Mapping[tuple[str, str], str], name: str) -> list[tuple[str, str]]:
    """What is a file, or in a folder."""
    return sorted(k for k in world if k[0] == "file" and f"{k[1]}/".startswith(f"{name}/"))


# Each tool: what it reads when it begins, and what it changes when it ends by what it read.

Tool: TypeAlias = Callable[[World, str, dict[str, Any]], tuple[object, Changes]]


def _read(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    return [world[k] for k in below(world, file_named(given["path"]))], {}


def _write(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    return None, {("file", file_named(given["path"])): id}


def _append(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    name = ("file", file_named(given["path"]))
    text = world.get(name, "") + id
    return text, {name: text}


def _delete(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    gone = below(world, file_named(given["path"]))
    return gone, dict.fromkeys(gone)


def _rename(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    old, new = ("file", file_named(given["old"])), ("file", file_named(given["new"]))
    text = world.get(old)
    return text, {} if text is None else {old: None, new: text}


def _get(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    asked = given["keys"]
    keys = asked if isinstance(asked, list) else [asked]
    return [world.get(("row", key_named(key))) for key in keys], {}


def _put(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    name = ("row", key_named(given["key"]))
    return world.get(name), {name: f"{world.get(name)}{id}"}


def _guess(world: World, id: str, given: dict[str, Any]) -> tuple[object, Changes]:
    return sorted(world), {("row", "guessed"): id, ("file", "/srv/guessed"): id}


TOOLS: dict[str, tuple[Tool, tuple[ToolEffect, ...]]] = {
    "read": (_read, (ToolEffect("read_file", "path"),)),
    "write": (_write, (ToolEffect("write_file", "path"),)),
    "append": (_append, (ToolEffect("write_file", "path"),)),
    "delete": (_delete, (ToolEffect("delete_file", "path"),)),
    "rename": (_rename, (ToolEffect("delete_file", "old"), ToolEffect("write_file", "new"))),
    "get": (_get, (ToolEffect("network_request", "keys", area="rows"),)),
    "put": (_put, (ToolEffect("persist_memory", "key", area="rows"),)),
    "guess": (_guess, ()),
}

ARGUMENTS = {
    "rename": ("old", "new"),
    "get": ("keys",),
    "put": ("key",),
    "guess": (),
}


def tools(without: tuple[str, int] | None = None) -> type[Toolset]:
    """The tools, perhaps with one effect of one declared to be nothing that anyone could meet."""
    definitions: list[ToolDef] = []
    for name, (_, effects) in TOOLS.items():
        listed = [
            ToolEffect("generate_media") if (name, at) == without else effect
            for at, effect in enumerate(effects)
        ]
        properties: dict[str, Any] = {key: {} for key in ARGUMENTS.get(name, ("path",))}
        definitions.append(
            ToolDef.from_json_schema(
                name=name,
                input_schema={"type": "object", "properties": properties},
                capabilities=ToolCapabilities(effects=listed),
            )
        )
    return Toolset.of("World", *definitions)


def round_of(made: type[T], *calls: tuple[str, str, dict[str, Any]]) -> ToolRound[T]:
    """A round of these calls."""
    read = made.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(read, NeedsTools)
    return read.round


def random_plan(random: Random, made: type[Toolset], most: int = 8) -> ToolRoundPlan[Any]:
    """A plan of some calls about few things."""
    names, keys = random.sample(FILE_NAMES, 3), random.sample(KEYS, 3)
    calls: list[tuple[str, str, dict[str, Any]]] = []
    for place in range(random.randint(2, most)):
        (name,) = random.choices([*TOOLS], [3, 3, 3, 2, 3, 3, 3, 1])
        given: dict[str, Any] = {}
        for key in ARGUMENTS.get(name, ("path",)):
            given[key] = random.choice(keys if key.startswith("key") else names)
        if name == "get" and random.random() < 0.5:
            given["keys"] = random.choices(keys, k=2)
        calls.append((f"c{place}.", name, given))
    return round_of(made, *calls).plan()


START: World = {
    **{("file", file_named(name)): name for name in ("a", "d/a", "d/b", "/x")},
    **{("row", key): key for key in ("1", "x", "none")},
}


class Run:
    """A world in which calls are started and ended."""

    def __init__(self) -> None:
        self.world: World = dict(START)
        self.read: dict[str, object] = {}
        self._going: dict[str, Changes] = {}

    def start(self, call: AnyToolCall) -> None:
        do = TOOLS[call.name][0]
        given: Any = call.spec.arguments.to_data(call.input)
        self.read[call.id], self._going[call.id] = do(self.world, call.id, given)

    def end(self, id: str) -> None:
        for name, text in self._going.pop(id).items():
            self.world.pop(name, None)
            if text is not None:
                self.world[name] = text

    def at_once(
        self, random: Random, calls: Iterable[AnyToolCall], order: Mapping[str, Iterable[str]]
    ) -> None:
        """Start each call at any moment from which on the order lets it, and end it at any."""
        waiting = {call.id: call for call in calls}
        ended: set[str] = set()
        while waiting or self._going:
            free = [id for id in waiting if ended.issuperset(order[id])]
            id = random.choice([*free, *self._going])
            if id in waiting:
                self.start(waiting.pop(id))
            else:
                self.end(id)
                ended.add(id)


def fault(random: Random, plan: ToolRoundPlan[Any]) -> str | None:
    """Say what differs where a plan is run at once, by its order and by its batches."""
    serial, free, grouped = Run(), Run(), Run()
    for call in plan.pending:
        serial.start(call)
        serial.end(call.id)
    free.at_once(random, plan.pending, plan.order())
    for group in plan.batches():
        grouped.at_once(random, group, {call.id: () for call in group})
    for way, run in (("order", free), ("batches", grouped)):
        if (run.read, run.world) != (serial.read, serial.world):
            asked = [(call.id, call.name, call.metadata.arguments) for call in plan.pending]
            return f"by {way}: {asked} {plan.order()}"
    return None


def faults(seed: int, plans: int, made: type[Toolset]) -> list[str]:
    """Run that many random plans, and give what is wrong."""
    random = Random(seed)
    found: list[str] = []
    for _ in range(plans):
        with random_plan(random, made) as plan:
            wrong = fault(random, plan)
            found += [] if wrong is None else [wrong]
    return found
