"""`tsoffset check` of what `tsoffset migrate` makes, on real clusters. `tsoffset demo --scenario
migration` takes the steps (tests/packaging/test_demo.py)."""

import json
import re

import javaproperties
import pytest

from tests.invoking import invoke
from tests.migration import CASES, OUTPUTS, TO_BE_CHANGED

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

_SECURITY = re.compile(r"\.(?:ssl|sasl|security)\.")


@pytest.mark.parametrize("name", [name for name in CASES if name not in TO_BE_CHANGED])
def test_what_comes_out_passes_check(name, source_broker, target_broker, tmp_path):
    """With the addresses of clusters that are there, and without their locks, nothing is an error
    but that no replicator runs between them, and nothing of the configuration is a warning."""
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
