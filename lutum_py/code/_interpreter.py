"""Run a program up to the calls that it waits for, and on from there.

Monty runs it in a process of its own, one of a pool that all programs share. If it waits for
calls, the interpreter is kept as bytes, or is thrown away: then the program is run again from its
first line, on the outcomes of its calls. It sees the same clock and chance then, so that it does
the same again; if it does not, it is stopped before anything is requested.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import pydantic_monty as monty

from .._text.json import compact_json, cut, short_digest_of
from .._text.on_demand import ONCE
from ..errors import MisuseError
from ._limits import (
    ProgramChanged,
    ProgramError,
    ProgramLimit,
    ProgramLimits,
    UnreadProgram,
    failure,
    with_printed,
)
from ._source import DOOR, VALUE, VET, WAITING, call_in, keeping_value, prelude, value_in

Answer: TypeAlias = "monty.ExternalSettledResult"
"""What a call in a program gives: a value, or an exception."""

InnerCall: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a tool, and arguments."""

_OTHER_STOPS: Final = 1000
"""How often a program may turn to its host for something else than a call, such as a file."""


@dataclass(frozen=True, slots=True)
class Asks:
    """A program that waits.

    Attributes:
        calls: What it waits for, in the order in which it made the calls.
        state: What it goes on with: bytes with the interpreter, a text without.
    """

    calls: list[InnerCall]
    state: bytes | str


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that is done.

    Attributes:
        output: The value of its last expression, as JSON data.
        printed: What it printed.
    """

    output: Any
    printed: str


# A program that waits for its first call: `_Story("2026-01-01T12:00:00+00:00", ("9f1c…",), 1)`.
# With the clock and the seed of chance it is enough to run the program again to the same place.
@dataclass(frozen=True, slots=True)
class _Story:
    """What is kept of a program beside its interpreter.

    Attributes:
        at: When it began.
        asked: A digest of what it requested, of each time.
        calls: How many calls it made.
        printed: What it printed.
        has_value: Whether it ends with an expression.
        version: That of the interpreter.
    """

    at: str
    asked: Sequence[str] = ()
    calls: int = 0
    printed: str = ""
    has_value: bool = False
    version: str = monty.__version__


def _story_in(kept: str, rounds: int) -> _Story:
    """Read what was kept of a program that requested calls so often.

    Raises:
        ProgramChanged: It is damaged.
    """
    try:
        story = _Story(**json.loads(kept))
        datetime.fromisoformat(story.at)
        if [type(each) for each in story.asked] != [str] * rounds:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise ProgramChanged(
            "What was kept of the program while it waited is damaged, so it cannot go on, and "
            "nothing was run. What its calls did is done. Write a program that goes on from there."
        ) from None
    return story


@dataclass(frozen=True, slots=True)
class Program:
    """A program, before it runs.

    Attributes:
        code: Its source.
        tools: The names of the tools that it may call, each with the names of its parameters.
        seed: What chance goes by.
        limits: How much it may use.
        keep: Whether the interpreter is kept while the program waits.
    """

    code: str
    tools: Mapping[str, Sequence[str]]
    seed: str
    limits: ProgramLimits
    keep: Literal["state", "replay"]

    def begin(self) -> Asks | Ended:
        """Run it from its first line.

        Raises:
            ProgramError: It could not be read, failed, or used more than it may.
        """
        return self._run(_Story(datetime.now(UTC).isoformat()))

    def go_on(self, state: bytes | str, rounds: Sequence[Sequence[Answer]]) -> Asks | Ended:
        """Run it on from where it waits.

        Args:
            state: What it was left with, unchanged: whoever kept it vouches for that.
            rounds: The outcomes of its calls, of each time that it requested some.

        Raises:
            ProgramError: It failed, used more than it may, or did not do again what it had done.
        """
        if isinstance(state, str):
            kept, interpreter = state, b""
        else:
            told, _, interpreter = state.partition(b"\n")
            kept = told.decode(errors="replace")
        story = _story_in(kept, len(rounds))
        # Bytes of another version may not be read. Then the program is run again, as if none had
        # been kept.
        if interpreter and story.version == monty.__version__:
            return self._run(story, rounds[-1:], interpreter)
        return self._run(_Story(story.at, story.asked), rounds)

    def _run(
        self,
        story: _Story,
        rounds: Sequence[Sequence[Answer]] = (),
        interpreter: bytes | None = None,
    ) -> Asks | Ended:
        run = _Run(self, story)
        try:
            with run.session:
                snapshot = run.until_it_waits(run.started(interpreter))
                # An interpreter that was kept needs the last answers alone, a program that is run
                # again all of them; `number` counts from the first time that it asked in both
                # cases.
                for number, answers in enumerate(rounds, len(story.asked) - len(rounds)):
                    snapshot = run.until_it_waits(run.answered(snapshot, number, answers))
                if isinstance(snapshot, monty.FutureSnapshot):
                    return run.asks(snapshot)
                return run.ended()
        except monty.MontyError as error:
            raise with_printed(failure(error), run.printed) from None
        except ProgramError as error:
            raise with_printed(error, run.printed) from None


@dataclass(slots=True)
class _Run:
    """A program in one interpreter."""

    program: Program
    story: _Story
    made: dict[int, InnerCall] = field(default_factory=dict[int, InnerCall])
    """The calls that it made and does not yet wait for, by the interpreter's numbers."""
    session: monty.MontySession = field(init=False)
    _output: monty.CollectString = field(init=False)

    def __post_init__(self) -> None:
        limits = self.program.limits
        self._output = monty.CollectString(limits.printed - len(self.story.printed.encode()))
        self.session = _interpreters().checkout(
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory,
                "max_suspensions": 2 * limits.calls + _OTHER_STOPS,
            },
            os_policy={
                "datetime": datetime.fromisoformat(self.story.at),
                "sleep": "zero",
                "random_start": {"seed": self.program.seed},
            },
        )

    @property
    def printed(self) -> str:
        """What the program has printed so far, in all."""
        return self.story.printed + self._output.output

    def started(self, interpreter: bytes | None) -> monty.SyncSnapshot:
        """Start at the first line, or where an interpreter waited."""
        if interpreter is not None:
            return self.session.load_snapshot(interpreter, print_callback=self._output)
        code = keeping = self.program.code.removeprefix("\ufeff")  # a mark of files, and no text
        unread = None
        self._feed(prelude(self.program.tools))
        try:
            keeping = keeping_value(code)
            # The interpreter itself says whether the program ends with an expression: a line before
            # it raises as soon as all of it was read, so nothing of it runs. A syntax error means
            # that it does not.
            self._feed(VET + keeping)
        except UnreadProgram as error:
            unread = error
            self._feed("0")  # so that the program is the third input, as ever
        except monty.MontySyntaxError:
            pass  # it ends with no expression, or is not a program in any case
        except monty.MontyRuntimeError:
            code = keeping
            self.story = replace(self.story, has_value=True)
        started = self.session.feed_start(code, print_callback=self._output)
        if unread is not None:
            raise unread
        return started

    def _feed(self, code: str) -> Any:
        """Run a line of ours: it calls nothing."""
        return self.session.feed_run(code, print_callback=self._output)

    def until_it_waits(self, snapshot: monty.SyncSnapshot) -> _Stop:
        """Run until it waits for calls, or ends."""
        while True:
            match snapshot:
                case monty.FutureSnapshot() | monty.MontyComplete():
                    return snapshot
                case monty.NameLookupSnapshot():
                    snapshot = snapshot.resume()
                case monty.FunctionSnapshot(is_os_function=True):
                    snapshot = snapshot.resume_not_handled()
                case _:
                    snapshot = snapshot.resume(self._called(snapshot))

    def _called(self, snapshot: monty.FunctionSnapshot) -> monty.ExternalResult:
        """Take note of a call; it starts where the program waits."""
        if snapshot.function_name != DOOR or snapshot.position.filename != _PRELUDE:
            # What it is called with is not looked at: it may be of any size.
            name = cut(snapshot.function_name, 80)
            return {"exc_type": "NameError", "message": f"name '{name}' is not defined"}
        try:
            call = call_in(snapshot.args[0], self.program.tools)
        except TypeError as error:
            return {"exc_type": "TypeError", "message": str(error)}
        most = self.program.limits.calls
        if self.story.calls == most:
            raise ProgramLimit(f"The program made more than {most} calls.")
        self.story = replace(self.story, calls=self.story.calls + 1)
        self.made[snapshot.call_id] = call
        # A call is not made here: it waits for the others that the program makes before it awaits
        # one.
        return {"future": ...}

    def answered(
        self, snapshot: _Stop, number: int, answers: Sequence[Answer]
    ) -> monty.SyncSnapshot:
        """Give it the outcomes of its calls.

        Raises:
            ProgramChanged: It does not wait for what it had requested.
        """
        if not isinstance(snapshot, monty.FutureSnapshot):
            raise _changed("ended")
        # An interpreter that was kept made its calls before.
        if self.made and self._digest() != self.story.asked[number]:
            raise _changed("requested something else")
        self.made = {}
        # By number, which is the order in which they were made, and in which `asks` gave them out.
        ids = sorted(snapshot.pending_call_ids)
        return snapshot.resume(dict(zip(ids, answers, strict=True)))

    def asks(self, snapshot: monty.FutureSnapshot) -> Asks:
        """Leave it where it waits."""
        story = replace(self.story, asked=(*self.story.asked, self._digest()), printed=self.printed)
        is_kept = self.program.keep == "state"
        told = compact_json(
            {name: getattr(story, name) for name in _Story.__slots__}
            if is_kept
            else {"at": story.at, "asked": story.asked}
        )
        state = b"%b\n%b" % (told.encode(), snapshot.dump()) if is_kept else told
        return Asks(list(self.made.values()), state)

    def ended(self) -> Ended:
        """Return its outcome.

        Raises:
            ProgramError: It never awaited a call, or its value is not JSON data.
        """
        if waiting := value_in(self._feed(WAITING)):
            name = cut(waiting[0], 80)
            raise ProgramError(
                f"The program ended, and never awaited a call of `{name}`, which therefore was not "
                f"made. Write `await {name}(...)`."
            )
        try:
            output = value_in(self._feed(VALUE)) if self.story.has_value else None
        except (TypeError, monty.MontyError) as error:
            made = failure(error) if isinstance(error, monty.MontyError) else ProgramError()
            raise type(made)(
                f"The value of the last expression cannot be given: {cut(str(error), 200)}. End "
                "the program with texts, finite numbers, booleans, None, or lists and dicts of "
                "them."
            ) from None
        return Ended(output, self.printed)

    def _digest(self) -> str:
        return short_digest_of(compact_json(list(self.made.values())))


_Stop: TypeAlias = "monty.FutureSnapshot | monty.MontyComplete"


def _changed(what: str) -> ProgramChanged:
    return ProgramChanged(
        f"The program was run again, and {what} where it had requested other calls. These are "
        "done. Write a program that goes on from their outcomes."
    )


_PRELUDE: Final = "<python-input-0>"
"""What the interpreter calls the first that it is given."""


# To start a process takes longer than most programs run, so all of this process share one pool.
# Each program still has an interpreter of its own.
@cache
def _pool() -> tuple[int, monty.Monty]:
    """Start the interpreters of this process."""
    return os.getpid(), monty.Monty().__enter__()


def _interpreters() -> monty.Monty:
    """Return the interpreters of this process.

    Raises:
        MisuseError: It is the fork of one that ran programs: the threads that serve them are gone.
    """
    with ONCE:
        process, pool = _pool()
    if process != os.getpid():
        raise MisuseError(
            "This process was forked from one that had run programs, so it cannot run any. Start "
            "it by `spawn`, or fork before the first program runs."
        )
    return pool
