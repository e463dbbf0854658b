"""Checkpoints of Spark: read, and copied with translated offsets."""

from pathlib import Path

import pytest
from pyarrow import fs

from tests.offset_files.test_formats import moved
from tsoffset.errors import UsageError
from tsoffset.offset_files.document import TargetOffset
from tsoffset.offset_files.spark_checkpoint import migrate, read_checkpoint

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


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("offsets/1", "", "an empty file"),
        ("offsets/1", "v1\n" + METADATA[:9], "it ends after line 2"),
        ("offsets/1", None, "Is a directory"),
        ("sources/0/0", None, "No such file"),
    ],
)
def test_a_damaged_file_of_a_checkpoint_is_named(tmp_path, file, content, said):
    """Not the folder, which is the right one."""
    made = checkpoint(tmp_path, offsets={0: ["-"], 1: ["-", '{"o":{"0":40}}']}, commits=[0])
    if file == "sources/0/0":
        made = checkpoint(tmp_path / "first", offsets={0: ['{"o":{"0":20}}']}, commits=[])
    (made / file).unlink()
    if content is not None:
        (made / file).write_text(content)
    elif file == "offsets/1":
        (made / file).mkdir()
    with pytest.raises(UsageError) as error:
        read_checkpoint(str(made))
    assert f"{made}/{file}: {said}" in str(error.value)
    assert "restore the checkpoint from a backup" in str(error.value)


@pytest.mark.parametrize("removed", [False, True])
def test_a_checkpoint_of_a_running_query_is_not_copied(tmp_path, monkeypatch, removed):
    """A batch that begins, or a file that Spark removes, after the checkpoint was read ends the
    copy; nothing is left."""
    made = checkpoint(tmp_path, offsets={0: ['{"o":{"0":20}}']}, commits=[0])
    read = read_checkpoint(str(made))
    if removed:

        def copy_files(*_places, **_systems):
            raise FileNotFoundError("Failed to open local file 'offsets/.0.crc'")

        monkeypatch.setattr(fs, "copy_files", copy_files)
    else:
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
