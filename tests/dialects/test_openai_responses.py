"""Responses: what is decoded of a response, what goes back of a turn, and the request body."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    AssistantTurn,
    Attachment,
    Message,
    ToolDef,
    ToolMetadata,
    TurnRequest,
    Usage,
)
from lutum_py.dialects import (
    openai_responses,
)
from lutum_py.dialects import openai_responses as dialect
from lutum_py.errors import DialectError, MisuseError
from lutum_py.turns import (
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
)
from lutum_py.typing import ToolChoice
from tests.cases import over

from .called import BAD, answers
from .mutations import committed
from .other_model import sent
from .responses_wire import ECHO, call, message, output, reasoning, response, result, text
from .wire_laws import goes_on


def test_a_turn_holds_all_that_was_said() -> None:
    """Items come in the order of the output; what the provider ran is kept whole."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    turn = dialect.decode(
        response(
            reasoning(summary=[{"text": "One."}, {"text": "Two."}]),
            search,
            message(text("We"), text(""), {"type": "refusal", "refusal": "No."}, {"type": "odd"}),
            call("c1", '{"a": 1}'),
            {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"},
            usage={
                "input_tokens": 3,
                "output_tokens": 2,
                "input_tokens_details": {"cached_tokens": 1},
                "output_tokens_details": {"reasoning_tokens": None},
            },
        )
    )
    assert turn.items == (
        ReasoningItem("One.\n\nTwo."),
        ServerToolItem("web_search_call", search),
        TextItem("We"),
        RefusalItem("No."),
        ToolCallItem(ToolMetadata(id="c1", name="echo", arguments='{"a": 1}')),
        ToolCallItem(ToolMetadata(id="c2", name="sh", arguments="ls")),
    )
    assert turn.usage == Usage(input_tokens=3, output_tokens=2, cached_tokens=1)
    assert (turn.finish_reason, turn.model, turn.request_id) == ("completed", "m", "r1")
    assert turn.dialect == dialect.NAME == "openai_responses"


@over(
    "fields, shown",
    [
        ({}, ""),
        ({"encrypted_content": "x"}, ""),
        ({"content": [{"type": "reasoning_text", "text": "Hm."}]}, "Hm."),
        ({"content": [{"text": "Raw."}], "summary": [{"text": "Short."}]}, "Raw."),
        ({"content": [], "summary": [{"type": "summary_text"}]}, ""),
    ],
)
def test_reasoning_is_shown_as_far_as_it_is_open(fields: dict[str, Any], shown: str) -> None:
    """Reasoning is its own text, else its summary, else an empty item that holds the place."""
    assert dialect.decode(response(reasoning(**fields))).items == (ReasoningItem(shown),)


@over(
    "status, details, reason",
    [
        ("incomplete", {"reason": "max_output_tokens"}, "max_output_tokens"),
        ("incomplete", {}, "incomplete"),
    ],
)
def test_the_finish_reason_is_the_providers_word(status: str, details: Any, reason: str) -> None:
    """The reason of an incomplete response is the finish reason, else its status is."""
    turn = dialect.decode(response(status=status, incomplete_details=details))
    assert (turn.finish_reason, turn.items, turn.usage) == (reason, (), None)


@over("sent, kept", [("", ""), (None, ""), ({"a": None}, '{"a":null}'), ("{", "{")])
def test_the_raw_argument_text_is_kept(sent: Any, kept: str) -> None:
    """Arguments are the text that came, byte for byte; an object becomes its JSON."""
    assert dialect.decode(response(call("c1", sent))).tool_calls[0].arguments == kept


def test_a_call_without_an_id_gets_one_of_ours_that_never_goes_back() -> None:
    """An id of ours tells calls apart, and is not sent to the host that sent none."""
    turn = dialect.decode(response(call(None), call(None)))
    first, second = turn.tool_calls
    assert first.id.startswith("lutum_")
    assert first.id != second.id
    said = dialect.messages([turn, *map(result, turn.tool_calls)])
    assert said == [call(None), call(None), output(None, "done"), output(None, "done")]
    assert dialect.check(said) == []


