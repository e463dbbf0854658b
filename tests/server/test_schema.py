"""The OpenAPI document against what is answered: schemathesis asks what it allows, and what it does
not; no answer is a 5xx, and each fits its schema."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection

from tests.memory_flows import mirrored_estate
from tests.random_examples import scaled
from tests.serving import FLOW, READ_TOKEN, TOKEN, ServedFlows, bearing, row, skipped
from tsoffset.flow.settings import ServerSettings
from tsoffset.model import FailureKind, OutcomeKind
from tsoffset.server.guard import Hosts

# To collect this file takes four seconds: conftest.py does so only where its tests run.
pytestmark = pytest.mark.slow
# pyproject.toml keeps it from every other run.
pytest_plugins = ("schemathesis.pytest.plugin",)

STRANGE = "a/b \x00\u2028<script>\U0001f600"
GROUPS = ("billing", STRANGE, "whole", "none")


def served() -> Any:
    """A daemon in which there is something of each kind."""
    daemon = ServedFlows(ServerSettings(token=TOKEN, read_token=READ_TOKEN))
    failed = {"outcome": OutcomeKind.FAILED, "reason": FailureKind.TIMEOUT, "message": STRANGE}
    daemon.cycle([row("billing"), skipped(STRANGE), row("whole", None, None, **failed)])
    daemon.failure("away", flow="B->A")
    client = daemon.client(
        hosts=Hosts("localhost", {"*"}),
        metrics=lambda _accept: (b"# EOF\n", "text/plain; version=0.0.4"),
        connect=mirrored_estate().connect,
    )
    return client.app


SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", served())
FEW = settings(max_examples=scaled(15), deadline=None, suppress_health_check=[*HealthCheck])


# The tests set the token, which schemathesis takes for a wrong one; and what it takes for wrong
# values may be right by the time it is sent (a parameter that is null is left out).
NOT_ASKED = [ignored_auth, negative_data_rejection]


def asked(case: schemathesis.Case) -> None:
    case.call_and_validate(headers=bearing(TOKEN), excluded_checks=NOT_ASKED)


@SCHEMA.parametrize()
@FEW
def test_answers_fit_the_document(case):
    """A few questions of each kind."""
    asked(case)


@SCHEMA.parametrize()
@FEW
def test_answers_about_what_is_there_fit_the_document(case):
    """The same of a flow and group that are, so that more than 404 is seen."""
    for parameters in (case.path_parameters, case.query):
        if "flow" in parameters:
            parameters["flow"] = FLOW
        if "group" in parameters:
            parameters["group"] = GROUPS[len(str(parameters["group"])) % len(GROUPS)]
    asked(case)
