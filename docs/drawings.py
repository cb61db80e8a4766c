"""The pictures of the site, as SVG that follows the colours of the page.

The life of a call is drawn from the table that the library itself goes by, and the house from the
contract that its imports are checked by, so neither picture can disagree with the code. All colours
come from classes in `stylesheets/site.css`, for light and dark.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import hypot
from pathlib import Path
from typing import Final, get_args

import lutum_py
from lutum_py._call.history import STAGES, TABLE, TRANSITIONS, WITHIN, CallStatus, StepKind
from lutum_py.capabilities import EFFECT_DEFAULTS

__all__ = [
    "DRAWINGS",
    "deciding",
    "effects_table",
    "house",
    "house_rows",
    "house_steps",
    "house_table",
    "lifecycle",
    "lifecycle_table",
    "lifecycle_within",
    "loop",
    "stages_table",
    "steps_table",
    "way_of_a_round",
]

WIDTH: Final = 520
LINE: Final = 19
"""Units from one line of text to the next."""
_STRONG: Final = ' class="strong"'


def box(
    x: float, y: float, width: float, lines: Sequence[str], kind: str = "library", height: float = 0
) -> str:
    """Draw a box around lines of text, the first of them bold.

    Args:
        x: The left edge.
        y: The upper edge.
        width: How wide it is.
        lines: What stands in it.
        kind: Whose it is, as a class: `library`, `yours`, `status` or `result`.
        height: How high it is; as high as the text needs, where it is 0.
    """
    height = height or LINE * len(lines) + 18
    middle = x + width / 2
    first = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
    texts = [
        f'<text x="{middle:g}" y="{first + LINE * number:g}"{"" if number else _STRONG}>'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    ]
    shape = (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>'
    )
    return shape + "".join(texts)


def arrow(path: str) -> str:
    """Draw an arrow along a path."""
    return f'<path d="{path}" class="arrow" marker-end="url(#head)"/>'


def label(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Write a small text beside an arrow."""
    return f'<text x="{x:g}" y="{y:g}" class="label" text-anchor="{anchor}">{escape(text)}</text>'


def picture(height: float, title: str, parts: Sequence[str]) -> str:
    """Put parts into one picture that a screen reader can announce."""
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
        ' markerHeight="7" orient="auto-start-reverse"><path d="M0,0L10,5L0,10z" class="head"/>'
        "</marker></defs>"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}"'
        f' class="lutum">{head}{"".join(parts)}</svg>'
    )


# Where the stages stand: the centres of their boxes.
_PLACES: Final[Mapping[str, tuple[int, int]]] = {
    "new": (260, 36),
    "elsewhere": (440, 36),
    "running": (92, 186),
    "resuming": (260, 186),
    "suspended": (440, 186),
    "in_doubt": (92, 290),
    "succeeded": (100, 400),
    "failed": (260, 400),
    "cancelled": (420, 400),
}
_END: Final = "ended"
"""Stands for the frame around all stages that end a call."""
# How the arrows run, each with the place of its label: the step that leads there.
_ROUTES: Final[Mapping[tuple[str, str], tuple[str, float, float, str]]] = {
    ("new", "running"): ("M205,50 C130,70 100,110 92,160", 122, 92, "end"),
    ("new", "suspended"): ("M315,50 C390,70 430,110 438,160", 408, 92, "start"),
    ("new", _END): ("M202,36 H28 Q14,36 14,50 V352", 20, 130, "start"),
    ("running", "suspended"): ("M124,208 C174,285 370,285 418,212", 212, 238, "middle"),
    ("running", "in_doubt"): ("M92,208 V264", 98, 246, "start"),
    ("running", _END): ("M34,190 H32 Q24,190 24,198 V352", 30, 246, "start"),
    ("in_doubt", "suspended"): ("M150,290 C240,320 420,310 434,212", 340, 318, "middle"),
    ("in_doubt", _END): ("M92,312 V352", 98, 338, "start"),
    ("suspended", "resuming"): ("M378,195 H322", 350, 211, "middle"),
    ("suspended", "cancelled"): ("M448,208 V374", 454, 300, "start"),
    ("resuming", "running"): ("M202,186 H154", 178, 178, "middle"),
    ("resuming", "suspended"): ("M318,177 H374", 350, 169, "middle"),
    ("resuming", _END): ("M260,208 V352", 266, 342, "start"),
}
# The same for calls within calls, in a picture of their own.
_PLACES_WITHIN: Final[Mapping[str, tuple[int, int]]] = {
    "unreviewed": (92, 36),
    "new": (300, 36),
    "running": (92, 136),
    "awaiting": (420, 136),
    "returning": (260, 226),
}
_ROUTES_WITHIN: Final[Mapping[tuple[str, str], tuple[str, float, float, str]]] = {
    ("unreviewed", "new"): ("M150,36 H240", 196, 28, "middle"),
    ("unreviewed", _END): ("M34,40 Q18,44 18,60 V292", 24, 92, "start"),
    ("running", "awaiting"): ("M150,136 H360", 256, 128, "middle"),
    ("awaiting", "returning"): ("M414,158 C404,196 360,222 320,226", 404, 214, "start"),
    ("returning", "running"): ("M202,226 C150,222 104,196 96,160", 110, 214, "end"),
    ("returning", _END): ("M260,248 V292", 266, 278, "start"),
    ("awaiting", "cancelled"): ("M450,158 V292", 456, 278, "start"),
}


