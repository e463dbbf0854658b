"""`tsoffset migrate` on real clusters: what comes out is checked, and its steps are taken."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import javaproperties
import pytest

from tests.invoking import invoke
from tests.migration import CASES, OUTPUTS, TO_BE_CHANGED
from tests.producing import Contents, numbered
from tests.scenarios.flows import SYNCED_GROUPS, prepare_mirror
from tests.scenarios.mirror_notes import newest_checkpoints
from tests.waiting import wait_until
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

# Aliases of their own, so that no other test's checkpoints lie in the same topic.
SOURCE, TARGET = "leaving", "arriving"
CHECKPOINTS = f"{SOURCE}.checkpoints.internal"
OFFSET_SYNCS = f"mm2-offset-syncs.{TARGET}.internal"
_SECURITY = re.compile(r"\.(?:ssl|sasl|security)\.")


@pytest.mark.parametrize("name", [name for name in CASES if name not in TO_BE_CHANGED])
def test_what_comes_out_passes_check(
    name: str, source_broker: EmbeddedBroker, target_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """With the addresses of clusters that are there, and without their locks, nothing is an error
    but that nobody mirrors between them, and nothing of the configuration is a warning."""
    text = (OUTPUTS / f"{name}.properties").read_text()
    properties = javaproperties.loads(text)
    first, second, *others = [alias.strip() for alias in properties["clusters"].split(",")]
    clusters = {first: source_broker, second: target_broker} | dict.fromkeys(others, source_broker)
    properties = {key: value for key, value in properties.items() if not _SECURITY.search(key)}
    for alias, broker in clusters.items():
        properties[f"{alias}.bootstrap.servers"] = broker.bootstrap
    file = tmp_path / "tsoffset.properties"
    file.write_text(javaproperties.dumps(properties, timestamp=None))
    result = invoke("check", "-c", str(file), "--format", "json")
    findings = [json.loads(line) for line in result.stdout.splitlines()]
    errors = [one for one in findings if one["severity"] == "error"]
    assert all("so no group can be synced" in one["finding"] for one in errors), errors
    # The filters name groups and topics that these clusters need not have.
    matches_nothing = "select none of them" in result.stderr
    assert result.exit_code == (2 if matches_nothing else bool(errors))
    assert "configuration" not in {one["subject"] for one in findings}


class Mirrored:
    """A topic that MirrorMaker 2 copies from a file, which the steps change; a group of it."""

    def __init__(
        self, source: Contents, target: Contents, topic: str, folder: Path, mirror: MirrorMaker
    ) -> None:
        self.source = source
        self.target = target
        self.topic = topic
        self.group = f"{topic}-group"
        self.mirror = mirror
        self.file = mirror.properties_path
        self.ours = folder / "tsoffset.properties"
        self.records = 0

    def produce(self, count: int) -> None:
        """Have so many more records copied."""
        self.source.produce(self.topic, numbered(count, first=self.records), batch=10)
        self.records += count
        self.mirror.wait_until_mirrored(
            self.source.bootstrap, self.target.bootstrap, {self.topic: f"{SOURCE}.{self.topic}"}
        )

    def commit(self, offset: int) -> None:
        """Have the group stand there on the source."""
        self.source.commit_offsets(self.group, {(self.topic, 0): offset})

    def go_on(self) -> None:
        """Have more records copied and read by the group, and MirrorMaker 2 know of it."""
        self.produce(10)
        self.commit(self.records)
        wait_until(lambda: self.checkpoint_of == self.records, "it has written a checkpoint")

    @property
    def committed(self) -> int | None:
        """Where the group stands on the target."""
        found = self.target.committed_offsets(self.group).get((f"{SOURCE}.{self.topic}", 0))
        return None if found is None else found[0]

    @property
    def checkpoint_of(self) -> int | None:
        """The source commit that the group's newest checkpoint translates."""
        for key, value in newest_checkpoints(self.target, SOURCE).items():
            if key.group == self.group:
                return value.source_offset
        return None

    def ends(self) -> tuple[int, int]:
        """Of what MirrorMaker 2 writes about offsets."""
        return self.target.log_range(CHECKPOINTS)[1], self.source.log_range(OFFSET_SYNCS)[1]

    def take(self, step: str, file: Path) -> list[str]:
        """Do what a step says of the file, and return its other commands. What stands in the file
        further down holds, as for Java."""
        commands = [line.strip() for line in step.splitlines() if line.startswith("     ")]
        removed = {int(found[1]) for one in commands if (found := re.match(r"line (\d+): ", one))}
        lines = file.read_text().splitlines()
        kept = [line for number, line in enumerate(lines, 1) if number not in removed]
        settings = [one.partition("    #")[0] for one in commands if re.match(r"\S+ = ", one)]
        file.write_text("\n".join([*kept, *settings]) + "\n")
        return [one for one in commands if one.startswith("kafka-topics.sh")]

    def delete(self, commands: list[str]) -> None:
        """Delete the topics that commands of Kafka's tool delete."""
        for command in commands:
            found = re.search(r"--bootstrap-server (\S+) --delete --topic (\S+)", command)
            if found is not None:
                clusters = {each.bootstrap: each for each in (self.source, self.target)}
                clusters[found[1]].delete_topic(found[2].strip("'").replace("\\.", "."))


