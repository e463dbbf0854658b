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
    # --- the proofs
    Guard(
        "proof: the copy is of no later equal record",
        "        (yield from no_later_twin(inquiry, record, copy))\n        and (yield",
        "        (yield",
        "of two equal records the first was left out",
        (
            "test_a_later_equal_record_is_no_copy_of_the_first",
            "test_a_copy_that_is_out_of_order_on_the_target_may_be_of_a_later_record",
        ),
    ),
    Guard(
        "proof: the copy is in place",
        "        and (yield from in_place(inquiry, record, copy))\n",
        "",
        "a retried batch, with a record of others before it",
        (
            "test_records_of_others_do_not_hide_what_lies_before_a_stretch",
            "test_a_pair_whose_neighbours_were_not_read_is_not_in_place",
        ),
    ),
    Guard(
        "proof: what a lookup does not tell of is compared",
        "    if any(evidence.may_be_of(copy, offset) for copy in target.known(start, limit)):\n"
        "        return None\n",
        "",
        "late records, and a mirror that was set back",
        (
            "test_one_late_record_and_a_restart_skip_nothing",
            "test_an_equal_record_feigns_no_beginning",
            "test_a_log_that_retention_left_with_late_records_begins_with_these",
        ),
    ),
    Guard(
        "proof: by time the record right behind counts",
        "by_time(inquiry, record.offset + 1, copy",
        "by_time(inquiry, record.offset + 2, copy",
        "the same",
        ("test_the_record_right_behind_counts_by_time",),
    ),
    Guard(
        "proof: by time only where the target is the mirror",
        "    if not inquiry.evidence.is_remote_topic:\n        return None\n",
        "",
        "failback, and equal records",
        (
            "test_in_failback_an_equal_written_later_is_no_copy",
            "test_what_the_replica_never_had_is_not_told_by_times_on_it",
            "test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept",
            "test_failback_under_identity_does_not_pass_what_the_replica_never_had",
        ),
    ),
    Guard(
        "proof: in failback the pair below decides",
        "    elif evidence.failback:\n        pair = below\n",
        "    elif evidence.failback:\n        pair = above\n",
        "failback from a replica that was set back",
        (
            "test_what_the_replica_never_had_is_not_told_by_times_on_it",
            "test_in_failback_a_replica_is_seen_to_be_set_back_behind_records_of_others",
        ),
    ),
    Guard(
        "proof: by first copy only what is not compacted",
        "    if not (evidence.not_compacted or evidence.failback):\n        return None\n",
        "",
        "a compacted mirror that is mirrored anew",
        (
            "test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",
            "test_what_compaction_took_before_a_restart_was_the_lowest_copy",
        ),
    ),
    Guard(
        "proof: the log begins at the record or before it",
        "beginning.source_offset > earliest or beginning.target_offset > copy.offset",
        "beginning.target_offset > copy.offset",
        "late records, and a mirror that began there and was set back",
        (
            "test_a_log_that_retention_left_with_late_records_begins_with_these",
            "test_an_equal_record_feigns_no_beginning",
            "test_equal_records_feign_no_beginning_however_many_there_are",
            "test_a_header_does_not_tell_where_the_mirror_began",
        ),
    ),
    Guard(
        "proof: more records are asked for where something was repeated",
        "        copy.offset - beginning.target_offset > record.offset - beginning.source_offset\n",
        "        False\n",
        "eight equal records, and then others, in front of a repeat",
        ("test_equal_records_feign_no_beginning_however_many_there_are",),
    ),
    Guard(
        "proof: no record is older than the source's first one",
        "    if beginning.oldest_ms is not None and not (",
        "    if False and not (",
        "a first record of the far future",
        ("test_a_first_record_of_the_far_future_makes_no_other_one_very_late",),
    ),
    Guard(
        "log_view: a lookup passes records without a timestamp",
        "return all(it is not None and it >= timestamp_ms for it in self._timestamps[first:])",
        "return all(it is None or it >= timestamp_ms for it in self._timestamps[first:])",
        "such a record before the copy of the source's first one",
        ("test_a_record_without_a_timestamp_may_lie_before_the_copy_of_the_first_one",),
    ),
    Guard(
        "older: that none is answered proves nothing",
        "    return target.end if is_older else target.start",
        "    return target.end",
        "a log that starts in mid-segment",
        ("test_that_a_lookup_answers_none_proves_nothing_on_any_log",),
    ),
    Guard(
        "older: no lookup finds records without a timestamp",
        "if oldest.untimed or oldest.timestamp_ms is None",
        "if oldest.timestamp_ms is None",
        "such a record, and a mirror that was set back",
        ("test_a_record_without_a_timestamp_is_not_told_of_by_lookups",),
    ),
    Guard(
        "log_view: by time the source is known to its end",
        "        if offset < self.end and self.covered_to(offset) < self.end:\n"
        "            return None\n",
        "",
        "late records that were not read",
        (
            "test_late_records_behind_a_long_row_of_younger_ones_are_not_passed",
            "test_one_late_record_and_a_restart_skip_nothing",
            "test_an_equal_record_feigns_no_beginning",
        ),
    ),
    # --- where the target's log begins
    Guard(
        "beginning: of eight records",
        "FIRST = 8\n",
        "FIRST = 1\n",
        "an equal record, and late ones behind it",
        ("test_an_equal_record_feigns_no_beginning_where_the_source_has_holes",),
    ),
    Guard(
        "beginning: of 500 records",
        "FIRST_SURELY = 500",
        "FIRST_SURELY = 8",
        "eight equal records, and late ones behind them",
        ("test_equal_records_feign_no_beginning_however_many_there_are",),
    ),
    Guard(
        "beginning: the highest original counts",
        "Beginning(at if one_by_one else highest, first.offset)",
        "Beginning(at, first.offset)",
        "an equal record, and late ones behind it",
        ("test_an_equal_record_feigns_no_beginning_where_the_source_has_holes",),
    ),
    Guard(
        "beginning: each original is known",
        "            if lookups_left < 0 or not (yield from _original_known(inquiry, copy)):\n"
        "                return Unknown.NOT_FOUND\n",
        "            if lookups_left < 0 or not (yield from _original_known(inquiry, copy)):\n"
        "                break\n",
        "an equal record, and one of others behind it",
        ("test_an_equal_record_feigns_no_beginning_where_the_source_has_holes",),
    ),
    # --- the frontier
    Guard(
        "frontier: the last of both is no copy of another record",
        "if evidence.equal(end, copy) and (yield from _unmistakable(inquiry, end, copy)):",
        "if evidence.equal(end, copy):",
        "the last record on both sides has an earlier equal one",
        (
            "test_by_time_a_pair_shows_nothing_of_what_an_earlier_equal_leaves_between",
            "test_the_copy_of_the_highest_record_is_not_that_of_its_equal",
            "test_an_earlier_equal_at_the_end_of_both_logs_shows_nothing",
        ),
    ),
    Guard(
        "frontier: the last of both is the source's last",
        "if evidence.equal(end, copy) and (yield from _unmistakable(inquiry, end, copy)):",
        "if (yield from _unmistakable(inquiry, end, copy)):",
        "the mirror ends inside a repeat",
        (
            "test_one_late_record_and_a_restart_skip_nothing",
            "test_late_records_behind_a_long_row_of_younger_ones_are_not_passed",
            "test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",
        ),
    ),
    Guard(
        "frontier: what lies above the last copy is looked for",
        "            highest = max(highest, equals[-1])\n",
        "            pass\n",
        "a compacted mirror that is mirrored anew",
        (
            "test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",
            "test_the_next_records_are_looked_for_until_none_is_there",
        ),
    ),
    Guard(
        "frontier: F's lowest copy where no name tells which side is the mirror",
        "        if lowest != copy:\n            return False\n",
        "",
        "failback under one name, the original has an equal behind what was never copied",
        ("test_in_failback_that_no_name_tells_of_the_lowest_of_equal_records_counts",),
    ),
    # --- equal records
    Guard(
        "twins: the run is read to its end",
        "    if not (yield from _run_is_known(inquiry, record)):\n        return False\n",
        "",
        "of two equal records in one millisecond the first was left out",
        ("test_a_later_equal_record_further_along_the_run_may_be_meant",),
    ),
    Guard(
        "twins: no later equal is known",
        "    highest = record.offset if among is None else among[-1]\n",
        "    highest = evidence.source.end\n",
        "of two equal records and what stands between only the second was copied",
        ("test_a_later_equal_record_that_is_known_may_be_meant",),
    ),
    Guard(
        "twins: in order on the source, or a neighbour is equal",
        "        _in_order(before, record, after)\n        and _in",
        "        _in",
        "a record out of order, that was written again with its old time",
        ("test_a_record_that_is_out_of_order_on_the_source_may_have_equals_far_away",),
    ),
    Guard(
        "twins: in order on the target, or a neighbour is equal",
        "        and _in_order(copy_before, copy, copy_after)\n",
        "",
        "a record that was written again with its old time, behind a younger one of others",
        ("test_a_copy_that_is_out_of_order_on_the_target_may_be_of_a_later_record",),
    ),
    Guard(
        "twins: a target that begins with the copy does not tell the order",
        "        and not (_begins(inquiry, TARGET, copy) and not ",
        "        and not (False and not ",
        "the target begins with a record that was written again with its old time",
        ("test_a_target_that_begins_later_does_not_tell_the_order",),
    ),
    Guard(
        "twins: bare records need an equal neighbour",
        "        and not (record.key is None and record.value is None)\n",
        "",
        "records with neither key nor value, two of one time far apart",
        ("test_bare_records_of_one_time_may_be_far_apart",),
    ),
    Guard(
        "twins: what stands before an equal stretch is earlier",
        "        if is_of_earlier is not None:\n            return is_of_earlier",
        "        if is_of_earlier is not None:\n            return True",
        "a retried batch, with a record of others before it",
        ("test_records_of_others_do_not_hide_what_lies_before_a_stretch",),
    ),
    Guard(
        "twins: back over a whole stretch",
        "STRETCH = 16",
        "STRETCH = 1",
        "the same",
        (
            "test_records_of_others_do_not_hide_what_lies_before_a_stretch",
            "test_a_pair_whose_neighbours_were_not_read_is_not_in_place",
        ),
    ),
    Guard(
        "twins: reads at the edge of what was read",
        "READ_BACK = 3",
        "READ_BACK = 0",
        "the same",
        (
            "test_records_of_others_do_not_hide_what_lies_before_a_stretch",
            "test_a_pair_whose_neighbours_were_not_read_is_not_in_place",
        ),
    ),
    Guard(
        "twins: past records of others before a stretch",
        "NEIGHBOURS = 3",
        "NEIGHBOURS = 1",
        "the same",
        ("test_records_of_others_do_not_hide_what_lies_before_a_stretch",),
    ),
    Guard(
        "twins: what stands before a stretch is unseen: not in place",
        "            return copy_before is Absent.LOG_START\n        is_of_earlier",
        "            return True\n        is_of_earlier",
        "the same, beyond the budget",
        ("test_what_could_not_be_read_before_a_stretch_may_be_later",),
    ),
    Guard(
        "twins: in failback the original holds nothing between that the replica lacks",
        "        if evidence.failback:\n            return False  # ",
        "        if False:\n            return False  # ",
        "failback to an original that lost the first of two equal records",
        (
            "test_in_failback_an_equal_written_later_is_no_copy",
            "test_in_failback_no_answer_lies_behind_what_is_to_be_read",
        ),
    ),
    Guard(
        "twins: an earlier equal is counted",
        "    evidence = inquiry.evidence\n    if evidence.names(copy, record) and not surely:\n",
        "    evidence = inquiry.evidence\n    if record:\n",
        "equal records side by side",
        ("test_a_copy_that_is_not_the_lowest_of_its_content_is_no_repeat_for_that",),
    ),
    Guard(
        "twins: an earlier equal that is unseen is counted",
        "isinstance(earliest, Record) else start)",
        "isinstance(earliest, Record) else record.offset)",
        "the same, beyond the budget",
        ("test_an_earlier_equal_record_that_was_not_read_is_counted",),
    ),
    Guard(
        "evidence: a pair above lies behind the copy",
        "            if pair.target_offset < target_offset:\n                break\n",
        "",
        "a compacted mirror that is mirrored anew",
        ("test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",),
    ),
    Guard(
        "evidence: headers are believed no more once content contradicts",
        "        self.headers_hold = self.source.at(named) is None\n",
        "",
        "stale headers, equal records",
        ("test_headers_that_content_contradicts_are_believed_no_more",),
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
    Guard(
        "evidence: stamps of the source that a mirror of bytes keeps",
        "        return self.target.rewrites_timestamps and not kept\n",
        "        return self.target.rewrites_timestamps\n",
        "LogAppendTime on the source, copied with its batches",
        ("test_batches_that_the_source_has_stamped_are_kept_as_they_are",),
    ),
    # --- the search
    Guard(
        "search: the lowest copy",
        "copies[0] != tried:\n        tried = copies[0]\n",
        "copies[-1] != tried:\n        tried = copies[-1]\n",
        "a mirror that was set back",
        (
            "test_the_lowest_copy_counts_among_equal_records",
            "test_the_first_copy_of_a_repeated_stretch_counts",
        ),
    ),
    # --- the walk
    Guard(
        "twins: an equal that the source has lost is counted",
        "if len(evidence.copies(record)) > 1 and not _equal(",
        "if False and not _equal(",
        "source compacted, the target not, mirrored anew",
        ("test_a_distance_to_a_pair_proves_no_place_by_itself",),
    ),
    # --- what is known, and headers
    Guard(
        "walk: only what is read moves the answer",
        "(beside and not unclear and self._is_read(copy))",
        "(beside and not unclear)",
        "two equal records side by side, and the header of one copy stale",
        (
            "test_the_lowest_copy_counts_among_equal_records",
            "test_a_copy_without_a_header_may_be_any_equal_ones",
        ),
    ),
    Guard(
        "walk: exact only where the source was read",
        "exact = self.all_known and not (left or self.names_unread)",
        "exact = not (left or self.names_unread)",
        "a compacted target whose pairs lie far apart",
        ("test_a_walk_over_what_was_not_read_is_not_exact",),
    ),
    Guard(
        "walk: exact only where no header names what was not read",
        "exact = self.all_known and not (left or self.names_unread)",
        "exact = self.all_known and not left",
        "a copy whose header names a record far away",
        ("test_a_header_that_names_what_nobody_has_read_hides_no_copy",),
    ),
    Guard(
        "evidence: a target record that equals none may have been rewritten",
        "        return any(it and (it.key == copy.key or it",
        "        return False and any(it and (it.key == copy.key or it",
        "a replicator that rewrites values, and a match that names them",
        ("test_a_copy_whose_value_was_rewritten_is_no_proof_that_it_is_not_there",),
    ),
    Guard(
        "walk: repeats do not move the walk",
        "        if self._repeats(copy):\n            return False\n",
        "",
        "a mirror that was set back",
        (
            "test_the_lowest_copy_counts_among_equal_records",
            "test_a_compacted_mirror_that_is_mirrored_anew_skips_nothing",
        ),
    ),
    Guard(
        "walk: the log's end only beside what was reached",
        "if copy is Absent.LOG_END and at == self.reached.target_offset:",
        "if copy is Absent.LOG_END:",
        "failback under one name: records at the end that the replica never had",
        (
            "test_failback_under_identity_does_not_pass_what_the_replica_never_had",
            "test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept",
        ),
    ),
    Guard(
        "walk: nothing unclear before the first from C on",
        "                if unclear:\n                    break\n",
        "",
        "of two equal records one copy is left, C behind it",
        ("test_twins_that_cannot_be_counted_cost_rereads_that_are_stated",),
    ),
    Guard(
        "walk: the walk's record does not go down",
        "last = max(self.reached.source_offset, original)",
        "last = original",
        "the same",
        ("test_a_commit_past_the_mirrored_end_is_at_the_end_of_a_repeat",),
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
        "        if not (yield from no_later_twin(self.inquiry, original, copy, among=equals)) "
        "and (\n            (yield from told_by_time(self.inquiry, original, copy)) is None\n"
        "        ):\n"
        "            return _Match.UNCLEAR, -1\n",
        "",
        "the same within one millisecond",
        ("test_a_later_equal_record_further_along_the_run_may_be_meant",),
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
        "translate: te only where the logs end as a mirror",
        "        if not (yield from self._ends_as_a_mirror()):\n",
        "        if False:\n",
        "failback",
        (
            "test_in_a_failback_flow_no_log_end_is_an_answer",
            "test_failback_under_identity_does_not_pass_what_the_replica_never_had",
        ),
    ),
    Guard(
        "translate: te under one name only where nothing lies behind the last of both",
        "        return isinstance(last, Last) and last.is_last\n",
        "        return isinstance(last, Last)\n",
        "the same",
        (
            "test_failback_under_identity_does_not_pass_what_the_replica_never_had",
            "test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept",
        ),
    ),
    Guard(
        "translate: te by time only where the target is the mirror",
        "        if evidence.is_remote_topic:\n            safety",
        "        if True:\n            safety",
        "failback under one name",
        (
            "test_failback_under_identity_does_not_pass_what_the_replica_never_had",
            "test_under_identity_a_log_end_needs_a_proven_mirror",
            "test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept",
        ),
    ),
    Guard(
        "translate: a target without records that never had any is not mirrored",
        "            emptied = target.end > 0 and known\n",
        "            emptied = known\n",
        "nothing was mirrored yet",
        ("test_nothing_mirrored_yet_moves_nothing",),
    ),
    Guard(
        "translate: the target's end is read first",
        "            yield from self.inquiry.log_range(TARGET)\n        except",
        "            yield from self.inquiry.log_range(SOURCE)\n"
        "            yield from self.inquiry.log_range(TARGET)\n"
        "        except",
        "a record is written and copied meanwhile",
        ("test_the_end_of_the_target_is_read_before_that_of_the_source",),
    ),
    Guard(
        "translate: no answer behind the last copy of R",
        "            if copies and copies[-1] < answer.target_offset:",
        "            if False:",
        "repeats from which the cleaner took records, so that a copy is taken for an earlier one",
        ("test_a_distance_to_a_pair_proves_no_place_by_itself",),
    ),
    Guard(
        "from_log_start: re-reads: of an earlier equal",
        "    bound += evidence.most_data_between(earliest, offset)\n",
        "",
        "the target is trimmed to inside equal records",
        ("test_an_earlier_equal_of_the_first_record_is_counted",),
    ),
    Guard(
        "from_log_start: re-reads: up to a pair, of an earlier equal",
        "    bound += evidence.most_data_between(pair.earliest_equal, offset)\n",
        "",
        "two records written again, one lost on the target, and no budget",
        ("test_an_earlier_equal_of_a_pair_above_is_counted",),
    ),
    Guard(
        "translate: re-reads: at the mirror's end, of an earlier equal",
        "copied = self.evidence.originals(copy)[0]",
        "copied = self.evidence.originals(copy)[-1]",
        "a stretch written again, the mirror's end between the two",
        ("test_at_the_mirrors_end_an_earlier_equal_counts",),
    ),
    Guard(
        "translate: a pair goes before the log's start of which the source lost copies",
        "        return best if begins else None",
        "        return best",
        "a trimmed source whose lost records still lie on the target",
        ("test_a_trimmed_source_leaves_its_copies_on_the_target",),
    ),
    # --- a mirror that was set back
    Guard(
        "set_back: where the distance is not known all counts",
        "    if isinstance(distance, Unknown):\n        return rereads\n",
        "    if isinstance(distance, Unknown):\n        return 0\n",
        "the same",
        (
            "test_as_many_offsets_before_both_first_records_mean_nothing_after_a_repeat",
            "test_what_is_not_known_of_the_first_record_is_counted",
        ),
    ),
    Guard(
        "set_back: re-reads: what is still to come",
        "    return evidence.most_data_between(last.lowest + 1, min(first, offset))",
        "    return 0",
        "begun midway, set back, and not there again",
        (
            "test_a_mirror_on_its_way_back_counts_what_it_has_yet_to_copy",
            "test_what_was_exact_is_so_no_more_once_the_mirror_was_set_back",
        ),
    ),
    Guard(
        "set_back: re-reads: what was first copied behind the pair",
        "        return 0\n    return rereads\n",
        "        return 0\n    return 0\n",
        "begun midway and set back to the beginning",
        ("test_a_mirror_set_back_before_its_beginning_counts_what_comes_first_in_the_repeat",),
    ),
    Guard(
        "set_back: re-reads: from the log's start of a mirror that was set back",
        "    return _data_before(inquiry.evidence, offset, copy) if set_back else 0",
        "    return 0",
        "the target is trimmed to inside a repeat",
        ("test_a_trimmed_log_that_begins_inside_a_repeat_is_read_from_its_start",),
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
        "carry_over: for good only where the mirror has passed all",
        "        for_good = good_from is not None and offset > good_from\n",
        "        for_good = True\n",
        "begun midway and set back since",
        (
            "test_what_was_exact_is_so_no_more_once_the_mirror_was_set_back",
            "test_where_the_source_may_be_the_replica_no_proof_by_time_is_kept",
        ),
    ),
    Guard(
        "carry_over: for good only where all was copied from the source's first record on",
        "    if first is None or evidence.most_data_between(evidence.source.start, first):\n"
        "        return None\n",
        "",
        "the same",
        ("test_what_was_exact_is_so_no_more_once_the_mirror_was_set_back",),
    ),
    Guard(
        "carry_over: known of this offset",
        "(known.offset == offset) & ",
        "",
        "a group moves on",
        (
            "test_only_new_positions_are_looked_at",
            "test_expired_and_past_the_end_are_told",
        ),
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
        (
            "test_a_caught_up_group_follows_a_repeat",
            "test_open_transactions_end_what_rested",
        ),
    ),
    Guard(
        "cycle/known_logs: the same source log",
        "here not in (None, one.source_log) or ",
        "",
        "a topic made anew on the source",
        (
            "test_a_topic_made_anew_is_another_log",
            "test_a_new_leader_epoch",
        ),
    ),
    Guard(
        "cycle/known_logs: the same target log",
        " or there not in (None, one.target_log)",
        "",
        "a topic made anew on the target",
        (
            "test_a_topic_made_anew_is_another_log",
            "test_a_new_leader_epoch",
        ),
    ),
    Guard(
        "cycle/known_logs: a log that cannot be told is not used",
        "        if here is None or there is None:\n            continue\n",
        "",
        "a topic made anew while its description failed",
        (
            "test_an_answer_does_not_outlive_its_log",
            "test_what_could_not_be_described",
        ),
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
        "cycle/commit_work: the logs are asked again before cached answers are committed",
        "gone=recalled & ~in_partitions(found, logs.logs)",
        "gone=recalled & False",
        "a topic made anew between the look and the commit",
        ("test_a_log_made_anew_during_the_cycle",),
    ),
    Guard(
        "cycle/carry_over: a remembered pair lies in the log",
        " and carry_over.frontier[1] >= target.start:",
        ":",
        "retention passes it",
        (
            "test_a_remembered_frontier_needs_both_ends",
            "test_a_frontier_that_retention_has_passed_is_forgotten",
        ),
    ),
    Guard(
        "cycle/carry_over: a remembered pair needs the ends not to be shorter",
        "    if shorter:\n        return\n",
        "",
        "an end went back",
        ("test_a_remembered_frontier_needs_both_ends",),
    ),
    Guard(
        "cycle/carry_over: a pair that retention has passed is not kept",
        "    there = [pair for pair in known if pair[1] >= evidence.target.start]\n",
        "    there = known\n",
        "retention passes it",
        ("test_a_frontier_that_retention_has_passed_is_forgotten",),
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
    # --- going back
    Guard(
        "group_sync/commit_rule: a group goes back only from the commit that was named",
        '        (_current == pl.col("rewind_from"))\n',
        '        pl.col("rewind_from").is_not_null()\n',
        "a group that has moved since a person saw it",
        ("test_a_group_goes_back_only_from_the_commit_that_was_named",),
    ),
    Guard(
        "group_sync/commit_rule: a group does not go back to what retention has taken",
        '        & (_target >= pl.col("target_start"))\n',
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
    "tests/test_five_faults.py",
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