def lifecycle() -> str:
    """Draw which step of a call leads from where to where.

    Raises:
        KeyError: The table has a move for which there is no room in the picture.
        ValueError: The picture has a move that the table does not hold.
    """
    parts = ['<rect x="6" y="356" width="508" height="88" rx="8" class="group"/>']
    moves = {move: kind for move, kind in _moves().items() if move not in _ROUTES_WITHIN}
    parts += _drawn(moves, _ROUTES, _PLACES)
    # From each open stage, so that one arrow stands for all of them.
    parts += [arrow("M318,30 H382"), label(350, 22, "moved", "middle")]
    return picture(450, "Which step leads a call from where to where; the table says it too", parts)


def lifecycle_within() -> str:
    """Draw the same of calls that request others, and of those that are requested.

    Raises:
        ValueError: The picture has a move that the table does not hold.
    """
    parts = [
        '<rect x="6" y="296" width="508" height="44" rx="8" class="group"/>',
        label(260, 322, "an end", "middle"),
    ]
    moves = {move: kind for move, kind in _moves().items() if move in _ROUTES_WITHIN}
    parts += _drawn(moves, _ROUTES_WITHIN, _PLACES_WITHIN)
    return picture(346, "How a call requests others and comes back; the table says it too", parts)


def _moves() -> dict[tuple[str, str], str]:
    """Give the step that leads from each stage of the table to another."""
    moves: dict[tuple[str, str], str] = {}
    for name, row in TABLE.items():
        for kind, target in row.items():
            # A stage is final within a try, and what went elsewhere goes on there.
            if target == "same" or kind in ("retried", "moved"):
                continue
            ends = [status for status in TRANSITIONS[STAGES[name].status] if status.is_terminal]
            said = "each within has its result" if kind == WITHIN else kind
            moves[name, ends[0] if target == _END and len(ends) == 1 else target] = said
    return moves


def _drawn(
    moves: Mapping[tuple[str, str], str],
    routes: Mapping[tuple[str, str], tuple[str, float, float, str]],
    places: Mapping[str, tuple[int, int]],
) -> list[str]:
    """Draw arrows and the boxes that they lead from and to."""
    if unknown := routes.keys() - moves.keys():
        raise ValueError(f"the table does not hold {unknown}")
    parts: list[str] = []
    for move, kind in sorted(moves.items()):
        path, x, y, anchor = routes[move]
        parts += [arrow(path), label(x, y, kind, anchor)]
    for name, (x, y) in places.items():
        shown, kind = [name.replace("_", " ")], "result" if STAGES[name].is_end else "status"
        parts.append(box(x - 58, y - 22, 116, shown, kind, 44))
    return parts


def lifecycle_table() -> str:
    """Write which status may follow which, as HTML."""
    return _table(
        ("status", "may become"),
        [(f"<code>{source}</code>", _followers(source)) for source in CallStatus],
    )


def stages_table() -> str:
    """Write the table itself: where each step leads from each stage, as HTML."""
    known = (*get_args(StepKind), WITHIN)
    kinds = [each for each in known if any(each in row for row in TABLE.values())]
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, row in TABLE.items():
        cells = tuple(_leads(row.get(kind), STAGES[name].status) for kind in kinds)
        rows.setdefault(cells, []).append(name.replace("_", " "))
    return _table(
        ("from", *("each within" if kind == WITHIN else f"<code>{kind}</code>" for kind in kinds)),
        [(", ".join(names), *cells) for cells, names in rows.items()],
    )


