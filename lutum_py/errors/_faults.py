"""Why results do not answer a round: each fault says which call it is about, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CommitFault:
    """One reason why results do not answer a round.

    Attributes:
        id: The call id that the fault is about.
        name: The wire name of the tool.
    """

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class MissingResult(CommitFault):
    """A call has no result.

    Attributes:
        is_in_doubt: Whether it was started before the plan was saved, and may have been run.
        nested: The calls without a result that it requested, if it waits for these.
        is_running: Whether it was started since, and so cannot be run: its tool raised, was cut
            off, or is at work.
    """

    is_in_doubt: bool = False
    nested: tuple[str, ...] = ()
    is_running: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if self.nested:
            return (
                f"call {self.id!r} of tool {self.name!r} requested calls that have no result: "
                f"{', '.join(self.nested)}. Decide about these and run them, as `await "
                "run(plan, hooks=hooks)` does, or close the round with "
                "`plan.abort(session, reason)`"
            )
        if self.is_in_doubt:
            return (
                f"call {self.id!r} of tool {self.name!r} was started before the plan was "
                "saved, and nobody knows the outcome. Find out and record its result, say so with "
                "`plan.record(call.indeterminate(reason))`, or close the round with "
                "`plan.abort(session, reason)`"
            )
        if self.is_running:
            return (
                f"call {self.id!r} of tool {self.name!r} was started, and has no result: its tool "
                "raised, was cut off, or still runs. Pass `call.fail(message)`, or "
                "`call.indeterminate(reason)` if nobody knows what it did, or close the round with "
                "`plan.abort(session, reason)`"
            )
        return (
            f"call {self.id!r} of tool {self.name!r} has no result. Run it or "
            "pass its result, or close the round with `plan.abort(session, reason)`"
        )


@dataclass(frozen=True, slots=True)
class DuplicateResult(CommitFault):
    """A call has more than one result."""

    def __str__(self) -> str:
        return (
            f"call {self.id!r} of tool {self.name!r} has more than one result. "
            "Pass exactly one for each call"
        )


@dataclass(frozen=True, slots=True)
class ExtraResult(CommitFault):
    """A result answers no open call of the round.

    Attributes:
        open_ids: The ids that still wait for a result from the caller.
        settled: Whether a hook had already handled or rejected the call.
    """

    open_ids: tuple[str, ...] = ()
    settled: bool = False

    def __str__(self) -> str:
        if self.settled:
            return (
                f"result {self.id!r} of tool {self.name!r} answers a call that a hook already "
                "settled; the plan adds that result itself. Leave it out"
            )
        return (
            f"result {self.id!r} of tool {self.name!r} answers no call in this round "
            f"(open calls: {list(self.open_ids)}). Commit it to the round that made the call"
        )


@dataclass(frozen=True, slots=True)
class MismatchedToolName(CommitFault):
    """A result names another tool than the call that it answers."""

    expected: str

    def __str__(self) -> str:
        return (
            f"result {self.id!r} names tool {self.name!r}, but the call is of "
            f"{self.expected!r}. Make the result from the call, with `call.complete(output)`"
        )


@dataclass(frozen=True, slots=True)
class MismatchedArguments(CommitFault):
    """A result carries other raw arguments than the model sent; they may hold secrets."""

    expected: str = field(repr=False)
    received: str = field(repr=False)

    def __str__(self) -> str:
        return (
            f"result {self.id!r} of tool {self.name!r} carries other arguments than the model "
            f"sent: {len(self.received)} characters instead of {len(self.expected)}, which differ "
            f"from character {self._same() + 1} on. Make the result from the call, with "
            "`call.complete(output)`"
        )

    def _same(self) -> int:
        """Count the characters that are the same at the beginning."""
        pairs = enumerate(zip(self.expected, self.received, strict=False))
        shorter = min(len(self.expected), len(self.received))
        return next((at for at, (sent, carried) in pairs if sent != carried), shorter)


@dataclass(frozen=True, slots=True)
class UnresolvedSuspension(CommitFault):
    """A call is suspended and waits for a decision."""

    def __str__(self) -> str:
        return (
            f"call {self.id!r} of tool {self.name!r} is suspended. Decide about it with "
            "`plan.resume(decision)`, in a store with `store.decide`, or close the round with "
            "`plan.abort(session, reason)`"
        )
