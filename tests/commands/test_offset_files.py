"""Files of offsets: what is read of each format, what is refused, what is written."""

import json
from pathlib import Path

import pytest

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import StoredOffset, TargetOffset, Targets
from tsoffset.offset_files.formats import read_flink
from tsoffset.offset_files.reading import parse, read_file, require_other_file, write_file
from tsoffset.offset_files.spark_checkpoint import migrate, read_checkpoint


def moved(offsets: tuple[StoredOffset, ...]) -> Targets:
    """Each offset 5 less on the target, in a topic with a prefix."""
    return {
        one: TargetOffset(f"A.{one.topic}", one.offset - 5 if one.offset >= 0 else one.offset)
        for one in offsets
    }


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"o":{"0":23,"1":-1,"2":-2}}', '{"A.o":{"0":18,"1":-1,"2":-2}}\n'),
        (
            '{"partitions":[{"topic":"o","partition":0,"offset":23}],"version":1}',
            '{"partitions": [{"topic": "A.o", "partition": 0, "offset": 18}], "version": 1}\n',
        ),
        ("o,0,23\no,1,40\n", "A.o,0,18\nA.o,1,35\n"),
        ('"g,1",o,0,23\r\n', '"g,1",A.o,0,18\n'),
        ("topic,partition,offset\no,0,23", "topic,partition,offset\nA.o,0,18\n"),
    ],
)
def test_a_format_is_written_as_it_was_read(text, written):
    document = parse("in", text)
    assert document.translated(moved(document.offsets)) == written


def test_flink_offsets_are_written_as_they_were_read():
    document = read_flink("o", "partition:0,offset:42;partition:1,offset:300")
    assert document.translated(moved(document.offsets)) == (
        "partition:0,offset:37;partition:1,offset:295\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"o":{"0":23,\n"1":}}', "in:2: "),
        ('{"o":{"0":1},\n"p":{"0":true}}', "in:2: partition 0 of 'p' has the offset True"),
        ('{"o":{"0":-3}}', "offset -3"),
        ('{"o":{"00":3}}', "partition '00'"),
        ('{"o":{"0":9223372036854775808}}', "9223372036854775808"),
        ('{"o":{"0":1},"o":{"0":2}}', "'o' occurs twice"),
        ('{"o":5}', "in:1: 'o' has no offsets"),
        ("{}", "no offset"),
        ("[]", "a list"),
        ('{"partitions":[{"topic":"o","partition":0}]}', "in, entry 1 of `partitions`: the offset"),
        ('{"partitions":[]}', "in: no offset"),
        ("o,0,1\ng,o,1,1", "in:2: 4 fields"),
        ("o,0,1\no,1,x", "in:2: the offset 'x'; expected a number from 0 to 9223372036854775807"),
        ("o,2147483648,1", "the partition '2147483648'; expected a number from 0 to 2147483647"),
        ("a b,0,1", "in:1: the topic 'a b'; expected a topic's name"),
        ("o,0," + "9" * 5_000, "in:1: the offset '999"),
        ("o,0,1\no,0,2", "in:2: o-0 occurs twice"),
        ("", "no offset"),
    ],
)
def test_bad_input_is_refused_with_its_place(text, said):
    with pytest.raises(UsageError) as error:
        parse("in", text)
    assert said in str(error.value)
    assert "expected" in str(error.value)


@pytest.mark.parametrize(
    "text",
    ["", "partition:0", "partition:0,offset:-1", "partition:0,offset:1;partition:0,offset:2"],
)
def test_bad_flink_offsets_are_refused(text):
    with pytest.raises(UsageError, match="--flink"):
        read_flink("o", text)
    with pytest.raises(UsageError, match="topic 'a b'; expected a topic's name"):
        read_flink("a b", "partition:0,offset:1")


def test_a_file_is_replaced_whole_and_never_its_own_translation(tmp_path):
    source, output = str(tmp_path / "in.json"), str(tmp_path / "out.json")
    Path(source).write_text('{"o":{"0":23}}')
    Path(output).write_text("old")
    document = read_file(source)
    write_file(output, document.translated(moved(document.offsets)))
    assert json.loads(Path(output).read_text()) == {"A.o": {"0": 18}}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.json", "out.json"]
    for same in (f"{tmp_path}/./in.json", f"file://{source}"):
        with pytest.raises(UsageError, match="is the input"):
            require_other_file(source, same)
    for other in (output, "-", "s3://bucket/in.json"):
        require_other_file(source, other)


METADATA = '{"batchWatermarkMs":7,"batchTimestampMs":9,"conf":{}}'


