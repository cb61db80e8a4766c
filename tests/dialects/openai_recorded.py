"""What the tests of OpenAI's two dialects against recorded traffic share."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py._transcript.result import ToolResult
from lutum_py.dialects import openai_chat, openai_responses

from .recordings import Recording, answered

DIALECTS = pytest.mark.parametrize(
    "dialect", [openai_chat, openai_responses], ids=lambda module: module.NAME
)


def whole(one: Recording) -> bool:
    return answered(one) and not one.stream


def answer(call: Any) -> Any:
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")
