"""Check that the reference of a built site has every public name: `check_reference.py SITE`.

A name counts where the site's inventory lists it, or lists another public path to the same object:
dialects share their types, and a shared type is described once. Their functions are methods of one
class, and are described there.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import lutum_py

HEAD_LINES: Final = 4
NOT_DESCRIBED: Final = frozenset({"lutum_py.__version__"})


def inventory(path: Path) -> set[str]:
    """Read the names that a Sphinx inventory lists."""
    data = path.read_bytes()
    for _ in range(HEAD_LINES):
        data = data.partition(b"\n")[2]
    return {line.split()[0] for line in zlib.decompress(data).decode().splitlines()}


def public_modules(package: ModuleType) -> Iterator[ModuleType]:
    """Give a package and its public modules, however deep."""
    yield package
    for found in pkgutil.iter_modules(package.__path__):
        if found.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        if found.ispkg:
            yield from public_modules(module)
        else:
            yield module


def missing(listed: set[str]) -> list[str]:
    """Name what is public and described nowhere."""
    paths: dict[str, Any] = {}
    for module in public_modules(lutum_py):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                paths[f"{module.__name__}.{name}"] = value
    described = {id(value) for path, value in paths.items() if path in listed}
    return sorted(
        path
        for path, value in paths.items()
        if path not in listed
        and id(value) not in described
        and path not in NOT_DESCRIBED
        and method_of(value) not in listed
    )


def method_of(value: Any) -> str | None:
    """Name the method that a function of a dialect is."""
    function = getattr(value, "__func__", None)
    return None if function is None else f"{function.__module__}.{function.__qualname__}"


def main(site: str) -> int:
    """Check a site; give the exit status."""
    lost = missing(inventory(Path(site) / "objects.inv"))
    for path in lost:
        print(f"{path} is public, and not in the reference.", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
