"""`tsoffset translate` over clusters in memory: what is written, what is refused."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.configured import nowhere, properties_file
from tests.invoking import in_memory, invoke
from tests.memory_flows import Estate, RaisingTopics, flow, mirrored_estate
from tests.offset_files.test_spark_checkpoint import checkpoint
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Precision
from tsoffset.offset_files.document import LOG_END, StoredOffset
from tsoffset.offset_files.translation import translate_stored
from tsoffset.testing.memory_cluster import Verb


@pytest.fixture
def estate() -> Estate:
    """Two partitions of 100 records, the copies 400 further on."""
    return mirrored_estate(100, first_offset=400, partitions=2)


def translated(
    estate: Estate, folder: Path, *words: str | Path, lines: Sequence[str] = ()
) -> tuple[int, list[dict[str, Any]], str]:
    """The exit status, the rows, and what is said beside them."""
    given = ("translate", *map(str, words), "--format", "json")
    result = in_memory(estate, folder, *given, lines=lines)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return result.exit_code, rows, " ".join(result.stderr.split())


@pytest.fixture
def translate(estate: Estate, tmp_path: Path) -> Callable[..., Any]:
    """The command with some words."""
    return partial(translated, estate, tmp_path)


def offsets(folder: Path, **topics: Any) -> Path:
    """A file of Spark's JSON."""
    file = folder / "offsets.json"
    file.write_text(json.dumps(topics))
    return file


def test_offsets_are_translated_by_the_rule_of_groups(translate, estate, tmp_path):
    """The same target offsets as of a group; no group is read or made on either cluster."""
    estate.commit("billing", "orders", 40)
    (of_group,) = estate.plan()
    asked = [estate.asked(alias, Verb.COMMITTED) for alias in "AB"]
    document, out = offsets(tmp_path, orders={"0": 40, "1": 100}), tmp_path / "out.json"
    status, rows, _ = translate(document, "-o", out, "--as", "mine")
    assert status == 0
    assert json.loads(out.read_text()) == {"A.orders": {"0": of_group.target_offset, "1": 500}}
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
    status, _, _ = translated(estate, tmp_path, document, "-o", out, lines=settings)
    assert (status, json.loads(out.read_text())) == (0, {written[0]: {"0": written[1]}})


def test_standard_input_and_output(estate, tmp_path):
    """Standard output has the translation, and no rows."""
    words = ("translate", "-", "-o", "-")
    result = in_memory(estate, tmp_path, *words, input="orders,0,40\norders,1,100\n")
    assert (result.exit_code, result.stdout) == (0, "A.orders,0,440\nA.orders,1,500\n")


def test_ends_of_logs_stay_and_topics_are_renamed(translate, tmp_path):
    document, out = offsets(tmp_path, orders={"0": -1, "1": -2}), tmp_path / "out.json"
    status, rows, _ = translate(document, "-o", out)
    assert status == 0
    assert json.loads(out.read_text()) == {"A.orders": {"0": -1, "1": -2}}
    assert [(row["group"], row["source_offset"], row["outcome"]) for row in rows] == [
        (None, None, "unchanged")
    ] * 2


def test_a_topic_for_which_the_users_filter_raises_fails_alone(estate):
    """Also where its offset means an end of the log, which no cycle sees."""
    asked = [
        StoredOffset("odd", 0, LOG_END),
        StoredOffset("odd", 1, 3),
        StoredOffset("orders", 0, 3),
    ]
    settings = flow(topic_filter=RaisingTopics())
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
    translate, tmp_path, topics, reason
):
    """Whatever is accepted: there is no offset to write. The warning has the reason, since standard
    output may be that of the translation."""
    out = tmp_path / "out.json"
    out.write_text("old")
    accepted = ("--accept", "bounded", "--accept", "frontier")
    status, rows, said = translate(offsets(tmp_path, **topics), "-o", out, *accepted)
    assert status == 1
    (bad,) = [row for row in rows if row["outcome"] in ("skipped", "failed")]
    assert reason in (None, bad["reason"])
    assert bad["message"] in said
    assert out.read_text() == "old"


@pytest.mark.parametrize("words", [(), ("--as", "spark-orders")])
def test_the_next_step_is_one_for_an_application(estate, tmp_path, words):
    """An offset of a file has no group to reset or to explain, and `check` does not know it."""
    estate["A"].log("orders", 0).delete_records(10)
    document = offsets(tmp_path, orders={"0": 5, "1": 101, "7": 1}, __internal={"0": 1})
    result = in_memory(estate, tmp_path, "translate", str(document), *words)
    told = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "the offset 5 is below the source's log start 10; its next records are deleted" in told
    assert "check that it is an offset of the source, and correct it in the input" in told
    assert "or correct the topic and partition in the input" in told
    assert "filter" not in told
    assert "check its name, add it to `topics`, or remove its offsets from the input" in told
    assert "reset" not in told
    assert "To see" not in told


@pytest.fixture
def behind(estate: Estate) -> Estate:
    """50 more records on the source, not mirrored."""
    estate.write("orders", 50)
    return estate


