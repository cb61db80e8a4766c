"""Turns that call tools by any name, and their results."""

from __future__ import annotations

from typing import Final

from lutum_py import AssistantTurn, ToolMetadata, ToolResult

BAD: Final = "no such tool!"
"""A name that every provider refuses."""


def called(*names: str) -> AssistantTurn:
    """A turn that calls tools of these names."""
    calls = [ToolMetadata(id=f"c{n}", name=name, arguments="{}") for n, name in enumerate(names)]
    return AssistantTurn(tool_calls=calls)


def answers(turn: AssistantTurn) -> list[ToolResult]:
    """A result for each call of a turn."""
    return [
        ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")
        for call in turn.tool_calls
    ]
