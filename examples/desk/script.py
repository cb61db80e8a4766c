"""The scripted server: what a model says at each point of the conversation, whoever asks again."""

from __future__ import annotations

from lutum_py import AssistantTurn, TurnRequest, Usage
from lutum_py.testing import ScriptedModel

SAID = (
    ScriptedModel.tool_calls(
        ("c1", "find_orders", {"customer": "ann"}),
        ("c2", "look_up", {"customer": "ann"}),
        ("c3", "find_orders", '{"customer": '),
        ("c4", "refund", {"order": "A1", "cents": "much"}),
    ),
    ScriptedModel.tool_calls(
        ("d1", "refund", {"order": "A1", "cents": 9900}),
        ("d2", "refund", {"order": "A2", "cents": 1500}),
        ("d3", "send_mail", {"to": "Ann@Example.ORG", "text": "We are on it."}),
    ),
    ScriptedModel.tool_calls(
        ("e1", "send_mail", {"to": "ann@example.org", "text": "Both orders are refunded."}),
    ),
    ScriptedModel.tool_calls(
        ("f1", "answer", {"resolved": True, "summary": "Both orders were refunded."}),
    ),
)


def costed(turn: AssistantTurn) -> AssistantTurn:
    """Let a turn say what it cost, as a provider's does."""
    usage = Usage(input_tokens=200, output_tokens=40)
    return AssistantTurn(items=turn.items, finish_reason=turn.finish_reason, usage=usage)


TURNS = tuple(map(costed, SAID))


def says(request: TurnRequest) -> AssistantTurn:
    """Answer by what was said so far, so that a request that is made again gets the same."""
    return TURNS[sum(isinstance(item, AssistantTurn) for item in request.items)]


MODEL = ScriptedModel(says)
