"""What checkers know of models around the clients of the SDKs; boto3 has no types, so not strictly."""

# pyright: standard

from __future__ import annotations

import anthropic
import boto3
import openai

from lutum_py import Session
from lutum_py.models import Anthropic, Bedrock, OpenAIChat, OpenAIResponses


def ask(session: Session) -> None:
    models = (
        OpenAIChat(openai.OpenAI(), "gpt"),
        OpenAIChat(openai.AsyncOpenAI(), "gpt"),
        OpenAIResponses(openai.OpenAI(), "gpt"),
        Anthropic(anthropic.AsyncAnthropic(), "claude"),
        Bedrock(boto3.client("bedrock-runtime"), "nova"),
    )
    for model in models:
        session.text_turn(model).collect_sync()
    OpenAIChat(anthropic.Anthropic(), "claude")  # error
    Anthropic(openai.OpenAI(), "gpt")  # error
    OpenAIChat("gpt", openai.OpenAI())  # error
    OpenAIChat(openai.OpenAI())  # error
