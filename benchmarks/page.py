"""`python -m benchmarks.page`: the tables and plots of docs/performance.md from the results."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.report import placed, table
from benchmarks.estimate import Estate, driver_gb, shares
from benchmarks.live_estate_page import live_estate
from benchmarks.plots import Point, plot
from benchmarks.results import FOLDER, Result, load, said
from benchmarks.soak_page import soak, soak_plot

DOCS = Path(__file__).parents[1] / "docs"
PAGE, RELIABILITY = DOCS / "performance.md", DOCS / "reliability.md"
_MARK = "<!-- {name}, made by `python -m benchmarks.page`: {edge} -->"
# Instead of a figure that was not measured.
NOT_MEASURED = "No full run yet."
ALTERNATIVES = {
    "distance": "Cycle time by round trip, for few and many positions",
    "growth": "Cycle time by number of pairs",
    "peers": "Cycle time by number of pairs, tsoffset and MirrorMaker 2",
    "soak": "Memory of driver, Java and workers over half an hour",
}
_WAYS = ("alone", "watched")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER)
    chosen = parser.parse_args(arguments)
    found = {path.stem: load(path.stem, chosen.results) for path in chosen.results.glob("*.json")}
    for path, tables, plots in PAGES:
        page = path.read_text(encoding="utf-8")
        for name, write in tables.items():
            text = write(found[name]) if name in found else NOT_MEASURED
            page = placed(page, text, *marks(name))
        for name, draw in plots.items():
            shown = ""
            if name in found:
                (DOCS / f"{name}.svg").write_text(draw(found[name]), encoding="utf-8")
                shown = f"![{ALTERNATIVES[name]}]({name}.svg)"
            page = placed(page, shown, *marks(f"plot of {name}"))
        path.write_text(page, encoding="utf-8")
        said(f"wrote {path}")
    needed = [found[name] for name in ("unit_costs", "growth") if name in found]
    text = estimate(*needed) if len(needed) == 2 else NOT_MEASURED
    page = placed(PAGE.read_text(encoding="utf-8"), text, *marks("estimate"))
    PAGE.write_text(page, encoding="utf-8")


def marks(name: str) -> tuple[str, str]:
    """The lines of the page that enclose the table or plot of that name."""
    return _MARK.format(name=name, edge="begin"), _MARK.format(name=name, edge="end")


def taken(result: Result) -> str:
    """When and on what it was measured."""
    machine = result["machine"]
    return (
        f"{result['taken']}, {machine['cores']} cores shared with other work (load "
        f"{machine['load']}), Python {machine['python']}."
    )


def median(value: Mapping[str, Any], unit: str = "") -> str:
    """A median with its spread."""
    middle = f"{number(value['median'])}{unit}"
    if value["low"] == value["high"]:
        return middle
    return f"{middle} ({number(value['low'])} to {number(value['high'])})"


def number(value: float) -> str:
    """Three figures, or all of a large whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


# --- tables --------------------------------------------------------------------------------


def peers(result: Result) -> str:
    """Cycles beside MirrorMaker's."""
    blocks = [taken(result)]
    for size in result["sizes"]:
        ratios = size["ratios"]
        moved = ", ".join(
            f"{phase} {median(ratios[phase.replace(' ', '_')])}"
            for phase in size["tsoffset"]
            if phase not in ("cold", "warm")
        )
        divided = (
            "Time divided by MirrorMaker 2's: "
            f"cold {median(ratios['cold'])}, from its start {median(ratios['cold_from_start'])}, "
            f"warm {median(ratios['warm'])}, {moved}."
        )
        what = f"{size['groups']:,} groups x {size['partitions']} partitions"
        if size["busy_loops"]:
            blocks.append(f"{what}, {size['busy_loops']} busy loops beside it. {divided}")
            continue
        rows = []
        for phase in size["tsoffset"]:
            for name in ("MirrorMaker 2", "tsoffset"):
                one = size[name][phase]
                rows.append(
                    (
                        f"{phase}, {name}",
                        *(_judged(one, key) for key in ("synced", "exact", "reread")),
                        median(size["seconds"][name][phase]),
                        number(one["cpu_seconds"]),
                        _requests(one),
                        _requests(one, "Fetch"),
                        _megabytes(one),
                        str(one.get("rounds", "")),
                    )
                )
        head = (
            *(what, "synced", "exact", "re-read sum", "seconds", "CPU s"),
            *("requests", "of these Fetch", "MB", "rounds"),
        )
        blocks += [
            table(head, rows),
            f"{divided}\n\nThe cold cycle had "
            f"{size['tsoffset']['cold']['positions']:,} distinct positions and made "
            f"{number(ratios['fetches_per_position'])} source fetches for each, and "
            f"{number(ratios['lookups_per_partition'])} time lookups for each partition. "
            "The model of KIP-1292's prototype, one fetch after the other: "
            f"{number(size['model']['seconds'])} s, "
            f"{size['model']['fetches']:,} fetches, {number(ratios['model_over_cold'])} times "
            "the cold cycle.",
        ]
    return "\n\n".join(blocks)


