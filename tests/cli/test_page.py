"""The page on the command line shows what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "command-line.md"
BLOCK = re.compile(r"```(python|console)(?: title=\"(.*?)\")?\n(.*?)```\n", re.DOTALL)


def outputs_in(folder: Path, text: str) -> str:
    """Run the blocks of a page in order, and give the page with what its commands print."""
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    python = shlex.quote(sys.executable)
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    # A pipe has no width but for what whoever runs the tests may have set.
    environment.pop("COLUMNS", None)

    def run(block: re.Match[str]) -> str:
        if block[1] == "python":
            file = folder / (block[2] or "block.py")
            file.write_text(block[3], encoding="utf-8")
            subprocess.run([sys.executable, file], cwd=folder, env=environment, check=True)
            return block[0]
        shown = ""
        for command in [line for line in block[3].splitlines() if line.startswith("$ ")]:
            ran = subprocess.run(
                ["bash", "-c", f'lutum() {{ {python} -m lutum_py "$@"; }}; {command[2:]}'],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                check=False,
            )
            shown += f"{command}\n{ran.stdout}"
        return f"```console\n{shown}```\n"

    return BLOCK.sub(run, text)


TICKET: Final = re.compile("( ticket +)[0-9a-f]{32}")


@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    """Each output on the page is what its command prints, when all are typed in order."""
    if not PAGE.exists():
        pytest.skip(f"the documentation is not beside the tests: {PAGE}")
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("$ lutum ") > 5
    # A ticket has another id each time.
    told, kept = (TICKET.sub(r"\1", each) for each in (outputs_in(tmp_path, text), text))
    assert told == kept
