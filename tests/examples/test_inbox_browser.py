"""The inbox as people use it: a real server, a real browser, and the worker beside it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any, Final

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

APP: Final = Path(__file__).resolve().parents[2] / "examples" / "inbox" / "app.py"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER: Final = shutil.which("chromedriver")
OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT: Final = 60.0

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no headless browser is here: apt-get install chromium chromium-driver",
)


@pytest.fixture
def served(in_memory: Path) -> Iterator[str]:
    """Start the example in a folder of its own, and give its address."""
    command = [sys.executable, str(APP), str(in_memory), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.communicate()


Open = Callable[[str], Chrome]


@pytest.fixture
def person(served: str, tmp_path: Path) -> Iterator[Open]:
    """Open a browser for somebody, each with cookies of their own."""
    browsers: list[Chrome] = []

    def open_for(name: str) -> Chrome:
        options = ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for option in (*OPTIONS, f"--user-data-dir={tmp_path / name}"):
            options.add_argument(option)
        browser = Chrome(options=options, service=Service(DRIVER))
        browsers.append(browser)
        browser.implicitly_wait(WAIT)  # a click is over before the page that it leads to is there
        browser.get(served)
        browser.find_element(By.ID, "name").send_keys(name, Keys.ENTER)
        wait_for(lambda: "for a decision" in heading(browser))
        wait_for(lambda: look_again(browser) == "5 calls wait for a decision")
        return browser

    yield open_for
    for browser in browsers:
        browser.quit()


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait while a page is being left for another, and while the worker works."""
    asked: Any = is_so
    WebDriverWait(asked, WAIT, 0.05, [WebDriverException]).until(lambda _: is_so())


def heading(browser: Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "h1").text


def look_again(browser: Chrome) -> str:
    browser.find_element(By.LINK_TEXT, "Look again").click()
    return heading(browser)


def text(browser: Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "main").text


def open_call(browser: Chrome, question: str) -> None:
    browser.find_element(By.PARTIAL_LINK_TEXT, question).click()
    wait_for(lambda: question in heading(browser))


def press(browser: Chrome, label: str) -> None:
    browser.find_element(By.XPATH, f"//button[.='{label}'] | //a[.='{label}']").click()


def done(folder: Path) -> list[str]:
    with closing(connect(folder / "office.db", timeout=30)) as books:
        return [what for (what,) in books.execute("SELECT what FROM done")]


def test_two_people_at_once(person: Open, in_memory: Path) -> None:
    """Both have the page open: one decides, the other is told by whom and when."""
    mia, tom = person("Mia"), person("Tom")
    for browser in (mia, tom):
        open_call(browser, "Refund 129.00 EUR")
    press(mia, "Approve")
    wait_for(lambda: "Approved: Refund 129.00 EUR for order A-1042? by you" in text(mia))
    press(tom, "Cancel the call")
    wait_for(lambda: heading(tom) == "Already decided")
    assert re.search(r"Approved: .* by Mia, \d\d:\d\d", text(tom))
    wait_for(lambda: len(done(in_memory)) == 1)
    press(tom, "Back to the inbox")
    wait_for(lambda: "→ refunded 129.00 EUR" in text(tom) or not look_again(tom))


def test_an_expired_page(person: Open, in_memory: Path) -> None:
    """A page from before somebody's edit decides nothing, and leads to the call as it is now."""
    mia, tom = person("Mia"), person("Tom")
    for browser in (mia, tom):
        open_call(browser, "Send “Order A-1042”")
    press(tom, "Edit the arguments")
    address = tom.find_element(By.ID, "a0")
    address.clear()
    address.send_keys("Ann@Example.org")
    press(tom, "Show the changes")
    press(tom, "Approve with these changes")
    wait_for(lambda: "waits again, because a rule changed it" in text(tom))
    press(mia, "Approve")
    wait_for(lambda: heading(mia) == "This page is out of date")
    press(mia, "Look at it as it is now")
    wait_for(lambda: heading(mia) == "Send “Order A-1042” to ann@example.org?")
    assert done(in_memory) == []
    press(mia, "Approve")
    wait_for(lambda: done(in_memory) != [])
    assert "to ann@example.org" in done(in_memory)[0]


def test_a_double_click(person: Open, in_memory: Path) -> None:
    """Two clicks on one button are one decision, and what was approved runs once."""
    mia = person("Mia")
    open_call(mia, "Let Ben Okafor into warehouse")
    page = mia.current_url
    button = mia.find_element(By.XPATH, "//button[.='Approve']")
    ActionChains(mia).double_click(button).perform()
    wait_for(lambda: "Approved: Let Ben Okafor" in text(mia))
    wait_for(lambda: "Ben Okafor has access" in text(mia) or not look_again(mia))
    assert len(done(in_memory)) == 1
    assert len(mia.find_elements(By.CSS_SELECTOR, ".log > li")) == 1
    mia.get(page)
    wait_for(lambda: heading(mia) == "This does not wait any more")


def test_an_edit_with_its_diff(person: Open, in_memory: Path) -> None:
    """A fault is said at its field; then the differences are shown, and just these run."""
    mia = person("Mia")
    open_call(mia, "Refund 129.00 EUR")
    press(mia, "Edit the arguments")
    for typed in ("much", "6000"):
        cents = mia.find_element(By.ID, "a1")
        cents.clear()
        cents.send_keys(typed)
        press(mia, "Show the changes")
        if typed == "much":
            wait_for(lambda: "This is not JSON" in mia.find_element(By.ID, "a1-fault").text)
            assert mia.switch_to.active_element.get_attribute("id") == "a1"
    wait_for(lambda: heading(mia) == "What you have changed")
    assert mia.find_element(By.CSS_SELECTOR, ".was mark").text == "12900"
    assert mia.find_element(By.CSS_SELECTOR, ".becomes mark").text == "6000"
    press(mia, "Approve with these changes")
    wait_for(lambda: "Approved with changes (cents)" in text(mia))
    wait_for(lambda: done(in_memory) != [])
    assert done(in_memory) == ["refunded 6000 for A-1042: Both cups arrived broken"]


def test_with_a_keyboard_on_a_narrow_screen(person: Open) -> None:
    """Every page fits 390 pixels, and a decision takes no mouse."""
    mia = person("Mia")
    narrow = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    mia.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    here = mia.current_url
    ways = [
        link.get_attribute("href") or "" for link in mia.find_elements(By.CSS_SELECTOR, ".cards a")
    ]
    for way in (here, *ways, ways[0].replace("/call", "/edit"), here + "who"):
        mia.get(way)
        widths = "return [document.documentElement.scrollWidth, innerWidth]"
        width, room = mia.execute_script(widths)
        assert width <= room, way
    mia.get(ways[0])
    keys = ActionChains(mia)
    for _ in range(10):
        keys.send_keys(Keys.TAB).perform()
        if mia.switch_to.active_element.text == "Approve":
            break
    keys.send_keys(Keys.ENTER).perform()
    wait_for(lambda: "Approved: Refund 129.00 EUR" in text(mia))