def checkpoint(folder: Path, *, offsets: dict[int, list[str]], commits: list[int]) -> Path:
    """A checkpoint as Spark 4 writes it on a local file system."""
    made = folder / "checkpoint"
    for name in ("offsets", "commits", "sources/0", "state/0/0"):
        (made / name).mkdir(parents=True)
    (made / "metadata").write_text('{"id":"q"}')
    for batch, sources in offsets.items():
        (made / f"offsets/{batch}").write_text("\n".join(["v1", METADATA, *sources]))
        (made / f"offsets/.{batch}.crc").write_text("sum")
    for batch in commits:
        (made / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":7}')
    (made / "sources/0/0").write_text('\0v1\n{"o":{"0":10}}')
    (made / "state/0/0/1.delta").write_bytes(b"\0state")
    return made


def tree(folder: Path) -> dict[str, bytes]:
    """What each file holds."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_a_migrated_checkpoint_differs_in_the_last_batch_alone(tmp_path):
    """State, commits, metadata, older batches and sources that are not Kafka stay."""
    made = checkpoint(
        tmp_path,
        offsets={
            0: ['{"o":{"0":20}}', "-", '{"logOffset":1}'],
            1: ['{"o":{"0":40}}', '{"p":{"0":7,"1":9}}', '{"logOffset":2}'],
        },
        commits=[0, 1],
    )
    before = tree(made)
    read = read_checkpoint(f"file:{made}")
    migrate(read, moved(read.offsets), f"file://{tmp_path}/new")
    after = tree(tmp_path / "new")
    assert after.pop("offsets/1").decode() == "\n".join(
        ["v1", METADATA, '{"A.o":{"0":35}}', '{"A.p":{"0":2,"1":4}}', '{"logOffset":2}']
    )
    assert tree(made) == before
    del before["offsets/1"], before["offsets/.1.crc"]
    assert after == before


def test_a_batch_that_was_not_committed_has_both_its_ends_translated(tmp_path):
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}'], 1: ['{"o":{"0":40}}']}, commits=[0])
    read = read_checkpoint(str(made))
    assert [one.offset for one in read.offsets] == [20, 40]
    assert [one.offset for one in read.starting_offsets().offsets] == [20]
    migrate(read, moved(read.offsets), str(tmp_path / "new"))
    ends = [(tmp_path / f"new/offsets/{n}").read_text().split("\n")[2] for n in (0, 1)]
    assert ends == ['{"A.o":{"0":15}}', '{"A.o":{"0":35}}']


@pytest.mark.parametrize(
    ("offsets", "commits", "expected"),
    [
        # The first batch.
        ({0: ['{"o":{"0":20}}']}, [], [("o", 10), ("o", 20)]),
        # A source without an offset yet.
        (
            {0: ["-", '{"p":{"0":7}}'], 1: ['{"o":{"0":20}}', '{"p":{"0":9}}']},
            [0],
            [("p", 7), ("o", 10), ("o", 20), ("p", 9)],
        ),
        # One before the first commit, too.
        ({0: ["-", '{"p":{"0":9}}']}, [], [("o", 10), ("p", 7), ("p", 9)]),
    ],
)
def test_what_has_no_offset_begins_where_its_source_began(tmp_path, offsets, commits, expected):
    """Its beginning is an offset of the source cluster, too."""
    made = checkpoint(tmp_path, offsets=offsets, commits=commits)
    (made / "sources/1").mkdir()
    (made / "sources/1/0").write_text('\0v1\n{"p":{"0":7}}')
    read = read_checkpoint(str(made))
    assert [(one.topic, one.offset) for one in read.offsets] == expected
    migrate(read, moved(read.offsets), str(tmp_path / "new"))
    assert (tmp_path / "new/sources/0/0").read_text() == '\0v1\n{"A.o":{"0":5}}'


def test_a_planned_batch_of_a_source_without_a_beginning_is_refused(tmp_path):
    """Spark would begin it at an offset of the source cluster."""
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}']}, commits=[])
    (made / "sources/0/0").write_text("\0v1\n-")
    with pytest.raises(UsageError, match="sources/0/0:2: no offsets"):
        read_checkpoint(str(made))


@pytest.mark.parametrize(
    ("version", "sources", "commits", "said"),
    [
        ("v2", ['{"o":{"0":20}}'], [0], "offsets/0:1: the version 'v2'"),
        ("v1", ['{"o":{"0":20'], [0], "offsets/0:3: "),
        ("v1", ['{"o":{"0":-2}}'], [0], "o-0 is at -2"),
        ("v1", ['{"logOffset":2}'], [0], "no offset of Kafka"),
        ("v1", ['{"o":{"0":20},"p":{}}'], [0], "'p' has no offsets"),
        ("v1", ['{"o":{"0":20}}'], [0, 1, 2], "last in `commits` is 2"),
    ],
)
def test_an_unknown_checkpoint_is_refused(tmp_path, version, sources, commits, said):
    made = checkpoint(tmp_path, offsets={0: sources}, commits=commits)
    file = made / "offsets/0"
    file.write_text(file.read_text().replace("v1", version, 1))
    with pytest.raises(UsageError) as error:
        read_checkpoint(str(made))
    assert said in str(error.value)


def test_a_checkpoint_of_a_running_query_is_not_copied(tmp_path):
    """A batch that begins after the checkpoint was read ends the copy; nothing is left."""
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}']}, commits=[0])
    read = read_checkpoint(str(made))
    (made / "offsets/1").write_text("v1")
    with pytest.raises(UsageError, match="the query is running"):
        migrate(read, moved(read.offsets), str(tmp_path / "new"))
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]


def test_a_checkpoint_is_never_changed_in_place(tmp_path):
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}']}, commits=[0])
    read = read_checkpoint(str(made))
    with pytest.raises(UsageError, match="it exists"):
        migrate(read, moved(read.offsets), str(made))
    with pytest.raises(UsageError, match="outside of it"):
        migrate(read, moved(read.offsets), str(made / "new"))
    with pytest.raises(UsageError, match="object store"):
        migrate(read, moved(read.offsets), "s3://bucket/new")


def test_a_planned_batch_never_ends_before_it_begins(tmp_path):
    """Inexact translations of both its ends may cross, and Spark would fail or lose data."""
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}'], 1: ['{"o":{"0":40}}']}, commits=[0])
    read = read_checkpoint(str(made))
    crossed = {one: TargetOffset("A.o", 60 - one.offset) for one in read.offsets}
    with pytest.raises(UsageError, match=r"would begin at 40 of A\.o-0 and end at 20"):
        migrate(read, crossed, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
