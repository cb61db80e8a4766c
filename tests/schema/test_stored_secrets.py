"""The laws of secrets in inputs that are stored: each comes back as it was, or is not stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    RootModel,
    SecretBytes,
    SecretStr,
    model_serializer,
)
from pydantic_core import PydanticSerializationError

from tests.private import Arguments


class Frozen(BaseModel):
    """What may stand in a set."""

    model_config = ConfigDict(frozen=True)

    name: str
    key: SecretStr


class Vault(BaseModel):
    """Secrets in every place that JSON has a form for."""

    model_config = ConfigDict(extra="allow")

    renamed: SecretStr = Field(alias="Renamed")
    kept: frozenset[Frozen]
    by_name: dict[str, SecretStr]
    by_number: dict[int, SecretStr]
    wrapped: RootModel[list[SecretStr]]
    later: float = float("inf")


def test_a_secret_comes_back_from_wherever_it_stands() -> None:
    """Aliases, models in sets, mappings, root models: each secret is written where it belongs."""
    sent = {
        "Renamed": "r",
        "kept": [{"name": "b", "key": "kb"}, {"name": "a", "key": "ka"}],
        "by_name": {"x": "1", "y": "2"},
        "by_number": {"1": "one"},
        "wrapped": ["w"],
    }
    arguments = Arguments(Vault)
    vault = arguments.validate_json(json.dumps(sent))
    data = arguments.to_data(vault)
    again = arguments.read(arguments.whole(vault))
    assert again == vault
    assert {each.name: each.key.get_secret_value() for each in again.kept} == {"a": "ka", "b": "kb"}
    assert again.by_name["y"].get_secret_value() == "2"
    assert again.wrapped.root[0].get_secret_value() == "w"
    assert arguments.to_data(arguments.validate_json(json.dumps(sent))) == data


@dataclass
class Own:
    """A secret that its author writes in a way of his own, and a field that he leaves out."""

    key: Annotated[
        SecretStr,
        PlainSerializer(lambda key: "enc:" + key.get_secret_value()[::-1], when_used="json"),
        BeforeValidator(lambda text: str(text).removeprefix("enc:")),
    ]
    words: Annotated[
        set[str],
        PlainSerializer(lambda words: ",".join(sorted(words)), when_used="json"),
        BeforeValidator(lambda words: words.split(",") if isinstance(words, str) else words),
    ]


class Shuffled(BaseModel):
    """A model that writes its fields in another order, and one of them not at all."""

    left_out: int = 1
    first: SecretStr
    second: SecretStr

    @model_serializer(mode="wrap")
    def turned(self, written: Any, info: Any) -> Any:
        """Turn the fields around."""
        whole = written(self)
        return {name: whole[name] for name in ("second", "first")} if info.mode == "json" else whole


def test_what_the_author_writes_in_his_own_way_is_left_alone() -> None:
    """A serializer of the author decides what is stored; names and values are never mixed up."""
    own = Arguments(Own)
    data = own.to_data(own.validate_json('{"key": "abc", "words": ["b", "a"]}'))
    assert data == {"key": "enc:cba", "words": "a,b"}
    shuffled = Arguments(Shuffled)
    data = shuffled.to_data(shuffled.validate_json('{"first": "1", "second": "2"}'))
    assert data == {"second": "2", "first": "1"}


class Code(BaseModel):
    """A model that is written as a text."""

    key: SecretStr

    @model_serializer
    def text(self) -> str:
        """Write it as stars."""
        return str(self.key)


class Hidden(BaseModel):
    """Secrets in places from which JSON does not bring them back."""

    keys: dict[SecretStr, int] = {}
    text: Json[dict[str, SecretStr]] = {}
    raw: SecretBytes = SecretBytes(b"")
    odd: dict[Frozen, int] = {}
    code: Code | None = None
    loud: Annotated[
        dict[str, SecretStr],
        PlainSerializer(lambda named: {name.upper(): "*" for name in named}),
    ] = {}


@pytest.mark.parametrize(
    "hidden",
    [
        Hidden(keys={SecretStr("p"): 1}),
        Hidden.model_construct(text={"a": SecretStr("p")}),
        Hidden(raw=SecretBytes(b"\xff")),
        Hidden.model_construct(odd={Frozen(name="a", key=SecretStr("k")): 1}),
        Hidden(code=Code(key=SecretStr("k"))),
        Hidden(loud={"a": SecretStr("k")}),
    ],
    ids=["keys", "json text", "raw bytes", "models as keys", "a model as text", "other keys"],
)
def test_a_secret_that_cannot_be_stored_is_an_error(hidden: Hidden) -> None:
    """Where the value would be lost, saving fails and says so: stars are never saved."""
    with pytest.raises(PydanticSerializationError, match="cannot be read back"):
        Arguments(Hidden).to_data(hidden)
