"""The rules of Chat Completions that need no reading of turns, and those of its hosts.

The rules of a host are those by which a request is rendered for it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from ..._text.json import cut, is_mapping, is_object, is_sequence
from .._facts import Facts
from .._findings import Loss
from .._openai import with_json_arguments
from .._repair.repairing import Form, Repairing, along
from ..hosts import Host
from ._decode import CALLS, kind_of
from ._facts import FACTS
from ._rules import FORM, RESULTS


def _calls(request: dict[str, Any], repairing: Repairing) -> None:
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


def _audio(request: dict[str, Any], repairing: Repairing) -> None:
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


def _files(request: dict[str, Any], repairing: Repairing) -> None:
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


def _choice(request: dict[str, Any], repairing: Repairing) -> None:
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

    def losing(self, request: dict[str, Any], repairing: Repairing) -> None:
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

    def filling(self, request: dict[str, Any], repairing: Repairing) -> None:
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
            fallback = host.missing_reasoning if is_sequence(calls) and calls else None
            given = message.get("reasoning_content")
            if fallback is not None and given in (None, "") and given != fallback:
                repairing.note(
                    f"{position}.reasoning_content",
                    "reasoning_missing",
                    f"{word} wants back the reasoning of a turn with calls",
                    "Send `reasoning_content` as it came",
                    f"put {fallback!r} there",
                )
                message["reasoning_content"] = fallback
            if host.needs_content and message.get("content") in (None, []):
                repairing.note(
                    f"{position}.content",
                    "message_without_content",
                    f"{word} refuses a message without content, also beside calls",
                    'Send `""`',
                    "made the content empty text",
                )
                message["content"] = ""


_ARGUMENTS: Final = (
    "messages[].tool_calls[].function.arguments",
    "messages[].function_call.arguments",
)
_LIMIT: Final = "max_completion_tokens"


def _of_assistant(request: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for holder, place, position in along("messages[]", request):
        message = holder[place]
        if is_object(message) and message.get("role") == "assistant":
            yield message, position


def fit(request: dict[str, Any], host: Host) -> list[Loss]:
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


_PLAIN: Final = (_calls, _audio, _choice)
REQUEST_FORM: Final = replace(FORM, whole=(*_PLAIN, _files))
"""How a request is checked and repaired, for no host in particular."""


def form_at(host: Host) -> Form:
    """Return how a request is checked and repaired for a host."""
    rules = HostRules(host)
    files = () if host.files_in_results else (_files,)
    whole = (*_PLAIN, *files, rules.losing, rules.filling)
    return replace(FORM, facts=facts_at(host), whole=whole)
