"""What hosts of OpenAI's formats refuse or want otherwise, as data.

A record says how one host departs from OpenAI's own reference. Give it where a request is made, as
in `OpenAIChat(client, model, host=DEEPSEEK)` or `openai_chat.encode_request(request, host=XAI)`.
Each field cites in a comment what it rests on: the day of the report, the version of the host if it
has one, the status and the words of the refusal. What nobody reported has no field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Say how one host departs from OpenAI's format; by default it does not.

    Attributes:
        name: The name of the host.
        call_id_length: How many letters and digits the id of a call has, where it takes no other;
            None for ids that OpenAI takes.
        parses_arguments: Whether it parses the arguments of earlier calls, and refuses what is not
            the JSON of an object: that goes out as `{"INVALID_JSON": "..."}`.
        missing_reasoning: What stands as the `reasoning_content` of a turn with calls that has
            none, where the host demands one; None where it does not.
        refused_fields: The fields of a message of the assistant that it refuses.
        needs_content: Whether a message needs content, if only empty text, also beside calls.
        files_in_results: Whether it takes images and files in the result of a call; elsewhere the
            result names them, and the model does not see them.
        longest_description: How many characters the description of a tool may have; None for any.
        limit_field: Its name for the bound on the tokens of an answer.

    Example:
        >>> from dataclasses import replace
        >>> mine = replace(VLLM, name="my vLLM", files_in_results=True)
        >>> mine.parses_arguments
        True
    """

    name: str
    call_id_length: int | None = None
    parses_arguments: bool = False
    missing_reasoning: str | None = None
    refused_fields: frozenset[str] = frozenset()
    needs_content: bool = False
    files_in_results: bool = False
    longest_description: int | None = None
    limit_field: str = "max_completion_tokens"


VLLM: Final = Host(
    name="vLLM",
    # 400, the message of json.loads, as "Expecting value: line 1 column 11 (char 10)".
    # (vllm-project/vllm#43995, May 2026; again local-inference-lab/vllm#684, 2026-09-06.)
    parses_arguments=True,
)
"""vLLM. An image in a result is refused: vllm-project/vllm#43203, 2026-05-20."""

LLAMA_CPP: Final = Host(
    name="llama.cpp",
    # 500 "Failed to parse tool call arguments as JSON: ...", 400 since the change of July 2026.
    # (ggml-org/llama.cpp#25510 and #25583, 2026-07-12; noonghunna/club-3090#1195, 2026-09-08.)
    parses_arguments=True,
)
"""llama.cpp's server."""

OLLAMA: Final = Host(
    name="Ollama",
    # 400 "invalid tool call arguments". (duolahypercho/codex-router#161, 2026-08-11, Ollama Cloud.)
    parses_arguments=True,
)
"""Ollama, by its address `/v1`."""

LM_STUDIO: Final = Host(name="LM Studio")
"""LM Studio. An image in a result is refused, 400 "Invalid 'messages' in payload": QwenLM/qwen-code
#3616, 2026-04-25. None is sent, which is the default."""

SGLANG: Final = Host(
    name="SGLang",
    # 400 where the arguments are JSON but no object; before, "'str object' has no attribute
    # 'items'" of the chat template. (sgl-project/sglang#28035, 2026-06-12.)
    parses_arguments=True,
)
"""SGLang."""

OPENROUTER: Final = Host(name="OpenRouter")
"""OpenRouter: it takes what OpenAI takes. The host behind it may not; give the record of that one,
as for a model of Mistral (openclaw/openclaw#57672, 2026-03-30)."""

GROQ: Final = Host(
    name="Groq",
    # 400 "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' :
    # property 'reasoning_content' is unsupported)]". (AstrBotDevs/AstrBot#5946, 2026-03-09;
    # janhq/jan#8136, 2026-05-13; tashfeenahmed/freellmapi#1070, 2026-08-30.)
    refused_fields=frozenset({"reasoning_content"}),
)
"""Groq."""