@pytest.mark.usefixtures("behind")
def test_a_mirror_that_is_behind_needs_to_be_accepted(translate, tmp_path):
    document, out = offsets(tmp_path, orders={"0": 120, "1": 40}), tmp_path / "out.json"
    status, rows, said = translate(document, "-o", out)
    assert (status, rows[0]["precision"], rows[0]["reread_bound"]) == (1, "frontier", 20)
    assert not out.exists()
    assert "with --accept frontier: at most 20 records re-read then" in said
    assert translate(document, "-o", out, "--accept", "bounded")[0] == 1
    assert translate(document, "-o", out, "--accept", "frontier")[0] == 0
    assert json.loads(out.read_text()) == {"A.orders": {"0": 500, "1": 440}}


def test_an_unproven_translation_is_never_written(estate):
    """`translation.proof = timestamps` may skip records: groups' operators accept that in the
    configuration, an application's file cannot say it."""
    unproven = flow(translation=TranslationSettings(proof="timestamps"))
    asked = [StoredOffset("orders", 0, 40)]
    (found,) = translate_stored(unproven, estate["A"], estate["B"], asked)
    assert found.row.precision is Precision.UNPROVEN
    assert not found.may_be_written(tuple(Precision))


@pytest.mark.usefixtures("behind")
def test_a_planned_batch_is_migrated_only_with_both_its_ends(translate, estate, tmp_path):
    """Spark runs it again to its end, which the mirror has not reached; as starting offsets the
    committed batch is enough."""
    made = checkpoint(
        tmp_path, offsets={0: ['{"orders":{"0":40}}'], 1: ['{"orders":{"0":120}}']}, commits=[0]
    )
    new, starting = tmp_path / "new", tmp_path / "starting.json"
    words = ("--spark-checkpoint", made)
    status, _, said = translate(*words, "-o", new)
    assert (status, "Trigger.AvailableNow" in said, new.exists()) == (1, True, False)
    assert translate(*words, "--starting-offsets", "-o", starting)[0] == 0
    assert json.loads(starting.read_text()) == {"A.orders": {"0": 440}}
    estate.mirror("orders")
    assert translate(*words, "-o", new)[0] == 0
    ends = [(new / f"offsets/{batch}").read_text().split("\n")[2] for batch in (0, 1)]
    assert ends == ['{"A.orders":{"0":440}}', '{"A.orders":{"0":520}}']


def test_sources_that_read_one_topic_are_translated_each(translate, tmp_path):
    """A query that joins a topic with itself has two offsets of one partition."""
    made = checkpoint(
        tmp_path, offsets={0: ['{"orders":{"0":40}}', '{"orders":{"0":60}}']}, commits=[0]
    )
    assert translate("--spark-checkpoint", made, "-o", tmp_path / "new")[0] == 0
    lines = (tmp_path / "new/offsets/0").read_text().split("\n")[2:]
    assert lines == ['{"A.orders":{"0":440}}', '{"A.orders":{"0":460}}']


def test_repeating_translates_what_the_file_says_then(estate, tmp_path, monkeypatch):
    """Each turn reads the file again and replaces the output. A file that cannot be read and a
    cluster that is unreachable leave the last translation, and what was translated is not looked up
    again."""
    source, out = tmp_path / "offsets.json", tmp_path / "out.json"
    at = '{"orders":{"0":%d}}'
    contents = [at % 40, '{"orders":', at % 41, at % 40, at % 41]
    away = 2
    fetches: list[int] = []
    written: list[str] = []

    def turn_begins() -> None:
        number = len(fetches)
        fetches.append(estate.asked("A", Verb.READ))
        estate["A"].unreachable = number == away
        source.write_text(contents[number])

    def sleep(_seconds: float) -> None:
        written.append(out.read_text().strip())
        if len(written) == len(contents):
            raise KeyboardInterrupt
        turn_begins()

    monkeypatch.setattr("time.sleep", sleep)
    turn_begins()
    status, _, _ = translated(estate, tmp_path, source, "-o", out, "--every", "60s")
    assert status == 130
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
        (["--spark-checkpoint", "."], "there is no file in `offsets`"),
        (["--spark-checkpoint", "missing"], "missing: no such folder, or it is empty"),
        (["--spark-checkpoint", ".", "-o", "x" * 300], "there is no file in `offsets`"),
        (["in.json", "--accept", "unproven"], "unproven"),
        (["."], "a checkpoint with --spark-checkpoint"),
        (["in.json", "-o", "mistyped/out.json"], "the folder mistyped does not exist"),
        (["--spark-checkpoint", "c", "-o", "mistyped/c"], "the folder mistyped does not exist"),
        (
            ["--spark-checkpoint", ".", "--starting-offsets", "-o", "in.json"],
            "in the checkpoint that is translated",
        ),
        (["in.json", "-o", ""], "is empty"),
    ],
)
def test_bad_usage_ends_with_status_2(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.json").write_text("{}")
    file = properties_file(tmp_path, nowhere(), nowhere())
    result = invoke("translate", "-c", str(file), *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.slow
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
    status, _, said = translated(estate, tmp_path, document, lines=["B->A.enabled = true"])
    assert (status, "choose one with --flow" in said) == (2, True)