def _judged(one: Result, key: str) -> str:
    return f"{one[key]:,} of {one['pairs']:,}" if key == "synced" else f"{one[key]:,}"


def _requests(one: Result, *kinds: str) -> str:
    """All requests, or those of the kinds."""
    sides = (one["requests"][side] for side in ("source", "target"))
    return " / ".join(f"{sum(side.get(k, 0) for k in kinds or side):,}" for side in sides)


def _megabytes(one: Result) -> str:
    return " / ".join(f"{one['bytes'][side] / 1e6:.2f}" for side in ("source", "target"))


def limit(result: Result) -> str:
    """Processor time of tsoffset's client beside that of a raw one."""
    head = (
        *("records a batch", "raw fetch", "read", "and its record found"),
        *("and all records decoded", "raw lookup", "time lookup"),
    )
    rows = [
        (
            str(one["batch"]),
            *(
                "{client:.3g} + {broker:.3g}".format(**one["processor_us"][name])
                + (f": {number(shares[name])}" if name in shares else "")
                for name in ("raw_fetch", "stretch", "record", "all", "raw_lookup", "lookup")
            ),
        )
        for one in result["logs"]
        for shares in (one["share_of_processor"],)
    ]
    return "\n\n".join(
        (
            taken(result),
            "Processor time for each fetch or lookup in microseconds, of the client + the broker."
            " After the colon: the raw client's sum divided by this sum.",
            table(head, rows),
        )
    )


def bytes_read(result: Result) -> str:
    """Bytes read over bytes needed."""
    rows = [
        (
            f"{one['groups']:,}",
            f"{one['positions']:,}",
            f"{one['batches']:,}",
            f"{one['needed_bytes'] / 1e6:.1f}",
            number(one["cold"]["source_bytes_read"] / one["needed_bytes"]),
            number(one["warm"]["source_bytes_read"] / one["needed_bytes"]),
            f"{one['cold']['source_fetches']:,}",
            number(one["cold"]["source_fetches"] / one["batches"]),
            number(one["lookups_a_partition"]),
        )
        for one in result["estates"]
    ]
    head = (
        *("groups", "positions", "their batches", "MB of these", "read / needed, cold", "warm"),
        *("source fetches", "fetches a batch", "lookups a partition"),
    )
    return f"{taken(result)}\n\n{table(head, rows)}"


def distance(result: Result) -> str:
    """Cycle time by round trip."""
    trips = [str(ms) for ms in result["round_trips_ms"]]
    rows = [
        (
            f"{one['positions']:,}, {_remembering(name)}",
            *(median(one["seconds"][ms]) for ms in trips),
            str(one["rounds"]),
            number(one["waits"]),
        )
        for name, one in result["estates"].items()
    ]
    head = ("positions", *(f"{ms} ms" for ms in trips), "rounds", "waits (slope)")
    return f"{taken(result)}\n\n{table(head, rows)}"


def _remembering(estate: str) -> str:
    return "warm" if estate.endswith("warm") else "cold"


def growth(result: Result) -> str:
    """Time, work and memory by size."""
    blocks = [taken(result)]
    for series, sizes in result["series"].items():
        rows = [
            (
                f"{one['size']:,}",
                f"{one['pairs']:,}",
                f"{one['positions']:,}",
                *(median(one[phase]["seconds"]) for phase in ("cold", "warm")),
                *(number(one[phase]["cpu_seconds"]["median"]) for phase in ("cold", "warm")),
                str(one["cold"]["rounds"]),
                number(one["cold"]["driver_mb"]["median"]),
                number(one["cold"]["worker_mb"]["median"]),
            )
            for one in sizes
        ]
        head = (
            *(series, "pairs", "distinct positions", "cold s", "warm s", "cold CPU s"),
            *("warm CPU s", "rounds", "driver MB", "worker MB"),
        )
        blocks.append(table(head, rows))
    return "\n\n".join(blocks)


def executors(result: Result) -> str:
    """Cycle time by workers."""
    rows = [(name, median(one)) for name, one in result["seconds"].items()]
    ratios = result["ratios"]
    return "\n\n".join(
        (
            taken(result),
            f"{result['groups']:,} groups, {result['partitions']} partitions, "
            f"{result['positions']:,} positions.",
            table(("workers, round trip", "seconds"), rows),
            f"At {result['round_trip_ms']} ms, two workers take {median(ratios['two_over_one'])} "
            f"of the time of one, and four workers {median(ratios['four_over_one'])}. Two executors"
            f" take {median(ratios['standalone_over_two'])} of the time of two workers.",
        )
    )


