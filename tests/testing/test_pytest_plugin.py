"""The laws of the pytest plugin: there when asked for, and not to be noticed otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import lutum_py
import lutum_py.testing

pytest_plugins = ["pytester"]

# The plugin may be installed as an entry point too: it is loaded once, under one name.
ALONE = ("-p", "no:lutum_py", "-p", "no:asyncio", "-p", "lutum_py.testing.pytest_plugin")
ROOT = Path(__file__).resolve().parents[2]

# A run inside this process takes out of it what it was the first to import. A name that the façade
# of the package found meanwhile would be another class than the one that the next run imports.
for package in (lutum_py, lutum_py.testing):
    for name in package.__all__:
        getattr(package, name)

TOOLS = """
    from lutum_py import Finished, NeedsTools, Session, Toolset, tool, tool_fn

    @tool_fn
    def forecast(city: str) -> str:
        return "sunny"

    class Tools(Toolset):
        forecast = tool(forecast)

    def loop(session, model, discard=False):
        while True:
            match session.text_turn(model).tools(Tools).collect_sync():
                case NeedsTools(round):
                    if discard:
                        round.discard()
                        session.push_user("Again")
                    else:
                        round.commit(session, [call.call_sync() for call in round.tool_calls])
                case Finished(result):
                    return result.text
