"""The status page in a real browser (Debian's Chromium, without a window)."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from tests.browser import PHONE
from tests.estates import BACK, EDGE, HOME, HOSTILE, UNREACHED, daemon_of, rich
from tests.invoking import ROOT
from tests.serving import READ_TOKEN, TOKEN, ServedFlows, many_rows, row, skipped
from tests.waiting import TIMEOUT_SECONDS, wait_until
from tsoffset.daemon.freshness import PAIRS_KNOWN, pairs_known
from tsoffset.daemon.status import FlowState, Lead
from tsoffset.flow.settings import ServerSettings
from tsoffset.group_sync.rows import rows_table
from tsoffset.model import FailureKind, OutcomeKind, Precision

ANY = ("http://127.0.0.1:0",)
PAGE = ROOT / "tsoffset" / "server" / "page"


@pytest.fixture(scope="module")
def estate() -> Iterator[str]:
    """Where the rich estate is served, for tests that change nothing."""
    daemon = rich()
    with served(daemon) as address:
        yield address


@contextmanager
def served(daemon: ServedFlows) -> Iterator[str]:
    with daemon.serve() as (address,):
        yield address


def one_flow(**settings: Any) -> ServedFlows:
    """A daemon whose only flow has had a cycle of four groups."""
    daemon = daemon_of("A->B", settings=ServerSettings(listeners=ANY, **settings))
    failed = {"outcome": OutcomeKind.FAILED, "reason": FailureKind.TIMEOUT, "message": "too long"}
    rows = [row("billing"), row("billing", partition=1), skipped("audit"), row("search", **failed)]
    daemon.cycle([*rows, row("mail", precision=Precision.BOUNDED, reread_bound=9)])
    return daemon


# --- without a browser --------------------------------------------------------------------


def test_the_page_knows_the_words_of_the_api():
    """Outcomes, precisions and kinds of failure: what words.js lists is what the model has."""
    text = (PAGE / "words.js").read_text(encoding="utf-8")
    for name, kind in (
        ("OUTCOMES", OutcomeKind),
        ("PRECISIONS", Precision),
        ("FAILURES", FailureKind),
    ):
        (found,) = re.findall(rf"export const {name} = \[(.*?)\];", text, re.DOTALL)
        assert re.findall(r'"(\w+)"', found) == list(kind)
    signs = (PAGE / "parts.js").read_text(encoding="utf-8")
    assert all(f"  {state}: " in signs for state in FlowState)


def test_no_text_is_ever_taken_for_markup():
    """The page has no way to make elements of text, run text, or set styles by it."""
    for file in PAGE.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, file.name
    assert "style=" not in (PAGE / "index.html").read_text(encoding="utf-8")


# --- in a browser -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_loads(page, estate):
    """All flows at a glance, with no error on the console and nothing from another host."""
    page.open(estate)
    page.until(lambda: len(page.all(".card")) == 3, "three cards")
    text = page.text("#view")
    assert "degraded" in text
    assert "paused by an operator" in text
    assert UNREACHED.partition(";")[0] in text
    page.until(lambda: page.all(".spark .line[d^=M]"), "lines of what was")
    page.shot("overview-light")
    page.like("dark")
    page.shot("overview-dark")
    page.assert_asks_nobody_else(estate)


@pytest.mark.thorough
class TestInBrowser:
    """Everything else that the page does."""

    def test_a_flow_says_how_it_is(self, page, estate):
        """Its messages, what a failover would re-read, its bars, its chart, what was not synced."""
        page.open(estate, quote(HOME))
        page.shows("groups ready", ".failover .big")
        page.shows("would be re-read", ".failover")
        for text in (
            "rows failed",
            "lists changed",
            "kafka-ops-2",
            "skipped, previous one still running",
        ):
            page.shows(text)
        page.until(lambda: len(page.all(".chart .line")) == 3, "the chart")
        page.shows("AUTHORIZATION", ".reasons")
        page.shows("grant READ on group", ".reasons")
        assert page.all(".chart .band"), "cycles without a result are seen"
        page.until(lambda: len(page.names()) > 40, "groups")
        page.shot("flow-light", whole=True)
        page.like("dark")
        page.shot("flow-dark", whole=True)

    def test_a_flow_that_fails_says_why(self, page, estate):
        """And keeps what was known."""
        page.open(estate, quote(EDGE))
        page.shows(UNREACHED)
        page.shows("as of the last cycle that reached both clusters")
        assert "edge-7->frankfurt: failed" in page.browser.title
        page.until(lambda: page.all(".chart .band"), "the chart")
        page.shot("failing-light")
        page.like("dark")
        page.shot("failing-dark")

    def test_the_chart_of_a_paused_flow_becomes_empty(self, page):
        """The last hour has no cycles once the last one is longer ago."""
        daemon = one_flow()
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: page.all(".chart .line"), "the chart")
            daemon.now += 3_700
            daemon.board.update("A->B", state=FlowState.PAUSED)
            page.refresh()
            page.shows("No cycle in this time range.", ".chart")

    def test_the_chart_is_read_with_keys_and_mouse(self, page, estate):
        """A cycle at a time, in words."""
        page.open(estate, quote(HOME))
        page.until(lambda: page.all(".chart .line"), "the chart")
        chart = page.one(".chart")
        page.script("arguments[0].focus()", chart)
        page.press(Keys.HOME)
        page.shows("oldest target offset", ".tip")
        first = chart.get_attribute("aria-valuetext")
        page.press(Keys.ARROW_RIGHT)
        assert chart.get_attribute("aria-valuenow") == "1"
        assert chart.get_attribute("aria-valuetext") != first
        page.press(Keys.ESCAPE)
        assert not page.one(".tip").is_displayed()
        page.script("arguments[0].scrollIntoView({block: 'center'})", chart)
        webdriver.ActionChains(page.browser).move_to_element(chart).perform()
        assert page.one(".tip").is_displayed()
        page.shot("chart-tip")

    def test_groups_are_searched_filtered_and_ordered(self, page):
        """By the daemon; the address says how, so that it can be sent to somebody."""
        with served(one_flow()) as address:
            page.open(address)
            page.until(lambda: page.names() == ["audit", "billing", "mail", "search"], "groups")
            page.press("/")
            page.press("il")
            page.until(lambda: page.names() == ["billing", "mail"], "what is searched")
            page.shows("2 groups", "#live")
            assert "search=il" in page.browser.current_url
            page.press(Keys.ESCAPE)
            page.until(lambda: len(page.names()) == 4, "all")
            page.click(".legend a[href*='outcome=failed']")
            page.until(lambda: page.names() == ["search"], "what failed")
            page.click(".tools button")
            page.until(lambda: len(page.names()) == 4, "all")
            page.script("document.querySelectorAll('thead button')[4].click()")
            page.until(lambda: page.names()[0] == "audit", "the most behind first")
            assert page.all("th[aria-sort=descending]")
            page.one("#choose-precision").send_keys("bounded")
            page.until(lambda: page.names() == ["mail"], "what is bounded")
            page.browser.back()
            page.until(lambda: len(page.names()) == 4, "what was before")

    def test_what_is_chosen_wrongly_in_the_address_is_told(self, page):
        """With the daemon's own sentence."""
        with served(one_flow()) as address:
            page.open(address, "A-%3EB?outcome=nonsense")
            page.shows("outcome: Input should be", "#list")
            page.open(address, "X-%3EY")
            page.shows("There is no flow X->Y")

    def test_a_group_is_opened_and_closed_with_keys(self, page, estate):
        """It has an address of its own; Escape and back close it, and the focus returns."""
        page.open(estate, quote(HOME))
        page.until(lambda: len(page.names()) > 40, "groups")
        page.script("document.querySelector('tbody a').focus()")
        page.press(Keys.ARROW_DOWN)
        focused = "return document.activeElement.textContent"
        group = page.script(focused)
        assert group == page.names()[1]
        page.press(Keys.ENTER)
        page.shows("committed on the source", "#panel")
        assert page.one("#panel-title").text == group
        assert page.browser.current_url.endswith(f"/{group}")
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("#panel[open]"), "it is closed")
        assert page.browser.current_url.endswith(quote(HOME))
        assert page.script(focused) == group
        page.press(Keys.ENTER)
        page.one("#panel[open] .rows li")
        page.browser.back()
        page.until(lambda: not page.all("#panel[open]"), "it is closed")
        troubled = page.one(".reasons details a")
        page.script("arguments[0].click()", troubled)
        page.one("#panel[open] .told")
        page.shot("group-light")
        page.like("dark")
        page.shot("group-dark")
        page.like("light", PHONE)
        page.shot("group-phone")

    def test_topics_have_their_list(self, page, estate):
        """With what the target lacks."""
        page.open(estate, f"{quote(HOME)}?view=topics")
        page.until(lambda: "payments" in page.names(), "topics")
        page.shows("Not mirrored", "#list")
        page.shot("topics-light", whole=True)

    def test_the_page_follows_each_cycle(self, page):
        """Without a reload; scroll, focus and what was opened stay, and a new state is read out."""
        daemon = one_flow()
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: len(page.names()) == 4, "groups")
            page.one("#search").send_keys("zz")
            page.shows("No group matches.")
            page.script("document.getElementById('list').scrollIntoView({block: 'start'})")
            place = "return [arguments[0].getBoundingClientRect().top, document.activeElement.id]"
            before = page.script(place, page.one("#search"))
            daemon.now += 60
            daemon.cycle([row("jazz")])
            page.refresh()
            page.until(lambda: page.names() == ["jazz"], "the new group")
            page.shows("A->B is running", "#live")
            top, focused = page.script(place, page.one("#search"))
            assert focused == "search"
            assert abs(top - before[0]) < 2
            daemon.failure(UNREACHED)
            page.refresh()
            page.shows(UNREACHED)
            assert page.names() == ["jazz"]

    def test_what_has_not_changed_is_not_sent_again(self, page, estate):
        """The page asks with ETags, and for what belongs to a cycle only after one."""
        page.open(estate, quote(HOME))
        page.until(lambda: len(page.names()) > 40, "groups")
        # Every ten minutes the chart begins with another point.
        page.script("const still = performance.now(); performance.now = () => still")
        statuses = (
            "return performance.getEntriesByType('resource')"
            ".filter((one) => one.name.endsWith('/flows')).map((one) => one.responseStatus)"
        )
        page.refresh()
        page.until(lambda: 304 in page.script(statuses), "an answer of 304")
        page.asked()
        before = len(page.script(statuses))
        page.refresh()
        page.until(lambda: len(page.script(statuses)) > before, "the next question")
        assert {url.rpartition("/api/v1/")[2] for url in page.asked()} <= {"flows", "remotes"}

    def test_a_tab_that_nobody_sees_asks_nothing(self, page, estate):
        """It asks at once when it is seen again."""
        page.open(estate)
        page.until(lambda: page.all(".card"), "cards")
        page.script(
            "window.waiting = new Set(); const [set, clear] = [setTimeout, clearTimeout];"
            "window.setTimeout = (todo, ms) => { const id = set(() => {"
            " waiting.delete(id); todo(); }, ms); waiting.add(id); return id; };"
            "window.clearTimeout = (id) => { waiting.delete(id); clear(id); };"
        )
        page.refresh()
        waiting = "return window.waiting.size"
        page.until(lambda: page.script(waiting) == 1, "it waits for the next question")
        hide = (
            "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true})"
        )
        page.script(hide, True)
        page.refresh()
        assert page.script(waiting) == 0
        page.script(hide, False)
        page.refresh()
        page.until(lambda: page.script(waiting) == 1, "it asks again")

    def test_a_daemon_that_is_away_leaves_what_was_shown(self, page):
        """And the page says since when; it goes on when the daemon is back."""
        daemon = one_flow()
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: len(page.names()) == 4, "groups")
        page.refresh()
        page.shows("the daemon cannot be reached: last answer", "#connection")
        page.shows("cannot be reached", "#live")
        assert len(page.names()) == 4
        page.shows("groups ready", ".failover .big")
        page.shot("away-light")
        later = "const now = performance.now.bind(performance); performance.now = () => now() + 2e5"
        page.script(later)
        page.shows("unknown since", ".failover .big")
        daemon.settings = replace(daemon.settings, listeners=(address,))
        with served(daemon):
            page.refresh()
            page.shows("as of", "#connection")
            page.shows("answers again", "#live")

    def test_a_page_past_the_last_one_leads_back(self, page):
        """Of a bookmark, where groups have gone since."""
        with served(one_flow()) as address:
            page.open(address, f"{quote('A->B')}?page=3")
            page.shows("none of 4", ".pager")
            page.click(".pager a[aria-label='Previous page']")
            page.until(lambda: len(page.names()) == 4, "groups")
            assert not page.all(".pager")

    def test_without_a_token_nothing_can_be_asked_for(self, page):
        """With one there are buttons; a pause is asked about once more."""
        daemon = one_flow(token=TOKEN)
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: len(page.names()) == 4, "groups")
            assert not page.all(".actions")
            page.click("#token")
            page.press(TOKEN, Keys.ENTER)
            pause, sync = (page.one(f".actions button:nth-child({n})") for n in (2, 1))
            pause.click()
            page.shows("No new cycle starts", "#ask")
            page.shot("pause-light")
            page.script("document.querySelectorAll('#ask button')[1].click()")
            assert daemon.controls.asked == []
            sync.click()
            page.until(lambda: daemon.controls.asked == [("sync", "A->B")])
            pause.click()
            page.press(Keys.ENTER)
            page.until(lambda: daemon.controls.asked[1:] == [("pause", "A->B")])
            daemon.board.update("A->B", state=FlowState.PAUSED)
            page.refresh()
            page.shows("Resume", ".actions")
            assert TOKEN not in page.script("return document.documentElement.outerHTML + location")

    def test_where_a_token_is_needed_the_page_asks_for_it(self, page):
        """And says what is wrong with one that is not known."""
        with served(one_flow(token=TOKEN, read_token=READ_TOKEN)) as address:
            page.open(address)
            page.shows("a bearer token is needed", "#ask")
            page.shot("token-light")
            page.press("no-such-token-at-all", Keys.ENTER)
            page.shows("this bearer token is wrong", "#ask")
            page.press(Keys.ESCAPE)
            page.until_asked_again()
            assert not page.all("#ask[open]")
            page.click("#token")
            page.press(READ_TOKEN[:4])
            # An answer that comes after the token was entered, to a question without it.
            page.script(
                "const ask = fetch; window.fetch = async (...asked) => {"
                " const answer = await ask(...asked); window.fetch = ask;"
                " await new Promise((done) => { window.goOn = done; }); return answer; };"
            )
            page.until(lambda: page.script("return 'goOn' in window"), "the next answer")
            page.press(READ_TOKEN[4:], Keys.ENTER)
            page.script("goOn()")
            page.until(lambda: len(page.names()) == 4, "groups")
            page.click(".actions button")
            page.shows("this token only allows reading", "#ask")

    def test_the_flows_of_other_daemons_are_shown(self, page):
        """Marked with the address, and each leads to that daemon's own page."""
        with ExitStack() as stack:
            other = one_flow()
            other.board.instance = replace(other.board.instance, id="ba9876543210")
            there = stack.enter_context(served(other))
            away = "http://127.0.0.1:1"
            settings = ServerSettings(listeners=ANY, remote_urls=(there, away))
            address = stack.enter_context(served(rich(settings)))
            page.open(address)
            page.until(lambda: len(page.all(".remote")) == 2, "two other daemons")
            page.until(lambda: (page.refresh(), page.all(".remote .card"))[1], "its card")
            link = page.one(".remote .card a").get_attribute("href")
            assert link == f"{there}/#A-%3EB"
            page.shows("cannot be reached", ".remote")
            page.shot("remotes-light", whole=True)
            hosts = {url.split("/")[2] for url in page.asked() if url.startswith("http")}
            assert hosts == {address.removeprefix("http://")}

    def test_an_instance_is_no_other_one_to_itself(self, page):
        """Its own address may stand in a list that all instances share."""
        daemon = one_flow()
        with served(daemon) as address:
            shared = replace(daemon.settings, remote_urls=(address,))
            daemon.settings = shared
            with served(daemon) as same:
                page.open(same)

                def known() -> dict[str, Any]:
                    answer = httpx2.get(f"{same}/api/v1/remotes", timeout=TIMEOUT_SECONDS)
                    found: dict[str, Any] = answer.json()["remotes"][0]
                    return found

                wait_until(lambda: known()["answer"] is not None)
                page.until(lambda: (page.refresh(), page.names())[1], "the only flow")
                assert not page.all(".remote")

    def test_before_the_first_cycle_the_page_says_so(self, page):
        """And where no flow is enabled, what to set."""
        daemon = daemon_of("A->B", settings=ServerSettings(listeners=ANY))
        daemon.board.update("A->B", running_since=daemon.now - 3)
        with served(daemon) as address:
            page.open(address)
            page.shows("cycle running for")
            page.shows("No cycle has reached both clusters yet.")
            page.shot("start-light", whole=True)
            unread = "the list cannot be read"
            changes = {"state": FlowState.FAILED, "running_since": None, "messages": (unread,)}
            daemon.board.update("A->B", **changes)
            page.refresh()
            page.shows("no cycle is scheduled")
            daemon.board.set_flows([])
            page.refresh()
            page.shows("No flow is enabled.")

    def test_without_groups_it_is_told_whether_a_cycle_looked(self, page):
        """Also after a cycle that reached no cluster, and where another instance may know more."""
        daemon = daemon_of("A->B", "B->A", settings=ServerSettings(listeners=ANY))
        daemon.cycle([])
        daemon.controls.lead_of["B->A"] = Lead(here=False)
        with served(daemon) as address:
            page.open(address)
            page.shows("No group has a committed offset")
            page.shows("This instance knows of no cycle")
            assert "No cycle has reached" not in page.text("#view")
            page.open(address, "A-%3EB")
            daemon.failure(UNREACHED)
            page.refresh()
            page.shows(UNREACHED)
            page.shows("No group has a committed offset", ".failover")

    def test_a_flow_that_only_plans_has_synced_nothing(self, page):
        """Its groups are not ready."""
        daemon = daemon_of("A->B", "B->A", settings=ServerSettings(listeners=ANY))
        daemon.cycle([row("billing", outcome=OutcomeKind.WOULD_COMMIT)], commits=False)
        with served(daemon) as address:
            page.open(address)
            page.shows("1 group not ready, of 1")
            page.open(address, "A-%3EB")
            page.shows("No row was skipped or failed.", "#view")

    def test_an_instance_on_standby_shows_the_cycles_of_the_leader(self, page):
        """What it reads of them; two intervals after the last one, numbers are the least."""
        daemon = one_flow()
        daemon.controls.lead_of["A->B"] = Lead(here=False)
        daemon.board.update("A->B", state=FlowState.STANDBY)
        with served(daemon) as address:
            page.open(address, "A-%3EB/billing")
            page.shows("≤ 0", "#panel")
            assert len(page.names()) == 4
            read = pairs_known(
                rows_table([row("billing"), row("jazz")]), PAIRS_KNOWN.empty_table(), 0.0
            )
            daemon.now += 60
            daemon.board.update("A->B", pairs=read, known_at=daemon.now, last_reached=None)
            page.refresh()
            page.until(lambda: page.names() == ["billing", "jazz"], "what the leader has found")
            assert "≥" not in page.text("#panel")
            daemon.now += 121
            page.refresh()
            page.until(lambda: page.text("#panel").count("≥ 0") == 2, "at least 0")

    def test_names_may_hold_anything(self, page):
        """They are text and never markup; what cannot be seen is shown as an escape; each has its
        panel."""
        daemon = daemon_of("A->B", settings=ServerSettings(listeners=ANY))
        daemon.cycle([row(name, topic=name or "orders", message=name) for name in HOSTILE])
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: len(page.names()) == len(HOSTILE), "groups")
            names = page.names()
            assert "<img src=x onerror=alert(1)>" in names
            assert "\\u{202e}gnp.exe\\u{202c}" in names
            assert "\\u{0}\\u{7}\\u{a}\\u{1b}[31mred" in names
            assert "\\u{20}leading and trailing\\u{20}" in names
            assert "(no name)" in names
            assert not page.all("#view img, #view script")
            wide = "return document.documentElement.scrollWidth <= innerWidth"
            assert page.script(wide)
            page.shot("hostile-light", whole=True)
            for index, name in enumerate(names):
                page.script("document.querySelectorAll('tbody a')[arguments[0]].focus()", index)
                page.press(Keys.ENTER)
                page.until(lambda name=name: page.text("#panel-title") == name, name)
                page.until(lambda: page.all("#panel .rows li") or page.all("#panel .note a"), name)
                assert page.script(wide)
                page.press(Keys.ESCAPE)
                page.until(lambda: page.browser.current_url.endswith("#A-%3EB"), "it is closed")
                page.until(lambda: not page.all("#panel[open]"), "it is closed")
            assert page.errors() == []

    def test_an_estate_of_65_000_groups_stays_in_pages(self, page):
        """The daemon cuts them; the browser holds no more than one page."""
        daemon = daemon_of("A->B", settings=ServerSettings(listeners=ANY))
        daemon.cycle(many_rows(65_000, 2))
        with served(daemon) as address:
            page.open(address)
            page.until(lambda: len(page.names()) == 50, "the first page")
            page.shows("50 of 65,000", ".pager")
            page.click(".pager a[aria-label='Last page']")
            page.until(lambda: page.names()[-1] == "group-64999", "the last page")
            page.one("#search").send_keys("group-4242")
            page.until(lambda: page.names()[0] == "group-42420", "what is searched")
            assert len(page.names()) == 10
            page.press(Keys.ESCAPE)
            page.one("#search").send_keys("7")
            page.until(lambda: page.names()[0] == "group-00007", "what is searched")
            assert len(page.script("return [...document.querySelectorAll('*')]")) < 2_500
            page.shot("many-light", whole=True)

    def test_a_phone_shows_all_of_it(self, page, estate):
        """Without scrolling sideways."""
        for name, hash_ in (
            ("overview", ""),
            ("flow", quote(HOME)),
            ("topics", f"{quote(BACK)}?view=topics"),
        ):
            page.open(estate, hash_, PHONE)
            page.until(lambda: page.all(".card, tbody tr"), "something")
            assert page.script("return document.documentElement.scrollWidth") == PHONE[0]
            page.shot(f"phone-{name}", whole=True)

    def test_the_documentation_of_the_api_is_shown(self, page, estate):
        """Our own policy lets it, and it needs no other site."""
        page.open(estate)
        page.browser.get(f"{estate}/docs/")
        page.one("[id*=translate] button")
        page.assert_asks_nobody_else(estate)

    def test_colours_follow_the_system(self, page, estate):
        page.open(estate)
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = page.script(ground)
        page.like("dark")
        assert page.script(ground) != light

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("hash_", ["", quote(HOME), f"{quote(HOME)}/billing.writer"])
    def test_accessibility(self, page, estate, hash_, scheme):
        """axe finds nothing that breaks WCAG's A and AA, contrast included."""
        page.open(estate, hash_)
        page.like(scheme)
        page.until(lambda: page.all(".card, tbody tr"), "something")
        if "/" in hash_:
            page.one("#panel .rows li")
        assert page.violations(contrast_alone=scheme == "dark") == []

    def test_tab_goes_through_the_page_in_its_order(self, page, estate):
        """Each stop is seen, by an outline."""
        page.open(estate)
        page.until(lambda: len(page.all(".card")) == 3, "cards")
        page.script("document.activeElement.blur()")
        stops = []
        for _ in range(7):
            page.press(Keys.TAB)
            stops.append(page.script("return document.activeElement.textContent.trim()"))
            outline = (
                "const here = document.activeElement, card = here.closest('.card') ?? here;"
                "return [here, card].map((one) => getComputedStyle(one).outlineStyle).join()"
            )
            assert "solid" in page.script(outline)
        assert stops[0] == "Skip to the flows"
        assert stops[2:4] == ["Token", "API"]
        assert stops[4:] == ["frankfurt→dublin", "dublin→frankfurt", "edge-7→frankfurt"]
