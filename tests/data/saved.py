"""Make what a release saves: `python saved.py FOLDER`, see README.md.

Only public names are used, and those that an earlier release lacks only where what is made is not
of that release, so that the code of each can run this.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, Secret, SecretStr

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    Attachment,
    Block,
    CallStatus,
    Complete,
    Decision,
    HookSet,
    Message,
    NeedsTools,
    Reject,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel

KEY: Final = b"a secret of the desk"
"""What the plans are sealed with whose names say so."""


class Receipt(BaseModel):
    """What a transfer gives."""

    paid: int
    on: date


class Payee(BaseModel):
    """Who is paid."""

    name: str
    city: str | None = None


class Transfer(ToolInput[Receipt]):
    """Move money.

    Attributes:
        cents: How much.
        to: Who gets it.
        speed: How fast.
    """

    cents: int = Field(ge=1)
    to: list[Payee]
    speed: Literal["slow", "instant"] = "slow"


@tool_fn
def search(query: str, limit: int = 10) -> list[str]:
    """Search the files.

    Args:
        query: What to look for.
        limit: How many to give at most.
    """
    return [f"{query} {number}" for number in range(limit)]


@tool_fn
def sign(paper: str, context: ToolContext) -> str:
    """Sign a paper, once somebody agrees."""
    if context.resume is None:
        context.suspend(
            SuspendTicket(id="sign-1", action="sign", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)
        )
    return f"{paper}: {context.resume.result}"


@tool_fn
def login(user: str, password: SecretStr, pin: Secret[int]) -> str:
    """Log in."""
    return f"{user}: {password.get_secret_value()} {pin.get_secret_value()}"


class Archive(Toolset):
    """Old files."""

    search = tool(search)


class Desk(Toolset):
    """What the assistant of an office can do."""

    transfer = tool(Transfer)
    sign = tool(sign)
    login = tool(login)
    archive = toolset(Archive, prefix="archive_")


TRANSFER: Final = {"cents": 2000, "to": [{"name": "Ann"}]}
TICKET: Final = SuspendTicket(
    id="pay-1",
    action="approve_payment",
    message="Pay 20 EUR to Ann?",
    parameters={"cents": 2000, "names": ["Ann"]},
    response_schema={"type": ["null", "object"], "properties": {"note": {"type": "string"}}},
)


def planned(*calls: tuple[str, str, Any], text: str | None = None) -> ToolRoundPlan[Desk]:
    """Open the round of a turn with these calls."""
    outcome = Desk.read_turn(ScriptedModel.tool_calls(*calls, text=text))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


def deciding(ticket: SuspendTicket = TICKET) -> HookSet[Desk]:
    """Give hooks that decide by the id of the call."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.archive.search)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        answers: dict[str, Any] = {
            "known": Complete(["found before"]),
            "refused": Reject("not now"),
            "rewritten": RunNormally(search.Input(query=input.query, limit=3)),
        }
        return answers.get(metadata.id, RunNormally(input))

    @hooks.gate(Desk.transfer)
    def guard(metadata: ToolMetadata, input: Any) -> Any:
        return Block("never on a Sunday") if metadata.id == "blocked" else Suspend(ticket)

    return hooks


def found(call_id: str, query: str) -> tuple[str, str, Any]:
    """Call the nested search."""
    return call_id, "archive_search", {"query": query}


def pending() -> ToolRoundPlan[Desk]:
    """Nothing is decided; one argument was mended, and some calls cannot be used."""
    return planned(
        ("c1", "archive_search", '{"query": "näme", "limit": 2}'),
        ("c2", "transfer", {**TRANSFER, "to": '[{"name": "Bo", "city": null}]'}),
        ("c3", "archive_serch", "{}"),
        ("c4", "archive_search", {"query": 3, "limit": "many"}),
        ("c5", "sign", '{"paper": '),
        text="One moment.",
    )


def decided() -> ToolRoundPlan[Desk]:
    """Hooks and gates have decided in every way."""
    calls = (
        found("known", "a"),
        found("refused", "b"),
        found("rewritten", "c"),
        ("blocked", "transfer", TRANSFER),
        ("waits", "transfer", {**TRANSFER, "speed": "instant"}),
        found("late", "e"),
    )
    return planned(*calls).apply_hooks_sync(deciding()).apply_hooks_sync(closing_time)


def closing_time(call: AnyToolCall) -> Any:
    """Refuse a late call: hooks may be a plain function."""
    return call.reject("we are closed") if call.id == "late" else call


