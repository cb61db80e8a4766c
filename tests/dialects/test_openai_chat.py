"""Chat Completions: what is decoded of a response, and what goes back of a turn."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    ToolMetadata,
    TurnRequest,
    Usage,
)
from lutum_py.dialects import (
    openai_chat,
)
from lutum_py.dialects import openai_chat as dialect
from lutum_py.errors import DialectError, MisuseError
from lutum_py.turns import (
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from tests.cases import over

from .chat_wire import function, response, result, tool


def test_a_turn_holds_all_that_was_said() -> None:
    """Reasoning, text, refusal and calls are items in that order, with usage and ids beside."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5.0,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    said = {
        "content": "Well.",
        "refusal": "No.",
        "reasoning_content": "Hm.",
        "tool_calls": [function("c1", arguments='{"a": 1}')],
    }
    turn = dialect.decode(response(said, usage=usage))
    call = ToolMetadata(id="c1", name="echo", arguments='{"a": 1}')
    assert turn.items == (
        ReasoningItem("Hm."),
        TextItem("Well."),
        RefusalItem("No."),
        ToolCallItem(call),
    )
    assert turn.usage == Usage(
        input_tokens=10, output_tokens=5, cached_tokens=4, reasoning_tokens=2
    )
    assert (turn.finish_reason, turn.model, turn.request_id) == ("stop", "m", "r1")
    assert turn.dialect == dialect.NAME == "openai_chat"


@over(
    "usage",
    [
        {"usage": {"num_cached_tokens": 7}},
        {"usage": {"prompt_cache_hit_tokens": 7, "prompt_tokens": True}},
        {"usage": {"cached_tokens": 7, "prompt_tokens_details": None}},
        {"usage": {"cached_tokens": 3, "prompt_cache_hit_tokens": 7, "num_cached_tokens": None}},
        {"x_groq": {"usage": {"num_cached_tokens": 7}}},
    ],
)
def test_hosts_have_their_own_names_for_usage(usage: dict[str, Any]) -> None:
    """What a host counts under a name of its own is read; what is no number is left out."""
    turn = dialect.decode(response({"content": "x"}, **usage))
    assert turn.usage == Usage(cached_tokens=7)
    assert dialect.decode(response({"content": "x"}, usage=7)).usage == Usage()


@over(
    "total, said",
    [(135, 103), (41, 9), (None, 9), (136, 9)],
)
def test_reasoning_that_a_host_counts_apart_is_in_the_answer(total: int | None, said: int) -> None:
    """All tokens of the answer are counted, also where the sum alone tells that some are not."""
    details = {"reasoning_tokens": 94}
    counts = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total}
    usage = {**counts, "completion_tokens_details": details}
    turn = dialect.decode(response({"content": "x"}, usage=usage))
    assert turn.usage == Usage(input_tokens=32, output_tokens=said, reasoning_tokens=94)


def test_usage_may_be_absent() -> None:
    """A turn of which nobody counted the tokens has no usage."""
    assert dialect.decode(response({"content": "x"}, x_groq={"id": "g"})).usage is None


@over(
    "fields, items",
    [
        ({"content": ""}, ()),
        ({"content": None, "tool_calls": None}, ()),
        ({"reasoning": "Hm."}, (ReasoningItem("Hm."),)),
        ({"reasoning": {"odd": 1}, "reasoning_details": []}, ()),
        ({"reasoning_details": [{"summary": "S"}, {"data": "x"}]}, (ReasoningItem("S"),)),
        ({"reasoning_details": [{"data": "x"}]}, (ReasoningItem(""),)),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "Yes."},
                    {"type": "refusal", "refusal": "No."},
                    {"type": "reference", "reference_ids": [1]},
                    " Plain.",
                ]
            },
            (ReasoningItem("Hm."), TextItem("Yes."), RefusalItem("No."), TextItem(" Plain.")),
        ),
        ({"audio": {"id": "a", "transcript": "Hi"}}, (TextItem("Hi"),)),
        ({"audio": {"id": "a", "transcript": "Hi"}, "content": "Ho"}, (TextItem("Ho"),)),
        ({"audio": {"id": "", "transcript": ""}, "function_call": {"name": ""}}, ()),
    ],
)
def test_every_accent_of_a_message_is_read(fields: dict[str, Any], items: Any) -> None:
    """Reasoning and content are read under every name and form that hosts give them."""
    assert dialect.decode(response(fields)).items == items


