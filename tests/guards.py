"""Each guard of the rule, and the log that needs it: `python -m tests.guards`.

Takes one guard after the other out of a copy of the package, runs its examples there, and prints
which fail. `--list` prints the table alone; words choose guards whose names contain one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard in a module: it is out once `there` is replaced by `without`.

    `name` begins with the module's, in `tsoffset.rule` or with its package; `log` is what needs it;
    `examples` are tests, as pytest's `-k` has them, of which at least one fails without it.
    """

    name: str
    there: str
    without: str
    log: str
    examples: tuple[str, ...]

    @property
    def module(self) -> Path:
        package, _, module = self.name.partition(":")[0].rpartition("/")
        return Path("tsoffset", package or "rule", f"{module}.py")


GUARDS = (
    # --- the frontier
    Guard(
        "frontier: F is no record that another is taken for",
        "            if (yield from _unmistakable(inquiry, record, copy)):\n",
        "            if True:\n",
        "z is twice on the source, its second copy stands before others",
        ("test_the_copy_of_the_highest_record_is_not_that_of_its_equal",),
    ),
    Guard(
        "frontier: f before the copies of what could not be told",
        "            before = copies[-1]\n",
        "",
        "the same",
        ("test_the_copy_of_the_highest_record_is_not_that_of_its_equal",),
    ),
    Guard(
        "frontier: F' below what could not be told",
        "            before = copies[-1]\n",
        "            return None\n",
        "the last record on the target has an equal one",
        ("test_twins_of_one_run_are_not_told_apart_by_content",),
    ),
    Guard(
        "frontier: a chain of equal records is no twin of others",
        "    if (yield from _reads_as_a_chain(inquiry, record, copy)):\n        return True\n",
        "",
        "one timestamp for all, more than may be scanned",
        ("test_the_last_record_answers_whatever_equals_it",),
    ),
    Guard(
        "frontier: a chain is long",
        "CHAIN = 8",
        "CHAIN = 2",
        "two records in turn, again and again, of which one is left out",
        ("test_a_short_stretch_that_is_equal_is_no_chain",),
    ),
    Guard(
        "frontier: look at the youngest",
        "    if youngest is not None:\n        at = max(",
        "    if False:\n        at = max(",
        "ends inside a repeat; compaction took the next 8, one of the first records is younger",
        ("test_the_youngest_record_tells_that_the_log_ends_inside_a_repeat",),
    ),
    Guard(
        "frontier: lookups that are blind are no hint",
        "            and (yield from _lookups_see_the_end(inquiry))\n",
        "",
        "ends inside a repeat behind an emptied segment, on a broker that knows no youngest record",
        ("test_the_same_holds_where_the_broker_knows_no_youngest_record",),
    ),
    Guard(
        "frontier: look at the next 8",
        "(_among_next, ",
        "(",
        "ends inside a repeat, under a clock that runs backwards",
        ("test_the_next_records_are_looked_for_until_none_is_there",),
    ),
    Guard(
        "frontier: look at the first that is younger",
        ", _of_younger,",
        ",",
        "ends inside a repeat, that holds the youngest; compaction took the next 8",
        ("test_the_first_younger_record_tells_that_the_log_ends_inside_a_repeat",),
    ),
    Guard(
        "frontier: look at the target's first",
        ", _of_first)",
        ",)",
        "ends inside a repeat of what is younger than all that is left, a clock set back",
        ("test_the_first_record_tells_that_the_log_ends_inside_a_repeat",),
    ),
    Guard(
        "frontier: look again from what was found",
        "            if higher > at:\n                break",
        "            at = max(at, higher)",
        "ends inside a repeat, under a clock that runs backwards, for more than 8 records",
        ("test_the_next_records_are_looked_for_until_none_is_there",),
    ),
    Guard(
        "frontier: a lookup that answers far too early proves no absence",
        "if copy is Edge.LOG_END and not (yield from _in_time(inquiry, record)):",
        "if False:",
        "ends inside a repeat, under a clock that runs backwards",
        ("test_the_next_records_are_looked_for_until_none_is_there",),
    ),
    Guard(
        "frontier: its copy is unseen: nothing is safe",
        "        raise _Unseen\n    return isinstance(copy, Record)\n",
        "        return False\n    return isinstance(copy, Record)\n",
        "ends inside a repeat, and the target is beyond the budget",
        ("test_what_could_not_be_looked_for_may_be_there",),
    ),
    Guard(
        "frontier: the target's first is unseen: nothing is safe",
        "        raise _Unseen\n    return inquiry.evidence.originals(copy)[0] if",
        "        return -1\n    return inquiry.evidence.originals(copy)[0] if",
        "ends inside a repeat that only the first tells of, and that is beyond the budget",
        ("test_what_the_first_record_would_tell_may_be_so",),
    ),
    Guard(
        "frontier: the last copy is unseen: nothing is safe",
        "        at = copy.offset\n    return Edge.UNKNOWN",
        "        at = copy.offset\n    return Edge.LOG_START",
        "a target of other records",
        ("test_a_narrower_match_serves_replicators_that_rewrite_values",),
    ),
    Guard(
        "frontier: no reads outside the log by the youngest",
        "    if not target.start <= target_offset < target.end:\n        return -1\n",
        "",
        "retention took the youngest, whose time the broker keeps",
        ("test_the_time_of_what_retention_took_is_not_followed_out_of_the_log",),
    ),
    # --- the proof
    Guard(
        "proof: q <= f",
        "    return frontier.reached is not None and copy.offset <= ",
        "    return frontier.reached is not None or copy.offset <= ",
        "a compacted mirror that is mirrored anew",
        ("test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",),
    ),
    Guard(
        "frontier: look past what is no copy",
        "        if original > above:\n            return original\n        target_offset",
        "        return original if original > above else -1\n        target_offset",
        "ends inside a repeat, and the youngest record is of others",
        ("test_records_of_others_do_not_hide_that_the_log_ends_inside_a_repeat",),
    ),
    Guard(
        "frontier: F's lowest copy where no name tells which side is the mirror",
        "    if lowest != copy:\n        return False\n",
        "",
        "failback under one name, the original has an equal behind what was never copied",
        ("test_in_failback_that_no_name_tells_of_the_lowest_of_equal_records_counts",),
    ),
    Guard(
        "frontier: a replica that was set back is seen behind records of others",
        "    for _ in range(NEXT):\n        record = yield from look(SOURCE, at, shared=True)",
        "    for _ in range(1):\n        record = yield from look(SOURCE, at, shared=True)",
        "failback from a replica that began midway and was set back, among records of others",
        ("test_in_failback_a_replica_is_seen_to_be_set_back_behind_records_of_others",),
    ),
    Guard(
        "proof: the record itself counts where a replica was set back",
        "before_frontier(inquiry, copy, record.offset)):\n        return None",
        "before_frontier(inquiry, copy, evidence.originals(copy)[-1])):\n        return None",
        "the same",
        ("test_in_failback_a_replica_is_seen_to_be_set_back_behind_records_of_others",),
    ),
    Guard(
        "proof: in failback a neighbour was copied, too",
        "(yield from _among_what_was_copied(inquiry, record, copy))",
        "True",
        "failback to an original that lost the first of two equal records",
        ("test_in_failback_an_equal_written_later_is_no_copy",),
    ),
    Guard(
        "proof: the lowest equal in failback",
        "        return (yield from passed_in_failback(inquiry, copy, source_offset))",
        "        return True",
        "failback to an original with equal records",
        ("test_in_failback_the_lowest_of_equal_records_counts",),
    ),
    Guard(
        "proof: the run is read to its end",
        "    if not (yield from _run_is_known(inquiry, record)):\n"
        "        return (yield from _between_both_ends(inquiry, record, copy))\n",
        "",
        "of two equal records in one millisecond the first was left out",
        ("test_a_later_equal_record_further_along_the_run_may_be_meant",),
    ),
    Guard(
        "proof: a run beyond the budget is between both ends",
        "    return len(distances) == 1\n",
        "    return False\n",
        "one timestamp for all, more than may be scanned",
        ("test_where_the_budget_ends_the_best_that_is_proven_counts",),
    ),
    Guard(
        "proof: no later equal is known",
        "    highest = record.offset if among is None else among[-1]\n",
        "    highest = evidence.source.end\n",
        "of two equal records and what stands between only the second was copied",
        ("test_a_later_equal_record_that_is_known_may_be_meant",),
    ),
    Guard(
        "proof: in order on the source, or a neighbour is equal",
        "        _in_order(before, record, after)\n        and _in",
        "        _in",
        "a record out of order, that was written again with its old time",
        ("test_a_record_that_is_out_of_order_on_the_source_may_have_equals_far_away",),
    ),
    Guard(
        "proof: in order on the target, or a neighbour is equal",
        "        and _in_order(copy_before, copy, copy_after)\n",
        "",
        "a record that was written again with its old time, behind a younger one of others",
        ("test_a_copy_that_is_out_of_order_on_the_target_may_be_of_a_later_record",),
    ),
    Guard(
        "proof: a target that begins with the copy does not tell the order",
        "        and not (_begins(inquiry, TARGET, copy) and not ",
        "        and not (False and not ",
        "the target begins with a record that was written again with its old time",
        ("test_a_target_that_begins_later_does_not_tell_the_order",),
    ),
    Guard(
        "proof: bare records need an equal neighbour",
        "        and not (record.key is None and record.value is None)\n",
        "",
        "records with neither key nor value, two of one time far apart",
        ("test_bare_records_of_one_time_may_be_far_apart",),
    ),
    Guard(
        "proof: the copy is in place",
        "    if not (yield from in_place(inquiry, record, copy)):\n        return None\n",
        "",
        "a retried batch whose first records compaction took",
        ("test_a_pair_whose_neighbours_were_not_read_is_not_in_place",),
    ),
    Guard(
        "proof: what stands before an equal stretch is earlier",
        "        if is_of_earlier is not None:\n            return is_of_earlier",
        "        if is_of_earlier is not None:\n            return True",
        "a retried batch whose first records compaction took",
        ("test_a_pair_whose_neighbours_were_not_read_is_not_in_place",),
    ),
    Guard(
        "proof: back over a whole stretch",
        "STRETCH = 16",
        "STRETCH = 1",
        "the same",
        ("test_a_pair_whose_neighbours_were_not_read_is_not_in_place",),
    ),
    Guard(
        "proof: reads at the edge of what was read",
        "READ_BACK = 3",
        "READ_BACK = 0",
        "the same",
        ("test_a_pair_whose_neighbours_were_not_read_is_not_in_place",),
    ),
    Guard(
        "proof: past records of others before a stretch",
        "NEIGHBOURS = 3",
        "NEIGHBOURS = 1",
        "the same, with a record of others before it",
        ("test_records_of_others_do_not_hide_what_lies_before_a_stretch",),
    ),
    Guard(
        "proof: what stands before a stretch is unseen: not in place",
        "            return copy_before is Edge.LOG_START\n        is_of_earlier",
        "            return True\n        is_of_earlier",
        "the same, beyond the budget",
        ("test_what_could_not_be_read_before_a_stretch_may_be_later",),
    ),
    Guard(
        "proof: an earlier equal is counted",
        "    source = evidence.source\n    identity = source.identity(record)\n",
        "    if record:\n        return record.offset\n"
        "    source = evidence.source\n    identity = source.identity(record)\n",
        "of two equal records one copy is left",
        ("test_twins_that_cannot_be_counted_cost_rereads_that_are_stated",),
    ),
    Guard(
        "proof: an earlier equal that is unseen is counted",
        "isinstance(earliest, Record) else start)",
        "isinstance(earliest, Record) else record.offset)",
        "the same, beyond the budget",
        ("test_an_earlier_equal_record_that_was_not_read_is_counted",),
    ),
    Guard(
        "proof: both ends of a run and the copy are equally far apart",
        "    return len(distances) == 1\n",
        "    return True\n",
        "begun midway, set back, two equal records side by side, beyond the budget",
        ("test_equal_records_beyond_the_budget_are_not_told_by_the_ends",),
    ),
    Guard(
        "translate: no answer behind the last copy of R",
        "            if copies and copies[-1] < answer.target_offset:",
        "            if False:",
        "repeats from which the cleaner took records, so that a copy is taken for an earlier one",
        ("test_a_distance_to_a_pair_proves_no_place_by_itself",),
    ),
    Guard(
        "proof: a distance to a pair, and an equal neighbour",
        "    if _as_far_as_a_pair(inquiry, record, copy) and (\n"
        "        yield from _beside_an_equal(inquiry, record, copy)\n    ):",
        "    if _as_far_as_a_pair(inquiry, record, copy):",
        "repeats from which the cleaner took records, so that distances are the same by chance",
        ("test_a_distance_to_a_pair_proves_no_place_by_itself",),
    ),
    Guard(
        "proof: an equal that the source has lost is counted",
        "if len(evidence.copies(record)) > 1 and not _equal(",
        "if False and not _equal(",
        "source compacted, the target not, mirrored anew",
        ("test_of_an_equal_record_that_the_source_lost_copies_are_left",),
    ),
    # --- the search
    Guard(
        "search: the lowest copy",
        "evidence.target.at(copies[0]) if",
        "evidence.target.at(copies[-1]) if",
        "two equal records side by side, and the header of one copy lost",
        ("test_the_lowest_copy_counts_among_equal_records",),
    ),
    # --- the walk
    Guard(
        "walk: copies behind f that are older than C are passed",
        "        return older and match is not _Match.UNCLEAR",
        "        return False",
        "ends inside a repeat, C > F, the same name on both sides",
        ("test_copies_behind_the_frontier_that_are_older_than_the_commit_are_passed",),
    ),
    Guard(
        "walk: the walk's record does not go down",
        "last = max(self.reached.source_offset, original)",
        "last = original",
        "the same",
        ("test_a_commit_past_the_mirrored_end_is_at_the_end_of_a_repeat",),
    ),
    Guard(
        "walk: the log's end only beside what was reached",
        "if copy is Edge.LOG_END and at == self.reached.target_offset:",
        "if copy is Edge.LOG_END:",
        "failback under one name: records at the end that the replica never had",
        ("test_failback_under_identity_does_not_pass_what_the_replica_never_had",),
    ),
    Guard(
        "walk: behind f nothing is passed where F is not below C",
        "        return older and match is not ",
        "        return match is not ",
        "stale headers, records written again with old times, ends inside a repeat",
        ("test_behind_the_frontier_nothing_is_passed_from_a_record_before_it",),
    ),
    Guard(
        "walk: repeats do not move the walk",
        "if match is _Match.BELOW and not (before_f and self._repeats(copy)):",
        "if match is _Match.BELOW:",
        "two equal records side by side, and the header of one copy stale",
        ("test_the_lowest_copy_counts_among_equal_records",),
    ),
    Guard(
        "walk: in place where it does not stand beside what was reached",
        "        if not beside and not (yield from in_place(",
        "        if False and not (yield from in_place(",
        "stale headers, records written again, compacted",
        ("test_a_copy_further_along_the_walk_has_to_be_in_its_place",),
    ),
    Guard(
        "walk: equals on both sides of C move no walk",
        "        if below and equals[-1] >= self.offset:\n            return _Match.UNCLEAR, -1\n",
        "",
        "of two equal records one was left out, C between them",
        ("test_equal_records_on_both_sides_of_the_commit_move_no_walk",),
    ),
    Guard(
        "walk: a later equal that was not known moves no walk",
        "        if not (yield from no_later_twin(self.inquiry, original, copy, among=equals)):\n"
        "            return _Match.UNCLEAR, -1\n",
        "",
        "the same within one millisecond",
        ("test_a_later_equal_record_further_along_the_run_may_be_meant",),
    ),
    Guard(
        "walk: nothing unclear before the first from C on",
        "            if match is _Match.FROM_COMMIT and not unclear:",
        "            if match is _Match.FROM_COMMIT:",
        "of two equal records one copy is left, C behind it",
        ("test_twins_that_cannot_be_counted_cost_rereads_that_are_stated",),
    ),
    Guard(
        "walk: a repeat moves the walk where it may be another's first copy",
        "        return not lowest and highest <= self.reached.source_offset",
        "        return not lowest",
        "equal records side by side",
        ("test_a_copy_that_is_not_the_lowest_of_its_content_is_no_repeat_for_that",),
    ),
    Guard(
        "walk: counting needs as many records",
        "if len(originals) != len(copies) or not all(",
        "if not all(",
        "records that were left out between two pairs",
        ("test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",),
    ),
    Guard(
        "walk: counting needs equal records",
        " or not all(map(self.evidence.equal, originals, copies)):",
        ":",
        "equal records, one left out, one of others instead",
        ("test_counting_does_not_mistake_records_of_others",),
    ),
    Guard(
        "walk: counting up to a record that stands alone",
        "if len(equals) == 1 and equals[0] >= self.offset:",
        "if equals and equals[0] >= self.offset:",
        "equal records on both sides of C, the first ones left out",
        ("test_counting_needs_a_record_behind_the_commit_that_stands_alone",),
    ),
    Guard(
        "walk: counting where the source is known",
        "        if self.source.covered_to(self.known_from) <= upper.offset:\n"
        "            return self.reached\n",
        "",
        "begun midway and set back, beyond the budget",
        ("test_counting_needs_a_source_that_is_known",),
    ),
    # --- the answers
    Guard(
        "translate: te only where all that is there is below C",
        "        passed = frontier.top is not None and frontier.top < self.offset\n",
        "        passed = frontier.top is not None\n",
        "F has an equal above it, and the log ends inside a repeat",
        ("test_a_log_end_is_no_answer_below_an_equal_of_the_frontier",),
    ),
    Guard(
        "translate: te only where that is known",
        "        passed = frontier.top is not None and frontier.top < self.offset\n",
        "        passed = frontier.top is None or frontier.top < self.offset\n",
        "a target of other records",
        ("test_a_narrower_match_serves_replicators_that_rewrite_values",),
    ),
    Guard(
        "translate: te under one name only where the mirror is complete",
        "        if not (self.evidence.is_remote_topic or frontier.complete or ",
        "        if not (True or ",
        "failback under one name: records at the end that the replica never had",
        ("test_failback_under_identity_does_not_pass_what_the_replica_never_had",),
    ),
    Guard(
        "set_back: re-reads: what was first copied behind the pair",
        "        return 0\n    return rereads\n",
        "        return 0\n    return 0\n",
        "begun midway and set back to the beginning",
        ("test_a_mirror_set_back_before_its_beginning_counts_what_comes_first_in_the_repeat",),
    ),
    Guard(
        "set_back: re-reads: what is still to come",
        "    return inquiry.evidence.most_data_between(last[0] + 1, min(first, offset))",
        "    return 0",
        "begun midway, set back, and not there again",
        ("test_a_mirror_on_its_way_back_counts_what_it_has_yet_to_copy",),
    ),
    Guard(
        "set_back: re-reads: from the log's start of a mirror that was set back",
        "    return _data_before(inquiry.evidence, offset, copy) if set_back else 0",
        "    return 0",
        "the target is trimmed to inside a repeat",
        ("test_a_trimmed_log_that_begins_inside_a_repeat_is_read_from_its_start",),
    ),
    Guard(
        "translate: re-reads: from the log's start, of an earlier equal",
        "        bound += self.evidence.most_data_between(earliest, self.offset)\n",
        "",
        "the target is trimmed to inside equal records",
        ("test_an_earlier_equal_of_the_first_record_is_counted",),
    ),
    Guard(
        "translate: a pair goes before the log's start of which the source lost copies",
        "        return answer if target.next_known(target.start) == copy else None",
        "        return answer",
        "a trimmed source whose lost records still lie on the target",
        ("test_a_trimmed_source_leaves_its_copies_on_the_target",),
    ),
    Guard(
        "translate: what is left of a trimmed target first",
        "if self.evidence.target.start > 0 else None",
        "if False else None",
        "a trimmed target that begins behind C, under a small budget",
        ("test_what_is_left_of_a_trimmed_target_is_looked_at_before_pairs_are_sought",),
    ),
    # --- headers
    Guard(
        "evidence: headers are believed no more once content contradicts",
        "        self.headers_hold = self.source.at(named) is None\n",
        "",
        "stale headers, equal records",
        ("test_headers_that_content_contradicts_are_believed_no_more",),
    ),
    Guard(
        "evidence: a header tells equal copies apart",
        "        return named or [",
        "        return [",
        "a compacted source, equal records side by side",
        ("test_headers_tell_copies_of_equal_records_apart",),
    ),
    Guard(
        "evidence: a header that names the record proves it",
        "        return self.headers_hold and copy.source_offset == original.offset",
        "        return False",
        "equal records in one millisecond, mirrored twice",
        ("test_a_header_names_the_copy_among_equal_ones",),
    ),
    Guard(
        "evidence: a header tells equal originals apart",
        "        if named in equals:\n            return (named,)\n",
        "        if named in equals:\n            return equals\n",
        "sixty records that nothing else tells apart",
        ("test_a_header_tells_records_apart_that_nothing_else_does",),
    ),
    Guard(
        "evidence: what a header names is read first",
        "            return ()  # to be read first",
        "            return equals",
        "the same",
        ("test_a_header_tells_records_apart_that_nothing_else_does",),
    ),
    Guard(
        "evidence: a copy without a header is a copy",
        "        return named or [",
        "        return named and [",
        "headers were switched on at a restart",
        ("test_copies_without_a_header_lie_on_the_target_too",),
    ),
    # --- ordinary positions, answered at once
    Guard(
        "ordinary: the record itself is equal",
        "    for step in (0, 1, -1):\n",
        "    for step in (1, -1):\n",
        "a record that was left out, another in its place",
        ("test_another_record_at_the_distance_is_no_copy",),
    ),
    Guard(
        "ordinary: the record behind is equal",
        "    for step in (0, 1, -1):\n",
        "    for step in (0, -1):\n",
        "an equal record that was written far behind, the first copy lost",
        ("test_neighbours_tell_a_copy_from_that_of_an_equal_record",),
    ),
    Guard(
        "ordinary: the record before is equal",
        "    for step in (0, 1, -1):\n",
        "    for step in (0, 1):\n",
        "the same",
        ("test_neighbours_tell_a_copy_from_that_of_an_equal_record",),
    ),
    Guard(
        "ordinary: the run of the timestamp is known to its end",
        "    ok[ok] = source.run_ends[at[ok]]\n",
        "",
        "an equal record in the part of the run that nobody has read",
        ("test_an_equal_record_may_follow_in_what_is_not_known",),
    ),
    Guard(
        "ordinary: no known source record is equal",
        "    ok[ok] = source.alone(at[ok], match)\n",
        "",
        "a stretch that was written again, of which the first was not copied",
        ("test_a_stretch_that_was_written_again_may_be_meant",),
    ),
    Guard(
        "ordinary: no known target record is equal",
        "    ok[ok] = target.alone(image, match)\n",
        "",
        "a stretch that was copied again",
        ("test_a_stretch_that_was_copied_again_may_be_meant",),
    ),
    Guard(
        "ordinary: it bears a timestamp",
        "    ok &= stamps != NO_TIMESTAMP\n",
        "",
        "records without a timestamp",
        ("test_a_record_without_timestamp_cannot_be_looked_for",),
    ),
    Guard(
        "ordinary: what counts of it is not null",
        "one not in (None, (None, None))",
        "one is not None",
        "records with neither key nor value",
        ("test_nothing_is_told_by_records_that_hold_nothing",),
    ),
    # --- what is remembered
    Guard(
        "carry_over: known of this offset",
        "(known.offset == offset) & ",
        "",
        "a group moves on",
        ("test_only_new_positions_are_looked_at", "test_expired_and_past_the_end_are_told"),
    ),
    Guard(
        "carry_over: not below the source's start",
        " & (logs.source_start <= offset)",
        "",
        "retention passes a commit",
        ("test_expired_and_past_the_end_are_told",),
    ),
    Guard(
        "carry_over: not below the target's start",
        "    within &= logs.target_start <= known.target_offset\n",
        "",
        "records deleted on the target past a translation",
        ("test_records_deleted_past_the_translation_make_it_void",),
    ),
    Guard(
        "carry_over: what rests on ends holds while they stand",
        "(known.target_end == NOTHING) | same_ends",
        "True",
        "a caught-up group, and more is written and copied",
        ("test_a_caught_up_group_follows_a_repeat", "test_open_transactions_end_what_rested"),
    ),
    Guard(
        "carry_over: for good once the mirror has come past",
        "None if passed or behind >= answer.target_offset else ends",
        "None",
        "the same",
        ("test_a_caught_up_group_follows_a_repeat",),
    ),
    Guard(
        "cycle/known_logs: the same source log",
        "here not in (None, one.source_log) or ",
        "",
        "a topic made anew on the source",
        ("test_a_topic_made_anew_is_another_log", "test_a_new_leader_epoch"),
    ),
    Guard(
        "cycle/known_logs: the same target log",
        " or there not in (None, one.target_log)",
        "",
        "a topic made anew on the target",
        ("test_a_topic_made_anew_is_another_log", "test_a_new_leader_epoch"),
    ),
    Guard(
        "cycle/known_logs: a log that cannot be told is not used",
        "        if here is None or there is None:\n            continue\n",
        "",
        "a topic made anew while its description failed",
        ("test_an_answer_does_not_outlive_its_log", "test_what_could_not_be_described"),
    ),
    Guard(
        "cycle/known_logs: no log has become shorter",
        "        if LogEnds(span.end, own.end, copies.end).behind(one.ends):\n",
        "        if False:\n",
        "unclean election",
        ("test_a_log_that_became_shorter_is_another_one",),
    ),
    Guard(
        "cycle/pipeline: what translating saw of another log voids",
        "    return joined([logs.void, only(looked_at, ~same)])\n",
        "    return logs.void\n",
        "a topic made anew while its description failed, and one group moved",
        ("test_an_answer_does_not_outlive_its_log",),
    ),
    Guard(
        "cycle/pipeline: the logs are asked again before what was recalled is committed",
        "    gone = recalled & ~in_partitions(settlements, logs.logs)\n",
        "    gone = recalled & False\n",
        "a topic made anew between the look and the commit",
        ("test_a_log_made_anew_during_the_cycle",),
    ),
    Guard(
        "cycle/carry_over: a remembered frontier lies in the log",
        " and frontier[1] >= target.start",
        "",
        "retention passes it",
        ("test_a_remembered_frontier_needs_both_ends",),
    ),
    Guard(
        "cycle/carry_over: a remembered frontier needs the ends not to be shorter",
        "frontier is not None and not shorter and",
        "frontier is not None and",
        "an end went back",
        ("test_a_remembered_frontier_needs_both_ends",),
    ),
    # --- mirrors that keep offsets
    Guard(
        "same_offsets: the record before C is compared",
        "_shared_before(inquiry, at), _shared_from(inquiry, at)):\n",
        "_shared_from(inquiry, at)):\n",
        "the replicator went on at equal offsets right behind what the source had lost",
        ("test_what_differs_in_the_midst_is_found_beside_it",),
    ),
    Guard(
        "same_offsets: the record from C on is compared",
        "_shared_before(inquiry, at), _shared_from(inquiry, at)):\n",
        "_shared_before(inquiry, at)):\n",
        "the same, at its beginning",
        ("test_what_differs_in_the_midst_is_found_beside_it",),
    ),
    Guard(
        "same_offsets: the last that both have is compared",
        "for look in (_last_shared(inquiry), ",
        "for look in (",
        "the source lost its end and was written on, far behind C",
        ("test_logs_that_differ_at_their_ends_have_diverged",),
    ),
    Guard(
        "same_offsets: nothing to compare proves nothing",
        "any(compared) or (yield from _one_has_no_records(inquiry))",
        "True",
        "MirrorMaker 2 began at 0 what the source has from 40 on",
        ("test_logs_without_a_common_offset_prove_nothing",),
    ),
    Guard(
        "same_offsets: a log without records differs nowhere",
        "any(compared) or (yield from _one_has_no_records(inquiry))",
        "any(compared)",
        "retention has taken all that the source had",
        ("test_a_source_that_lost_its_records_has_nothing_to_compare",),
    ),
    Guard(
        "same_offsets: a mirror that has not begun answers nothing",
        "    if at == 0:\n",
        "    if False:\n",
        "an empty target",
        ("test_a_mirror_that_has_not_begun",),
    ),
    Guard(
        "same_offsets: never past the target's end",
        "at = min(max(offset, target.start), target.end)",
        "at = max(offset, target.start)",
        "the mirror lags",
        ("test_where_the_mirror_has_come_no_further_its_end_answers",),
    ),
    Guard(
        "evidence: stamps of the source that a mirror of bytes keeps",
        "        return self.target.rewrites_timestamps and not kept\n",
        "        return self.target.rewrites_timestamps\n",
        "LogAppendTime on the source, copied with its batches",
        ("test_batches_that_the_source_has_stamped_are_kept_as_they_are",),
    ),
    # --- going back
    Guard(
        "decide: a group goes back only from the commit that was named",
        "current.offset != rewind_from or not _may_go_back",
        "not _may_go_back",
        "a group that has moved since a person saw it",
        ("test_a_group_goes_back_only_from_the_commit_that_was_named",),
    ),
    Guard(
        "decide: a group does not go back to what retention has taken",
        "        and outcome.target_offset >= target_range.start\n",
        "",
        "the target's log lost what lay at the translation since",
        ("test_a_group_goes_back_only_from_the_commit_that_was_named",),
    ),
    Guard(
        "commands/snapshots/restoring: offsets are those of one topic",
        "    if then != now.topics[commit.topic]:\n",
        "    if False:\n",
        "a topic was made anew under its name",
        ("test_offsets_of_other_records_are_not_restored",),
    ),
    Guard(
        "commands/snapshots/restoring: not before the log's start",
        "    restored = max(commit.offset, log.start)\n",
        "    restored = commit.offset\n",
        "retention took what lay at a commit of the snapshot",
        ("test_a_commit_lies_within_its_log",),
    ),
    Guard(
        "commands/snapshots/restoring: not past the log's end",
        "    if commit.offset > log.end:\n",
        "    if False:\n",
        "the log was truncated since",
        ("test_a_commit_lies_within_its_log",),
    ),
)
EXAMPLES = (
    "tests/test_frontier_examples.py",
    "tests/test_guard_examples.py",
    "tests/test_memory_of_cycles.py",
    "tests/test_offset_header.py",
    "tests/test_ordinary.py",
    "tests/test_plan.py",
    "tests/test_same_offsets.py",
    "tests/test_snapshots.py",
    "tests/test_translate.py",
)


