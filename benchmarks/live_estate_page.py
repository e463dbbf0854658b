"""The table of a live estate, for docs/performance.md."""

from benchmarks.accuracy.report import share, table
from benchmarks.results import Result

_CORE_PARTS = (("driver_cpu", "driver"), ("java_cpu", "Java"), ("worker_cpu", "workers"))


def live_estate(result: Result) -> str:
    """Cost and cycles by interval, then what a failover would re-read."""
    machine = result["machine"]
    loads = ", ".join(f"{one['load']:g} at {one['interval_seconds']:g} s" for one in result["runs"])
    taken = (
        f"{result['taken']}, {machine['cores']} cores shared with other work (median load "
        f"{loads}), Python {machine['python']}. {result['groups']:,} groups x "
        f"{result['partitions']} partitions."
    )
    cost_head = (
        *("interval, s", "minutes", "cycles a minute", "cycle, s: median"),
        *("p95", "highest", "skipped cycles", "% of one core", "driver, Java, workers"),
        "MirrorMaker 2, % of one core",
    )
    costs, rereads = [], []
    for one in result["runs"]:
        interval, cycles, cores = f"{one['interval_seconds']:g}", one["cycles"], one["cores"]
        costs.append(
            (
                *(interval, f"{one['minutes']:.3g}"),
                f"{cycles['per_minute']:.3g}",
                *(f"{cycles['seconds'][key]:.3g}" for key in ("median", "p95", "high")),
                f"{cycles['left_out']}",
                f"{100 * cores['cpu_seconds']:.0f}",
                ", ".join(f"{100 * cores[key]:.0f}" for key, _ in _CORE_PARTS),
                f"{100 * one['mirror_cores']:.0f}",
            )
        )
        for name, tool in one["tools"].items():
            again, whole = tool["reread"], tool["over_consumed"]
            rereads.append(
                (
                    f"{interval} s, {name}",
                    f"{one['moments']}",
                    f"{tool['skipped']}",
                    share(tool["without_offset"], tool["group_partitions"]),
                    *(f"{round(again[key]):,}" for key in ("median", "mean", "p95", "high")),
                    f"{tool['reread_of_a_failover']['median']:,.0f}",
                    f"{whole['median']:.2f}",
                    f"{whole['high']:.2f}",
                    f"{100 * tool['within_goal']:.1f} %",
                )
            )
    reread_head = (
        *("interval, tool", "moments", "skipped", "without an offset"),
        *("re-read by group-partition: median", "mean", "p95", "highest", "sum of a failover"),
        *("over consumed in two intervals: median", "highest", "group-partitions with 1 at most"),
    )
    behind = "; ".join(
        f"{one['checkpoints_behind']['median']:,.0f} (95th percentile "
        f"{one['checkpoints_behind']['p95']:,.0f}) at {one['interval_seconds']:g} s"
        for one in result["runs"]
    )
    told = (
        "MirrorMaker 2's newest checkpoints translate older offsets than the groups' newest ones. "
        f"Records that a group read in between, median: {behind}."
    )
    return "\n\n".join((taken, table(cost_head, costs), table(reread_head, rereads), told))
