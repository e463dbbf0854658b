"""The scenarios of the demo, by their names on the command line."""

from collections.abc import Mapping
from enum import StrEnum

from tsoffset.demo.compare import Compare
from tsoffset.demo.failback import Failback
from tsoffset.demo.failover import Failover
from tsoffset.demo.migration import MigrationStory
from tsoffset.demo.story import Story
from tsoffset.demo.streaming import Streaming


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
