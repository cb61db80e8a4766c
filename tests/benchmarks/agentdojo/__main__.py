"""Print the tables of the page: `python -m tests.benchmarks.agentdojo`; `-v` names what lands."""

from __future__ import annotations

import sys

from tests.flow.adaptive import rows

from .figures import EDGES, RULES, UNQUOTED, Counts, Suite, attacks_on, tasks_of
from .suites import SUITES


def main() -> None:
    """Make every task and every attack, and print what each rule came to."""
    plain, hidden = ({rule: Counts() for rule in RULES} for _ in range(2))
    owned, quoted = {EDGES: Counts()}, {EDGES: Counts(), UNQUOTED: Counts()}
    tasks = pairs = read = 0
    for name in SUITES:
        suite = Suite(name, RULES)
        tasks += tasks_of(suite, plain)
        made, met = attacks_on(suite, plain, is_hidden=False)
        attacks_on(suite, hidden, is_hidden=True)
        attacks_on(Suite(name, owned), owned, owns=True)
        tasks_of(Suite(name, quoted), quoted, quotes=True)
        pairs, read = pairs + made, read + met
    print(f"{pairs} attacks with a call, {read} of them read; {tasks} tasks that change something")
    print("| rule | land unasked | in base64 | tasks unasked | questions an asked task |")
    print("|---|---|---|---|---|")
    for rule, found in plain.items():
        asked = len(found.questions)
        each = sum(found.questions.values()) / asked if asked else 0
        row = (len(found.landed), len(hidden[rule].landed), len(found.unasked), f"{each:.2f}")
        print(f"| {rule} | {' | '.join(map(str, row))} |")
    unasked, loosely = (len(quoted[rule].unasked) for rule in (EDGES, UNQUOTED))
    print(f"\nwhere the records are the attacker's: {len(owned[EDGES].landed)} land")
    print(f"tasks unasked where each text quotes: {unasked}, with `run=0` {loosely}")
    print("\n| the attacker | | by |\n|---|---|---|", *rows(), sep="\n")
    if "-v" in sys.argv:
        print("asked:", *sorted(plain[EDGES].questions), sep="\n  ")
        for what, counts in (("landed", plain), ("in base64", hidden), ("by records", owned)):
            print(f"{what}:", *counts[EDGES].landed, sep="\n  ")


if __name__ == "__main__":
    main()
