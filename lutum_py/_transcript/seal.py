"""The seal of a saved plan: how an edited text is told from the one that was saved.

Each entry and the whole carry one: a digest of their canonical JSON, or with a key an HMAC-SHA256
(RFC 2104). The whole is checked before anything of it is used; the seals of the entries serve to
say which call was edited.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from .._text.json import canonical_json, shorten
from ..errors import InvalidValueError, MisuseError, PlanError
from .saved import Saved


def check_key(key: bytes | None, binding: str | None = None) -> None:
    """Refuse a key that is not of bytes or is empty, and a binding that names nothing.

    Raises:
        MisuseError: The key is not of bytes.
        InvalidValueError: It is empty, or the binding is not a text, or an empty one.
    """
    if not isinstance(key, bytes | None):
        # The key itself is a secret, and stays out of the text.
        encode = " Encode the text, as in `key=text.encode()`." if isinstance(key, str) else ""
        raise MisuseError(f"`key=` takes bytes, not a value of type {type(key).__name__}.{encode}")
    if key is not None and not key:
        raise InvalidValueError(
            "The key is empty, so anybody could seal a plan with it. Pass a secret, or leave "
            "`key=` out."
        )
    if binding is not None and (not isinstance(binding, str) or not binding):
        raise InvalidValueError(
            f"The binding is {shorten(binding)}. Pass a text that names what the plan belongs to, "
            "such as the ids of the conversation and the turn, or leave `binding=` out."
        )


def kind_of(key: bytes | None) -> str:
    """Name the kind of seal that a key makes, as the saved text does."""
    return "sha256" if key is None else "hmac-sha256"


# Over the canonical JSON and not the text: a database may give the same data with other spaces or
# in another order, and that is not an edit.
def seal_of(data: dict[str, Any], key: bytes | None) -> str:
    """Make the seal of a part of the text."""
    body = canonical_json({name: part for name, part in data.items() if name != "seal"})
    encoded = body.encode("utf-8", "surrogatepass")
    made = hashlib.sha256(encoded) if key is None else hmac.new(key, encoded, hashlib.sha256)
    return made.hexdigest()


def seal(data: dict[str, Any], key: bytes | None) -> None:
    """Put in the seal of the whole."""
    data["seal"] = {"kind": kind_of(key), "value": seal_of(data, key)}


def _fits(saved: Saved, value: str, key: bytes | None) -> bool:
    # Bytes, because the comparison takes no text beyond ASCII.
    return hmac.compare_digest(seal_of(saved.data, key).encode(), value.encode("utf-8", "replace"))


def check_saved(saved: Saved, key: bytes | None, binding: str | None, what: str = "plan") -> None:
    """Make sure that a text is what was saved, and belongs to what it is loaded for.

    Raises:
        PlanError: It does not. Of a text that was edited, it names the calls in which it was.
    """
    written = saved.inner("seal")
    kind = written.get("kind", str)
    if kind == kind_of(b"") and key is None:
        raise PlanError(f"This {what} was saved with a key. Pass the same `key=` to load it.")
    if kind == kind_of(None) and key is not None:
        raise PlanError(
            f"This {what} was saved without a key, so it cannot be authenticated. Load it without "
            "`key=` if you trust where it was stored."
        )
    if kind != kind_of(key):
        raise written.wrong("kind", f"{shorten(kind)} is none of the known values")
    if not _fits(saved, written.get("value", str), key):
        raise _edited(saved, key, what)
    bound: Any = saved.get("binding", str, None)
    if bound == binding:
        return
    if bound is None:
        raise PlanError(
            f"This {what} was saved without a binding, so it cannot be told to be of "
            f"{shorten(binding)}. Load it without `binding=` if you know where it belongs."
        )
    given = "no `binding=` was passed" if binding is None else f"not of {shorten(binding)}"
    raise PlanError(
        f"This {what} is of {shorten(bound)}, and {given}. Load the one that belongs to this "
        "conversation and turn, with the `binding=` that it was dumped with."
    )


def _edited(saved: Saved, key: bytes | None, what: str) -> PlanError:
    """Name the calls in which a text was edited, as far as their own seals tell."""
    plan = saved if what == "plan" else saved.inner_or_none("plan")
    entries = [] if plan is None else list(plan.each("calls"))
    edited = [e.get("id", str) for e in entries if not _fits(e, e.get("seal", str), key)]
    if key is not None and len(edited) == len(entries):
        said = "does not fit this key: it was saved with another one, or was edited"
    elif edited:
        calls = ", ".join(repr(each) for each in edited[:10])
        said = f"was edited after it was saved, in what it says about call {calls}"
    else:
        said = "was edited after it was saved: its contents do not match its seal"
    gave = "dump_json" if what == "plan" else "dump_session"
    return PlanError(
        f"This {what} {said}. What was approved may not be what would run; load the text that "
        f"`{gave}()` gave, or let the model start again."
    )


def seal_in_words(saved: Saved, what: str) -> str:
    """Say what the seal is worth without a key.

    Raises:
        PlanError: The text was edited after it was saved, or has no seal.
    """
    kind = saved.inner("seal").get("kind", str)
    if kind == kind_of(b""):
        return (
            f"This {what} is sealed with a key, which is not here: nothing says that the text was "
            "not edited."
        )
    check_saved(saved, None, saved.data.get("binding"), what)
    return (
        f"The text fits the digest that this {what} was saved with. Anybody who edits it can make "
        "a new one; only a key protects it."
    )
