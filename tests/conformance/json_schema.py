"""The JSON-Schema-Test-Suite: what a tool's input takes, and what the dialects make of its schema.

Each schema of the suite becomes a property of a tool's input, and where a test is about an object
also the input itself. The suite comes in the source distribution of the package `jsonschema`.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256 as digest
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from lutum_py import ToolDef, ToolMetadata, Toolset
from lutum_py._schema.schema_check import validator_of
from lutum_py.dialects import DIALECTS, CompiledSchema
from lutum_py.errors import InvalidArgumentsError, ToolDefinitionError

from .verdict import Group, Table, Verdict, unpacked

SUITE: Final = "jsonschema==4.26.0"
DRAFTS: Final = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
WHOLE: Final = " (whole input)"
FORMS: Final = [
    (import_module(package), strict) for package in DIALECTS.values() for strict in (False, True)
]


@dataclass(frozen=True)
class Case:
    """One schema of the suite, in a tool, and what is said of values.

    Attributes:
        name: Its draft, file and description, and how it is put into the tool.
        definition: The tool.
        tests: The arguments, their description, and whether they are valid.
    """

    name: str
    definition: ToolDef
    tests: list[tuple[dict[str, Any], str, bool]]


def cases(root: Path) -> Iterator[Case]:
    """Give every schema of the suite, in a tool."""
    for draft, meta in DRAFTS.items():
        for file in sorted((root / draft).rglob("*.json")):
            if "format" in file.relative_to(root).parts:
                continue  # formats are remarks, unless a schema's dialect says otherwise
            where = file.relative_to(root).with_suffix("").as_posix()
            for group in json.loads(file.read_text()):
                name = f"{where}: {group['description']}"
                schema, tests = group["schema"], group["tests"]
                yield Case(
                    name,
                    _tool(_as_property(schema, meta)),
                    [({"value": one["data"]}, one["description"], one["valid"]) for one in tests],
                )
                objects = [
                    (one["data"], one["description"], one["valid"])
                    for one in tests
                    if isinstance(one["data"], dict)
                ]
                if objects and isinstance(schema, dict):
                    whole = {"$schema": meta, **schema}
                    yield Case(f"{name}{WHOLE}", _tool(whole), objects)


def _tool(schema: dict[str, Any]) -> ToolDef:
    # A name of its own for each: definitions are looked up by their names first.
    name = f"t_{digest(json.dumps(schema).encode()).hexdigest()}"
    return ToolDef(name=name[:30], description="", input_schema=schema)


def _as_property(schema: Any, meta: str) -> dict[str, Any]:
    is_hidden = meta == DRAFTS["draft7"] and "$ref" in schema if isinstance(schema, dict) else True
    if not is_hidden:
        # So that its references from the root are from its own.
        schema = {"$id": "https://example.org/suite", **schema}
    return {
        "$schema": meta,
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
    }


def takes(toolset: Any, name: str, arguments: dict[str, Any]) -> bool:
    """Whether a tool takes arguments as they are: what was repaired was not valid."""
    written = ToolMetadata(id="c", name=name, arguments=json.dumps(arguments))
    try:
        return not toolset.parse_tool_call(written).coerced
    except InvalidArgumentsError:
        return False


def forms_of(schema: Any, value: Any, defs: Mapping[str, Any]) -> Iterator[Any]:
    """Write a value in the forms of a strict schema: what is left out is null there."""
    yield value
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from forms_of(defs[schema["$ref"].removeprefix("#/$defs/")], value, defs)
    for branch in schema.get("anyOf", ()):
        yield from forms_of(branch, value, defs)
    if isinstance(value, dict) and "properties" in schema:
        parts = schema["properties"]
        yield dict.fromkeys(schema.get("required", ())) | {
            name: _form_of(parts.get(name, {}), item, defs) for name, item in value.items()
        }
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        yield [_form_of(schema["items"], item, defs) for item in value]


def _form_of(schema: Any, value: Any, defs: Mapping[str, Any]) -> Any:
    judge = validator_of("a form", {"allOf": [schema], "$defs": defs})
    return next((form for form in forms_of(schema, value, defs) if judge.is_valid(form)), value)


def offers(compiled: CompiledSchema, arguments: dict[str, Any]) -> bool:
    """Whether a provider that holds a model to the schema lets it send these arguments."""
    judge = validator_of("a form", compiled.schema)
    sent = [
        form
        for wrapped in (arguments, {"value": arguments})
        for form in forms_of(compiled.schema, wrapped, compiled.schema.get("$defs", {}))
    ]
    return any(judge.is_valid(form) and compiled.decoder(form) == arguments for form in sent)


REASONS: Final = {
    "refused: nowhere": "Refused: the schema refers to another document, and nothing is fetched.",
    "dependencies-compatibility": "`dependencies` is not a keyword since 2019; that it still "
    "counts is optional.",
    "optional/content": "The content of an encoded text is not checked, which the suite has "
    "as optional.",
    "format-assertion": "The schema's own metaschema is not fetched; in draft 2020-12 formats "
    "are annotations.",
    "vocabulary": "The schema's own metaschema is not fetched; it is read by draft 2020-12, "
    "with all keywords.",
    **dict.fromkeys(
        (
            "unevaluatedProperties with if/then/else",
            "if without then and else",
            "dependencies subschema (whole input)",
            "dependentSchemas: single dependency (whole input)",
        ),
        "In strict mode a property that only a conditional schema names is not part of the object.",
    ),
}
"""What the name of a case, or a refusal, holds, and why the case goes otherwise."""


class _Judge:
    """Hold the library against cases, and count."""

    def __init__(self) -> None:
        self.checked: dict[str, Counter[str]] = defaultdict(Counter)
        self.compiled: dict[str, Counter[str]] = defaultdict(Counter)
        self.groups: dict[str, dict[str, None]] = defaultdict(dict)
        self._plain: Any = {}
        self._as_property: Any = {}

    def note(self, case: Case, about: str) -> None:
        known = [text for part, text in REASONS.items() if part in f"{case.name} {about}"]
        self.groups["".join(known[:1])][f"{case.name}: {about}"] = None

    def take(self, case: Case) -> None:
        count = self.checked[case.name.partition("/")[0]]
        count["schemas"] += 1
        try:
            toolset = Toolset.from_definitions("Judged", [case.definition])
        except ToolDefinitionError as error:
            count["refused"] += 1
            self.note(case, "refused: " + ("regex" if "'regex'" in str(error) else "nowhere"))
            toolset = None
        truth: list[tuple[dict[str, Any], str, bool]] = []
        for arguments, about, is_valid in case.tests if toolset else ():
            taken = takes(toolset, case.definition.name, arguments)
            truth.append((arguments, about, taken))
            count["tests"] += 1
            count["agree" if taken is is_valid else "differ"] += 1
            if taken is not is_valid:
                self.note(case, about)
        for dialect, strict in FORMS:
            form = f"{dialect.NAME}{', strict' if strict else ''}"
            try:
                compiled = dialect.compile(case.definition, strict=strict)
            except ToolDefinitionError:
                self.compiled[form]["refused"] += 1
                continue
            if form == "openai_chat":
                self._plain = compiled.schema
                self._as_property = self._as_property if WHOLE in case.name else self._plain
            self.compiled[form]["reported" if compiled.losses else "whole"] += 1
            self.hold(case, form, compiled, truth)

    def hold(
        self,
        case: Case,
        form: str,
        compiled: CompiledSchema,
        truth: list[tuple[dict[str, Any], str, bool]],
    ) -> None:
        """Hold a compiled schema against what the author's own takes."""
        for arguments, about, taken in truth:
            is_offered = offers(compiled, arguments)
            if taken and not is_offered:
                is_whole = WHOLE in case.name
                readings = [(self._plain, arguments)]
                readings += [(self._as_property, {"value": arguments})] if is_whole else []
                is_closed = "strict" in form and not all(
                    validator_of("a form", narrowed(schema)).is_valid(value)
                    for schema, value in readings
                )
                self.compiled[form]["closed" if is_closed else "narrower"] += 1
                if not is_closed:
                    self.note(case, f"{form}, narrower than the author's: {about}")
            elif is_offered and not taken and not compiled.losses:
                self.compiled[form]["wider"] += 1
                self.note(case, f"{form}, wider than the author's: {about}")

    def tables(self) -> Iterator[Table]:
        """Give the figures."""
        yield [
            ("draft", "schemas", "refused", "tests", "as the suite says", "otherwise"),
            *(
                (draft, *(count[key] for key in ("schemas", "refused", "tests", "agree", "differ")))
                for draft, count in self.checked.items()
            ),
        ]
        yield [
            (
                "dialect",
                "compiled whole",
                "with reported losses",
                "refused",
                "silently wider",
                "narrower",
                "narrowed by closing",
            ),
            *((form, *(count[key] for key in COLUMNS)) for form, count in self.compiled.items()),
        ]