def suspended_by_tool() -> ToolRoundPlan[Desk]:
    """A tool suspended its own call after it was started."""
    plan = planned(("s", "sign", {"paper": "lease"}), found("c", "d"))
    context = ToolContext.for_call(plan.pending[0])
    outcome: Any = execute_sync(plan.pending[0], context)
    plan.suspend(outcome)
    return plan


def resumed_by_tool() -> ToolRoundPlan[Desk]:
    """The same call, with the decision that the tool asked for."""
    plan = suspended_by_tool()
    answer = {"by": "Cleo", "fine": True}
    digest = plan.suspended[0].digest
    plan.resume(
        Decision(call_id="s", action="resume", result=answer, decision_id="d-s", digest=digest)
    )
    return plan


def approved() -> ToolRoundPlan[Desk]:
    """One transfer was approved, one cancelled, one waits still."""
    calls = [(call_id, "transfer", TRANSFER) for call_id in ("yes", "no", "open")]
    plan = planned(*calls).apply_hooks_sync(deciding())
    digest = plan.suspended[0].digest
    plan.resume(
        Decision(
            call_id="yes",
            action="resume",
            result={"note": "fine"},
            reason="budgeted",
            decision_id="d-yes",
            digest=digest,
        )
    )
    plan.resume(Decision(call_id="no", action="cancel", reason="too much", decision_id="d-no"))
    return plan


def answered() -> ToolRoundPlan[Desk]:
    """The decision is the output of the tool."""
    ticket = SuspendTicket(id="pay-2", resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT)
    plan = planned(("t", "transfer", TRANSFER)).apply_hooks_sync(deciding(ticket))
    result = {"paid": 2000, "on": "2025-03-01"}
    digest = plan.suspended[0].digest
    plan.resume(
        Decision(call_id="t", action="resume", result=result, decision_id="d-t", digest=digest)
    )
    return plan


BOSS: Final[dict[str, Any]] = {"by": "Cleo", "at": "2025-03-01T12:00:00+00:00"}
"""Who decides about plans of release 0.2, and when."""


def yes(plan: ToolRoundPlan[Desk], call_id: str, **fields: Any) -> Decision:
    """Let a call go on under the digest that it shows; `fields` of a decision may be anything."""
    digest = next(each.digest for each in plan.suspended if each.call.id == call_id)
    given: dict[str, Any] = {"decision_id": f"d-{call_id}", "digest": digest, **BOSS, **fields}
    return Decision(call_id=call_id, action="resume", **given)


def limits(metadata: ToolMetadata, input: Any) -> Any:
    """Let nobody pay more than 5,000 cents: what is more becomes as much."""
    if input.cents <= 5000:
        return RunNormally(input)
    return RunNormally(Transfer.model_validate({**input.model_dump(), "cents": 5000}))


def edited() -> ToolRoundPlan[Desk]:
    """People changed arguments of calls, and hooks changed some of them on top."""
    ids = ("person", "hooked", "again", "twice", "blocked_then", "given_then")
    calls = [(call_id, "transfer", TRANSFER) for call_id in ids]
    limited = deciding()
    limited.on(Desk.transfer)(limits)
    plan = planned(*calls).apply_hooks_sync(limited)
    hooks, blocking, giving = Desk.HookSet(), Desk.HookSet(), Desk.HookSet()
    hooks.on(Desk.transfer)(limits)
    blocking.gate(Desk.transfer)(lambda metadata, input: Block("not like this"))
    paid = Receipt(paid=1, on=date(2025, 3, 1))
    giving.gate(Desk.transfer)(lambda metadata, input: Complete(paid))

    def edit(call_id: str, asked: HookSet[Desk], name: str = "", **changes: Any) -> None:
        whole = {**TRANSFER, "to": [{"name": "Ann", "city": None}], "speed": "slow", **changes}
        decision = yes(plan, call_id, decision_id=f"d-{call_id}{name}", edit=whole)
        plan.amend_sync(decision, asked)

    edit("person", hooks, cents=1500, speed="instant")
    for call_id in ("hooked", "again", "twice"):
        edit(call_id, hooks, cents=9000)
    plan.resume(yes(plan, "again", decision_id="d-again-2", reason="as it is"))
    edit("twice", hooks, "-2", cents=3000)
    edit("blocked_then", blocking, cents=1)
    edit("given_then", giving, cents=2)
    return plan


