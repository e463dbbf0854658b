"""What is true of a mirror by what its records hold: each carries a value of its own."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from tests.producing import Contents


@dataclass
class Partition:
    """One partition on both sides. `copies` has each target record in order: its offset, and the
    offset of the original."""

    source_end: int
    target_end: int
    copies: list[tuple[int, int]]
    _places: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for there, original in self.copies:
            self._places[original].append(there)

    def largest_safe(self, committed: int) -> int:
        """The largest target offset at or behind which each record from `committed` on has a
        copy, of those that have one at all."""
        return min(
            (places[-1] for original, places in self._places.items() if original >= committed),
            default=self.target_end,
        )

    def again(self, committed: int, target_offset: int) -> int:
        """How many records before `committed` a consumer gets from `target_offset` on of which no
        copy lies before it: those that come again although the replicator did not repeat them."""
        return sum(
            original < committed and places[0] >= target_offset
            for original, places in self._places.items()
        )

    def between(self, start: int, end: int) -> int:
        """How many records the target has with start <= offset < end."""
        return sum(start <= there < end for there, _ in self.copies)

    @property
    def repeated(self) -> int:
        """How many copies the replicator made more than once."""
        return len(self.copies) - len(self._places)


def truth(
    source: Contents, target: Contents, topics: Collection[str], partitions: int, alias: str
) -> dict[tuple[str, int], Partition]:
    """Both sides of all partitions of the topics, read to their ends."""
    found = {}
    for topic in topics:
        remote = f"{alias}.{topic}"
        for number in range(partitions):
            originals = {one.value: one.offset for one in source.read(topic, partition=number)}
            copies = [
                (one.offset, originals[one.value]) for one in target.read(remote, partition=number)
            ]
            found[topic, number] = Partition(
                source.log_range(topic, number)[1], target.log_range(remote, number)[1], copies
            )
    return found
