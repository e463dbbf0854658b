"""The stories that the demo can tell, by the words of the command line."""

from collections.abc import Mapping
from enum import StrEnum

from tsoffset.demo.compare import Compare
from tsoffset.demo.failback import Failback
from tsoffset.demo.failover import Failover
from tsoffset.demo.migration import Migration
from tsoffset.demo.story import Story
from tsoffset.demo.streaming import Streaming


class Scenario(StrEnum):
    """What is played."""

    FAILOVER = "failover"
    FAILBACK = "failback"
    COMPARE = "compare"
    MIGRATION = "migration"
    STREAMING = "streaming"


STORIES: Mapping[Scenario, type[Story]] = {
    Scenario.FAILOVER: Failover,
    Scenario.FAILBACK: Failback,
    Scenario.COMPARE: Compare,
    Scenario.MIGRATION: Migration,
    Scenario.STREAMING: Streaming,
}
