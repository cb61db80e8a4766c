"""What is said by anyone but the model, and files that go with it or with a tool result."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel

from .._text.immutable import Frozen
from .._text.json import (
    JsonObject,
    compact_json,
    is_mapping,
    is_object,
    is_sequence,
    is_whole,
    parse_json,
    sendable,
    shorten,
)
from ..errors import InvalidValueError, MisuseError

if TYPE_CHECKING:
    from .saved import Saved

MediaType: TypeAlias = Literal["image", "audio", "video", "file"]

_MEDIA_TYPES: tuple[object, ...] = get_args(MediaType)
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Describe a file by where it is: at an address, or in the `data:` URL itself.

    `Attachment.from_path(path)` and `Attachment.from_bytes(data, mime_type)` make one of a file
    that is here.

    Attributes:
        media_type: What kind of file: `image`, `audio`, `video` or `file`.
        mime_type: Its MIME type, as in `image/png`.
        url: Where it is: an `https:` address, or a `data:` URL that carries it.
        caption: A line about it for people and models.
        size: Its size in bytes, if that is known.
        name: The name of the file, for providers that want one.

    Raises:
        MisuseError: A field has another type.
        InvalidValueError: The media type is none of the four, or `url` is neither an `https:`
            address nor a `data:` URL.

    Example:
        >>> Attachment(media_type="image", mime_type="image/png", url="https://e.org/a.png").caption
    """

    media_type: MediaType
    mime_type: str
    url: str
    caption: str | None = None
    size: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse what neither a store nor a provider would take; half a pair becomes U+FFFD."""
        if self.media_type not in _MEDIA_TYPES:
            raise InvalidValueError(
                f"Attachment: `media_type` {self.media_type!r} is none of "
                f"{', '.join(get_args(MediaType))}."
            )
        for field in ("mime_type", "url"):
            MisuseError.check("Attachment", field, "a text", getattr(self, field), str)
        for field in ("caption", "name"):
            if not isinstance(getattr(self, field), str | None):
                given = getattr(self, field)
                raise MisuseError.of_field("Attachment", field, "a text or None", given)
        if not self.url.startswith(("https:", "data:")):
            raise InvalidValueError(
                f"Attachment: `url` is neither an `https:` address nor a `data:` URL, but "
                f"{shorten(self.url, _SHOWN)}. Of a file on this machine make "
                "`Attachment.from_path(path)`, of its bytes `Attachment.from_bytes(data, "
                "mime_type)`."
            )
        if not (self.size is None or is_whole(self.size)):
            raise MisuseError.of_field("Attachment", "size", "a number or None", self.size)
        for field in ("mime_type", "url", "caption", "name"):
            text = getattr(self, field)
            if text is not None:
                object.__setattr__(self, field, sendable(text))

    @classmethod
    def from_path(
        cls,
        path: str | PathLike[str],
        *,
        mime_type: str | None = None,
        media_type: MediaType | None = None,
        caption: str | None = None,
    ) -> Attachment:
        """Read a file, to be sent with its data.

        Args:
            path: Where it is.
            mime_type: Its type; by default what the ending of its name says.
            media_type: What kind of file it is; by default what its type says.
            caption: A line about it for people and models.

        Raises:
            OSError: The file cannot be read.
            InvalidValueError: The ending of the name says no type.
        """
        file = Path(path)
        # By the name alone: what is in a file may be anything, and a provider refuses a type
        # that does not fit.
        guessed, packed = mimetypes.guess_type(file.name)
        if packed is not None:  # of `log.txt.gz` the text is not what is sent
            guessed = "application/gzip" if packed == "gzip" else f"application/x-{packed}"
        guessed = mime_type or guessed
        if guessed is None:
            raise InvalidValueError(
                f"Attachment: the name {file.name!r} does not say what type the file is of. Say "
                "it, as in `Attachment.from_path(path, mime_type='image/png')`."
            )
        return cls.from_bytes(
            file.read_bytes(), guessed, media_type=media_type, caption=caption, name=file.name
        )

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        mime_type: str,
        *,
        media_type: MediaType | None = None,
        caption: str | None = None,
        name: str | None = None,
    ) -> Attachment:
        """Take the data of a file, to be sent with it.

        Args:
            data: The bytes.
            mime_type: Its type, as in `image/png`.
            media_type: What kind of file it is; by default what its type says.
            caption: A line about it for people and models.
            name: The name of the file.

        Raises:
            MisuseError: The data are not bytes, or the type is not text.

        Example:
            >>> Attachment.from_bytes(b"Hi", "text/plain").url
            'data:text/plain;base64,SGk='
        """
        MisuseError.check("Attachment", "data", "bytes", data, bytes | bytearray | memoryview)
        MisuseError.check("Attachment", "mime_type", "a text", mime_type, str)
        carried = bytes(data)
        text = b64encode(carried).decode("ascii")
        return cls(
            media_type=media_type or cls.media_type_of(mime_type),
            mime_type=mime_type,
            url=f"data:{mime_type};base64,{text}",
            caption=caption,
            size=len(carried),
            name=name,
        )

    @staticmethod
    def media_type_of(mime_type: str) -> MediaType:
        """Return what kind of file a MIME type is of.

        Example:
            >>> Attachment.media_type_of("image/png"), Attachment.media_type_of("application/pdf")
            ('image', 'file')
        """
        kind = mime_type.partition("/")[0].lower()
        return cast("MediaType", kind) if kind in _MEDIA_TYPES else "file"

    @property
    def base64(self) -> str | None:
        """The data of a `data:` URL as base64 text; None for a file at an `https:` address.

        Example:
            >>> Attachment(media_type="file", mime_type="text/plain", url="data:,hi").base64
            'aGk='
        """
        if not self.url.startswith("data:"):
            return None
        # `data:text/plain,a%20b` and `data:text/plain;base64,YSBi` are the same file; wires take
        # base64 only.
        head, _, body = self.url.partition(",")
        if head.endswith(";base64"):
            return body
        return b64encode(unquote_to_bytes(body)).decode("ascii")

    @property
    def data_url(self) -> str | None:
        """The `data:` URL with base64 text; None for a file at an `https:` address."""
        data = self.base64
        return None if data is None else f"data:{self.mime_type};base64,{data}"

    @property
    def described(self) -> str:
        """What it is, in words for a model that does not get to see it."""
        words = [self.caption, self.name, None if self.url.startswith("data:") else self.url]
        said = ", ".join(word for word in words if word)
        return (
            f"[{self.media_type} ({self.mime_type}) that cannot be shown here{said and ': '}{said}]"
        )


def attachments_of(owner: str, given: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Take attachments from whatever gives them.

    Args:
        owner: What has them, for the message.
        given: The attachments.

    Raises:
        MisuseError: They are not a list, or one of them is not an `Attachment`.
    """
    MisuseError.check(owner, "attachments", "a list of `Attachment`s", given, Iterable)
    listed = tuple(given)
    for index, each in enumerate(listed):
        MisuseError.check(owner, f"attachments[{index}]", "an `Attachment`", each, Attachment)
    return listed


