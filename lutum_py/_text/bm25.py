"""Find texts by the words of a query, the best first: Okapi BM25.

Words are what people and programs write names of: `get_user`, `getUser` and "Get users" have the
same two. What does not depend on the query is worked out once, so that a search costs what its
words have in common with the texts, not what there is.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from itertools import chain
from math import log
from typing import Final

_SATURATION: Final = 1.2
"""How soon another occurrence of a word counts for less (k1)."""
_LENGTH: Final = 0.75
"""How far a long text is checked against its words, from 0 to 1 (b)."""

_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts without spaces between words have a word for each character.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_EMPTY: Final = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i"),
        *("in", "is", "it", "me", "my", "of", "on", "or", "please", "that", "the", "this", "to"),
        *("tool", "use", "want", "what", "which", "with", "you"),
    )
)


def words_in(text: str) -> list[str]:
    """Split a text into words as they are compared.

    Names are split at `_` and where the case changes; plurals count as their singulars; words
    that say nothing are left out.

    Example:
        >>> words_in("getHTTPHeaders of the user_queries")
        ['get', 'http', 'header', 'user', 'query']
    """
    found = _WORD.findall(_CASE.sub(" ", text).casefold())
    return [_singular(word) for word in found if word not in _EMPTY]


def _singular(word: str) -> str:
    # A stemmer for one ending: `queries` is `query`, and `status`, `class` and `analysis` stay. A
    # real one would be a dependency for what names of tools hardly need.
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word[:-1]


# For the two texts below, `_found["mail"]` has the numbers 0 and 1, and `_found["inbox"]` the 1,
# each with what the word adds to the score: a query looks at the texts of its own words alone.
# Embeddings would find more, and would need a model, a network and a place to keep vectors.
class Bm25:
    """Rank texts by how well they fit a query.

    Args:
        documents: Each as its parts; a part that stands twice counts twice.

    Example:
        >>> index = Bm25([["send_mail", "Send a message."], ["read_mail", "Read the inbox."]])
        >>> index.ranked("inbox", 5), index.ranked("mail", 1), index.ranked("invoice", 5)
        ([1], [0], [])
    """

    __slots__ = ("_count", "_found")

    def __init__(self, documents: Iterable[Iterable[str]]) -> None:
        counted = [Counter(chain.from_iterable(map(words_in, parts))) for parts in documents]
        lengths = [counts.total() for counts in counted]
        average = sum(lengths) / (len(lengths) or 1) or 1.0
        self._count = len(counted)
        # By word the numbers of the texts that have it, and what it adds to the score of each.
        self._found: dict[str, tuple[array[int], array[float]]] = {}
        for number, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            weight = _SATURATION * (1 - _LENGTH + _LENGTH * length / average)
            for word, times in counts.items():
                if word not in self._found:
                    self._found[word] = array("I"), array("d")
                numbers, scores = self._found[word]
                numbers.append(number)
                scores.append(times * (_SATURATION + 1) / (times + weight))

    def ranked(self, query: str, limit: int) -> list[int]:
        """Return the numbers of the texts that fit, the best first; of equal ones the earlier.

        Args:
            query: What is looked for, in words.
            limit: The most that are given.
        """
        totals: dict[int, float] = {}
        for word in dict.fromkeys(words_in(query)):
            if word in self._found:
                numbers, scores = self._found[word]
                rarity = log(1 + (self._count - len(numbers) + 0.5) / (len(numbers) + 0.5))
                for number, score in zip(numbers, scores, strict=True):
                    totals[number] = totals.get(number, 0.0) + rarity * score
        return nsmallest(limit, totals, key=lambda number: (-totals[number], number))
