"""The law of any listing: what is kept can be sent to every provider, and what is not is told."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py.dialects import DIALECTS
from lutum_py.errors import ToolDefinitionError
from lutum_py.mcp import Limits

from .servers import Served, described, taken

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["\x1b[2K", "\u202e", "\U000e0041" * 9, "\ud800", "x" * 9000, "</tool>", "{{x}}", "\x00", ""]
)
# The SDK sends no half of a surrogate pair in a name, of a tool or of a field.
SENT = TEXTS.map(lambda text: text.encode(errors="replace").decode())
NAMES = st.sampled_from(["a", "a.b", "a_b", "definitions", "__init__", "x" * 128]) | SENT
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"type": "strnig"},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"$ref": "http://127.0.0.1:1/x"},
        {"enum": []},
        {"enum": ["a", 1, None]},
        {"const": {"a": [1]}},
        {"type": "array"},
        {"not": {}},
        {"pattern": "(", "type": "string"},
        {"minimum": 10**400},
        {},
        True,
        False,
    ]
)


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(SENT, inner, max_size=3)
    return st.one_of(
        st.builds(lambda fields: {"type": "object", "properties": fields}, fields),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda *each: {"anyOf": list(each)}, inner, inner),
        st.builds(lambda part, text: {"allOf": [part], "description": text}, inner, TEXTS),
    )


SCHEMAS = st.recursive(LEAVES, _wider, max_leaves=6)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(
    st.lists(
        st.builds(
            lambda name, words, fields: described(
                name,
                description=words,
                title=words,
                input_schema={"type": "object", "properties": fields},
            ),
            NAMES,
            TEXTS,
            st.dictionaries(SENT, SCHEMAS, max_size=3),
        ),
        max_size=4,
    )
)
async def test_any_listing_comes_to_something(tools: list[Any]) -> None:
    """Whatever a server lists, each tool is kept or refused in words that can be shown."""
    remote = await taken(Served(tools), limits=Limits(schema=5_000, description=100))
    assert len(remote.toolset) + len(remote.refused) == len(tools)
    for refused in remote.refused:
        assert (refused.name + refused.reason).isprintable()
        assert len(refused.reason) < 600
    for definition in remote.toolset.definitions():
        assert len(definition.description) <= 101
        for dialect in map(import_module, DIALECTS.values()):
            try:
                sent = dialect.tools([definition])
            except ToolDefinitionError:
                continue  # a provider that cannot express it says so before any request
            json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()


async def test_a_draft_that_is_no_address_spoils_no_listing() -> None:
    """A `$schema` that nothing can look up is none: its tool is there, and so are the others."""
    odd = described("odd", input_schema={"$schema": "http://[::1", "type": "object"})
    remote = await taken(Served([described("fine"), odd]))
    assert [definition.name for definition in remote.toolset.definitions()] == ["fine", "odd"]
