"""The laws of ranking texts by the words of a query."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py._text.bm25 import Bm25, words_in
from tests.cases import over

WORDS = ("cat", "dog", "bird", "fish", "horse")
TEXT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
DOCUMENTS = st.lists(st.lists(TEXT, max_size=3), max_size=6)


def scores_by_hand(documents: list[list[str]], query: str) -> list[float]:
    """The textbook formula, worked out anew for each text."""
    split = [" ".join(parts).split() for parts in documents]
    average = sum(map(len, split)) / (len(split) or 1) or 1.0
    scores: list[float] = []
    for words in split:
        score = 0.0
        for word in dict.fromkeys(query.split()):
            having = sum(word in other for other in split)
            rarity = log(1 + (len(split) - having + 0.5) / (having + 0.5))
            times = words.count(word)
            weight = 1.2 * (1 - 0.75 + 0.75 * len(words) / average)
            score += rarity * times * 2.2 / (times + weight)
        scores.append(score)
    return scores


@given(documents=DOCUMENTS, query=TEXT, limit=st.integers(1, 8))
def test_the_best_are_those_of_the_formula(
    documents: list[list[str]], query: str, limit: int
) -> None:
    """What is found are the texts with the highest scores, the best first, none without a word."""
    expected = scores_by_hand(documents, query)
    found = Bm25(documents).ranked(query, limit)
    assert len(found) == len(set(found)) == min(limit, sum(score > 0 for score in expected))
    got = [expected[number] for number in found]
    assert got == pytest.approx(sorted(expected, reverse=True)[: len(found)])
    assert all(score > 0 for score in got)


def test_equal_texts_come_in_their_order() -> None:
    """Of texts that fit equally well the earlier comes first, so that a search can be repeated."""
    assert Bm25([["cat"], ["dog"], ["cat"], ["cat"]]).ranked("cat", 2) == [0, 2]


@over(
    "text, words",
    [
        ("crm_find_customer", ["crm", "find", "customer"]),
        ("findCustomerById", ["find", "customer", "id"]),
        ("HTTPServer2 v2", ["http", "server2", "v2"]),
        ("Customers, queries; boxes", ["customer", "query", "boxe"]),
        ("status of this address", ["status", "address"]),
        ("ties gas", ["tie", "gas"]),
        ("Größe-ändern", ["grösse", "ändern"]),
        ("顧客 を検索", ["顧", "客", "を", "検", "索"]),
        ("", []),
        ("_ -- !", []),
    ],
)
def test_words_are_compared_as_people_mean_them(text: str, words: list[str]) -> None:
    """Names are split, case and plural do not count, words that say nothing are left out."""
    assert words_in(text) == words


@given(st.text())
def test_any_text_can_be_split(text: str) -> None:
    """Words are never empty, and splitting them again changes nothing but plurals."""
    assert all(words_in(text))
