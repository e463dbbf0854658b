"""One partition of a batch, and how its positions get their translations.

A translator (`tsoffset.rule.translate`) asks one question after the other. `Partition` collects
the open questions of its translators. A read that answers several of them is sent once, and
positions wait while another one finds a pair that helps them. If the pairs found show an ordinary
partition, the other positions need no translator: the fast path (`tsoffset.rule.fast_path`) reads
and answers them, together with those of other partitions.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tsoffset.cycle.cache_update import Learned, ask_for_ranges, learn
from tsoffset.cycle.fast_path_choice import FastPathChoice, FastPathOffsets, fast_path_pays
from tsoffset.cycle.prefetch import Prefetch
from tsoffset.cycle.side_reads import SideReads
from tsoffset.cycle.translated_partition import FastPathAnswers, TranslatedPartition
from tsoffset.cycle.translator import Observe, PartitionQuestions, Translator
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.settings import FlowSettings
from tsoffset.model import ReadFrom, Side, TimestampType
from tsoffset.records import FetchedRange, Numbers, UnreadableRecords
from tsoffset.rule.evidence import Evidence
from tsoffset.rule.fast_path import Answers
from tsoffset.rule.found import Unanswered
from tsoffset.rule.inquiry import Answer, Inquiry, Question
from tsoffset.rule.partition_cache import PartitionCache
from tsoffset.rule.search import prove_ends
from tsoffset.rule.translate import Translation

T = TypeVar("T")

_NO_OFFSETS = np.zeros(0, np.int64)

# The batches of a position and of its neighbors, on both sides.
_BATCHES_A_POSITION = 4


class _Nothing(Enum):
    AT_HAND = auto()


_NOTHING = _Nothing.AT_HAND

_Open = Translator | PartitionQuestions[Any]


class Partition:
    """One partition's positions on their way to translations.

    The highest and the lowest go first: the pairs that they find predict the others, which then
    need no time lookup. Their source batches are read meanwhile. The others follow from the highest
    down, as many at a time as have room in memory for their records (`share`, which may change
    meanwhile). `not_compacted` is true if the target topic's cleanup.policy is known to lack
    compact.
    """

    def __init__(
        self,
        flow: FlowSettings,
        work: PartitionWork,
        usable: PartitionCache | None,
        observe: Observe | None,
        *,
        not_compacted: bool = False,
    ) -> None:
        self.work = work
        self.share = 0
        self._usable = usable
        self._observe = observe
        self._translators: dict[int, Translator] = {}
        self._open: list[_Open] = []
        self._begun = False
        self._held: Sequence[int] = work.offsets[1:-1] if observe is None else ()
        self._in_turn: list[Translator] = []
        self._reads = {side: SideReads() for side in Side}
        # What the fast path is to answer together with the positions of other
        # partitions, once there are no questions left.
        self.fast_path: FastPathOffsets | None = None
        self._not_on_fast_path: Sequence[int] = ()
        self._evidence = Evidence(
            work.source,
            work.target,
            flow.translation,
            isolation=work.read_with(flow),
            is_remote_topic=work.is_remote_topic,
            failback=work.failback,
            predictions=() if usable is None else usable.pairs,
            not_compacted=not_compacted,
        )
        # Names do not tell whether the source is the replica: then its transactions matter.
        self._minds_transactions = work.decided_to is None and work.omits_aborted(flow)
        self._has_transactions = False
        self._choice = FastPathChoice(self._evidence)
        self._fast_answers = FastPathAnswers()
        # Used while the outermost positions have their translators. Not with an observer, which
        # has to see every question.
        self._prefetch = (
            Prefetch(self._evidence, work.offsets, self._reads) if observe is None else None
        )
        if usable is not None:
            self._ask(ask_for_ranges(usable, self._evidence), lambda _: None)

    def questions(self) -> set[Question]:
        """The questions to ask next. Empty if the partition is finished, or if its positions for
        the fast path are ready (`fast_path` is not None)."""
        self._go_on_where_covered()
        while not self._open and self.fast_path is None and self._begin_more():
            self._go_on_where_covered()
        asked: set[Question] = set()
        wanted = {
            side: self._unread(side, soon) for side, soon in self._offsets_to_prefetch().items()
        }
        if self._prefetch is not None:
            asked.update(self._prefetch.questions(self._unread))
        for one in self._open:
            question = one.question
            assert question is not None
            if isinstance(question.what, ReadFrom) and question.what.max_bytes == 1:
                wanted[question.side].add(question.what.offset)
            else:
                asked.add(question)
        for side, offsets in wanted.items():
            asked |= self._reads[side].choose(side, self._evidence.view(side).partition, offsets)
        return asked

    def _begin_more(self) -> bool:
        """Begin with what comes next; False if nothing is left."""
        if not self._begun:
            self._begun = True
            self._start_outermost(self.work.offsets)
        elif self._in_turn:
            self._end_prefetch()
            again, self._in_turn = self._in_turn, []
            self._open = [translator for translator in again if translator.begin_again()]
        elif self._held:
            self._go_on_with_the_next()
        else:
            return False
        return True

    def _ask(
        self, asking: Generator[Question, Answer, T], then: Callable[[T | None], None]
    ) -> None:
        one = PartitionQuestions(self.work.source, asking, then)
        if one.go_on(None):
            self._open.append(one)

    @property
    def records_per_position(self) -> int | None:
        """About how many records a single position needs in memory; None until a batch was read."""
        sizes = [reads.batch_offsets for reads in self._reads.values() if reads.sizes.known]
        return _BATCHES_A_POSITION * max(sizes) if sizes else None

    def _offsets_to_prefetch(self) -> Mapping[Side, Numbers]:
        """Offsets, ascending, that the next positions will read; they are read early."""
        if self.fast_path is not None:
            return self.fast_path.looked_at
        if not self._held:
            return dict.fromkeys(Side, _NO_OFFSETS)
        following = self._next()
        walks = self._choice.walks(self._held)
        distances = self._choice.distances(following, walks) or self._choice.predicted(following)
        likely = self._choice.at(distances).looked_at
        own = np.array(following, np.int64)
        return {**likely, Side.SOURCE: np.union1d(own, likely[Side.SOURCE])}

    def _end_prefetch(self) -> None:
        """End the prefetch. From now on its batches count for every position."""
        prefetch, self._prefetch = self._prefetch, None
        if prefetch is not None:
            for side, reads in self._reads.items():
                for fetched in prefetch.reads[side].kept:
                    reads.keep(fetched)

    def _kept_range(self, side: Side, offset: int) -> FetchedRange | None:
        held = self._reads[side].range_with(offset)
        if held is None and self._prefetch is not None:
            held = self._prefetch.reads[side].range_with(offset)
        return held

    def _unread(self, side: Side, offsets: Numbers) -> set[int]:
        """Offsets in the log (if its range is known) that no read has covered or tried."""
        view, reads = self._evidence.view(side), self._reads[side]
        if not len(offsets):
            return set()
        found = ~(view.covers(offsets) | reads.holds(offsets))
        if view.range is not None:
            found &= (offsets >= view.start) & (offsets < view.end)
        if self._prefetch is not None:
            found &= ~self._prefetch.reads[side].holds(offsets)
        return set(offsets[found].tolist()) - reads.failed

    def take(self, answers: Mapping[Question, Answer]) -> None:
        """Hand out the answers to what was asked."""
        asked_as = {
            id(one): self._reads[one.question.side].asked_as(one.question)
            for one in self._open
            if one.question is not None
        }
        for reads in self._reads.values():
            reads.take(answers)
        if self._prefetch is not None:
            self._prefetch.take(answers)
        self._has_transactions |= self._minds_transactions and any(
            question.side is Side.SOURCE
            and isinstance(answer, FetchedRange)
            and answer.transactional
            for question, answer in answers.items()
        )
        if self._open:
            # Not those of the target: more is read there than was asked for, and batches are added
            # to the evidence when they are asked for.
            self._take_in(Side.SOURCE)
        self._open = [
            one
            for one in self._open
            if (asked := asked_as[id(one)]) not in answers or one.go_on(answers[asked])
        ]

    def _go_on_where_covered(self) -> None:
        """Answer questions without a request, from other reads or from the prefetch."""
        still_open: list[_Open] = []
        for one in self._open:
            is_open = True
            while is_open and (answer := self._at_hand(one.question)) is not _NOTHING:
                is_open = one.go_on(answer)
            if is_open:
                still_open.append(one)
        self._open = still_open

    def _at_hand(self, question: Question | None) -> Answer | _Nothing:
        assert question is not None
        what = question.what
        if not isinstance(what, ReadFrom):
            found = {} if self._prefetch is None else self._prefetch.found
            return found.get(question, _NOTHING)
        if self._evidence.view(question.side).covered_to(what.offset) > what.offset:
            return None
        held = self._kept_range(question.side, what.offset) if what.max_bytes == 1 else None
        return _NOTHING if held is None else held

    def _start_outermost(self, offsets: Sequence[int]) -> None:
        if self._observe is None:
            outermost = sorted({*offsets[:1], *offsets[-1:]})
            if len(outermost) > 1 and self._prefetch is not None and self._prefetch.seeks_ends:
                self._ask(self._ends_looked_at(), lambda _: None)
            self._start_translators(outermost)
        else:
            self._start_translators(offsets)

    def _ends_looked_at(self) -> Generator[Question, Answer, None]:
        """Look at the ends of both logs: a pair there shows all positions below to be safe, and
        says by how much offsets differ."""
        inquiry = Inquiry(self._evidence)
        with suppress(Unanswered):  # the translations will say why
            yield from inquiry.log_range(Side.TARGET)
            yield from inquiry.log_range(Side.SOURCE)
            yield from prove_ends(inquiry)

    def _next(self) -> Sequence[int]:
        """The highest waiting positions, as many as have room in memory for their batches on both
        sides."""
        batch = self._reads[Side.SOURCE].batch_offsets
        # Its images may lie in a longer batch, and a batch is read ahead meanwhile.
        images = max(batch, self._reads[Side.TARGET].batch_offsets)
        batches_left = max(1, self.share // (2 * batch + images))
        first, lowest = len(self._held), None
        while first > 0:
            offset = self._held[first - 1]
            if lowest is None or offset < lowest:
                if batches_left == 0:
                    break
                batches_left -= 1
                lowest = offset - batch
            first -= 1
        return self._held[first:]

    def _go_on_with_the_next(self) -> None:
        walks = self._choice.walks(self._held)
        for highest in self._choice.new_walks(walks):
            self._ask(self._choice.rereads(highest), partial(self._choice.note, highest))
        if self._open:
            return
        following = self._next()
        distances = self._choice.distances(following, walks)
        outside = [offset for offset in following if offset not in distances]
        if probes := self._choice.probes(outside):
            self._held = [offset for offset in self._held if offset not in probes]
            self._take_in_all()
            self._start_translators(sorted(probes))
            return
        self._held = self._held[: len(self._held) - len(following)]
        self._forget(following[-1])
        batch = max(reads.batch_offsets for reads in self._reads.values())
        if fast_path_pays([*distances], batch):
            self.fast_path = self._choice.at(distances)
            self._not_on_fast_path = outside
        else:
            self._take_in_all()
            self._start_translators(following)

    def _take_in_all(self) -> None:
        """Add all batches that were read to the evidence, whichever position asked for them: they
        may show a later duplicate."""
        for side in Side:
            self._take_in(side)

    def _take_in(self, side: Side) -> None:
        for fetched in self._reads[side].fresh():
            with suppress(UnreadableRecords):  # a question for it reports the error
                self._evidence.add(side, fetched)

    def _forget(self, above: int) -> None:
        """Drop what was read above a source offset, and above its copy."""
        pairs = self._evidence.pairs
        pair = pairs.nearest_above(above) or pairs.nearest_below(above)
        self._reads[Side.SOURCE].drop_above(above)
        # Copies that lie higher than the distance of the pair predicts are read again later.
        self._reads[Side.TARGET].drop_above(above + pair.distance if pair else -1)
        if self._evidence.known > self.share // 2:
            self._evidence.forget_records(above)

    # --- the fast path ----------------------------------------------------------------------

    def fetched_ranges(self, side: Side) -> Iterator[FetchedRange]:
        """All that is held of a side's log; a record may be in several of them."""
        reads = self._reads[side]
        yield from reads.kept
        for fetched in self._evidence.view(side).fetched_ranges:
            if reads.range_with(fetched.start) is not fetched:
                yield fetched

    def answer(self, answers: Answers) -> None:
        """Take the fast path's answers. Positions without one get translators."""
        assert self.fast_path is not None
        left = self._fast_answers.take(self.fast_path.offsets, answers)
        self.fast_path = None
        for side in Side:
            types = (fetched.timestamp_type for fetched in self.fetched_ranges(side))
            if TimestampType.LOG_APPEND_TIME in types:
                self._evidence.view(side).rewrites_timestamps = True
        if left or self._not_on_fast_path:
            self._take_in_all()
            self._start_translators(sorted([*left, *self._not_on_fast_path]))

    # --- translations -----------------------------------------------------------------------

    def _start_translators(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            translator = Translator(self.work, offset, self._evidence, self._observe)
            self._translators[offset] = translator
            self._in_turn.append(translator)
            if translator.go_on(None):
                self._open.append(translator)

    def _translations(self) -> dict[int, Translation]:
        """The translations of all positions except those that the fast path has answered."""
        found = {}
        for offset, translator in self._translators.items():
            assert translator.translation is not None
            found[offset] = translator.translation
        return found

    def result(self, blank: PartitionCache | None) -> TranslatedPartition:
        """The partition's translations and what to cache, after all translators have ended. If
        its logs cannot be identified now (`blank` is None), the cache stays as it was."""
        evidence, translations = self._evidence, self._translations()
        learned = Learned(self.work.cache)
        if blank is not None:
            decided_to = self.work.decided_to
            learned = learn(blank, self._usable, evidence, translations, decided_to)
        return TranslatedPartition(
            self.work,
            translations,
            self._fast_answers.answers,
            learned,
            evidence.target.range,
            evidence.target_rewrites_timestamps,
            evidence.source_log_end,
            evidence.reached,
            self._has_transactions,
        )