def memory(result: Result) -> str:
    """Peaks by estate."""
    rows = [
        (
            name,
            f"{one['positions']:,}",
            f"{one['bytes_read'] / 1e6:,.0f}",
            median(one["worker_mb"]),
            median(one["driver_mb"]),
            median(one["seconds"]),
        )
        for name, one in result["estates"].items()
    ]
    head = ("estate", "positions", "MB read", "worker MB", "driver MB", "seconds")
    ratio = median(result["ratios"]["worker_many_over_few"])
    words = f"The largest worker takes {ratio} times as much memory in *many* as in *few*."
    return f"{taken(result)}\n\n{table(head, rows)}\n\n{words}"


def fixed_cost(result: Result) -> str:
    """A cycle with nothing to do."""
    seconds = result["seconds"]
    names = {
        "cycle": "a cycle with nothing to do",
        "smallest": "the smallest Spark job and a round trip to each cluster",
        "small_table": "the smallest job over a data frame and a round trip to each cluster",
        "after_rest": "a cycle after the workers were idle for 75 s",
        "after_rest_ended": "the same, if Spark may end idle workers",
    }
    rows = [(name, median(seconds[key])) for key, name in names.items() if key in seconds]
    over_smallest = median(result["ratios"]["cycle_over_smallest"])
    told = f"The cycle takes {over_smallest} times as long as the smallest job"
    if "cycle_over_small_table" in result["ratios"]:
        over_table = median(result["ratios"]["cycle_over_small_table"])
        told += f", and {over_table} times as long as the smallest job over a data frame"
    return f"{taken(result)}\n\n{table(('', 'seconds'), rows)}\n\n{told}."


def watched(result: Result) -> str:
    """A cycle with observers, compared with one without."""
    rows = [
        (
            f"{one['groups']:,} groups x {one['partitions']} partitions",
            *(median(one[key][way]) for key in ("seconds", "cpu_seconds") for way in _WAYS),
            *(median(one["ratios"][key]) for key in ("seconds", "cpu_seconds")),
        )
        for one in result["sizes"]
    ]
    head = (
        *("estate", "cycle alone, s", "watched, s", "alone, CPU s", "watched, CPU s"),
        *("watched over alone", "CPU, watched over alone"),
    )
    return f"{taken(result)}\n\n{table(head, rows)}"


def estimate(units: Result, growth_result: Result) -> str:
    """The large estate, computed."""
    estate = Estate()
    found = sorted(shares(units, growth_result, estate), key=lambda one: -one.seconds)
    rows = [
        (
            one.what,
            f"{one.amount:,.0f} {one.unit}",
            f"{one.rate:,.0f}",
            f"{one.over}",
            number(one.seconds),
        )
        for one in found
    ]
    head = ("part", "work", "rate of one, per second", "number of them", "seconds")
    return (
        f"{table(head, rows)}\n\nThe driver's memory grows to about "
        f"{driver_gb(growth_result, estate):.1f} GB. The first bottleneck: {found[0].what}."
    )


TABLES: Mapping[str, Callable[[Result], str]] = {
    "peers": peers,
    "limit": limit,
    "bytes_read": bytes_read,
    "distance": distance,
    "growth": growth,
    "executors": executors,
    "memory": memory,
    "fixed_cost": fixed_cost,
    "watched": watched,
    "live_estate": live_estate,
}


# --- plots ---------------------------------------------------------------------------------


def distance_plot(result: Result) -> str:
    """Cycle time over round trip."""
    lines = {
        f"{one['positions']:,} positions, {_remembering(name)}": [
            Point.of(float(ms), one["seconds"][str(ms)]) for ms in result["round_trips_ms"]
        ]
        for name, one in result["estates"].items()
    }
    return plot("Cycle time by round trip", "round trip, ms", "seconds", lines)


def growth_plot(result: Result) -> str:
    """Time over pairs, of all series."""
    lines = {
        f"{series}, {phase}": [Point.of(one["pairs"], one[phase]["seconds"]) for one in sizes]
        for series, sizes in result["series"].items()
        if series != "groups"
        for phase in ("cold", "warm")
    }
    title = "Cycle time by number of pairs"
    return plot(title, "pairs", "seconds", lines, log=True)


def peers_plot(result: Result) -> str:
    """Time over pairs, of both."""
    lines = {
        f"{name}, {phase}": [
            Point.of(size["pairs"], size["seconds"][name][phase])
            for size in result["sizes"]
            if not size["busy_loops"]
        ]
        for name in ("MirrorMaker 2", "tsoffset")
        for phase in ("cold", "warm")
    }
    title = "Cycle time, tsoffset and MirrorMaker 2"
    return plot(title, "pairs", "seconds", lines, log=True)


PLOTS: Mapping[str, Callable[[Result], str]] = {
    "distance": distance_plot,
    "growth": growth_plot,
    "peers": peers_plot,
}
Tables = Mapping[str, Callable[[Result], str]]
PAGES: Sequence[tuple[Path, Tables, Tables]] = (
    (PAGE, TABLES, PLOTS),
    (RELIABILITY, {"soak": soak}, {"soak": soak_plot}),
)


if __name__ == "__main__":
    main()
