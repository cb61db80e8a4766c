"""The laws of reading what the model said out of a list of messages, in each provider's form."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from lutum_py.dialects import DIALECTS
from lutum_py.dialects.authoring import Said, wire_form_of
from lutum_py.testing import ScriptedClient
from tests.dialects.every_dialect import OF_LIBRARY, WIRES


def test_texts_and_calls_are_found() -> None:
    """Texts and calls of the model are listed in order, whatever form they have."""
    for name in OF_LIBRARY:
        for messages, said in WIRES[name].SPOKEN:
            found = [*wire_form_of(name).said_in(messages)]
            assert found == [Said(*each) for each in said], (name, messages)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_model_did_not_say_is_passed_over(name: str) -> None:
    """Messages of others and what is no message at all are not the model's words."""
    strange = [{"role": "user", "content": "Hi", "parts": []}, 7, None, "text", {}]
    assert [*wire_form_of(name).said_in(strange)] == []


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_a_response_of_ones_own_streams_as_it_reads_whole(name: str) -> None:
    """A response in a script, with what no turn has, gives the same turn as a stream."""
    dialect: Any = import_module(DIALECTS[name])
    for response in WIRES[name].ODD_RESPONSES:
        decoder = dialect.StreamDecoder()
        client = ScriptedClient([response], name, check=False)
        for event in client.create(stream=True):
            decoder.feed(event)
        streamed, whole = decoder.finish(), dialect.decode(response)
        assert [type(item) for item in streamed.items] == [type(item) for item in whole.items]
        assert (streamed.text, streamed.is_truncated) == (whole.text, whole.is_truncated)
