"""What providers refuse: rendered requests never have it, `check` finds it, `repair` ends it."""

from __future__ import annotations

import copy
import re
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import Field

from lutum_py import (
    AssistantTurn,
    Attachment,
    CommittedRound,
    Message,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.turns import Cache
from tests.cases import over

GO = {"role": "user", "content": "Go"}
GO_BEDROCK = {"role": "user", "content": [{"text": "Go"}]}


def repaired(dialect: ModuleType, request: Any, *rules: str) -> Any:
    """Hold that a request breaks these rules, that a repair ends that, and that it is a copy."""
    before = copy.deepcopy(request)
    found = dialect.check(request)
    assert [each.rule for each in found] == [*rules]
    assert all(each.position and each.problem and each.remedy for each in found)
    fixed, changes = dialect.repair(request)
    assert [each.rule for each in changes] == [*rules]
    assert dialect.check(fixed) == []
    assert request == before
    return fixed


def anthropic_call(value: Any) -> list[Any]:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": value}
    said = {"role": "assistant", "content": [call]}
    return [GO, said, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]


def bedrock_call(value: Any, content: Any = None) -> list[Any]:
    call = {"toolUse": {"toolUseId": "a", "name": "f", "input": value}}
    result = {"toolUseId": "a", "content": [{"text": "1"}] if content is None else content}
    said = {"role": "assistant", "content": [call]}
    return [GO_BEDROCK, said, {"role": "user", "content": [{"toolResult": result}]}]


def gemini_call(value: Any) -> list[Any]:
    call = {"functionCall": {"name": "f", "args": value}}
    answer = {"functionResponse": {"name": "f", "response": {"output": 1}}}
    said = {"role": "model", "parts": [call]}
    return [{"role": "user", "parts": [{"text": "Go"}]}, said, {"role": "user", "parts": [answer]}]


def input_in(dialect: ModuleType, messages: list[Any]) -> Any:
    said = messages[1]
    if dialect is anthropic_messages:
        return said["content"][0]["input"]
    if dialect is bedrock_converse:
        return said["content"][0]["toolUse"]["input"]
    return said["parts"][0]["functionCall"]["args"]


OBJECTS = [
    (anthropic_messages, anthropic_call, "input_not_an_object"),
    (bedrock_converse, bedrock_call, "input_not_an_object"),
    (gemini_generate_content, gemini_call, "args_not_an_object"),
]


@pytest.mark.parametrize(("dialect", "called", "rule"), OBJECTS)
@over(
    "given, sent",
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("  {} ", {}),
        ("", {}),
        ("null", {}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ([1], {"INVALID_JSON": [1]}),
    ],
)
def test_arguments_as_json_text_are_read(
    dialect: ModuleType, called: Any, rule: str, given: Any, sent: Any
) -> None:
    """A repair reads arguments that are the JSON text of an object, and wraps only what is none."""
    assert input_in(dialect, repaired(dialect, called(given), rule)) == sent


# Rules over the whole of a request.


PDF = {"format": "pdf", "source": {"bytes": "JVBERg=="}}


def document(name: str) -> dict[str, Any]:
    return {"document": {**PDF, "name": name}}


def names_in(value: Any) -> list[str]:
    """The names of all documents, in their order."""
    if isinstance(value, dict):
        own = [value["document"]["name"]] if "document" in value else []
        return own + [name for each in value.values() for name in names_in(each)]
    return [name for each in value for name in names_in(each)] if isinstance(value, list) else []


@over(
    "names, sent, rules",
    [
        (["a", "b"], ["a", "b"], []),
        (["a", "a", "A"], ["a", "a (2)", "A (3)"], ["duplicate_document_name"] * 2),
        (["a", "a", "a (2)"], ["a", "a (2)", "a (2) (2)"], ["duplicate_document_name"] * 2),
        (["it's_1.pdf", "x  y"], ["it s 1 pdf", "x y"], ["invalid_document_name"] * 2),
        (["", "é"], ["document", "document (2)"], ["invalid_document_name"] * 2),
        (["n" * 201, "n" * 200], ["n" * 200, "n" * 190 + " (2)"], None),
    ],
)
def test_documents_have_names_of_their_own(
    names: list[str], sent: list[str], rules: list[str] | None
) -> None:
    """Each document of a request has a name of permitted letters that no other one has."""
    told = rules or ["invalid_document_name", "duplicate_document_name"]
    said: list[Any] = []
    for name in names:
        said.append({"role": "user", "content": [{"text": "Read"}, document(name)]})
        said.append({"role": "assistant", "content": [{"text": "Yes"}]})
    assert names_in(repaired(bedrock_converse, said, *(told if rules != [] else []))) == sent
    items: list[Any] = []
    for name in names:
        file = Attachment.from_bytes(b"%PDF", "application/pdf", name=f"{name or '?'}.pdf")
        items += [Message("user", "Read", (file,)), AssistantTurn(text="Yes")]
    assert names_in(dict(bedrock_converse.encode_request(TurnRequest(items=items)))) == sent


def test_documents_in_results_count_too() -> None:
    """A document of a result has a name of its own, in each request the same."""
    file = Attachment.from_bytes(b"%PDF", "application/pdf", name="a.pdf")
    call = ToolMetadata(id="c1", name="f", arguments="{}")
    result = ToolResult(id="c1", name="f", arguments="{}", result='"x"', attachments=(file, file))
    items: list[Any] = [Message("user", "Read", (file,)), AssistantTurn(tool_calls=[call]), result]
    body = bedrock_converse.encode_request(TurnRequest(items=items))
    assert names_in(body["messages"]) == ["a", "a (2)", "a (3)"]
    transcript = Transcript()
    transcript.push(items[0])
    transcript.append_round(CommittedRound(items[1], [result]))
    assert bedrock_converse.encode_request(TurnRequest(items=transcript)) == body
    for count in (4, 5):
        transcript.push(Message("user", "Again", (file,)))
        longer = bedrock_converse.encode_request(TurnRequest(items=transcript))
        assert names_in(longer["messages"]) == ["a", *(f"a ({n})" for n in range(2, count + 1))]
    content = [{"text": "1"}, document("a")]
    said = bedrock_call({}, content)
    said[0] = {"role": "user", "content": [{"text": "Go"}, document("a")]}
    fixed = repaired(bedrock_converse, said, "duplicate_document_name")
    assert names_in(fixed) == ["a", "a (2)"]


def test_a_document_has_a_text_beside_it() -> None:
    """A document alone in a message of the user gets a text that names it."""
    said = [{"role": "user", "content": [document("a"), document("b")]}]
    fixed = repaired(bedrock_converse, said, "document_without_text")
    assert fixed[0]["content"][-1] == {"text": "a, b"}
    odd = [{"role": "user", "content": [{"document": 5}, {"text": "x"}]}]
    assert [each.rule for each in bedrock_converse.check(odd)] == ["unknown_block"]
    file = Attachment.from_bytes(b"%PDF", "application/pdf", name="a.pdf")
    body = bedrock_converse.encode_request(TurnRequest(items=[Message("user", "", (file,))]))
    assert body["messages"][0]["content"][0] == {"text": "a"}


def marks_in(value: Any, key: str) -> int:
    if isinstance(value, dict):
        return (key in value) + sum(marks_in(each, key) for each in value.values())
    return sum(marks_in(each, key) for each in value) if isinstance(value, list) else 0


MARK = {"cache_control": {"type": "ephemeral"}}
POINT = {"cachePoint": {"type": "default"}}


def test_a_request_has_four_marks_of_the_cache() -> None:
    """The earliest marks in the messages go first, then those of the instructions."""
    text = {"type": "text", "text": "Hi", **MARK}
    said = [{"role": "user", "content": [dict(text)] * 3}]
    tool = {"name": "f", "input_schema": {"type": "object"}, **MARK}
    body = {"tools": [tool], "system": [text], "messages": said}
    fixed = repaired(anthropic_messages, body, "too_many_cache_marks")
    assert "cache_control" not in fixed["messages"][0]["content"][0]
    assert marks_in(fixed, "cache_control") == 4
    automatic = {**body, **MARK}
    fixed = repaired(anthropic_messages, automatic, *["too_many_cache_marks"] * 2)
    assert marks_in(fixed["messages"], "cache_control") == 1
    inner = {"type": "tool_result", "tool_use_id": "a", "content": [text] * 5}
    listed = anthropic_call({})
    listed[2] = {"role": "user", "content": [inner]}
    assert marks_in(repaired(anthropic_messages, listed, "too_many_cache_marks"), "type") > 4
    blocks = [{"text": "Hi"}, POINT] * 3
    points = {
        "toolConfig": {"tools": [{"toolSpec": {"name": "f"}}, POINT]},
        "system": [{"text": "Be brief"}, POINT],
        "messages": [{"role": "user", "content": blocks}],
    }
    fixed = repaired(bedrock_converse, points, "too_many_cache_marks")
    assert fixed["messages"][0]["content"] == [{"text": "Hi"}, *blocks[2:]]
    many = {"system": [{"text": "x", "type": "text", **MARK}] * 6, "messages": [GO]}
    assert marks_in(repaired(anthropic_messages, many, *["too_many_cache_marks"] * 2), "type") == 10


@over(
    "dialect, extra, key",
    [
        (anthropic_messages, {"tools": [{"type": "web_search_20250305", **MARK}]}, "cache_control"),
        (anthropic_messages, MARK, "cache_control"),
        (anthropic_messages, {"system": [{"type": "text", "text": "x", **MARK}]}, "cache_control"),
        (bedrock_converse, {"toolConfig": {"tools": [POINT]}}, "cachePoint"),
    ],
)
def test_marks_in_extras_count(dialect: ModuleType, extra: Any, key: str) -> None:
    """A request marks what its extras leave of the four, and reports the rest as a loss."""
    items: list[Any] = [
        Message("system", "Be brief"),
        *(each for n in range(3) for each in (Message("user", f"{n}"), AssistantTurn(text="x"))),
        Message("user", "Go"),
    ]
    tool = ToolDef.from_json_schema(name="f", input_schema={"type": "object"})
    request = TurnRequest(items=items, tools=(tool,), cache=Cache(turns=2), extra=extra)
    body = dialect.encode_request(request)
    assert marks_in(body, key) == 4 or "system" in extra
    assert dialect.check(dict(body)) == []
    assert [loss.where for loss in body.losses] == ["cache.turns"]


@over(
    "given, sent",
    [(1, "1"), ([1, "a"], '[1,"a"]'), (None, "null"), ("text", "text"), (True, "true")],
)
def test_the_json_of_a_result_is_an_object(given: Any, sent: str) -> None:
    """Other JSON of a result goes out as a text."""
    said = bedrock_call({}, [{"json": {"a": 1}}, {"json": given}])
    fixed = repaired(bedrock_converse, said, "result_json_not_an_object")
    (block,) = fixed[2]["content"]
    assert block["toolResult"]["content"] == [{"json": {"a": 1}}, {"text": sent}]


def test_blocks_of_converse_have_what_requests_have() -> None:
    """Reasoning has a text, and a result has no audio."""
    said = bedrock_call({}, [{"audio": {"format": "wav", "source": {"bytes": "eA=="}}}])
    thought = {"reasoningContent": {"reasoningText": {"signature": "s"}}}
    said[1]["content"] = [thought, *said[1]["content"], {"reasoningContent": 1}, {"text": "x"}]
    fixed = repaired(bedrock_converse, said, "missing_field", "unknown_block", "file_in_result")
    assert fixed[1]["content"][0]["reasoningContent"]["reasoningText"]["text"] == ""
    (block,) = fixed[2]["content"]
    assert block["toolResult"]["content"] == [{"text": "[audio: it cannot be shown]"}]


def test_what_is_not_marked_is_a_loss() -> None:
    """Where the extras take all marks, tools, instructions and turns go without, each a loss."""
    marked = [{"type": f"t{n}", **MARK} for n in range(4)]
    tool = ToolDef.from_json_schema(name="f", input_schema={"type": "object"})
    items: list[Any] = [Message("system", "Be brief"), Message("user", "Go")]
    extra: Any = {"tools": marked}
    body = anthropic_messages.encode_request(
        TurnRequest(items=items, tools=(tool,), cache=Cache(), extra=extra)
    )
    assert marks_in(dict(body), "cache_control") == 4
    assert [loss.where for loss in body.losses] == ["cache.tools", "cache.system", "cache.turns"]


def test_calls_in_the_history_have_their_tools_declared() -> None:
    """Bedrock wants a `toolConfig` where the conversation has calls."""
    said = bedrock_call({})
    said[1]["content"][0]["toolUse"]["name"] = "a.b"
    fixed = repaired(
        bedrock_converse, {"messages": said}, "invalid_tool_name", "calls_without_tools"
    )
    (tool,) = fixed["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == fixed["messages"][1]["content"][0]["toolUse"]["name"]
    declared = {"messages": bedrock_call({}), "toolConfig": {"tools": [tool]}}
    assert repaired(bedrock_converse, declared) == declared
    assert bedrock_converse.check(bedrock_call({})) == []
    empty = {"messages": bedrock_call({}), "toolConfig": {"toolChoice": {"auto": {}}, "tools": []}}
    fixed = repaired(bedrock_converse, empty, "calls_without_tools")
    assert fixed["toolConfig"]["toolChoice"] == {"auto": {}}
    assert len(fixed["toolConfig"]["tools"]) == 1


ODD = {
    "type": "object",
    "properties": {"filter[id]": {"type": "integer"}, "n": {"type": "integer"}},
    "required": ["filter[id]"],
}


def anthropic_tools(schema: Any) -> dict[str, Any]:
    return {"tools": [{"name": "f", "input_schema": schema}], "messages": [GO]}


def bedrock_tools(schema: Any) -> dict[str, Any]:
    tools = [{"toolSpec": {"name": "f", "inputSchema": {"json": schema}}}]
    return {"toolConfig": {"tools": tools}, "messages": [GO_BEDROCK]}


KEYS = [(anthropic_messages, anthropic_tools), (bedrock_converse, bedrock_tools)]


@pytest.mark.parametrize(("dialect", "body"), KEYS)
@pytest.mark.parametrize("strict", [False, True])
def test_odd_property_keys_go_out_as_stand_ins(
    dialect: ModuleType, body: Any, strict: bool
) -> None:
    """A key that the API refuses has a stand-in, by which the call means the property."""
    tool = ToolDef.from_json_schema(name="f", input_schema=ODD)
    sent = dialect.tools([tool], strict=strict)
    made = sent[0].get("input_schema") or sent[0]["toolSpec"]["inputSchema"]["json"]
    key, other = made["properties"]
    assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key)
    assert other == "n"
    assert made["required"] == [key]
    assert made["properties"][key]["description"].startswith("filter[id]")
    assert tool.input_schema == ODD
    fixed = repaired(dialect, body(ODD), "invalid_property_key")
    assert strict or fixed == body(made)
    compiled = dialect.compile(tool, strict=strict)
    assert compiled.schema == made
    assert compiled.decoder(f'{{"{key}":1}}') == '{"filter[id]":1}'
    assert compiled.decoder({key: 1, "n": 2}) == {"filter[id]": 1, "n": 2}
    assert compiled.decoder("[") == "["
    assert compiled.decoder('{"n":1}') == '{"n":1}'
    loose = {"type": "object", "properties": {"a b": True}}
    fixed = repaired(dialect, body(loose), "invalid_property_key")
    (named,) = dialect.tools([ToolDef.from_json_schema(name="f", input_schema=loose)])
    made = named.get("input_schema") or named["toolSpec"]["inputSchema"]["json"]
    assert fixed == body({"type": "object", "properties": dict.fromkeys(made["properties"], True)})


def test_a_stand_in_for_a_property_means_it() -> None:
    """A call whose arguments have the stand-in of a key gets the value under the key."""
    sent = anthropic_messages.tools([ToolDef.from_json_schema(name="f", input_schema=ODD)])
    key = next(iter(sent[0]["input_schema"]["properties"]))

    @tool_fn
    def find(id: Annotated[int, Field(alias="filter[id]")], n: int = 0) -> int:
        return id + n

    foreign = ToolDef.from_json_schema(name="foreign", input_schema=ODD)
    tools = Toolset.from_definitions("Foreign", [foreign])

    class Tools(Toolset):
        find_ = tool(find)

    text = f'{{"{key}":1,"n":2}}'
    call: Any = Tools.parse_tool_call(ToolMetadata(id="c", name="find", arguments=text))
    assert (call.input.id, call.input.n) == (1, 2)
    loose = tools.parse_tool_call(ToolMetadata(id="c", name="foreign", arguments=text))
    assert loose.input == {"filter[id]": 1, "n": 2}


# What the Messages API refuses of blocks.


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SAID = {"type": "text", "text": "Well"}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
PROGRAM_USE = {**USE, "caller": {"type": "code_execution_20260120", "tool_id": "s1"}}
ANSWER = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


NO_RESULT, NO_CALL = "server_call_without_result", "orphan_server_result"


@over(
    "messages, rules, left",
    [
        ([GO, says(SEARCH, FOUND), GO], [], [SEARCH, FOUND]),
        ([GO, says(SAID, SEARCH)], [], [SAID, SEARCH]),
        ([GO, says(SAID, SEARCH), GO], [NO_RESULT], [SAID]),
        ([GO, says(SAID, THOUGHT, SEARCH), GO], ["reasoning_at_end", NO_RESULT], [SAID]),
        ([GO, says(FOUND, SAID), GO], [NO_CALL], [SAID]),
        ([GO, says(SAID, FOUND, SEARCH, FOUND), GO], [NO_CALL], [SAID, SEARCH, FOUND]),
        ([GO, says(SEARCH, USE), ANSWER], [], [SEARCH, USE]),
        ([GO, says(SEARCH, PROGRAM_USE), ANSWER, says(FOUND, SAID)], [], [SEARCH, PROGRAM_USE]),
        ([GO, says(SEARCH, USE), ANSWER, says(SAID), GO], [NO_RESULT], [USE]),
        ([GO, says(SAID, {**SEARCH, "type": "mcp_tool_use"}), GO], [NO_RESULT], [SAID]),
        ([GO, says(SAID, {**FOUND, "type": "mcp_tool_result"}), GO], [NO_CALL], [SAID]),
        ([GO, says(SAID, {"type": "server_tool_use"}), GO], [NO_RESULT], [SAID]),
    ],
)
def test_server_calls_and_their_results_stand_together(
    messages: list[Any], rules: list[str], left: list[Any]
) -> None:
    """What the provider ran has its result before the user speaks, and no result is alone."""
    assert repaired(anthropic_messages, messages, *rules)[1]["content"] == left
    items: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            turn = anthropic_messages.decode({"content": message["content"]})
            items.append(turn)
        elif message is ANSWER:
            items.append(result_of(turn))
        else:
            items.append(Message("user", "Go"))
    body = anthropic_messages.encode_request(TurnRequest(items=items))
    assert anthropic_messages.check(dict(body)) == []
    assert body["messages"][1]["content"] == left
    lost = [rule for rule in rules if rule != "reasoning_at_end"]
    assert [loss.where[:20] for loss in body.losses] == ["messages[1].content["] * len(lost)


def result_of(turn: AssistantTurn, said: str = '"1"', **fields: Any) -> ToolResult:
    (call,) = turn.tool_calls
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=said, **fields)


