"""The rules that Chat Completions sets for a conversation: finding breaches, and repairing them.

A turn with calls is followed at once by one result for each call. The API takes the results of one
turn in any order; hosts behind it do not, so ours is the order of the calls. A conversation is
repaired in one pass, which notes each breach as it meets it; `check` reports the notes, `repair`
keeps the outcome. (OpenAI API reference: "Create chat completion", messages.)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from ..._text.json import JsonObject, cut, is_mapping, is_object, is_sequence, shorten
from .._facts import Facts
from .._findings import OUTCOME_UNKNOWN, Loss
from .._openai import with_json_arguments
from .._repair import (
    MAYBE_TEXT,
    Form,
    Pairing,
    Piece,
    Repairing,
    along,
    distinct_ids,
    note_places,
    text_of,
)
from ..hosts import Host
from ._decode import CALLS, FACTS, kind_of

RESULTS: Final = frozenset({"tool", "function"})
"""The roles of those who answer calls."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"}) | RESULTS
_SAID: Final = ("content", "tool_calls", "function_call", "audio", "refusal")


def read_message(index: int, message: object, repairing: Repairing) -> JsonObject | None:
    """Read a message, and fix it as far as that needs no other; None if it is not one.

    Args:
        index: Its number in the conversation.
        message: The message.
        repairing: Takes a note of each breach.
    """
    role = message.get("role") if is_mapping(message) else None
    if not isinstance(role, str) or role not in _ROLES:
        repairing.drop_unknown(f"messages[{index}]", message, _ROLES)
        return None
    # Whatever is changed below is changed in `owned`: a copy, or on the first look the caller's own
    # message, of which `note` then lets nothing be changed.
    owned: JsonObject = repairing.own(message)
    if role == "assistant":
        _assistant(index, owned, repairing)
    elif owned.get("content") is None:
        word = "result" if role in RESULTS else "message"
        repairing.note(
            f"messages[{index}].content",
            f"{word}_without_content",
            f"a {word} of the {role} needs content, if only empty text",
            'Send what it says; `""` if that is nothing',
            "made the content empty text",
        )
        owned["content"] = ""
    if role in RESULTS:
        _result(index, owned, repairing)
    content = owned.get("content")
    if content is not None and not isinstance(content, str):
        _content(index, owned, content, repairing)
    return owned


def _result(index: int, message: JsonObject, repairing: Repairing) -> None:
    if not isinstance(message.get("tool_call_id"), MAYBE_TEXT):
        repairing.text_id(message, "tool_call_id", f"messages[{index}]")
    name = message.get("name")
    if isinstance(name, str) and not repairing.takes(name):
        repairing.rename(message, "name", f"messages[{index}].name")


def _content(index: int, message: JsonObject, content: object, repairing: Repairing) -> None:
    parts = content if is_sequence(content) else [content]
    # Hosts send an empty list for an assistant that only calls, and take it back.
    is_silent = message["role"] == "assistant" and parts == []
    if is_silent or (content and is_sequence(content) and all(map(is_mapping, parts))):
        return
    repairing.note(
        f"messages[{index}].content",
        "invalid_content",
        f"expected text or a list of parts, got {shorten(content)}",
        'Send text, or parts such as {"type": "text", "text": ...}',
        "made parts of it" if parts else "made the content empty text",
    )
    message["content"] = [
        part
        if is_mapping(part) and isinstance(part.get("type"), str)
        else {"type": "text", "text": text_of(part)}
        for part in parts
    ] or ""


def _assistant(index: int, message: JsonObject, repairing: Repairing) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        _tool_calls(index, message, calls, repairing)
    call = message.get("function_call")
    if call is not None:
        _function_call(index, message, call, repairing)
    for key in _SAID:
        if message.get(key) is not None:
            return
    repairing.note(
        f"messages[{index}].content",
        "empty_turn",
        "a turn of the assistant needs content or calls",
        'Send `""` if it said nothing',
        "made the content empty text",
    )
    message["content"] = ""


