"""`tsoffset translate` over clusters in memory: what is written, what is refused."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_offset_files import checkpoint
from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.memory_flows import Estate, flow, mirrored_estate
from tsoffset.commands.translate.run import run_translate
from tsoffset.config.selection import Selector
from tsoffset.errors import UsageError
from tsoffset.flow.policy import DefaultTopicFilter
from tsoffset.model import Precision
from tsoffset.offset_files.document import LOG_END, Document, StoredOffset
from tsoffset.offset_files.reading import read_file
from tsoffset.offset_files.spark_checkpoint import read_checkpoint
from tsoffset.offset_files.translation import translate_stored
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.testing.memory_cluster import Verb


@pytest.fixture
def estate() -> Estate:
    """Two partitions of 100 records, the copies 400 further on."""
    return mirrored_estate(100, first_offset=400, partitions=2)


@pytest.fixture
def translate(estate: Estate, tmp_path: Path) -> Any:
    """The command: from a document and its options to the exit status and the rows."""

    def run(document: Document, output: Path | str | None = None, **options: Any) -> Any:
        return run_on(estate, tmp_path, lambda: document, output, **options)

    return run


def run_on(
    estate: Estate,
    folder: Path,
    read: Callable[[], Document],
    output: Path | str | None,
    *lines: str,
    again: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the rows. `lines` are of the configuration, `again` says how to
    repeat."""
    stream = io.StringIO()
    file = properties_file(folder, nowhere(), nowhere(), *lines)
    status = run_translate(
        Selector(file).select(),
        read,
        Output(stream, Format.JSON),
        Notices(),
        written=None if output is None else str(output),
        connect=estate.connect,
        **(options | dict(again or {})),
    )
    return status, [json.loads(line) for line in stream.getvalue().splitlines()]


def offsets(folder: Path, **topics: Any) -> Document:
    """A file of Spark's JSON."""
    file = folder / "offsets.json"
    file.write_text(json.dumps(topics))
    return read_file(str(file))


def test_offsets_are_translated_by_the_rule_of_groups(translate, estate, tmp_path):
    """The same target offsets as of a group; no group is read or made on either cluster."""
    estate.commit("billing", "orders", 40)
    (of_group,) = estate.plan()
    asked = [estate.asked(alias, Verb.COMMITTED) for alias in "AB"]
    document = offsets(tmp_path, orders={"0": 40, "1": 100})
    status, rows = translate(document, tmp_path / "out.json", group="mine")
    assert status == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "A.orders": {"0": of_group.target_offset, "1": 500}
    }
    assert [(row["group"], row["outcome"], row["precision"]) for row in rows] == [
        ("mine", "would_commit", "exact"),
        ("mine", "would_commit", "exact"),
    ]
    assert [estate.asked(alias, Verb.COMMITTED) for alias in "AB"] == asked
    assert [*estate["B"].groups().groups] == []


IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
BACK = ("A->B.enabled = false", "B->A.enabled = true")


@pytest.mark.parametrize(
    ("settings", "copy", "first_offset", "kept", "written"),
    [
        ((IDENTITY,), "orders", 400, ("orders", 40), ("orders", 440)),
        (("replication.policy.separator = _",), "A_orders", 400, ("orders", 40), ("A_orders", 440)),
        (BACK, "A.orders", 400, ("A.orders", 440), ("orders", 40)),
        ((*BACK, IDENTITY), "orders", 400, ("orders", 440), ("orders", 40)),
        (
            (IDENTITY, "translation.expect = same-offsets"),
            *("orders", 0, ("orders", 40), ("orders", 40)),
        ),
    ],
    ids=["identity", "separator", "back", "identity, back", "same offsets"],
)
def test_each_policy_and_direction(tmp_path, settings, copy, first_offset, kept, written):
    """A flow back reads the copies and writes the names and offsets of the originals."""
    estate = Estate()
    estate.write("orders", 100)
    estate.mirror("orders", copy, first_offset=first_offset)
    out = tmp_path / "out.json"
    document = offsets(tmp_path, **{kept[0]: {"0": kept[1]}})
    status, _ = run_on(estate, tmp_path, lambda: document, out, *settings)
    assert (status, json.loads(out.read_text())) == (0, {written[0]: {"0": written[1]}})