def test_a_turn_of_one_server_call_alone_goes() -> None:
    """Where nothing of a turn is left, it is left out, and the marks of the cache stay right."""
    said = [Message("user", "Go"), anthropic_messages.decode({"content": [THOUGHT, SEARCH]})]
    items: list[Any] = [*said, Message("user", "Now")]
    body = anthropic_messages.encode_request(TurnRequest(items=items, cache=Cache()))
    assert [each["role"] for each in body["messages"]] == ["user", "user"]
    assert marks_in(body["messages"], "cache_control") == 2
    assert [loss.where for loss in body.losses] == ["messages[1].content[1]"]
    assert anthropic_messages.check(dict(body)) == []


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://x.y/z.png"}}
BLANK = {"type": "text", "text": " "}


@over(
    "content, is_error, rules, sent",
    [
        ("", True, ["error_without_text"], None),
        (" \n", True, ["error_without_text"], None),
        (None, True, ["error_without_text"], None),
        ([], True, ["error_without_text"], None),
        ([BLANK], True, ["error_without_text", "empty_text"], None),
        ([IMAGE], True, ["error_without_text", "file_in_error"], None),
        ([SAID, IMAGE], True, ["file_in_error"], [SAID]),
        ([SAID, BLANK], False, ["empty_text"], [SAID]),
        ([BLANK], False, ["empty_text"], []),
        ([IMAGE, SAID], False, [], [IMAGE, SAID]),
        ("", False, [], ""),
        ("x", True, [], "x"),
    ],
)
def test_an_error_says_something(content: Any, is_error: bool, rules: list[str], sent: Any) -> None:
    """A result that is an error has a text, and nothing but text; no text in a result is blank."""
    said = [GO, says(USE), copy.deepcopy(ANSWER)]
    said[2]["content"][0].update(content=content, **({"is_error": True} if is_error else {}))
    fixed = repaired(anthropic_messages, said, *rules)[2]["content"][0]["content"]
    assert fixed == sent if sent is not None else fixed.strip()


