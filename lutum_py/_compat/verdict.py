"""Judge whether what was valid under one JSON schema still is under another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .._schema.schema_reader import localized, with_subschemas
from .._text.json import is_object
from .fits import Fitting
from .implies import Proof
from .samples import samples_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """Say whether every value of an old schema is also one of a new schema.

    Attributes:
        answer: `yes` where that is proven, `no` where `example` shows otherwise, else `maybe`.
        reason: Why, in a sentence without a full stop.
        example: A value that fits the old schema and not the new one; None where there is none.
    """

    answer: Literal["yes", "no", "maybe"]
    reason: str
    example: Any = None


def judge(old: Any, new: Any) -> Verdict:
    """Compare two schemas.

    Args:
        old: The schema that values were made for.
        new: The schema that they are to fit.

    Returns:
        The verdict; `yes` and `no` are certain.

    Example:
        >>> judge({"type": "integer"}, {"type": "number"}).answer
        'yes'
        >>> judge({"type": "integer"}, {"type": "integer", "maximum": 9})
        Verdict(answer='no', reason='the arguments must be at most 9', example=10)
    """
    old, new = localized(old), localized(new)
    verdict = _judge(old, new)
    if verdict.answer != "no":
        return verdict
    # Most objects take fields that they do not name. That one of those is refused now matters less
    # than what happens to the fields that the old schema did name.
    closed = _judge(_closed(old), new)
    if closed.answer == "no" and Fitting(old).fits(closed.example, old):
        return closed
    if closed.answer == "yes":
        reason = f"{verdict.reason}; only fields that the old schema does not name are concerned"
        return Verdict("maybe", reason, verdict.example)
    return verdict


def _judge(old: Any, new: Any) -> Verdict:
    proof = Proof(old, new)
    if proof.holds():
        return Verdict("yes", "whatever fitted the old schema fits the new one")
    fitting = Fitting(new)
    # The smallest first, so that the example in the message is one that a person reads at a glance.
    for value in samples_of(old, new):
        if fitting.fits(value, new) is False:
            return Verdict("no", fitting.misfit(value), value)
    path, keyword = proof.stuck or ("", "$ref")
    place = f"`{path}`" if path else "the arguments"
    return Verdict("maybe", f"whether {place} still fits `{keyword}` cannot be told from here")


def _closed(schema: Any) -> Any:
    """Give a schema whose objects take no field that they do not name."""
    if not is_object(schema):
        return schema
    made = with_subschemas(schema, _closed)
    if "properties" in made and "patternProperties" not in made:
        made.setdefault("additionalProperties", False)
    return made