COLUMNS: Final = ("whole", "reported", "refused", "wider", "narrower", "closed")


def narrowed(schema: Any) -> Any:
    """Read a schema as strict mode does: objects are closed, and are nothing else."""
    if isinstance(schema, list):
        return [narrowed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: narrowed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict) or "unevaluatedProperties" in schema:
        made |= {"type": "object", "unevaluatedProperties": False}
    elif "items" in schema or "prefixItems" in schema:
        made.setdefault("type", "array")
        made.setdefault("unevaluatedItems", False)
    return made


def run() -> Verdict:
    """Run the suite.

    Raises:
        NotHad: The package cannot be downloaded.
    """
    judge = _Judge()
    with tempfile.TemporaryDirectory() as name:
        (tests,) = unpacked(SUITE, Path(name), source=True).glob("*/json/tests")
        for case in cases(tests):
            judge.take(case)
    return Verdict(
        title="JSON-Schema-Test-Suite",
        versions={"suite": f"as in {SUITE}", "validator": f"jsonschema {version('jsonschema')}"},
        about=ABOUT,
        tables=[*judge.tables()],
        groups=[Group(reason, [*cases]) for reason, cases in judge.groups.items()],
    )


ABOUT: Final = """\
Each schema of drafts 7, 2019-09 and 2020-12, without those of formats, becomes a property of a
tool's input, and the input itself if the test is about an object. `Toolset.from_definitions` must
take what the suite calls valid, and refuse the rest. Each dialect compiles each schema: what it
compiles without a reported loss must take the same arguments as the author's schema. Strict modes
close every object; what that narrows is counted in the last column, what a strict mode has no form
for is refused."""
