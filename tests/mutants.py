"""Mutation testing of what decides about offsets: `python -m tests.mutants [WORDS] [--list]`.

A mutant is a module with one change: a condition that never holds, an operand of `and` or `or` that
is removed, a filter that is removed, or `<` in place of `<=`. The examples run against each mutant.
A mutant that passes them all survives: either no example needs that condition, or the change alters
cost alone. Words choose mutants whose names contain one.

mutmut 3.8 makes 8,658 mutants of the same packages, seven times as many; most change numbers,
strings and arguments.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parents[1]
PLACES = (
    "rule/*.py",
    "group_sync/*.py",
    "cycle/cache_update.py",
    "cycle/two_readings.py",
    "commands/snapshots/restoring.py",
)
# Each is short, and states one rule; random tests would hide which example is missing.
EXAMPLES = tuple(
    str(ROOT / "tests" / folder / f"test_{name}.py")
    for folder, names in {
        "rule": (
            *("guard_examples", "frontier_examples", "translate", "offset_header", "five_faults"),
            *("same_offsets", "fast_path"),
        ),
        "cycle": ("prefetch", "two_readings"),
        "group_sync": (
            *("commit_rule", "tables", "commit", "cycle", "row_contract", "cache", "same_logs"),
        ),
        "commands/snapshots": ("file", "restoring", "run"),
        "commands/explain": ("reasons",),
    }.items()
    for name in names
)
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module of the package, the first and last line of what is changed, and the whole changed
    text."""

    module: str
    line: int
    last_line: int
    change: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.change}"


@dataclass(frozen=True, slots=True)
class Examples:
    """How long each example takes, and which examples execute a line of a module."""

    seconds: Mapping[str, float]
    of_lines: Mapping[str, Mapping[int, Sequence[str]]]

    def of(self, mutant: Mutant) -> list[str]:
        """Those that execute what is changed, the quickest first; all where imports execute it."""
        of_lines = self.of_lines.get(mutant.module, {})
        lines = range(mutant.line, mutant.last_line + 1)
        found = {name for line in lines for name in of_lines.get(line, ())}
        return sorted(self.seconds if "" in found else found, key=self.seconds.__getitem__)


def mutants(module: str, text: str) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines."""
    for number, node in enumerate(ast.walk(ast.parse(text))):
        for change in _changes(node):
            tree = ast.parse(text)
            # The same walk gives the same node of the new tree.
            found = next(it for at, it in enumerate(ast.walk(tree)) if at == number)
            word = _apply(found, change)
            begins: Any = getattr(node, "target", node)
            ends: Any = getattr(node, "test", begins)
            changed = ast.unparse(ast.fix_missing_locations(tree))
            yield Mutant(module, begins.lineno, ends.end_lineno, word, changed)


def _changes(node: ast.AST) -> Sequence[int]:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return ()
        case ast.If() | ast.IfExp():
            return (0,)
        case ast.comprehension(ifs=ifs):
            return range(len(ifs))
        case ast.BoolOp(values=values):
            return range(len(values))
        case ast.Compare(ops=ops):
            return [at for at, it in enumerate(ops) if type(it) in _COMPARISONS]
    return ()


def _apply(node: ast.AST, change: int) -> str:
    """Make a change, and return what it is."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            node.test = ast.Constant(value=False)
            return f"never: if {ast.unparse(test)}"
        case ast.comprehension(ifs=ifs):
            return f"for all: {ast.unparse(ifs.pop(change))}"
        case ast.BoolOp(values=values):
            return f"without operand: {ast.unparse(values.pop(change))}"
        case ast.Compare(ops=ops):
            before = ast.unparse(node)
            ops[change] = _COMPARISONS[type(ops[change])]()
            return f"{before} becomes {ast.unparse(node)}"
    raise AssertionError(node)


def all_mutants() -> Iterator[Mutant]:
    for place in PLACES:
        paths = sorted((ROOT / "tsoffset").glob(place))
        assert paths, f"no module is called {place}"
        for path in paths:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from sorted(mutants(name, path.read_text()), key=lambda it: it.line)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports the mutated text in the place of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(name, self)

    def get_filename(self, fullname: str) -> str:
        return str(ROOT / (fullname.replace(".", "/") + ".py"))

    def get_data(self, _: str) -> bytes:
        return self._mutant.text.encode()

    def path_stats(self, _: str) -> dict[str, int]:
        raise OSError("nothing of a mutant is cached")


class _Recorder:
    """Notes what each example executes of the package, and how long it takes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """What imports execute counts, too; conftest.py imports the package."""
        self._traced = coverage.Coverage(
            data_file=None, config_file=False, source=[str(ROOT / "tsoffset")]
        )
        self._traced.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._traced.switch_context(nodeid)
        self._seconds[nodeid] = time.perf_counter()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._traced.switch_context("")
        self._seconds[nodeid] = time.perf_counter() - self._seconds[nodeid]

    def pytest_sessionfinish(self) -> None:
        self._traced.stop()
        data = self._traced.get_data()
        of_lines = {
            ".".join(Path(file).relative_to(ROOT).with_suffix("").parts): data.contexts_by_lineno(
                file
            )
            for file in data.measured_files()
        }
        self._path.write_text(json.dumps([self._seconds, of_lines]))


class _Chosen:
    """Lets these examples run alone, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [it for it in items if it.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda it: self._places[it.nodeid])


def _run(mutant: Mutant | None, files: Sequence[str], plugin: object) -> int:
    """A child process that runs examples; it ends with pytest's status."""
    if child := os.fork():
        return child
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    chosen = "not no_cover and not slow and not thorough and not long"
    # A mutant may wait for ever.
    limit = () if mutant is None else ("-o", "timeout=60")
    common = ("-x", "-q", "-m", chosen, "-p", "no:cacheprovider", *limit)
    os._exit(pytest.main([*common, *files], plugins=[plugin]))


def recorded() -> Examples:
    """What the examples execute. Raises AssertionError where one fails without any change."""
    # Slow imports of other packages: a forked child has them already.
    for name in ("hypothesis", "kafka", "numpy", "polars", "pyarrow", "pydantic"):
        __import__(name)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recorded"
        _run(None, EXAMPLES, _Recorder(path))
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0, "examples fail without a mutant"
        seconds, of_lines = json.loads(path.read_text())
    by_number = {
        module: {int(line): names for line, names in lines.items()}
        for module, lines in of_lines.items()
    }
    return Examples(seconds, by_number)


def survivors(wanted: Sequence[Mutant], processes: int = 1) -> Iterator[Mutant]:
    """The mutants that all examples pass. Raises AssertionError where an example fails without
    any change."""
    examples = recorded()
    running: dict[int, Mutant] = {}
    for mutant in (*wanted, *[None] * processes):
        if len(running) == processes or mutant is None:
            if not running:
                return
            child, status = os.wait()
            ended = running.pop(child)
            if os.waitstatus_to_exitcode(status) == 0:
                yield ended
        if mutant is None:
            continue
        if names := examples.of(mutant):
            files = [*dict.fromkeys(name.partition("::")[0] for name in names)]
            running[_run(mutant, files, _Chosen(names))] = mutant
        else:
            yield mutant


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the survivors; 1 where there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(arguments)
    words = options.words or [""]
    wanted = [it for it in all_mutants() if any(word in it.name for word in words)]
    survived = 0
    for mutant in wanted if options.list else survivors(wanted, options.processes):
        survived += 1
        print(mutant.name, flush=True)
    print(f"{survived} of {len(wanted)}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