@pytest.fixture
def mirrored(
    source: Contents, target: Contents, unique: Callable[[str], str], tmp_path: Path
) -> Mirrored:
    topic = unique("migrated")
    source.create_topic(topic)
    clusters = {SOURCE: source, TARGET: target}
    overrides = {f"{SOURCE}->{TARGET}.groups": f"{topic}-.*", **SYNCED_GROUPS}
    mirror = prepare_mirror(tmp_path, clusters, {f"{SOURCE}->{TARGET}": [topic]}, overrides)
    return Mirrored(source, target, topic, tmp_path, mirror)


def test_the_steps_lead_from_the_checkpoint_connector_to_tsoffset(mirrored: Mirrored) -> None:
    """Each does what it says: MirrorMaker 2 ends committing before we begin, then writes neither
    checkpoints nor offset syncs, and copies on from where it was, nothing twice."""
    with mirrored.mirror as mirror_maker:
        mirrored.produce(400)
        mirrored.commit(300)
        wait_until(lambda: mirrored.committed is not None, "MirrorMaker 2 has synced the group")

        made = invoke("migrate", str(mirrored.file), "-o", str(mirrored.ours))
        assert made.exit_code == 0, made.output
        _, _, side_by_side, compare, sync_off, sync_on, end, delete = re.split(
            r"(?m)^\d\. ", made.stdout
        )
        assert side_by_side.startswith("Run side by side")
        assert compare.startswith("Compare until it is green")
        ours = ("-c", str(mirrored.ours), "--format", "json")
        assert invoke("check", *ours).exit_code == 0
        before = mirrored.committed
        planned = invoke("sync", *ours)
        assert planned.exit_code == 0
        assert mirrored.committed == before
        assert invoke("compare", *ours).exit_code == 0

        mirrored.take(sync_off, mirrored.file)
        mirror_maker.restart()

        def commits_for_nobody() -> bool:
            """Two checkpoints in a row move nothing; its old settings may hold for a moment."""
            standing = mirrored.committed
            mirrored.go_on()
            mirrored.go_on()
            return mirrored.committed == standing

        wait_until(commits_for_nobody, "MirrorMaker 2 has ended committing")
        mirrored.produce(100)
        stands = mirrored.records - 20
        mirrored.commit(stands)

        mirrored.take(sync_on, mirrored.ours)
        synced = invoke("sync", *ours)
        assert synced.exit_code == 0
        assert mirrored.committed == stands

        deleted_between = mirrored.take(end, mirrored.file)
        mirror_maker.stop()
        assert len(deleted_between) == 1
        mirrored.delete(deleted_between)
        mirror_maker.start()
        ends = mirrored.ends()
        mirrored.commit(stands + 10)
        mirrored.produce(100)
        assert mirrored.ends() == ends
        copied = mirrored.target.log_range(f"{SOURCE}.{mirrored.topic}")
        assert copied == (0, mirrored.records)

        mirrored.delete(mirrored.take(delete, mirrored.ours))
        mirrored.produce(10)
        there = {*mirrored.source.admin.list_topics(), *mirrored.target.admin.list_topics()}
        assert not there & {CHECKPOINTS, OFFSET_SYNCS}
        assert invoke("sync", *ours).exit_code == 0
        assert mirrored.committed == stands + 10


def test_a_connector_that_is_refused_goes_on_as_before(mirrored: Mirrored) -> None:
    """Why the sync is switched off by itself, and the connectors' settings are deleted in the end:
    MirrorMaker 2 refuses a false emit.checkpoints.enabled, and goes on committing."""
    with mirrored.mirror as mirror_maker:
        mirrored.produce(200)
        mirrored.commit(100)
        wait_until(lambda: mirrored.committed is not None, "MirrorMaker 2 has synced the group")
        with mirrored.file.open("a") as file:
            file.write("sync.group.offsets.enabled = false\nemit.checkpoints.enabled = false\n")
        mirror_maker.restart()
        wait_until(lambda: "can't run with emit.checkpoints.enabled" in mirror_maker.said())
        mirrored.produce(100)
        mirrored.commit(300)
        wait_until(lambda: mirrored.committed == 300, "it commits for the group all the same")
