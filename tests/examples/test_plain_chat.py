"""The example of a dialect: the laws of all dialects are tested on it in `tests/dialects/`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "write-a-dialect.md"
FILE = re.compile(r'^```python title="(plain_chat/\w+\.py)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def test_the_page_shows_the_files() -> None:
    """What the page "Write a dialect" shows of a file is the file."""
    shown = FILE.findall(PAGE.read_text(encoding="utf-8"))
    assert shown
    for name, code in shown:
        assert (ROOT / "examples" / name).read_text(encoding="utf-8") == code


def test_a_loop_around_it_ends_with_an_answer() -> None:
    """The loop prints the conversation, and the page shows what it prints."""
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "plain_chat_loop.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed
    assert printed in PAGE.read_text(encoding="utf-8")