def _tool_calls(index: int, message: JsonObject, given: Any, repairing: Repairing) -> None:
    listed = given
    if not is_sequence(given):
        repairing.note(
            f"messages[{index}].tool_calls",
            "invalid_tool_calls",
            f"expected a list of calls, got {shorten(given)}",
            "Send a list, even if there is only one",
            "put it into a list" if is_mapping(given) else "removed it",
        )
        listed = [given] if is_mapping(given) else []
    elif not given:
        repairing.note(
            f"messages[{index}].tool_calls",
            "empty_tool_calls",
            "a list of calls holds at least one",
            "Leave `tool_calls` out",
            "removed the empty list",
        )
    # Put into the message only if something changed: on the first look the list is the caller's,
    # and has to stay the very object that it was.
    calls = [call for number, call in enumerate(listed) if _call(call, index, number, repairing)]
    if not calls:
        del message["tool_calls"]
    elif listed is not given or len(calls) < len(listed):
        message["tool_calls"] = calls


def _call(call: object, index: int, number: int, repairing: Repairing) -> bool:
    """Fix one call; say whether there is anything to be kept of it."""
    kind = kind_of(call) if is_mapping(call) else "function"
    inner = call.get(kind) if is_mapping(call) else None
    if not is_object(call) or not is_object(inner):
        repairing.note(
            f"messages[{index}].tool_calls[{number}]",
            "invalid_tool_calls",
            f"expected a call with {kind!r}, got {shorten(call)}",
            'Send {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}',
            "removed the call",
        )
        return False
    if not isinstance(call.get("id"), MAYBE_TEXT):
        repairing.text_id(call, "id", f"messages[{index}].tool_calls[{number}]")
    key = CALLS[kind]
    if not repairing.is_well_written(inner, key):
        repairing.repair_call(inner, key, f"messages[{index}].tool_calls[{number}].{kind}")
    return True


def _function_call(index: int, message: JsonObject, call: object, repairing: Repairing) -> None:
    if is_object(call) and call.get("name"):
        if not repairing.is_well_written(call, "arguments"):
            repairing.repair_call(call, "arguments", f"messages[{index}].function_call")
        return
    repairing.note(
        f"messages[{index}].function_call",
        "invalid_tool_calls",
        f"expected a call with a name, got {shorten(call)}",
        "Leave `function_call` out where nothing is called",
        "removed it",
    )
    del message["function_call"]


class Part(Piece):
    """A call, or a message that is a result; of the older form of calls, a turn has one.

    Attributes:
        name: The name of the tool that is called.
        round: The first turn of those in a row that made the calls.
    """

    __slots__ = ("name", "round")

    name: Any
    round: int

    @property
    def position(self) -> str:
        """Where it stands, as in `messages[1].tool_calls[0]`."""
        message = f"messages[{self.index}]"
        if self.call is None:
            return message
        if self.place is None:
            return f"{message}.function_call"
        return f"{message}.tool_calls[{self.place}]"

    @property
    def key(self) -> Hashable:
        """What it has in common with its result, or with its call."""
        if self.call is None:
            return _key(self.value)
        return _key_of_call(self.place, self.call, self.name)

    @property
    def shown(self) -> Any:
        """The id of a call, or its name where it has none."""
        call_id = None if self.place is None else self.value.get("id")
        return self.name if call_id is None else call_id

    @property
    def form(self) -> JsonObject:
        """The form of the result of a call."""
        if self.place is None:
            return {"role": "function", "name": self.name}
        same = {} if self.value.get("id") is None else {"tool_call_id": self.value["id"]}
        return {"role": "tool", **same}


def _is_in_order(messages: list[Any], repairing: Repairing) -> bool:
    """Tell whether each call has its result at once, in order, and no other result is there."""
    # The quick way, which most conversations take: results come right after their turn in the
    # order of its calls, so `answered` says which call the next one has to be of.
    due: list[tuple[int | None, JsonObject, Any]] = []
    answered = 0
    for index, given in enumerate(messages):
        message = read_message(index, given, repairing)
        if message is not None and message["role"] in RESULTS:
            if answered == len(due):
                return False
            call = due[answered]
            answered += 1
            if _key_of_call(*call) != _key(message) or message.get("name") not in (None, call[2]):
                return False
        elif message is None or answered < len(due):
            return False
        elif message["role"] == "assistant":
            due = _calls(message)
            answered = 0
            facts = repairing.facts
            if due and (len(due) > 1 or not facts.takes_own_ids) and not _have_ids(due, facts):
                return False
        elif due:
            due = []
            answered = 0
    return answered == len(due)


