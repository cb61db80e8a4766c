"""What the tests of the schema compiler begin with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import ToolDef
from lutum_py.dialects import (
    CompiledSchema,
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)

EVERY = (openai_chat, openai_responses, anthropic_messages, gemini_generate_content)
FORMS = [(dialect, strict) for dialect in EVERY for strict in (False, True)]
EVERY_FORM = pytest.mark.parametrize(
    ("dialect", "strict"),
    FORMS,
    ids=[f"{dialect.NAME}-{strict}" for dialect, strict in FORMS],
)


def tool(schema: Any) -> ToolDef:
    return ToolDef(name="t", description="", input_schema=schema)


def of(model: type[BaseModel]) -> ToolDef:
    return tool(model.model_json_schema())


def strict_openai(properties: Any, **more: Any) -> CompiledSchema:
    schema = {"type": "object", "properties": properties, **more}
    return openai_chat.compile(tool(schema), strict=True)


def strict_anthropic(properties: Any, **more: Any) -> CompiledSchema:
    schema = {"type": "object", "properties": properties, **more}
    return anthropic_messages.compile(tool(schema), strict=True)


def gemini(schema: Any) -> CompiledSchema:
    return gemini_generate_content.compile(tool(schema))


def lost(compiled: CompiledSchema) -> list[tuple[str, str]]:
    return [(loss.path, loss.keyword) for loss in compiled.losses]


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Chain(BaseModel):
    next: Chain | None


class Holder(BaseModel):
    chain: Chain
    tree: Tree
