"""What is written of the API: docs/rest.md, and the documentation that it serves itself."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from io import StringIO

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait
from structlog.testing import capture_logs

from tests.invoking import ROOT
from tests.serving import Daemon, row
from tsoffset.flow.settings import ServerSettings

TEXT = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")


@pytest.fixture
def address() -> Iterator[str]:
    """Where a daemon answers."""
    daemon = Daemon(ServerSettings(listeners=("http://127.0.0.1:0",)))
    daemon.cycle([row("team a/billing")])
    with daemon.serve(metrics=lambda _accept: (b"", "text/plain")) as (found,):
        yield found


def test_each_path_is_in_the_table_and_says_in_a_sentence_what_it_does():
    """And no other; not by the name of its function."""
    client = Daemon().client(metrics=lambda _accept: (b"", "text/plain"))
    paths = client.get("/openapi.json").json()["paths"]
    written = set(re.findall(r"^\| `(?:POST )?(/[^?`]*)", TEXT, re.MULTILINE))
    pause = "/api/v1/flows/{flow}/pause"
    assert {*paths} == written | {pause.replace("pause", one) for one in ("resume", "sync")}
    for path, methods in paths.items():
        for one in methods.values():
            assert len(one["summary"].split()) > 3, path


def test_the_example_in_python_runs(address):
    """As it is written, but for the address."""
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with capture_logs(), redirect_stdout(StringIO()) as said:
        exec(example.replace("http://127.0.0.1:8083", address), {})  # noqa: S102
    assert said.getvalue().startswith("orders 0 committed ")


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("chromedriver") is None, reason="needs Debian's chromium-driver")
def test_a_browser_shows_the_documentation(address):
    """Without an error on its console (our own policy lets it), and without another site."""
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options, service)
    with closing(browser):
        browser.get(f"{address}/docs/")
        WebDriverWait(browser, 60).until(
            lambda it: it.find_elements("css selector", "[id*=translate] button")
        )
        assert browser.get_log("browser") == []
        events = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
        asked = [
            one["params"]["request"]["url"]
            for one in events
            if one["method"] == "Network.requestWillBeSent"
        ]
        assert asked
        assert all(url.startswith((address, "data:")) for url in asked)
    browser.quit()
