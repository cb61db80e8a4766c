"""Loops as users write them: right ones, and wrong ones by the fault that each has."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lutum_py import (
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    ToolMetadata,
    ToolResult,
    execution,
)
from lutum_py.errors import DuplicateToolCallIdError, RoundClosedError, ToolError
from lutum_py.testing import ScriptedModel

from .samples import Small

Loop = Callable[[Any, Any], object]


def readme(session: Session, model: Any) -> str:
    """The loop of the README."""
    hooks = Small.HookSet()
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                plan = round.apply_hooks_sync(hooks)
                results = [call.call_sync() for call in plan.pending]
                plan.commit(session, results)
            case Finished(result):
                return result.text


def careful(session: Session, model: Any) -> str | None:
    """The loop of the file agent: bounded, and with an honest end of a round."""
    for _ in range(20):
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                plan = round.plan()
                results: list[ToolResult] = []
                try:
                    for call in plan.pending:
                        try:
                            results.append(call.call_sync())
                        except ToolError as error:
                            results.append(call.fail(error.reason, code=error.code))
                    plan.commit(session, results)
                except BaseException as error:
                    with suppress(RoundClosedError):
                        plan.abort(session, str(error), results)
                    raise
            case Finished(result):
                return result.text
    return None


async def concurrent(session: Session, model: Any) -> str:
    """An async loop that runs the calls of a round at once."""
    while True:
        match await session.text_turn(model).tools(Small).collect():
            case NeedsTools(round):
                plan = await round.apply_hooks(Small.HookSet())
                outcomes = await execution.execute_all(plan.pending)
                plan.commit(session, [each for each in outcomes if isinstance(each, ToolResult)])
            case Finished(result):
                return result.text


def streaming(session: Session, model: Any) -> str:
    """A loop over streams."""
    while True:
        stream = session.text_turn(model).tools(Small).stream_sync()
        for _ in stream:
            pass
        match stream.outcome:
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished(result):
                return result.text


def asks_again(session: Session, model: Any) -> str:
    """A loop that answers a doubled id with another request."""
    while True:
        try:
            outcome = session.text_turn(model).tools(Small).collect_sync()
        except DuplicateToolCallIdError:
            session.push_user("Give each call an id of its own.")
            continue
        match outcome:
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished(result):
                return result.text


def one_turn(session: Session, model: Any) -> None:
    """A loop that stops early, which is no fault."""
    match session.text_turn(model).tools(Small).collect_sync():
        case NeedsTools(round):
            round.commit(session, [call.call_sync() for call in round.tool_calls])
        case Finished():
            pass


def drops_rejected(session: Session, model: Any) -> None:
    """Gives up a round in which some calls cannot be used."""
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                if round.recoverable_tool_call_issues:
                    round.discard()
                    session.push_user("Please try again.")
                else:
                    round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished():
                return


def ignores_issues(session: Session, model: Any) -> None:
    """Takes a round for finished when none of its calls can be used."""
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round) if round.tool_calls:
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case _:
                return


def tells_in_words(session: Session, model: Any) -> None:
    """Says the results as the user, and forgets the turn."""
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                for call in round.tool_calls:
                    session.push_user(f"{call.name} gave {call.call_sync().result}")
                round.discard()
            case Finished():
                return


def swallows_duplicates(session: Session, model: Any) -> None:
    """Ends as if nothing had happened when two calls share an id."""
    while True:
        try:
            outcome = session.text_turn(model).tools(Small).collect_sync()
        except DuplicateToolCallIdError:
            return
        match outcome:
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished():
                return


def never_ends(session: Session, model: Any) -> None:
    """Goes on after the answer."""
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished():
                continue


def raises_on_unknown(session: Session, model: Any) -> None:
    """Looks tools up by itself, and lets the error out."""
    while True:
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                for metadata in round.turn.tool_calls:
                    Small.parse_tool_call(metadata)
                round.commit(session, [call.call_sync() for call in round.tool_calls])
            case Finished():
                return


def never_asks(session: Session, model: Any) -> None:
    """Does nothing."""


def tampers(session: Session, model: Any) -> None:
    """Puts a turn into the transcript by hand, without its results."""
    while True:
        turn = model.respond_sync(session.text_turn(model).request())
        session.transcript._items.append(turn)
        if not turn.tool_calls:
            return


def rewrites(session: Session, model: Any) -> None:
    """Keeps the turn with other arguments."""
    for _ in range(5):
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                round.discard()
                calls = [
                    ToolMetadata(id=call.id, name=call.name, arguments="{}")
                    for call in round.turn.tool_calls
                ]
                made = AssistantTurn(text=round.text or None, tool_calls=calls)
                again = Small.read_turn(made)
                assert isinstance(again, NeedsTools)
                again.round.abort(session, "because")
            case Finished():
                return


def forgets_text(session: Session, model: Any) -> None:
    """Keeps the calls of a turn, but not what the model said beside them."""
    for _ in range(5):
        match session.text_turn(model).tools(Small).collect_sync():
            case NeedsTools(round):
                round.discard()
                made = AssistantTurn(tool_calls=round.turn.tool_calls)
                again = Small.read_turn(made)
                assert isinstance(again, NeedsTools)
                again.round.abort(session, "because")
            case Finished():
                return


def invents(session: Session, model: Any) -> None:
    """Puts a call into the model's mouth."""
    readme(session, model)
    made = Small.read_turn(ScriptedModel.tool_calls(("own", "forecast", {"city": "Oslo"})))
    assert isinstance(made, NeedsTools)
    made.round.abort(session, "because")


