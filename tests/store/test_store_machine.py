"""The law of every order of steps: a store does what a table of a few lines says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lutum_py import SuspendTicket
from lutum_py.errors import MisuseError, StaleError
from lutum_py.store import Claim, Store, open_store
from tests.profiles import scaled
from tests.store.beside import Clock, watched
from tests.store.desk import KEY, Desk, plan_of, read_again, states
from tests.store.servers import Postgres

IDS = st.sampled_from(["a", "b"])
ARGUMENTS: dict[str, dict[str, object]] = {
    "pay": {"cents": 5},
    "look": {"place": "Oslo"},
    "ask": {"question": "why"},
}


@dataclass(eq=False)
class Known:
    """What is known of one call.

    Attributes:
        state: `pending`, `in doubt` or `suspended`, or what it came to.
        claim: The last claim, while it counts.
        until: When it may be claimed again.
        place: By how many seconds others come before it that may be claimed then: the calls that
            are saved together come one second apart, so that a large round starves nobody.
        is_started: Whether the last claim has started it.
    """

    tool: str
    state: str
    until: float
    place: int = 0
    claim: Claim | None = None
    is_started: bool = False

    def free(self, state: str, until: float) -> None:
        self.state, self.until, self.place = state, until, 0
        self.claim, self.is_started = None, False

    @property
    def turn(self) -> float:
        return self.until + self.place


@dataclass
class Talk:
    """What is known of one conversation."""

    version: int
    rounds: int = 0
    keys: dict[str, int] = field(default_factory=dict)
    calls: dict[str, Known] = field(default_factory=dict)
    is_open: bool = False


class Stores(RuleBasedStateMachine):
    """Save, decide, claim, begin and finish in any order, and look at everything after each."""

    where: ClassVar[Any] = staticmethod(lambda: ":memory:")

    @initialize()
    def begin(self) -> None:
        self.watching = watched()
        self.watching.__enter__()
        self.store: Store = open_store(self.where(), key=KEY)
        self.clock = Clock()
        self.now = 0.0
        self.talks: dict[str, Talk] = {}
        self.claims: list[tuple[Claim, Known]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.watching.__exit__(None, None, None)

    @rule(id=IDS, tools=st.lists(st.sampled_from(sorted(ARGUMENTS)), min_size=1, max_size=4))
    def open(self, id: str, tools: list[str]) -> None:
        talk = self.talks.get(id)
        plan = plan_of(*((f"c{n}", tool, ARGUMENTS[tool]) for n, tool in enumerate(tools)))
        version = None if talk is None else talk.version
        made = self.store.save(id, plan, note="", version=version)
        self.talks[id] = talk = talk or Talk(0)
        talk.version += 1
        assert made == talk.version
        talk.is_open = True
        talk.rounds += 1
        talk.calls = {
            f"c{n}": Known(tool, "suspended" if tool == "pay" else "pending", self.now, n)
            for n, tool in enumerate(tools)
        }

    @precondition(lambda self: self.talks)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.talks)))
        talk = self.talks[id]
        for wrong in (talk.version - 1, None):
            with pytest.raises(StaleError):
                self.store.save(id, None, note="", version=wrong)
        talk.version = self.store.save(id, None, note="", version=talk.version)
        talk.calls, talk.is_open = {}, False

    @precondition(lambda self: any(talk.is_open for talk in self.talks.values()))
    @rule(data=st.data())
    def save_again(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(i for i, talk in self.talks.items() if talk.is_open)))
        stored = self.store.load(id, Desk)
        self.talks[id].version = self.store.save(id, stored.plan, note="", version=stored.version)

    @precondition(lambda self: self.found("suspended"))
    @rule(data=st.data(), yes=st.booleans())
    def decide(self, data: st.DataObject, yes: bool) -> None:
        id, name, known = data.draw(st.sampled_from(self.found("suspended")))
        (waiting,) = [each for each in self.store.waiting(id) if each.call_id == name]
        decision = waiting.approve() if yes else waiting.cancel("no")
        assert self.store.decide(id, decision, Desk) is not None
        assert self.store.decide(id, decision, Desk) is None
        self.talks[id].version += 1
        known.free("pending" if yes else "rejected", self.now)

    @rule(seconds=st.sampled_from([1, 5, 50]))
    def wait(self, seconds: int) -> None:
        self.clock.move(seconds)
        self.now += seconds

    @rule(lease=st.sampled_from([2, 20]))
    def claim(self, lease: int) -> None:
        claim = self.store.claim(Desk, lease=lease)
        free = [
            (id, name, known)
            for state in ("pending", "in doubt")
            for id, name, known in self.found(state)
            if known.until <= self.now
        ]
        if claim is None:
            assert free == []
            return
        (known,) = [known for id, name, known in free if (id, name) == (claim.id, claim.call.id)]
        assert known.turn == min(known.turn for _, _, known in free)
        assert claim.in_doubt == (known.state == "in doubt")
        assert all(claim.token > old.token for old, of in self.claims if of is known)
        talk = self.talks[claim.id]
        assert claim.key == claim.call.idempotency_key
        of_round = claim.key.partition("/")[0]  # random, and none that an earlier round had
        assert talk.keys.setdefault(of_round, talk.rounds) == talk.rounds
        known.free(known.state, self.now + lease)
        known.claim = claim
        self.claims.append((claim, known))

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(),
        move=st.sampled_from(["start", "start", "finish", "renew", "release", "ask"]),
    )
    def go_on(self, data: st.DataObject, move: str) -> None:
        claim, known = data.draw(st.sampled_from(self.claims))
        talk = self.talks[claim.id]
        counts = known.claim is claim and any(each is known for each in talk.calls.values())
        is_lost = claim.in_doubt and not claim.idempotent
        expected: type[Exception] | None = None if counts else StaleError
        is_started = counts and known.is_started
        if (move == "start" and (is_lost or is_started)) or (move == "release" and is_started):
            expected = MisuseError
        step: Callable[[], Any] = {
            "start": lambda: self.store.start(claim),
            "finish": lambda: self.store.finish(claim, read_again(claim).fail("no")),
            "renew": lambda: self.store.renew(claim),
            "release": lambda: self.store.release(claim),
            "ask": lambda: self.store.finish(claim, read_again(claim).suspend(SuspendTicket())),
        }[move]
        if expected is not None:
            with pytest.raises(expected):
                step()
            return
        step()
        if move == "renew":
            known.until = self.now + claim.lease
        elif move == "release":
            known.free(known.state, self.now)
        else:
            talk.version += 1
        if move == "start":
            known.state, known.until, known.is_started = "in doubt", self.now + claim.lease, True
        elif move == "finish":
            known.free("error", 0)
        elif move == "ask":
            known.free("suspended", 0)

    def found(self, state: str) -> list[tuple[str, str, Known]]:
        return [
            (id, name, known)
            for id, talk in sorted(self.talks.items())
            for name, known in talk.calls.items()
            if known.state == state
        ]

    @invariant()
    def is_as_it_is_known(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.ids() == sorted(self.talks)
        for id, talk in self.talks.items():
            assert self.store.load(id).version == talk.version
            if talk.is_open:
                assert states(self.store, id) == {n: k.state for n, k in talk.calls.items()}
        open_states = {"pending", "in doubt", "suspended"}
        assert self.store.settled() == sorted(
            id
            for id, talk in self.talks.items()
            if talk.is_open and not open_states & {each.state for each in talk.calls.values()}
        )
        waiting = [(each.id, each.call_id) for each in self.store.waiting()]
        assert waiting == [(id, name) for id, name, _ in self.found("suspended")]


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=scaled(40), stateful_step_count=40)


def test_both_databases_go_by_the_same_table(postgres: Postgres) -> None:
    """What holds of SQLite holds of PostgreSQL."""

    class OnPostgres(Stores):
        where = staticmethod(postgres.fresh)

    case = OnPostgres.TestCase
    case.settings = settings(max_examples=scaled(8), stateful_step_count=30)
    case().runTest()
