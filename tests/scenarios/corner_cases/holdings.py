"""What lies in the clusters before a corner case begins: topics, and how they are filled."""

import random
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.producing import CODECS, Contents, Written, numbered
from tests.scenarios.corner_cases.corners import Corners

# By the ordinary flow.
FAR_FUTURE = "far-future"
ONE_TIME = "one-time"
LARGE_FUTURE = "large-far-future"
LARGE_ONE_TIME = "large-one-time"
EMPTIED = "emptied"
DELETED = "deleted"
SOURCE_ANEW = "source-anew"
TARGET_ANEW = "target-anew"
# By the others.
PAID = "payments"
SIEVED = "sieved"
TIERED = "tiered"
SHORT_LIVED = "short-lived"
TORN_LOG = "torn-log"
NEWEST = "newest"


def megabytes(codec: str) -> str:
    """The topic whose batches are a megabyte large, in that codec."""
    return f"megabytes-{codec}"


RECORDS = 1000
# What logs have lost at their start before they are mirrored, so that no offset is the same on
# both sides.
TRIMMED = 100
HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
CENTURY_MS = 100 * 365 * DAY_MS

LARGE_RECORDS, LARGE_VALUE = 50_000, 1_000
MEGABYTE = 1_000_000
# Keys whose records are together more than a segment may hold: when they are superseded, the
# first segment that the cleaner merges from others is empty.
SUPERSEDED, SUPERSEDED_VALUE, OTHERS = 1_300, 1_000, 2_400
SEGMENT_BYTES = 1 << 20
EMPTIED_AGE_MS = DAY_MS
DROPPED = "drop-me"
SHORT_RETENTION_MS = 5 * DAY_MS

# Segments end at a batch whose records are later by more than this, and only what is closed
# is compacted, deleted for its age or moved to another tier.
_CLOSING = {"segment.ms": "1000"}
_COMPACTION = {
    **_CLOSING,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": str(SEGMENT_BYTES),
}
# local.retention.ms: what has been moved to the other tier goes from the disk at once.
TIERING = {**_CLOSING, "remote.storage.enable": "true", "local.retention.ms": "1"}


def fill(corners: Corners, *, tiered: bool) -> None:
    """Create and fill what is mirrored from the beginning."""
    here = corners.contents["here"]
    for topic in (DELETED, SOURCE_ANEW, TARGET_ANEW, NEWEST):
        fill_trimmed(here, topic)
    now = int(time.time() * 1000)
    centuries_ahead = Written(now + CENTURY_MS, b"a century ahead", b"early")
    fill_trimmed(here, FAR_FUTURE, [centuries_ahead, *numbered(2 * RECORDS, first=TRIMMED)])
    one_time = numbered(2 * RECORDS, first=TRIMMED, step_ms=0)
    fill_trimmed(here, ONE_TIME, one_time)
    large = [
        Written(now + number, b"%-*d" % (LARGE_VALUE, number)) for number in range(LARGE_RECORDS)
    ]
    fill_trimmed(here, LARGE_FUTURE, [centuries_ahead, *large])
    fill_trimmed(here, LARGE_ONE_TIME, [Written(now, record.value) for record in large])
    fill_emptied(here)
    for codec in CODECS:
        fill_megabytes(corners.contents["big"], codec)
    fill_sieved(corners.contents["all"])
    fill_short_lived(corners)
    if tiered:
        fill_tiered(corners)


