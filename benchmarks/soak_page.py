"""The table and the plot of a soak, for docs/reliability.md."""

from benchmarks.accuracy.report import table
from benchmarks.plots import Point, plot
from benchmarks.results import Result

_MEMORY = {
    "java_mb": "Java, resident",
    "workers_mb": "largest worker",
    "driver_mb": "driver",
    "heap_mb": "Java's heap",
}
_NAMES = {
    "driver_mb": "driver's Python, MB resident",
    "java_mb": "Spark's Java, MB resident",
    "heap_mb": "its heap after a collection, MB",
    "workers_mb": "the largest Python worker, MB resident",
    "worker_processes": "worker processes, with the one that starts them",
    "driver_threads": "threads of the driver",
    "java_threads": "threads of Java",
    "driver_files": "open files and sockets of the driver",
    "java_files": "open files and sockets of Java",
    "workers_files": "open files and sockets of all workers",
    "retained": "jobs, stages and tasks that Spark keeps",
    "state_kb": "`state.dir`, kB",
    "history_kb": "`history.dir`, kB",
}


def soak(result: Result) -> str:
    """What grew by how much over the second half."""
    rows = []
    for name, words in _NAMES.items():
        if name not in result["grown"]:
            continue
        one = result["grown"][name]
        may = one["may_grow"]
        rows.append(
            (
                words,
                _number(one["median"]),
                f"{_number(one['low'])} to {_number(one['high'])}",
                f"{'+' if one['grown'] > 0 else ''}{_number(one['grown'])}",
                "" if may is None else _number(may),
            )
        )
    head = ("second half", "median", "lowest to highest", "grew by", "may grow by")
    machine, cycle = result["machine"], result["cycle_seconds"]
    faults = " ".join(
        f"{name[0].upper()}{name[1:]} {count} times." for name, count in result["troubles"].items()
    )
    words = (
        f"{result['taken']}, {result['minutes']:g} minutes on {machine['cores']} cores shared with "
        f"other work (load {machine['load']} at the end), Python {machine['python']}.",
        f"{result['cycles']:,} cycles of {result['groups']} groups, median {cycle['median']:.2g} s,"
        f" longest {cycle['high']:.3g} s.",
        f"{result['commits_judged']:,} commits on the target were checked: none skipped a "
        "record or moved backwards.",
        faults,
    )
    return f"{' '.join(words)}\n\n{table(head, rows)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def soak_plot(result: Result) -> str:
    """Memory over the minutes."""
    lines = {
        words: [Point.of(float(minute), one) for minute, one in result["minutes_of"][name].items()]
        for name, words in _MEMORY.items()
    }
    return plot("Memory of a daemon with a cycle a second", "minutes", "MB", lines)
