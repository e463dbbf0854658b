"""A translated partition, and the fast path's answers in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tsoffset.cycle.cache_update import Learned
from tsoffset.cycle.work import PartitionWork, TranslatedPosition
from tsoffset.model import Failed, LogRange
from tsoffset.records import Numbers
from tsoffset.rule.fast_path import NO_ANSWERS, Answers, next_record
from tsoffset.rule.translate import Translation


@dataclass(frozen=True, slots=True)
class TranslatedPartition:
    """The translations of a partition: those by translators, by source offset, and the other
    answers, with what to cache of all that. `target_range` and `source_log_end` are None where they
    were not read. `reached` is the highest safe pair. `needs_second_reading`: the answers depend on
    what a transaction's records are (`tsoffset.cycle.two_readings`)."""

    work: PartitionWork
    translations: Mapping[int, Translation]
    answers: Answers
    learned: Learned
    target_range: LogRange | None = None
    target_rewrites_timestamps: bool = False
    source_log_end: int | None = None
    reached: tuple[int, int] | None = None
    needs_second_reading: bool = False

    def positions(self) -> Iterator[TranslatedPosition]:
        """All translations, in the order of the offsets."""
        for offset, translation in sorted(self.one_by_one().translations.items()):
            yield TranslatedPosition(
                self.work.source,
                offset,
                translation,
                self.target_range,
                self.target_rewrites_timestamps,
                self.source_log_end,
            )

    def one_by_one(self) -> Self:
        """The same with the fast path's answers among the translations."""
        columns = (column.tolist() for column in self.answers)
        found = {
            offset: next_record(offset, copy, stamp, self.reached)
            for offset, copy, stamp in zip(*columns, strict=True)
        }
        hold = self.learned.answers_hold
        held = dict.fromkeys(found, hold) if hold is not None else {}
        learned = replace(self.learned, holds={**self.learned.holds, **held})
        translations = {**self.translations, **found}
        return replace(self, translations=translations, answers=NO_ANSWERS, learned=learned)

    @classmethod
    def without_answers(cls, part: PartitionWork, failed: Failed) -> Self:
        """A partition that could not be translated; what was cached of it stays valid."""
        translations = dict.fromkeys(part.offsets, Translation(failed))
        return cls(part, translations, NO_ANSWERS, Learned(part.cache))


class FastPathAnswers:
    """One partition's answers."""

    def __init__(self) -> None:
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