def signs(paper: str) -> HookSet[Desk]:
    """Give hooks that ask before a paper is signed."""
    hooks = Desk.HookSet()
    ticket = SuspendTicket(id="gate-1", action="allow", message="May it be signed?")
    hooks.gate(Desk.sign)(lambda metadata, input: Suspend(ticket) if input.paper == paper else None)
    return hooks


def asked_twice() -> ToolRoundPlan[Desk]:
    """A gate asked about two calls, and then the tool itself; one of them is answered twice."""
    calls = [(call_id, "sign", {"paper": "lease"}) for call_id in ("both", "waits", "edited")]
    plan = planned(*calls).apply_hooks_sync(signs("lease"))
    for call in [each.call for each in plan.suspended]:
        plan.resume(yes(plan, call.id, decision_id=f"d-{call.id}-gate", reason="read"))
        outcome: Any = execute_sync(call, ToolContext.for_call(call))
        plan.record(outcome)
    plan.resume(yes(plan, "both", result="signed"))
    plan.amend_sync(yes(plan, "edited", edit={"paper": "will"}, result="other"), Desk.HookSet())
    return plan


def edited_secret() -> ToolRoundPlan[Desk]:
    """People changed secrets, and what stands beside them."""
    sent = {"user": "ann", "password": "old", "pin": 1234}
    hooks = Desk.HookSet()
    hooks.gate(Desk.login)(lambda metadata, input: Suspend(SuspendTicket(id="login-1")))
    plan = planned(*((call_id, "login", sent) for call_id in ("user", "secrets", "waits")))
    plan = plan.apply_hooks_sync(hooks)
    shown = dict(plan.suspended[0].arguments)
    plan.amend_sync(yes(plan, "user", edit={**shown, "user": "bob"}), Desk.HookSet())
    changes = {"password": "new", "pin": 9}
    plan.amend_sync(yes(plan, "secrets", edit={**shown, **changes}), Desk.HookSet())
    return plan


def in_doubt() -> ToolRoundPlan[Desk]:
    """One call is at work, one was approved and is at work, one has its result, one has not."""
    calls = (found("runs", "a"), ("paid", "transfer", TRANSFER), found("ended", "b"))
    plan = planned(*calls, found("open", "c")).apply_hooks_sync(deciding())
    plan.resume(yes(plan, "paid", result={"note": "fine"}))
    by_id = {call.id: call for call in plan.pending}
    by_id["runs"].begin()
    by_id["paid"].move_to(CallStatus.RUNNING)
    plan.record(by_id["ended"].call_sync())
    return plan


def noted(metadata: ToolMetadata, input: Any) -> None:
    """See each call before it is run."""


def seen(call: AnyToolCall, result: ToolResult) -> ToolResult | None:
    """See each result, and put another in the place of one."""
    return answer(call.metadata, '["replaced"]') if call.id == "replaced" else None


def around() -> HookSet[Desk]:
    """Give hooks before and after each search."""
    hooks = deciding()
    hooks.before(Desk.archive.search)(noted)
    hooks.after(Desk.archive.search)(seen)
    return hooks


def finished() -> ToolRoundPlan[Desk]:
    """Calls that ended in each way, and were shown to after-hooks; nothing is owed."""
    ids = ("fine", "replaced", "known", "failed", "nobody", "refused")
    plan = planned(*(found(call_id, "a") for call_id in ids)).apply_hooks_sync(around())
    by_id = {call.id: call for call in plan.pending}
    plan.record(by_id["fine"].call_sync())
    plan.record(by_id["replaced"].again().call_sync())
    fields = {"status": "error", "message": "The shelf is empty.", "code": "empty"}
    plan.record(answer(by_id["failed"].metadata, "null", **fields))
    by_id["nobody"].begin()
    plan.record(by_id["nobody"].indeterminate("the machine is gone."))
    plan.apply_after_hooks_sync(around())
    return plan


def owes_after() -> ToolRoundPlan[Desk]:
    """Before-hooks were asked, and after-hooks are owed, of a result and of a call to be run."""
    plan = planned(found("ended", "a"), found("open", "b"), found("known", "c"))
    plan = plan.apply_hooks_sync(around())
    plan.record(plan.pending[0].call_sync())
    return plan


