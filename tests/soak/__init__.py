"""Laws that take hours: `python -m nox -s soak -- MINUTES`.

Each round of that command draws anew, here and then in every other test that uses Hypothesis, with
the profile `soak` (see `tests/profiles.py`). It ends with the first failure, or with the round in
which the minutes pass; the seed that nox prints repeats a round. Nothing in this folder runs in any
other session.

A law belongs here that needs very many steps or examples before it can fail: what a state machine
comes to after hundreds of steps, memory after a day, every pair of a large table. A law that fails
within seconds belongs beside the code.
"""
