"""`python -m benchmarks.history`: the size of past cycles, and the cost of writing them.

No clusters: rows like those of a cycle over many groups and partitions, of which a share moves from
each cycle to the next, are written to a folder and merged like a finished day. A pair that moves is
committed, and unchanged in the cycle after, so it has two rows. A year is a day of one cycle a
minute, times 365.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measures import rounded, seconds_of, spread
from benchmarks.results import Result, options, run, shown
from tests.memory_flows import flow
from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.status import Cycle, FlowState, FlowStatus
from tsoffset.group_sync.arrow_tables import columns_table
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import ROWS, Rows
from tsoffset.history.flow_history import FlowHistory
from tsoffset.history.tidying import tidy
from tsoffset.model import OutcomeKind, Precision
from tsoffset.stores import store_at
from tsoffset.terminal.row_columns import tally_of

FLOW = "A->B"
SHARES = (0.01, 0.1)
_CYCLES_A_DAY = 24 * 60
_FULL_EVERY = 60
_NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


def _measure(chosen: argparse.Namespace) -> Result:
    groups = chosen.groups or (2_000 if chosen.quick else 65_000)
    found = {share: _kept(groups, chosen.partitions, chosen.cycles, share) for share in SHARES}
    for share, result in found.items():
        shown(f"{share:.1%} move", {name: result[name] for name in ("gb_a_year", "bytes")})
    return {
        "groups": groups,
        "pairs": groups * chosen.partitions,
        "shares": [{"share": share, **result} for share, result in found.items()],
    }


def _kept(groups: int, partitions: int, cycles: int, share: float) -> Result:
    pairs = groups * partitions
    with tempfile.TemporaryDirectory(prefix="tsoffset-history-") as folder:
        history = FlowHistory(store_at(folder), FLOW, "0123456789ab", _FULL_EVERY)
        estate = _Estate(groups, partitions, share)
        times = []
        for number, table in enumerate(estate.cycles(cycles + 1), 1):
            times.append(seconds_of(lambda: _write(history, number, table)))  # noqa: B023
        full, *changed = (size for _, size in _sizes(folder, "pairs"))
        rows_a_cycle = sum(estate.written[1:]) / cycles
        merging = seconds_of(lambda: tidy(store_at(folder), FLOW, date.max))
        # Merged files are removed the next time.
        tidy(store_at(folder), FLOW, date.max)
        merged = sum(size for _, size in _sizes(folder, "pairs"))
        summaries = sum(size for _, size in _sizes(folder, "cycles")) / (cycles + 1)
    # In a small estate at 1 % or less, there are too few changes to measure.
    a_row = max(0.0, merged - full) / (cycles * rows_a_cycle)
    day = full + _CYCLES_A_DAY * (rows_a_cycle * a_row + summaries)
    fulls = _CYCLES_A_DAY / _FULL_EVERY * full
    today = fulls + _CYCLES_A_DAY * (sum(changed) / cycles + summaries)
    return {
        "rows_a_cycle": round(rows_a_cycle),
        "bytes": {
            "full_row": rounded(full / pairs),
            "changed_row": rounded(sum(changed) / cycles / rows_a_cycle),
            "merged_row": rounded(a_row),
            "cycle": round(summaries),
        },
        "mb_today_at_most": round(today / 1e6),
        "gb_a_year": rounded(365 * day / 1e9),
        "seconds": {
            "first": rounded(times[0]),
            "later": spread(times[1:]),
            "merging": rounded(merging),
        },
    }


@dataclass(slots=True)
class _Estate:
    """Groups whose pairs move; `written` counts the rows that differ from the cycle before."""

    groups: int
    partitions: int
    share: float
    written: list[int] = field(default_factory=list)

    def cycles(self, count: int) -> Iterator[pa.Table]:
        chance = np.random.default_rng(1292)
        pairs = self.groups * self.partitions
        names = np.repeat(np.arange(self.groups), self.partitions)
        group = _words([f"team-{n % 97}.service-{n:05}" for n in range(self.groups)], names)
        topics = chance.integers(0, 500, pairs)
        topic = _words([f"domain-{n % 23}.events-{n:03}" for n in range(500)], topics)
        target = _words([f"A.domain-{n % 23}.events-{n:03}" for n in range(500)], topics)
        partition = pa.array(np.tile(np.arange(self.partitions, dtype=np.int32), self.groups))
        offset = chance.integers(0, 10**9, pairs)
        shift = chance.integers(0, 10**6, pairs)
        stamp = 1_795_000_000_000 + chance.integers(0, 10**8, pairs)
        moved = np.full(pairs, False)
        self.written = []
        for number in range(count):
            now = chance.random(pairs) < self.share if number else moved
            step = np.where(now, chance.integers(1, 10_000, pairs), 0)
            offset, before, stamp = offset + step, offset, stamp + 10 * step
            ended = np.full(pairs, _ended(number + 1))
            self.written.append(int((now | moved).sum()) if number else pairs)
            outcome = [OutcomeKind.UNCHANGED.value, OutcomeKind.COMMITTED.value]
            columns = {
                "flow": _words([FLOW], np.zeros(pairs, int)),
                "group": group,
                "source_topic": topic,
                "partition": partition,
                "source_offset": pa.array(offset),
                "source_timestamp_ms": pa.array(stamp),
                "target_topic": target,
                "target_offset": pa.array(offset - shift),
                "current_target_offset": pa.array(before - shift),
                "outcome": _words(outcome, now.astype(int)),
                "precision": _words([Precision.EXACT.value], np.zeros(pairs, int)),
                "reread_bound": pa.array(np.zeros(pairs, np.int64)),
                "lag_records": pa.array(np.zeros(pairs, np.int64)),
                "in_sync_at": pa.array(ended),
                "synced_source_offset": pa.array(offset),
            }
            yield columns_table(PAIRS_KNOWN, pairs, columns)
            moved = now


def _words(words: list[str], at: np.ndarray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(at.astype(np.int32), pa.array(words))


def _ended(number: int) -> float:
    return _NOON + 60.0 * number


def _write(history: FlowHistory, number: int, pairs: pa.Table) -> None:
    result = CycleResult(FLOW, Rows(pairs), (), False, 1.0, 1, 1)
    started = _ended(number) - 1.0
    cycle = Cycle(FLOW, number, started, 1.0, True, result, tally_of(ROWS.empty_table()))
    history.add(cycle, FlowStatus(flow(), FlowState.RUNNING, pairs=pairs))
    history.write()


def _sizes(folder: str, kind: str) -> list[tuple[str, int]]:
    found = (Path(folder) / kind).rglob("*.parquet")
    return sorted((file.name, file.stat().st_size) for file in found)


if __name__ == "__main__":
    parser = options("history", __doc__)
    parser.add_argument("--groups", type=int, default=None, help="(default: 65000, quick 2000)")
    parser.add_argument("--partitions", type=int, default=10, help="that each group reads")
    parser.add_argument("--cycles", type=int, default=12, help="that are measured")
    run("history", parser, _measure)
