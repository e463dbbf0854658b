"""What a translation holds does not grow with the batches it reads."""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

import polars as pl
import pytest

from benchmarks import filling
from benchmarks.filling import Batches
from benchmarks.measures import forget_peak, peak_mb
from tests.memory_flows import flow
from tsoffset.cycle import rounds
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.steps import StepsHere
from tsoffset.group_sync.tables import PARTITIONS, SOURCE_OFFSET, TO_TRANSLATE, empty
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import Precision

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc"),
]

PARTITION_COUNT = 2
FEW, MORE = 20, 100
# A megabyte a batch each: few records that are large, and many that are small.
LARGE, SMALL = Batches(10, 100_000), Batches(5_000, 200)
# Batches of original and copy that MORE positions read and FEW do not, of a megabyte.
MORE_MB = 2 * PARTITION_COUNT * (MORE - FEW)


def written(bootstrap: str, topic: str, batches: Batches) -> str:
    """Original and copy lie in one cluster: there is no need of a second one."""
    start_ms = filling.recent_ms(MORE * batches.records)
    for name in (topic, f"A.{topic}"):
        size = {"max.message.bytes": "10000000"}
        filling.topic(bootstrap, name, PARTITION_COUNT, configs=size)
        filling.fill(bootstrap, name, range(PARTITION_COUNT), batches, MORE, start_ms)
    return topic


def translated(bootstrap: str, topic: str, batches: Batches, positions: int, room: int) -> float:
    """In a process of its own: so many positions of each partition, each in a batch of its own.
    The most that it has held, in MB."""
    rounds.RECORDS_HELD = room
    offsets = [batches.records * number + 3 for number in range(positions)]
    rows = [
        (topic, n, at, f"A.{topic}", True, False) for n in range(PARTITION_COUNT) for at in offsets
    ]
    with ExitStack() as open_:
        source, target = (
            open_.enter_context(KafkaCluster(ClusterSettings(alias, (bootstrap,))))
            for alias in "AB"
        )
        forget_peak(os.getpid())
        steps = StepsHere(flow(), source, target)
        found, *_, cost = steps.translate(
            pl.DataFrame(rows, TO_TRANSLATE, orient="row"), empty(PARTITIONS)
        )
        found = found.sort(SOURCE_OFFSET)
        peak = peak_mb(os.getpid())
    assert cost.source_fetches >= PARTITION_COUNT * positions
    assert found["target_offset"].to_list() == PARTITION_COUNT * offsets
    assert found["precision"].unique().to_list() == [Precision.EXACT]
    return peak


def peaks(bootstrap: str, topic: str, batches: Batches, room: int) -> tuple[float, float]:
    """For FEW and for MORE."""
    found = []
    for positions in (FEW, MORE):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            work = process.submit(translated, bootstrap, topic, batches, positions, room)
            found.append(work.result())
    return found[0], found[1]


@pytest.mark.parametrize("batches", [LARGE, SMALL], ids=["large records", "small records"])
def test_what_was_read_leaves_no_trace(source_broker, unique, batches):
    """Five times as many batches of a megabyte, each with a position of its own and room for the
    records of eight: of what is read more, less than a quarter is held at once. Large records are
    reduced to digests as they arrive, small ones are dropped before more are read."""
    topic = written(source_broker.bootstrap, unique("batches"), batches)
    few, many = peaks(source_broker.bootstrap, topic, batches, 8 * SMALL.records)
    assert many - few < MORE_MB / 4, (few, many)
