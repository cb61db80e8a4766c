"""Print the tables of the page: `python -m tests.benchmarks.agentdojo`; `-v` names what lands."""

from __future__ import annotations

import sys

from tests.flow.adaptive import rows

from .figures import RULES, Counts, Suite, attacks_on, tasks_of
from .suites import SUITES


def main() -> None:
    """Make every task and every attack, and print what each rule came to."""
    plain, hidden = ({rule: Counts() for rule in RULES} for _ in range(2))
    tasks = pairs = read = 0
    for name in SUITES:
        suite = Suite(name, RULES)
        tasks += tasks_of(suite, plain)
        made, met = attacks_on(suite, plain, is_hidden=False)
        attacks_on(suite, hidden, is_hidden=True)
        pairs, read = pairs + made, read + met
    print(f"{pairs} attacks with a call, {read} of them read; {tasks} tasks that change something")
    print("| rule | land unasked | in base64 | tasks unasked | questions an asked task |")
    print("|---|---|---|---|---|")
    for rule, found in plain.items():
        asked = len(found.questions)
        each = sum(found.questions.values()) / asked if asked else 0
        row = (len(found.landed), len(hidden[rule].landed), len(found.unasked), f"{each:.2f}")
        print(f"| {rule} | {' | '.join(map(str, row))} |")
    print("\n| the attacker | | by |\n|---|---|---|", *rows(), sep="\n")
    if "-v" in sys.argv:
        edges = list(RULES)[-1]
        print("asked:", *sorted(plain[edges].questions), sep="\n  ")
        print("landed:", *plain[edges].landed, sep="\n  ")
        print("landed in base64:", *hidden[edges].landed, sep="\n  ")


if __name__ == "__main__":
    main()
