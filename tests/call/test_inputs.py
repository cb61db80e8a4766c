"""The laws of inputs: an input is a text, and what validating this text gives is what runs.

Every type whose values do not survive a second validation is sent every way on which a call is
shown, changed, saved or sent elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote
from uuid import UUID, uuid4

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    Base64Bytes,
    Base64Str,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    FutureDate,
    Json,
    NewPath,
    PlainSerializer,
    SecretStr,
    TypeAdapter,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)

from lutum_py import (
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError, ToolInputError
from lutum_py.execution import execute_all_sync, execute_sync, run_sync
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.private import NOTHING, Filler, has_none, same

SEEN: list[Any] = []


def picture(value: Any, *, unset: bool = True) -> Any:
    """Show a value with all that is in it, by exact types and by no method of its own."""

    def shown(value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, BaseModel):
            left = sorted(type(value).model_fields.keys() - value.model_fields_set)
            return (kind, shown(value.__dict__), shown(value.__pydantic_extra__), left * unset)
        if isinstance(value, dict):
            return (kind, [(key, shown(part)) for key, part in sorted(value.items())])
        if isinstance(value, list | tuple):
            return (kind, [shown(part) for part in value])
        if isinstance(value, set | frozenset):
            return (kind, sorted(map(repr, value)))
        if isinstance(value, SecretStr):
            return (kind, value.get_secret_value())
        if isinstance(value, datetime):
            return (kind, value.isoformat())  # of UTC there are several classes
        if hasattr(value, "__dict__"):
            return (kind, shown(vars(value)))
        return (kind, repr(value))

    return shown(value)


# Types.


def times(factor: int) -> Callable[[Any], Any]:
    return lambda value: value * factor


def doubled(secret: SecretStr) -> SecretStr:
    return SecretStr(secret.get_secret_value() * 2)


def wrapped(value: Any, handler: Callable[[Any], Any]) -> Any:
    return handler(value) + 1


Cents = Annotated[int, AfterValidator(times(100))]
Before = Annotated[int, BeforeValidator(times(100))]
JsonInJson: Any = Json[Json[int]]
JsonOfAny: Any = Annotated[Any, Json]
Wrapped = Annotated[int, WrapValidator(wrapped)]
Unquoted = Annotated[str, AfterValidator(unquote)]
Short = Annotated[str, PlainSerializer(lambda text: text.partition(";")[0])]
Rounded = Annotated[float, PlainSerializer(round)]
Spaced = Annotated[str, PlainSerializer(lambda text: text.strip())]


class Twice(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def double(cls, amount: int) -> int:
        return amount * 2


class Price(BaseModel):
    """A validator over several fields."""

    amount: int
    unit: str

    @model_validator(mode="after")
    def in_cents(self) -> Price:
        if self.unit == "eur":
            self.amount, self.unit = self.amount * 100, "cent"
        return self


class Under(BaseModel):
    """A field that another one decides about."""

    base: str
    path: str

    @field_validator("path")
    @classmethod
    def joined(cls, path: str, info: ValidationInfo) -> str:
        return f"{info.data.get('base')}/{path}"


class Patch(BaseModel):
    name: str | None = None
    phone: str | None = None
    home: Patch | None = None


class Placed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first: str = Field(validation_alias=AliasPath("names", 0))
    other: Cents = Field(1, validation_alias=AliasChoices("others", "more"))


class Extras(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Base64Bytes]
    amount: int


class Bytes(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")
    raw: bytes


class Alike(BaseModel):
    """Equal to everything."""

    amount: Cents

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Own:
    """Equal to everything as well."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Started(BaseModel):
    model_config = ConfigDict(frozen=True)
    raw: Base64Bytes
    tags: tuple[str, ...] = ()


class Numbered(BaseModel):
    id: UUID = Field(default_factory=uuid4)
    amount: Cents = 7


@dataclass
class Sum:
    parts: list[int]
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = sum(self.parts) + self.total
        self.parts = [*self.parts, 1]


