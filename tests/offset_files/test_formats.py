"""Formats of offset files: what is read, what is refused, what is written."""

import pytest

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import StoredOffset, TargetOffset, Targets
from tsoffset.offset_files.formats import read_flink
from tsoffset.offset_files.reading import parse


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
    assert document.render(moved(document.offsets)) == written


def test_flink_offsets_are_written_as_they_were_read():
    document = read_flink("o", "partition:0,offset:42;partition:1,offset:300")
    assert document.render(moved(document.offsets)) == (
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
