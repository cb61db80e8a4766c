"""The rules of the dialects against requests that real hosts accepted."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import pytest

from tests.cases import over

from . import broken_items, broken_parts
from .every_dialect import key_of
from .recordings import RECORDED_DIALECTS, answer, recordings, report, with_calls

DIALECTS = pytest.mark.parametrize("dialect", RECORDED_DIALECTS, indirect=True)
BROKEN: dict[str, Any] = {
    "openai_chat": broken_items,
    "openai_responses": broken_items,
    "anthropic_messages": broken_parts,
    "gemini_generate_content": broken_parts,
}


@DIALECTS
def test_every_accepted_request_is_clean(dialect: ModuleType) -> None:
    """A request that a provider accepted has no violation, and a repair changes nothing of it."""
    found = recordings(dialect.NAME, lambda one: one.status == 200)
    good = 0
    for one in found:
        assert dialect.check(one.request) == [], one.id
        listed = one.request[key_of(dialect)]
        assert isinstance(listed, str) or bool(dialect.check(listed)) == kept_elsewhere(one.request)
        assert dialect.repair(one.request) == (one.request, []), one.id
        good += 1
    report(dialect.NAME, "accepted requests found clean", good, len(found))


def kept_elsewhere(request: Any) -> bool:
    """Whether the conversation before stands on the provider's side."""
    items = request.get("input", ())
    first = items[0] if items else {}
    return isinstance(first, dict) and first.get("type") == "function_call_output"


@DIALECTS
def test_every_replayed_round_is_clean(dialect: ModuleType) -> None:
    """A recorded turn followed by results for its calls has no violation."""
    found = recordings(dialect.NAME, with_calls)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        listed = one.request[key_of(dialect)]
        asked = [] if isinstance(listed, str) or kept_elsewhere(one.request) else listed
        said_back = dialect.messages([turn, *map(answer, turn.tool_calls)])
        assert dialect.check([*asked, *said_back]) == [], one.id
        good += 1
    report(dialect.NAME, "replayed rounds found clean", good, len(found))


@DIALECTS
def test_no_id_of_ours_goes_back(dialect: ModuleType) -> None:
    """A call that came without an id is answered without one, and its own id is stable."""
    found = recordings(dialect.NAME, with_calls)
    good = 0
    for one in found:
        turn = dialect.decode(one.response)
        assert turn.tool_calls == dialect.decode(one.response).tool_calls
        rendered = json.dumps(dialect.messages([turn, *map(answer, turn.tool_calls)]))
        sent = json.dumps(one.response)
        good += all((call.id in rendered) == (call.id in sent) for call in turn.tool_calls)
    report(dialect.NAME, "rounds without an id of ours", good, len(found))


@DIALECTS
@over("how", ["dropped", "doubled", "reordered", "renamed"])
def test_every_broken_round_is_found_and_repaired(dialect: ModuleType, how: str) -> None:
    """A dropped, doubled, reordered or renamed result is found, and repaired to a clean request."""
    key = key_of(dialect)
    rounds = BROKEN[dialect.NAME]
    mutate = getattr(rounds, how)
    tried = good = 0
    for one in recordings(dialect.NAME, lambda one: one.status == 200 and one.has_results):
        if kept_elsewhere(one.request) and how != "doubled":
            continue  # The call stands on the provider's side: nobody can tell from here.
        items = one.request[key]
        for at in rounds.results_in(items):
            tried += 1
            broken = {**one.request, key: mutate(items, at)}
            before = copy.deepcopy(broken)
            assert dialect.check(broken), (one.id, at)
            repaired, changes = dialect.repair(broken)
            assert changes, (one.id, at)
            assert all(change.position and change.rule and change.what for change in changes)
            assert dialect.check(repaired) == [], (one.id, at)
            assert broken == before
            if how == "doubled":
                assert repaired == one.request
            good += 1
    report(dialect.NAME, f"{how} results found and repaired", good, tried)
