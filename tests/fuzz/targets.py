"""What reads bytes of others, as functions that take any bytes.

Each lets only those errors pass that its callers expect; any other one, and a broken promise, is a
finding. A new parser is a line in `TARGETS`.
"""

import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka.errors import CorruptRecordError, KafkaProtocolError, UnsupportedCodecError

from tests.kafka.wire.test_codecs import CODECS as ANSWERS
from tests.kafka.wire.test_codecs import SPOKEN
from tests.kafka.wire.test_codecs import rows as offset_rows
from tests.kafka.wire.test_records import CRC_AT, RECORDS_AT, batch, old, sealed, sent
from tests.migration import INPUTS
from tests.producing import CODECS
from tsoffset.commands.compare.checkpoint_file import checkpoint_of
from tsoffset.commands.migrate.reading import read_setup
from tsoffset.commands.migrate.run import configuration_text
from tsoffset.commands.migrate.sorting import migration_of
from tsoffset.commands.migrate.steps import steps_lines
from tsoffset.config.findings import Findings
from tsoffset.config.jaas import login_module
from tsoffset.config.loading import Configuration
from tsoffset.config.source import ConfigFormat, parse
from tsoffset.errors import ConfigurationError, UsageError
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.batch_records import BatchRecords, RawBatch
from tsoffset.kafka.wire.flexible_encoding import MALFORMED
from tsoffset.kafka.wire.lockstep import PAYS_FROM, walk
from tsoffset.kafka.wire.offset_fetch_codec import OffsetFetchAnswer
from tsoffset.kafka.wire.records import fetched_range, raw_fetched_range
from tsoffset.kafka.wire.share_offsets_codec import (
    AlterShareOffsetsCodec,
    DescribeShareOffsetsCodec,
)
from tsoffset.kafka.wire.unpacking import unpack
from tsoffset.model import Isolation
from tsoffset.offset_files.document import Document, StoredOffset, TargetOffset
from tsoffset.offset_files.formats import read_csv, read_flink
from tsoffset.offset_files.reading import parse as parse_offsets
from tsoffset.offset_files.spark_checkpoint import read_checkpoint
from tsoffset.records import UnreadableRecords
from tsoffset.replicators.checkpoints import MalformedCheckpoint, decode_key, decode_value
from tsoffset.replicators.discovery import heartbeat_timestamp_ms

_UNREADABLE = (CorruptRecordError, UnsupportedCodecError, UnreadableRecords)


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """What is fed, and inputs from which to begin."""

    feed: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def batches(data: bytes) -> None:
    """The first byte says where it is read from; batches of format 2 are given the length and the
    checksum that they should have, or nothing behind these would be reached."""
    offset, raw = data[0] if data else 0, bytearray(data[1:])
    if len(raw) > CRC_AT and raw[16] == 2:
        struct.pack_into(">i", raw, 8, len(raw) - 12)
        if len(raw) >= RECORDS_AT:
            sealed(raw)
    view = memoryview(bytes(raw))
    for isolation in Isolation:
        with suppress(*_UNREADABLE):
            raw_fetched_range(view, offset, 0, 1 << 40, isolation, [(1, 0)])
        with suppress(*_UNREADABLE):
            found = fetched_range(view, offset, 0, 1 << 40, isolation, [(1, 0)])
            if found is None:
                continue
            assert found.start <= offset < found.end
            offsets = list(found.records.offsets)
            assert all(one < other for one, other in pairwise(offsets))
            assert all(found.start <= each < found.end for each in offsets)
            assert len(list(found.records.timestamps)) == len(offsets)
            assert [record.offset for record in found.records] == offsets


def records(data: bytes) -> None:
    """The content of a batch, walked alone and beside others: both find the same, or nothing."""
    count, content = 1 + data[0] % 32 if data else 1, data[1:]
    raw = RawBatch(content, count, 100, 100 + count - 1, 1_000, None, 100, 100 + count)
    made = BatchRecords(raw, None)
    [piece, *_] = walk([made.raw] * PAYS_FROM)
    try:
        offsets = list(made.to_digests().offsets)
    except UnreadableRecords:
        return
    assert piece is not None
    assert piece.offset.tolist() == offsets
    assert piece.timestamp.tolist() == [-1 if stamp is None else stamp for stamp in made.timestamps]


