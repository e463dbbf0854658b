"""The results of a benchmark as a small file, and the options that all benchmarks share."""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
# Quick results do not replace those of the page.
QUICK_FOLDER = Path(tempfile.gettempdir()) / "tsoffset-benchmarks"

Result = dict[str, Any]


def options(name: str, description: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark; it adds its sizes."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few runs, as bench-check takes them"
    )
    where = f"where the result goes (default: {FOLDER.name}/, quick {QUICK_FOLDER})"
    parser.add_argument("--results", type=Path, default=None, help=where)
    parser.add_argument("--runs", type=int, default=None, help="runs of each (default: 5, quick 3)")
    return parser


def run(
    name: str,
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], Result],
) -> None:
    """Measure, and write results/NAME.json."""
    chosen = parser.parse_args()
    if chosen.runs is None:
        chosen.runs = 3 if chosen.quick else 5
    if chosen.results is None:
        chosen.results = QUICK_FOLDER if chosen.quick else FOLDER
    started = time.time()
    found = measure(chosen)
    result = {
        "benchmark": name,
        "quick": chosen.quick,
        "taken": time.strftime("%Y-%m-%d", time.gmtime(started)),
        "machine": _machine(),
        **found,
    }
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    said(f"{name}: wrote {path} after {time.time() - started:.0f} s")


def load(name: str, folder: Path = FOLDER) -> Result:
    """The last result of the benchmark. Raises FileNotFoundError."""
    result: Result = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return result


def said(words: str) -> None:
    """Print progress on standard error."""
    print(words, file=sys.stderr, flush=True)


def shown(title: str, fields: Mapping[str, object]) -> None:
    """Print one line of a result as soon as it is known."""
    said(f"  {title}: " + ", ".join(f"{name} {value}" for name, value in fields.items()))


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
