"""Topics that are deleted and made anew under groups, while MirrorMaker 2 runs."""

import pytest

from tests.producing import numbered
from tests.scenarios.corner_cases.corners import PLAIN, Corners
from tests.scenarios.corner_cases.holdings import (
    RECORDS,
    SOURCE_ANEW,
    TARGET_ANEW,
    TRIMMED,
    fill_trimmed,
)
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision, Reason, Translated

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_source_made_anew(corners: Corners) -> None:
    """The source's topic is deleted and made anew, with fewer records, which the replicator
    copies behind those of the first one. A group that has not noticed and commits where it was
    is past the log's end; every other position is exact, and never leads among the records of
    the topic that is gone."""
    group = "of-the-first"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, SOURCE_ANEW)
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 900})
    assert corners.sync(PLAIN, group).committed() == {group: 900 - TRIMMED}
    (_, first_end) = target.log_range(remote)
    source.delete_topic(SOURCE_ANEW)
    count = 300
    fresh = numbered(count, first=10 * RECORDS)
    fill_trimmed(source, SOURCE_ANEW, fresh)
    last = fresh[-1].value
    assert last is not None
    corners.wait_until_there(PLAIN, SOURCE_ANEW, last)
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 900})
    row = corners.sync(PLAIN, group).of(group, SOURCE_ANEW)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
    assert target.committed_offsets(group) == {(remote, 0): (900 - TRIMMED, "")}

    logs = Logs(corners, PLAIN, SOURCE_ANEW)
    assert logs.not_mirrored == set()
    answers = logs.judged(logs.every(3))
    assert answers.exact == 1, answers
    for position in answers.translations.positions:
        assert isinstance(position.translation.outcome, Translated)
        assert position.translation.outcome.target_offset >= first_end, position
    source.commit_offsets(group, {(SOURCE_ANEW, 0): 200})
    row = corners.sync(PLAIN, group).of(group, SOURCE_ANEW)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT)
    logs.fail_over()


def test_target_made_anew(corners: Corners) -> None:
    """The copy is deleted, and MirrorMaker 2 makes it anew, but goes on where it was: what was
    copied before is gone, and the groups' commits with it. Groups that stand in that part
    resume at the first record there is, the others at theirs."""
    group = "of-the-first-copy"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, TARGET_ANEW)
    source.commit_offsets(group, {(TARGET_ANEW, 0): 900})
    assert corners.sync(PLAIN, group).committed() == {group: 900 - TRIMMED}
    target.admin.delete_topics([remote])
    wait_until(lambda: target.committed_offsets(group) == {}, "the commit went with the topic")
    corners.mirror_maker.wait_for_topic(target.bootstrap, remote)
    count = 300
    more = numbered(count, first=TRIMMED + RECORDS)
    source.produce(TARGET_ANEW, more)
    last = more[-1].value
    assert last is not None
    corners.wait_until_there(PLAIN, TARGET_ANEW, last)
    logs = Logs(corners, PLAIN, TARGET_ANEW)
    assert len(logs.not_mirrored) == RECORDS
    row = corners.sync(PLAIN, group).of(group, TARGET_ANEW)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 0)
    answers = logs.judged(logs.every(3))
    assert answers.exact == 1, answers
    logs.fail_over()
