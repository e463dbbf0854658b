"""A profile of the thread in which a cluster's event loop and all decoding run."""

import cProfile
import io
import pstats
from collections.abc import Callable
from pathlib import Path

from tsoffset.kafka.cluster import KafkaCluster


def profiled(cluster: KafkaCluster, work: Callable[[], object], written_to: Path) -> None:
    """Do the work twice, warm and then under a profile of the loop's own thread.

    A profile of the calling thread would show nothing but its wait for a lock.
    """
    work()
    profile = cProfile.Profile()
    connections = cluster._connections

    async def switch(on: bool) -> None:
        (profile.enable if on else profile.disable)()

    connections.run(lambda: switch(True))
    work()
    connections.run(lambda: switch(False))
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(30)
    written_to.parent.mkdir(parents=True, exist_ok=True)
    written_to.write_text(text.getvalue(), encoding="utf-8")
