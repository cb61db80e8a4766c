"""Watch one run of a loop: give it the turns of a script, and stop it where it breaks a rule."""

from __future__ import annotations

import asyncio
import inspect
import sysconfig
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from ..._text.json import cut
from ..._transcript.assistant import AssistantTurn
from ..._transcript.request import TurnRequest
from ...errors import DialectError, MisuseError
from .._scripted_client import ScriptedClient, ScriptedResponse
from .._scripted_model import ScriptedModel
from .._transcript_valid import Dialect
from .report import FaultKind, LoopFault

_PATIENCE: Final = 10
"""So many times more is a loop given the final answer before it counts as endless."""

_NOT_THE_USERS = (Path(__file__).parents[2], *map(Path, sysconfig.get_paths().values()))
_KINDS: Mapping[str, FaultKind] = {
    "call_without_result": "lost_call",
    "duplicate_result": "answered_twice",
}


class Stopped(BaseException):
    """Ends a loop from inside of the model; no `except Exception` of the loop holds it up."""


class Referee:
    """Keep what a loop was given and what it did wrong.

    Args:
        script: The turns; the last, the final answer, is given for every request after them.
        may_raise: What the loop may let out.

    Attributes:
        script: The turns.
        given: The turns that the loop got, as it could read them.
        faults: What it did wrong so far.
        let_out: The exception of `may_raise` that ended the loop, if one did.
        is_stopped: Whether the loop was stopped before its own end.
    """

    def __init__(
        self, script: Sequence[AssistantTurn], may_raise: tuple[type[Exception], ...]
    ) -> None:
        self.script = script
        self._may_raise = may_raise
        self._asked = 0
        self.given: list[AssistantTurn] = []
        self.faults: list[LoopFault] = []
        self.let_out: BaseException | None = None
        self.is_stopped = False

    def next(self, _: object) -> AssistantTurn:
        """Return the next turn of the script."""
        self._asked += 1
        if self._asked > len(self.script) + _PATIENCE:
            text = (
                f"The loop does not end: it asked {_PATIENCE} times more after the model had given "
                "its final answer. Leave the loop when a turn is `Finished`. Where that takes an "
                "answer of a type, pass the turn that gives it as `final=`."
            )
            self.stop(LoopFault("endless", text))
        return self.script[min(self._asked, len(self.script)) - 1]

    def stop(self, *faults: LoopFault) -> NoReturn:
        """End the loop."""
        self.faults += faults
        self.is_stopped = True
        raise Stopped

    @property
    def asked(self) -> str:
        """Which request of the loop this is."""
        return f"request {self._asked + 1}"

    def run(self, call: Callable[[], object]) -> None:
        """Run the loop to its end, an async one in an event loop of its own.

        Raises:
            MisuseError: The loop is async, and an event loop runs here already.
        """
        # `Stopped` is raised in the model, on the loop's own stack: that ends a loop which nobody
        # could stop from outside, and lets its `finally` blocks run.
        outcome: object = None
        try:
            outcome = call()
            if inspect.isawaitable(outcome) and not _is_inside_event_loop():
                asyncio.run(_awaited(outcome))
        except BaseException as error:
            if not self.is_stopped:
                # What else is no `Exception` ends the check: an interrupt, or what pytest raises.
                if not isinstance(error, Exception | SystemExit | asyncio.CancelledError):
                    raise
                self._ended_by(error)
        if inspect.isawaitable(outcome) and _is_inside_event_loop():
            raise _never_run(outcome)
        if not (self._asked or self.faults):
            text = "The loop never asked the model, so nothing was tried. Is it the right function?"
            if inspect.isgenerator(outcome) or inspect.isasyncgen(outcome):
                text += " It gave a generator, which nobody ran: pass a function that runs it."
            self.faults.append(LoopFault("never_asked", text))

    def _ended_by(self, error: BaseException) -> None:
        if all(isinstance(one, self._may_raise) for one in _single(error)):
            self.let_out = error
            return
        when = f"After turn {self._asked}"
        remedy = "Whatever the model sends, answer each call with a result."
        if isinstance(error, Exception):
            remedy = f"{remedy[:-1]}; what the loop may let out is said with `may_raise`."
        if not self._asked:  # the model had no part in it
            when = "Before its first request"
            remedy = (
                "A loop is given a session and a model, or with `dialect=` a list of messages and "
                "a client."
            )
        text = (
            f"{when} the loop let {type(error).__name__} out{_place_of(error)}: "
            f"{cut(str(error), 300).rstrip('.')}. {remedy}"
        )
        self.faults.append(LoopFault("raised", text))


def _is_inside_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _never_run(outcome: Awaitable[object]) -> MisuseError:
    if inspect.iscoroutine(outcome):
        outcome.close()
    return MisuseError(
        "The loop is async, and an event loop runs here already. Call `check_loop` from a sync "
        "test: it runs the loop by itself."
    )


async def _awaited(outcome: Awaitable[object]) -> None:
    await outcome


def _single(error: BaseException) -> Iterator[BaseException]:
    """Take groups of exceptions apart, as task groups raise them."""
    if not isinstance(error, ExceptionGroup):
        yield error
        return
    for inner in cast("ExceptionGroup[Exception]", error).exceptions:
        yield from _single(inner)


def _place_of(error: BaseException) -> str:
    """Say where in the user's code an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    # The last frame of the user's: an exception mostly comes out of a library that the loop called
    # wrongly, and the line to fix is the one that called it.
    own = [
        frame
        for frame in frames
        if not any(Path(frame.filename).is_relative_to(place) for place in _NOT_THE_USERS)
    ]
    last = own[-1] if own else frames[-1]
    return f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


def fault_of(where: str, problem: object) -> LoopFault:
    """Make a fault of a violation that a dialect found, or of a text."""
    kind = _KINDS.get(getattr(problem, "rule", ""), "invalid_transcript")
    return LoopFault(kind, f"{where} is invalid: {problem}")


class JudgedModel(ScriptedModel):
    """Give a loop its turns, and look at each of its requests first."""

    def __init__(self, referee: Referee) -> None:
        super().__init__(referee.next)
        self._referee = referee

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Answer a request, or stop the loop."""
        referee = self._referee
        asked = referee.asked
        try:
            turn = super().respond_sync(request)
        except DialectError as error:
            referee.stop(LoopFault("invalid_request", f"In {asked}: {error}"))
        referee.given.append(turn)
        return turn


class JudgedClient(ScriptedClient):
    """The same for a loop over a provider's own messages."""

    def __init__(self, referee: Referee, dialect: Dialect) -> None:
        super().__init__(referee.next, dialect, check=False)
        self._referee = referee

    def _answer(self, body: dict[str, Any]) -> ScriptedResponse:
        referee = self._referee
        where = referee.asked.capitalize()
        if self._key not in body:
            text = f"{where} has no {self._key!r}, so there is nothing to answer."
            referee.stop(LoopFault("invalid_request", text))
        violations = self._dialect.check(body)
        if violations:
            referee.stop(*[fault_of(where, violation) for violation in violations])
        response = super()._answer(body)
        referee.given.append(self._dialect.decode(response))
        return response
