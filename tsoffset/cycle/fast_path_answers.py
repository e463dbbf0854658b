"""The fast path's answers in one partition."""

import numpy as np

from tsoffset.records import Numbers
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.fast_path import NO_ANSWERS, Answers, next_record
from tsoffset.rule.translate import Translation


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