@over("text, has_file", [('""', False), ('" "', True), ('"x"', True), ('"x"', False)])
@over("status", ["error", "success"])
def test_a_rendered_error_says_something(text: str, has_file: bool, status: Any) -> None:
    """What goes out of a result is never an error without text, nor one with a file."""
    turn = anthropic_messages.decode({"content": [USE]})
    picture = Attachment(media_type="image", mime_type="image/png", url="https://x.y/z.png")
    files = (picture,) if has_file else ()
    result = result_of(turn, text, status=status, attachments=files)
    body = anthropic_messages.encode_request(
        TurnRequest(items=[Message("user", "Go"), turn, result])
    )
    assert anthropic_messages.check(dict(body)) == []
    (block,) = body["messages"][2]["content"]
    lost = [loss.where for loss in body.losses]
    if status == "error":
        assert block["content"].strip()
        assert lost == (["items[2].attachments[0]"] if has_file else [])


@over(
    "dialect, text",
    [
        (anthropic_messages, {"type": "text", "text": "So: \n"}),
        (bedrock_converse, {"text": "So: \n"}),
    ],
)
def test_a_last_turn_does_not_end_with_white_space(dialect: ModuleType, text: Any) -> None:
    """What the model should go on from has no white space at its end; earlier turns keep theirs."""
    go = {"role": "user", "content": [{**text, "text": "Go"}]}
    fixed = repaired(dialect, {"messages": [go, says(text)]}, "white_space_at_end")["messages"]
    assert fixed[1]["content"][-1]["text"] == "So:"
    assert dialect.check({"messages": [go, says(text), go]}) == []
    assert dialect.check([go, says(text)]) == []  # which may go on
    items: list[Any] = [Message("user", "Go"), AssistantTurn(text="So: \n")]
    body = dialect.encode_request(TurnRequest(items=items))
    assert body["messages"] == fixed
    assert dialect.messages(items)[1]["content"][0]["text"] == "So: \n"


