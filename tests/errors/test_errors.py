"""The exceptions themselves: whose fault, and what survives a process boundary."""

from __future__ import annotations

import doctest
import gc
import inspect
import pickle
import warnings
from typing import Any

import pytest

from lutum_py import errors
from tests.cases import over

NAMES: list[str] = vars(errors)["__all__"]
KINDS = [
    (errors.InvalidArguments, "invalid_arguments", "Invalid arguments: why"),
    (errors.ExecutionFailed, "execution_failed", "Execution failed: why"),
    (errors.Denied, "denied", "Denied: why"),
    (errors.NotFound, "not_found", "Not found: why"),
    (errors.Internal, "internal", "Internal error: why"),
    (errors.TimedOut, "timed_out", "Timeout: why"),
    (errors.Cancelled, "cancelled", "Cancelled: why"),
    (errors.OutcomeUnknown, "outcome_unknown", "Outcome unknown: why"),
]


@over("kind, code, text", KINDS)
def test_a_tool_error_has_a_stable_code_and_text(
    kind: type[errors.ToolError], code: str, text: str
) -> None:
    """Each kind of tool error keeps its code and the words in front of the reason."""
    error = kind("why")
    assert (error.code, str(error), error.reason) == (code, text, "why")


@over("kind, code, text", KINDS)
def test_a_tool_error_pickles(kind: type[errors.ToolError], code: str, text: str) -> None:
    """A tool error that was raised on another machine says the same here."""
    again = pickle.loads(pickle.dumps(kind("why")))
    assert (type(again), again.code, str(again)) == (kind, code, text)


def test_a_commit_error_pickles_with_its_faults() -> None:
    """What a commit was refused for survives a process boundary."""
    error = errors.CommitError([errors.MissingResult("c1", "add")])
    again = pickle.loads(pickle.dumps(error))
    assert (again.faults, str(again)) == (error.faults, str(error))


def test_every_exception_is_of_one_branch() -> None:
    """Whose fault it was can be told from the type of any exception of the library."""
    branches = (
        errors.DeveloperError,
        errors.ModelError,
        errors.ProviderError,
        errors.SavedDataError,
        errors.ToolError,
    )
    for name in NAMES:
        kind = getattr(errors, name)
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind is not errors.LutumError:
            assert issubclass(kind, errors.LutumError)
            assert sum(issubclass(kind, branch) for branch in branches) == 1, name


@over(
    "error",
    [
        errors.UnknownToolError("no", name="x", suggestion="y"),
        errors.InvalidArgumentsError("no", tool="x", call_id="c"),
        errors.ToolInputError("no", tool="x"),
        errors.ToolOutputError("no", tool="x"),
        errors.DuplicateToolCallIdError("no", call_id="c"),
        errors.DialectError("no", dialect="d", where="w"),
        errors.HookError("no", hook="h", tool="t", call_id="c"),
        errors.MisuseError.of_field("Usage", "input_tokens", "a whole number", "3"),
    ],
)
def test_every_error_survives_a_process_boundary(error: errors.LutumError) -> None:
    """An error that is pickled comes back with its text and what it knows."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def documented() -> list[str]:
    """The exceptions that the library raises itself, apart from the mere branches."""
    kinds = [getattr(errors, name) for name in NAMES]
    return [
        kind.__name__
        for kind in kinds
        if issubclass(kind, errors.LutumError)
        and (issubclass(kind, errors.ToolError) or not kind.__subclasses__())
        and kind.__base__ is not errors.ToolError
    ]


def test_each_exception_shows_its_cause_and_its_remedy() -> None:
    """The docstring of each exception has the line that causes it and the line that fixes it."""
    install = "pip install -e '.[jsonschema]'"
    pytest.importorskip("jsonschema", reason=f"jsonschema is not installed: {install}")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
    finder = doctest.DocTestFinder(recurse=False)
    failed: list[tuple[str, int, list[Any]]] = []
    with warnings.catch_warnings():
        # An example may leave its round open, which a program should not.
        warnings.simplefilter("ignore", ResourceWarning)
        for name in documented():
            shared = dict[str, Any](vars(errors))  # made anew, for examples change what they use
            for found in finder.find(errors, "errors", globs=shared):
                found.globs = shared
                runner.run(found, clear_globs=False)
            (own,) = finder.find(getattr(errors, name), name, module=errors)
            raised = [example.exc_msg for example in own.examples if example.exc_msg]
            own.globs = dict(shared)
            results = runner.run(own)
            told = all(f"{name}: " in said or name == "ToolError" for said in raised)
            if results.failed or not raised or not told:
                failed.append((name, results.failed, raised))
            del own, found
            shared.clear()
        gc.collect()
    assert len(documented()) > 20
    assert failed == []


def test_the_tree_names_every_exception() -> None:
    """The tree at the head of the module has each exception, under the branch that it is of."""
    tree = (errors.__doc__ or "").partition("```\n")[2].partition("```")[0]
    for name in NAMES:
        kind = getattr(errors, name)
        if issubclass(kind, Exception):
            assert name in tree.replace(",", " ").split()


def test_the_faults_of_a_commit_come_when_they_are_asked_for() -> None:
    """Every public name is found, though not all are loaded with the module; no other is."""
    assert [name for name in NAMES if not hasattr(errors, name)] == []
    assert not hasattr(errors, "NoSuchFault")