def _leads(target: str | None, source: CallStatus) -> str:
    if target is None:
        return "—"
    if target == _END:
        return "cancelled" if source is CallStatus.SUSPENDED else "an end"
    return "stays" if target == "same" else target.replace("_", " ")


_SAY: Final[Mapping[str, tuple[str, str]]] = {
    "proposed": (
        "the turn was read",
        "`arguments` as they were decoded, defaults included",
    ),
    "reviewed": (
        "a hook, gate or condition has reviewed it",
        "`by` and `phase`; `verdict`: what it decided, or None: let pass; `reason`",
    ),
    "changed": (
        "the input has changed: by a hook, by an edit of a person, or by your code",
        "all `arguments` from here on; `by` and `phase`",
    ),
    "suspended": (
        "it waits for a decision",
        "`by`, `phase`: who suspended it; `reason`: what is asked; `id` of the ticket; `digest`",
    ),
    "decided": (
        "a decision was taken in",
        "`by`: a person; `verdict`: `resume`, `edit`, `cancel`; `reason`; `id`; `digest`",
    ),
    "started": ("the tool is about to run", "`by`: the owner of the claim or of `plan.detach`"),
    "abandoned": (
        "it was saved while it ran, or its lease in a store is over",
        "that from here on nobody knows what the tool did",
    ),
    "ended": (
        "it has its result",
        "`verdict`: the status of the result; `by`, `phase`, `reason` where the tool was not run",
    ),
    "recorded": (
        "the plan has recorded the end, or the wait",
        "`verdict`: the status of the result, or `suspended`",
    ),
    "moved": ("it goes on elsewhere", "`verdict`: how: `dumped`, `saved`, `requested`"),
    "retried": ("it may be tried again", "`verdict`: `spent` if a new approval is needed"),
    "requested": (
        "the tool left for calls that it requested",
        "`reason`: the ids of these",
    ),
    "late": (
        "the library delivered the outcome of a run that was over",
        "`verdict`: the status of that result; nothing else follows from it",
    ),
}
"""Of each kind of step, when it is written and what it holds."""


def steps_table() -> str:
    """Write what each kind of step holds, as HTML.

    Raises:
        KeyError: There is a kind of which nothing is said here.
        ValueError: Something is said of a kind that there is not.
    """
    kinds: tuple[str, ...] = get_args(StepKind)
    if unknown := _SAY.keys() - set(kinds):
        raise ValueError(f"there are no steps of the kinds {unknown}")
    return _table(
        ("kind", "what happened", "what the step holds"),
        [(f"<code>{kind}</code>", *map(_inline, _SAY[kind])) for kind in kinds],
    )


