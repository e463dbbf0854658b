"""The HTML report of `tsoffset compare`."""

import re
from base64 import b64decode
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.browser import PHONE, WIDE, Page
from tsoffset.commands.compare.flow_comparison import FlowComparison
from tsoffset.commands.compare.html_report import html_report
from tsoffset.commands.compare.judgment import CheckpointVerdict, ComparedPair
from tsoffset.commands.compare.options import CompareOptions
from tsoffset.commands.compare.totals import Moments, PastTotals, add_totals
from tsoffset.model import Precision

HOSTILE = (
    "<script>alert(1)</script>",
    "\"onmouseover='alert(2)'",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
    "new\nline\x1b[31m\x00",
    "right\u202eleft\u2066",
    "]]></style><img src=x>",
    "grüße 漢字 😀",
)
NOW_MS = 1_795_000_000_000


def pair(
    group: str = "billing",
    lag: int = 100,
    again: int | None = 7,
    verdict: CheckpointVerdict = CheckpointVerdict.REREAD,
    **changes: Any,
) -> ComparedPair:
    """A pair with a lag, and so many records read again (or skipped)."""
    fields: dict[str, Any] = {
        **{"flow": "A->B", "compared_at_ms": NOW_MS, "group": group, "source_topic": "orders"},
        **{"partition": 0, "source_offset": 1_000, "lag": lag, "target_topic": "A.orders"},
        **{"ours": 900, "ours_precision": Precision.EXACT, "ours_reread_bound": 0},
        **{"ours_reason": None, "true_position": 900, "theirs": 900 - (again or 0)},
        **{"theirs_source_offset": 1_000, "theirs_timestamp_ms": NOW_MS},
        **{"verdict": verdict, "records": again},
    }
    return ComparedPair(**fields | changes)