TYPES: Final[dict[str, tuple[Any, Any]]] = {
    "after": (Cents, 5),
    "before": (Before, 5),
    "wrap": (Wrapped, 5),
    "items": (list[Cents], [1, 2]),
    "keys": (dict[str, Base64Bytes], {"a": "aGk="}),
    "unquote": (Unquoted, "%2541"),
    "a field": (Twice, {"amount": 3}),
    "models": (list[Twice], [{"amount": 3}]),
    "several fields": (Price, {"amount": 50, "unit": "eur"}),
    "other fields": (Under, {"base": "/srv", "path": "a"}),
    "shortened": (Short, "ls /srv; rm -rf /home"),
    "rounded": (Rounded, 1.6),
    "stripped": (Spaced, " a "),
    "Base64Bytes": (Base64Bytes, "YUdrPQ=="),
    "Base64Str": (Base64Str, "YUdrPQ=="),
    "Json": (JsonOfAny, '"[1]"'),
    "Json[T]": (Json[list[int]], "[1, 2]"),
    "Json in Json": (JsonInJson, '"5"'),
    "bytes": (Bytes, {"raw": "a+b="}),
    "a dataclass": (Sum, {"parts": [1, 2]}),
    "unset": (Patch, {"name": "x", "home": {"phone": None}}),
    "paths": (Placed, {"names": ["a"], "more": 2}),
    "extras": (Extras, {"amount": 1, "more": "YUdrPQ=="}),
    "equal": (Alike, {"amount": 2}),
    "own": (Annotated[Any, BeforeValidator(Own)], "text"),
    "frozen": (Started, {"raw": "YUdrPQ=="}),
    "factories": (Numbered, {}),
    "secret": (Annotated[SecretStr, AfterValidator(doubled)], "ab"),
    "union": (int | float | bool, 1.0),
    "text or number": (Annotated[str | int, PlainSerializer(str)], 5),
    "plain": (dict[str, list[int | None]], {"a": [1, None]}),
    "dates": (datetime, "2026-01-01T12:00:00+02:00"),
    "spans": (timedelta, 90.5),
    "decimals": (Decimal, 1.10),
    "a decimal beside": (tuple[Decimal, Base64Bytes], [1.10, "YUdrPQ=="]),
    "a set": (set[int], [3, 1, 2]),
    "future": (FutureDate, "2999-01-01"),
    "lax": (int, "5"),
}  # fmt: skip


def tools_of(kind: Any, **options: Any) -> tuple[Any, Any]:
    """A toolset with a tool of one argument of a type, and of another that is of no concern."""

    def run(given: Any, other: int = 0, late: Any = 3) -> str:
        SEEN.append((given, other, late))
        return "done"

    run.__annotations__ = {"given": kind, "other": int, "late": Cents, "return": str}
    made = tool_fn(run)
    return type("Tools", (Toolset,), {"run": tool(made, **options)}), made


def read(tools: Any, given: Any) -> Any:
    return tools.read_turn(ScriptedModel.tool_calls(("c1", "run", {"given": given}))).round


def call_of(tools: Any, arguments: Any) -> Any:
    metadata = ToolMetadata(id="c1", name="run", arguments=json.dumps(arguments))
    return tools.parse_tool_call(metadata)


def ran(call_or_plan: Any) -> Any:
    SEEN.clear()
    if hasattr(call_or_plan, "pending"):
        run_sync(call_or_plan).resolve()
    else:
        assert call_or_plan.call_sync().is_success
    (seen,) = SEEN
    return seen


TICKET: Final = SuspendTicket(message="Sure?")
Way = Callable[[Any, Any], tuple[Any, Any]]


def plainly(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind)
    plan = read(tools, given).plan()
    shown = plan.calls[0].arguments
    return ran(plan), shown


def approved(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind, needs_approval=True)
    plan = read(tools, given).plan()
    (waiting,) = plan.suspended
    shown = waiting.arguments
    plan.resume(waiting.approve())
    return ran(plan), shown


def gated(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind)
    hooks: Any = tools.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(TICKET))
    plan = read(tools, given).apply_hooks_sync(hooks)
    (waiting,) = plan.suspended
    shown = waiting.arguments
    plan.resume(waiting.approve())
    plan = plan.apply_hooks_sync(hooks)
    return ran(plan), shown


