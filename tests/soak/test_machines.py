"""The state machines of the suite, over hundreds of steps."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.profiles import scaled
from tests.round.test_suspension_machine import Suspensions
from tests.store.test_store_machine import Stores
from tests.test_loop_machine import Loops

LONG = settings(
    max_examples=scaled(5),
    stateful_step_count=400,
    # Hundreds of steps are much to draw, and that is what is wanted here.
    suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow],
)


class LongLoops(Loops):
    """Conversations can go on, however many rounds are opened, saved, aborted and committed."""


class LongSuspensions(Suspensions):
    """A plan is where its model says, however often calls suspend, are decided and come back."""


class LongStores(Stores):
    """A store does what its table says, however long its conversations are."""


TestLongLoops = LongLoops.TestCase
TestLongLoops.settings = settings(max_examples=scaled(100), stateful_step_count=100)
TestLongSuspensions = LongSuspensions.TestCase
TestLongSuspensions.settings = LONG
TestLongStores = LongStores.TestCase
TestLongStores.settings = LONG