def test_a_last_text_does_not_end_with_white_space() -> None:
    """The same of a content that is a text."""
    said = {"messages": [GO, {"role": "assistant", "content": "So: "}]}
    fixed = repaired(anthropic_messages, said, "white_space_at_end")
    assert fixed["messages"][1]["content"] == "So:"
    turn = anthropic_messages.decode({"content": "So: "})
    body = anthropic_messages.encode_request(TurnRequest(items=[Message("user", "Go"), turn]))
    assert body["messages"][1]["content"] == "So:"


def test_citations_have_the_fields_that_requests_have() -> None:
    """A citation has its title, if only as null, and no file id, which is of responses alone."""
    cited = {"type": "char_location", "file_id": "f", "cited_text": "x"}
    said = [GO, says({**SAID, "citations": [cited, {"type": "odd", "file_id": "f"}]}), GO]
    fixed = repaired(anthropic_messages, said, *["citation_not_sendable"] * 2)
    sent = [{"type": "char_location", "cited_text": "x", "document_title": None}, {"type": "odd"}]
    assert fixed[1]["content"][0]["citations"] == sent


# What the Responses API refuses of items.


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "x1", "call_id": "c1", **fields}


APPROVAL = {"type": "mcp_approval_request", "id": "m1", "name": "f", "server_label": "s"}
SHELL = item("shell_call", action={"commands": ["ls"]})
CALLS = [
    item("local_shell_call", action={"type": "exec"}),
    SHELL,
    item("apply_patch_call", operation={"type": "delete_file", "path": "x"}),
    APPROVAL,
]
REASON = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "x"}


