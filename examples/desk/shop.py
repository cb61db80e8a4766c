"""The shop's own database: orders, refunds and mails. Whoever asks twice under one key gets one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

TABLES = """
CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, customer TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, number TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS mails (key TEXT PRIMARY KEY, receiver TEXT, text TEXT);
INSERT OR IGNORE INTO orders VALUES ('A1', 'ann', 9900), ('A2', 'ann', 1500);
"""


class Shop:
    """One connection a step, so that any thread and process may take it."""

    def __init__(self, path: str) -> None:
        self.path = path
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            connection.executescript(TABLES)

    def orders(self, customer: str) -> list[tuple[str, int]]:
        """Give number and price of each order."""
        return self._do("SELECT number, cents FROM orders WHERE customer = ?", customer)

    def refund(self, key: str | None, number: str, cents: int) -> None:
        """Pay money back, once for each key."""
        self._do("INSERT OR IGNORE INTO refunds VALUES (?, ?, ?)", key, number, cents)

    def mail(self, key: str | None, receiver: str, text: str) -> None:
        """Send a mail, once for each key."""
        self._do("INSERT OR IGNORE INTO mails VALUES (?, ?, ?)", key, receiver, text)

    def _do(self, sql: str, *values: object) -> list[tuple[str, int]]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            return connection.execute(sql, values).fetchall()
