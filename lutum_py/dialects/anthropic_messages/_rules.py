"""The rules that the Messages API sets for a conversation are those of such wires.

(Anthropic guide to tool use: "Handle tool calls", "Parallel tool use".)
"""

from __future__ import annotations

from typing import Final

from .._blocks.rules import rules_of
from ._form import BLOCKS

FORM: Final = rules_of(BLOCKS)