def dump_attachments(attachments: tuple[Attachment, ...]) -> JsonObject:
    """Return the entry of a value that stands for its attachments; nothing if there are none."""
    # A name came later than the other fields: texts without one are as they always were.
    listed = [{name: getattr(each, name) for name in _NAMES} for each in attachments]
    for data in listed:
        if data["name"] is None:
            del data["name"]
    return {"attachments": listed} if listed else {}


def load_attachments(saved: Saved) -> tuple[Attachment, ...]:
    """Read what `dump_attachments` gave."""
    return tuple(_load(each) for each in saved.each("attachments", optional=True))


def _load(saved: Saved) -> Attachment:
    fields = saved.some(str, "mime_type", "url") | saved.some(str, "caption", "name", default=None)
    kind, size = saved.member("media_type", MediaType), saved.get("size", int, None)
    try:
        return Attachment(media_type=kind, size=size, **fields)
    except InvalidValueError as error:
        raise saved.wrong("url", str(error)) from None


# The files in what a tool gives: the model is shown them, and not their data as text.


def attachments_in(value: object) -> Iterator[Attachment]:
    """Find the files in an output: it is one, or they are in its fields and elements.

    Example:
        >>> file = Attachment.from_bytes(b"Hi", "text/plain")
        >>> list(attachments_in({"files": [file]})) == [file]
        True
    """
    if isinstance(value, Attachment):
        yield value
        return
    inner: Iterable[object]
    if is_mapping(value):
        inner = value.values()
    elif is_sequence(value) or isinstance(value, set | frozenset):
        inner = cast("Iterable[object]", value)
    elif is_dataclass(value):
        inner = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, BaseModel):
        computed = (getattr(value, name) for name in type(value).model_computed_fields)
        inner = [*value.__dict__.values(), *(value.__pydantic_extra__ or {}).values(), *computed]
    else:
        return
    for each in inner:
        yield from attachments_in(each)


