"""Which target topics are known not to be compacted.

The proof by first copy holds only there (docs/design.md). A topic whose configuration
cannot be read counts as compacted: the other proofs do not depend on it.
"""

from collections.abc import Mapping, Sequence

from tsoffset.cluster import Cluster
from tsoffset.cycle.work import PartitionWork
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import SAME_OFFSETS, TranslationSettings
from tsoffset.model import Failed

_KEY = "cleanup.policy"
_COMPACT, _DELETE = "compact", "delete"

Configs = Mapping[str, str] | Failed
"""A topic's configuration, or why it was not told."""


def is_compacted(configs: Configs) -> bool | None:
    """Whether a topic is compacted; None where its configuration does not tell."""
    if isinstance(configs, Failed) or _KEY not in configs:
        return None
    # An empty policy neither compacts nor deletes (KIP-1161).
    policies = {word for each in configs[_KEY].split(",") if (word := each.strip())}
    if _COMPACT in policies:
        return True
    # An unknown policy may rewrite logs, too.
    return False if policies <= {_DELETE} else None


def needs_cleanup_policy(settings: TranslationSettings) -> bool:
    """Whether a flow's translations can use the proof by first copy: not with `timestamps`, which
    proves nothing, and not where the mirror keeps offsets, which has a proof of its own."""
    return settings.proof != "timestamps" and settings.expect != SAME_OFFSETS


def topics_not_compacted(
    settings: TranslationSettings, target: Cluster, work: Sequence[PartitionWork]
) -> frozenset[str]:
    """The target topics of the work whose cleanup.policy is known to lack compact.

    Asks for all of them in one request (DescribeConfigs), except for topics that only failback has,
    whose proofs do not use the policy. Topics that fail, or whose cluster is unreachable, are
    missing.
    """
    if not needs_cleanup_policy(settings):
        return frozenset()
    topics = sorted({part.target.topic for part in work if not part.failback})
    if not topics:
        return frozenset()
    try:
        configs = target.topic_configs(topics)
    except ClusterUnreachable:
        return frozenset()
    return frozenset(topic for topic in topics if is_compacted(configs[topic]) is False)
