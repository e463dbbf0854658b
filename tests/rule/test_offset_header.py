"""A header in which the replicator kept the source offset (`translation.offset.header`)."""

import pytest

from tests.replication_model import NOW_MS, SOURCE, TARGET
from tests.translating import translated_of
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Outcome, Precision, Translated
from tsoffset.records import OffsetHeader
from tsoffset.testing.memory_cluster import MemoryCluster, Message

BINARY, TEXT = OffsetHeader("origin"), OffsetHeader("origin", text=True)


def written(header: OffsetHeader, offset: int) -> bytes:
    return b"%d" % offset if header.text else offset.to_bytes(8, "big")


class HeaderMirror:
    """Records that nothing tells apart but the header that the replicator adds."""

    def __init__(self, header: OffsetHeader) -> None:
        self.header = header
        self.source_cluster = MemoryCluster("A")
        self.target_cluster = MemoryCluster("B", offset_header=header)
        self.source_cluster.create_topic(SOURCE.topic)
        self.target_cluster.create_topic(TARGET.topic)
        self.source = self.source_cluster.log(SOURCE.topic)
        self.target = self.target_cluster.log(TARGET.topic)
        self.source.append([Message(NOW_MS, b"k", b"v")] * 60, batch_size=5)

    def copy(self, start: int, end: int) -> "HeaderMirror":
        """Copy a part of the log."""
        for offset in range(start, end):
            value = written(self.header, offset)
            self.target.append([Message(NOW_MS, b"k", b"v", (("origin", value),))])
        return self

    def outcome(self, committed: int) -> Outcome:
        settings = TranslationSettings(offset_header=self.header)
        clusters = self.source_cluster, self.target_cluster
        return translated_of(*clusters, committed, translation=settings)[committed].outcome


@pytest.mark.parametrize("header", [BINARY, TEXT])
@pytest.mark.parametrize("committed", [0, 1, 29, 30, 58])
def test_a_header_tells_records_apart_that_nothing_else_does(header, committed):
    """Sixty records of one timestamp, key and value, of which every third was left out: each
    position resumes at the first copy of what the group has yet to read."""
    mirror = HeaderMirror(header)
    for start in range(0, 60, 3):
        mirror.copy(start, start + 2)
    outcome = mirror.outcome(committed)
    assert isinstance(outcome, Translated), outcome
    assert outcome.precision is Precision.EXACT
    copied = [offset for offset in range(60) if offset % 3 < 2]
    assert (
        outcome.equivalent_from
        <= sum(offset < committed for offset in copied)
        <= outcome.equivalent_to
    )


def test_the_first_copy_of_a_repeat_counts_by_its_header():
    """0..49 and 20..24 again: behind the second copy of 22 the records 25..49 would not come."""
    mirror = HeaderMirror(BINARY).copy(0, 50).copy(20, 25)
    outcome = mirror.outcome(22)
    assert isinstance(outcome, Translated)
    assert outcome.target_offset == 22


def test_records_without_the_header_are_nobodys_copies():
    """Records of others lie between the copies; they are passed over."""
    mirror = HeaderMirror(BINARY).copy(0, 20)
    mirror.target.append([Message(NOW_MS, b"k", b"v")] * 7)
    mirror.copy(20, 60)
    outcome = mirror.outcome(33)
    assert isinstance(outcome, Translated)
    assert (outcome.target_offset, outcome.precision) == (40, Precision.EXACT)


@pytest.mark.parametrize("header", [BINARY, TEXT])
@pytest.mark.parametrize("value", [None, b"", b"-1", b"7" * 20, b"7" * 5_000, b"\xb2"])
def test_what_is_no_offset_is_no_header(header, value):
    """A producer may write anything under that name, more digits than Python converts, too."""
    assert header.of([("origin", value)]) is None