def report(*pairs: ComparedPair, moments: int = 1) -> str:
    """The report of a comparison that was done so often."""
    course: PastTotals = defaultdict(list)
    for number in range(moments):
        found = FlowComparison("A->B", NOW_MS + 60_000 * number, pairs, ("mind <this>",))
        add_totals(course["A->B"], found)
    return html_report([found], course, CompareOptions())


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, its words, and what is left open."""

    VOID = frozenset({"meta", "br", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_names_of_others_stay_words():
    """Markup, templates, control and direction characters in names of groups and topics are shown
    as they are, or spelled out."""
    read = Reader(report(*(pair(name, source_topic=name, message=name) for name in HOSTILE)))
    assert not read.open
    assert {tag for tag, _ in read.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section"),
        *("h1", "h2", "h3", "p", "b", "div", "span", "dl", "dt", "dd", "figure", "figcaption"),
        *("table", "thead", "tbody", "tr", "th", "td", "img"),
    }
    words = "".join(read.words)
    for name in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "&lt;b&gt;", "]]></style><img src=x>"):
        assert name in words
    assert "new\\nline\\x1b[31m\\x00" in words
    assert "right\\u202eleft" in words
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", words)


def test_the_page_needs_nothing_from_elsewhere():
    """No script, no address, no style or picture but its own."""
    text = report(pair(), pair(verdict=CheckpointVerdict.UNSAFE, again=3), moments=3)
    for tag, attributes in Reader(text).tags:
        assert tag not in ("script", "link", "iframe", "object", "base")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "action"):
                assert (value or "").startswith("data:image/svg+xml;base64,")
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_flows_stand_side_by_side():
    """Each flow has a section."""
    flows = [FlowComparison(name, NOW_MS, (pair(), pair(lag=7))) for name in ("A->B", "B->A")]
    course: PastTotals = defaultdict(list)
    for one in (*flows, *flows):
        add_totals(course[one.flow], one)
    read = Reader(html_report(flows, course, CompareOptions()))
    assert [tag for tag, _ in read.tags].count("section") == 2


def plots(text: str) -> list[tuple[str, str]]:
    """The words and the picture of each plot."""
    pictures = [attributes for tag, attributes in Reader(text).tags if tag == "img"]
    return [
        (one["alt"] or "", b64decode((one["src"] or "").partition(",")[2]).decode())
        for one in pictures
    ]


def test_plots_say_in_words_what_they_show():
    """Each has a description, and shows both programs."""
    pairs = [pair(), pair(again=9, verdict=CheckpointVerdict.UNSAFE)]
    (lag, lags), (shares, _), (course, courses) = plots(report(*pairs, moments=2))
    assert lag.startswith("1 marks for MirrorMaker 2, 1 for tsoffset")
    assert shares.endswith("2 for tsoffset; 1+: 1 for MirrorMaker 2, 0 for tsoffset")
    assert course.startswith("2 comparisons from 2026-")
    for picture in (lags, courses):
        for name in ("MirrorMaker 2", "tsoffset (upper bound)", "records skipped (unsafe)"):
            assert f">{name}</text>" in picture


def test_the_numbers_of_the_page_are_the_totals():
    """Records re-read from MirrorMaker 2's and from tsoffset's offsets, skipped ones, and none."""
    text = report(
        pair("a", again=1_200),
        pair("b", again=34, ours_precision=Precision.BOUNDED, ours_reread_bound=5),
        pair("c", again=56, verdict=CheckpointVerdict.UNSAFE, message="it skips"),
        pair("d", again=None, verdict=CheckpointVerdict.NONE, theirs=None),
        pair("e", target_commit=800, target_commit_reread=100),
    )
    assert re.findall(r"</h3><b>([\d,]+)</b>", text) == ["1,241", "5", "56", "1", "100"]
    rows = re.findall(r'<td class="name">(\w)</td>\s*<td class="name">orders-0</td>', text)
    assert rows == ["c", "a", "b", "e"]


def test_what_nobody_judged_is_no_zero():
    """Without a checkpoint it is unknown what MirrorMaker 2 would re-read or skip."""
    text = report(pair(again=None, verdict=CheckpointVerdict.NONE, theirs=None))
    assert re.findall(r"</h3><b>([\d,-]+)</b>", text) == ["-", "0", "-", "1", "0"]
    assert "card good" not in text


def test_a_page_without_pairs_is_one_too():
    """Nothing was found, or everything failed: no plot, and no mistake."""
    failed = pair(None, None, None, CheckpointVerdict.FAILED, ours_reread_bound=None)
    for text in (report(), report(failed)):
        assert "<img" not in text
        assert "mind &lt;this&gt;" in text


@pytest.mark.thorough
def test_a_hundred_thousand_pairs_make_a_small_page():
    """Tables show the worst, and many marks are one picture: a page stays below a megabyte."""
    pairs = [
        pair(f"g{number % 1_000}", lag=number * 7 % 999_983, again=number * 13 % 500_009)
        for number in range(100_000)
    ]
    assert len(report(*pairs)) < 1_000_000


def test_the_course_stays_small_and_ends_now():
    """Of a thousand comparisons some hundreds are shown, the first and the last one among
    them."""
    course: Moments = []
    for number in range(1_200):
        add_totals(course, FlowComparison("A->B", number, (pair(),)))
        times = [at_ms for at_ms, _ in course]
        assert times[0] == 0
        assert times[-1] == number
        assert len(times) <= 500
        assert times == sorted(times)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_browser_shows_it(page: Page, tmp_path: Path, size: tuple[int, int]) -> None:
    """It asks for nothing, has no error, fits the screen, and axe finds nothing amiss."""
    path = tmp_path / "report.html"
    pairs = [pair(name, source_topic=name, lag=n * n) for n, name in enumerate(HOSTILE * 9)]
    skipping = pair("skips", verdict=CheckpointVerdict.UNSAFE, message="it skips three; look at it")
    path.write_text(report(*pairs, skipping, moments=3), encoding="utf-8")
    page.browser.get("about:blank")
    page.errors()
    page.asked()
    page.like("light", size)
    page.browser.get(path.as_uri())
    page.shot(f"compare-{size[0]}", whole=True)
    assert page.violations() == []
    assert page.errors() == []
    assert [one for one in page.asked() if not one.startswith("data:")] == [path.as_uri()]
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