def packed(data: bytes) -> None:
    """The first byte names the codec."""
    codec, content = data[0] % 6 if data else 0, data[1:]
    with suppress(CorruptRecordError, UnsupportedCodecError):
        assert len(unpack(content, codec, 0)) <= max(32 << 20, 100 * len(content))


def answers(data: bytes) -> None:
    """Answers to the requests that are decoded by hand; the first byte says of which kind."""
    kinds = [*SPOKEN, *_SHARE_OFFSETS]
    kind = kinds[data[0] % len(kinds) if data else 0]
    with suppress(KafkaProtocolError, *MALFORMED):
        if not isinstance(kind, tuple):
            kind(memoryview(data[1:]))
            return
        name, version = kind
        found = ANSWERS[name].read(version, memoryview(data[1:]))
        if isinstance(found, OffsetFetchAnswer):
            assert len(offset_rows(found)) == len(found.offset)


_SHARE_OFFSETS: tuple[Callable[[memoryview], object], ...] = (
    AlterShareOffsetsCodec("c", 0).decode,
    *(DescribeShareOffsetsCodec("c", Deadline.after(60_000), version).decode for version in (0, 1)),
)


def checkpoints(data: bytes) -> None:
    """Key and value of a checkpoint, each from all of it."""
    with suppress(MalformedCheckpoint):
        key = decode_key(data)
        assert key.target.partition >= 0
    with suppress(MalformedCheckpoint):
        value = decode_value(data)
        assert min(value.source_offset, value.target_offset) >= 0


def checkpoint_lines(data: bytes) -> None:
    """A line of a dump of checkpoints."""
    with suppress(ValueError):
        if (found := checkpoint_of(data)) is not None:
            key, checkpoint = found
            assert (
                min(key.target.partition, checkpoint.source_offset, checkpoint.target_offset) >= 0
            )


def offset_files(data: bytes) -> None:
    """Offsets that an application keeps; what is written of them is read as the same offsets. The
    first byte says where they stand: in a file, an option of Flink or a checkpoint of Spark."""
    kind, text = data[0] % 3 if data else 0, _text(data[1:])
    document: Document
    with suppress(UsageError):
        if kind == 0:
            document = parse_offsets("in", text)
            again = parse_offsets if text.lstrip().startswith(("{", "[")) else read_csv
            assert again("out", _written(document)).offsets == document.offsets
        elif kind == 1:
            document = read_flink("orders", text)
            assert read_flink("orders", _written(document)).offsets == document.offsets
        else:
            with TemporaryDirectory() as folder:
                for log, content in (("offsets", data[1:]), ("commits", b"v1")):
                    (Path(folder) / log).mkdir()
                    (Path(folder) / log / "0").write_bytes(content)
                (file,) = read_checkpoint(folder).resumes
            assert len(file.render(_targets(file.offsets.values())).split("\n")) == len(
                text.split("\n")
            )


def _targets(offsets: Iterable[Iterable[StoredOffset]]) -> dict[StoredOffset, TargetOffset]:
    return {one: TargetOffset(one.topic, one.offset) for some in offsets for one in some}


def _written(document: Document) -> str:
    """The document with its own offsets."""
    return document.render(_targets([document.offsets]))


def heartbeats(data: bytes) -> None:
    """The value of a heartbeat."""
    emitted_ms = heartbeat_timestamp_ms(data)
    assert emitted_ms is None or emitted_ms >= 0


def properties(data: bytes) -> None:
    """A configuration of MirrorMaker 2."""
    _configured("fuzz.properties", data, ConfigFormat.PROPERTIES)


def connector(data: bytes) -> None:
    """A configuration as Connect takes it."""
    _configured("fuzz.json", data, ConfigFormat.JSON)


def migrated(data: bytes) -> None:
    """What MirrorMaker 2 is configured by; the first byte says in which form. What comes out is
    read by our loader, or has a problem that was named."""
    ending = (".properties", ".json", ".yaml")[data[0] % 3 if data else 0]
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"mirror{ending}"
        file.write_bytes(data[1:])
        findings = Findings()
        try:
            setup = read_setup([str(file)], findings)
            if setup is None or findings.problems:
                assert findings.problems
                return
            migration = migration_of(setup)
        except (ConfigurationError, UsageError):
            return
        list(steps_lines(migration, "ours", 80))
        text = configuration_text(migration)
    parsed = parse(text, ConfigFormat.PROPERTIES, "ours", Findings())
    assert {entry.key: entry.text for entry in parsed} == {
        "clusters": ", ".join(setup.clusters),
        **{one.key: one.text.rstrip(" ") for one in migration.settings},
    }