CEREBRAS: Final = Host(
    name="Cerebras",
    # 400 "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content'
    # is unsupported", code wrong_api_format; it takes its own field, `reasoning`.
    # (Kilo-Org/kilocode#10375, 2026-05-19; QwenLM/qwen-code#11045, 2026-09-04.)
    refused_fields=frozenset({"reasoning_content"}),
)
"""Cerebras."""

MISTRAL: Final = Host(
    name="Mistral",
    # 400 "Tool call id was exec1774786568428215 but must be a-z, A-Z, 0-9, with a length of 9.",
    # code 3280. (langchain-ai/langchain#24668, 2024-07-25; openclaw/openclaw#57672, 2026-03-30.)
    call_id_length=9,
    # 422 extra_forbidden at ["body", "messages", 31, "assistant", "reasoning_content"], "Extra
    # inputs are not permitted": the schema of the message is closed. (charmbracelet/crush#1590,
    # 2025-12-10; BerriAI/litellm#30835, 2026-06-19; OpenMinis/OpenMinis#87, 2026-07-26.)
    refused_fields=frozenset({"reasoning_content", "reasoning", "reasoning_details"}),
    # 422 extra_forbidden at ["body", "max_completion_tokens"].
    # (editor-code-assistant/eca#231, 2025-12-12.)
    limit_field="max_tokens",
)
"""Mistral. Its own reasoning is a part of the content, and goes back."""

DEEPSEEK: Final = Host(
    name="DeepSeek",
    # 400 "The `reasoning_content` in the thinking mode must be passed back to the API.", of V4.
    # (earendil-works/pi#3636, 2026-04-24; JohnnyZ93/oai-compatible-copilot#215, 2026-04-29.) Empty
    # text is taken, "." is not (can1357/oh-my-pi#897, 2026-04-30; theopenco/llmgateway#2093, tried
    # on the host, 2026-04-26; HKUDS/nanobot#946 of 2026-02-21 says otherwise, of the model before).
    missing_reasoning="",
)
"""DeepSeek."""

MOONSHOT: Final = Host(
    name="Moonshot",
    # 400 "thinking is enabled but reasoning_content is missing in assistant tool call message at
    # index 2". (mastra-ai/mastra#12592, February 2026; continuedev/continue#11600, 2026-03-18.)
    # Empty text counts as missing, one space does not (theopenco/llmgateway#2093, tried on the
    # host, 2026-04-26; earendil-works/pi#4178, 2026-05-05).
    missing_reasoning=" ",
)
"""Moonshot, for its Kimi."""

QWEN: Final = Host(
    name="Qwen",
    # 400 "InternalError.Algo.InvalidParameter: The "function.arguments" parameter of the code model
    # must be in JSON format." (HKUDS/nanobot#1487, 2026-03-03, and #2469, 2026-03-25.)
    parses_arguments=True,
)
"""Qwen at Alibaba's DashScope."""

XAI: Final = Host(
    name="xAI",
    # 400 "Invalid request content: Each message must have at least one content element.", of null
    # beside calls and of an empty list. (langchain-ai/langchain#34140, 2025-11-28;
    # AstrBotDevs/AstrBot#6447, 2026-03-16.)
    needs_content=True,
)
"""xAI."""

AZURE: Final = Host(
    name="Azure",
    # 400 "Invalid 'tools[2].function.description': string too long. Expected a string with maximum
    # length 1024, but got a string with length 4394 instead.", code string_above_max_length.
    # (OpenHands/OpenHands#4838, 2024-11-08; langchain-ai/open_deep_research#80, 2025-04-23.)
    longest_description=1024,
)
"""Azure OpenAI. The bound is that of OpenAI's own models of the time, too."""

__all__ = [
    "AZURE",
    "CEREBRAS",
    "DEEPSEEK",
    "GROQ",
    "LLAMA_CPP",
    "LM_STUDIO",
    "MISTRAL",
    "MOONSHOT",
    "OLLAMA",
    "OPENROUTER",
    "QWEN",
    "SGLANG",
    "VLLM",
    "XAI",
    "Host",
]
