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

from .._session.model import Model as Model
from .._session.model import StreamingModel as StreamingModel
from .._session.model import SyncModel as SyncModel
from .._session.model import SyncStreamingModel as SyncStreamingModel
from .._text.on_demand import exported, on_demand
from .._transcript.request import ToolChoice as ToolChoice

if TYPE_CHECKING:
    from ._anthropic import Anthropic as Anthropic
    from ._anthropic import MessagesClient as MessagesClient
    from ._bedrock import Bedrock as Bedrock
    from ._bedrock import ConverseClient as ConverseClient
    from ._gemini import Gemini as Gemini
    from ._gemini import GenerateClient as GenerateClient
    from ._openai import ChatClient as ChatClient
    from ._openai import OpenAIChat as OpenAIChat
    from ._openai import OpenAIResponses as OpenAIResponses
    from ._openai import ResponsesClient as ResponsesClient
    from ._sdk_model import LossWarning as LossWarning
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
    __all__ = list(exported(__dir__()))
