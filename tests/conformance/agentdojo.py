"""AgentDojo: what policies of `lutum_py.flow` stop of orders that stand in what tools read."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

from .verdict import Group, NotHad, Verdict

EDGES: Final = "**edges**"


def run() -> Verdict:
    """Make every task and every attack by a script, under each rule.

    Raises:
        NotHad: The package is not installed.
    """
    if find_spec("agentdojo") is None:
        raise NotHad("the package agentdojo is not installed; the group `agentdojo` brings it")
    from tests.benchmarks.agentdojo.figures import RULES, Counts, Suite, attacks_on, tasks_of
    from tests.benchmarks.agentdojo.suites import SUITES, VERSION

    plain, hidden = ({rule: Counts() for rule in RULES} for _ in range(2))
    tasks = pairs = 0
    for name in SUITES:
        suite = Suite(name, RULES)
        tasks += tasks_of(suite, plain)
        pairs += attacks_on(suite, plain, is_hidden=False)[0]
        attacks_on(suite, hidden, is_hidden=True)
    rows = [
        (rule, len(found.landed), len(hidden[rule].landed), len(found.unasked))
        for rule, found in plain.items()
    ]
    edges, encoded = plain[EDGES], hidden[EDGES]
    return Verdict(
        title="AgentDojo",
        versions={"agentdojo": version("agentdojo"), "suites": VERSION},
        about=ABOUT.format(pairs=pairs, tasks=tasks),
        tables=[[("rule", "orders that land unasked", "in base64", "tasks unasked"), *rows]],
        groups=[
            Group("", edges.landed),
            Group(ENCODED, encoded.landed),
            Group(ASKED, sorted(edges.questions)),
        ],
    )


ENCODED: Final = "The order lands where its words are in base64: no rule decodes what it reads."
ASKED: Final = (
    "A person is asked about the task: it follows a message, a mail or a letter, deletes the "
    "largest file, or names something differently from its record."
)
ABOUT: Final = """\
A script, not a model, makes the calls of each task's own solution, and obeys an order as soon as
it has read one: {pairs} pairs of a task and an order, and {tasks} tasks that change something. The
page on [prompt injection](how-to/prompt-injection.md#how-well-it-holds) explains the rules and the
limits of these figures."""
