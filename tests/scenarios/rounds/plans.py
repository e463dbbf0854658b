"""What a round is to be, drawn by lot before it begins.

The traits are dealt from decks of 30 cards, each shuffled by the seed, so that every 30 rounds
have all of them: the slow ones (a mirror that is killed) no more often than they are worth.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from random import Random
from typing import TypeVar

ROUNDS = 30
LONG_ROUNDS = 200
SEED_VARIABLE = "TSOFFSET_ROUNDS_SEED"

_Card = TypeVar("_Card")


class Trouble(StrEnum):
    """What befalls the mirror."""

    NONE = auto()
    PAUSED = auto()  # it stands still for a while, and the target falls behind
    RESTARTED = auto()  # it is stopped in order, and started again
    KILLED = auto()  # as by kill -9: it repeats what it had not noted as copied


class Clock(StrEnum):
    """How the records of a partition are stamped."""

    RISING = auto()
    EQUAL = auto()  # all with one time
    RUNS = auto()  # some with one time, then some with another
    JITTER = auto()  # up to 50 ms before or after the one before
    FAR_FUTURE = auto()  # rising, but for a few that are years ahead


class Ending(StrEnum):
    """What the syncs do when the groups stop."""

    AT_ONCE = auto()  # they stop at the same moment, in the middle of their work
    BEFORE = auto()  # they had stopped before, and what came since is lost to them
    FINAL = auto()  # one more begins and ends after the groups' last commits
    GOES_ON = auto()  # they go on while the groups' consumers join on the target


class Shift(StrEnum):
    """Why the offsets of the two logs differ from the start."""

    NONE = auto()
    SOURCE = auto()  # the source's log has lost its beginning
    TARGET = auto()  # the target's log had others' records, which are deleted


@dataclass(frozen=True, slots=True)
class Plan:
    """One round. `seed` and `number` are all that its events depend on, but for their pace."""

    seed: str
    number: int
    trouble: Trouble
    clock: Clock
    ending: Ending
    shift: Shift
    keeps_names: bool
    transactional: bool
    keyed: bool
    late_topic: bool
    remembers: bool
    partitions: int
    groups: int

    @property
    def flow(self) -> str:
        """One flow renames its topics and copies all; the other keeps the names and copies
        what is committed."""
        return "X->Y" if self.keeps_names else "A->B"

    @property
    def topic(self) -> str:
        """The source topic, which no other round has."""
        return f"round-{'kept' if self.keeps_names else 'renamed'}-{self.number}"

    @property
    def group_names(self) -> Sequence[str]:
        """The groups, which no other round has."""
        return [f"round-{self.number}-group-{number}" for number in range(self.groups)]

    def chance(self) -> Random:
        """The lots of this round."""
        return Random(f"{self.seed}/{self.number}")


def chosen_seed() -> str:
    """The seed that the environment gives; else the same one in each CI run, and a new one
    anywhere else."""
    given = os.environ.get(SEED_VARIABLE)
    return given or ("1292" if os.environ.get("CI") else secrets.token_hex(4))


def few(seed: str) -> Sequence[int]:
    """The rounds that `make test` plays: the first one with a mirror that is killed, that stands
    still, and that nothing befalls."""
    plans = [plan(seed, number) for number in range(ROUNDS)]
    troubles = (Trouble.KILLED, Trouble.PAUSED, Trouble.NONE)
    return [next(one.number for one in plans if one.trouble is it) for it in troubles]


def plan(seed: str, number: int) -> Plan:
    """The round of that number."""
    block, place = divmod(number, ROUNDS)

    def dealt(deck: str, cards: Sequence[tuple[_Card, int]]) -> _Card:
        shuffled = [card for card, count in cards for _ in range(count)]
        assert len(shuffled) == ROUNDS
        Random(f"{seed}/{deck}/{block}").shuffle(shuffled)
        return shuffled[place]

    return Plan(
        seed,
        number,
        trouble=dealt(
            "trouble",
            [
                (Trouble.NONE, 16),
                (Trouble.PAUSED, 9),
                (Trouble.RESTARTED, 2),
                (Trouble.KILLED, 3),
            ],
        ),
        clock=dealt("clock", [(clock, 6) for clock in Clock]),
        ending=dealt(
            "ending",
            [
                (Ending.AT_ONCE, 10),
                (Ending.BEFORE, 6),
                (Ending.FINAL, 7),
                (Ending.GOES_ON, 7),
            ],
        ),
        shift=dealt("shift", [(Shift.NONE, 4), (Shift.SOURCE, 13), (Shift.TARGET, 13)]),
        keeps_names=dealt("names", [(True, 15), (False, 15)]),
        transactional=dealt("transactional", [(True, 10), (False, 20)]),
        keyed=dealt("keyed", [(True, 18), (False, 12)]),
        late_topic=dealt("late topic", [(True, 3), (False, 27)]),
        remembers=dealt("memory", [(True, 20), (False, 10)]),
        partitions=dealt("partitions", [(1, 10), (2, 12), (3, 8)]),
        groups=dealt("groups", [(1, 8), (2, 12), (4, 10)]),
    )