@over(
    "sent, text",
    [('{"a":1}', '{"a":1}'), ("", ""), (None, ""), ({"a": None}, '{"a":null}'), ("{", "{")],
)
def test_the_raw_argument_text_is_kept(sent: Any, text: str) -> None:
    """Arguments are the text that came, byte for byte; an object becomes its JSON."""
    turn = dialect.decode(response({"tool_calls": [function("c1", arguments=sent)]}))
    assert turn.tool_calls[0].arguments == text


def test_a_call_without_an_id_gets_one_of_ours_that_never_goes_back() -> None:
    """An id of ours is stable, tells calls apart, and is not sent to the host that sent none."""
    sent = response({"tool_calls": [function(None), function(""), function("c3")]})
    turn = dialect.decode(sent)
    first, second, third = turn.tool_calls
    assert first.id.startswith("lutum_")
    assert second.id.startswith("lutum_")
    assert first.id != second.id
    assert third.id == "c3"
    assert dialect.decode(sent) == turn
    said = dialect.messages([turn, *map(result, turn.tool_calls)])
    assert "lutum_" not in json.dumps(said)
    assert [message.get("tool_call_id") for message in said[1:]] == [None, "", "c3"]
    assert dialect.check(said) == []


@over("call", [{"id": "c1"}, {"id": "c1", "function": None}, {"id": "c1", "function": {}}])
def test_a_call_without_a_function_is_one_without_a_name(call: dict[str, Any]) -> None:
    """A call that says nothing but its id costs only itself."""
    turn = dialect.decode(response({"tool_calls": [call, function("c2")]}))
    assert [(each.id, each.name) for each in turn.tool_calls] == [("c1", ""), ("c2", "echo")]
    assert dialect.decode(turn.payload) == turn


def test_custom_and_old_calls_are_calls_too() -> None:
    """A custom tool's call holds its free text; the old single call is answered in kind."""
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    turn = dialect.decode(
        response({"tool_calls": [custom], "function_call": {"name": "old", "arguments": "{}"}})
    )
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [
        ("sh", "ls"),
        ("old", "{}"),
    ]
    said = dialect.messages([turn, *map(result, turn.tool_calls)])
    assert said[1:] == [tool("c1", "done"), {"role": "function", "name": "old", "content": "done"}]
    assert dialect.check(said) == []


def test_what_only_the_sdk_says_is_not_the_providers() -> None:
    """Null fields and what the SDK parsed on its own are no part of a turn."""
    tidy = response({"content": "x", "tool_calls": [function("c1")]})
    message = {**tidy["choices"][0]["message"], "refusal": None, "parsed": {"x": 1}}
    call = message["tool_calls"][0]
    message["tool_calls"] = [
        {**call, "function": {**call["function"], "parsed_arguments": {}}, "index": None}
    ]
    careless = {**tidy, "usage": None, "choices": [{**tidy["choices"][0], "message": message}]}
    assert dialect.decode(careless) == dialect.decode(tidy)


def test_a_turn_does_not_share_what_it_was_read_from() -> None:
    """Changing a response, or what was rendered, changes no turn."""
    sent = response({"content": "x", "tool_calls": [function("c1")]})
    turn = dialect.decode(sent)
    again = dialect.decode(sent)
    sent["choices"][0]["message"]["tool_calls"][0]["id"] = "other"
    dialect.messages([turn])[0]["tool_calls"][0]["function"]["name"] = "other"
    assert turn == again
    assert dialect.messages([turn])[0]["tool_calls"] == [function("c1")]


