"""What a dialect of your own is made of: the parts that the dialects here share.

"Write a dialect" in the documentation makes one with these names alone.

| name | what it is |
|---|---|
| `Facts`, `Strictness`, `facts_of` | what is known of the provider, as data |
| `Place`, `DecodedResponse`, `WireCall`, `read_call`, `response_place` | a response |
| `Draft`, `Rendering`, `FrontRendering`, `NativeSearch` | a request on its way to the wire |
| `StreamReader`, `BrokenStream` | the decoder of a stream |
| `Form`, `Repairing`, `Pairing`, `Piece`, `note_places`, `text_of` | check and repair |
| `History` | messages that were kept elsewhere |
| `WireForm`, `Said`, `halves`, `objects`, `of_role`, `said_call`, `wire_form_of` | for tests |
| `Dialect` | the record of all this, whose methods are the functions of the module |
| `NOT_SHOWN`, `OUTCOME_UNKNOWN` | what a repair says |
| `copy_json`, `is_mapping`, `is_sequence` | JSON that somebody else made |
"""

from __future__ import annotations

from .._text.json import copy_json, is_mapping, is_sequence
from ._arguments import BrokenStream
from ._dialect import Dialect, Draft
from ._facts import Facts, facts_of
from ._findings import NOT_SHOWN, OUTCOME_UNKNOWN
from ._history import History
from ._offered import NativeSearch
from ._reading import DecodedResponse, Place, WireCall, read_call, response_place
from ._rendering import FrontRendering, Rendering
from ._repair import Form, Pairing, Piece, Repairing, note_places, text_of
from ._schema.strict import Strictness
from ._stream import StreamReader
from ._wire_form import Said, WireForm, halves, objects, of_role, said_call, wire_form_of

__all__ = [
    "NOT_SHOWN",
    "OUTCOME_UNKNOWN",
    "BrokenStream",
    "DecodedResponse",
    "Dialect",
    "Draft",
    "Facts",
    "Form",
    "FrontRendering",
    "History",
    "NativeSearch",
    "Pairing",
    "Piece",
    "Place",
    "Rendering",
    "Repairing",
    "Said",
    "StreamReader",
    "Strictness",
    "WireCall",
    "WireForm",
    "copy_json",
    "facts_of",
    "halves",
    "is_mapping",
    "is_sequence",
    "note_places",
    "objects",
    "of_role",
    "read_call",
    "response_place",
    "said_call",
    "text_of",
    "wire_form_of",
]
