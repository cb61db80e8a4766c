"""What a model is asked to do with the tools on offer."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from .._text.immutable import dataclass
from .._text.json import shorten
from ..errors import InvalidValueError

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none", "specific"]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Say what the model is asked to do with the tools on offer.

    Attributes:
        mode: `auto`, `required` (at least one call), `none` or `specific`.
        name: The wire name of the tool, for `specific`.
    """

    mode: ToolChoiceMode = "auto"
    name: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(ToolChoiceMode):
            raise InvalidValueError(
                f"ToolChoice: mode {shorten(self.mode)} is none of "
                f"{', '.join(get_args(ToolChoiceMode))}."
            )
        if (self.mode == "specific") is not isinstance(self.name, str):
            raise InvalidValueError(
                "ToolChoice names a tool where its mode is 'specific', and nowhere else: got mode "
                f"{self.mode!r} and name {shorten(self.name)}."
            )


AUTO = ToolChoice("auto")
REQUIRED = ToolChoice("required")
NONE = ToolChoice("none")