"""


def test_the_fixtures_give_the_kit(pytester: pytest.Pytester) -> None:
    """Each fixture gives what `lutum_py.testing` has under its name."""
    pytester.makepyfile(
        TOOLS
        + """
    def test_model(scripted_model, assert_transcript_valid):
        call = scripted_model.tool_calls(("c1", "forecast", {"city": "Oslo"}))
        model = scripted_model([call, scripted_model.text("Done.")])
        session = Session()
        assert loop(session, model) == "Done."
        assert_transcript_valid(session)
        assert len(model.requests) == 2

    def test_client(scripted_client, scripted_model):
        client = scripted_client([scripted_model.text("Hi")], "openai_chat", check=False)
        assert client.create(messages=[])["choices"]

    def test_loop(check_loop):
        check_loop(loop, Tools, examples=10)
    """
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=3)


def test_a_script_has_to_be_used_up(pytester: pytest.Pytester) -> None:
    """A test that passes but leaves turns is an error; one that fails anyway is not told twice."""
    pytester.makepyfile(
        """
    def test_leaves_turns(scripted_model):
        scripted_model([scripted_model.text("Hi")])

    def test_fails(scripted_model):
        scripted_model([scripted_model.text("Hi")])
        assert False
    """
    )
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*The loop ended after 0 of 1 turns of the script*"])


def test_a_failure_points_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    """What is shown of a failure is the user's own line and the message, not the kit's insides."""
    pytester.makepyfile(
        TOOLS
        + """
    def test_loop(check_loop):
        check_loop(lambda session, model: loop(session, model, discard=True), Tools)

    def test_transcript(assert_transcript_valid):
        assert_transcript_valid([{"role": "tool", "content": "x"}], "openai_chat")
    """
    )
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            ">*check_loop(lambda session, model: loop(session, model, discard=True), Tools)",
            "E*LoopFailure: The loop went wrong:",
            "E*- lost_call: Of turn 1 nothing of it is in the conversation*",
            ">*assert_transcript_valid(*",
            "E*AssertionError: The conversation is invalid as openai_chat, in 1 place:",
        ]
    )
    result.stdout.no_fnmatch_line("*_search(run*")
    result.stdout.no_fnmatch_line("*transcript_problems(conversation*")


def test_the_marker_and_the_option_set_what_is_tried(pytester: pytest.Pytester) -> None:
    """The nearest marker wins over farther ones, the call over markers, the option over all."""
    pytester.makepyfile(
        TOOLS
        + """
    import pytest

    pytestmark = pytest.mark.lutum_loop(examples=20, odd_ids=False, max_turns=1)
    seen = []

    def counting(session, model):
        seen.append(1)
        loop(session, model)

    @pytest.mark.lutum_loop(examples=7)
    def test_marker(check_loop):
        check_loop(counting, Tools)
        assert len(seen) == 7

    def test_call(check_loop):
        seen.clear()
        check_loop(counting, Tools, examples=5)
        assert len(seen) == 5
    """
    )
    pytester.runpytest_inprocess(*ALONE, "--strict-markers").assert_outcomes(passed=2)
    forced = pytester.runpytest_inprocess(*ALONE, "--lutum-examples=3")
    forced.assert_outcomes(failed=2)
    forced.stdout.fnmatch_lines(["*assert 3 == 7*", "*assert 3 == 5*"])


def test_a_marker_without_names_is_refused(pytester: pytest.Pytester) -> None:
    """`lutum_loop(500)` is told how it is written, and does not try the usual hundred scripts."""
    pytester.makepyfile(
        TOOLS
        + """
    import pytest

    @pytest.mark.lutum_loop(500)
    def test_marker(check_loop):
        check_loop(loop, Tools)
    """
    )
    ran = pytester.runpytest_inprocess(*ALONE)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(
        ["*takes options by name, as in `lutum_loop(examples=500)`, not 500.*"]
    )


def test_pytest_tells_what_is_added(pytester: pytest.Pytester) -> None:
    """The option, the marker and the fixtures are described where pytest describes them."""
    shown = {
        "--help": ["tool loops (lutum_py):", "*--lutum-examples=N*"],
        "--markers": ["@pytest.mark.lutum_loop(**options): options for every use of*"],
        "--fixtures": [
            "scripted_model*",
            "*a model that answers from a script*",
            "scripted_client*",
            "assert_transcript_valid*",
            "check_loop*",
            "*drive a loop with all that a model may send*",
        ],
    }
    for option, lines in shown.items():
        pytester.runpytest_inprocess(*ALONE, option).stdout.fnmatch_lines(lines)


def run(*code: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
    )


HEAVY = ("hypothesis", "pydantic", "pydantic_core", "jsonschema", "lutum_py.errors")


def test_loading_the_plugin_loads_little() -> None:
    """Importing the plugin imports pytest, and neither Hypothesis nor pydantic."""
    code = (
        "import sys, pytest; before = set(sys.modules); import lutum_py.testing.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    added = run("-c", code).stdout.split()
    lazy = ["lutum_py._text", "lutum_py._text.on_demand"]
    assert added == ["lutum_py", *lazy, "lutum_py.testing", "lutum_py.testing.pytest_plugin"]
    assert not set(added) & set(HEAVY)


def test_a_project_that_uses_nothing_is_left_alone(pytester: pytest.Pytester) -> None:
    """In a run that asks for no fixture, nothing more is loaded, and warnings stay errors."""
    pytester.makepyfile(
        """
    import sys

    def test_own():
        assert not [name for name in ("hypothesis", "pydantic") if name in sys.modules]
    """
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", *ALONE, str(pytester.path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
    )
    assert (found.returncode, found.stderr) == (0, ""), found.stdout


@pytest.mark.skipif(
    find_spec("coverage") is None,
    reason="coverage is not installed: python -m pip install --group full",
)
def test_it_runs_under_coverage(pytester: pytest.Pytester) -> None:
    """Under `coverage run -m pytest` the plugin works, and is measured from its first line."""
    pytester.makepyfile(
        """
    def test_own(scripted_model):
        assert scripted_model.text("Hi").text == "Hi"
    """
    )
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    measured = ["-m", "coverage", "run", "--source=lutum_py.testing", "-m", "pytest", "-q"]
    started = subprocess.run(
        [sys.executable, *measured, *ALONE, str(pytester.path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
        env=env,
    )
    assert started.returncode == 0, started.stdout + started.stderr
    assert "already imported" not in started.stderr
    report = subprocess.run(
        [sys.executable, "-m", "coverage", "report", "-m", "--include=*/pytest_plugin.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=pytester.path,
        env=env,
    )
    missing = report.stdout.splitlines()[2].partition("%")[2]
    first = missing.split(",")[0].strip().partition("-")[0]
    assert int(first) > 50, report.stdout
