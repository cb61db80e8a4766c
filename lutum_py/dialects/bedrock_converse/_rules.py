"""The rules that Converse sets for a conversation are those of such wires.

Besides, user and assistant take turns, and a call has an id. (Amazon Bedrock API reference:
"Converse", messages; guide "Use a tool to complete a model response".)
"""

from __future__ import annotations

from typing import Final

from .._blocks.rules import rules_of
from ._form import BLOCKS

FORM: Final = rules_of(BLOCKS)