def test_standard_input_and_output(translate, monkeypatch, capsys):
    """Standard output has the translation, and no rows."""
    given = io.TextIOWrapper(io.BytesIO(b"orders,0,40\norders,1,100\n"))
    monkeypatch.setattr("sys.stdin", given)
    assert translate(read_file("-"), "-") == (0, [])
    assert "A.orders,0,440\nA.orders,1,500\n" in capsys.readouterr().out


def test_ends_of_logs_stay_and_topics_are_renamed(translate, tmp_path):
    document = offsets(tmp_path, orders={"0": -1, "1": -2})
    status, rows = translate(document, tmp_path / "out.json")
    assert status == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"A.orders": {"0": -1, "1": -2}}
    assert [(row["group"], row["source_offset"], row["outcome"]) for row in rows] == [
        (None, None, "unchanged")
    ] * 2


def test_a_topic_for_which_the_users_filter_raises_fails_alone(estate):
    """Also where its offset means an end of the log, which no cycle sees."""

    class Topics(DefaultTopicFilter):
        def should_replicate_topic(self, topic: str) -> bool:
            return {"orders": True}[topic]

    asked = [
        StoredOffset("odd", 0, LOG_END),
        StoredOffset("odd", 1, 3),
        StoredOffset("orders", 0, 3),
    ]
    settings = flow(topic_filter=Topics())
    found = translate_stored(settings, estate["A"], estate["B"], asked)
    assert [one.row.outcome for one in found] == ["failed", "failed", "would_commit"]
    assert all("raised KeyError" in (one.row.message or "") for one in found[:2])


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        ({"orders": {"0": 101, "1": 5}}, "PAST_LOG_END"),
        ({"orders": {"0": 5, "7": 5}}, None),
        ({"orders": {"0": 5}, "unknown": {"0": 5}}, None),
        ({"orders": {"0": 5}, "__internal": {"0": 5}}, "TARGET_MISSING"),
    ],
)
def test_nothing_is_written_where_one_offset_has_no_translation(
    translate, tmp_path, topics, reason, capsys
):
    """Whatever is accepted: there is no offset to write. The warning has the reason, since standard
    output may be that of the translation."""
    (tmp_path / "out.json").write_text("old")
    every = (Precision.BOUNDED, Precision.FRONTIER, Precision.UNPROVEN)
    status, rows = translate(offsets(tmp_path, **topics), tmp_path / "out.json", accepted=every)
    assert status == 1
    (bad,) = [row for row in rows if row["outcome"] in ("skipped", "failed")]
    assert reason in (None, bad["reason"])
    assert bad["message"] in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "out.json").read_text() == "old"


@pytest.fixture
def behind(estate: Estate) -> Estate:
    """50 more records on the source, not mirrored."""
    estate.write("orders", 50)
    return estate


@pytest.mark.usefixtures("behind")
def test_a_mirror_that_is_behind_needs_to_be_accepted(translate, tmp_path, capsys):
    document, out = offsets(tmp_path, orders={"0": 120, "1": 40}), tmp_path / "out.json"
    status, rows = translate(document, out)
    assert (status, rows[0]["precision"], rows[0]["reread_bound"]) == (1, "frontier", 20)
    assert not out.exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "with --accept frontier: at most 20 records re-read then" in said
    assert translate(document, out, accepted=(Precision.BOUNDED,))[0] == 1
    assert translate(document, out, accepted=(Precision.FRONTIER,))[0] == 0
    assert json.loads(out.read_text()) == {"A.orders": {"0": 500, "1": 440}}


def test_an_unproven_translation_is_never_written(estate, tmp_path):
    """`translation.proof = timestamps` may skip records: groups' operators accept that in the
    configuration, an application's file cannot say it."""
    document, proof = offsets(tmp_path, orders={"0": 40}), "translation.proof = timestamps"
    out, accepted = tmp_path / "out", tuple(Precision)
    status, rows = run_on(estate, tmp_path, lambda: document, out, proof, accepted=accepted)
    assert (status, rows[0]["precision"]) == (1, "unproven")
    assert not out.exists()


