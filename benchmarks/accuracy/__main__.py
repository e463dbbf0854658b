"""`python -m benchmarks.accuracy`: judge all rules on random logs and write the tables."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.accuracy.judging import Tally, judge
from benchmarks.accuracy.kinds import KINDS, large
from benchmarks.accuracy.report import comparison_tables, placed, precision_table
from tests.random_logs import Kind
from tests.replication_model import World, build
from tests.translating import silence_logs

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def main(arguments: list[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    silence_logs()
    began = time.monotonic()
    small = {
        name: _judged(name, kind, options.worlds, 61, options.seed) for name, kind in KINDS.items()
    }
    long = {
        name: _judged(
            name, large(kind, options.records), options.long_worlds, options.positions, options.seed
        )
        for name, kind in KINDS.items()
    }
    tables = "\n\n".join(
        (
            f"Seed {options.seed}; {options.worlds:,} logs of 60 records per kind, up to 61 "
            f"positions of each; {options.long_worlds:,} of {options.records:,} records per "
            f"kind, {options.positions:,} positions of each, spread evenly at random.",
            "### tsoffset, logs of 60 records",
            precision_table(small),
            f"### tsoffset, logs of {options.records:,} records",
            precision_table(long),
            "### Four rules, logs of 60 records",
            comparison_tables(small),
            f"### Four rules, logs of {options.records:,} records",
            comparison_tables(long),
        )
    )
    page = options.page
    page.write_text(placed(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    print(f"wrote the tables of {page} after {time.monotonic() - began:.0f} s", file=sys.stderr)


def _judged(name: str, kind: Kind, worlds: int, positions: int, seed: int) -> dict[str, Tally]:
    print(f"{kind.records:>7,} records: {name}", file=sys.stderr)
    return judge(_worlds(kind, worlds, seed), positions, seed)


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
    return parser


if __name__ == "__main__":
    main()