def settled() -> ToolRoundPlan[Desk]:
    """Calls that a gate answered, a person answered, and that the program let wait."""
    hooks = deciding(SuspendTicket(id="pay-2", resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT))
    hooks.gate(Desk.sign)(lambda metadata, input: Complete("signed before"))
    calls = (("gate", "sign", {"paper": "will"}), ("person", "transfer", TRANSFER))
    plan = planned(*calls, found("own", "a"), found("ended", "b"), ("gone", "transfer", TRANSFER))
    plan = plan.apply_hooks_sync(hooks)
    result = {"paid": 2000, "on": "2025-03-01"}
    plan.resume(yes(plan, "person", result=result, reason="paid by hand"))
    cancel: dict[str, Any] = {**BOSS, "at": "yesterday"}
    plan.resume(
        Decision(call_id="gone", action="cancel", reason="no", decision_id="d-gone", **cancel)
    )
    plan.record(plan.pending[0].suspend(SuspendTicket(id="own-1", message="Go on?")))
    plan.record(plan.pending[0].call_sync())
    return plan


def issues() -> ToolRoundPlan[Desk]:
    """Two calls cannot be used; one of them was answered by hand."""
    plan = planned(("c1", "archive_serch", "{}"), ("c2", "sign", '{"paper": '), found("c3", "a"))
    unread = plan.recoverable_tool_call_issues[0].metadata
    plan.record(answer(unread, '"found by hand"'))
    return plan


def answer_beside() -> ToolRoundPlan[Desk]:
    """The final answer came beside a call, which is still to be run."""
    turn = ScriptedModel.tool_calls(
        ("a1", "answer", {"paid": 3, "on": "2025-03-01"}), found("c1", "a")
    )
    options: dict[str, Any] = {"answer": Receipt}
    outcome = Desk.read_turn(turn, **options)
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


PLANS: Final = {
    "pending": pending,
    "decided": decided,
    "suspended_by_tool": suspended_by_tool,
    "resumed_by_tool": resumed_by_tool,
    "approved": approved,
    "answered": answered,
}
"""What is saved once without a key and once, as `NAME_with_key`, with one."""

PLANS_0_2: Final = {
    **PLANS,
    "edited": edited,
    "edited_secret": edited_secret,
    "asked_twice": asked_twice,
    "in_doubt": in_doubt,
    "finished": finished,
    "owes_after": owes_after,
    "settled": settled,
    "issues": issues,
    "answer_beside": answer_beside,
}
"""The same for release 0.2, which could do more."""


def conversation() -> Session:
    """A session that somebody has said something in."""
    options: dict[str, Any] = {"id": "chat-1"}
    session = Session(**options)
    session.push_user("Pay Ann.")
    return session


SESSIONS: Final[dict[str, Callable[[], ToolRoundPlan[Desk] | None]]] = {
    "approved": approved,
    "alone": lambda: None,
}
"""The plan that each session is saved with."""

CHAT: Final[dict[str, Any]] = {
    "id": "chatcmpl-made-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "chat-model",
    "system_fingerprint": None,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": "Looking it up.",
                "refusal": None,
                "annotations": [],
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "archive_search", "arguments": '{ "query":"é" }'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "sign", "arguments": '{"paper":"lease"}'},
                    },
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 120,
        "completion_tokens": 30,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 100, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 8},
    },
}
RESPONSES: Final[dict[str, Any]] = {
    "id": "resp_made_1",
    "object": "response",
    "created_at": 1700000000.5,
    "status": "completed",
    "incomplete_details": None,
    "model": "responses-model",
    "parallel_tool_calls": True,
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "The lease is old."}],
            "encrypted_content": "b3BhcXVl",
        },
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "lease"},
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_r1",
            "status": "completed",
            "name": "archive_search",
            "arguments": '{"query":"lease","limit":1}',
        },
    ],
    "usage": {
        "input_tokens": 80,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 16},
        "total_tokens": 120,
    },
}
ANTHROPIC: Final[dict[str, Any]] = {
    "id": "msg_made_1",
    "type": "message",
    "role": "assistant",
    "model": "messages-model",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": "Sunday?", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "I pay."},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "transfer",
            "input": {"cents": 2000, "to": [{"name": "Ann", "city": None}]},
        },
    ],
    "usage": {
        "input_tokens": 50,
        "cache_creation_input_tokens": 5,
        "cache_read_input_tokens": 45,
        "output_tokens": 25,
    },
}
GEMINI: Final[dict[str, Any]] = {
    "responseId": "gemini-made-1",
    "modelVersion": "gemini-model",
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Which paper?", "thought": True},
                    {"text": "I sign."},
                    {
                        "functionCall": {"name": "sign", "args": {"paper": "lease"}},
                        "thoughtSignature": "dGhvdWdodA==",
                    },
                    {"functionCall": {"name": "sign", "args": {"paper": "will"}}},
                ],
            },
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 33,
        "candidatesTokenCount": 11,
        "thoughtsTokenCount": 4,
        "totalTokenCount": 48,
    },
}
PICTURE: Final = Attachment(
    media_type="image",
    mime_type="image/png",
    url="data:image/png;base64,iVBORw0KGgo=",
    caption="The signature",
    size=8,
)
SOUND: Final = Attachment(media_type="audio", mime_type="audio/wav", url="https://e.org/a.wav")


