"""A custom replication policy and a custom group filter.

    # in mm2.properties
    replication.policy.class = own_names:SuffixPolicy
    replication.policy.suffix = -from-
    group.filter.class = own_names:TeamFilter
    group.filter.teams = billing, search

    PYTHONPATH=examples tsoffset plan -c mm2.properties

The policy must name topics as the replicator does. `configure` gets the settings that begin with
`replication.policy.`, `group.filter.` and `topic.filter.`. If Spark runs on other machines, the
executors need this module, too (examples/pack-environment.sh packs installed modules).
"""

from tsoffset.flow.policy import DefaultGroupFilter, InvalidSetting


class SuffixPolicy:
    """`orders` of A is `orders-from-A` on the target."""

    def configure(self, settings: dict[str, str]) -> None:
        self.between = settings.get("replication.policy.suffix", "-from-")
        if not self.between:
            raise InvalidSetting("replication.policy.suffix", "must not be empty")

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name on the target."""
        return f"{topic}{self.between}{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        """The cluster that the topic was copied from; None for an original topic."""
        name, _, source = topic.rpartition(self.between)
        return source if name else None

    def upstream_topic(self, topic: str) -> str | None:
        """The topic's name on that cluster; None for an original topic."""
        return topic.rpartition(self.between)[0] or None


class TeamFilter(DefaultGroupFilter):
    """Groups named `<team>.<application>` of the teams in `group.filter.teams`. `groups` and
    `groups.exclude` apply, too."""

    def configure(self, settings: dict[str, str]) -> None:
        super().configure(settings)
        self.teams = {name.strip() for name in settings.get("group.filter.teams", "").split(",")}

    def should_replicate_group(self, group: str) -> bool:
        """True if the group is of one of the teams, and `groups` selects it."""
        return group.partition(".")[0] in self.teams and super().should_replicate_group(group)
