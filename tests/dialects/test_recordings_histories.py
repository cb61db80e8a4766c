"""Histories of real programs: every request that a provider accepted is read, and goes anywhere."""

from __future__ import annotations

import copy
import json
from importlib import import_module
from typing import Any

import pytest

from lutum_py import Message, Transcript, TurnRequest
from lutum_py.dialects import DIALECTS as LIST
from lutum_py.dialects import Loss
from lutum_py.errors import InvalidValueError

from .every_dialect import OF_LIBRARY
from .histories import at, compacted, pieces, without
from .plain import NOT_SHOWN, NOTHING_LEFT, in_camel_case
from .recordings import RECORDED_DIALECTS, Recording, recordings, report

DIALECTS = pytest.mark.parametrize("dialect", RECORDED_DIALECTS, indirect=True)


def accepted(dialect: Any) -> list[Recording]:
    return recordings(dialect.NAME, lambda one: one.status == 200)


def expected(dialect: Any, request: dict[str, Any], losses: list[Loss]) -> list[Any]:
    """What has to come back: all that the losses do not name, and what they say of the rest."""
    left = copy.deepcopy(request)
    if dialect.NAME == "gemini_generate_content":
        left["contents"] = in_camel_case(left["contents"])
    for loss in losses:
        holder, key = at(left, loss.where)
        if "comes back under `output`" in loss.text:
            holder[key] = {"output": holder.get(key)}
        elif "comes back as the output of a function" in loss.text:
            tools = json.dumps({"tools": holder[key]["tools"]}, separators=(",", ":"))
            same = {"call_id": holder[key]["call_id"]}
            holder[key] = {"type": "function_call_output", **same, "output": tools}
        elif "come back after the results" in loss.text:
            content, _ = at(left, loss.where.partition(".")[0] + ".parts")
            content["parts"] += holder.pop(key)
        else:
            without(left, loss.where)
    return pieces(dialect.NAME, compacted(left))


def encoded_for(name: str, transcript: Transcript) -> dict[str, Any]:
    """Make a request; where the provider wants to hear the user first, let the user begin."""
    encode: Any = import_module(LIST[name]).encode_request
    try:
        body: dict[str, Any] = encode(TurnRequest(items=transcript))
    except InvalidValueError:
        told = [isinstance(each, Message) and each.role != "user" for each in transcript]
        first = told.index(False) if False in told else len(told)
        started = [*transcript[:first], Message("user", NOT_SHOWN), *transcript[first:]]
        body = encode(TurnRequest(items=started))
    return body


def said(dialect: Any, body: dict[str, Any]) -> list[Any]:
    """What comes back, without the words that stand for what was lost."""
    return [
        piece
        for piece in pieces(dialect.NAME, body)
        if NOT_SHOWN not in str(piece) and NOTHING_LEFT not in str(piece)
    ]


def in_front(listed: list[Any]) -> list[Any]:
    """Move the instructions to the front, where two of the APIs have them."""
    told = [piece for piece in listed if is_told(piece)]
    return told + [piece for piece in listed if not is_told(piece)]


def is_told(piece: Any) -> bool:
    return bool(piece[0] == "system") if piece.__class__ is tuple else False


@DIALECTS
def test_every_accepted_request_comes_back_equal(dialect: Any) -> None:
    """An accepted request is read, saved, and written again with all that no loss names."""
    found = accepted(dialect)
    good = whole = 0
    for one in found:
        before = copy.deepcopy(one.request)
        transcript, losses = dialect.read_history(one.request)
        assert one.request == before
        loaded = Transcript.load_json(transcript.dump_json())
        assert loaded == transcript
        body = dialect.encode_request(TurnRequest(items=loaded))
        wanted = expected(dialect, one.request, losses)
        unsent = [loss for loss in body.losses if "moves to the front" not in loss.text]
        if unsent:
            # A host takes files by their address, which the dialect itself does not.
            assert {loss.text.partition(" (")[0] for loss in unsent} == {"this file"}
            wanted = [each for each in wanted if "document_url" not in str(each)]
        assert in_front(said(dialect, body)) == in_front(wanted), one.id
        good += 1
        whole += not losses
    report(dialect.NAME, f"accepted requests written back ({whole} whole)", good, len(found))


@DIALECTS
def test_every_accepted_request_converts_to_every_other_dialect(dialect: Any) -> None:
    """What was read of an accepted request is a request of every other dialect, and a clean one."""
    found = accepted(dialect)
    good = 0
    for one in found:
        transcript, _ = dialect.read_history(one.request)
        for other in OF_LIBRARY:
            body = encoded_for(other, transcript)
            assert import_module(LIST[other]).check(body) == [], (one.id, other)
            json.dumps(body)
        good += 1
    report(dialect.NAME, "accepted requests converted to all", good, len(found))
