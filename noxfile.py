"""What a change must pass: `python -m nox` runs it all, with whichever Pythons are here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"

PROJECT: Final[dict[str, Any]] = nox.project.load_toml("pyproject.toml")
SUPPORTED: Final = ("3.11", "3.12", "3.13")
EXTRAS: Final = (
    "jsonschema",
    "rich",
    "openai",
    "anthropic",
    "gemini",
    "cli",
    "otel",
    "testing",
    "examples",
)
"""The extras that the tests use: all of them."""
CLIENTS: Final = ("openai", "anthropic", "gemini")
"""The extras that are official SDKs."""
DOCS_SCRIPTS: Final = sorted(str(path) for path in Path("docs").glob("*.py"))
"""What builds the site and checks it."""
PEERS: Final = {
    "lutum_py": ".",
    "pydantic_ai": "pydantic-ai-slim",
    "openai_agents": "openai-agents",
    "langchain_core": "langchain-core",
    "llm": "llm",
}
"""The libraries that are measured side by side, and what installs them."""


def runs(version: str) -> bool:
    """Tell whether this Python starts: a version manager may keep a command that only complains."""
    if version == RUNNING:
        return True
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
PYTHONS: Final = [version for version in SUPPORTED if runs(version)] or [RUNNING]


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


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests; on the newest Python every branch must be covered."""
    session.install("-e", package(*EXTRAS), *group("test"))
    if session.python != PYTHONS[-1] or session.posargs:
        session.run("python", "-m", "pytest", *session.posargs)
        return
    session.run("coverage", "run", "-m", "pytest")
    session.run("coverage", "report")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typing(session: nox.Session) -> None:
    """Check types, and that four checkers see the typed idioms alike."""
    session.install("-e", package(*EXTRAS), *group("typing"))
    session.run("mypy", "lutum_py", "tests", "examples", "noxfile.py", *DOCS_SCRIPTS)
    session.run("pyright")
    session.run("python", "tests/typing/check_idioms.py")


@nox.session(python=PYTHONS[0])
def minimums(session: nox.Session) -> None:
    """Run the tests with the lowest versions that are declared.

    The recordings know types that the lowest SDKs do not, so those meet their own tests only.
    """
    extras = PROJECT["project"]["optional-dependencies"]
    core = [*PROJECT["project"]["dependencies"]]
    clients: list[str] = []
    for key in EXTRAS:
        (clients if key in CLIENTS else core).extend(extras[key])
    session.install("-e", package(*EXTRAS), *lowest([*core, *clients]), *group("test"))
    session.run("python", "-m", "pytest", *(session.posargs or ["tests/models"]))
    session.install("--upgrade", *clients, *lowest(core))
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Check what a release uploads, and test the built wheel out of reach of the source tree."""
    session.install(*group("release"))
    with tempfile.TemporaryDirectory() as name:
        built, outside = Path(name, "built"), Path(name, "outside")
        # The wheel is built from the source distribution, which is thereby tried as well.
        session.run("python", "-m", "build", "--outdir", str(built), silent=True)
        session.run("python", "tests/check_distributions.py", str(built))
        session.run("twine", "check", "--strict", *map(str, built.iterdir()))
        (file,) = built.glob("*.whl")
        # The version is the same from build to build, so pip must be told to take this one.
        session.install("--force-reinstall", "--no-deps", str(file))
        session.install(f"lutum-py[{','.join(EXTRAS)}] @ {file.as_uri()}", *group("test"))
        for folder in ("docs", "examples", "tests"):
            shutil.copytree(folder, outside / folder)
        shutil.copy("pyproject.toml", outside)
        with session.chdir(outside):
            session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Run every fenced Python block of the README and the docs, and build the site strictly."""
    session.install("-e", package(*EXTRAS), *group("docs"))
    session.run("python", "-W", "error", "docs/run_blocks.py", *session.posargs)
    if not session.posargs:
        # Not `--quiet`: it hides warnings from `--strict` as well.
        session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
        session.run("python", "docs/check_reference.py", "site")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Print what the library costs; with `-- --peers`, also what others cost."""
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
        session.install(PEERS[peer])
    except nox.command.CommandFailed:
        session.skip(f"{PEERS[peer]} cannot be installed here, so it is not measured")
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
