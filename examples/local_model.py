"""A stand-in for a language model: it needs no network, no key, and knows no language.

What it does, all of it from the transcript alone: it takes the quoted phrases of the question, else
its longest words; it looks around, searches for them, reads where they are, and reports what the
tools gave. It adds no knowledge of its own, because it has none, and it judges nothing.

It makes two mistakes on purpose, those that real models make most: it looks for a file outside of
the root, and it misspells an argument. It fixes the second by what it is told, and by nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from lutum_py import AssistantTurn, Message, ToolMetadata, ToolResult, TurnRequest

Call = tuple[str, dict[str, Any]]

_QUOTED: Final = re.compile(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_WRITE: Final = re.compile(
    r"\b(?:write|save|put)\b.*\b(?:to|into|in)\s+(\S*[^\s.?!,;:])", re.IGNORECASE
)
_MISSPELT: Final = re.compile(r"`(\w+)`: there is no such field; did you mean `(\w+)`\?")
_FAILING: Final = re.compile(r"^- `(\w+)`: ", re.MULTILINE)
_README: Final = re.compile(r"readme(\.\w+)?", re.IGNORECASE)
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        "about also anything been directory does explain file files find folder from have here "
        "into know mention project root save show some tell text that their them then there these "
        "they thing this what when where which with word words would write your",
    )
)


class LocalModel:
    """Answers requests by `decide`; it could be any model with this one method."""

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Give the next turn."""
        return decide(request.items)


def decide(items: Sequence[object]) -> AssistantTurn:
    """Work out the next turn from what was said and found so far."""
    seen = Seen(items)
    for remark, step in _STEPS:
        calls = [call for call in step(seen) if not seen.was_made(call)]
        if calls:
            return _turn(remark, calls, start=len(seen.results) + 1)
    files = list(dict.fromkeys(text["path"] for text in seen.outputs("read_file")))
    final: Call = ("answer", {"text": answer(seen), "files": files})
    return _turn("", [final], start=len(seen.results) + 1)


