"""`tsoffset translate`: offsets that an application keeps itself, translated into a file."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from tsoffset.cluster import Connect, all_failed
from tsoffset.commands.options import kafka_cluster, only_flow
from tsoffset.config.selection import Selection
from tsoffset.cycle.values import failed_row
from tsoffset.errors import ClusterUnreachable, UsageError
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.model import Precision, Row
from tsoffset.offset_files.document import Document
from tsoffset.offset_files.reading import STANDARD, write_file
from tsoffset.offset_files.spark_checkpoint import SparkCheckpoint, migrate
from tsoffset.offset_files.translation import StoredTranslation, targets_of, translate_stored
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, counted
from tsoffset.terminal.rows import cycle_lines

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TranslateOptions:
    """What is written where: `output` is None where nothing is; `group` stands in the rows; a
    translation of an `accepted` precision is written although it is not exact."""

    output: str | None = None
    group: str | None = None
    accepted: Collection[Precision] = ()


def run_translate(
    selection: Selection,
    read: Callable[[], Document],
    output: Output,
    notices: Notices,
    options: TranslateOptions,
    *,
    every_seconds: float | None = None,
    connect: Connect = kafka_cluster,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Translate the offsets that `read` returns, print their rows, write the output, and return the
    exit status. With `every_seconds` this repeats until interrupted. Raises UsageError."""
    flow = only_flow(selection, "translate")
    carry_over = CarryOver()
    once = partial(_once, selection, flow, output, notices, options, carry_over, connect)
    if every_seconds is None:
        return once(read())
    while True:
        started = time.monotonic()
        try:
            once(read())
        except UsageError as error:
            # The application may be writing its offsets now; the last translation stays.
            notices.error(error, trace=False)
        sleep(max(0.0, every_seconds - (time.monotonic() - started)))


def _once(
    selection: Selection,
    flow: FlowSettings,
    output: Output,
    notices: Notices,
    options: TranslateOptions,
    carry_over: CarryOver,
    connect: Connect,
    document: Document,
) -> int:
    config = selection.configuration.path
    try:
        with connect(flow.source) as source, connect(flow.target) as target:
            found = translate_stored(
                flow,
                source,
                target,
                document.offsets,
                group=options.group,
                carry_over=carry_over,
            )
    except ClusterUnreachable as error:
        rows = [failed_row(flow.name, all_failed(error))]
        _show(flow.name, rows, "no cluster, no translation", config, output, options)
        return error.exit_status
    refused = [one for one in found if not one.may_be_written(options.accepted)]
    written = options.output is not None and not refused
    if options.output is not None and not refused:
        _write(document, found, options.output)
    summary = _summary(found, refused, options.output if written else None)
    _show(flow.name, [one.row for one in found], summary, config, output, options)
    log.info(
        "offsets_translated",
        flow=flow.name,
        offsets=len(found),
        refused=len(refused),
        written=written,
    )
    if options.output is not None and refused:
        notices.warning("offsets_not_written", _not_written(document, options.output, refused))
    return int(bool(refused))


def _write(document: Document, found: Sequence[StoredTranslation], output: str) -> None:
    if isinstance(document, SparkCheckpoint):
        migrate(document, targets_of(found), output)
    else:
        write_file(output, document.translated(targets_of(found)))


def _show(
    flow: str,
    rows: Sequence[Row],
    summary: str,
    config: str,
    output: Output,
    options: TranslateOptions,
) -> None:
    # Standard output is then that of the translated text.
    if options.output != STANDARD:
        output.show(Row, rows, partial(cycle_lines, flow, rows, lambda: summary, config))


def _summary(
    found: Sequence[StoredTranslation], refused: Sequence[StoredTranslation], written: str | None
) -> str:
    where = "nothing written" if written is None else f"written to {written}"
    if refused:
        return f"{counted(len(found), 'offset')}, {len(refused)} not accepted; {where}"
    return f"{counted(len(found), 'offset')}, {_reread(found)}; {where}"


def _reread(found: Sequence[StoredTranslation]) -> str:
    bound = sum(one.row.reread_bound or 0 for one in found)
    return f"at most {counted(bound, 'record')} re-read"


def _not_written(document: Document, output: str, refused: Sequence[StoredTranslation]) -> str:
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
            "; a batch that was planned and not committed needs both its ends: stop the query"
            " gracefully, or let it end by Trigger.AvailableNow"
        )
    name = "the translation" if output == STANDARD else output
    return (
        f"{name} is not written: {counted(len(refused), 'offset')} without an exact translation,"
        f" the first {where} ({row.reason or row.precision}); {advice}."
    )
