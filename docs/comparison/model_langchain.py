"""The scripted model, as LangChain takes one."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from said import SAID


class Scripted(BaseChatModel):
    """It answers by what was said so far, and reads calls as the integrations do."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Take the tools as they are."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        good, bad = [], []
        for id, name, text in SAID[said]:
            tool = {"answer": "Outcome"}.get(name, name)
            raw = {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}
            try:
                good.append(parse_tool_call(raw, return_id=True))
            except Exception as error:  # noqa: BLE001 - as langchain-openai does
                bad.append(make_invalid_tool_call(raw, str(error)))
        message = AIMessage(
            "",
            tool_calls=good,
            invalid_tool_calls=bad,
            usage_metadata={"input_tokens": 200, "output_tokens": 40, "total_tokens": 240},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


MODEL = Scripted()
