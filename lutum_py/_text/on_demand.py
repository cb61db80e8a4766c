"""What is imported, or made, when it is first asked for."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

# One lock for all, held for a few instructions. Locks of their own would have an order in which
# they must be taken, and threads that take two in different orders wait for each other forever.
ONCE: Final = RLock()
"""The lock for what is made when it is first asked for, and of which all threads have the same.

It is held while a value takes its place, and while one is made by our own code alone. What runs the
code of others, such as the evaluation of their annotations, is made without it, and the first that
is made takes the place: who waits here may hold the lock of an import that such code waits for.
"""

# Of all threads only the one that forks goes on in the child, where nobody would give the lock back
# that another held. Windows has no forks.
for register in filter(None, [getattr(os, "register_at_fork", None)]):
    register(after_in_child=ONCE._at_fork_reinit)  # type: ignore[attr-defined]


def on_demand(
    module: dict[str, object], homes: Mapping[str, Sequence[str]], inner: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a module (PEP 562).

    A public module may list what is slow to import beside what is not: `lutum_py.models` has a
    protocol and five clients of providers. Who asks for one name does not wait for the others.

    Args:
        module: The globals of the module.
        homes: The names that are imported on demand, by their module below `lutum_py`.
        inner: The modules inside of it that are imported in the same way.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in inner:
            return import_module(f"{module['__name__']}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        value = module[name] = getattr(import_module(f"lutum_py.{home_of[name]}"), name)
        return value

    return get, lambda: sorted({*module, *home_of, *inner})


_OURS: Final = frozenset({"TYPE_CHECKING", "annotations", "exported", "on_demand"})


def exported(names: Iterable[str]) -> Iterable[str]:
    """Return the `__all__` of a module that only re-exports, of all names that are in it.

    For checkers, what is imported as in `from m import A as A` is public: so nothing is said twice.
    """
    return sorted(name for name in names if not (name.startswith("_") or name in _OURS))
