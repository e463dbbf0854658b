"""Text of others takes time by its length, never by the square of it.

Groups, topics, hosts and what brokers say are chosen by others. Each expression of the package is
timed on text that is made from its own parts, and so is what reads or prints such text as a whole;
only ratios of two lengths are compared.
"""

import ast
import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from inspect import getsource
from re import _constants, _parser
from typing import Any
from urllib.parse import quote

import pytest
import structlog

import tsoffset
from tests.fuzz.targets import TARGETS
from tests.invoking import logging_kept
from tests.serving import PATH, ServedFlows, skipped
from tsoffset.group_sync.rows import rows_table
from tsoffset.logs import LogFormat, LogLevel, configure_logs
from tsoffset.spark.jobs import sentence
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.row_columns import tally_of
from tsoffset.terminal.rows import cycle_lines

# Four times as long takes four times the time, by its square sixteen.
LENGTHS = (32, 128, 512, 2_048, 8_192)
TOO_MUCH = 9.0
# Below this a timer and a scheduler are measured, not an expression.
LEAST_SECONDS = 2e-4
SEARCHES = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")

Run = Callable[[str], object]


def least_seconds(run: Run, text: str) -> float:
    def once() -> float:
        # Of the processor: what else the machine does is no time of the expression's.
        began = time.process_time()
        run(text)
        return time.process_time() - began

    return min(once() for _ in range(3))


def grows_too_fast(run: Run, made: Callable[[int], str]) -> int | None:
    """The first length from which on the time grows by more than the length, three times over."""
    before = least_seconds(run, made(LENGTHS[0]))
    for short, long in itertools.pairwise(LENGTHS):
        spent = least_seconds(run, made(long))
        if spent > TOO_MUCH * max(before, LEAST_SECONDS) and all(
            least_seconds(run, made(long)) > TOO_MUCH * least_seconds(run, made(short))
            for _ in range(3)
        ):
            return long
        before = spent
    return None


# --- expressions ----------------------------------------------------------------------------