def test_what_only_the_sdk_says_is_not_the_providers() -> None:
    """Null fields and what the SDK parsed on its own are no part of a turn."""
    search = {"type": "tool_search_call", "arguments": {"q": None}, "execution": "server"}
    tidy = response(message(text("x")), call("c1"), search)
    careless = response(
        message({**text("x"), "parsed": {"x": 1}, "logprobs": None}),
        {**call("c1"), "parsed_arguments": {}, "status": None},
        {**search, "call_id": None},
        error=None,
        usage=None,
    )
    assert dialect.decode(careless) == dialect.decode(tidy)
    assert dialect.decode(tidy).payload["output"][2]["arguments"] == {"q": None}


@over(
    "sent, where, problem",
    [
        ("<html>502</html>", "", "expected the JSON object"),
        ({"error": {"message": "Too many."}}, "error", "Too many."),
        ({"status": "failed"}, "", "does not say why"),
        ({"status": "completed"}, "", "'output' is missing"),
        ({"output": [7]}, "output[0]", "expected an object"),
        ({"output": [message({"type": "output_text"})]}, "output[0].content[0]", "'text'"),
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
    """Every item goes back in its order; only what the API refuses to take is left out."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    sent = [
        reasoning(encrypted_content="x"),
        search,
        {**call("c1"), "id": "fc_1", "status": "completed", "namespace": "n"},
    ]
    turn = dialect.decode(response({**sent[0], "status": "completed"}, *sent[1:]))
    said = dialect.messages([turn])
    assert said == sent
    said[2]["name"] = "other"
    assert dialect.messages([turn]) == sent
    made = {"created_by": "x"}
    program = {"type": "shell_call_output", **made, "id": "s", "output": [{"stdout": "1", **made}]}
    assert dialect.messages([dialect.decode(response(program))]) == [
        {"type": "shell_call_output", "id": "s", "output": [{"stdout": "1"}]}
    ]


def test_text_in_place_of_parts_goes_to_another_model_too() -> None:
    """What a host says as plain text is said to every model."""
    turn = dialect.decode(response({**message(), "content": "Hello"}))
    assert turn.text == "Hello"
    assert sent(dialect, turn, "m")["input"][1] == {**message(), "content": "Hello"}
    assert sent(dialect, turn, "other")["input"][1] == {"role": "assistant", "content": "Hello"}


def test_a_field_that_has_to_be_there_is_there() -> None:
    """A field that the API wants, if only as null, goes back as null."""
    code = {"type": "code_interpreter_call", "id": "ci", "container_id": "k", "code": "1"}
    assert dialect.messages([dialect.decode(response({**code, "outputs": None}))]) == [
        {**code, "outputs": None}
    ]


def test_reasoning_that_nobody_kept_does_not_go_back() -> None:
    """Reasoning that was neither stored nor encrypted cannot be found again, so it stays out."""
    kept = [reasoning(encrypted_content="x"), reasoning(content=[{"text": "x"}], id="rs_2")]
    turn = dialect.decode(response(reasoning(), *kept, call("c1"), store=False))
    body = dialect.encode_request(TurnRequest(items=[turn]))
    assert body["input"] == [*kept, call("c1")]
    (loss,) = body.losses
    assert "reasoning.encrypted_content" in str(loss)
    stored = dialect.decode(response(reasoning(), call("c1"), store=True))
    assert dialect.messages([stored]) == [reasoning(), call("c1")]


def test_a_turn_of_another_dialect_is_sent_in_the_neutral_view() -> None:
    """Text, refusal and calls go over in their order; the rest is reported as lost."""
    metadata = ToolMetadata(id="c1", name="echo", arguments="")
    turn = AssistantTurn(
        items=[
            ReasoningItem("Hm."),
            ToolCallItem(metadata),
            TextItem("Well."),
            RefusalItem("No."),
        ]
    )
    silent = AssistantTurn(text=None, dialect="another", payload={"choices": []})
    body = dialect.encode_request(TurnRequest(items=[turn, result(metadata), silent]))
    assert body["input"] == [
        call("c1", "{}"),
        {"role": "assistant", "content": "Well."},
        {"role": "assistant", "content": "No."},
        output("c1", "done"),
        {"role": "assistant", "content": ""},
    ]
    assert [loss.where for loss in body.losses] == ["items[0]", "items[2]"]


def test_each_call_is_answered_in_its_own_kind() -> None:
    """A custom tool's call gets a custom output; a result alone gets that of a function."""
    custom = {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"}
    turn = dialect.decode(response(custom))
    said = dialect.messages([turn, *map(result, turn.tool_calls)])
    assert said == [custom, output("c2", "done", "custom_tool_call")]
    assert dialect.check(said) == []
    alone = result(ToolMetadata(id="c9", name="f", arguments="{}"))
    assert dialect.messages([alone]) == [output("c9", "done")]


def test_only_what_a_transcript_holds_is_rendered() -> None:
    """Anything else than a message, turn or result is a mistake of the caller."""
    with pytest.raises(MisuseError):
        dialect.messages([{"role": "user"}])  # type: ignore[list-item]


def test_attachments_become_parts_where_there_are_parts_for_them() -> None:
    """Images and files go with messages and with results; the rest is reported as lost."""
    image = Attachment(
        media_type="image", mime_type="image/png", url="https://e.org/a.png", caption="A cat"
    )
    near = Attachment(
        media_type="file", mime_type="application/pdf", url="data:application/pdf;base64,aGk="
    )
    far = Attachment(media_type="file", mime_type="application/pdf", url="https://e.org/a.pdf")
    video = Attachment(media_type="video", mime_type="video/mp4", url="https://e.org/a.mp4")
    metadata = ToolMetadata(id="c1", name="f", arguments="{}")
    body = dialect.encode_request(
        TurnRequest(
            items=[
                Message("user", "Look", (image, near, far, video)),
                Message("user", "", (video,)),
                result(metadata, attachments=(far,)),
                result(metadata, attachments=(video,)),
            ]
        )
    )
    pdf = {"type": "input_file", "file_url": "https://e.org/a.pdf"}
    assert body["input"] == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_text", "text": "A cat"},
                {"type": "input_image", "image_url": "https://e.org/a.png", "detail": "auto"},
                {
                    "type": "input_file",
                    "filename": "attachment.pdf",
                    "file_data": "data:application/pdf;base64,aGk=",
                },
                pdf,
            ],
        },
        {"role": "user", "content": ""},
        output("c1", [{"type": "input_text", "text": "done"}, pdf]),
        output("c1", f"done\n{video.described}"),
    ]
    assert [loss.where for loss in body.losses] == [
        "items[0].attachments[3]",
        "items[1].attachments[0]",
        "items[3].attachments[0]",
    ]


