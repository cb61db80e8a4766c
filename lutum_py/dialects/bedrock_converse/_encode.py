"""A transcript becomes the messages of Converse.

User and assistant take turns: what one side says several times in a row becomes one message. A
document is taken beside a text only, so one without any has its name said. Files go as data.
(Amazon Bedrock API reference: "Message".)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._text.json import copy_json
from ..._transcript.message import Attachment, Message
from ..._transcript.result import ToolResult
from .._blocks.rendering import BlockRendering
from .._wire.rendered_items import send_as_object
from ._facts import BLOCKS, FACTS
from ._files import block_of


class Rendering(BlockRendering):
    """Collect the messages of user and assistant."""

    facts = FACTS
    form = BLOCKS

    def _message(self, message: Message, position: str) -> None:
        blocks = self.parts_of(message.text, message.attachments, position)
        documents = [each["document"]["name"] for each in blocks if "document" in each]
        if documents and not any("text" in each for each in blocks):
            blocks.insert(0, {"text": ", ".join(documents)})
        self._of_user += blocks

    def _content_of(self, payload: Mapping[str, Any]) -> Any:
        return payload["output"]["message"]["content"]

    def _replayed(self, block: Mapping[str, Any]) -> dict[str, Any]:
        replayed: dict[str, Any] = copy_json(block)
        if "toolUse" in replayed and "type" not in replayed["toolUse"]:
            send_as_object(replayed["toolUse"], "input")
        return replayed

    def _result_block(
        self, result: ToolResult, answers: dict[str, Any], position: str
    ) -> dict[str, Any]:
        content = self.parts_of_result(result, position)
        status = "error" if result.is_error else "success"
        return {"toolResult": {**answers, "content": content, "status": status}}

    def _attached(self, attachment: Attachment) -> dict[str, Any] | None:
        return block_of(attachment)