def _have_ids(calls: list[tuple[int | None, JsonObject, Any]], facts: Facts) -> bool:
    """Tell whether the calls that have ids have each its own, which the host takes."""
    ids = [str(call["id"]) for place, call, _ in calls if place is not None and call.get("id")]
    is_taken = facts.takes_own_ids or all(map(facts.takes_id, ids))
    return is_taken and len(set(ids)) == len(ids)


def _fix(messages: list[Any], repairing: Repairing) -> None:
    kept = [read_message(index, message, repairing) for index, message in enumerate(messages)]
    calls, results = _pieces(kept)
    pairing = _paired(calls, results)
    remedy = "Send exactly one result for each call, with the call's id"
    answers = pairing.answers(calls, remedy, _unanswered, repairing, fit=_fit)
    answers_at: dict[int, list[Part]] = {}
    for group, answered in answers.items():
        note_places(group, answered, repairing)
        # Only within a turn: over turns hosts repeat ids, "call_0" in each, and take them back so.
        with_ids = [each for each in answered if each[0].place is not None]
        distinct_ids(with_ids, ("id", "tool_call_id"), repairing)
        answers_at[answered[0][0].index] = [result for _, result in answered]
    for index, message in enumerate(kept):
        if message is not None and message["role"] not in RESULTS:
            repairing.items.append(message)
            repairing.items.extend(result.result for result in answers_at.get(index, ()))


def _pieces(kept: list[JsonObject | None]) -> tuple[list[Part], list[Part]]:
    """Return the calls and the results, in numbered turns: the results after one are the next."""
    # Hosts split one turn of three calls into three messages, with the results after the last.
    # These are turns of one round: ids that come again in it are doubles. But each of them is
    # followed by its own results.
    calls: list[Part] = []
    results: list[Part] = []
    group = started = -1
    is_behind, before = False, None
    for index, message in enumerate(kept):
        if message is None:
            before = None
            continue
        role = message["role"]
        is_result = role in RESULTS
        group += not (is_result and is_behind)
        is_behind = is_result
        started = started if role == before == "assistant" else group
        before = role
        if is_result:
            part = Part(index, None, index, message)
            part.result, part.group, part.is_behind = message, group, False
            results.append(part)
        for place, call, name in _calls(message) if role == "assistant" else ():
            part = Part(index, place, index, call)
            part.call, part.name, part.group, part.round = call, name, group, started
            calls.append(part)
    return calls, results


def _paired(calls: list[Part], results: list[Part]) -> Pairing[Part]:
    """Find the result of each call; one of the older form may answer a call that has an id."""
    pairing: Pairing[Part] = Pairing()
    round_of, key = attrgetter("round"), attrgetter("key")
    pairing.pair(calls, results, key, round_of)
    # Only what is left over by now: where a call and a result share an id, no name is looked at.
    older = [
        each
        for each in results
        if pairing.dropped.get(each) == "orphan_result" and each.value["role"] == "function"
    ]
    still_open = [call for call in calls if call not in pairing.result_of]
    pairing.pair(still_open, older, _by_name, round_of)
    pairing.dropped.update((each, "orphan_result") for each in older if each in pairing.dropped)
    return pairing


def _by_name(part: Part) -> Hashable:
    return part.key if part.call is None else _key_of_call(None, part.call, part.name)


def _calls(message: Mapping[str, Any]) -> list[tuple[int | None, JsonObject, Any]]:
    """Return the place of each call in its list, the call, and its name."""
    found: list[tuple[int | None, JsonObject, Any]] = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        found.append((number, call, call[kind_of(call)]["name"]))
    old = message.get("function_call")
    if old is not None:
        found.append((None, old, old["name"]))
    return found


def _key_of_call(place: int | None, call: Mapping[str, object], name: object) -> Hashable:
    return ("function", str(name)) if place is None else _text(call.get("id"))


def _key(message: Mapping[str, object]) -> Hashable:
    if message["role"] == "function":
        return ("function", str(message.get("name")))
    return _text(message.get("tool_call_id"))


def _text(call_id: object) -> str | None:
    # Hosts that send no id, or "", get none back: such calls and results meet by their order.
    return str(call_id) if call_id else None