def fill_trimmed(
    contents: Contents,
    topic: str,
    records: Sequence[Written] | None = None,
    *,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Records with distinct timestamps, or those given, behind a hundred that are gone."""
    contents.create_topic(topic, replicas=on_first_node(), configs=configs)
    contents.produce(topic, numbered(TRIMMED))
    contents.produce(topic, numbered(RECORDS, first=TRIMMED) if records is None else records)
    contents.delete_records(topic, TRIMMED)


def on_first_node() -> Mapping[int, Sequence[int]]:
    """The replicas of a topic of one partition; every cluster has a node 1."""
    return {0: [1]}


def fill_emptied(contents: Contents) -> None:
    """A log of distinct keys, of which the first megabyte will be superseded."""
    contents.create_topic(EMPTIED, replicas=on_first_node(), configs=_COMPACTION)
    long_ago = int(time.time() * 1000) - EMPTIED_AGE_MS
    records = [
        Written(
            long_ago + 100 * number,
            b"%-*d" % (SUPERSEDED_VALUE if number < SUPERSEDED else 20, number),
            b"key-%d" % number,
        )
        for number in range(SUPERSEDED + OTHERS)
    ]
    contents.produce(EMPTIED, records, batch=50)


def supersede(contents: Contents) -> bytes:
    """Write all keys of the first megabyte again, in one segment; return the last value."""
    (_, end) = contents.log_range(EMPTIED)
    (last,) = contents.read(EMPTIED, start=end - 1)
    values = [b"again-%d" % number for number in range(SUPERSEDED)]
    records = [
        Written(last.timestamp_ms + HOUR_MS, value, b"key-%d" % number)
        for number, value in enumerate(values)
    ]
    contents.produce(EMPTIED, records, batch=SUPERSEDED)
    return values[-1]


def close_segment(contents: Contents, topic: str) -> bytes:
    """Write a record that is later than all before by much, so that all before is closed;
    return its value."""
    (_, end) = contents.log_range(topic)
    (last,) = contents.read(topic, start=end - 1)
    contents.produce(topic, [Written(last.timestamp_ms + HOUR_MS, b"closing", b"closing")])
    return b"closing"


def fill_megabytes(contents: Contents, codec: str) -> None:
    """Batches of a megabyte as they lie in the log, and such as are three when unpacked."""
    topic = megabytes(codec)
    kept_as = {"compression.type": "uncompressed" if codec == "none" else codec}
    contents.create_topic(topic, replicas=on_first_node(), configs=kept_as)
    contents.produce(topic, numbered(TRIMMED))
    chance = random.Random(codec)
    size = 10_000
    per_batch = MEGABYTE // (size + 100)
    now = int(time.time() * 1000)

    def values(count: int, *, random_bytes: bool) -> Iterator[bytes]:
        for _ in range(count):
            yield chance.randbytes(size) if random_bytes else chance.randbytes(40) * (size // 40)

    batches = [values(per_batch, random_bytes=True) for _ in range(3)]
    if codec != "none":
        batches += [values(3 * per_batch, random_bytes=False) for _ in range(2)]
    number = 0
    for batch in batches:
        records = []
        for value in batch:
            records.append(Written(now + number, value, b"%d" % number))
            number += 1
        contents.produce(topic, records, batch=len(records), compression=codec)
    contents.delete_records(topic, TRIMMED)


def fill_sieved(contents: Contents) -> None:
    """Records of which a random half has the header that the filter looks for."""
    chance = random.Random(SIEVED)
    headers = ((DROPPED, b"yes"),)
    records = [
        Written(
            record.timestamp_ms, record.value, record.key, headers if chance.random() < 0.5 else ()
        )
        for record in numbered(RECORDS, first=TRIMMED)
    ]
    # The last one is kept, and tells that all is mirrored.
    last = records[-1]
    records[-1] = Written(last.timestamp_ms, last.value, last.key)
    fill_trimmed(contents, SIEVED, records)


def fill_short_lived(corners: Corners) -> None:
    """Records of the last ten days; the mirror, once it may, keeps those of the last five."""
    source, target = corners.sides("deep->tiers")
    start_ms = int(time.time() * 1000) - 10 * DAY_MS
    step_ms = 10 * DAY_MS // RECORDS
    records = numbered(RECORDS, first=TRIMMED, start_ms=start_ms, step_ms=step_ms)
    fill_trimmed(source, SHORT_LIVED, records)
    target.create_topic(
        corners.remote("deep->tiers", SHORT_LIVED), replicas=on_first_node(), configs=_CLOSING
    )


def fill_tiered(corners: Corners) -> None:
    """Segments of 50 records, on either side; all but the newest will leave the disk."""
    source, target = corners.sides("deep->tiers")
    start_ms = int(time.time() * 1000) - RECORDS * 100
    records = numbered(RECORDS, first=TRIMMED, start_ms=start_ms, step_ms=100)
    source.create_topic(TIERED, replicas=on_first_node(), configs=TIERING)
    source.produce(TIERED, numbered(TRIMMED))
    source.produce(TIERED, records, batch=25)
    source.delete_records(TIERED, TRIMMED)
    target.create_topic(
        corners.remote("deep->tiers", TIERED), replicas=on_first_node(), configs=TIERING
    )