def expressions() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Each expression of the package: its module and name, and the methods that are called."""
    for found in pkgutil.walk_packages(tsoffset.__path__, "tsoffset."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        tree = ast.parse(getsource(module))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in SEARCHES:
                continue
            match call.func.value:
                case ast.Name("re"):
                    match call.args[0]:
                        case ast.Constant(str(text)):
                            yield f"{found.name}:{call.lineno}", re.compile(text), call.func.attr
                        case _:
                            pytest.fail(f"{found.name}:{call.lineno}: name the expression")
                case ast.Name(name) if isinstance(vars(module).get(name), re.Pattern):
                    yield f"{found.name}.{name}", vars(module)[name], call.func.attr


def samples(parsed: Any) -> list[str]:
    """Some of the shortest texts that a parsed expression matches, its lookarounds aside."""
    found = [""]
    for part in parsed:
        found = [one + other for one in found for other in matching(*part)][:6]
    return found


def matching(kind: Any, what: Any) -> list[str]:
    """The same of one part."""
    match str(kind):
        case "LITERAL":
            return [chr(what)]
        case "NOT_LITERAL" | "ANY" | "IN" | "CATEGORY":
            return of_class(kind, what)
        case "BRANCH":
            return [text for branch in what[1] for text in samples(branch)[:1]]
        case "SUBPATTERN":
            return samples(what[3])
        case "ATOMIC_GROUP":
            return samples(what)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, body = what
            return [text * max(least, 1) for text in samples(body)] + ([""] if least == 0 else [])
    return [""]


def of_class(kind: Any, what: Any) -> list[str]:
    alone = _parser.SubPattern(_parser.State(), [(kind, what)])
    pattern = re._compiler.compile(alone)
    return [sign for sign in "a0 .\"'\\:/,-\n=$<{" if pattern.fullmatch(sign)][:3]


def hostile(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """What to put before, what to repeat and what to put behind, so that it begins to match over
    and over, or repeats what it may, and then fails."""
    met: set[tuple[str, str]] = set()

    def within(parts: list[Any], before: str) -> Iterator[tuple[str, str]]:
        for number, (kind, what) in enumerate(parts):
            to_here = samples(parts[:number])
            for start in to_here[:2]:
                yield "", before + start
            lead = before + max(to_here[:1], key=len, default="")
            if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
                yield from ((lead, body) for body in samples(what[2]))
                yield from within(list(what[2]), lead)
            elif kind is _constants.SUBPATTERN:
                yield from within(list(what[3]), lead)
            elif kind is _constants.BRANCH:
                for branch in what[1]:
                    yield from within(list(branch), lead)
        yield from (("", whole[:-1]) for whole in samples(parts))

    for pair in within(list(_parser.parse(pattern.pattern, pattern.flags)), ""):
        if pair[1] and pair not in met:
            met.add(pair)
            yield *pair, ""
            yield *pair, "\0"


@pytest.mark.slow
def test_no_expression_takes_more_than_its_text_is_long():
    """Each as the product calls it, on text that begins to match many times."""
    each = {(pattern.pattern, method): (name, pattern) for name, pattern, method in expressions()}
    assert len(each) > 40
    for (_, method), (name, pattern) in each.items():
        call = getattr(pattern, method)

        def run(text: str, method: str = method, call: Any = call) -> object:
            if method == "sub":
                return call("", text)
            return list(call(text)) if method == "finditer" else call(text)

        for before, pump, behind in hostile(pattern):
            slow = grows_too_fast(
                run,
                lambda size: before + pump * (size // len(pump) + 1) + behind,  # noqa: B023
            )
            assert slow is None, (name, method, before, pump, behind, slow)


@pytest.mark.slow
def test_an_expression_that_backtracks_is_noticed():
    """By the square of the length, by its cube, and without end."""
    for text in (r"[\w.]*token[\w.]*=", r"\s*,", r"a+b?a+$", r"(?:a|b)*\s+c", "<x [^>]*>"):
        pattern = re.compile(text)
        assert any(
            grows_too_fast(pattern.search, lambda size: before + pump * size + behind)  # noqa: B023
            for before, pump, behind in hostile(pattern)
        ), text


# --- where names come to ----------------------------------------------------------------------


def told_of(name: str) -> str:
    return f"commit offsets of group {name}, cluster B: not authorized; grant READ on {name}"


def logged(name: str) -> None:
    log = structlog.get_logger("x")
    log.warning("group_failed", group=name, message=told_of(name), names=[{name: name}])
    try:
        raise ValueError(told_of(name))
    except ValueError:
        log.exception("cycle_failed")


def printed(name: str) -> None:
    rows = [skipped(name, name, message=told_of(name))]
    for width in (80, None):
        list(
            cycle_lines("A->B", rows, tally_of(rows_table(rows)).in_words, "mm2.properties", width)
        )
    Notices().error(ValueError(told_of(name)), trace=False)


def served(name: str) -> None:
    """The path is in the debug log, too."""
    daemon = ServedFlows()
    daemon.cycle([skipped(name[:2_000], name, message=told_of(name))])
    client = daemon.client()
    for path in ("groups", f"groups/{quote(name[:2_000], safe='')}", "topics"):
        assert client.get(f"{PATH}/{path}").status_code == 200


def read(name: str) -> None:
    for target in ("properties", "connector", "migrated", "checkpoint_lines", "jaas"):
        for seed in TARGETS[target].seeds:
            TARGETS[target].feed(seed + name.encode())
            TARGETS[target].feed(seed.replace(b"orders", name.encode()))


NAMES = ("token", "secret='", 'key":', "\\", "\x1b[", "${env:", ", ")
# One for each way in which a name is read: words of secrets, quotes, escapes, references.
FIRST_NAMES = ("token", "secret='", "\\", "${env:")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "name"),
    [
        *(
            pytest.param(use, name, marks=[] if name in FIRST_NAMES else [pytest.mark.thorough])
            for use in (logged, printed, read, sentence)
            for name in NAMES
        ),
        (served, "token"),
    ],
)
def test_a_name_takes_no_longer_than_it_is(use, name):
    """Whatever group, topic or host is called so, over and over: logged, printed, served, read."""
    with logging_kept():
        configure_logs(LogFormat.CONSOLE, LogLevel.DEBUG)
        assert grows_too_fast(use, lambda size: name * (size // len(name))) is None
