"""What the tests of the schema compiler begin with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py._schema.definition import ToolDef
from lutum_py.dialects._facts import facts_of
from lutum_py.dialects._schema.compiler import CompiledSchema, compile_schema

OPENAI = facts_of("openai_chat")
RESPONSES = facts_of("openai_responses")
ANTHROPIC = facts_of("anthropic_messages")
GEMINI = facts_of("gemini_generate_content")
FORMS = [
    (dialect, strict)
    for dialect in (OPENAI, RESPONSES, ANTHROPIC, GEMINI)
    for strict in (False, True)
]
EVERY_FORM = pytest.mark.parametrize(
    ("dialect", "strict"),
    FORMS,
    ids=[f"{dialect.name}-{strict}" for dialect, strict in FORMS],
)


def tool(schema: Any) -> ToolDef:
    return ToolDef(name="t", description="", input_schema=schema)


def of(model: type[BaseModel]) -> ToolDef:
    return tool(model.model_json_schema())


def strict_openai(properties: Any, **more: Any) -> CompiledSchema:
    schema = {"type": "object", "properties": properties, **more}
    return compile_schema(tool(schema), OPENAI, strict=True)


def strict_anthropic(properties: Any, **more: Any) -> CompiledSchema:
    schema = {"type": "object", "properties": properties, **more}
    return compile_schema(tool(schema), ANTHROPIC, strict=True)


def gemini(schema: Any) -> CompiledSchema:
    return compile_schema(tool(schema), GEMINI)


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
