"""What the model says at each point of the conversation: the calls, as it wrote them."""

from __future__ import annotations

SAID: list[list[tuple[str, str, str]]] = [
    [
        ("c1", "find_orders", '{"customer": "ann"}'),
        ("c2", "look_up", '{"customer": "ann"}'),
        ("c3", "find_orders", '{"customer": '),
        ("c4", "refund", '{"order": "A1", "cents": "much"}'),
    ],
    [
        ("d1", "refund", '{"order": "A1", "cents": 9900}'),
        ("d2", "refund", '{"order": "A2", "cents": 1500}'),
        ("d3", "send_mail", '{"to": "Ann@Example.ORG", "text": "We are on it."}'),
    ],
    [("e1", "send_mail", '{"to": "ann@example.org", "text": "Both orders are refunded."}')],
    [("f1", "answer", '{"resolved": true, "summary": "Both orders were refunded."}')],
]
