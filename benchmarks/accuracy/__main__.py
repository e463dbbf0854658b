"""`python -m benchmarks.accuracy`: judge all rules on random logs and write the tables.

`--json FILE` writes the tallies of tsoffset there instead; `--compare FILE` reports where this
checkout is worse than the one of those tallies.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.accuracy.comparison import changes, raw
from benchmarks.accuracy.judging import Tally, judge
from benchmarks.accuracy.kinds import KINDS, large
from benchmarks.accuracy.report import comparison_table, placed, precision_table, unsafe_table
from tests.random_logs import Kind
from tests.replication_model import World, build
from tests.translating import silence_logs

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"

Tallies = Mapping[str, Mapping[str, Tally]]


def main(arguments: list[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    silence_logs()
    began = time.monotonic()
    chosen = {name: kind for name, kind in KINDS.items() if options.kinds.search(name)}
    small = {
        name: _judged(name, kind, options.worlds, 61, options) for name, kind in chosen.items()
    }
    long = {
        name: _judged(
            name, large(kind, options.records), options.long_worlds, options.positions, options
        )
        for name, kind in chosen.items()
    }
    if options.json is None and options.compare is None:
        page = options.page
        tables = _tables(small, long, options)
        page.write_text(placed(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
        print(f"wrote the tables of {page}", file=sys.stderr)
    tallies = raw({"small": small, "long": long})
    if options.json is not None:
        options.json.write_text(json.dumps(tallies, indent=1) + "\n", encoding="utf-8")
    print(f"done after {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.compare is not None:
        for line in changes(json.loads(options.compare.read_text(encoding="utf-8")), tallies):
            print(line)


def _tables(small: Tallies, long: Tallies, options: argparse.Namespace) -> str:
    return "\n\n".join(
        (
            f"Seed {options.seed}. Short logs: {options.worlds:,} per kind, of 60 records, with up "
            f"to 61 positions each. Long logs: {options.long_worlds:,} per kind, of "
            f"{options.records:,} records, with {options.positions:,} positions each, chosen "
            "uniformly at random.",
            "### tsoffset, logs of 60 records",
            precision_table(small),
            f"### tsoffset, logs of {options.records:,} records",
            precision_table(long),
            "### Unsafe answers of four rules",
            f"Logs of 60 records / of {options.records:,} records; 0 means none in both. The other "
            "kinds have none.",
            unsafe_table(small, long),
            f"### Re-reads of four rules, logs of {options.records:,} records",
            "Share of positions whose answer is safe and re-reads nothing; in brackets the mean "
            "re-reads of the safe answers; *none* is the share of positions without an answer.",
            comparison_table(long),
        )
    )


def _judged(
    name: str, kind: Kind, worlds: int, positions: int, options: argparse.Namespace
) -> dict[str, Tally]:
    print(f"{kind.records:>7,} records: {name}", file=sys.stderr)
    others = options.json is None and options.compare is None
    return judge(_worlds(kind, worlds, options.seed), positions, options.seed, others=others)


def _worlds(kind: Kind, worlds: int, seed: int) -> Iterator[World]:
    return (build(kind, seed + number) for number in range(worlds))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE, help="where the tables go")
    parser.add_argument("--worlds", type=int, default=40, help="short logs per kind")
    parser.add_argument("--long-worlds", type=int, default=1, help="long logs per kind")
    parser.add_argument("--records", type=int, default=20_000, help="records of a long log")
    parser.add_argument("--positions", type=int, default=60, help="positions of each long log")
    parser.add_argument("--seed", type=int, default=1292)
    parser.add_argument("--kinds", type=re.compile, default=re.compile(""), help="a regex")
    parser.add_argument("--json", type=Path, help="the tallies go there, not into the page")
    parser.add_argument(
        "--compare", type=Path, help="say what is worse than in this file (made with --json)"
    )
    return parser


if __name__ == "__main__":
    main()