def hooked(kind: Any, given: Any) -> tuple[Any, Any]:
    """A hook on another argument."""
    tools, _ = tools_of(kind)
    hooks: Any = tools.HookSet()
    hooks.on(tools.run)(lambda metadata, input: RunNormally(input.model_copy(update={"other": 2})))
    hooks.gate()(lambda metadata, input: Suspend(TICKET))
    plan = read(tools, given).apply_hooks_sync(hooks)
    (waiting,) = plan.suspended
    shown = waiting.arguments
    plan.resume(waiting.approve())
    return ran(plan.apply_hooks_sync(hooks)), shown


def in_place(kind: Any, given: Any) -> tuple[Any, Any]:
    """A hook that assigns to another field of an input model."""
    fields = {"given": kind, "other": int, "late": Cents}
    body = {"__annotations__": fields, "other": 0, "late": 3, "__module__": __name__}
    model: Any = type("RunArgs", (ToolInput[str],), body)
    tools: Any = type("Tools", (Toolset,), {"run": tool(model)})
    hooks: Any = tools.HookSet()

    def assign(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        input.other = 2
        return RunNormally(input)

    hooks.on(tools.run)(assign)
    handlers = tools.Handlers()

    def run(input: Any) -> str:
        SEEN.append((input.given, input.other, input.late))
        return "done"

    handlers.on(tools.run)(run)
    plan = read(tools, given).apply_hooks_sync(hooks)
    SEEN.clear()
    plan = run_sync(plan, handlers=handlers)
    shown = plan.calls[0].arguments  # what was done in place is looked for as the call starts
    plan.resolve()
    (seen,) = SEEN
    return seen, shown


def ruled(kind: Any, given: Any) -> tuple[Any, Any]:
    """A rule on another argument, and an approval."""
    tools, _ = tools_of(kind, rule=lambda other: {"other": 2}, needs_approval=True)
    plan = read(tools, given).plan()
    (waiting,) = plan.suspended
    shown = waiting.arguments
    plan.resume(waiting.approve())
    return ran(plan), shown


def edited(kind: Any, given: Any) -> tuple[Any, Any]:
    """An edit of another argument."""
    tools, _ = tools_of(kind, needs_approval=True)
    plan = read(tools, given).plan()
    plan.amend_sync(plan.suspended[0].edit({"other": 2}), tools.HookSet())
    shown = plan.calls[0].arguments
    return ran(plan), shown


def edited_and_saved(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind, needs_approval=True)
    plan = tools.load_plan(read(tools, given).plan().dump_json())
    plan.amend_sync(plan.suspended[0].edit({"other": 2}), tools.HookSet())
    plan = tools.load_plan(plan.dump_json())
    shown = plan.calls[0].arguments
    return ran(plan), shown


def saved(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind)
    plan = tools.load_plan(read(tools, given).plan().dump_json())
    shown = plan.calls[0].arguments
    return ran(plan), shown


def saved_waiting(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind, needs_approval=True)
    plan = tools.load_plan(read(tools, given).plan().dump_json())
    (waiting,) = plan.suspended
    shown = waiting.arguments
    plan.resume(waiting.approve())
    plan = tools.load_plan(plan.dump_json())
    return ran(plan), shown


def stored(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind, needs_approval=True)
    model = ScriptedModel([ScriptedModel.tool_calls(("c1", "run", {"given": given}))])
    session = Session()
    session.push_user("Go.")
    plan: Any = session.text_turn(model).tools(tools).collect_sync().round.plan()  # type: ignore[union-attr]
    with open_store(":memory:", key=b"k" * 32) as store:
        store.save("one", plan, session=session)
        (waiting,) = store.waiting()
        shown = waiting.arguments
        store.decide(waiting.id, waiting.approve(), tools)
        claim: Any = store.claim(tools, lease=60)
        SEEN.clear()
        store.finish(claim, execute_sync(store.start(claim)))
        (seen,) = SEEN
    return seen, shown


def queued(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind)
    call = call_of(tools, {"given": given})
    adapter: TypeAdapter[Any] = TypeAdapter(tools.Call)
    again = adapter.validate_json(adapter.dump_json(call))
    return ran(again), again.final_arguments


def retried(kind: Any, given: Any) -> tuple[Any, Any]:
    tools, _ = tools_of(kind)
    call = call_of(tools, {"given": given})
    ran(call)
    again = call.retry()
    assert again.digest == call.digest
    return ran(again), call.final_arguments


WAYS: Final[dict[str, Way]] = {
    each.__name__: each
    for each in (
        plainly, approved, gated, hooked, in_place, ruled, edited, edited_and_saved, saved,
        saved_waiting, stored, queued, retried,
    )
}  # fmt: skip
CHANGING: Final = ("hooked", "in_place", "ruled", "edited", "edited_and_saved")


@over("name", TYPES)
@over("way", WAYS)
def test_what_the_model_sent_is_validated_once(name: str, way: str) -> None:
    """Whichever way a call goes, its tool gets what validating the model's text gave.

    What is shown of it on the way gives the same when it is validated.
    """
    kind, given = TYPES[name]
    tools, _ = tools_of(kind)
    first = call_of(tools, {"given": given}).input
    seen, shown = WAYS[way](kind, given)
    if name == "factories":  # each call has an id of its own
        assert seen[0].amount == first.given.amount
    else:
        other = 2 if way in CHANGING else 0
        assert picture(seen) == picture((first.given, other, first.late))
    if name == "secret" and way not in ("queued", "retried"):
        assert shown["given"] == "**********"
        return
    again = call_of(tools, shown).input
    if name != "factories":
        # Which members were not set is said beside what is shown.
        both = ((again.given, again.other, again.late), seen)
        assert picture(both[0], unset=False) == picture(both[1], unset=False)
    elif way != "queued":
        assert again.given.id == seen[0].id


# What is run is what was shown, also where no second reading gives the same.


class Draw(BaseModel):
    """A value that is another each time that it is read."""

    number: int

    @field_validator("number")
    @classmethod
    def drawn(cls, number: int) -> int:
        DRAWN.append(number)
        return number + len(DRAWN)


DRAWN: list[int] = []


@over("way", ["approved", "gated", "by a function"])
def test_what_no_text_describes_ends_as_an_issue_where_somebody_should_be_asked(way: str) -> None:
    """The model reads why, and nothing is raised out of the hooks."""
    tools, _ = tools_of(Draw, needs_approval=way == "approved")
    hooks: Any = tools.HookSet()
    if way == "gated":
        hooks.gate()(lambda metadata, input: Suspend(TICKET))
    if way == "by a function":
        hooks = lambda call: call.suspend(TICKET)  # noqa: E731
    plan = read(tools, {"number": 1}).apply_hooks_sync(hooks)
    (row,) = plan.calls
    assert (row.state, row.by) == ("rejected", "input")
    (result,) = plan.resolve().results
    assert "read a second time, they mean something else" in result.model_text


def test_a_program_that_lets_such_a_call_wait_runs_what_was_shown() -> None:
    """What validating the text gives after the suspension is what runs."""
    tools, _ = tools_of(Draw)
    plan = read(tools, {"number": 1}).plan()
    (call,) = plan.pending
    plan.record(call.suspend(TICKET))
    plan.resume(plan.suspended[0].approve())
    seen = ran(plan)
    assert seen[0].number == 1 + len(DRAWN)


def test_a_hook_that_gives_what_no_text_describes_is_an_error_that_names_the_field() -> None:
    """A rule as well; the call is as it was."""
    tools, made = tools_of(Before)
    hooks: Any = tools.HookSet()
    hooks.on(tools.run)(lambda metadata, input: RunNormally(input.model_copy(update={"given": 7})))
    asked = read(tools, 5)
    with pytest.raises(HookError, match="`given` would be different"):
        asked.apply_hooks_sync(hooks)
    assert asked.tool_calls[0].input.given == 500
    with pytest.raises(ToolInputError) as caught:
        asked.tool_calls[0].input = made.Input.model_construct(given=7, other=0, late=3)
    assert [each.path for each in caught.value.fields] == ["given"]
    asked.discard()


# How often.


def counting() -> tuple[Any, list[int]]:
    reads: list[int] = []

    def noted(value: int) -> int:
        reads.append(value)
        return value

    return Annotated[int, AfterValidator(noted)], reads


def test_views_loads_and_dumps_validate_nothing() -> None:
    """An input is validated when it is read, for the proof, and once where it is started."""
    kind, reads = counting()

    def run(given: Any) -> str:
        return str(given)

    run.__annotations__["given"] = kind
    tools: Any = type("Tools", (Toolset,), {"run": tool(tool_fn(run), needs_approval=True)})
    plan = read(tools, 5).plan()
    assert reads == [5, 5]
    for _ in range(2):
        assert plan.calls[0].arguments == {"given": 5}
        assert plan.suspended[0].digest.startswith("sha256:")
        assert plan.__rich__().plain
        plan = tools.load_plan(plan.dump_json())
    plan.resume(plan.suspended[0].approve())
    plan = tools.load_plan(plan.dump_json())
    assert plan.calls[0].steps[0].arguments == {"given": 5}
    assert reads == [5, 5]
    (result,) = run_sync(plan).resolve().results
    assert result.output == "5"
    assert reads == [5, 5, 5]


def test_a_plain_run_validates_once() -> None:
    """Nobody is asked, so nothing has to be proven."""
    kind, reads = counting()

    def run(given: Any) -> str:
        return str(given)

    run.__annotations__["given"] = kind
    tools: Any = type("Tools", (Toolset,), {"run": tool(tool_fn(run))})
    plan = run_sync(read(tools, 5).plan())
    assert plan.calls[0].arguments == {"given": 5}
    plan.resolve()
    assert reads == [5]


# A text that no longer fits.


@pytest.mark.parametrize("way", ["call", "run", "execute"])
def test_a_start_whose_text_no_longer_fits_ends_as_an_issue(tmp_path: Path, way: str) -> None:
    """A file that is gone is told to the model; views show the text."""
    file = tmp_path / "a.txt"
    file.write_text("a")
    tools, _ = tools_of(FilePath, needs_approval=True)
    plan = tools.load_plan(read(tools, str(file)).plan().dump_json())
    file.unlink()
    plan.resume(plan.suspended[0].approve())
    assert plan.calls[0].arguments["given"] == str(file)
    SEEN.clear()
    results: list[Any] = []
    if way == "call":
        (call,) = plan.pending
        with pytest.raises(ToolInputError, match="The arguments do not fit tool `run`: `given`"):
            call.call_sync()
        assert call.status == "cancelled"
    elif way == "run":
        plan = run_sync(plan)
    else:
        results += execute_all_sync(plan.pending)
        plan.record(results[0])  # which has it
    (row,) = plan.calls
    assert (row.state, row.arguments["given"]) == ("rejected", str(file))
    assert "started" not in [step.kind for step in row.steps]
    assert (row.steps[-1].kind, row.steps[-1].by) == ("ended", "input")
    (result,) = plan.resolve(results).results
    assert "Call it again with corrected arguments" in result.model_text
    assert SEEN == []


@over("way", ["tried again", "asked by the tool"])
@over("run", ["call", "execute"])
def test_a_call_that_was_started_does_not_become_an_issue(
    tmp_path: Path, way: str, run: str
) -> None:
    """Its tool may have had its effects, so nobody says that it was not run."""
    file = tmp_path / "a.txt"
    file.write_text("a")
    tools, _ = tools_of(FilePath)
    plan = read(tools, str(file)).plan()
    (call,) = plan.pending
    call.start()
    if way == "asked by the tool":
        plan.suspend(call.suspend(TICKET))
        plan = tools.load_plan(plan.dump_json())
        plan.resume(plan.suspended[0].approve())
    else:
        plan = tools.load_plan(plan.dump_json())
        plan.in_doubt[0].retry()
    file.unlink()
    (call,) = plan.pending
    with pytest.raises(ToolInputError, match="do not fit tool `run`: `given`"):
        call.call_sync() if run == "call" else execute_sync(call)
    assert "ended" not in [step.kind for step in call.steps]
    assert plan.pending == (call,)
    (result,) = plan.abort(Session(), "enough").results
    assert result.status == "indeterminate"


def test_what_a_tool_did_to_its_file_changes_no_row(tmp_path: Path) -> None:
    """A tool that removes its file, or makes one that may not be there, is shown as it ran."""

    def remove(given: FilePath, made: NewPath) -> str:
        given.unlink()
        made.write_text("a")
        return "done"

    globals_of = {"given": FilePath, "made": NewPath, "return": str}
    remove.__annotations__ = globals_of
    tools: Any = type("Tools", (Toolset,), {"remove": tool(tool_fn(remove))})
    file, new = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("a")
    arguments = {"given": str(file), "made": str(new)}
    turn = ScriptedModel.tool_calls(("c1", "remove", arguments))
    plan = run_sync(tools.read_turn(turn).round.plan())
    for _ in range(2):
        (row,) = plan.calls
        assert (row.state, row.arguments) == ("finished", arguments)
        assert row.steps[0].arguments == arguments
        assert plan.__rich__().plain
        plan = tools.load_plan(plan.dump_json())
    (result,) = plan.resolve().results
    assert (result.output, result.ran_with) == ("done", None)


# Members that were not set.


class Leaf(BaseModel):
    name: str = ""
    more: int | None = None


class Tree(BaseModel):
    leaves: list[Leaf] = []
    by_name: dict[str, Leaf] = {}
    tags: set[str] | None = None
    best: Leaf | None = None


SENT: Final[dict[str, Any]] = {
    "nothing": {},
    "all": {"given": {"leaves": [], "by_name": {}, "tags": [], "best": None}, "other": 1},
    "a list": {"given": {"leaves": [{"name": "a"}, {"more": 1}, {}]}},
    "a mapping": {"given": {"by_name": {"a": {}, "b": {"name": "", "more": None}}}},
    "a set": {"given": {"tags": ["b", "a"], "best": {"more": 2}}},
    "a null": {"given": {"best": None}},
}


@over("name", SENT)
@over("kind", [Tree, Leaf])
def test_a_text_knows_what_was_not_set_however_deep(name: str, kind: Any) -> None:
    """It is what the models know, of which nobody asks the parameters of the function itself."""

    def run(given: Any = None, other: int = 0) -> str:
        return "done"

    run.__annotations__["given"] = kind | None
    tools: Any = type("Tools", (Toolset,), {"run": tool(tool_fn(run))})
    given: Any = SENT[name].get("given", {}) if kind is Tree else {"more": len(name)}
    call = call_of(tools, {**SENT[name], "given": given})
    assert call.spec.arguments.is_faithful
    text = call.spec.arguments.whole(call.input)
    filler = Filler(has_none)
    filler.filled(text.data, call.input, NOTHING)
    assert sorted(map(str, text.unset)) == sorted(map(str, filler.unset))
    assert same(call.spec.read_again(text), call.input)
    assert text.set_data["given"] == given | (
        {"tags": sorted(given["tags"])} if given.get("tags") else {}
    )


@over("is_saved", [False, True])
@over("changes", [{}, {"other": 2}, {"given": {"name": "y", "phone": None, "home": None}}])
def test_an_approved_patch_sets_what_the_model_set(is_saved: bool, changes: Any) -> None:
    """`exclude_unset` gives what was sent, or what the person changed, nested too."""
    tools, _ = tools_of(Patch, needs_approval=True)
    plan = read(tools, {"name": "x"}).plan()
    plan = tools.load_plan(plan.dump_json()) if is_saved else plan
    (waiting,) = plan.suspended
    assert waiting.arguments["given"] == {"name": "x", "phone": None, "home": None}
    plan.amend_sync(waiting.edit(changes), tools.HookSet())
    plan = tools.load_plan(plan.dump_json()) if is_saved else plan
    given, *_ = ran(plan)
    assert given.model_dump(exclude_unset=True) == {"name": "y" if "given" in changes else "x"}


def test_another_set_of_members_is_another_digest() -> None:
    """`{"phone": null}` erases the phone, and `{}` does not: no approval of one is of the other."""
    tools, _ = tools_of(Patch)
    one, other = (call_of(tools, {"given": each}) for each in ({}, {"phone": None}))
    assert one.final_arguments == other.final_arguments
    assert one.digest != other.digest


# Edits.


def test_an_edit_that_changes_more_than_it_names_is_shown_again() -> None:
    """`base` alone turns `/srv/a` into `/etc/a`: a person has to see that."""
    tools, _ = tools_of(Under, needs_approval=True)
    plan = read(tools, {"base": "/srv", "path": "passwd"}).plan()
    edit = plan.suspended[0].edit({"given": {"base": "/etc", "path": "passwd"}})
    plan.amend_sync(edit, tools.HookSet())
    (again,) = plan.suspended
    assert again.arguments["given"] == {"base": "/etc", "path": "passwd"}
    plan.resume(again.approve())
    assert ran(plan)[0].path == "/etc/passwd"


@over("kind, given, edited, runs", [
    (Cents, 5, 6, 600),
    (JsonOfAny, '{"a": 1, "b": 2}', '{"a": 3}', {"a": 3}),
    (list[Cents], [1, 2], [1, 3], [100, 300]),
    (Base64Bytes, "YUdrPQ==", "aGk=", b"hi"),
])  # fmt: skip
def test_an_edit_of_a_member_is_read_as_the_models_text_is(
    kind: Any, given: Any, edited: Any, runs: Any
) -> None:
    """Once, and the call is approved by that."""
    tools, _ = tools_of(kind, needs_approval=True)
    plan = read(tools, given).plan()
    plan.amend_sync(plan.suspended[0].edit({"given": edited}), tools.HookSet())
    assert picture(ran(plan)[0]) == picture(runs)


def test_an_edit_repairs_a_text_that_no_longer_fits(tmp_path: Path) -> None:
    """Nobody can tell what else it changes, so it is shown once more."""
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("a")
    other.write_text("b")
    tools, _ = tools_of(FilePath, needs_approval=True)
    plan = tools.load_plan(read(tools, str(file)).plan().dump_json())
    file.unlink()
    plan.amend_sync(plan.suspended[0].edit({"given": str(other)}), tools.HookSet())
    plan.resume(plan.suspended[0].approve())
    assert ran(plan)[0] == other


# What is kept is what ran.


@over("name", ["factories", "after", "Base64Bytes"])
def test_the_key_of_a_try_is_the_key_of_what_it_ran_with(name: str) -> None:
    """Two tries under one key have one input, values of default factories too."""
    kind, given = TYPES[name]
    tools, _ = tools_of(kind)
    call = call_of(tools, {"given": given})
    key = call.idempotency_key
    first = ran(call)
    assert call.idempotency_key == key
    again = call.retry()
    assert (again.idempotency_key, picture(ran(again))) == (key, picture(first))


def test_what_is_read_after_the_run_is_what_ran() -> None:
    """Also if nobody looked at the input before, and a default is made anew each time."""
    tools, _ = tools_of(Numbered)
    call = call_of(tools, {"given": {}})
    seen = ran(call)
    assert call.final_arguments["given"]["id"] == str(seen[0].id)
    assert picture(ran(call.retry())) == picture(seen)


def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    """As it does where it is read."""
    tools, _ = tools_of(Cents, needs_approval=True)
    text = '{"given": 1, "given": 2}'
    call = tools.parse_tool_call(ToolMetadata(id="c1", name="run", arguments=text))
    assert call.final_arguments["given"] == 2
    given: Any = call.input
    assert given.given == 200


def test_a_name_of_a_field_is_the_one_that_is_written() -> None:
    """Whoever looks an argument up finds it, by whichever name the model sent it."""

    def send(to: Any, at: Any = 0) -> str:
        return f"{to} {at}"

    send.__annotations__ = {
        "to": Annotated[str, Field(validation_alias=AliasChoices("recipient", "payee"))],
        "at": Annotated[Cents, Field(validation_alias=AliasPath("options", 0))],
        "return": str,
    }
    tools: Any = type("Tools", (Toolset,), {"send": tool(tool_fn(send), needs_approval=True)})
    for sent in ({"payee": "eve", "options": [1]}, {"recipient": "eve", "at": 1}):
        plan = tools.read_turn(ScriptedModel.tool_calls(("c1", "send", sent))).round.plan()
        assert plan.suspended[0].arguments == {"to": "eve", "at": 1}
        plan.resume(plan.suspended[0].approve())
        (result,) = run_sync(plan).resolve().results
        assert result.output == "eve 100"
