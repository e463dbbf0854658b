"""The fast path's positions of one partition, and its answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsoffset.model import Side
from tsoffset.records import Numbers
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.fast_path import NO_ANSWERS, Answers, next_record
from tsoffset.rule.translate import Translation


@dataclass(frozen=True)
class FastPathOffsets:
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


class FastPathAnswers:
    """One partition's answers."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._parts: list[Answers] = []

    def take(self, offsets: Numbers, answers: Answers) -> list[int]:
        """Keep the answers; returns which of the offsets have none."""
        self._parts.append(answers)
        left: list[int] = offsets[~np.isin(offsets, answers.offset)].tolist()
        return left

    @property
    def answers(self) -> Answers:
        """All answers, in the order of the offsets."""
        columns = [np.concatenate(each) for each in zip(NO_ANSWERS, *self._parts, strict=True)]
        order = np.argsort(columns[0])
        return Answers(*(column[order] for column in columns))

    def as_values(self) -> dict[int, Translation]:
        """`answers` as translations."""
        columns = (column.tolist() for column in self.answers)
        return {
            offset: next_record(offset, copy, stamp, self._evidence.reached)
            for offset, copy, stamp in zip(*columns, strict=True)
        }