def _turn(remark: str, calls: list[Call], start: int) -> AssistantTurn:
    metadata = [
        ToolMetadata(id=f"call_{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls, start)
    ]
    return AssistantTurn(text=remark, tool_calls=metadata, finish_reason="tool_calls")


class Seen:
    """What the transcript holds since the last question."""

    def __init__(self, items: Sequence[object]) -> None:
        self.question = ""
        self.results: list[ToolResult] = []
        for item in items:
            if isinstance(item, Message) and item.role == "user":
                self.question, self.results = item.text, []
            elif isinstance(item, ToolResult):
                self.results.append(item)
        self.terms = terms_of(self.question)
        found = _WRITE.search(self.question)
        self.write_to = found[1] if found else None

    def outputs(self, tool: str) -> Iterator[Any]:
        """Give what the successful calls of a tool returned."""
        return (r.output for r in self.results if r.name == tool and r.is_success)

    def was_made(self, call: Call) -> bool:
        """Whether the very same call was made before."""
        return any((r.name, _arguments(r)) == call for r in self.results)

    @property
    def files(self) -> list[str]:
        """The files that were listed."""
        return [name for listing in self.outputs("list_files") for name in listing["files"]]

    @property
    def matches(self) -> list[dict[str, Any]]:
        """The lines that were found."""
        return [match for found in self.outputs("search_text") for match in found["matches"]]


def _arguments(result: ToolResult) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(result.arguments)
    return arguments


def terms_of(question: str) -> list[str]:
    """Choose what to search for: quoted phrases, else the longest uncommon words."""
    quoted = ["".join(groups) for groups in _QUOTED.findall(question)]
    if quoted:
        return quoted[:3]
    plain = _WRITE.sub("", question)
    words = [w for w in re.findall(r"\w{4,}", plain) if w.lower() not in _COMMON]
    return sorted(dict.fromkeys(words), key=len, reverse=True)[:3] or ["TODO"]


def repaired(arguments: dict[str, Any], complaint: str) -> dict[str, Any]:
    """Correct arguments by what the model was told of them.

    A name is replaced by the one suggested; any other argument complained of is left out.

    >>> repaired({"max_result": 8}, "- `max_result`: there is no such field; did you mean `max`?")
    {'max': 8}
    """
    renamed = dict(_MISSPELT.findall(complaint))
    failing = set(_FAILING.findall(complaint)) - renamed.keys()
    return {renamed.get(k, k): v for k, v in arguments.items() if k not in failing}


# The steps, in order: each gives the calls that it wants; those that were made are left out.


def _look_around(seen: Seen) -> Iterator[Call]:
    yield "list_files", {"path": "."}
    yield "read_file", {"path": "../README.md"}
    yield "search_text", {"query": seen.terms[0], "max_result": 12}


def _fix_and_go_on(seen: Seen) -> Iterator[Call]:
    for result in seen.results:
        if result.code == "invalid_arguments":
            yield result.name, repaired(_arguments(result), result.model_text)
    for term in seen.terms[1:]:
        yield "search_text", {"query": term, "max_results": 12}
    if first := _first_file(seen.files):
        yield "read_file", {"path": first, "lines": 40}


def _first_file(files: list[str]) -> str | None:
    """Choose what to read first: the uppermost README, else any text by its name."""
    readmes = [name for name in files if _README.fullmatch(name.rpartition("/")[2])]
    texts = [name for name in files if name.lower().endswith((".md", ".txt", ".rst"))]
    return next(iter(readmes or texts or files), None)


def _read_matches(seen: Seen) -> Iterator[Call]:
    for match in _one_a_file(seen.matches)[:3]:
        start = max(1, match["line"] - 2)
        if _around(seen, match) is None:
            yield "read_file", {"path": match["path"], "start": start, "lines": 6}


def _one_a_file(matches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the first match of each file."""
    first: dict[str, dict[str, Any]] = {}
    for match in matches:
        first.setdefault(match["path"], match)
    return list(first.values())


def _write(seen: Seen) -> Iterator[Call]:
    tried = any(result.name == "write_file" for result in seen.results)
    if seen.write_to and not tried:
        yield "write_file", {"path": seen.write_to, "text": answer(seen) + "\n"}


_STEPS: Final = (
    ("First a look around.", _look_around),
    ("I fix what was wrong, and read on.", _fix_and_go_on),
    ("Now the places themselves.", _read_matches),
    ("That is what I found; I write it down.", _write),
)


def answer(seen: Seen) -> str:
    """Report what the tools gave; nothing else is in it."""
    lines = [*_about(seen), *_found(seen), *_missed(seen)]
    return "\n".join(lines)


def _about(seen: Seen) -> Iterator[str]:
    listing = next(seen.outputs("list_files"), None)
    if listing is None:
        return
    if not listing["total"]:
        yield "The directory holds no files that I can see."
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in listing["kinds"].items())
    more = "" if listing["complete"] else " at least"
    yield f"There are{more} {listing['total']:,} files: {kinds}."
    for text in seen.outputs("read_file"):
        if text["path"] == _first_file(seen.files) and text["first"] == 1:
            said = _first_words(text["text"])
            yield f"{text['path']} begins: {said}" if said else f"{text['path']} is empty."
            break


def _first_words(text: str) -> str:
    """Give the heading and the first paragraph, at most a few lines of them."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    words = " - ".join(part.lstrip("# ") for part in paragraphs[:2])
    return words if len(words) <= 400 else words[:400].rpartition(" ")[0] + " …"


def _found(seen: Seen) -> Iterator[str]:
    for result in seen.results:
        if result.name != "search_text" or not result.is_success:
            continue
        term, found = _arguments(result)["query"], result.output
        matches = found["matches"]
        if not matches:
            files = _counted(found["searched"], "text file")
            yield f'"{term}" is nowhere: I searched {files}.'
            continue
        at_least = "" if found["complete"] else "at least "
        yield f'"{term}" is in {at_least}{_counted(len(matches), "line")}:'
        told = _one_a_file(matches)[:3]
        for match in told:
            yield f"  {match['path']}:{match['line']}"
            yield from (f"    {line}" for line in _around(seen, match) or [match["text"]])
        rest = [f"{each['path']}:{each['line']}" for each in matches if each not in told]
        if rest:
            yield f"  also {', '.join(rest[:4])}" + (" and more" if len(rest) > 4 else "")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _around(seen: Seen, match: dict[str, Any]) -> list[str] | None:
    """Give a line that was found and its neighbours, if they were read."""
    for text in seen.outputs("read_file"):
        lines, at = text["text"].splitlines(), match["line"] - text["first"]
        if text["path"] == match["path"] and 0 <= at < len(lines):
            near = [line for line in lines[max(0, at - 1) : at + 4] if line.strip()]
            return near[:3]
    return None


def _missed(seen: Seen) -> Iterator[str]:
    for result in seen.results:
        if result.is_error and result.code != "invalid_arguments":
            reason = result.rejection_reason or result.model_text
            path = _arguments(result).get("path", "")
            yield f"Not done: {result.name} {path} ({reason.splitlines()[0]})"
    for written in seen.outputs("write_file"):
        yield f"Written to {written['path']}."
