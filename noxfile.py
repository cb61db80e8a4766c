"""A first run of the checks, `python -m nox`; all that a change must pass, also `-t full`."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any, Final

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
# Installing compiles nothing: what keeps no compiled modules would compile them in each process.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PROJECT: Final[dict[str, Any]] = nox.project.load_toml("pyproject.toml")
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = (
    "jsonschema",
    "rich",
    "openai",
    "anthropic",
    "gemini",
    "bedrock",
    "cli",
    "mcp",
    "code",
    "otel",
    "postgres",
    "testing",
)
"""The extras that the tests use: all of them."""
FIRST: Final = ("testing", "cli", "mcp", "code", "jsonschema")
"""The extras of a first run: the tests of the others are skipped there."""
PARALLEL: Final = ("-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
"""A process for each core: `auto` would count two threads of a core as one."""
DOCS_SCRIPTS: Final = sorted(str(path) for path in Path("docs").glob("*.py"))
"""What builds the site and checks it."""
MEETING_DEPENDENCIES: Final = (
    "tests/call",
    "tests/cli",
    "tests/code",
    "tests/declare",
    "tests/examples/test_dbos_desk.py",
    "tests/examples/test_inbox.py",
    "tests/examples/test_temporal_desk.py",
    "tests/dialects/test_schema.py",
    "tests/dialects/test_schema_gemini.py",
    "tests/dialects/test_schema_strict.py",
    "tests/models",
    "tests/mcp",
    "tests/otel",
    "tests/schema",
    "tests/store/test_claims.py",
    "tests/store/test_conversations.py",
    "tests/store/test_databases.py",
    "tests/test_display.py",
    "tests/test_sinks.py",
    "tests/testing",
)
"""The tests of what calls pydantic, an SDK or another dependency."""
MEETING_INSTALLATION: Final = (
    "tests/cli/test_command.py",
    "tests/cli/test_loading.py",
    "tests/cli/test_main_module.py",
    "tests/cli/test_page.py",
    "tests/examples/test_file_agent.py",
    "tests/test_facade.py",
    "tests/testing/test_lazy_names.py",
    "tests/testing/test_pytest_plugin.py",
)
"""The tests of the command, the plugin, an example and imports."""
PEERS: Final = {
    "lutum_py": (".[openai,anthropic]",),
    "pydantic_ai": ("pydantic-ai-slim[openai,anthropic]",),
    "openai_agents": ("openai-agents",),
    "langchain_core": ("langchain-core", "langchain-openai", "langchain-anthropic"),
    "llm": ("llm", "llm-anthropic"),
}
"""The libraries that are measured side by side, and what installs them with models of providers."""

DESKS: Final = {
    "examples/desk/support.py": (".",),
    "docs/comparison/desk_pydantic_ai.py": ("pydantic-ai-slim==2.68.0",),
    "docs/comparison/desk_openai_agents.py": ("openai-agents==0.24.0",),
    "docs/comparison/desk_langchain.py": (
        "langchain==1.4.7",
        "langgraph==1.2.22",
        "langgraph-checkpoint-sqlite",
    ),
    "docs/comparison/desk_mirascope.py": ("mirascope[openai]==2.8.2",),
}
"""One program in five libraries, and what installs them: see docs/comparison.md."""


def runs(version: str) -> bool:
    """Tell whether this Python starts: a version manager may keep a command that only complains."""
    command = shutil.which(f"python{version}")
    if command is None:
        return False
    tells = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [command, "-c", tells], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.strip() == version


RUNNING: Final = "{}.{}".format(*sys.version_info[:2])
OTHERS: Final = [version for version in SUPPORTED if version != RUNNING and runs(version)]
OLDEST: Final = next((version for version in OTHERS if version < RUNNING), None)
"""The oldest Python that is here, or None if that is the running one."""
NEWEST: Final = max([RUNNING, *OTHERS], key=lambda version: int(version.partition(".")[2]))
"""The newest Python that is here."""


def group(*names: str) -> tuple[str, ...]:
    """Give the requirements of dependency groups."""
    return nox.project.dependency_groups(PROJECT, *names)


def package(*extras: str) -> str:
    """Name the source tree with extras, as pip takes it."""
    return f".[{','.join(extras)}]" if extras else "."


def lowest(requirements: list[str]) -> list[str]:
    """Turn each `name>=version` into `name==version`."""
    parsed = [Requirement(text) for text in requirements]
    return [f"{one.name}=={bound.version}" for one in parsed for bound in one.specifier]


def install(session: nox.Session, *requirements: str) -> None:
    """Install without compiling what is never imported: it takes half the time."""
    session.install("--no-compile", *requirements)


def test(session: nox.Session, *arguments: str) -> None:
    """Run tests on all cores, or as the command line asks."""
    session.run("python", "-m", "pytest", *(session.posargs or (*PARALLEL, *arguments)))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests that are quick and want no SDK of a provider, and say what was skipped."""
    install(session, "-e", package(*FIRST), *group("test"))
    test(session, "--no-slow")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format, that imports run one way, and which tests look inside."""
    install(session, *group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    # Imports are read, not run, so none of the dependencies has to be here.
    session.run("lint-imports", env={"PYTHONPATH": "."})
    session.run("python", "-P", "tests/check_private_imports.py")
    session.run("python", "-P", "tests/check_edges.py")


@nox.session(default=False, tags=["full", "all_cores"], python=NEWEST)
def coverage(session: nox.Session) -> None:
    """Run all tests on the newest Python that is here; every branch must be covered.

    The first run and the lowest versions try the oldest. The recordings of providers are left out,
    so that what is covered is the same everywhere.
    """
    install(session, "-e", package(*EXTRAS), *group("full"))
    session.env.setdefault("HYPOTHESIS_PROFILE", "ci")
    session.env["LUTUM_RECORDINGS"] = ""
    if session.posargs:
        test(session)
        return
    session.run("coverage", "erase")
    # The guard counts instructions, also those of who measures; the first run counts them alone.
    guard = "--ignore=tests/test_performance_guard.py"
    session.run("coverage", "run", "-m", "pytest", *PARALLEL, guard)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(default=False, tags=["full", "one_core"])
def typing(session: nox.Session) -> None:
    """Check types, and that four checkers see the typed idioms alike."""
    install(session, "-e", package(*EXTRAS), *group("typing"))
    session.run("mypy", "lutum_py", "tests", "examples", "noxfile.py", *DOCS_SCRIPTS)
    session.run("pyright")
    session.run("pyright", "--verifytypes", "lutum_py", "--ignoreexternal")
    session.run("python", "tests/typing/check_idioms.py")


@nox.session(default=False, tags=["full", "one_core"])
def docs(session: nox.Session) -> None:
    """Run every block of the README and the docs and each docstring; build the site strictly."""
    install(session, "-e", package(*EXTRAS), *group("docs"))
    session.run("python", "-W", "error", "docs/run_blocks.py", *session.posargs)
    if not session.posargs:
        # The examples of the exceptions share names, which their own test gives them.
        exceptions = "--ignore=lutum_py/errors/__init__.py"
        session.run("python", "-m", "pytest", "-q", "--doctest-modules", "lutum_py", exceptions)
        # Not `--quiet`: it hides warnings from `--strict` as well.
        session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
        session.run("python", "docs/check_reference.py", "site")


@nox.session(default=False, python=OTHERS or False)
def tests_everywhere(session: nox.Session) -> None:
    """Run the tests on each other Python that is here, without the slow ones."""
    if not OTHERS:
        session.skip(f"of {', '.join(SUPPORTED)}, only Python {RUNNING} is here")
    install(session, "-e", package(*EXTRAS), *group("full"))
    session.env.setdefault("HYPOTHESIS_PROFILE", "again")
    test(session, "--no-slow")


@nox.session(default=False, tags=["full", "all_cores"], python=OLDEST)
def minimums(session: nox.Session) -> None:
    """Run what meets a dependency, with the lowest versions that are declared.

    What is left out meets none but through what is tested here: the life of rounds, hooks, runs and
    stores, the wire forms, and the recordings, which know types that the lowest SDKs do not.
    """
    extras = PROJECT["project"]["optional-dependencies"]
    requirements = [*PROJECT["project"]["dependencies"], *group("examples")]
    for key in EXTRAS:
        requirements.extend(extras[key])
    install(session, "-e", package(*EXTRAS), *lowest(requirements), *group("full"))
    session.env.setdefault("HYPOTHESIS_PROFILE", "again")
    # The lowest SDKs do not know the tools that a provider searches; driving a loop meets nothing.
    left_out = (
        "models/test_many_tools",
        "testing/test_check_loop",
        "testing/test_check_plain_loop",
    )
    ignored = [f"--ignore=tests/{each}.py" for each in left_out]
    test(session, *MEETING_DEPENDENCIES, *ignored, "--no-slow")


@nox.session(default=False, tags=["full", "one_core"])
def wheel(session: nox.Session) -> None:
    """Check what a release uploads, and test the built wheel out of reach of the source tree.

    The first example runs with the wheel and its dependencies alone.
    The files of the wheel are compared with the source, so their code need not be tested again.
    What can differ is what installing makes: metadata, commands, plugins, the place of the files.
    """
    install(session, *group("release"))
    with tempfile.TemporaryDirectory() as name:
        built, outside = Path(name, "built"), Path(name, "outside")
        # The wheel is built from the source distribution, which is thereby tried as well.
        session.run("python", "-m", "build", "--outdir", str(built), silent=True)
        session.run("python", "-P", "tests/check_distributions.py", str(built))
        session.run("twine", "check", "--strict", *map(str, built.iterdir()))
        (file,) = built.glob("*.whl")
        bare = Path(name, "bare")
        session.run("python", "-m", "venv", str(bare))
        python = str(bare / "bin" / "python")
        session.run(python, "-m", "pip", "install", "--quiet", str(file), external=True)
        first = [python, "-W", "error", "examples/file_agent.py"]
        session.run(*first, silent=True, external=True)
        # The version is the same from build to build, so pip must be told to take this one.
        install(session, "--force-reinstall", "--no-deps", str(file))
        install(session, f"lutum-py[{','.join(EXTRAS)}] @ {file.as_uri()}", *group("full"))
        for folder in ("docs", "examples", "tests"):
            # Compiled modules come and go while tests run beside.
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(folder, outside / folder, ignore=compiled)
        shutil.copy("pyproject.toml", outside)
        with session.chdir(outside):
            test(session, *MEETING_INSTALLATION)


@nox.session(default=False)
def soak(session: nox.Session) -> None:
    """Try what takes hours, in rounds with a seed each: `nox -s soak -- MINUTES`."""
    install(session, "-e", package(*EXTRAS), *group("full"))
    minutes = float(session.posargs[0]) if session.posargs else 60
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        seed = str(secrets.randbits(32))
        env = {"HYPOTHESIS_PROFILE": "soak", "LUTUM_SOAK_SEED": seed}
        for folder, chosen in (("tests/soak", ()), ("tests", ("-m", "hypothesis"))):
            laws = (*chosen, f"--hypothesis-seed={seed}", folder)
            session.run("python", "-m", "pytest", "-q", *PARALLEL, *laws, env=env)


@nox.session(default=False)
@nox.parametrize("desk", [nox.param(desk, id=Path(desk).stem) for desk in DESKS])
def compare(session: nox.Session, desk: str) -> None:
    """Run one support desk, then kill it at each of its lines, and say what came of it."""
    session.install(*DESKS[desk])
    session.run("python", "docs/comparison/measure.py", desk)


@nox.session(default=False)
def conformance(session: nox.Session) -> None:
    """Run suites that others wrote, fetched for the run, and write docs/third-party-suites.md."""
    install(
        session,
        "-e",
        package(*FIRST, "anthropic", "openai", "otel"),
        *group("conformance", "agentdojo"),
    )
    session.run("python", "-m", "tests.conformance", "docs/third-party-suites.md")
    session.run("python", "-m", "pytest", "-q", "tests/benchmarks", "tests/conformance")


@nox.session(default=False, python=NEWEST)
def mutants(session: nox.Session) -> None:
    """Change core and dialects in one place at a time; say which changes no test found.

    All of them take a day. `nox -s mutants -- --sample 500 --seed 1 'lutum_py.dialects.*'` draws
    some of those whose names fit; the same seed draws the same of the same code. The newest Python
    runs it, because CPython 3.11 has crashed under the tool.
    """
    parser = argparse.ArgumentParser(prog="nox -s mutants --")
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(session.posargs)
    install(session, "-e", package(*EXTRAS), *group("mutants"))
    env = {"HYPOTHESIS_PROFILE": "quick"}
    # No change has this name, so that it ends when all are made and the tests are timed.
    said = session.run("mutmut", "run", "-", silent=True, success_codes=[1], env=env)
    if "nothing matches" not in str(said):
        session.error(f"{said}\nThe tests must pass before anything is changed.")
    names = sorted(
        name
        for name in outcomes(session)
        if any(fnmatchcase(name, pattern) for pattern in asked.patterns)
    )
    if not names:
        session.error(f"no change has a name like {' or '.join(asked.patterns)}")
    if asked.sample is not None:
        names = Random(asked.seed).sample(names, min(asked.sample, len(names)))
    for at in range(0, len(names), AT_ONCE):
        session.run("mutmut", "run", *names[at : at + AT_ONCE], silent=True, env=env)
    found = outcomes(session)
    for name in sorted(names):
        if found[name] not in FOUND:
            session.log(f"{found[name]}: {name}")
    killed = sum(found[name] in FOUND for name in names)
    session.log(f"{killed} of {len(names)} were found ({killed / len(names):.1%})")


AT_ONCE: Final = 2_000
"""So many names of changes go into one command: a system takes no longer one."""
FOUND: Final = ("killed", "timeout")
"""What becomes of a change that a test finds: it fails, or never ends."""


def outcomes(session: nox.Session) -> dict[str, str]:
    """Give what became of each change, by its name."""
    listed = str(session.run("mutmut", "results", "--all", "true", silent=True))
    entries = (line.strip().rpartition(": ") for line in listed.splitlines())
    return {name: outcome for name, _, outcome in entries if name.startswith("lutum_py.")}


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Print what the library costs: with `-- --peers` what others cost, `-- store` the store."""
    if "store" in session.posargs:
        session.install("-e", package("postgres", "testing"), *group("examples"))
        session.run("python", "-m", "tests.benchmarks", *session.posargs)
        return
    session.install("-e", package())
    options = [one for one in session.posargs if one != "--peers"]
    if "--peers" not in session.posargs:
        session.run("python", "-m", "tests.benchmarks", *options)
        return
    figures = bench_figures(session)
    shutil.rmtree(figures, ignore_errors=True)
    figures.mkdir(parents=True)
    own = figures / "own.json"
    session.run("python", "-m", "tests.benchmarks", *options, "--json", str(own))
    for peer in PEERS:
        session.notify(f"bench_peer({peer})", options)
    session.notify("bench_table", [])


@nox.session(default=False)
@nox.parametrize("peer", [nox.param(peer, id=peer) for peer in PEERS])
def bench_peer(session: nox.Session, peer: str) -> None:
    """Measure one library, in an environment of its own (`nox -s bench -- --peers` asks for it)."""
    try:
        session.install(*PEERS[peer])
    except nox.command.CommandFailed:
        session.skip(f"{' and '.join(PEERS[peer])} cannot be installed here, so it is not measured")
    figures = bench_figures(session) / f"{peer}.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    options = [*session.posargs, "--json", str(figures)]
    session.run("python", "-m", "tests.benchmarks.peers", peer, *options)


@nox.session(default=False, venv_backend="none")
def bench_table(session: nox.Session) -> None:
    """Print what was measured side by side (`nox -s bench -- --peers` asks for it)."""
    table = "tests.benchmarks.peers.table"
    session.run(sys.executable, "-m", table, str(bench_figures(session)), external=True)


def bench_figures(session: nox.Session) -> Path:
    """Name the folder where the sessions of one run leave their figures."""
    return Path(session.cache_dir, "bench")
