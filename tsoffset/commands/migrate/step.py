"""A step of a migration."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """Something to be typed, as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, as sentences and commands; `check` ends it."""

    title: str
    todo: tuple[str | Command, ...]
    check: tuple[str | Command, ...]


def deletion(words: str, topic: str) -> Command:
    """Delete a topic; `words` say on which cluster. Kafka's tool takes a regular expression."""
    pattern = topic.replace(".", r"\.")
    return Command(f"kafka-topics.sh {words} --delete --topic {shlex.quote(pattern)}")
