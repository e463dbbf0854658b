"""Debian's Chromium, without a window, and what is seen of a page in it."""

import json
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

DRIVER = shutil.which("chromedriver")
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
WIDE, PHONE = (1360, 1000), (390, 844)


class Page:
    """A page as somebody sees it; `open` and what polls are for the page of a daemon."""

    def __init__(self, browser: webdriver.Chrome, shots: Path) -> None:
        self.browser, self._shots = browser, shots

    def open(self, address: str, hash_: str = "", size: tuple[int, int] = WIDE) -> None:
        self.like("light", size)
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(f"{address}/#{hash_}")
        self.script("sessionStorage.clear()")
        self.refresh()

    def like(self, scheme: str, size: tuple[int, int] = WIDE) -> None:
        width, height = size
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.browser.execute_script(text, *arguments)

    def refresh(self) -> None:
        """Ask now, as the page does when its tab comes to the front."""
        self.script("document.dispatchEvent(new Event('visibilitychange'))")

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        self.until(lambda: bool(self.all(selector)), selector)
        return self.all(selector)[0]

    def text(self, selector: str = "body") -> str:
        """What is seen of all that fit, and what screen readers are told besides."""
        return "\n".join(self.script(TEXTS, selector))

    def until(self, holds: Callable[[], Any], what: str = "it is shown") -> None:
        wait_until(lambda: bool(holds()), what)

    def shows(self, text: str, selector: str = "#view") -> None:
        self.until(lambda: text in self.text(selector), f"{selector} shows {text}")

    def names(self) -> list[str]:
        found: list[str] = self.script(TEXTS, "tbody .of-name")
        return found

    def click(self, selector: str) -> None:
        """Where the head of the page does not lie over it."""
        element = self.one(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()

    def shot(self, name: str, *, whole: bool = False) -> None:
        """Kept for a person to look at."""
        if whole:
            self.script("scrollTo(0, 0)")
        tall = "document.documentElement.scrollHeight" if whole else "innerHeight"
        width, height = self.script(f"return [innerWidth, Math.min(2200, {tall})]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        asked = {"clip": clip, "captureBeyondViewport": True} if whole else {}
        found = self.browser.execute_cdp_cmd("Page.captureScreenshot", asked)
        (self._shots / f"{name}.png").write_bytes(b64decode(found["data"]))

    def asked(self) -> list[str]:
        """Every address that was asked for since the last time."""
        log = self.browser.get_log("performance")
        events = [json.loads(one["message"])["message"] for one in log]
        return [
            one["params"]["request"]["url"]
            for one in events
            if one["method"] == "Network.requestWillBeSent"
        ]

    def until_asked_again(self) -> None:
        """Wait for the next poll."""
        self.asked()
        self.until(self.asked, "the next poll")

    def errors(self) -> list[str]:
        return [one["message"] for one in self.browser.get_log("browser")]

    def assert_asks_nobody_else(self, address: str) -> None:
        """Nor is there an error on the console, since it was opened."""
        assert self.errors() == []
        urls = self.asked()
        assert urls
        assert all(url.startswith((address, "about:", "data:")) for url in urls)

    def violations(self, *, contrast_alone: bool = False) -> list[Any]:
        """What axe finds that breaks WCAG's A and AA."""
        axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        self.browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        rules = {"resultTypes": ["violations"]}
        if contrast_alone:
            rules["runOnly"] = ["color-contrast"]
        found: list[Any] = self.browser.execute_async_script(
            "axe.run(arguments[0]).then((found) => arguments[1](found.violations.map("
            "(one) => [one.id, one.nodes.map((node) => node.html + node.failureSummary)])))",
            rules,
        )
        return found


@contextmanager
def opened(shots: Path) -> Iterator[Page]:
    """A browser whose pictures go to the folder `shots`."""
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, Service(DRIVER))
    try:
        yield Page(browser, shots)
    finally:
        browser.quit()
