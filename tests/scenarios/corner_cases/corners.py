"""The clusters and flows of the corner cases, and what all of them ask.

`here` and `there` are the two ordinary clusters; the other aliases are further names of them,
or of a third one, for flows that need settings of their own.
"""

from collections.abc import Mapping

from tests.producing import Contents
from tests.scenarios.flows import Flows
from tests.waiting import wait_until
from tsoffset.lab.embedded import MirrorMaker

# Flows, each a pair of aliases: ordinary ones; by an exactly-once MirrorMaker 2; through a
# filter; in large batches; on the third cluster, from itself to itself; and from there.
PLAIN, EXACTLY_ONCE, FILTERED = "here->there", "paid->once", "all->half"
LARGE_BATCHES, DEEP, TORN = "big->wide", "deep->tiers", "torn->mended"
# By a mirror that begins with the newest record.
FROM_LATEST = "newer->copy"
CLUSTERS = {
    **dict.fromkeys(("here", "paid", "all", "big", "newer"), "source"),
    **dict.fromkeys(("there", "once", "half", "wide", "mended", "copy"), "target"),
    **dict.fromkeys(("deep", "tiers", "torn"), "deep"),
}
FLOWS = (PLAIN, EXACTLY_ONCE, FILTERED, LARGE_BATCHES, DEEP, TORN, FROM_LATEST)


class Corners(Flows):
    """All clusters by alias, and the flows as one properties file has them."""

    def __init__(self, contents: Mapping[str, Contents], mirror_maker: MirrorMaker) -> None:
        super().__init__({alias: contents[name] for alias, name in CLUSTERS.items()}, mirror_maker)

    def with_contents(self, name: str, contents: Contents) -> "Corners":
        """The same, but for the client of one of the clusters."""
        clusters = {CLUSTERS[alias]: one for alias, one in self.contents.items()}
        return Corners({**clusters, name: contents}, self.mirror_maker)

    def wait_until_there(self, flow: str, topic: str, value: bytes) -> None:
        """Wait until a record with that value can be read on the target."""
        _, target = self.sides(flow)
        remote = self.remote(flow, topic)
        self.mirror_maker.wait_for_topic(target.bootstrap, remote)

        def there() -> bool:
            records = target.read(remote, isolation="read_committed")
            return any(record.value == value for record in records)

        wait_until(there, f"the last record of {topic} is mirrored")