def _unanswered(repairing: Repairing, call: Part) -> Part:
    remedy = "Send one result for each call, right after the turn that made it"
    repairing.unanswered(call.position, call.shown, remedy)
    result = {**call.form, "content": OUTCOME_UNKNOWN}
    return call.beside(result, result)


def _fit(repairing: Repairing, call: Part, result: Part) -> None:
    """Let a result be of the form that its call has, and of the tool that was called."""
    message = result.value
    if message["role"] == "function" and call.place is not None:
        repairing.note(
            f"{result.position}.role",
            "result_of_older_form",
            f"the result goes by the name {shorten(call.name)}, its call by an id",
            "Send it with the role 'tool' and the id of the call",
            f"made it the result of the call {shorten(call.shown)}",
        )
        result.result = {**call.form, "content": message.get("content")}
    elif message.get("name") not in (None, call.name):
        repairing.repair_name(message, call.name, f"{result.position}.name")


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "content": text},
    fix=_fix,
    is_in_order=_is_in_order,
)


def _calls_in(request: JsonObject, repairing: Repairing) -> None:
    for holder, place, position in along("messages[].tool_calls[]", request):
        call = holder[place]
        if not is_object(call) or not is_mapping(call.get(kind_of(call))):
            continue
        kind = kind_of(call)
        if call.get("type") is None:
            repairing.note(
                f"{position}.type",
                "call_without_type",
                "the call has no type",
                'Send `"type": "function"`',
                "set the type",
            )
            call["type"] = kind
        for other in CALLS.keys() - {kind}:
            if other in call:
                repairing.note(
                    f"{position}.{other}",
                    "empty_shell",
                    f"a call of a {kind} has the field of another kind, too",
                    f"Leave `{other}` out",
                    "removed it",
                )
                del call[other]


def _audio(request: JsonObject, repairing: Repairing) -> None:
    for message, key, position in along("messages[].audio", request):
        audio = message[key]
        if is_mapping(audio) and audio.keys() - {"id"} and isinstance(audio.get("id"), str):
            repairing.note(
                position,
                "audio_data",
                "the audio of an answer goes back by its id alone",
                'Send {"id": ...}',
                "left the id alone",
            )
            message[key] = {"id": audio["id"]}


def _files(request: JsonObject, repairing: Repairing) -> None:
    for holder, place, position in along("messages[]", request):
        message = holder[place]
        if not is_object(message) or message.get("role") not in tuple(RESULTS):
            continue
        content = message.get("content")
        listed: Any = content if is_sequence(content) else ()
        for index, part in enumerate(listed):
            kind = part.get("type") if is_mapping(part) else "text"
            if kind in ("text", None) or not isinstance(kind, str):
                continue
            repairing.note(
                f"{position}.content[{index}]",
                "file_in_result",
                f"the result of a call takes text alone, and this is an {kind}",
                "Send it in a message of the user, or to a host that takes files in results",
                "put a note in its place, so that the model does not see it",
            )
            listed[index] = {"type": "text", "text": f"[{kind}: it cannot be shown]"}


def _choice(request: JsonObject, repairing: Repairing) -> None:
    for key in ("tool_choice", "parallel_tool_calls"):
        if request.get(key) is not None and not request.get("tools"):
            repairing.note(
                key,
                "choice_without_tools",
                f"`{key}` is taken beside tools only, and there are none",
                f"Leave `{key}` out",
                "removed it",
            )
            del request[key]


