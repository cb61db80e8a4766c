"""The pytest plugin: found by pytest where the library is installed, and inert until it is used.

It adds the fixtures `scripted_model`, `scripted_client`, `assert_transcript_valid` and
`check_loop`, the marker `lutum_loop`, and the option `--lutum-examples`. It hooks into nothing
else: a project that asks for none of these runs as without it. `-p no:lutum_py` leaves it out.

Importing it imports pytest and the standard library; what a fixture gives is imported when a test
asks for it, and Hypothesis when `check_loop` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._scripted_client import ScriptedClient
    from ._scripted_model import ScriptedModel

__all__: list[str] = []

_MARKER = "lutum_loop"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option, which `pytest --help` shows."""
    parser.getgroup("lutum_py", "tool loops (lutum_py)").addoption(
        "--lutum-examples",
        type=int,
        default=None,
        metavar="N",
        help="try N scripts in each test that uses the fixture `check_loop`, whatever it says",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, which `pytest --markers` shows."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(**options): options for every use of the fixture `check_loop` in this test, as "
        "in `lutum_loop(examples=500, odd_ids=False)`; those of the call itself win.",
    )


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> Iterator[type[ScriptedModel]]:
    """`ScriptedModel`: a model that answers from a script, all of which the test has to use.

    `scripted_model([scripted_model.text("Hi!")])` makes one. A test that passed fails after all
    where turns of a script are left.
    """
    from ._scripted_model import ScriptedModel

    yield from _watched(ScriptedModel, request)


@pytest.fixture
def scripted_client(request: pytest.FixtureRequest) -> Iterator[type[ScriptedClient]]:
    """`ScriptedClient`: the same in place of a provider's own client.

    `scripted_client([...], "openai_chat")` makes one.
    """
    from ._scripted_client import ScriptedClient

    yield from _watched(ScriptedClient, request)


def _watched(kind: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    made: list[Any] = []

    def remember(self: Any, *args: object, **options: object) -> None:
        kind.__init__(self, *args, **options)
        made.append(self)

    failed_before = request.session.testsfailed
    yield type(kind.__name__, (kind,), {"__init__": remember, "__doc__": kind.__doc__})
    # A test that failed stopped somewhere on its way; what it left is not news.
    if request.session.testsfailed == failed_before:
        for each in made:
            each.assert_exhausted()


@pytest.fixture
def assert_transcript_valid() -> Callable[..., None]:
    """`assert_transcript_valid(conversation, dialect=None)`: list all that a provider refuses."""
    from ._transcript_valid import assert_transcript_valid

    return assert_transcript_valid


@pytest.fixture
def check_loop(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`check_loop(loop, toolset, ...)`: drive a loop with all that a model may send.

    Options come from the marker `lutum_loop`, the nearest first, and from `--lutum-examples`.
    """
    from . import _loop

    options: dict[str, Any] = {}
    for marker in request.node.iter_markers(_MARKER):
        if marker.args:
            from ..errors import MisuseError

            raise MisuseError(
                f"The marker `{_MARKER}` takes options by name, as in `{_MARKER}(examples=500)`, "
                f"not {', '.join(map(repr, marker.args))}."
            )
        options = {**marker.kwargs, **options}
    forced: dict[str, Any] = {}
    examples: int | None = request.config.getoption("--lutum-examples")
    if examples is not None:
        forced = {"examples": examples, "settings": None}

    def check(*args: Any, **given: Any) -> None:
        __tracebackhide__ = True
        _loop.check_loop(*args, **{**options, **given, **forced})

    return check