@over("call", CALLS)
def test_calls_of_the_program_are_answered(call: dict[str, Any]) -> None:
    """Shell, patch and approval items without an answer get one that says that nobody answered."""
    said = [GO, REASON, call, GO]
    fixed = repaired(openai_responses, said, "call_without_result")
    answer = fixed[3]
    assert answer["type"] in (f"{call['type']}_output", "mcp_approval_response")
    assert answer.get("call_id", answer.get("approval_request_id")) in ("c1", "m1")
    assert answer.get("approve", False) is False
    assert fixed == [*said[:3], answer, GO]
    assert repaired(openai_responses, fixed) == fixed
    turn = openai_responses.decode({"output": [REASON, call], "status": "completed"})
    items: list[Any] = [Message("user", "Go"), turn, Message("user", "Go")]
    body = openai_responses.encode_request(TurnRequest(items=items))
    assert body["input"] == fixed
    assert [loss.where for loss in body.losses] == ["items[1]"]


@over("call, rule", [(item("computer_call"), None), (item("camera_call"), "unknown_call")])
def test_what_cannot_be_answered_is_never_silent(call: Any, rule: str | None) -> None:
    """A call whose answer is a picture goes; one of an unknown kind is found, and stays."""
    said = [GO, REASON, call, GO]
    found = openai_responses.check(said)
    fixed, changes = openai_responses.repair(said)
    if rule is None:
        assert [each.rule for each in found] == ["reasoning_without_item", "call_without_result"]
        assert fixed == [GO, GO]
        turn = openai_responses.decode({"output": [REASON, call], "status": "completed"})
        items: list[Any] = [Message("user", "Go"), turn]
        body = openai_responses.encode_request(TurnRequest(items=items))
        assert body["input"] == [GO]
        assert len(body.losses) == 1
    else:
        assert [(each.rule, each.is_repaired) for each in changes] == [(rule, False)]
        assert fixed == said
    answer = {"type": f"{call['type']}_output", "call_id": "c1", "output": {}}
    assert openai_responses.check([GO, call, answer]) == []


