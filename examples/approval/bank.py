"""The world outside: a bank that honours idempotency keys, and a post office that knows none.

Both stand for services that somebody else runs, so they keep their books in a file of their own: no
transaction covers them together with what the store keeps.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pydantic import BaseModel


class Receipt(BaseModel):
    """What the bank gives for a payment.

    Attributes:
        number: The bank's number of the payment.
        payee: Who was paid.
        cents: How much.
    """

    number: int
    payee: str
    cents: int


class World:
    """The bank and the post office.

    Args:
        path: Where they keep their books.
    """

    def __init__(self, path: Path) -> None:
        self._books = sqlite3.connect(path, isolation_level=None)
        try:
            self._books.executescript(
                """
                CREATE TABLE IF NOT EXISTS payments (
                    number INTEGER PRIMARY KEY, key TEXT UNIQUE, payee TEXT, cents INTEGER);
                CREATE TABLE IF NOT EXISTS letters (recipient TEXT, text TEXT);
                """
            )
        except BaseException:
            self._books.close()
            raise

    def pay(self, key: str, payee: str, cents: int) -> Receipt:
        """Pay, once for each key: a second request gets the receipt of the first."""
        self._books.execute(
            "INSERT OR IGNORE INTO payments (key, payee, cents) VALUES (?, ?, ?)",
            (key, payee, cents),
        )
        receipt = self.find_payment(key)
        assert receipt is not None
        return receipt

    def find_payment(self, key: str) -> Receipt | None:
        """Look up whether a payment with this key was made."""
        row = self._books.execute(
            "SELECT number, payee, cents FROM payments WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else Receipt(number=row[0], payee=row[1], cents=row[2])

    def post(self, recipient: str, text: str) -> None:
        """Send a letter: another one each time."""
        self._books.execute("INSERT INTO letters VALUES (?, ?)", (recipient, text))

    def close(self) -> None:
        """Close the books."""
        self._books.close()
