"""Models over the official SDK clients: `session.text_turn(model)` talks to a provider.

| class | client | extra |
|---|---|---|
| `OpenAIChat` | `openai.OpenAI`, `AsyncOpenAI`; `base_url` for other servers | `openai` |
| `OpenAIResponses` | the same | `openai` |
| `Anthropic` | `anthropic.Anthropic`, `AsyncAnthropic` | `anthropic` |
| `Gemini` | `google.genai.Client`, or its `aio` | `gemini` |
| `Bedrock` | `boto3.client("bedrock-runtime")` | `bedrock` |

A model takes the client that you made: its key, address, timeouts and retries are yours to set, and
no SDK is imported here. With an async client `collect()` and `stream()` work, with a sync client
`collect_sync()` and `stream_sync()`; a `google.genai.Client` is both, and so is a client of boto3,
which is called in a thread.

Every call of `respond` or `stream` is one call of the SDK. The errors of the SDK come through as
they are; a payload that cannot be read is a `DialectError`. Either way the transcript is unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._session.model import Model, StreamingModel, SyncModel, SyncStreamingModel
from .._text.on_demand import on_demand

if TYPE_CHECKING:
    from ._anthropic import Anthropic, MessagesClient
    from ._bedrock import Bedrock, ConverseClient
    from ._gemini import Gemini, GenerateClient
    from ._openai import ChatClient, OpenAIChat, OpenAIResponses, ResponsesClient
    from ._sdk_model import LossWarning
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "models._anthropic": ("Anthropic", "MessagesClient"),
            "models._bedrock": ("Bedrock", "ConverseClient"),
            "models._gemini": ("Gemini", "GenerateClient"),
            "models._sdk_model": ("LossWarning",),
            "models._openai": ("ChatClient", "OpenAIChat", "OpenAIResponses", "ResponsesClient"),
        },
    )

__all__ = [
    "Anthropic",
    "Bedrock",
    "ChatClient",
    "ConverseClient",
    "Gemini",
    "GenerateClient",
    "LossWarning",
    "MessagesClient",
    "Model",
    "OpenAIChat",
    "OpenAIResponses",
    "ResponsesClient",
    "StreamingModel",
    "SyncModel",
    "SyncStreamingModel",
]