@over(
    "sent, where, problem",
    [
        ("<html>502</html>", "", "expected the JSON object"),
        (SimpleNamespace(choices=[]), "", "to_dict"),
        ({"error": {"message": "Too many."}}, "error", "Too many."),
        ({"error": "Too many."}, "error", "Too many."),
        ({"choices": [{"error": {"code": 1}}]}, "choices[0].error", "code"),
        ({}, "", "'choices' is missing"),
        ({"choices": []}, "", "no choices"),
        ({"choices": {}}, "choices", "expected an array"),
        ({"choices": [7]}, "choices[0]", "expected an object"),
        ({"choices": [{}]}, "choices[0]", "'message' is missing"),
        (response({"content": 7}), "choices[0].message.content", "expected an array"),
        (response({"content": [{"type": "text"}]}), "choices[0].message.content[0]", "'text'"),
        (
            response({"tool_calls": [{"function": {"name": 7}}]}),
            "choices[0].message.tool_calls[0].function.name",
            "expected a string",
        ),
    ],
)
def test_what_is_no_response_is_an_error_that_says_where(
    sent: Any, where: str, problem: str
) -> None:
    """A broken payload is never a turn; the error names the place."""
    with pytest.raises(DialectError, match=problem) as caught:
        dialect.decode(sent)
    assert (caught.value.where, caught.value.dialect) == (where, dialect.NAME)


def test_a_turn_of_the_dialect_goes_back_as_it_came() -> None:
    """What a host adds to a message goes back with it, and so does its order."""
    said = {
        "content": None,
        "annotations": [],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        "tool_calls": [{**function("c1"), "index": 0, "extra_content": {"google": {"s": "x"}}}],
    }
    assert dialect.messages([dialect.decode(response(said))]) == [{"role": "assistant", **said}]


def test_what_hosts_refuse_is_not_sent_back() -> None:
    """Empty shells and the data of an audio answer stay out; what a call lacks is filled in."""
    shells = {
        "tool_calls": [],
        "function_call": {"name": "", "arguments": ""},
        "audio": {"id": "", "data": ""},
        "content": "x",
    }
    assert dialect.messages([dialect.decode(response(shells))]) == [
        {"role": "assistant", "content": "x"}
    ]
    audio = {"content": None, "audio": {"id": "a1", "data": "AAAA", "transcript": "Hi"}}
    assert dialect.messages([dialect.decode(response(audio))]) == [
        {"role": "assistant", "audio": {"id": "a1"}, "content": None}
    ]
    bare = {"tool_calls": [{"id": "c1", "function": {"name": "f"}}]}
    assert dialect.messages([dialect.decode(response(bare))])[0]["tool_calls"] == [
        function("c1", "f")
    ]


def test_a_turn_that_said_nothing_is_sent_as_empty_text() -> None:
    """Null content is refused where nothing else was said, so empty text stands for it."""
    assert dialect.messages([dialect.decode(response({"content": None}))]) == [
        {"role": "assistant", "content": ""}
    ]


def test_a_turn_of_another_dialect_is_sent_in_the_neutral_view() -> None:
    """Text, refusal and calls go over; reasoning and what the provider ran is reported as lost."""
    call = ToolMetadata(id="c1", name="echo", arguments=" ")
    other = ToolMetadata(id="c2", name="echo", arguments=" ")
    turn = AssistantTurn(
        items=[
            ReasoningItem("Hm."),
            ServerToolItem("web_search_call", {}),
            TextItem("Well."),
            RefusalItem("No."),
            ToolCallItem(call),
        ],
        dialect="another",
        payload={"content": []},
    )
    plain = AssistantTurn(text="Done.")
    request = TurnRequest(items=[turn, result(call), plain, AssistantTurn(tool_calls=[other])])
    body = dialect.encode_request(request)
    assert body["messages"] == [
        {
            "role": "assistant",
            "content": "Well.",
            "refusal": "No.",
            "tool_calls": [function("c1")],
        },
        tool("c1", "done"),
        {"role": "assistant", "content": "Done."},
        {"role": "assistant", "content": None, "tool_calls": [function("c2")]},
    ]
    (loss,) = body.losses
    assert loss.where == "items[0]"
    for lost in ("its reasoning", "web_search_call", "only another understands"):
        assert lost in str(loss)


def test_a_result_alone_is_a_message_too() -> None:
    """A result whose turn is not rendered beside it answers by its own id."""
    assert dialect.messages([result(ToolMetadata(id="c9", name="f", arguments="{}"))]) == [
        tool("c9", "done")
    ]


def test_only_what_a_transcript_holds_is_rendered() -> None:
    """Anything else than a message, turn or result is a mistake of the caller."""
    with pytest.raises(MisuseError):
        dialect.messages([{"role": "user"}])  # type: ignore[list-item]