def test_a_request_has_the_names_of_the_dialect() -> None:
    """Tools, tool choice, parameters and extras stand where the API looks for them."""
    request = TurnRequest(
        items=[Message("developer", "Be kind"), Message("user", "Hi")],
        tools=(ECHO,),
        tool_choice=ToolChoice("specific", "echo"),
        temperature=0,
        max_output_tokens=9,
        parallel_tool_calls=True,
        extra={"store": False, "tools": [{"type": "web_search"}]},
    )
    assert dialect.encode_request(request) == {
        "input": [{"role": "developer", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
        "tools": [
            {
                "type": "function",
                "name": "echo",
                "description": "Say it again.",
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
                "strict": False,
            },
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "echo"},
        "parallel_tool_calls": True,
        "temperature": 0,
        "max_output_tokens": 9,
        "store": False,
    }
    assert dialect.encode_request(TurnRequest(items=[])) == {"input": []}


@over("mode", ["auto", "required", "none"])
def test_a_tool_choice_is_one_word(mode: Any) -> None:
    """What is asked without naming a tool is the API's own word for it."""
    assert dialect.tool_choice(ToolChoice(mode)) == mode


def test_strict_tools_have_the_schema_for_that() -> None:
    """Strictness is said either way, because the API is strict where nothing is said."""
    bare = ToolDef.from_json_schema(name="bare", input_schema={"type": "object"})
    (made,) = dialect.tools([ECHO], strict=True)
    assert made["strict"] is True
    assert made["parameters"] == dialect.compile(ECHO, strict=True).schema
    assert dialect.tools([bare]) == [
        {
            "type": "function",
            "name": "bare",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]


def test_responses_forgets_reasoning_and_ids() -> None:
    """Reasoning goes, with the ids by which the API would ask for it and what needs one."""
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "echo",
        "arguments": "{}",
        "status": "completed",
    }
    parts = [
        {"type": "output_text", "text": "Hi, ", "annotations": []},
        {"type": "refusal", "refusal": "no."},
    ]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}
    silent = {**message, "id": "msg_2", "content": []}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "aGlk"}
    output = [reasoning, search, message, silent, call]
    response = {"model": "gpt-5-2025-08-07", "output": output, "status": "completed"}
    turn = openai_responses.decode(response)
    assert sent(openai_responses, turn, "gpt-5")["input"][1:6] == output
    body = sent(openai_responses, turn, "gpt-5-mini")
    assert body["input"][1:-2] == [
        {"role": "assistant", "content": "Hi, no."},
        {key: value for key, value in call.items() if key != "id"},
    ]
    (loss,) = body.losses
    assert str(loss) == (
        "items[1]: the reasoning, the web_search_call that the provider ran of gpt-5-2025-08-07 "
        "is for that model alone: not sent to gpt-5-mini"
    )
    plain = openai_responses.decode({**response, "output": [message, call]})
    assert sent(openai_responses, plain, "gpt-5-mini").losses == ()


