"""Fuzz one target for some minutes; what it finds is written to tests/fuzz/seeds/TARGET/.

Needs atheris, which has no wheels for every Python and is not among the locked packages:
`pip install atheris`.
"""

import argparse
import logging
import os
import sys
from pathlib import Path
from tempfile import gettempdir

import atheris

SEEDS = Path(__file__).parent / "seeds"


def main() -> None:
    """Run until the time is over, or something is found; the exit status tells which."""
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    asked.add_argument("target")
    asked.add_argument("--minutes", type=float, default=10)
    asked.add_argument(
        "--corpus", default=Path(gettempdir(), "tsoffset-fuzz"), help="what it has learned so far"
    )
    chosen = asked.parse_args()
    with atheris.instrument_imports(include=["tsoffset", "kafka", "javaproperties"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[chosen.target]
    corpus, seeds = Path(chosen.corpus) / chosen.target, SEEDS / chosen.target
    for directory in (corpus, seeds):
        directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"begin-{number}").write_bytes(seed)
    logging.disable()
    options = [
        f"-max_total_time={int(chosen.minutes * 60)}",
        "-timeout=20",
        "-rss_limit_mb=2000",
        "-max_len=4096",
        f"-artifact_prefix={seeds}{os.sep}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus), str(seeds)], target.feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
