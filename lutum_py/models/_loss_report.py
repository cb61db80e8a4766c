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


def report(losses: Iterable[Loss], known: dict[Loss, None]) -> None:
    """Report each loss that is not known yet, and make it known.

    Example:
        >>> known = {}
        >>> report([Loss("tools.add.properties.a", "maximum is not enforced")], known)
        >>> [str(loss) for loss in known]
        ['tools.add.properties.a: maximum is not enforced']
    """
    for loss in losses:
        if loss in known:
            continue
        known[loss] = None
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
