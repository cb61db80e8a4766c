"""Texts that are saved: open and write them, with an error that names what is wrong, and where.

Example:
    >>> from lutum_py.errors import SavedDataError
    >>> from lutum_py.saved import Form, open_saved
    >>> NOTE = Form("app.note", 1, "note", SavedDataError)
    >>> open_saved('{"format": "app.note", "version": 1, "text": "Hi"}', NOTE).get("text", str)
    'Hi'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._transcript.saved import Form as Form
    from ._transcript.saved import Saved as Saved
    from ._transcript.saved import check_key as check_key
    from ._transcript.saved import dump_saved as dump_saved
    from ._transcript.saved import open_saved as open_saved
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_transcript.saved": (
                "Form",
                "Saved",
                "check_key",
                "dump_saved",
                "open_saved",
            ),
        },
    )
    __all__ = list(exported(__dir__()))