def answer(call: ToolMetadata, result: str, **fields: Any) -> ToolResult:
    """Answer a call with a result that is made by hand."""
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=result, **fields)


def talk(turn: AssistantTurn, *results: dict[str, Any]) -> Session:
    """Let a turn be answered: the calls in order, each by the fields of its result."""
    session = Session()
    session.push_system("You are the assistant of an office.")
    session.push_user("Go on.")
    outcome = Desk.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.plan()
    plan.commit(
        session,
        [answer(call.metadata, **each) for call, each in zip(plan.pending, results, strict=True)],
    )
    return session


def chat() -> Session:
    """Every field of a result, with files."""
    return talk(
        openai_chat.decode(CHAT),
        {"result": '["é 0"]', "message": "One file.", "attachments": (PICTURE, SOUND)},
        {"result": '"the pen is dry"', "status": "error", "code": "dry_pen"},
    )


def responses() -> Session:
    """Reasoning and a tool of the server between the parts."""
    return talk(openai_responses.decode(RESPONSES), {"result": "[]", "status": "cancelled"})


def anthropic() -> Session:
    """Thinking blocks, and a call whose outcome nobody knows."""
    fields = {"result": "null", "status": "indeterminate", "message": "Nobody knows."}
    return talk(anthropic_messages.decode(ANTHROPIC), fields)


def gemini() -> Session:
    """Calls that came without ids."""
    return talk(
        gemini_generate_content.decode(GEMINI), {"result": '"signed"'}, {"result": '"no \\u2713"'}
    )


def messages() -> Session:
    """Messages of every role, with files, a rejected call, and a refusal at the end."""
    session = Session()
    session.push_system("Be brief.")
    session.push_developer("Never pay.", [PICTURE])
    session.push_user("Pay \u2713 \U0001f4b6", [SOUND, PICTURE])
    turn = ScriptedModel.tool_calls(("c1", "payy", "{"), text="I pay.")
    outcome = Desk.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    outcome.round.plan().commit(session)
    session.transcript.push(Message("user", ""))
    refusal = {"role": "assistant", "content": None, "refusal": "I may not."}
    choice = {"index": 0, "finish_reason": "stop", "message": refusal}
    session.transcript.append_turn(openai_chat.decode({**CHAT, "choices": [choice]}))
    return session


TRANSCRIPTS: Final = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "messages": messages,
}


def first_release() -> dict[str, str]:
    """Give a text for each plan and transcript, and one for a result."""
    texts = plans(PLANS)
    texts["result"] = answer(
        ToolMetadata(id="c1", name="sign", arguments='{"paper":"will"}'),
        '{"ok":false}',
        status="error",
        message="The pen is dry.",
        attachments=(PICTURE, SOUND),
        code="dry_pen",
    ).dump_json()
    for name, make_session in TRANSCRIPTS.items():
        texts[f"transcript_{name}"] = make_session().transcript.dump_json()
    return texts


def second_release() -> dict[str, str]:
    """Give a text for each plan, and for each session."""
    texts = plans(PLANS_0_2)
    for name, make in SESSIONS.items():
        for sealing, key in (("", None), ("_with_key", KEY)):
            options: dict[str, Any] = {"key": key, "binding": "desk 1"}
            dump: Any = Desk.dump_session
            texts[f"session_{name}{sealing}"] = dump(conversation(), make(), **options)
    return texts


def plans(makers: Mapping[str, Callable[[], ToolRoundPlan[Desk]]]) -> dict[str, str]:
    """Give the text of each plan, with a key and without one."""
    texts: dict[str, str] = {}
    for name, make in makers.items():
        texts[f"plan_{name}"] = make().dump_json()
        texts[f"plan_{name}_with_key"] = make().dump_json(key=KEY)
    return texts


RELEASES: Final = {"release_0_1": first_release, "release_0_2": second_release}


def main(folder: str) -> None:
    """Write what the release of a folder saves: a file for each text."""
    here = Path(folder)
    here.mkdir(parents=True, exist_ok=True)
    for name, text in RELEASES[here.name]().items():
        (here / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
