"""Make the pictures of the README anew, from real runs: `python docs/pictures.py`.

`images/file_agent.svg` is what `examples/file_agent.py` prints at a terminal; `images/inbox-*.png`
are a page of `examples/inbox` in Chromium, light and dark; `images/loop-*.svg` is the first drawing
of the site. Nothing is drawn by hand.
"""

from __future__ import annotations

import base64
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drawings import loop

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "images"
COLUMNS: Final = 86
LINES: Final = 41
"""So many lines of the agent are in the picture; the answer goes on."""
WIDTH: Final = 1000
HEIGHT: Final = 830
LARGEST: Final = 150_000


LOOP: Final = {"light": ("#222", "#777", "#fff"), "dark": ("#ddd", "#999", "#1f2328")}
"""The colours of text, lines and boxes."""


def loop_picture(scheme: str) -> str:
    """Give the drawing of the loop as a file of its own, in the colours of a scheme."""
    text, line, box = LOOP[scheme]
    style = (
        f"text{{font:14px sans-serif;text-anchor:middle;fill:{text}}}.strong{{font-weight:700}}"
        f'.label{{font-size:13px}}text[text-anchor="start"]{{text-anchor:start}}'
        f"rect{{fill:{box};stroke:{line};stroke-width:1.5}}.yours{{fill:#f9731626;stroke:#d9601a}}"
        f".arrow{{fill:none;stroke:{line};stroke-width:1.5}}.head{{fill:{line}}}"
    )
    head, _, rest = loop().partition(">")
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}><style>{style}</style>{rest}\n"


def printed() -> str:
    """Run the agent at a terminal of its own, and give what it prints, colours included."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "examples/file_agent.py"]
    env = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, cwd=ROOT, env=env) as agent:
        os.close(theirs)
        parts: list[bytes] = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # Linux says so where the other end is closed
            pass
    os.close(ours)
    if agent.returncode:
        raise SystemExit(f"the agent ended with {agent.returncode}")
    return b"".join(parts).decode().replace(str(ROOT), "~/lutum_py")


def agent_picture() -> str:
    """Draw a terminal with what the agent printed."""
    lines = [line.rpartition("\r\x1b[K")[2] for line in printed().replace("\r\n", "\n").split("\n")]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(["$ python examples/file_agent.py", *lines[:LINES]])))
    # A picture fetches no fonts.
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    drawn = console.export_svg(title="file_agent.py", code_format=without_fonts, unique_id="agent")
    return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE) + "\n"


def browser(folder: Path) -> Chrome:
    """Start Chromium."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for option in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(option)
    return Chrome(options=options, service=Service(shutil.which("chromedriver")))


def inbox_pictures(folder: Path) -> dict[str, bytes]:
    """Open a call in the inbox, and take a picture in light and in dark."""
    app = [sys.executable, "examples/inbox/app.py", str(folder / "data"), "--port", "0"]
    found: dict[str, bytes] = {}
    with subprocess.Popen(app, stdout=subprocess.PIPE, text=True, cwd=ROOT) as served:
        chrome = browser(folder / "profile")
        try:
            assert served.stdout is not None
            address = served.stdout.readline().strip()
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.25, "mobile": False}
            chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            chrome.get(address)
            chrome.find_element(By.ID, "name").send_keys("Mia", Keys.ENTER)
            question = "Send “Order A-1042”"

            def is_there(driver: Chrome) -> bool:
                driver.get(address)
                return bool(driver.find_elements(By.PARTIAL_LINK_TEXT, question))

            WebDriverWait(chrome, 30).until(is_there)
            chrome.find_element(By.PARTIAL_LINK_TEXT, question).click()
            for scheme in ("light", "dark"):
                feature = {"name": "prefers-color-scheme", "value": scheme}
                chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
                taken = chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
                found[f"inbox-{scheme}.png"] = base64.b64decode(taken["data"])
        finally:
            chrome.quit()
            served.terminate()
            served.communicate()
    return found


def main() -> None:
    """Write all pictures."""
    for scheme in LOOP:
        drawn = loop_picture(scheme)
        (IMAGES / f"loop-{scheme}.svg").write_text(drawn, encoding="utf-8")
    (IMAGES / "file_agent.svg").write_text(agent_picture(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in inbox_pictures(Path(folder)).items():
            if len(data) > LARGEST:
                raise SystemExit(f"{name} has {len(data):,} bytes, more than {LARGEST:,}")
            (IMAGES / name).write_bytes(data)


if __name__ == "__main__":
    main()