def effects_table() -> str:
    """Write what each kind of effect implies, with its area, kinds of one row together, as HTML."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for kind, implied in EFFECT_DEFAULTS.items():
        row = (
            "yes" if implied.mutating else "no",
            implied.reversibility.value,
            implied.confirmation.value,
            implied.risk_floor.value,
        )
        area = "" if implied.area is None else f" ({implied.area})"
        rows.setdefault(row, []).append(f"<code>{kind}</code>{area}")
    return _table(
        ("effects", "changes things", "reversibility", "confirmation", "least risk"),
        [(", ".join(kinds), *row) for row, kinds in rows.items()],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _followers(source: CallStatus) -> str:
    named = [f"<code>{each}</code>" for each in CallStatus if each in TRANSITIONS[source]]
    return ", ".join(named) or "nothing: the call has ended"


def loop() -> str:
    """Draw the loop, and which part of it is whose."""
    parts = [
        box(8, 14, 150, ["ask the model", "your client, your line"], "yours"),
        arrow("M158,41 H184"),
        box(186, 14, 148, ["read the turn", "typed calls"]),
        arrow("M334,41 H360"),
        box(362, 14, 150, ["decide", "your rules, a person"], "yours"),
        arrow("M437,70 V104"),
        box(362, 106, 150, ["run the calls", "your code, your way"], "yours"),
        arrow("M362,133 H336"),
        box(186, 106, 148, ["commit", "all, or nothing"]),
        arrow("M186,133 H93 Q83,133 83,123 V72"),
        label(100, 153, "again", "start"),
    ]
    return picture(172, "Your code asks, decides and runs; the library reads and commits", parts)


def way_of_a_round() -> str:
    """Draw how a round comes from the model into the transcript."""
    parts = [
        box(140, 8, 240, ["model.respond(request)", "on your line: .collect()"], "yours"),
        arrow("M260,64 V96"),
        box(140, 98, 240, ["AssistantTurn", "kept whole, as it was sent"]),
        arrow("M380,126 H404 Q414,126 414,136 V152"),
        label(424, 130, "no calls", "start"),
        box(350, 156, 146, ["Finished(result)"], "result"),
        arrow("M260,154 V186"),
        label(250, 176, "calls", "end"),
        box(140, 188, 200, ["NeedsTools(round)", "arguments are decoded"]),
        arrow("M140,216 H112 Q102,216 102,226 V250"),
        box(22, 252, 160, ["issues", "unknown, invalid:", "the model is told why"], "result"),
        arrow("M260,244 V324"),
        box(196, 326, 200, ["apply_hooks(hooks)", "your hooks decide"], "yours"),
        arrow("M280,382 V430"),
        arrow("M330,382 V394 Q330,404 340,404 H415 Q425,404 425,414 V430"),
        arrow("M230,382 V394 Q230,404 220,404 H112 Q102,404 102,414 V430"),
        box(196, 432, 142, ["pending"], "status"),
        box(352, 432, 146, ["suspended", "waits: save the plan"], "status"),
        box(22, 432, 160, ["handled, rejected", "have their results"], "result"),
        arrow("M425,488 V505 Q425,515 415,515 H300 Q290,515 290,505 V471"),
        label(400, 533, "a decision: plan.resume"),
        arrow("M260,469 V552"),
        box(160, 554, 200, ["await call.call()", "your loop runs the tools"], "yours"),
        arrow("M22,290 H16 Q6,290 6,300 V662 Q6,672 16,672 H136"),
        arrow("M102,488 V646 Q102,656 112,656 H136"),
        arrow("M260,610 V638"),
        box(140, 640, 240, ["plan.commit(session, results)", "one result a call, or no change"]),
        arrow("M260,696 V728"),
        box(
            110,
            730,
            300,
            ["transcript", "the turn, then its results in order"],
            "result",
            height=56,
        ),
        arrow("M410,758 H502 Q512,758 512,748 V46 Q512,36 502,36 H384"),
        label(506, 716, "the next request", "end"),
    ]
    return picture(
        794, "From the model's turn by way of hooks and your code into the transcript", parts
    )


def deciding() -> str:
    """Draw the order in which hooks and gates review one call."""
    stages = [
        (["decode and validate"], "library", "RecoverableToolCallIssue"),
        (["execution hooks", "each may rewrite the input"], "yours", "Complete, Reject"),
        (["validate again", "if the input is another"], "library", "HookError"),
        (["gates", "all see the final input"], "yours", "Block, Suspend, Complete"),
        (["before-hooks"], "yours", None),
        (["pending: yours to run"], "status", None),
    ]
    parts: list[str] = []
    y = 8.0
    for number, (lines, kind, way_out) in enumerate(stages):
        height = LINE * len(lines) + 22
        parts.append(box(6, y, 250, lines, kind, height=height))
        middle = y + height / 2
        if way_out is not None:
            parts.append(arrow(f"M256,{middle:g} H292"))
            parts.append(box(296, middle - 19, 218, [way_out], "result", height=38))
        if number < len(stages) - 1:
            parts.append(arrow(f"M131,{y + height:g} v26"))
        y += height + 30
    return picture(y - 18, "The order of deciding about one call, and the ways out of it", parts)


PROJECT: Final = Path(__file__).resolve().parent.parent / "pyproject.toml"
_STEPS: Final[Sequence[tuple[str, str]]] = (
    ("_session", "`session.text_turn(model)` makes a request of the transcript and the tools."),
    ("dialects", "A dialect turns it into a body, and the response of the provider into a turn."),
    ("_transcript", "The turn is a value now, kept whole, as it was sent."),
    ("_round", "`read_turn` opens a round, because the turn has calls."),
    ("_schema", "The arguments of each call are validated, and coerced where there is no doubt."),
    (
        "_call",
        "Each becomes a typed call, with its history, or an issue that the model reads.",
    ),
    ("_hooks", "Hooks and gates complete, rewrite, reject or suspend the calls that they review."),
    ("_round", "The plan holds the outcome; it can be saved, and resumed in another process."),
    ("execution", "Your loop runs the pending calls, by `call.call()` or with deadlines."),
    ("_context", "The running tool is given its context: progress, state, cancellation."),
    ("_round", "`plan.commit` matches results with calls: all of them, or it changes nothing."),
    ("_transcript", "The turn and its results are appended, in order."),
)
"""The way of a round through the folders: where it is, and what happens there."""
_YOURS: Final = "execution"
"""Where code of the user's own may stand in the place of the library's."""


def house_rows() -> list[list[str]]:
    """Read the folders from the import contract: rows from the highest to the lowest.

    Raises:
        StopIteration: The project has no contract of layers.
    """
    linter = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each["layers"] for each in linter["contracts"] if each["type"] == "layers")
    return [[name.strip() for name in row.split(":")] for row in layers]


def house() -> str:
    """Draw the rows of folders, and the way of a round through them.

    Raises:
        KeyError: The way leads through a folder that the contract does not hold.
    """
    rows = house_rows()
    height, gap, radius, left = 36, 6, 11, 296
    parts: list[str] = []
    centres: dict[str, float] = {}
    for number, names in enumerate(rows):
        top = 8 + number * (height + gap)
        parts.append(
            f'<rect x="6" y="{top}" width="{WIDTH - 12}" height="{height}" rx="6" class="library"/>'
            f'<text x="18" y="{top + height / 2 + 5:g}" class="row">'
            f"{escape(' · '.join(map(_shown, names)))}</text>"
        )
        centres.update(dict.fromkeys(names, top + height / 2))
    across = (WIDTH - 24 - left) / (len(_STEPS) - 1)
    places = [(left + at * across, centres[folder]) for at, (folder, _) in enumerate(_STEPS)]
    for (x, y), (to_x, to_y) in pairwise(places):
        far = hypot(to_x - x, to_y - y) / (radius + 1)
        out_x, out_y = (to_x - x) / far, (to_y - y) / far
        parts.append(
            arrow(f"M{x + out_x:.1f},{y + out_y:.1f} L{to_x - out_x:.1f},{to_y - out_y:.1f}")
        )
    for number, ((folder, _), (x, y)) in enumerate(zip(_STEPS, places, strict=True), 1):
        kind = "yours" if folder == _YOURS else "status"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:g}" r="{radius}" class="{kind}"/>'
            f'<text x="{x:.1f}" y="{y + 5:g}" class="step">{number}</text>'
        )
    title = "The folders, each above those that it may import, and the way of a round through them"
    return picture(8 + len(rows) * (height + gap), title, parts)


def house_steps() -> str:
    """Write what happens at each step of that way, as HTML."""
    steps = [f"<li><code>{_shown(folder)}</code>: {_inline(text)}</li>" for folder, text in _STEPS]
    return f"<ol>{''.join(steps)}</ol>"


def house_table() -> str:
    """Write what stands in each folder, in the words of its own docstring, as HTML."""
    rows = [
        (f"<code>{_shown(name)}</code>", _inline(_first_sentence(_source_of(name))))
        for names in house_rows()
        for name in names
    ]
    return _table(("folder", "what a reader finds there"), rows)


def _source_of(name: str) -> Path:
    package = Path(lutum_py.__file__).parent
    return package / name / "__init__.py" if _is_folder(name) else package / f"{name}.py"


def _is_folder(name: str) -> bool:
    return (Path(lutum_py.__file__).parent / name).is_dir()


def _shown(name: str) -> str:
    return f"{name}/" if _is_folder(name) else f"{name}.py"


def _first_sentence(source: Path) -> str:
    said = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


DRAWINGS: Final[Mapping[str, Callable[[], str]]] = {
    "deciding": deciding,
    "effects-table": effects_table,
    "house": house,
    "house-steps": house_steps,
    "house-table": house_table,
    "lifecycle": lifecycle,
    "lifecycle-table": lifecycle_table,
    "lifecycle-within": lifecycle_within,
    "loop": loop,
    "round": way_of_a_round,
    "stages-table": stages_table,
    "steps-table": steps_table,
}
"""The pictures that a page can show, by name."""