@contextmanager
def taken_out(guard: Guard) -> Iterator[Path]:
    """A copy of the package and its tests without a guard, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="guards-") as name:
        copy = Path(name)
        ignore = shutil.ignore_patterns("__pycache__", "scenarios")
        for part in ("tsoffset", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", copy)
        module = copy / guard.module
        text = module.read_text()
        if text.count(guard.there) != 1:
            raise LookupError(f"{guard.name}: {text.count(guard.there)} times there")
        module.write_text(text.replace(guard.there, guard.without))
        yield copy


def failing(root: Path, examples: Sequence[str]) -> list[str]:
    """Which of these examples fail with the package that lies there. Raises LookupError where one
    does not exist, or the package cannot be imported."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ("-q", "-p", "no:cacheprovider", "--tb=no", "-k", " or ".join(examples))
    run = subprocess.run(
        (sys.executable, "-m", "pytest", *options, *EXAMPLES),
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"^FAILED \S*?::(\w+)", run.stdout, re.MULTILINE)
    if run.returncode != (1 if failed else 0):
        raise LookupError(f"{examples}: {run.stdout}{run.stderr}")
    return list(dict.fromkeys(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a guard is missed by none of its examples."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the table, run nothing")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(arguments)
    missed = 0
    print("| guard | the log that needs it | example that fails without it |\n|---|---|---|")
    for guard in GUARDS:
        if options.words and not any(word in guard.name for word in options.words):
            continue
        found = list(guard.examples)
        if not options.list:
            with taken_out(guard) as copy:
                found = failing(copy, guard.examples)
        missed += not found
        said = ", ".join(f"`{name}`" for name in found) or "none"
        print(f"| {guard.name} | {guard.log} | {said} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
