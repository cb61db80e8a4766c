"""An input that had to be coerced is the same whenever it is read again."""

from __future__ import annotations

from lutum_py import ToolMetadata, Toolset, tool, tool_fn


@tool_fn
def label(tags: list[str]) -> int:
    """Label."""
    tags.append("seen")
    return len(tags)


class Desk(Toolset):
    label = tool(label)


def test_what_was_coerced_is_read_the_same_again() -> None:
    """A tool owns its input and may change it; the call shows what it was started with."""
    call = Desk.parse_tool_call(
        ToolMetadata(id="c1", name="label", arguments='{"tags": "[\\"a\\"]"}')
    )
    assert call.coerced == ("tags",)
    assert call.call_sync().result == "2"
    assert call.input.tags == ["a"]  # type: ignore[attr-defined]
    assert call.final_arguments == {"tags": ["a"]}
