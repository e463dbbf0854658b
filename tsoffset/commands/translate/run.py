"""`tsoffset translate`: offsets that an application keeps itself, translated into a file."""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

import structlog

from tsoffset.cluster import all_failed
from tsoffset.commands.options import only_flow
from tsoffset.config.selection import Selection
from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.rows import failed_row
from tsoffset.kafka import kafka_cluster
from tsoffset.model import Precision, Row
from tsoffset.offset_files.document import Document
from tsoffset.offset_files.reading import STANDARD, write_file
from tsoffset.offset_files.spark_checkpoint import SparkCheckpoint, migrate
from tsoffset.offset_files.translation import StoredTranslation, targets_of, translate_stored
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, plural
from tsoffset.terminal.rows import cycle_lines

log = structlog.get_logger(__name__)


def run_translate(
    selection: Selection,
    read: Callable[[], Document | SparkCheckpoint],
    output: Output,
    notices: Notices,
    *,
    written: str | None = None,
    group: str | None = None,
    accepted: Collection[Precision] = (),
    every_seconds: float | None = None,
) -> int:
    """Translate the offsets that `read` returns, print their rows, and return the exit status.

    The translation is written to `written` (None: not), if each offset has an exact one, or one of
    an `accepted` precision; `group` stands in the rows. With `every_seconds` this repeats until
    interrupted. Raises UsageError, and ClusterUnreachable if no rows are printed.
    """
    flow = only_flow(selection, "translate")
    cache = CachedTables()

    def show(rows: Sequence[Row], summary: str) -> None:
        # The translated text may be written to standard output.
        if written != STANDARD:
            config = selection.configuration.path
            lines = partial(cycle_lines, flow.name, rows, lambda: summary, config, stored=True)
            output.show(Row, rows, lines)

    def translate_once(document: Document | SparkCheckpoint) -> int:
        offsets = document.offsets
        try:
            with (
                notices.progress(f"translating {flow.name}"),
                kafka_cluster(flow.source) as source,
                kafka_cluster(flow.target) as target,
            ):
                found = translate_stored(flow, source, target, offsets, group=group, cache=cache)
        except ClusterUnreachable as error:
            if written == STANDARD:
                raise
            show([failed_row(flow.name, all_failed(error))], "no cluster, no translation")
            return error.exit_status
        refused = [one for one in found if not one.may_be_written(accepted)]
        where = "nothing written"
        if written is not None and not refused:
            where = f"written to {written}"
            if isinstance(document, SparkCheckpoint):
                migrate(document, targets_of(found), written)
            else:
                write_file(written, document.render(targets_of(found)))
        what = f"{len(refused)} not accepted" if refused else _reread(found)
        show([one.row for one in found], f"{plural(len(found), 'offset')}, {what}; {where}")
        log.info(
            "offsets_translated",
            flow=flow.name,
            offsets=len(found),
            refused=len(refused),
            written=written is not None and not refused,
        )
        if written is not None and refused:
            notices.warning("offsets_not_written", _not_written(document, written, refused))
        return int(bool(refused))

    if every_seconds is None:
        return translate_once(read())
    while True:
        started = time.monotonic()
        try:
            translate_once(read())
        except UsageError as error:
            # The application may be writing its offsets now; the last translation stays.
            notices.error(error, trace=False)
        time.sleep(max(0.0, every_seconds - (time.monotonic() - started)))


def _reread(found: Sequence[StoredTranslation]) -> str:
    bound = sum(one.row.reread_bound or 0 for one in found)
    return f"at most {plural(bound, 'record')} re-read"


def _not_written(
    document: Document | SparkCheckpoint, output: str, refused: Sequence[StoredTranslation]
) -> str:
    first = refused[0]
    where = f"{first.stored.topic}-{first.stored.partition} at {first.stored.offset}"
    row = first.row
    precisions = {one.row.precision for one in refused if one.row.reason is None}
    # Without rows on standard output this is all that a person gets.
    advice = row.message or "see the rows"
    if all(one.row.reason is None for one in refused) and Precision.UNPROVEN not in precisions:
        accept = " ".join(f"--accept {one}" for one in sorted(filter(None, precisions)))
        advice = (
            "wait until the mirror has caught up and translate again, or write it nevertheless"
            f" with {accept}: {_reread(refused)} then"
        )
    if isinstance(document, SparkCheckpoint) and document.planned is not None:
        advice += (
            "; a planned batch needs a translation of its begin and of its end: stop the query"
            " gracefully, or let it end by Trigger.AvailableNow"
        )
    name = "the translation" if output == STANDARD else output
    return (
        f"{name} is not written: {plural(len(refused), 'offset')} without an exact translation,"
        f" the first {where} ({row.reason or row.precision}); {advice}."
    )
