"""The rules of the formats once more, written from the providers' references alone.

`check` of a dialect is part of the library, so it cannot be the judge of what the library renders.
The `rules` of each wire list what its provider would refuse in a request body.
"""

from __future__ import annotations

import json
from typing import Any

from .every_dialect import wire_of


def refused(dialect: str, body: dict[str, Any]) -> list[str]:
    """List what a provider would refuse."""
    json.dumps(body, allow_nan=False).encode()
    wrong: list[str] = wire_of(dialect).rules(body)
    return wrong
