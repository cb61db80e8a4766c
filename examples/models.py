"""The model that `--model` asks for: the local one, or a provider's by its official SDK.

    --model openai:NAME             Chat Completions, of OpenAI or, with --base-url, of any server
    --model openai-responses:NAME   OpenAI's Responses API
    --model anthropic:NAME          Anthropic's Messages API
    --model gemini:NAME             Google's generateContent
    --model bedrock:NAME            Amazon Bedrock's Converse

The SDKs take their keys from the environment. A server of your own (`--base-url`) needs none. The
clients retry nothing: the loop is yours, and so is the decision to ask again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from local_model import LocalModel

from lutum_py.errors import MissingExtraError
from lutum_py.models import Anthropic, Bedrock, Gemini, OpenAIChat, OpenAIResponses
from lutum_py.typing import SyncModel

LOCAL: Final = "local"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model, and what its SDK raises when the provider cannot or will not answer."""

    model: SyncModel
    errors: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to a provider.

    Attributes:
        extra: The extra of lutum-py with its SDK.
        keys: Where its SDK looks for the key; any of them will do.
        make: Makes the model, from its name, the server's address and the key.
    """

    extra: str
    keys: tuple[str, ...]
    make: Callable[[str, str | None, str], Chosen]


def make_model(text: str, base_url: str | None = None) -> Chosen:
    """Make the model that a text such as `openai:NAME` asks for.

    Raises:
        ValueError: There is no such model, or its key is missing.
        MissingExtraError: Its SDK is not installed.
    """
    if text == LOCAL:
        if base_url is not None:
            raise ValueError("--base-url is for the model of a provider: add --model openai:NAME")
        return Chosen(LocalModel())
    prefix, _, name = text.partition(":")
    kind = KINDS.get(prefix)
    if kind is None or not name:
        known = ", ".join(f"{each}:NAME" for each in KINDS)
        raise ValueError(f"{text!r} is none of {LOCAL}, {known}")
    key = next(filter(None, map(os.environ.get, kind.keys)), None)
    if key is None and base_url is None:
        raise ValueError(f"there is no key for {prefix}: set {' or '.join(kind.keys)}")
    try:
        return kind.make(name, base_url, key or "none")
    except ImportError as error:
        raise MissingExtraError(
            f"{prefix} needs an SDK: python -m pip install 'lutum-py[{kind.extra}]'"
        ) from error


def _openai_chat(name: str, base_url: str | None, key: str) -> Chosen:
    client, errors = _openai(base_url, key)
    return Chosen(OpenAIChat(client, name), errors)


def _openai_responses(name: str, base_url: str | None, key: str) -> Chosen:
    client, errors = _openai(base_url, key)
    return Chosen(OpenAIResponses(client, name), errors)


def _openai(base_url: str | None, key: str) -> tuple[Any, tuple[type[Exception], ...]]:
    import openai

    client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0)
    return client, (openai.OpenAIError,)


def _anthropic(name: str, base_url: str | None, key: str) -> Chosen:
    import anthropic

    client = anthropic.Anthropic(api_key=key, base_url=base_url, max_retries=0)
    return Chosen(Anthropic(client, name), (anthropic.AnthropicError,))


def _gemini(name: str, base_url: str | None, key: str) -> Chosen:
    from google import genai
    from google.genai import errors

    options = genai.types.HttpOptions(base_url=base_url)
    client = genai.Client(api_key=key, http_options=options)
    return Chosen(Gemini(client, name), (errors.APIError, *_http_errors()))


def _bedrock(name: str, base_url: str | None, key: str) -> Chosen:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    local: dict[str, Any] = {"aws_access_key_id": key, "aws_secret_access_key": key}
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        config=Config(retries={"total_max_attempts": 1}),
        **({} if base_url is None else {"region_name": "us-east-1", **local}),
    )
    return Chosen(Bedrock(client, name), (BotoCoreError, ClientError))


def _http_errors() -> tuple[type[Exception], ...]:
    """Give what the HTTP client of google-genai raises, which is one or the other by version."""
    found = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(module.HTTPError for module in found if module is not None)


KINDS: Final = {
    "openai": Kind("openai", ("OPENAI_API_KEY",), _openai_chat),
    "openai-responses": Kind("openai", ("OPENAI_API_KEY",), _openai_responses),
    "anthropic": Kind("anthropic", ("ANTHROPIC_API_KEY",), _anthropic),
    "gemini": Kind("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), _gemini),
    "bedrock": Kind("bedrock", ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"), _bedrock),
}
