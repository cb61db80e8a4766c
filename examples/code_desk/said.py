"""What the model says at each point of the conversation: programs, as it wrote them."""

from __future__ import annotations

import json

LOOK = """\
try:
    await look_up("ann")
except NameError as error:
    print(error)
await find_orders("ann")
"""
REFUND = """\
import asyncio

async def pay(number, cents):
    try:
        return await refund(number, cents)
    except PermissionError as error:
        return f"{number}: {error}"

paid = [pay(number, cents) for number, cents in await find_orders("ann")]
await asyncio.gather(*paid, send_mail("Ann@Example.ORG", "We are on it."))
"""
TELL = 'await send_mail(to="ann@example.org", text="Both orders are refunded.")'


def program(id: str, code: str) -> tuple[str, str, str]:
    """Give the call that runs a program."""
    return id, "run_program", json.dumps({"code": code})


SAID: list[list[tuple[str, str, str]]] = [
    [
        program("c1", LOOK),
        program("c2", "await refund('A1', 'much')"),
        ("c3", "run_program", '{"code": '),
        ("c4", "refund", '{"order": "A1", "cents": 9900}'),
    ],
    [program("d1", REFUND)],
    [program("e1", TELL)],
    [("f1", "answer", '{"resolved": true, "summary": "Both orders were refunded."}')],
]