def jaas(data: bytes) -> None:
    """A client's login module; what is wrong with it is said without what it holds."""
    text = _text(data)
    with suppress(ValueError):
        login_module(text)


def _configured(path: str, data: bytes, form: ConfigFormat) -> None:
    try:
        Configuration(path, _text(data), form).resolve()
    except ConfigurationError as error:
        str(error).encode()


def _text(data: bytes) -> str:
    """As `tsoffset.config.source` reads a file."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


_MARKED = batch(sent(3), 5, producer_id=1, transactional=True)
_PROPERTIES = b"""clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = ${env:HOME}:9092
A->B.enabled = true
A->B.topics = orders.*, pay\\u002dments
groups.exclude = \\
  console-.*
replication.policy.separator = _
translation.offset.header = origin
A.consumer.request.timeout.ms = 1000
"""
_CONNECTOR = b"""{"name": "x", "config": {"source.cluster.alias": "A",
"target.cluster.alias": "B", "source.cluster.bootstrap.servers": "a:9092",
"target.cluster.bootstrap.servers": "b:9092", "groups": "g.*", "tasks.max": 4,
"enabled": true, "topics": "${file:/nowhere:key}"}}"""

TARGETS = {
    "batches": FuzzTarget(
        batches,
        (
            *(b"\5" + bytes(batch(sent(3), 5, codec)) for codec in CODECS),
            b"\6" + bytes(_MARKED + _MARKED),
            *(
                b"\0" + bytes(old(magic, codec, sent(3)))
                for magic in (0, 1)
                for codec in ("none", "gzip")
            ),
        ),
    ),
    "records": FuzzTarget(records, (b"\3" + bytes(batch(sent(3)))[RECORDS_AT:],)),
    "packed": FuzzTarget(
        packed,
        tuple(
            bytes((number,)) + bytes(batch(sent(20), 0, codec))[RECORDS_AT:]
            for codec, number in CODECS.items()
        ),
    ),
    "answers": FuzzTarget(
        answers,
        tuple(
            bytes((kind,)) + seed
            for kind, (name, version) in enumerate(SPOKEN)
            for seed in (ANSWERS[name].written(version), bytes(60))
        ),
    ),
    "checkpoints": FuzzTarget(
        checkpoints,
        (b"\0\1g\0\1t\0\0\0\1", struct.pack(">hqqh", 0, 5, 7, 0), struct.pack(">hq", 0, 9)),
    ),
    "checkpoint_lines": FuzzTarget(
        checkpoint_lines,
        (
            b"Checkpoint{consumerGroupId=g, topicPartition=t-1, upstreamOffset=5, "
            b"downstreamOffset=7, metadata=}",
            b'{"group": "g", "topic": "t", "partition": 1, "source_offset": 5, "target_offset": 7}',
            b'{"group": "g", "theirs": null}',
        ),
    ),
    "offset_files": FuzzTarget(
        offset_files,
        (
            b'\0{"orders":{"0":23,"1":-1},\n"p":{"0":7}}',
            b'\0{"partitions":[{"topic":"orders","partition":0,"offset":23}],"version":1}',
            b"\0topic,partition,offset\norders,0,23\r\norders,1,7\n",
            b'\0"g,\n"1",orders,0,23\n',
            b"\1partition:0,offset:42;partition:1,offset:300",
            b'\2v1\n{}\n{"orders":{"0":20}}\n-\n{"logOffset":1}',
            b"\2v1\n{}\n" + b"[" * 2_000,
            b'\0{"orders":{"' + b"1" * 5_000 + b'":23}}',
        ),
    ),
    "heartbeats": FuzzTarget(heartbeats, (struct.pack(">hq", 0, 9),)),
    "properties": FuzzTarget(properties, (_PROPERTIES,)),
    "connector": FuzzTarget(connector, (_CONNECTOR,)),
    "migrated": FuzzTarget(
        migrated,
        (
            b"\0" + _PROPERTIES,
            b"\1"
            + _CONNECTOR.replace(b'"groups"', b'"connector.class": "MirrorCheckpoint", "groups"'),
            *(b"\2" + path.read_bytes() for path in sorted(INPUTS.glob("*.yaml"))),
        ),
    ),
    "jaas": FuzzTarget(
        jaas, (b"a.b.PlainLoginModule required username=\"u\" password='p\\'' x=1;",)
    ),
}
