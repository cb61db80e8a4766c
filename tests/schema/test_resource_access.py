"""The laws of what calls access, and of which accesses conflict."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BeforeValidator, Field, WithJsonSchema

from lutum_py import ToolDef, ToolInput, ToolMetadata, Toolset, tool, tool_fn, tool_input
from lutum_py._schema.capabilities import beside
from lutum_py.capabilities import ResourceAccess, ToolCapabilities, ToolEffect
from tests.cases import over

WRITES = ToolCapabilities(effects=[ToolEffect("write_file", "path")])
ORDERS = ToolCapabilities(effects=[ToolEffect("network_request", "key", area="orders")])


def accesses(capabilities: ToolCapabilities, **arguments: Any) -> tuple[ResourceAccess, ...]:
    """What a call with these arguments touches, of a tool that takes any."""
    names: dict[str, Any] = {effect.target or "none": {} for effect in capabilities.effects}
    definition = ToolDef.from_json_schema(
        name="act",
        input_schema={"type": "object", "properties": names},
        capabilities=capabilities,
    )
    tools = Toolset.of("Tools", definition)
    metadata = ToolMetadata(id="c1", name="act", arguments=json.dumps(arguments))
    return tools.parse_tool_call(metadata).accesses


def target(capabilities: ToolCapabilities, **arguments: Any) -> str | None:
    """The one target that such a call has."""
    (touch,) = accesses(capabilities, **arguments)
    return touch.target


def test_a_tool_that_declares_nothing_touches_everything() -> None:
    """What says nothing of its effects stands alone, also once they were asked for."""

    @tool_fn
    def act(path: str) -> str:
        return path

    class Tools(Toolset):
        act_ = tool(act)

    call = Tools.parse_tool_call(ToolMetadata(id="c1", name="act", arguments='{"path": "a"}'))
    assert call.accesses == (ResourceAccess("*", None, True),)
    assert Tools.act_.definition.capabilities == ToolCapabilities()
    assert call.accesses == (ResourceAccess("*", None, True),)


def test_what_only_makes_media_meets_nothing() -> None:
    """An effect without an area accesses nothing that could conflict with another call."""
    assert accesses(ToolCapabilities(effects=["generate_media"])) == ()


def test_a_process_touches_everything_whatever_its_target() -> None:
    """In the area of everything there is no part that a target could name."""
    effects = [ToolEffect("run_process", "key"), ToolEffect("read_file", "key", area="*")]
    made = accesses(ToolCapabilities(effects=effects), key="ls")
    assert made == (ResourceAccess("*", None, True), ResourceAccess("*", None, False))


def test_each_effect_and_each_element_is_a_touch() -> None:
    """A call accesses what each effect names, of a list each element, and each thing once."""
    effects = [ToolEffect("delete_file", "old"), ToolEffect("write_file", "new")]
    made = accesses(ToolCapabilities(effects=effects), old="a", new=["b", ["A"], "./b"])
    assert made == (ResourceAccess("files", "a", True), ResourceAccess("files", "b", True))


@over(
    "value",
    [None, True, False, {}, {"a": 1}, "", "  ", [], [None], [{}], [""], 1j],
)
def test_what_is_not_known_is_all_of_the_area(value: Any) -> None:
    """Nothing, an object and a bool name no target; nor does what JSON does not have."""
    given = {} if value == 1j else {"key": value}
    assert target(ORDERS, **given) is None


@over(
    "value, seen",
    [
        ("A17", "a17"),
        (" a17\n", "a17"),
        ("\uff211\uff17", "a17"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        (5, "5"),
        ("5", "5"),
        (5.0, "5"),
        (5.5, "5.5"),
        (-1, "-1"),
        ("a/../b", "a/../b"),
    ],
)
def test_texts_and_numbers_are_compared_by_their_look(value: Any, seen: str) -> None:
    """Elsewhere than in files a target is a text without case, blanks and compatibility forms."""
    assert target(ORDERS, key=value) == seen


@over(
    "path, seen",
    [
        ("src/app.py", "src/app.py"),
        ("./src//app.py/", "src/app.py"),
        ("src\\app.py", "src/app.py"),
        ("src/./x/../app.py", "src/app.py"),
        ("/srv//a", "/srv/a"),
        ("Cafe\u0301.txt", "café.txt"),
        ("ﬁle", "file"),
        ("a/b/*.py", "a/b"),
        ("a/b?/c", "a"),
        ("a/[ab]/c", "a"),
        ("a/{b,c}", "a"),
        ("/srv/*", "/srv"),
        (5, "5"),
    ],
)
def test_paths_are_resolved_by_their_letters(path: Any, seen: str) -> None:
    """A path goes by what it says: separators, dots, doubled slashes, the folder of a pattern."""
    assert target(WRITES, path=path) == seen


@over(
    "path",
    [
        *("", ".", "/", "*.py", "/*", "..", "../a", "a/../../b", "/..", "a/*/../../b", "a/{../b}"),
        *("~/a", "~x", "file:///a", "C:\\a", " a", "a ", "a\n", "$HOME/a", "a/%TEMP%", "a/../."),
    ],
)
def test_a_path_that_may_be_anywhere_is_any(path: str) -> None:
    """What only a shell, a system or a server could resolve may be any file."""
    assert target(WRITES, path=path) is None


PLACES = st.lists(st.sampled_from(["a", "b", "C", "..", ".", "", "*"]), max_size=4).map("/".join)
TOUCHES = st.builds(
    ResourceAccess,
    st.sampled_from(["*", "files", "orders"]),
    st.none() | st.sampled_from(["a", "a/b", "a/b/c", "/a", "/a/b", "ab", "b"]),
    st.booleans(),
)


@given(PLACES, st.text(max_size=8))
@example("", "ŉ")
@example("", "ǰ")
def test_what_is_compared_is_compared_alike_again(path: str, text: str) -> None:
    """The form in which targets are compared is its own form."""
    for capabilities, name, value in ((WRITES, "path", path), (ORDERS, "key", text)):
        seen = target(capabilities, **{name: value})
        if seen is not None:
            assert target(capabilities, **{name: seen}) == seen


@given(st.text(max_size=8))
def test_texts_that_differ_in_case_or_composition_alone_are_the_same(text: str) -> None:
    """No way of writing the same letters makes another target."""
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert target(ORDERS, key=unicodedata.normalize(form, text)) == target(ORDERS, key=text)
    assert target(ORDERS, key=text.casefold()) == target(ORDERS, key=text)


@given(TOUCHES, TOUCHES)
def test_touches_meet_as_the_rules_say(one: ResourceAccess, other: ResourceAccess) -> None:
    """One mutates, the areas agree, and so do the targets: in files also a folder and what is in
    it, and a path of the root and one that is not.
    """
    areas = "*" in (one.area, other.area) or one.area == other.area
    a, b = one.target, other.target
    targets = a is None or b is None or a == b or "*" in (one.area, other.area)
    if not targets and one.area == other.area == "files":
        assert a is not None
        assert b is not None
        is_within = a.startswith(f"{b}/") or b.startswith(f"{a}/")
        targets = is_within or a.startswith("/") != b.startswith("/")
    assert one.conflicts_with(other) is ((one.mutating or other.mutating) and areas and targets)
    assert one.conflicts_with(other) is other.conflicts_with(one)


def test_only_paths_have_something_beside_them() -> None:
    """Relative and absolute paths may be of one file; nothing else is told in two ways."""
    assert beside(("files", "/", "a")) == ("files", ".")
    assert beside(("files", ".", "a")) == ("files", "/")
    assert beside(("files",)) is None
    assert beside(("orders", "a")) is None


@tool_input(capabilities=ToolCapabilities(effects=[ToolEffect("write_file", "b")]))
class Renamed(ToolInput[str]):
    """Write under a name of its own."""

    a: str = Field(validation_alias="b", serialization_alias="c")


class Opaque:
    """What JSON cannot carry."""


@tool_input(capabilities=WRITES)
class Held(ToolInput[str]):
    """Write with what JSON cannot carry."""

    path: str
    held: Annotated[
        object, BeforeValidator(lambda _: Opaque()), WithJsonSchema({"type": "string"})
    ] = Opaque()


def test_what_has_no_form_of_the_wire_has_what_was_sent() -> None:
    """Where a type reads one name and writes another, its target is found, also without a form."""

    class Tools(Toolset):
        renamed = tool(Renamed)
        held = tool(Held)

    for name, arguments, target in (
        ("renamed", '{"b": "x"}', "x"),
        ("held", '{"path": "x", "held": "y"}', "x"),
    ):
        call = Tools.parse_tool_call(ToolMetadata(id="c1", name=name, arguments=arguments))
        assert call.accesses == (ResourceAccess("files", target, True),)


def test_a_secret_names_no_target() -> None:
    """What is secret stands in no touch, nor does what it is in."""
    effects = [ToolEffect("modify_credential", "token"), ToolEffect("network_request", "host")]

    @tool_fn(capabilities=ToolCapabilities(effects=effects))
    def login(
        host: str, token: Annotated[str, Field(json_schema_extra={"writeOnly": True})]
    ) -> str:
        return host

    class Tools(Toolset):
        login_ = tool(login)

    metadata = ToolMetadata(id="c1", name="login", arguments='{"host": "A", "token": "t0p"}')
    assert Tools.parse_tool_call(metadata).accesses == (
        ResourceAccess("credentials", None, True),
        ResourceAccess("network", "a", False),
    )


def test_final_arguments_count() -> None:
    """What a hook made of the arguments is what the call accesses, defaults included."""

    @tool_fn(capabilities=WRITES)
    def write(text: str, path: str = "Notes.txt") -> str:
        return text

    class Tools(Toolset):
        write_ = tool(write)

    call = Tools.write_.match(
        Tools.parse_tool_call(ToolMetadata(id="c1", name="write", arguments='{"text": "a"}'))
    )
    assert call is not None
    assert call.accesses == (ResourceAccess("files", "notes.txt", True),)
    call.input = call.input.model_copy(update={"path": "other.txt"})
    assert call.accesses == (ResourceAccess("files", "other.txt", True),)
