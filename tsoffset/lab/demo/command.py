"""`tsoffset demo`: starts the clusters, plays a scenario, and stops everything."""

import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from kafka.errors import KafkaError

from tsoffset.errors import EmbeddedError
from tsoffset.java import find_java
from tsoffset.lab.demo.clusters import Clusters
from tsoffset.lab.demo.failback import Failback
from tsoffset.lab.demo.failover import Failover
from tsoffset.lab.demo.keeping import tell_how_to_explore
from tsoffset.lab.demo.migration import MigrationStory
from tsoffset.lab.demo.narration import Narrator
from tsoffset.lab.demo.stopping import PREFIX
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.streaming import Streaming
from tsoffset.lab.embedded import resolve_jars
from tsoffset.terminal.output import Format, Output

# Several consumers, a step, and MirrorMaker 2 and Spark starting at the same time.
_THREADS = 7
_STORIES: Mapping[str, type[Story]] = {
    "failover": Failover,
    "failback": Failback,
    "migration": MigrationStory,
    "streaming": Streaming,
}


def run(scenario: str, *, keep: bool, secure: bool) -> int:
    """Play the scenario and return the exit status: 1 if a record was skipped, or if anything else
    is not as the outcome table says.

    With `keep` the clusters keep running afterwards; otherwise everything is removed. With `secure`
    all clients need TLS and a password. Raises TsoffsetError if the demo cannot be completed; the
    folder with the logs stays then.
    """
    started = time.monotonic()
    find_java()
    resolve_jars()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    narrator = Narrator(Output(sys.stdout, Format.TABLE))
    try:
        clusters = Clusters(folder, secure=secure)
        status = _play(scenario, clusters, narrator, started, keep=keep)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except KafkaError as error:
        raise EmbeddedError(
            f"the demo's clients: {error!r}; try again; if it happens again, see the logs in "
            f"{folder}"
        ) from error
    if not keep:
        if status == 0:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            narrator.say(f"The clusters' data is kept in {folder}.")
    return status


def _play(
    scenario: str, clusters: Clusters, narrator: Narrator, started: float, *, keep: bool
) -> int:
    story = _STORIES[scenario]
    narrator.opening(
        f"tsoffset demo: {scenario}",
        f"Two Kafka clusters on this machine, MirrorMaker 2 between them, {story.about}. They are "
        "real" + ("." if keep else ", and deleted at the end (--keep keeps them)."),
    )
    with ExitStack() as stack:
        stack.callback(clusters.stop)
        opened = stack.enter_context(ExitStack())
        pool = ThreadPoolExecutor(_THREADS)
        stack.callback(pool.shutdown, cancel_futures=True)
        # Stopped before the pool, which would wait while MirrorMaker 2 starts or copies.
        stack.callback(clusters.stop_mirror)
        played = story(clusters, narrator, pool, opened)
        status, sentences = played.tell()
        narrator.step("Verdict")
        narrator.say(*sentences, style="bold green" if status == 0 else "bold red")
        narrator.say(f"{time.monotonic() - started:.0f} s in all.")
        if keep:
            tell_how_to_explore(clusters, played.file, narrator)
            for each in clusters.processes:
                each.leave_running()
    return status
