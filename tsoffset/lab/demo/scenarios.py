"""The scenarios of the demo, by their names on the command line."""

from collections.abc import Mapping
from enum import StrEnum

from tsoffset.lab.demo.compare import Compare
from tsoffset.lab.demo.failback import Failback
from tsoffset.lab.demo.failover import Failover
from tsoffset.lab.demo.migration import MigrationStory
from tsoffset.lab.demo.story import Story
from tsoffset.lab.demo.streaming import Streaming


class Scenario(StrEnum):
    FAILOVER = "failover"
    FAILBACK = "failback"
    COMPARE = "compare"
    MIGRATION = "migration"
    STREAMING = "streaming"


STORIES: Mapping[Scenario, type[Story]] = {
    Scenario.FAILOVER: Failover,
    Scenario.FAILBACK: Failback,
    Scenario.COMPARE: Compare,
    Scenario.MIGRATION: MigrationStory,
    Scenario.STREAMING: Streaming,
}
