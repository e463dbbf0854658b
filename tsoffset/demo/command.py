"""`tsoffset demo` as the command line calls it: the clusters up, the story told, all taken down."""

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from kafka.errors import KafkaError

from tsoffset.demo.clusters import TARGET, Clusters
from tsoffset.demo.keeping import tell_how_to_explore
from tsoffset.demo.narration import Narrator
from tsoffset.demo.story import Story
from tsoffset.demo.verdict import Count, GroupVerdict, in_words
from tsoffset.errors import EmbeddedError
from tsoffset.java import find_java
from tsoffset.terminal.output import Format, Output
from tsoffset.testing.embedded import resolve_jars

# Consumers side by side, a step, and MirrorMaker 2 and Spark starting beside them.
_THREADS = 7


def run(*, keep: bool, secure: bool) -> int:
    """Run the demo and return the exit status: 1 if a record was skipped, or if anything else
    is not as the outcome table says.

    With `keep` the clusters go on running afterwards; else nothing is left of them. With
    `secure` all clients need TLS and a password. Raises TsoffsetError for what keeps the demo
    from its end; the folder with the logs stays then.
    """
    started = time.monotonic()
    find_java()
    resolve_jars()
    folder = Path(tempfile.mkdtemp(prefix="tsoffset-demo-"))
    narrator = Narrator(Output(sys.stdout, Format.TABLE))
    try:
        clusters = Clusters(folder, secure=secure)
        status = _play(clusters, narrator, started, keep=keep)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except KafkaError as error:
        raise EmbeddedError(
            f"the demo's clients: {error!r}; try again, and if it stays so see the logs in {folder}"
        ) from error
    if not keep:
        if status == 0:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            narrator.say(f"All that the clusters held stays in {folder}.")
    return status


def conclusion(verdicts: Sequence[GroupVerdict]) -> tuple[int, list[str]]:
    """The exit status and the sentences of the end."""
    faults = [fault for verdict in verdicts for fault in verdict.faults]
    total = sum((verdict.count for verdict in verdicts), Count())
    if faults:
        wrong = "Not everything is as the table says"
        if total.skipped:
            wrong = f"{in_words(total.skipped)} skipped, which must never be"
        return 1, [f"{wrong}; please report it.", *(f"{fault}." for fault in faults)]
    moved = [verdict for verdict in verdicts if verdict.moved]
    again = sum(verdict.count.reread for verdict in moved)
    announced = sum(verdict.announced for verdict in moved)
    return 0, [
        f"No record was skipped. {len(verdicts)} groups resumed on {TARGET} and read "
        f"{in_words(total.read)}; the {len(moved)} that tsoffset had placed read {again:,} of them "
        f"for the second time (at most {announced:,} had been announced)."
    ]


def _play(clusters: Clusters, narrator: Narrator, started: float, *, keep: bool) -> int:
    narrator.opening(
        "tsoffset demo",
        "Two Kafka clusters on this machine, MirrorMaker 2 between them, one sync of the consumer "
        "groups' offsets, and a failover. It is all real"
        + ("." if keep else ", and gone afterwards (--keep keeps it)."),
    )
    with ExitStack() as stack:
        stack.callback(clusters.stop)
        opened = stack.enter_context(ExitStack())
        pool = ThreadPoolExecutor(_THREADS)
        stack.callback(pool.shutdown, cancel_futures=True)
        # While it is being started, or has much to copy, the pool would wait for it.
        stack.callback(clusters.stop_mirror)
        verdicts = Story(clusters, narrator, pool, opened).tell()
        status, sentences = conclusion(verdicts)
        narrator.step("Verdict")
        narrator.say(*sentences, style="bold green" if status == 0 else "bold red")
        narrator.say(f"{time.monotonic() - started:.0f} s in all.")
        if keep:
            tell_how_to_explore(clusters, narrator)
            for each in clusters.processes:
                each.let_go()
    return status