def test_another_model_is_told_what_a_message_was_for() -> None:
    """A remark stays a remark and an answer an answer; a model that is told neither does worse."""
    said = [
        {
            "type": "message",
            "id": f"msg_{phase}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            "phase": phase,
        }
        for phase in ("commentary", "final_answer", None)
    ]
    turn = openai_responses.decode({"model": "gpt-5.4", "output": said, "status": "completed"})
    body = sent(openai_responses, turn, "gpt-5.5")
    assert body["input"][1:-1] == [
        {"role": "assistant", "content": "Hi.", "phase": "commentary"},
        {"role": "assistant", "content": "Hi.", "phase": "final_answer"},
        {"role": "assistant", "content": "Hi."},
    ]
    assert openai_responses.check(body) == []


def test_a_search_for_tools_that_the_program_runs_is_a_call() -> None:
    """A search for tools with `execution: client` is a call of `tool_search`, to be answered."""
    item = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "s1",
        "arguments": {"queries": ["rates"]},
    }
    turn = openai_responses.decode({"output": [item], "status": "completed"})
    (call,) = turn.tool_calls
    assert (call.id, call.name, call.arguments) == ("s1", "tool_search", '{"queries":["rates"]}')
    items = committed(turn)
    assert items is not None
    _, sent, answer, _ = openai_responses.messages(items)
    assert sent == item
    assert answer["type"] == "function_call_output"
    goes_on(turn)


@over("kind", ["function_call_output", "custom_tool_call_output", "tool_search_output"])
def test_a_model_answers_no_call(kind: str) -> None:
    """An item that only a program sends is no part of a response; the provider's own search is."""
    with pytest.raises(DialectError, match=rf"at output\[0\]: a {kind} is the program's answer"):
        openai_responses.decode({"output": [{"type": kind, "call_id": "c", "output": "x"}]})
    item = {"type": "tool_search_output", "execution": "server", "tools": []}
    assert openai_responses.decode({"output": [item]}).payload["output"] == [item]


def test_reasoning_that_led_to_nothing_does_not_go_back() -> None:
    """Reasoning at the end of a response that was cut off is left out, and is a loss."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    turn = openai_responses.decode({"output": [thought], "status": "incomplete"})
    request = TurnRequest(items=[Message("user", "x"), turn, Message("user", "y")])
    body = openai_responses.encode_request(request)
    assert [item["content"] for item in body["input"]] == ["x", "y"]
    (loss,) = body.losses
    assert "led to nothing" in str(loss)


def test_an_id_of_an_item_goes_out_once() -> None:
    """Hosts number items anew in each response: the second item of an id goes without it."""
    part = {"type": "output_text", "text": "Hi"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    turn = openai_responses.decode({"output": [said], "status": "completed"})
    first, second = openai_responses.messages([turn, turn])
    assert first == said
    assert second == {key: value for key, value in said.items() if key != "id"}
    assert openai_responses.check([first, second]) == []


def test_a_message_item_goes_back_as_the_assistants() -> None:
    """An odd role and a missing content go back in a form that is taken."""
    (message,) = openai_responses.messages(
        [openai_responses.decode({"output": [{"type": "message", "role": "x"}]})]
    )
    assert message == {"type": "message", "role": "assistant", "content": []}


def test_an_item_of_a_custom_call_goes_out_under_another_name_too() -> None:
    """Custom calls are renamed like functions."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": BAD, "input": "x"}
    turn = openai_responses.decode({"output": [item]})
    assert openai_responses.check(openai_responses.messages([turn, *answers(turn)])) == []
