"""A tool that returns files gives the model the files, and the program the output as it was."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from lutum_py import (
    Attachment,
    Reply,
    ToolMetadata,
    ToolResult,
    Toolset,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import DIALECTS
from lutum_py.errors import InvalidValueError, MisuseError
from tests.cases import over

CAT = Attachment.from_bytes(b"cat", "image/png", name="cat.png")
NOISE = Attachment.from_bytes(b"noise", "audio/wav")
DATA = CAT.url.partition(",")[2]


@dataclass
class Shot:
    at: int
    picture: Attachment


class Album(BaseModel):
    model_config = ConfigDict(extra="allow")
    pictures: tuple[Attachment, ...]


@tool_fn
def one() -> Attachment:
    return CAT


@tool_fn
def many() -> list[Attachment]:
    return [CAT, NOISE]


@tool_fn
def shot() -> Shot:
    return Shot(3, CAT)


@tool_fn
def album() -> Album:
    return Album(pictures=(CAT,), cover=CAT)  # type: ignore[call-arg]


class Framed(BaseModel):
    title: str

    @computed_field
    def picture(self) -> Attachment:
        return CAT


class Titled(BaseModel):
    title: str


class Signed(Titled):
    signature: Attachment = NOISE


class Negative(BaseModel):
    picture: Attachment = CAT
    raw: Attachment = Field(default=NOISE, exclude=True)
    frame: Titled


@tool_fn
def framed() -> Framed:
    return Framed(title="Cat")


@tool_fn
def kept_back() -> Negative:
    return Negative(frame=Signed(title="Cat"))


@tool_fn
def anything() -> Any:
    return {"pictures": [CAT], "note": "two"}


@tool_fn
def any_order() -> frozenset[Attachment]:
    return frozenset({CAT})


@tool_fn
def described() -> Reply[Attachment]:
    return Reply(CAT, message="My cat.", attachments=[CAT])


@tool_fn
def blurred() -> Reply[Attachment]:
    return Reply(CAT, status="error")


@tool_fn
def none() -> list[Attachment]:
    return []


@tool_fn
def told() -> dict[str, str]:
    return {"mime_type": "image/png"}


class Camera(Toolset):
    one = tool(one)
    many = tool(many)
    shot = tool(shot)
    album = tool(album)
    framed = tool(framed)
    kept_back = tool(kept_back)
    anything = tool(anything)
    any_order = tool(any_order)
    described = tool(described)
    blurred = tool(blurred)
    none = tool(none)
    told = tool(told)


def taken(name: str) -> ToolResult:
    call = Camera.parse_tool_call(ToolMetadata(id="c1", name=name, arguments="{}"))
    assert not isinstance(call, Exception)
    return call.call_sync()


@over(
    "name, read, files",
    [
        ("one", "[image (image/png): cat.png]", (CAT,)),
        ("many", "[image 1 (image/png): cat.png]\n[audio 2 (audio/wav)]", (CAT, NOISE)),
        ("shot", '{"at":3,"picture":"[image (image/png): cat.png]"}', (CAT,)),
        (
            "album",
            '{"pictures":["[image (image/png): cat.png]"],"cover":"[image (image/png): cat.png]"}',
            (CAT,),
        ),
        ("framed", '{"title":"Cat","picture":"[image (image/png): cat.png]"}', (CAT,)),
        (
            "kept_back",
            '{"picture":"[image (image/png): cat.png]","frame":{"title":"Cat"}}',
            (CAT,),
        ),
        ("anything", '{"pictures":["[image (image/png): cat.png]"],"note":"two"}', (CAT,)),
        ("any_order", "[image (image/png): cat.png]", (CAT,)),
        ("described", "My cat.", (CAT,)),
        ("blurred", "[image (image/png): cat.png]", (CAT,)),
        ("none", "[]", ()),
        ("told", '{"mime_type":"image/png"}', ()),
    ],
)
def test_the_model_gets_the_file_and_not_its_data(
    name: str, read: str, files: tuple[Attachment, ...]
) -> None:
    """Wherever a file stands in an output, it goes with the result, and words stand in the text.
    What is not written of an output is not shown.
    """
    result = taken(name)
    assert (result.model_text, result.attachments) == (read, files)
    assert DATA not in result.model_text
    assert (DATA in result.result) == bool(files)
    assert result.is_error == (name == "blurred")


@over("name", DIALECTS)
def test_every_dialect_shows_the_picture_or_names_it(name: str) -> None:
    """The picture is sent as one; where results have none, its name is, and a loss says so."""
    dialect = import_module(DIALECTS[name])
    body = dialect.encode_request(TurnRequest(items=[taken("one")]))
    text = str(body)
    assert text.count(DATA) == (name != "openai_chat")
    assert "cat.png" in text
    assert [str(loss) for loss in body.losses] == (
        ["items[0].attachments[0]: a tool result takes no image in openai_chat"]
        if name == "openai_chat"
        else []
    )
    if name == "openai_chat":
        assert body["messages"][0]["content"].endswith(
            "[image (image/png) that cannot be shown here: cat.png]"
        )


def test_a_file_is_taken_by_path_and_by_bytes(tmp_path: Path) -> None:
    """A file on disk becomes its data, its type and its name; whatever is given wins."""
    path = tmp_path / "cat.png"
    path.write_bytes(b"cat")
    assert Attachment.from_path(path) == CAT
    assert Attachment.from_path(str(path), caption="A cat").caption == "A cat"
    odd = Attachment.from_path(path, mime_type="application/x-cat", media_type="image")
    assert (odd.mime_type, odd.media_type, odd.size) == ("application/x-cat", "image", 3)
    for data in (bytearray(b"cat"), memoryview(b"cat")):
        assert Attachment.from_bytes(data, "image/png", name="cat.png") == CAT
    with pytest.raises(OSError, match="gone"):
        Attachment.from_path(tmp_path / "gone.png")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.txt", "text/plain"), ("a.csv.gz", "application/gzip"), ("a.txt.xz", "application/x-xz")],
)
def test_a_packed_file_is_of_the_type_of_its_pack(tmp_path: Path, name: str, kind: str) -> None:
    """What is sent is the packed file, not what was put into it."""
    (tmp_path / name).write_bytes(b"packed")
    made = Attachment.from_path(tmp_path / name)
    assert (made.mime_type, made.media_type) == (kind, "file")


def test_a_file_of_no_known_type_asks_for_it(tmp_path: Path) -> None:
    """What a name does not say, the program has to; what is no data is told."""
    with pytest.raises(InvalidValueError, match=r"'cat' does not say what type .* mime_type='"):
        Attachment.from_path(tmp_path / "cat")
    given: Any = "cat"
    with pytest.raises(MisuseError, match="Attachment takes bytes for `data`"):
        Attachment.from_bytes(given, "image/png")
    with pytest.raises(MisuseError, match="Attachment takes a text for `mime_type`"):
        Attachment.from_bytes(b"cat", None)  # type: ignore[arg-type]


@over(
    "url",
    ["cat.png", "/pictures/cat.png", "file:///cat.png", "http://e.org/cat.png", "gs://b/c", ""],
)
def test_an_address_that_no_provider_opens_is_refused(url: str) -> None:
    """A path is no address: the refusal names the lines that make an attachment of a file."""
    with pytest.raises(InvalidValueError) as caught:
        Attachment(media_type="image", mime_type="image/png", url=url)
    assert repr(url) in str(caught.value)
    for remedy in ("Attachment.from_path(path)", "Attachment.from_bytes(data, mime_type)"):
        assert remedy in str(caught.value)


def test_what_is_described_says_where_the_file_is() -> None:
    """In words a file has its caption, its name, and its address where it has one."""
    far = Attachment(
        media_type="file",
        mime_type="application/pdf",
        url="https://e.org/a.pdf",
        caption="The bill",
        name="bill.pdf",
    )
    assert far.described == (
        "[file (application/pdf) that cannot be shown here: The bill, bill.pdf, https://e.org/a.pdf]"
    )
    assert NOISE.described == "[audio (audio/wav) that cannot be shown here]"


@over(
    "url, data",
    [
        ("data:text/plain,a%20b", "YSBi"),
        ("data:text/plain;base64,YSBi", "YSBi"),
        ("https://e.org/a.txt", None),
    ],
)
def test_a_file_knows_its_data(url: str, data: str | None) -> None:
    """The data of a `data:` URL are base64, however it was written; an address has none."""
    made = Attachment(media_type="file", mime_type="text/plain", url=url)
    assert made.base64 == data
    assert made.data_url == (None if data is None else f"data:text/plain;base64,{data}")
