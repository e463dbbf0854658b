"""`sync --allow-rewind`: which groups go back, and only after a snapshot."""

from pathlib import Path

import pytest

from tests.commands.snapshots.conftest import restore, snapshot
from tests.configured import nowhere, properties_file
from tests.invoking import invoke
from tests.memory_flows import (
    TRANSLATED,
    Estate,
    after_each,
    before_topics,
    flow,
    messages,
)
from tsoffset.commands.snapshots.file import Snapshot
from tsoffset.commands.snapshots.run import rewind
from tsoffset.config.loading import Configuration
from tsoffset.config.selection import Selection
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import Settings
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    OutcomeKind,
    Reason,
    Row,
    TopicPartition,
)
from tsoffset.terminal.notices import Notices
from tsoffset.testing.memory_cluster import Verb

COPY = TopicPartition("A.orders", 0)


def test_nobody_to_ask_is_bad_usage(tmp_path):
    """Without a terminal `--yes` is needed, and told before anything is done; it and a snapshot are
    for `--allow-rewind` alone."""
    file = str(properties_file(tmp_path, nowhere(), nowhere()))
    for words, told in (
        (("--allow-rewind",), "no terminal to ask for confirmation"),
        (("--yes",), "need --allow-rewind"),
        (("--snapshot", file), "need --allow-rewind"),
        (("--allow-rewind", "--yes", "--snapshot", file), "not a complete snapshot"),
    ):
        result = invoke("sync", "-c", file, *words)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


@pytest.fixture
def ahead(estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Estate:
    """Two groups that are further on B than on A."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tsoffset.kafka.cluster.KafkaCluster", estate.connect)
    estate.commit("billing", "orders", 30)
    estate.commit("shipping", "orders", 40)
    return estate


def rewound(
    estate: Estate, rows: list[Row] | None = None, before: Path | None = None
) -> dict[str | None, tuple[OutcomeKind, object]]:
    settings = Settings((flow(),), ("A", "B"))
    selection = Selection(Configuration("f", ""), settings, settings.flows, Narrowing())
    known = None if before is None else (Snapshot.read(before), before)
    rows = estate.sync() if rows is None else rows
    found = rewind(selection, flow(), rows, known, Notices(), yes=True)
    return {row.group: (row.outcome, row.reason) for row in found}


def test_groups_that_are_ahead_go_back_after_a_snapshot(ahead, tmp_path):
    """Each to its translation, with the source's metadata; the snapshot that was written brings
    them back to where they were."""
    committed = (OutcomeKind.COMMITTED, None)
    assert rewound(ahead) == {"billing": committed, "shipping": committed}
    assert ahead.standing("billing", "A.orders") == CommittedOffset(30)
    (path,) = tmp_path.glob("B-*.snapshot")
    restore(ahead, path, "--yes")
    assert ahead.standing("billing", "A.orders") == CommittedOffset(50, 'invoice "7"\nü')
    assert ahead.standing("shipping", "A.orders") == CommittedOffset(70)


def test_a_group_goes_back_only_from_what_was_confirmed(ahead, tmp_path):
    """One that moved since a person saw it, that the snapshot does not hold as it is, or that has
    members, stays."""
    rows = ahead.sync()
    path = snapshot(ahead, tmp_path)
    ahead.commit("billing", "A.orders", 60, on="B")
    assert rewound(ahead, rows) == {"shipping": (OutcomeKind.COMMITTED, None)}
    assert rewound(ahead, ahead.sync(), before=path) == {}
    assert ahead.standing("billing", "A.orders") == CommittedOffset(60)
    ahead["B"].group("billing").state = "Stable"
    active = {"billing": (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)}
    assert rewound(ahead, ahead.sync()) == active
    assert ahead.standing("billing", "A.orders") == CommittedOffset(60)


def test_a_group_goes_back_from_an_open_transaction(ahead):
    """Its consumer there reads uncommitted records, past the last stable offset."""
    ahead["B"].log("A.orders").begin().append(messages("orders", range(100, 110)))
    ahead.commit("billing", "A.orders", 105, on="B")
    assert rewound(ahead)["billing"] == (OutcomeKind.COMMITTED, None)
    assert ahead.standing("billing", "A.orders") == CommittedOffset(30)


@pytest.mark.parametrize("alias", ["A", "B"])
def test_no_group_goes_back_in_a_topic_made_anew(ahead, alias):
    """After the translation: its offset lies in the new log, too, after records that the group has
    not read. Or before it: the offset that was read on the source is one of the old log."""

    def remake(*_: object) -> None:
        topic = {"A": "orders", "B": "A.orders"}[alias]
        ahead[alias].delete_topic(topic)
        ahead[alias].create_topic(topic)
        ahead[alias].log(topic).append(messages("new orders", range(100)))
        if alias == "A":
            ahead["B"].log("A.orders").append(messages("new orders", range(100)))

    rows = ahead.sync()
    if alias == "A":
        # A translation begins with the policies of the target's topics.
        after_each(ahead["B"], "topic_configs", remake)
        done = rewound(ahead, rows)
    else:
        with before_topics(ahead["A"], *TRANSLATED, change=remake):
            done = rewound(ahead, rows)
    failed = (OutcomeKind.FAILED, FailureKind.NO_LEADER)
    assert done == {"billing": failed, "shipping": failed}
    standing = ahead.standing("billing", "A.orders")
    assert (standing and standing.offset) == {"A": 50, "B": None}[alias]


def test_a_group_that_cannot_be_read_again_is_told(ahead, capsys):
    """A broker that does not list its groups any more, after a person has confirmed."""
    rows = ahead.sync()
    late = Failed(FailureKind.TIMEOUT, "list groups, broker 0: late")
    ahead["A"].fail(late, verb=Verb.GROUPS, broker=0)
    assert rewound(ahead, rows) == {}
    assert "A->B: 2 rows not rewound" in capsys.readouterr().err
    ahead["A"].heal()
    ahead["A"].fail(
        Failed(FailureKind.COORDINATOR, "loading"), verb=Verb.COMMITTED, group="billing"
    )
    assert list(rewound(ahead, rows)) == ["shipping"]
    assert "1 row not rewound, because their offsets on A could not be read again (loading)" in (
        capsys.readouterr().err
    )
    assert ahead.standing("billing", "A.orders").offset == 50


def test_no_group_goes_back_where_none_is_ahead(ahead, tmp_path):
    """Nor is a snapshot written."""
    for group in ("billing", "shipping"):
        ahead.commit(group, "orders", 95)
    assert rewound(ahead) == {}
    assert list(tmp_path.iterdir()) == []