def test_attachments_become_parts_where_there_are_parts_for_them() -> None:
    """Images, audio data and file data go with a user's message; the rest is reported as lost."""
    image = Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png")
    shown = Attachment(
        media_type="image", mime_type="image/png", url="https://e.org/b.png", caption="A cat"
    )
    audio = Attachment(media_type="audio", mime_type="audio/wav", url="data:audio/wav;base64,AAA=")
    flac = Attachment(media_type="audio", mime_type="audio/flac", url="data:audio/flac,x")
    file = Attachment(media_type="file", mime_type="application/pdf", url="data:,hi")
    far = Attachment(media_type="file", mime_type="text/odd", url="https://e.org/a.pdf")
    call = ToolMetadata(id="c1", name="f", arguments="{}")
    body = dialect.encode_request(
        TurnRequest(
            items=[
                Message("user", "Look", (image, shown, audio, flac, file, far)),
                Message("user", "", (far,)),
                Message("system", "Be kind", (image,)),
                result(call, attachments=(image,)),
            ]
        )
    )
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
                {"type": "text", "text": "A cat"},
                {"type": "image_url", "image_url": {"url": "https://e.org/b.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAA=", "format": "wav"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "attachment.pdf",
                        "file_data": "data:application/pdf;base64,aGk=",
                    },
                },
            ],
        },
        {"role": "user", "content": ""},
        {"role": "system", "content": [{"type": "text", "text": "Be kind"}]},
        tool("c1", f"done\n{image.described}"),
    ]
    assert [loss.where for loss in body.losses] == [
        "items[0].attachments[3]",
        "items[0].attachments[5]",
        "items[1].attachments[0]",
        "items[2].attachments[0]",
        "items[3].attachments[0]",
    ]


def test_a_message_goes_back_as_the_assistants() -> None:
    """An odd role and texts for parts go back in a form that is taken."""
    said = {"role": "x", "content": ["a", {"type": "text", "text": "b"}], "audio": "odd"}
    (message,) = openai_chat.messages([openai_chat.decode({"choices": [{"message": said}]})])
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert message == {"role": "assistant", "content": parts}


def test_arguments_go_back_as_texts() -> None:
    """Arguments of another type than the wire's are decoded, and go back as the API takes them."""
    calls: list[Any] = [
        {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "b", "type": "custom", "custom": {"name": "f"}},
        {"id": "c", "function": {"name": "f"}},
    ]
    old = {"name": "f", "arguments": {"x": 1}}
    message = {"tool_calls": calls, "function_call": old}
    turn = openai_chat.decode({"choices": [{"message": message}]})
    assert [call.arguments for call in turn.tool_calls] == ['{"x":1}', "", "", '{"x":1}']
    (sent,) = openai_chat.messages([turn])
    assert [call["function"]["arguments"] for call in sent["tool_calls"][::2]] == ['{"x":1}', "{}"]
    assert sent["tool_calls"][1]["custom"]["input"] == ""
    assert sent["function_call"]["arguments"] == '{"x":1}'


def test_odd_parts_of_a_streamed_message_are_errors_with_their_place() -> None:
    """Numbers and objects where text belongs are told at the event that brought them."""

    def feed(*deltas: Any) -> None:
        decoder = openai_chat.StreamDecoder()
        for delta in deltas:
            decoder.feed({"choices": [{"delta": delta}]})
        decoder.finish()

    for delta, where in (
        ({"content": 7}, "content"),
        ({"content": [{"type": "text", "text": 7}]}, "content[0].text"),
        ({"content": [7]}, "content[0]"),
        ({"tool_calls": [{"id": [], "function": {"name": "f"}}]}, "tool_calls[0].id"),
    ):
        with pytest.raises(DialectError) as caught:
            feed({"content": None}, delta)
        assert caught.value.where == f"event 1.choices[0].delta.{where}"


def test_a_count_that_cannot_be_is_none() -> None:
    """A number of tokens beyond any that there is counts as unknown."""
    usage = {"prompt_tokens": 10**30, "completion_tokens": 3.0}
    turn = openai_chat.decode({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (None, 3)
