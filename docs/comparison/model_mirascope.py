"""The scripted model, as Mirascope takes one: a provider."""

from __future__ import annotations

from typing import Any

from mirascope import llm
from mirascope.llm.formatting import resolve_format
from mirascope.llm.providers import BaseProvider
from said import SAID


class Scripted(BaseProvider[None]):
    """It answers by what was said so far."""

    id: Any = "scripted"
    default_scope = "scripted/"
    error_map: Any = {}

    async def _call_async(
        self, *, model_id: str, messages: Any, toolkit: Any, format: Any = None, **params: Any
    ) -> Any:
        calls = SAID[sum(message.role == "assistant" for message in messages)]
        parts: list[Any] = [
            llm.Text(text=text) if name == "answer" else llm.ToolCall(id=id, name=name, args=text)
            for id, name, text in calls
        ]
        said = llm.AssistantMessage(
            content=parts,
            provider_id=None,
            model_id=None,
            provider_model_name=None,
            raw_message=None,
        )
        return llm.AsyncResponse(
            raw=None,
            provider_id=self.id,
            model_id=model_id,
            provider_model_name=model_id,
            params={},
            tools=toolkit,
            format=resolve_format(format, default_mode="strict"),
            input_messages=messages,
            assistant_message=said,
            finish_reason=None,
            usage=llm.Usage(input_tokens=200, output_tokens=40),
        )

    def get_error_status(self, e: Exception) -> int | None:
        """Know of no errors."""
        return None


Scripted.__abstractmethods__ = frozenset()
llm.register_provider(Scripted())
MODEL = llm.model("scripted/desk")
