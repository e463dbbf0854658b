"""Four clusters, the flows between them, and what lies in them.

MirrorMaker 2 and tsoffset read one and the same properties file. Every record has a value of
its own, so that content tells which record a consumer got.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.producing import Contents, Written
from tests.scenarios.flows import Flows
from tsoffset.testing.embedded import MirrorMaker

# Some clusters have further names: X, Y and W for flows that keep the topics' names, P and Q
# for a MirrorMaker 2 of its own.
CLUSTERS = {
    **{name: name for name in "ABCD"},
    **{"X": "A", "Y": "B", "W": "D"},
    **{"P": "A", "Q": "B"},
}


class Estate(Flows):
    """The clusters and the flows, and all that was ever written."""

    def __init__(self, contents: Mapping[str, Contents], mirror_maker: MirrorMaker) -> None:
        super().__init__({alias: contents[name] for alias, name in CLUSTERS.items()}, mirror_maker)
        self._written: defaultdict[tuple[str, str, int], dict[bytes, int]] = defaultdict(dict)

    def produce(
        self,
        alias: str,
        topic: str,
        records: Sequence[Written],
        *,
        partition: int = 0,
        batch: int = 100,
    ) -> list[int]:
        """Write records, and remember which value lies where."""
        offsets = self.contents[alias].produce(topic, records, partition=partition, batch=batch)
        self.remember(alias, topic, records, offsets, partition=partition)
        return offsets

    def transaction(
        self, alias: str, topic: str, records: Sequence[Written], *, name: str, commit: bool
    ) -> list[int]:
        """Write records in a transaction of their own, and end it."""
        transaction = self.contents[alias].begin_transaction(name)
        offsets = transaction.add(topic, records, batch=10)
        if commit:
            transaction.commit()
        else:
            transaction.abort()
        self.remember(alias, topic, records, offsets)
        return offsets

    def remember(
        self,
        alias: str,
        topic: str,
        records: Iterable[Written],
        offsets: Iterable[int],
        *,
        partition: int = 0,
    ) -> None:
        """Take down which value lies where; values never come twice."""
        lies_at = self._written[CLUSTERS[alias], topic, partition]
        for record, offset in zip(records, offsets, strict=True):
            assert record.value is not None
            assert record.value not in lies_at
            lies_at[record.value] = offset

    def written(self, alias: str, topic: str, partition: int = 0) -> Mapping[bytes, int]:
        """All values ever written to a partition, each with its offset."""
        return self._written[CLUSTERS[alias], topic, partition]