def shown_with(text: str, attached: tuple[Attachment, ...]) -> str:
    """Return what the model reads beside the files of an output: their data are left out.

    Args:
        text: The output as JSON.
        attached: The files in it.

    Example:
        >>> file = Attachment.from_bytes(b"Hi", "text/plain", name="a.txt")
        >>> shown_with('{"at":3}', (file,)), shown_with("[]", (file,))
        ('{"at":3}', '[]')
    """
    words: dict[str, str] = {}
    for number, each in enumerate(attached, 1):
        count = f" {number}" if len(attached) > 1 else ""
        name = f": {each.name}" if each.name else ""
        words.setdefault(each.url, f"[{each.media_type}{count} ({each.mime_type}){name}]")
    value = _worded(parse_json(text), words)
    if isinstance(value, str):
        return value
    if is_sequence(value) and value and all(each in words.values() for each in value):
        return "\n".join(value)
    return compact_json(value)


def _worded(value: object, words: dict[str, str]) -> object:
    if is_object(value):
        if value.keys() == set(_NAMES) and value["url"] in words:
            return words[value["url"]]
        return {key: _worded(item, words) for key, item in value.items()}
    return [_worded(item, words) for item in value] if is_sequence(value) else value


_NAMES: Final = tuple(each.name for each in fields(Attachment))


# Messages.

Role: TypeAlias = Literal["system", "developer", "user"]

_ROLES: tuple[object, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Message:
    """Say something to the model.

    Attributes:
        role: Who says it: `system`, `developer` or `user`.
        text: What is said; half of a surrogate pair, which no client could send, becomes U+FFFD.
        attachments: Files that go with it, if the provider takes them.

    Raises:
        InvalidValueError: The role is none of the three.
        MisuseError: `text` is not text, or an attachment is not an `Attachment`.

    Example:
        >>> Message("user", "Hello").role
        'user'
    """

    role: Role
    text: str
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise InvalidValueError(
                f"A message is said by {', '.join(get_args(Role))}, not by {shorten(self.role)}. "
                "What the model says comes in as a turn."
            )
        if not isinstance(self.text, str):
            raise MisuseError(
                f"A message has a text, not {shorten(self.text)}. Encode data first, for instance "
                "with `json.dumps`."
            )
        # Here and not where it is sent: what is kept, saved and compared is then what every
        # provider gets.
        object.__setattr__(self, "text", sendable(self.text))
        MisuseError.check(
            "Message", "attachments", "a tuple of `Attachment`s", self.attachments, tuple
        )
        attachments_of("Message", self.attachments)


def dump_message(message: Message) -> JsonObject:
    """Return a message as plain data."""
    return {
        "type": "message",
        "role": message.role,
        "text": message.text,
        **dump_attachments(message.attachments),
    }


def load_message(saved: Saved) -> Message:
    """Read what `dump_message` gave."""
    return Message(saved.member("role", Role), saved.get("text", str), load_attachments(saved))


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
    def of_meta(cls, meta: Mapping[str, object] | None, *, believed: bool) -> Labels | None:
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
        words = cast("Mapping[str, object]", said)
        trusted: bool | None = None
        if "integrity" in words:
            trusted = words["integrity"] == "trusted"
        if trusted and not believed:
            trusted = None
        readers: Iterable[str] | None = None
        if "confidentiality" in words and words["confidentiality"] != "public":
            named = words["confidentiality"]
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
    names: list[object] = list(given) if is_many else [None]
    texts = [sendable(name) for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        raise MisuseError.of_field(where, "readers", "a list of texts", given)
    return tuple(sorted({*texts}))


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


def dump_labels(labels: Labels | None) -> JsonObject:
    """Return the entry that a saved result has of its labels; none if it has none."""
    if labels is None:
        return {}
    readers = None if labels.readers is None else list(labels.readers)
    entry: JsonObject = {"trusted": labels.trusted, "readers": readers}
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
