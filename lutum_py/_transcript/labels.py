"""What is known of a result: whether whoever wrote it is trusted, and who may read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from .._text.immutable import Frozen
from .._text.unicode import sendable
from ..errors import MisuseError

if TYPE_CHECKING:
    from .saved import Saved


class _LabelFields:
    trusted: bool | None
    readers: tuple[str, ...] | None
    inner: tuple[tuple[str, Labels | None], ...]
    __slots__ = tuple(__annotations__)


class Labels(Frozen, _LabelFields):
    """Say of one result whether it is trusted, and who may read it.

    None is "as declared": what a policy says about the tool.

    Args:
        trusted: Whether nobody from outside wrote any of it.
        readers: Who may read it; nobody else if it is empty. They are kept in order, each once.
        inner: Of a call that requested others: their tools, each with the labels of its results.
            The result has the least trust and the fewest readers of all of these. A round puts it
            in as it ends.

    Raises:
        MisuseError: `trusted` is not a truth value, `readers` are not texts, or `inner` does not
            hold such pairs.

    Example:
        >>> Labels(trusted=False, readers=["bob@a.com", "ann@a.com"])
        Labels(trusted=False, readers=('ann@a.com', 'bob@a.com'))
    """

    __slots__ = ()

    def __init__(
        self,
        trusted: bool | None = None,
        readers: Iterable[str] | None = None,
        inner: Iterable[tuple[str, Labels | None]] = (),
    ) -> None:
        MisuseError.check("Labels", "trusted", "True, False or None", trusted, bool | None)
        listed = tuple(inner) if isinstance(inner, Iterable) else (inner,)
        for each in listed:
            match each:
                case (str(), Labels() | None):
                    continue
            wish = "pairs of a tool's name and Labels or None"
            raise MisuseError.of_field("Labels", "inner", wish, each)
        pairs = dict.fromkeys(map(tuple, listed))
        named = None if readers is None else readers_of("Labels", readers)
        self._fill((trusted, named, tuple(pairs)))

    def __repr__(self) -> str:  # few have more
        inner = f", inner={self.inner!r}" if self.inner else ""
        return f"Labels(trusted={self.trusted!r}, readers={self.readers!r}{inner})"

    @classmethod
    def of_meta(cls, meta: Mapping[str, Any] | None, *, believed: bool) -> Labels | None:
        """Read the labels that a server of MCP gives a result, in `ifc` of its `_meta`.

        Args:
            meta: The `_meta` of the result.
            believed: Whether the server may call its results trusted; else it can only lower.

        Returns:
            None if the server says nothing, or nothing that it is believed.

        Raises:
            MisuseError: `meta` is not a mapping.

        Example:
            >>> said = {"ifc": {"integrity": "untrusted", "confidentiality": "public"}}
            >>> Labels.of_meta(said, believed=False)
            Labels(trusted=False, readers=None)
        """
        MisuseError.check("Labels.of_meta", "meta", "a mapping or None", meta, Mapping | None)
        said = (meta or {}).get("ifc")
        if said is None:
            return None
        if not isinstance(said, Mapping):
            # A server that says something that cannot be read may have meant to warn: so it counts
            # as the strictest.
            return cls(trusted=False, readers=())
        words = cast("Mapping[str, Any]", said)
        trusted: bool | None = None
        if "integrity" in words:
            trusted = words["integrity"] == "trusted"
        if trusted and not believed:
            trusted = None
        readers: Iterable[str] | None = None
        if "confidentiality" in words and words["confidentiality"] != "public":
            named: Any = words["confidentiality"]
            names = cast("list[object]", named) if isinstance(named, list) else [None]
            readers = [name for name in names if isinstance(name, str)]
            # One name that cannot be read makes the list one that nobody may read: to leave it out
            # would let others read what it was meant for.
            readers = readers if len(readers) == len(names) else ()
        return None if trusted is None and readers is None else cls(trusted, readers)


def readers_of(where: str, readers: object) -> tuple[str, ...]:
    """Take names of readers, in order and each once.

    Raises:
        MisuseError: They are not texts.
    """
    given: Any = readers
    is_many = isinstance(readers, Iterable) and not isinstance(readers, str | bytes)
    names: list[Any] = list(given) if is_many else [None]
    if not all(isinstance(name, str) for name in names):
        raise MisuseError.of_field(where, "readers", "a list of texts", given)
    return tuple(sorted({sendable(name) for name in names}))


def check_labels(where: str, labels: object) -> None:
    """Refuse what are not labels."""
    MisuseError.check(where, "labels", "Labels or None", labels, Labels)


def joined_labels(own: Labels | None, inner: Iterable[tuple[str, Labels | None]]) -> Labels | None:
    """Join the labels of a result with those of the results that it was made of, by their tools.

    What they say themselves lowers what the result says. What a policy declares of these tools is
    not known here, so that they are kept by name as well.
    """
    pairs = [*inner]
    if not pairs:
        return own
    own = own or Labels()
    trusted, readers = own.trusted, own.readers
    for _, each in pairs:
        if each is not None and each.trusted is False:
            trusted = False
        if each is not None and each.readers is not None:
            names = {name.lower() for name in each.readers}
            same = [name for name in readers or () if name.lower() in names]
            readers = each.readers if readers is None else tuple(same)
    return Labels(trusted, readers, (*own.inner, *pairs))


def dump_labels(labels: Labels | None) -> dict[str, Any]:
    """Return the entry that a saved result has of its labels; none if it has none."""
    if labels is None:
        return {}
    readers = None if labels.readers is None else list(labels.readers)
    entry: dict[str, Any] = {"trusted": labels.trusted, "readers": readers}
    if labels.inner:
        entry["inner"] = [{"tool": tool, **dump_labels(inner)} for tool, inner in labels.inner]
    return {"labels": entry}


def load_labels(saved: Saved) -> Labels | None:
    """Read what `dump_labels` gave."""
    inner = saved.inner_or_none("labels")
    if inner is None:
        return None
    readers = None if inner.data.get("readers") is None else inner.texts("readers")
    pairs = [
        (each.get("tool", str), load_labels(each)) for each in inner.each("inner", optional=True)
    ]
    return Labels(inner.get("trusted", bool, None), readers, pairs)
