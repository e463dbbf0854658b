"""MirrorMaker 2's own properties file is tsoffset's too."""

import pytest

from tests.scenarios.flows import Flows
from tests.scenarios.holdings import TOPICS

pytestmark = pytest.mark.integration


def test_file_that_runs_mirror_maker_is_taken_as_it_is(estate: Flows) -> None:
    """The file that MirrorMaker 2 has mirrored by, workers' settings and all, gives the same
    flows here, without a warning."""
    assert estate.settings.warnings == ()
    assert {flow.name for flow in estate.settings.select()} == {*TOPICS}