class HostRules:
    """The rules of one host: each fixes a request in place, and notes what it changes.

    Args:
        host: The host.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def losing(self, request: JsonObject, repairing: Repairing) -> None:
        """Take out of a request what the host refuses."""
        host, word = self._host, self._host.name
        for field in sorted(host.refused_fields):
            for message, key, position in along(f"messages[].{field}", request):
                remedy = f"Leave `{field}` out"
                problem = f"{word} refuses `{field}` in a message"
                repairing.note(position, "refused_field", problem, remedy, f"removed `{field}`")
                del message[key]
        longest = host.longest_description
        if longest is not None:
            for tool, key, position in along("tools[].function.description", request):
                text = tool[key]
                if isinstance(text, str) and len(text) > longest:
                    repairing.note(
                        position,
                        "description_too_long",
                        f"{word} takes {longest} characters, and these are {len(text)}",
                        "Say it in fewer words",
                        f"cut it to {longest} characters",
                    )
                    tool[key] = cut(text, longest - 1)

    def filling(self, request: JsonObject, repairing: Repairing) -> None:
        """Put in what the host demands; nothing is lost by it."""
        host, word = self._host, self._host.name
        if host.limit_field not in request and host.limit_field != _LIMIT and _LIMIT in request:
            remedy = f"Send `{host.limit_field}`"
            problem = f"{word} does not know `{_LIMIT}`"
            repairing.note(_LIMIT, "unknown_limit", problem, remedy, "gave it the host's name")
            request[host.limit_field] = request.pop(_LIMIT)
        if host.parses_arguments:
            found = (each for way in _ARGUMENTS for each in along(way, request))
            for inner, key, position in found:
                sent = with_json_arguments({key: inner[key]})[key]
                if sent != inner[key]:
                    repairing.note(
                        position,
                        "arguments_not_json",
                        f"{word} parses arguments, and these are not a JSON object",
                        "Send the JSON of an object",
                        "put the text into an object",
                    )
                    inner[key] = sent
        for message, position in _of_assistant(request):
            calls = message.get("tool_calls")
            if host.missing_reasoning is not None and is_sequence(calls) and calls:
                place = f"{position}.reasoning_content"
                self._reason(message, place, host.missing_reasoning, repairing)
            if host.needs_content and message.get("content") in (None, []):
                repairing.note(
                    f"{position}.content",
                    "message_without_content",
                    f"{word} refuses a message without content, also beside calls",
                    'Send `""`',
                    "made the content empty text",
                )
                message["content"] = ""

    def _reason(
        self, message: JsonObject, position: str, fallback: str, repairing: Repairing
    ) -> None:
        given, told = message.get("reasoning_content"), message.get("reasoning")
        # What serves the model of the host, such as a router or vLLM, has another name for it.
        has_told = isinstance(told, str) and bool(told.strip())
        wanted = told if has_told else fallback
        if given in (None, "") and given != wanted:
            repairing.note(
                position,
                "reasoning_missing",
                f"{self._host.name} wants back the reasoning of a turn with calls",
                "Send `reasoning_content` as it came",
                "took it from `reasoning`" if has_told else f"put {fallback!r} there",
            )
            message["reasoning_content"] = wanted


_ARGUMENTS: Final = (
    "messages[].tool_calls[].function.arguments",
    "messages[].function_call.arguments",
)
_LIMIT: Final = "max_completion_tokens"


def _of_assistant(request: Mapping[str, object]) -> Iterator[tuple[JsonObject, str]]:
    for holder, place, position in along("messages[]", request):
        message = holder[place]
        if is_object(message) and message.get("role") == "assistant":
            yield message, position


def fit(request: JsonObject, host: Host) -> list[Loss]:
    """Render a request for a host: fix it in place, and return what is lost."""
    rules = HostRules(host)
    repairing = Repairing(FACTS, request)
    rules.losing(request, repairing)
    losses = [Loss(change.position, f"{host.name}: {change.what}") for change in repairing.changes]
    rules.filling(request, repairing)
    return losses


@lru_cache(maxsize=64)
def facts_at(host: Host) -> Facts:
    """Return what is known of Chat Completions at a host."""
    length = host.call_id_length
    if length is None:
        return FACTS
    return replace(
        FACTS,
        call_ids=re.compile(rf"[a-zA-Z0-9]{{{length}}}"),
        call_ids_in_words=f"{length} letters and digits",
        made_ids="",
        id_digits=length,
        takes_own_ids=False,
    )


_PLAIN: Final = (_calls_in, _audio, _choice)
REQUEST_FORM: Final = replace(FORM, whole=(*_PLAIN, _files))
"""How a request is checked and repaired, for no host in particular."""


def form_at(host: Host) -> Form:
    """Return how a request is checked and repaired for a host."""
    rules = HostRules(host)
    files = () if host.files_in_results else (_files,)
    whole = (*_PLAIN, *files, rules.losing, rules.filling)
    return replace(FORM, facts=facts_at(host), whole=whole)
