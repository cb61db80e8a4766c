"""Read saved texts as they are: what one holds, and what is wrong with it, without its tools.

A program loads what it saved by `Transcript.load_json`, `Toolset.load_plan` or
`Toolset.load_session`, which refuse whatever is damaged. What is here is for those who look at such
a text, or fix it.

Example:
    >>> from lutum_py import Session, Toolset
    >>> from lutum_py.saved import SESSION, open_saved, seal_in_words
    >>> session = Session(id="s1")
    >>> session.push_user("Hello")
    >>> saved = open_saved(Toolset.dump_session(session), SESSION)
    >>> saved.get("id", str), len(saved.inner("transcript").data["items"])
    ('s1', 1)
    >>> print(seal_in_words(saved))
    The text fits the digest that this session was saved with. ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._round.display import SavedPlan as SavedPlan
    from ._round.display import read_plan as read_plan
    from ._round.display import read_stored_round as read_stored_round
    from ._text.display import Entry as Entry
    from ._text.display import Listing as Listing
    from ._text.display import Part as Part
    from ._transcript.display import whole_entry as whole_entry
    from ._transcript.saved import PLAN as PLAN
    from ._transcript.saved import SESSION as SESSION
    from ._transcript.saved import TRANSCRIPT as TRANSCRIPT
    from ._transcript.saved import Form as Form
    from ._transcript.saved import Saved as Saved
    from ._transcript.saved import check_key as check_key
    from ._transcript.saved import dump_saved as dump_saved
    from ._transcript.saved import open_saved as open_saved
    from ._transcript.saved import seal_in_words as seal_in_words
    from ._transcript.transcript_json import examine as examine
    from ._transcript.transcript_json import repair as repair
else:
    # Each on demand: who opens a transcript loads no rounds.
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_round.display": ("SavedPlan", "read_plan", "read_stored_round"),
            "_text.display": ("Entry", "Listing", "Part"),
            "_transcript.display": ("whole_entry",),
            "_transcript.saved": (
                *("PLAN", "SESSION", "TRANSCRIPT", "Form", "Saved", "check_key", "dump_saved"),
                *("open_saved", "seal_in_words"),
            ),
            "_transcript.transcript_json": ("examine", "repair"),
        },
    )
    __all__ = list(exported(__dir__()))
