"""The exceptions themselves: whose fault, and what survives a process boundary."""

from __future__ import annotations

import inspect
import pickle

import pytest

from lutum_py import errors

KINDS = [
    (errors.InvalidArguments, "invalid_arguments", "Invalid arguments: why"),
    (errors.ExecutionFailed, "execution_failed", "Execution failed: why"),
    (errors.Denied, "denied", "Denied: why"),
    (errors.NotFound, "not_found", "Not found: why"),
    (errors.Internal, "internal", "Internal error: why"),
    (errors.TimedOut, "timed_out", "Timeout: why"),
    (errors.Cancelled, "cancelled", "Cancelled: why"),
]


@pytest.mark.parametrize(("kind", "code", "text"), KINDS)
def test_a_tool_error_has_a_stable_code_and_text(
    kind: type[errors.ToolError], code: str, text: str
) -> None:
    """Each kind of tool error keeps its code and the words in front of the reason."""
    error = kind("why")
    assert (error.code, str(error), error.reason) == (code, text, "why")


@pytest.mark.parametrize(("kind", "code", "text"), KINDS)
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
    for name in errors.__all__:
        kind = getattr(errors, name)
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind is not errors.LutumError:
            assert issubclass(kind, errors.LutumError)
            assert sum(issubclass(kind, branch) for branch in branches) == 1, name


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownToolError("no", name="x", suggestion="y"),
        errors.InvalidArgumentsError("no", tool="x", call_id="c"),
        errors.ToolInputError("no", tool="x"),
        errors.ToolOutputError("no", tool="x"),
        errors.DuplicateToolCallIdError("no", call_id="c"),
        errors.DialectError("no", dialect="d", where="w"),
        errors.HookError("no", hook="h", tool="t", call_id="c"),
    ],
)
def test_every_error_survives_a_process_boundary(error: errors.LutumError) -> None:
    """An error that is pickled comes back with its text and what it knows."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
