"""The fast path's positions of one partition, and its answers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import structlog

from tsoffset.cycle.work import PartitionWork
from tsoffset.model import Failed, FailureKind, Side, Skipped, Translated
from tsoffset.records import Numbers
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.fast_path import NO_ANSWERS, Answers, differs, next_record
from tsoffset.rule.translate import Translation

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AtOnce:
    """Positions, ascending, each between two proven pairs of one distance (target offset minus
    source offset), and these distances."""

    offsets: Numbers
    distances: Numbers

    @cached_property
    def looked_at(self) -> Mapping[Side, Numbers]:
        """The offsets that the fast path reads on each side, ascending: the positions, their
        predicted copies, and the neighbors of both."""
        originals, images = self.offsets, self.offsets + self.distances
        return {Side.SOURCE: _with_neighbors(originals), Side.TARGET: _with_neighbors(images)}


def _with_neighbors(offsets: Numbers) -> Numbers:
    found: Numbers = np.unique(offsets[:, np.newaxis] + np.array([-1, 0, 1]))
    return found


class AnsweredAtOnce:
    """One partition's answers; those in `verified` are compared with the full rule."""

    def __init__(self, work: PartitionWork, evidence: Evidence) -> None:
        self.verified: dict[int, Translation] = {}
        self._work = work
        self._evidence = evidence
        self._parts: list[Answers] = []

    def take(self, offsets: Numbers, answers: Answers, verify: Collection[int]) -> list[int]:
        """Keep the answers; returns which of the offsets have none, or are to be verified."""
        verified = np.isin(answers.offset, [*verify])
        self.verified |= self._as_values(answers.only(verified))
        answers = answers.only(~verified)
        self._parts.append(answers)
        left: list[int] = offsets[~np.isin(offsets, answers.offset)].tolist()
        return left

    @property
    def answers(self) -> Answers:
        """All answers that are not verified, in the order of the offsets."""
        columns = [np.concatenate(each) for each in zip(NO_ANSWERS, *self._parts, strict=True)]
        order = np.argsort(columns[0])
        return Answers(*(column[order] for column in columns))

    def as_values(self) -> dict[int, Translation]:
        """`answers` as translations."""
        return self._as_values(self.answers)

    def _as_values(self, answers: Answers) -> dict[int, Translation]:
        columns = (column.tolist() for column in answers)
        return {
            offset: next_record(offset, copy, stamp, self._evidence.reached)
            for offset, copy, stamp in zip(*columns, strict=True)
        }

    def verify(self, conversed: Mapping[int, Translation | None]) -> int:
        """Compare the answers in `verified` with the full rule's translations (`conversed`). Where
        they differ, the position fails. Returns how many were compared (failed translations are
        not)."""
        count = 0
        for offset, translation in sorted(self.verified.items()):
            at_once, other = translation.outcome, conversed[offset]
            assert isinstance(at_once, Translated)
            assert other is not None
            if isinstance(other.outcome, Failed):
                continue  # it tells nothing
            count += 1
            if differs(at_once, other.outcome):
                self.verified[offset] = self._differing(offset, at_once, other.outcome)
        return count

    def _differing(
        self, offset: int, at_once: Translated, conversed: Translated | Skipped
    ) -> Translation:
        where = conversed.target_offset if isinstance(conversed, Translated) else None
        log.error(
            "answers_differ",
            partition=str(self._work.source),
            offset=offset,
            at_once=at_once.target_offset,
            conversation=where,
        )
        return Translation(
            Failed(
                FailureKind.INTERNAL,
                f"verify the translation of {self._work.source}@{offset}: the fast path returns "
                f"{at_once.target_offset}, the full rule {'none' if where is None else where}; "
                "nothing was committed; please report it with the output of `tsoffset explain` for "
                "the group",
            )
        )
