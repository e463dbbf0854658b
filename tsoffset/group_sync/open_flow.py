"""A flow whose clusters are open: read and translated in this process, for commands that need no
Spark."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tsoffset.cluster import Cluster, Connect
from tsoffset.cycle.rounds import translate_partitions
from tsoffset.cycle.source_commits import CompetingFlow, GroupWork, SourceCommit
from tsoffset.cycle.translator import Observe
from tsoffset.cycle.work import partition_work
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.group_sync.read import groups_frame, source_commits
from tsoffset.group_sync.translated_commits import (
    TranslatedCommit,
    commits_of,
    join_translations,
    without_lost_records,
)


@dataclass(frozen=True, slots=True)
class OpenFlow:
    """A flow with its clusters, and with the sources of the flows that it competes with."""

    settings: FlowSettings
    source: Cluster
    target: Cluster
    competing_flows: tuple[CompetingFlow, ...]

    def commits(self, groups: Sequence[GroupWork]) -> list[SourceCommit]:
        """The source commits of the groups that the flow syncs."""
        frame = groups_frame(groups)
        found = source_commits(self.settings, self.source, frame, self.competing_flows)
        return list(commits_of(found))

    def translate(
        self, commits: Sequence[SourceCommit], observe: Observe | None = None
    ) -> list[TranslatedCommit]:
        """The commits with their translations, as a cycle joins them; none for a group that has
        read records which the source has lost. Raises ClusterUnreachable."""
        work = partition_work(commits)
        found = join_translations(
            commits,
            translate_partitions(self.settings, self.source, self.target, work, observe=observe),
        )
        return without_lost_records(self.source, found)


@contextmanager
def open_flow(flow: FlowSettings, connect: Connect, settings: Settings) -> Iterator[OpenFlow]:
    """The flow with connections that end with the block; `settings` tell of its competing flows."""
    with ExitStack() as stack:
        competing_flows = tuple(
            CompetingFlow(competing, stack.enter_context(connect(competing.source)))
            for competing in settings.competing_flows_of(flow)
        )
        source, target = (
            stack.enter_context(connect(cluster)) for cluster in (flow.source, flow.target)
        )
        yield OpenFlow(flow, source, target, competing_flows)
