"""Check what a release would upload: `python tests/check_distributions.py DIST`.

The wheel must hold the package and nothing else, the source distribution all that builds and tests
it, and both the version that the source names.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = frozenset(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "lutum_py").rglob("*")
    if path.suffix == ".py" or path.name == "py.typed"
)
LICENCES: Final = ("LICENSE-APACHE", "LICENSE-MIT")
PROJECT: Final = (
    *LICENCES,
    "AGENTS.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "mkdocs.yml",
    "noxfile.py",
    "pyproject.toml",
)
FOLDERS: Final = ("docs/", "examples/", "lutum_py/", "tests/")
UNWANTED: Final = re.compile(r"(^|/)(__pycache__|\.[^/]*|site|build|dist)(/|$)|\.py[cod]$")


def version_of_source() -> str:
    """Read the version where it is written, without importing the package."""
    text = (ROOT / "lutum_py" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__(?:: Final)? = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError("lutum_py/__init__.py names no version")
    return found[1]


def faults_of_wheel(path: Path, version: str) -> list[str]:
    """List what is wrong with the wheel."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = f"lutum_py-{version}.dist-info"
        metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        scripts = wheel.read(f"{info}/entry_points.txt").decode()
    wanted = SOURCE | {
        f"{info}/{name}"
        for name in (
            "METADATA",
            "RECORD",
            "WHEEL",
            "entry_points.txt",
            *(f"licenses/{name}" for name in LICENCES),
        )
    }
    faults = [f"{path.name} lacks {name}" for name in sorted(wanted - names)]
    faults += [f"{path.name} should not hold {name}" for name in sorted(names - wanted)]
    if "lutum = lutum_py.cli:main" not in scripts:
        faults.append(f"{path.name} does not install the command `lutum`")
    return faults + faults_of_metadata(path.name, metadata, version)


def faults_of_sdist(path: Path, version: str) -> list[str]:
    """List what is wrong with the source distribution."""
    top = f"lutum_py-{version}/"
    with tarfile.open(path) as sdist:
        members = [one.name for one in sdist.getmembers() if one.isfile()]
        strays = [name for name in members if not name.startswith(top)]
        file = sdist.extractfile(f"{top}PKG-INFO")
        if file is None:
            raise ValueError(f"{path.name} has no PKG-INFO")
        metadata = Parser().parsestr(file.read().decode())
    names = {name.removeprefix(top) for name in members}
    faults = [f"{path.name} lacks {name}" for name in sorted({*SOURCE, *PROJECT} - names)]
    allowed = {*PROJECT, "PKG-INFO", ".gitignore"}
    strays += [
        name for name in names - allowed if UNWANTED.search(name) or not name.startswith(FOLDERS)
    ]
    faults += [f"{path.name} should not hold {name}" for name in sorted(strays)]
    return faults + faults_of_metadata(path.name, metadata, version)


def faults_of_metadata(name: str, metadata: Message, version: str) -> list[str]:
    """List what is wrong with what the index would show."""
    wanted = {
        "Name": "lutum-py",
        "Version": version,
        "License-Expression": "MIT OR Apache-2.0",
        "Requires-Python": ">=3.11",
        "Description-Content-Type": "text/markdown",
    }
    faults = [
        f"{name}: {key} is {metadata[key]!r}, not {value!r}"
        for key, value in wanted.items()
        if metadata[key] != value
    ]
    described = str(metadata.get_payload())
    # On an index there is no folder beside the page for a relative link to lead to.
    relative = re.findall(r"(?:\]\(|src(?:set)?=\")(?!https?://|#)([^)\"]+)", described)
    return faults + [f"{name}: the description links to {each}" for each in relative]


def main() -> int:
    """Check the distributions in a folder, and print every fault."""
    (folder,) = map(Path, sys.argv[1:])
    version = version_of_source()
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        print(f"{folder} should hold one wheel and one source distribution")
        return 1
    faults = faults_of_wheel(wheels[0], version) + faults_of_sdist(sdists[0], version)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{wheels[0].name} and {sdists[0].name} hold what they should")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
