"""MirrorMaker 2 as a process of this machine: what is said where it does not copy."""

import pytest

from tsoffset.errors import StartFailed


@pytest.mark.integration
@pytest.mark.thorough
def test_mirror_maker_that_refuses_its_configuration_is_not_waited_for(mirror):
    """It would run on and copy nothing; the error shows its own words."""
    with pytest.raises(StartFailed, match=r"emit\.offset-syncs\.enabled set to false"):
        mirror("orders", overrides={"offset-syncs.topic.replication.factor": "1"})


@pytest.mark.integration
@pytest.mark.thorough
def test_wait_for_what_never_comes_says_what_is_missing(source, target, mirror, unique):
    running = mirror(unique("no-such-topic"))
    with pytest.raises(StartFailed, match=r"topic A\.orders.*has 0 of 1 partitions"):
        running.wait_for_topic(target.bootstrap, "A.orders", seconds=1)
