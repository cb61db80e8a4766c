"""Find what the command line names: `module:Toolset`, `path/to/file.py:Toolset`."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeGuard

from .. import Toolset
from .._text.escaping import meant_by, words_of
from .._text.json import cut, shorten
from ._screen import Failure, write_traceback

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent)
_FORM: Final = (
    "Name a toolset as `module:Toolset`, `path/to/file.py:Toolset` or `module:Outer.Inner`"
)


class ImportFailure(Failure):
    """The user's own module could not be imported."""


@contextmanager
def showing(with_traceback: bool) -> Generator[None]:
    """Write the traceback of a failing import to standard error, if it was asked for."""
    try:
        yield
    except ImportFailure as failure:
        if with_traceback:
            write_traceback(failure.__cause__ or failure)
        raise


def load_toolset(reference: str) -> type[Toolset]:
    """Import a module and give the toolset in it.

    The current directory can be imported from; of a file, the directory that it is in. What
    the module prints goes to standard error.

    Args:
        reference: Module or file, a colon, and the name, with dots for what is nested.

    Raises:
        Failure: There is no such thing, or it is not a toolset; the text says what there is.
        ImportFailure: The module raised while it was imported, or looked at.
    """
    with _looking_at(reference):
        module, found = _named(reference)
        if not is_toolset(found):
            kind = "a class" if isinstance(found, type) else f"of type `{type(found).__name__}`"
            hint = _hint(module, reference.rpartition(":")[0])
            raise Failure(f"`{reference}` is not a toolset: it is {kind}. {hint}.")
        return found


def load_named(reference: str) -> Any:
    """Import a module and give whatever is named in it, such as a hook set.

    Args:
        reference: As for `load_toolset`.

    Raises:
        Failure: There is no such thing.
        ImportFailure: The module raised while it was imported, or looked at.
    """
    with _looking_at(reference):
        return _named(reference)[1]


@contextmanager
def _looking_at(reference: str) -> Generator[None]:
    try:
        yield
    except (Failure, KeyboardInterrupt):
        raise
    except BaseException as error:  # what is in a module may do anything when it is looked at
        raise _failure_of(error, f"Looking at `{reference}`") from error


def _named(reference: str) -> tuple[ModuleType, Any]:
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        module = _import(reference) if reference and not colon else None
        named = f"`{reference}`" if reference else "An empty text"
        raise Failure(f"{named} names no toolset. {_hint(module, reference)}.")
    module = _import(place)
    found: Any = module
    for step in name.split("."):
        inner = getattr(found, step, None)
        if inner is None:
            meant = meant_by(step, _toolsets_in(found))
            owner = place if found is module else getattr(found, "__name__", place)
            raise Failure(f"`{owner}` has no `{step}`.{meant} {_hint(module, place)}.")
        found = inner
    return module, found


def _hint(module: ModuleType | None, place: str) -> str:
    if module is None:
        return _FORM
    names = _toolsets_in(module)
    if not names:
        return f"There is no toolset in it. {_FORM}"
    listed = ", ".join(f"{place}:{name}" for name in names)
    return f"There {'is' if len(names) == 1 else 'are'}: {listed}"


def _toolsets_in(owner: Any) -> list[str]:
    """Name the toolsets of a module, or those that are nested in a toolset."""
    held: dict[str, Any] = getattr(owner, "__dict__", {})
    return [
        name
        for name, value in held.items()
        if is_toolset(value) and value is not Toolset and not name.startswith("_")
    ]


def is_toolset(value: Any) -> TypeGuard[type[Toolset]]:
    """Whether a value, which may be anything, is a toolset."""
    # By `type`: an object may lie about its class, or raise when it is asked for it.
    return issubclass(type(value), type) and issubclass(value, Toolset)


def _import(place: str) -> ModuleType:
    is_file = place.endswith(".py") or "/" in place or os.sep in place
    if is_file:
        root, module_name = _module_of_file(Path(place))
    else:
        root, module_name = Path.cwd(), place
    # As `python -m` does with the current directory, and `python file.py` with that of the file.
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        # A module that prints while it is imported would break what a program reads from `--json`.
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # `app.tools` is missing if the error names `app` or `app.tools`. If it names another
        # module, then one was found that imports something that is not installed, which is a
        # failure of its own.
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        # A name that begins with a dot is relative to a package, and here there is none.
        is_missing = missing is not None and f"{place}.".startswith(f"{missing}.")
        if not is_file and (is_missing or place.startswith(".")):
            raise Failure(
                f"There is no module `{place}`: it is neither installed nor in the current "
                f"directory. {_FORM}."
            ) from None
        raise _failure_of(error, f"Importing `{place}`") from error
    found = getattr(module, "__file__", None)
    if is_file and (found is None or Path(found).resolve() != Path(place).resolve()):
        raise Failure(
            f"`{place}` cannot be imported: another module is called `{module_name}` "
            f"({found or 'built in'}). Rename the file."
        )
    return module


def _module_of_file(file: Path) -> tuple[Path, str]:
    """Return the directory to import from and the module's name, packages included."""
    if not file.is_file():
        raise Failure(f"There is no file `{file}`. {_FORM}.")
    full = file.resolve()
    names, folder = [full.stem], full.parent
    # A file in a package is imported as `package.module`, from the folder above the package. By its
    # bare name its relative imports would fail.
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names).removesuffix(".__init__")


def _failure_of(error: BaseException, doing: str) -> ImportFailure:
    frames = [
        frame
        # The last line of the user's own code: below it stand the import system and this library.
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", _PACKAGE))
    ]
    last = f" ({os.path.relpath(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    cause = cut(words_of(error), 600) or "no message"
    if isinstance(error, SystemExit):
        cause = f"it ends the program (exit code {shorten(error.code)})"
    if isinstance(error, SyntaxError):
        last = ""
    return ImportFailure(
        f"{doing} failed: {type(error).__name__}: {cause}{last}. "
        "See the whole of it with `--traceback`."
    )
