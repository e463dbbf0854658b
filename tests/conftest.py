"""Real clusters for the tests: started when the first test asks, stopped at the end."""

import gc
import itertools
import logging
import os
import random
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import Phase, settings
from kafka import KafkaAdminClient

from tests.configured import nowhere, properties_file
from tests.embedded_cluster import LONG_SESSION
from tests.producing import Contents
from tests.random_examples import scaled
from tests.scenarios.rounds.plans import SEED_VARIABLE, chosen_seed
from tests.secured import Secured, secured_broker
from tests.zookeeper_broker import ZooKeeperBroker, version_numbers
from tsoffset.lab.embedded import KAFKA_VERSION, EmbeddedBroker, MirrorMaker, flow_properties

if TYPE_CHECKING:
    from tests.browser import Page

# A run on a developer's machine meets new examples: the seed is in the header of its log, and
# `--hypothesis-seed` meets the same again. CI meets the same examples each time, so that it fails
# only for what was changed; there is no database to find a failing one in, so that is printed.
settings.register_profile("here", deadline=None, max_examples=scaled(100))
settings.register_profile(
    "ci",
    settings.get_profile("here"),
    database=None,
    derandomize=True,
    print_blob=True,
    # To find the smallest failing example takes minutes, which is for whoever fixes it.
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seeds of random tests, so that they are known, and the same in all processes."""
    os.environ.setdefault(SEED_VARIABLE, chosen_seed())
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: to look for garbage in it, as each full collection of
    garbage does, took a tenth of the time of all tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let coverage be that of the examples: random ones would hide what no example reaches, and
    are slow to trace."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("no_cover")


@pytest.fixture(autouse=True)
def logs_as_at_first(request) -> Iterator[None]:
    """A task that runs in this process sets its logs up, for its process; the next test's are not
    those. A random test logs warnings alone: a line per example would hide the one that fails."""
    if request.node.get_closest_marker("no_cover"):
        warnings_alone = structlog.make_filtering_bound_logger(logging.WARNING)
        structlog.configure(wrapper_class=warnings_alone)
    yield
    structlog.reset_defaults()


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """`make` lets its background runs of tests ignore Ctrl-C, and so their processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_report_header(config: pytest.Config) -> str:
    return f"random examples: --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.fixture(scope="session")
def chosen(request) -> Callable[[str], list[Any]]:
    """A function that says which values of a parameter the tests of this run have, so that
    nothing is made ready for those that another run has."""

    def values(name: str) -> list[Any]:
        params = (getattr(item, "callspec", None) for item in request.session.items)
        found = (one.params[name] for one in params if one is not None and name in one.params)
        return list(dict.fromkeys(found))

    return values


_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def source_broker(tmp_path_factory) -> Iterator[EmbeddedBroker]:
    """A one-node cluster to copy from; shared, so use names of your own (`unique`)."""
    folder = tmp_path_factory.mktemp("source")
    with EmbeddedBroker(folder, name="source", properties=LONG_SESSION) as broker:
        yield broker


@pytest.fixture(scope="session")
def target_broker(tmp_path_factory) -> Iterator[EmbeddedBroker]:
    """A one-node cluster to copy to; shared, so use names of your own (`unique`)."""
    folder = tmp_path_factory.mktemp("target")
    with EmbeddedBroker(folder, name="target", properties=LONG_SESSION) as broker:
        yield broker


@pytest.fixture(scope="session")
def broker_of(request, tmp_path_factory) -> Iterator[Callable[[str], EmbeddedBroker]]:
    """A function that gives a one-node cluster of that version of Kafka, the same each time;
    those before 3 run in ZooKeeper mode. Shared, so use names of your own (`unique`)."""
    running: dict[str, EmbeddedBroker] = {}
    with ExitStack() as stack:

        def broker(version: str) -> EmbeddedBroker:
            if version == KAFKA_VERSION:
                return request.getfixturevalue("source_broker")
            if version not in running:
                kind = EmbeddedBroker if version_numbers(version) >= (3,) else ZooKeeperBroker
                name = f"kafka-{version}"
                made = kind(tmp_path_factory.mktemp(name), name=name, kafka_version=version)
                running[version] = stack.enter_context(made)
            return running[version]

        yield broker


@pytest.fixture(scope="session")
def source(source_broker) -> Iterator[Contents]:
    """What `source_broker` holds, to be filled and read."""
    with closing(Contents(source_broker.bootstrap)) as contents:
        yield contents


@pytest.fixture(scope="session")
def target(target_broker) -> Iterator[Contents]:
    """What `target_broker` holds, to be filled and read."""
    with closing(Contents(target_broker.bootstrap)) as contents:
        yield contents


@pytest.fixture(scope="session")
def secured(tmp_path_factory) -> Iterator[Secured]:
    """A secured broker, where alice may see topics that begin with `alices`, by name or
    certificate."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as secured:
        with closing(KafkaAdminClient(**secured.broker.admin.settings())) as admin:
            admin.create_topics({"alices-orders": {}, "bobs-orders": {}})
        for alice in ("alice", "CN=alice"):
            secured.grant(alice, "topic", "alices*", "describe")
        yield secured


@pytest.fixture
def mirror(source_broker, target_broker, tmp_path) -> Iterator[Callable[..., MirrorMaker]]:
    """A function that starts MirrorMaker 2 from source (A) to target (B) for `topics`.

    `overrides` go over `flow_properties`. All are stopped when the test ends.
    """
    addresses = source_broker.bootstrap, target_broker.bootstrap
    with ExitStack() as running:

        def start(topics: str, overrides: Mapping[str, str] | None = None) -> MirrorMaker:
            properties = flow_properties(*addresses, topics=topics, overrides=overrides)
            name = f"mirror-{next(_numbers)}"
            return running.enter_context(MirrorMaker(properties, tmp_path, name=name))

        yield start


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator["Page"]:
    """A browser for the tests of a module; its pictures go to TSOFFSET_SCREENSHOTS."""
    from tests.browser import DRIVER, opened

    if DRIVER is None:
        pytest.skip("needs Debian's chromium-driver")
    folder = os.environ.get("TSOFFSET_SCREENSHOTS")
    shots = Path(folder) if folder else tmp_path_factory.mktemp("shots")
    shots.mkdir(parents=True, exist_ok=True)
    with opened(shots) as page:
        yield page


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """A function that makes a topic's or a group's name that no other test has."""

    def name(prefix: str) -> str:
        return f"{prefix}-{os.getpid()}-{next(_numbers)}"

    return name


@pytest.fixture
def away(tmp_path) -> Path:
    """A configuration whose clusters are both not there."""
    settings = ("admin.timeout.ms = 500", "listeners =")
    return properties_file(tmp_path, nowhere(), nowhere(), *settings)