@pytest.mark.usefixtures("behind")
def test_a_planned_batch_is_migrated_only_with_both_its_ends(translate, estate, tmp_path, capsys):
    """Spark runs it again to its end, which the mirror has not reached; as starting offsets the
    committed batch is enough."""
    made = checkpoint(
        tmp_path, offsets={0: ['{"orders":{"0":40}}'], 1: ['{"orders":{"0":120}}']}, commits=[0]
    )
    read = read_checkpoint(str(made))
    assert translate(read, tmp_path / "new")[0] == 1
    assert "Trigger.AvailableNow" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "new").exists()
    assert translate(read.starting_offsets(), tmp_path / "starting.json")[0] == 0
    assert json.loads((tmp_path / "starting.json").read_text()) == {"A.orders": {"0": 440}}
    estate.mirror("orders")
    assert translate(read, tmp_path / "new")[0] == 0
    ends = [(tmp_path / f"new/offsets/{batch}").read_text().split("\n")[2] for batch in (0, 1)]
    assert ends == ['{"A.orders":{"0":440}}', '{"A.orders":{"0":520}}']


def test_sources_that_read_one_topic_are_translated_each(translate, tmp_path):
    """A query that joins a topic with itself has two offsets of one partition."""
    made = checkpoint(
        tmp_path, offsets={0: ['{"orders":{"0":40}}', '{"orders":{"0":60}}']}, commits=[0]
    )
    assert translate(read_checkpoint(str(made)), tmp_path / "new")[0] == 0
    lines = (tmp_path / "new/offsets/0").read_text().split("\n")[2:]
    assert lines == ['{"A.orders":{"0":440}}', '{"A.orders":{"0":460}}']


def test_repeating_translates_what_the_file_says_then(estate, tmp_path):
    """Each turn reads the file anew and replaces the output. A file that cannot be read and a
    cluster that is unreachable leave the last translation, and what was translated is not looked up
    again."""
    source, out = tmp_path / "offsets.json", tmp_path / "out.json"
    at = '{"orders":{"0":%d}}'
    contents = [at % 40, '{"orders":', at % 41, at % 40, at % 41]
    away = 2
    fetches: list[int] = []
    written: list[str] = []

    def read() -> Document:
        fetches.append(estate.asked("A", Verb.READ))
        estate["A"].unreachable = len(fetches) - 1 == away
        source.write_text(contents[len(fetches) - 1])
        return read_file(str(source))

    def sleep(_seconds: float) -> None:
        written.append(out.read_text().strip())
        if len(written) == len(contents):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on(estate, tmp_path, read, out, again={"every_seconds": 60, "sleep": sleep})
    at_40, at_41 = '{"A.orders":{"0":440}}', '{"A.orders":{"0":441}}'
    assert written == [at_40, at_40, at_40, at_40, at_41]
    assert fetches[4] == fetches[2] > fetches[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give one input"),
        (["in.json", "--spark-checkpoint", "c"], "give one input"),
        (["in.json", "--starting-offsets"], "needs --spark-checkpoint"),
        (["in.json", "--every", "5"], "--every needs"),
        (["--spark-checkpoint", "c", "-o", "d", "--every", "5"], "must have stopped"),
        (["--spark-checkpoint", "c", "-o", "."], "it exists"),
        (["in.json", "-o", "./in.json"], "is the input"),
        (["missing.json"], "missing.json"),
        (["--spark-checkpoint", "missing"], "there is no file in `offsets`"),
        (["--spark-checkpoint", "missing", "-o", "x" * 300], "there is no file in `offsets`"),
        (["in.json", "--accept", "unproven"], "unproven"),
    ],
)
def test_bad_usage_ends_with_status_2(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.json").write_text("{}")
    file = properties_file(tmp_path, nowhere(), nowhere())
    result = invoke("translate", "-c", str(file), *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_an_unreachable_cluster_is_status_3_and_writes_nothing(tmp_path):
    (tmp_path / "in.json").write_text('{"orders":{"0":40}}')
    file = properties_file(tmp_path, nowhere(), nowhere())
    out = tmp_path / "out.json"
    result = invoke("translate", "-c", str(file), str(tmp_path / "in.json"), "-o", str(out))
    assert result.exit_code == 3
    assert not out.exists()
    # Without rows, standard error says why.
    result = invoke("translate", "-c", str(file), str(tmp_path / "in.json"), "-o", "-")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no connection to the broker" in result.stderr


def test_several_flows_have_to_be_told_apart(estate, tmp_path):
    document = offsets(tmp_path, orders={"0": 1})
    with pytest.raises(UsageError, match="choose one with --flow"):
        run_on(estate, tmp_path, lambda: document, None, "B->A.enabled = true")
