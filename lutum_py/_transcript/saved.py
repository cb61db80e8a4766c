"""Read stored JSON with care: every surprise is an error that says where.

A `Saved` is one object of the text and the path to it. Whoever reads takes entries by name and type
from it and goes into inner ones, so that the path in a message is right without anyone passing it.

A saved plan or session is sealed, so that an edited text is told from the one that was saved. It
carries a seal: a digest of its canonical JSON, or with a key an HMAC-SHA256 (RFC 2104). The seal is
checked before anything of the text is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

from .._text.json import JsonObject, canonical_json, is_object, read_json, shorten
from ..errors import InvalidValueError, MisuseError, PlanError, SavedDataError, TranscriptError

K = TypeVar("K")
_MISSING: Any = object()
LIST: type[list[object]] = list
"""The type of an entry that is a list."""
OBJECT: type[JsonObject] = dict
"""The type of an entry that is an object."""


def dump_saved(data: JsonObject, error: type[SavedDataError], what: str) -> str:
    """Encode plain data as ASCII, so that any text the model sent survives any store."""
    try:
        return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as reason:
        raise error(
            f"{what} holds something that is not JSON data ({reason}). Payloads and tickets must "
            "be plain dicts, lists, texts, numbers, booleans and None."
        ) from reason


class Form(NamedTuple):
    """One of the forms of stored text.

    Attributes:
        name: What the text says that its `format` is.
        version: The version that is written and read.
        what: What it is, for messages.
        error: What is raised where something is wrong with it.
        gave: What saves it.
    """

    name: str
    version: int
    what: str
    error: type[SavedDataError]
    gave: str = "`dump_json()`"

    def open_sealed(self, text: str | bytes, key: bytes | None, binding: str | None) -> Saved:
        """Parse stored text that was sealed, and make sure that it is what was saved.

        Raises:
            MisuseError: The key is not of bytes.
            InvalidValueError: It is empty, or the binding is not a text, or an empty one.
            PlanError: The text is of another form, was edited, or belongs to something else.
        """
        check_key(key, binding)
        saved = open_saved(text, self)
        check_saved(saved, key, binding, self.what)
        return saved

    def dump_sealed(self, data: JsonObject, key: bytes | None) -> str:
        """Encode plain data with its seal."""
        sealed = {**data, "seal": seal_of(data, key)._asdict()}
        return dump_saved(sealed, self.error, f"The {self.what}")


PLAN: Final = Form("lutum_py.plan", 1, "plan", PlanError)
SESSION: Final = Form("lutum_py.session", 1, "session", PlanError, gave="`dump_session()`")
TRANSCRIPT: Final = Form("lutum_py.transcript", 1, "transcript", TranscriptError)
RESULT: Final = Form("lutum_py.result", 1, "tool result", TranscriptError)


def open_saved(text: str | bytes, form: Form) -> Saved:
    """Parse stored text.

    Args:
        text: The text.
        form: What it has to be: `PLAN`, `SESSION` or `TRANSCRIPT`.

    Raises:
        SavedDataError: It is not JSON, of another form, or of an unknown version.
    """
    error, what = form.error, form.what
    if not isinstance(text, str | bytes | bytearray):
        raise MisuseError(
            f"A saved {what} is loaded from its text, not from {shorten(text)}. Pass what "
            f"{form.gave} gave, as str or bytes."
        )
    try:
        data = read_json(text)
    except ValueError as reason:
        raise error(f"This is not a saved {what}: it is not JSON ({reason}).") from None
    return saved_in(data, form)


def saved_in(data: object, form: Form) -> Saved:
    """Take stored text that was parsed already.

    Raises:
        SavedDataError: It is of another form, or of an unknown version.
    """
    error, what = form.error, form.what
    if not is_object(data):
        raise error(
            f"This is not a saved {what}: it is {shorten(data)}. Load what {form.gave} gave."
        )
    # Paths are written as in `$.calls[2].ticket`, so that an editor's search finds the place.
    saved = Saved(data, "$", error)
    if saved.data.get("format") != form.name:
        raise error(
            f"This is not a saved {what}: its `format` is {shorten(saved.data.get('format'))}, not "
            f"{form.name!r}. Load what {form.gave} gave."
        )
    version = saved.data.get("version")
    if type(version) is not int or version != form.version:
        raise error(
            f"This {what} has format version {shorten(version)}; this release reads "
            f"{form.version}. Load it with the release that saved it."
        )
    return saved


# `Damaged data at $.calls[2].ticket.id: expected str, got 3.` pydantic would check a model of the
# whole, and say less of what it found: a message here names the place, and quotes no more than is
# safe.
class Saved:
    """One JSON object of stored data, and where it stands."""

    __slots__ = ("_around", "_error", "_index", "_step", "data")

    def __init__(
        self,
        data: object,
        step: str,
        error: type[SavedDataError],
        around: Saved | None = None,
        index: int | None = None,
    ) -> None:
        self._step = step
        self._index = index
        self._around = around
        self._error = error
        if not is_object(data):
            raise self.wrong("", f"expected an object, got {shorten(data)}")
        self.data: JsonObject = data

    @property
    def path(self) -> str:
        """The way to the object."""
        step = self._step if self._index is None else f"{self._step}[{self._index}]"
        return step if self._around is None else f"{self._around.path}.{step}"

    def wrong(self, key: str, reason: str) -> SavedDataError:
        """Make the error that says what is wrong with an entry."""
        where = f"{self.path}.{key}" if key else self.path
        return self._error(f"Damaged data at {where}: {reason}.")

    def get(self, key: str, kind: type[K], default: Any = _MISSING) -> K:
        """Return an entry, which has to be of a type; None counts where it is the default."""
        value = self.data.get(key, _MISSING)
        # By class and not by `isinstance`: in stored data True is not a number.
        if value.__class__ is kind:
            return value
        if value is _MISSING or value is default is None:
            if default is _MISSING:
                raise self.wrong(key, "it is missing")
            return default  # type: ignore[no-any-return]
        raise self.wrong(key, f"expected {kind.__name__}, got {shorten(value)}")

    def some(self, kind: type[object], *keys: str, default: Any = _MISSING) -> dict[str, Any]:
        """Return several entries of one type, each as `get` does, by their keys."""
        return {key: self.get(key, kind, default) for key in keys}

    def json_text(self, key: str) -> str:
        """Return an entry that is JSON text itself; any text a tool gave is taken back."""
        text = self.get(key, str)
        try:
            read_json(text)
        except ValueError as reason:
            raise self.wrong(key, f"expected JSON text, got {shorten(text)} ({reason})") from None
        return text

    def member(self, key: str, allowed: Any) -> Any:
        """Return an entry that is one of some texts, or of those of a literal or an enumeration."""
        is_listed = allowed.__class__ is tuple
        values: tuple[object, ...] = allowed if is_listed else get_args(allowed) or tuple(allowed)
        value = self.get(key, str)
        if value not in values:
            raise self.wrong(key, f"{shorten(value)} is none of the known values")
        return values[values.index(value)]

    def each(self, key: str, *, optional: bool = False) -> Iterator[Saved]:
        """Go through a list of objects, which may be missing only if that is said."""
        entries: list[object] = self.get(key, LIST, [] if optional else _MISSING)
        for index, entry in enumerate(entries):
            yield Saved(entry, key, self._error, self, index)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        texts: list[object] = self.get(key, LIST)
        if not all(isinstance(entry, str) for entry in texts):
            raise self.wrong(key, "expected texts only")
        return tuple(cast("list[str]", texts))

    def inner(self, key: str) -> Saved:
        """Go into an object."""
        return Saved(self.get(key, OBJECT), key, self._error, self)

    def inner_or_none(self, key: str) -> Saved | None:
        """Go into an object, if it is there."""
        return None if self.data.get(key) is None else self.inner(key)


# The seal.


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


class Seal(NamedTuple):
    """A seal, and which kind of seal it is, in the words of a saved text."""

    kind: str
    value: str


DIGEST: Final = "sha256"
HMAC: Final = "hmac-sha256"


# Over the canonical JSON and not the text: a database may give the same data with other spaces or
# in another order, and that is not an edit.
def seal_of(data: JsonObject, key: bytes | None) -> Seal:
    """Make the seal of the whole of a text or of a part, but for the seal that is in it."""
    from hashlib import sha256

    body = canonical_json({name: part for name, part in data.items() if name != "seal"})
    encoded = body.encode("utf-8", "surrogatepass")
    if key is None:
        return Seal(DIGEST, sha256(encoded).hexdigest())
    import hmac

    return Seal(HMAC, hmac.new(key, encoded, sha256).hexdigest())


def _fits(saved: Saved, value: str, key: bytes | None) -> bool:
    from hmac import compare_digest

    try:
        made = seal_of(saved.data, key).value
    except ValueError:  # a number beyond all floats, such as 1e999, which nobody saved
        return False
    # Bytes, because the comparison takes no text beyond ASCII.
    return compare_digest(made.encode(), value.encode("utf-8", "replace"))


def check_saved(saved: Saved, key: bytes | None, binding: str | None, what: str) -> None:
    """Make sure that a text is what was saved, and belongs to what it is loaded for.

    Raises:
        PlanError: It does not.
    """
    written = saved.inner("seal")
    kind = written.get("kind", str)
    if kind == HMAC and key is None:
        raise PlanError(f"This {what} was saved with a key. Pass the same `key=` to load it.")
    if kind == DIGEST and key is not None:
        raise PlanError(
            f"This {what} was saved without a key, so it cannot be authenticated. Load it without "
            "`key=` if you trust where it was stored."
        )
    if kind not in (DIGEST, HMAC):
        raise written.wrong("kind", f"{shorten(kind)} is none of the known values")
    if not _fits(saved, written.get("value", str), key):
        raise _edited(key, what)
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


def _edited(key: bytes | None, what: str) -> PlanError:
    said = "was edited after it was saved: its contents do not match its seal"
    if key is not None:
        said = (
            "does not fit this key: it was saved with another one, or was edited after it was saved"
        )
    gave = PLAN.gave if what == PLAN.what else SESSION.gave
    return PlanError(
        f"This {what} {said}. What was approved may not be what would run; load the text that "
        f"{gave} gave, or let the model start again."
    )


def seal_in_words(saved: Saved) -> str:
    """Say what the seal of a saved plan or session is worth without its key.

    Args:
        saved: What `open_saved` gave.

    Raises:
        PlanError: The text was edited after it was saved, or has no seal.
    """
    what = SESSION.what if saved.data["format"] == SESSION.name else PLAN.what
    kind = saved.inner("seal").get("kind", str)
    if kind == HMAC:
        return (
            f"This {what} is sealed with a key, which is not here: nothing says that the text was "
            "not edited."
        )
    check_saved(saved, None, saved.data.get("binding"), what)
    return (
        f"The text fits the digest that this {what} was saved with. Anybody who edits it can make "
        "a new one; only a key protects it."
    )
