"""The rules of the Messages API over the whole of a request."""

from __future__ import annotations

from typing import Final

from .._blocks.rules import rules_of
from .._repair.whole import cache_marks, property_keys
from ._facts import BLOCKS, FACTS

MARKER: Final = "cache_control"
MARKED: Final = ("tools[]", "system[]", "messages[].content[]", "messages[].content[].content[]")
"""The mark of the prompt cache, and the ways to the blocks that may have it."""

FORM: Final = rules_of(BLOCKS, cache_marks(MARKER, *MARKED), property_keys(FACTS))
