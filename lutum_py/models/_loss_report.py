"""Tell the user what a request could not carry, once for each loss.

A loss of what was said is a warning, because the model answers without it. A rule of a schema that
the provider does not enforce is only noted, because the library checks it where a call is decoded.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterable
from typing import Final

from .._text.escaping import visible
from ..dialects._wire.losses import Loss

_LOG: Final = logging.getLogger("lutum.models")
_OF_SCHEMAS: Final = "tools."
_PACKAGE: Final = __name__.partition(".")[0]


class LossWarning(UserWarning):
    """The model does not see, or is not asked for, a part of what the request says."""


class LossReport:
    """Remember the losses of one model's requests, and report each when it is first met.

    Example:
        >>> report = LossReport()
        >>> report.add([Loss("tools.add.properties.a", "maximum is not enforced")])
        >>> [str(loss) for loss in report.losses]
        ['tools.add.properties.a: maximum is not enforced']
    """

    def __init__(self) -> None:
        self._losses: dict[Loss, None] = {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Every loss so far, in the order in which they were met."""
        return tuple(self._losses)

    def add(self, losses: Iterable[Loss]) -> None:
        """Report those that are new."""
        for loss in losses:
            if loss in self._losses:
                continue
            self._losses[loss] = None
            if loss.where.startswith(_OF_SCHEMAS):
                _LOG.info("%s", visible(str(loss)))
            else:
                warnings.warn(visible(str(loss)), LossWarning, stacklevel=_level_of_the_user())


def _level_of_the_user() -> int:
    """Count the frames from whoever asks to the line outside of this package that led here."""
    # A fixed `stacklevel` would name a line in here: how many frames lie between depends on whether
    # the turn was collected, streamed, or run by a session.
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{_PACKAGE}."):
        frame, level = frame.f_back, level + 1
    return level
