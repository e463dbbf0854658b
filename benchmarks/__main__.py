"""`python -m benchmarks`: all benchmarks one after the other, then docs/performance.md."""

import argparse
import subprocess
import sys

from benchmarks import page

ALL = (
    *("limit", "bytes_read", "fixed_cost", "unit_costs", "distance", "executors", "memory"),
    *("growth", "peers", "history", "watched", "live_estate"),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; the page stays")
    parser.add_argument("--results", default=None, help="where the results go")
    chosen = parser.parse_args(arguments)
    extra = ["--quick"] if chosen.quick else []
    if chosen.results is not None:
        extra += ["--results", chosen.results]
    for name in ALL:
        # Each in its own process, so that none inherits another one's memory.
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *extra], check=True)
    if not chosen.quick and chosen.results is None:
        page.main([])


if __name__ == "__main__":
    main()
