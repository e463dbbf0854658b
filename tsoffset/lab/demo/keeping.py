"""What `--keep` leaves running, and how to explore it."""

import shlex
import sys
from pathlib import Path

from tsoffset.java import find_java
from tsoffset.lab.demo.clusters import SOURCE, TARGET, Clusters, remote
from tsoffset.lab.demo.narration import Narrator
from tsoffset.lab.demo.stopping import remember
from tsoffset.lab.demo.topics import GROUPS
from tsoffset.lab.embedded import resolve_jars

# Kafka's own command-line tools: the jars come without their scripts.
_TOOLS = {
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
# Without a configuration, log4j prints a complaint, and then errors among the results.
_QUIET = ("-Dlog4j2.StatusLogger.level=OFF", "-Dlog4j2.level=OFF")


def tell_how_to_explore(clusters: Clusters, configuration: Path, narrator: Narrator) -> None:
    """Print the commands, after writing scripts for Kafka's own tools."""
    groups_tool, consumer_tool = _write_tools(clusters.folder)
    secured = {
        name: f" --command-config {shlex.quote(str(path))}"
        for name, path in clusters.write_client_properties().items()
    }
    ours, file = shlex.join(_this_program()), shlex.quote(str(configuration))
    active = next(group for group in GROUPS if group.member)
    plain = GROUPS[0]
    narrator.step("The clusters keep running")
    narrator.say(
        f"To look around ({active.name} can be moved now: its consumer has left with the demo):"
    )
    narrator.quote(
        [
            f"{ours} check -c {file}",
            f"{ours} plan -c {file}",
            f"{ours} sync -c {file} --groups {active.name}",
            *(
                f"{groups_tool} --bootstrap-server {cluster.bootstrap} --describe "
                f"--group {plain.name}{secured.get(name, '')}"
                for name, cluster in ((SOURCE, clusters.at_source), (TARGET, clusters.at_target))
            ),
            f"{consumer_tool} --bootstrap-server {clusters.at_target.bootstrap} "
            f"--topic {remote(plain.topic.name)} --from-beginning --max-messages 5"
            f"{secured.get(TARGET, '')}",
        ]
    )
    narrator.say(
        "To run tsoffset as a daemon, until Ctrl-C, with a status page at http://127.0.0.1:8083/:"
    )
    narrator.quote([f"{ours} run -c {file}"])
    narrator.say("Their logs:")
    narrator.quote(str(each.log_path) for each in reversed(clusters.processes))
    # The failback scenario has stopped MirrorMaker 2.
    running = {each.name: each.pid for each in clusters.processes if each.running}
    remember(clusters.folder, running)
    narrator.say("To stop this demo and all others that were kept:")
    narrator.quote([f"{ours} demo --stop"])
    narrator.say(f"Or by hand ({', '.join(running)}):")
    pids = " ".join(map(str, running.values()))
    narrator.quote([f"kill -9 {pids}; rm -r {shlex.quote(str(clusters.folder))}"])


def _write_tools(folder: Path) -> list[str]:
    """Scripts that run Kafka's own tools from the jars; returns their paths, quoted for a shell."""
    written = []
    for name in _TOOLS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(kafka_tool(name))} "$@"\n')
        path.chmod(0o755)
        written.append(shlex.quote(str(path)))
    return written


def _this_program() -> list[str]:
    """The words of the command line that started tsoffset."""
    called = Path(sys.argv[0])
    if called.name == "tsoffset":
        return [str(called.absolute())]
    return [sys.executable, "-m", "tsoffset"]


def kafka_tool(name: str) -> list[str]:
    """The command line of the tool with this script name. Raises EmbeddedError."""
    return [str(find_java()), *_QUIET, "-cp", f"{resolve_jars()}/*", _TOOLS[name]]
