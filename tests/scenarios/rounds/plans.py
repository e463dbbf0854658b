"""What a round is to be, drawn by lot before it begins.

The traits are dealt from decks of 12 cards, each shuffled by the seed, so that every 12 rounds
have all of them: the slow ones (a mirror that is killed) no more often than they are worth.
"""

# ruff: noqa: RUF009 (what `_dealt` returns is a field)

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum, auto
from random import Random
from typing import Any

ROUNDS = 12
LONG_ROUNDS = 200
SEED_VARIABLE = "TSOFFSET_ROUNDS_SEED"


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


def _dealt(*deck: tuple[Any, int]) -> Any:
    """A trait, and how many cards of the deck have each value."""
    cards = [card for card, count in deck for _ in range(count)]
    assert len(cards) == ROUNDS
    return field(metadata={"cards": cards})


@dataclass(frozen=True, slots=True)
class Plan:
    """One round. `seed` and `number` are all that its events depend on, but for their pace."""

    seed: str
    number: int
    trouble: Trouble = _dealt(
        (Trouble.NONE, 6), (Trouble.PAUSED, 4), (Trouble.RESTARTED, 1), (Trouble.KILLED, 1)
    )
    clock: Clock = _dealt(
        *((Clock.RISING, 2), (Clock.EQUAL, 3), (Clock.RUNS, 2)),
        *((Clock.JITTER, 2), (Clock.FAR_FUTURE, 3)),
    )
    ending: Ending = _dealt(
        (Ending.AT_ONCE, 4), (Ending.BEFORE, 2), (Ending.FINAL, 3), (Ending.GOES_ON, 3)
    )
    shift: Shift = _dealt((Shift.NONE, 2), (Shift.SOURCE, 5), (Shift.TARGET, 5))
    keeps_names: bool = _dealt((True, 6), (False, 6))
    transactional: bool = _dealt((True, 4), (False, 8))
    keyed: bool = _dealt((True, 7), (False, 5))
    late_topic: bool = _dealt((True, 1), (False, 11))
    remembers: bool = _dealt((True, 8), (False, 4))
    partitions: int = _dealt((1, 4), (2, 5), (3, 3))
    groups: int = _dealt((1, 3), (2, 5), (4, 4))

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
    block, place = divmod(number, ROUNDS)
    traits = {}
    for trait in fields(Plan):
        if cards := [*trait.metadata.get("cards", ())]:
            Random(f"{seed}/{trait.name}/{block}").shuffle(cards)
            traits[trait.name] = cards[place]
    return Plan(seed, number, **traits)
