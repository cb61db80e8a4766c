"""What all tests share."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import os
import signal
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.in_time import in_time, seconds_for
from tests.profiles import load_profile

# Before the tests are imported: their own numbers of examples go by the profile.
load_profile()

# A shell starts what runs in the background deaf to Ctrl-C, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Coverage is measured in the processes that run tests, not in those that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

SLOW = "it takes many seconds: python -m nox -s coverage runs it, or python -m pytest -m slow"
INSTALLED_BY = {
    "anthropic": "-e '.[anthropic]'",
    "anyio": "-e '.[mcp]'",
    "boto3": "-e '.[bedrock]'",
    "botocore": "-e '.[bedrock]'",
    "dbos": "--group examples",
    "google": "-e '.[gemini]'",
    "httpx2": "-e '.[mcp]'",
    "jsonschema": "-e '.[jsonschema]'",
    "mcp": "-e '.[mcp]'",
    "mypy": "--group full",
    "openai": "-e '.[openai]'",
    "pydantic_monty": "-e '.[code]'",
    "opentelemetry": "--group full",
    "psycopg": "-e '.[postgres]'",
    "rich": "-e '.[rich]'",
    "selenium": "--group full",
    "starlette": "--group examples",
    "temporalio": "--group examples",
    "typer": "-e '.[cli]'",
    "uvicorn": "--group examples",
}
"""What pip is told where a package is missing that only some tests are about."""
NEEDED_IN = {
    "cli": ("typer", "rich", "jsonschema"),
    "code": ("pydantic_monty",),
    "mcp": ("mcp",),
}
"""What the tests of a folder need, though few of its files import it."""


LEFT_OPEN = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-slow", action="store_true", help="skip the tests marked slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector of cycles from what stays to the end.

    What is collected is hundreds of thousands of objects, which each full collection would go
    through, and many tests make one. What a test makes is collected as ever.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--no-slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason=SLOW))


class Module(pytest.Module):
    """A file of tests, which is skipped where it imports a package that is not installed."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        place = self.path.relative_to(self.config.rootpath).with_suffix("").parts
        for package in NEEDED_IN.get(place[-2], ()):
            if not is_installed(package):
                pytest.skip(how_to_get(package), allow_module_level=True)
        try:
            yield from super().collect()
        except self.CollectError as error:
            missing = missing_package(error)
            if missing is None:
                raise
            # Half a module would stay, and a file that imports from it would fail by another error.
            sys.modules.pop(".".join(place), None)
            pytest.skip(how_to_get(missing), allow_module_level=True)


def how_to_get(package: str) -> str:
    return f"{package} is not installed: pip install {INSTALLED_BY[package]}"


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    made: pytest.Module = Module.from_parent(parent, path=module_path)
    return made


def missing_package(error: BaseException) -> str | None:
    """Name the package for want of which something failed, if only some tests are about it."""
    if isinstance(error, BaseExceptionGroup):
        named = [missing_package(each) for each in error.exceptions]
        return named[0] if all(named) else None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError):
            package = (cause.name or "").partition(".")[0]
            # A test may hide one that is there.
            if package in INSTALLED_BY and not is_installed(cause.name or ""):
                return package
        cause = cause.__cause__ or cause.__context__
    return None


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let go of what a test left open that was skipped in the middle: it is of no interest here."""
    if item.config.stash.get(LEFT_OPEN, False):
        item.config.stash[LEFT_OPEN] = False
        for name in ("last_exc", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no test wait for ever, nor what is made before it and taken away after it."""
    with in_time(seconds_for(item)):
        return (yield)


def forget(error: BaseException | None) -> None:
    """Let go of what the frames of an error hold."""
    while error is not None:
        for each in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            forget(each)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that meets a package that is not installed."""
    report = yield
    missing = missing_package(call.excinfo.value) if report.failed and call.excinfo else None
    if call.excinfo and missing is not None:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {how_to_get(missing)}")
        forget(call.excinfo.value)
        item.config.stash[LEFT_OPEN] = True
    return report


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, and each of its examples, in an event loop of its own."""
    test: Any = pyfuncitem.obj
    drawn = getattr(test, "hypothesis", None)
    if drawn is not None and inspect.iscoroutinefunction(drawn.inner_test):
        drawn.inner_test = in_a_loop(drawn.inner_test)
    if not inspect.iscoroutinefunction(test):
        return None
    given = pyfuncitem.funcargs
    in_a_loop(test)(**{name: given[name] for name in inspect.signature(test).parameters})
    return True


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(test(*args, **options))

    return run


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save what a process covered while there is time: one that exits slowly is ended by xdist."""
    coverage = sys.modules.get("coverage")
    measured = coverage and coverage.Coverage.current()
    if measured:
        measured.stop()
        measured.save()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped: one line a reason, with how many tests it kept from running."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ").replace("python -m pip", "pip")
            counts[reason][isinstance(report, pytest.CollectReport)] += 1
    if not counts:
        return
    terminalreporter.section("what was skipped, and why")
    for reason, (tests, files) in sorted(counts.items(), key=lambda each: each[1], reverse=True):
        parts = [
            f"{count} {what}{'s' * (count > 1)}"
            for count, what in ((tests, "test"), (files, "file"))
            if count
        ]
        terminalreporter.line(f"{' and '.join(parts)}: {reason}")