def test_what_the_provider_runs_needs_no_answer() -> None:
    """A shell in a container of the provider's, and its own calls, are not the program's."""
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "c"}}
    said = [GO, hosted, {"type": "web_search_call", "id": "w1", "status": "completed"}]
    assert openai_responses.check(said) == []


CODE = {"type": "code_interpreter_call", "id": "ci1", "container_id": "c"}
PICTURE = {"type": "image_generation_call", "id": "ig1", "status": "completed"}
FUNCTION = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "1"}


@over(
    "given, rules, sent",
    [
        ([{**REASON, "summary": None}, FUNCTION, OUTPUT], ["missing_field"], {"summary": []}),
        (
            [{"type": "reasoning", "id": "rs1"}, FUNCTION, OUTPUT],
            ["missing_field"],
            {"summary": []},
        ),
        ([{**FUNCTION, "id": ""}, OUTPUT], ["invalid_item_id"], FUNCTION),
        ([{**FUNCTION, "id": "call_7"}, OUTPUT], ["invalid_item_id"], FUNCTION),
        ([{**FUNCTION, "id": "fc_7"}, OUTPUT], [], {"id": "fc_7"}),
        ([{**FUNCTION, "created_by": "x"}, OUTPUT], ["response_field"], FUNCTION),
        ([CODE], ["missing_field"] * 2, {"code": None, "outputs": None}),
        ([PICTURE], [], PICTURE),
    ],
)
def test_items_have_the_fields_of_requests(given: Any, rules: list[str], sent: Any) -> None:
    """Reasoning has a summary, ids of items are not those of calls, fields of responses go."""
    fixed = repaired(openai_responses, [GO, *given], *rules)
    assert {key: fixed[1].get(key) for key in sent} == sent
    assert fixed[1].keys() - sent.keys() <= given[0].keys() - {"created_by"}
    output = [each for each in given if each is not OUTPUT]
    turn = openai_responses.decode({"output": output, "status": "completed"})
    items: list[Any] = [
        Message("user", "Go"),
        turn,
        *(map(result_of, [turn]) if turn.tool_calls else ()),
    ]
    body = openai_responses.encode_request(TurnRequest(items=items))
    assert openai_responses.check(dict(body)) == []
    assert {key: body["input"][1].get(key) for key in sent} == sent