def leaves_open(session: Session, model: Any) -> None:
    """Puts a turn into the transcript by hand, and stops."""
    session.transcript._items.append(model.respond_sync(session.text_turn(model).request()))


WRONG: dict[Loop, tuple[str, str]] = {
    drops_rejected: ("lost_call", "Of turn 1 nothing of it is in the conversation"),
    ignores_issues: ("lost_call", "nothing of it is in the conversation"),
    tells_in_words: ("lost_call", "Commit every round"),
    swallows_duplicates: ("swallowed_duplicate", "let DuplicateToolCallIdError out"),
    never_ends: ("endless", "asked 10 times more after the model had given its final answer"),
    raises_on_unknown: ("raised", "in raises_on_unknown"),
    never_asks: ("never_asked", "Is it the right function?"),
    tampers: ("invalid_request", "has no result"),
    leaves_open: ("invalid_transcript", "The conversation at the end is invalid"),
    rewrites: ("altered", "Turn 1 was changed: the model sent call 'c1' of "),
    forgets_text: ("altered", "its text 'Let me look.' is gone"),
    invents: ("invented", "call 'own' of 'forecast'"),
}
"""Each wrong loop, with the kind of its fault and words that name it."""


# The same over plain messages of OpenAI Chat, by hand.

PLAIN: dict[str, Any] = {"odd_ids": False, "odd_names": False}
"""What a loop without this library cannot answer: no valid transcript holds it."""


def tool_message(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def ask(client: Any, messages: list[Any]) -> dict[str, Any]:
    response = client.chat.completions.create(model="m", messages=messages).to_dict()
    message: dict[str, Any] = response["choices"][0]["message"]
    return message


def run_by_hand(call: dict[str, Any]) -> str:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
        return f"{function['name']} got {len(arguments)} arguments"
    except (ValueError, TypeError) as error:
        return f"error: {error}"


def by_hand(messages: list[Any], client: Any) -> None:
    """A right loop without this library: every call gets one answer, at once and in order."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append(message)
        messages += [tool_message(call, run_by_hand(call)) for call in calls]


def answers_known_only(messages: list[Any], client: Any) -> None:
    """Leaves calls of unknown tools without an answer."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append(message)
        messages += [
            tool_message(call, "done") for call in calls if call["function"]["name"] == "forecast"
        ]


def answers_twice(messages: list[Any], client: Any) -> None:
    """Answers the last call of a turn once more."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append(message)
        messages += [tool_message(call, "done") for call in calls]
        messages.append(tool_message(calls[-1], "done"))


def speaks_first(messages: list[Any], client: Any) -> None:
    """Puts a message of its own between the turn and the results."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages += [message, {"role": "user", "content": "I am running your tools."}]
        messages += [tool_message(call, "done") for call in calls]


def parses_first(messages: list[Any], client: Any) -> None:
    """Lets the error of broken arguments out."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append(message)
        for call in calls:
            json.loads(call["function"]["arguments"])
            messages.append(tool_message(call, "done"))


def keeps_results_only(messages: list[Any], client: Any) -> None:
    """Says what came out in words, and forgets the model's turn."""
    while calls := ask(client, messages).get("tool_calls"):
        messages.append({"role": "user", "content": f"{len(calls)} tools were run"})


def sends_nothing(messages: list[Any], client: Any) -> None:
    """Forgets to pass the messages on."""
    client.create(model="m")


def keeps_one_call(messages: list[Any], client: Any) -> None:
    """Keeps only the first call of a turn."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append({**message, "tool_calls": calls[:1]})
        messages.append(tool_message(calls[0], "done"))


def swaps_calls(messages: list[Any], client: Any) -> None:
    """Keeps the calls of a turn the other way round."""
    while calls := (message := ask(client, messages)).get("tool_calls"):
        messages.append({**message, "tool_calls": calls[::-1]})
        messages += [tool_message(call, "done") for call in calls[::-1]]


def stops_halfway(messages: list[Any], client: Any) -> None:
    """Keeps the turn, and stops before its results."""
    messages.append(ask(client, messages))


WRONG_BY_HAND: dict[Loop, tuple[str, str]] = {
    answers_known_only: ("lost_call", "has no result"),
    answers_twice: ("answered_twice", "duplicate_result"),
    speaks_first: ("invalid_transcript", "messages["),
    parses_first: ("raised", "in parses_first"),
    keeps_results_only: ("lost_call", "Of turn 1 nothing of it is in the conversation"),
    sends_nothing: ("invalid_request", "has no 'messages'"),
    keeps_one_call: ("lost_call", "Of turn 1 not all of it is in the conversation"),
    swaps_calls: ("altered", "another order"),
    stops_halfway: ("lost_call", "The conversation at the end is invalid: messages[1]"),
}