# What Chat Completions refuses.


def chat_call(**fields: Any) -> list[Any]:
    call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}, **fields}
    result = {"role": "tool", "tool_call_id": "c1", "content": "1"}
    return [GO, {"role": "assistant", "tool_calls": [call]}, result]


VIEW = {"type": "image_url", "image_url": {"url": "https://x.y/z.png"}}


@over(
    "fields, rules",
    [
        ({}, ["call_without_type"]),
        ({"type": None}, ["call_without_type"]),
        ({"type": "function"}, []),
        ({"type": "function", "custom": None}, ["empty_shell"]),
        ({"custom": None}, ["empty_shell", "call_without_type"]),
    ],
)
def test_a_chat_call_has_its_type(fields: Any, rules: list[str]) -> None:
    """A call has its type, and no shell of another kind."""
    fixed = repaired(openai_chat, chat_call(**fields), *sorted(rules))
    assert fixed == chat_call(type="function")
    turn = openai_chat.decode({"choices": [{"message": chat_call(**fields)[1]}]})
    body = openai_chat.encode_request(
        TurnRequest(items=[Message("user", "Go"), turn, result_of(turn)])
    )
    assert openai_chat.check(dict(body)) == []
    assert openai_chat.read_history(chat_call(**fields))[1] == []


@over(
    "content, sent",
    [
        ([{"type": "text", "text": "x"}], [{"type": "text", "text": "x"}]),
        ([VIEW], [{"type": "text", "text": "[image_url: it cannot be shown]"}]),
        ([{"type": 7}], None),
    ],
)
def test_the_result_of_a_chat_call_is_text(content: Any, sent: Any) -> None:
    """An image in the result of a call is found, and a note stands for it."""
    said = chat_call(type="function")
    said[2]["content"] = content
    if sent is None:
        assert openai_chat.check(said) == []
        return
    assert (
        repaired(openai_chat, said, *["file_in_result"] * (sent != content))[2]["content"] == sent
    )
    assert openai_chat.check([{"role": "user", "content": [VIEW]}]) == []


def test_audio_and_choices_are_as_requests_have_them() -> None:
    """The data of audio stays at home, and a choice of tools needs tools."""
    audio = {"id": "a1", "data": "xx", "transcript": "Hi"}
    said = [GO, {"role": "assistant", "audio": audio}]
    assert repaired(openai_chat, said, "audio_data")[1]["audio"] == {"id": "a1"}
    body = {"tool_choice": "auto", "parallel_tool_calls": True, "messages": [GO]}
    rules = ["choice_without_tools"] * 2
    assert repaired(openai_chat, body, *rules) == {"messages": [GO]}
    tools = {"tools": [{"type": "function", "function": {"name": "f"}}]}
    assert openai_chat.check({**body, **tools}) == []
