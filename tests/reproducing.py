"""One wrong answer of a random world, for a look: both logs, the answer, and what was asked.

A random test that fails names its world; `from tests.reproducing import *` has all its names.
"""

import random

from tests.random_logs import NOW_MS, Kind
from tests.replication_model import World, build
from tests.translating import Way, asked, mistake_of, outcomes, silence_logs, sliced
from tsoffset.flow.settings import TranslationSettings
from tsoffset.model import Isolation, Translated
from tsoffset.testing.memory_cluster import PartitionLog

__all__ = ["Isolation", "Kind", "TranslationSettings", "Way", "reproduce"]


def reproduce(kind: Kind, seed: int, way: Way, committed: int) -> None:
    """Print both logs side by side, the answer with what is wrong about it, and what the position
    asked. A letter is a content; `<- 7` the source offset of a copy, `says 8` its header."""
    silence_logs()
    world = build(kind, seed)
    lines: list[str] = []
    for part in sliced(asked(world, seed), way, random.Random(seed)):
        said: list[str] = []
        found = outcomes(
            world,
            part,
            way,
            observe=lambda position, question, answer, said=said: said.append(  # type: ignore[misc]
                f"  {position.offset}: {question.side}: {question.what} -> {_short(answer)}"
            ),
        )
        if committed in found:
            lines = [line for line in said if line.startswith(f"  {committed}:")]
            outcome = found[committed]
            break
    else:
        raise ValueError(f"{committed} is none of the positions that are asked for of this world")
    names: dict[object, str] = {}
    left, right = _listed(world, world.source, names), _listed(world, world.target, names)
    width = max([len(line) for line in left], default=0)
    print(f"{'source':{width}}   target")
    for at in range(max(len(left), len(right))):
        one = left[at] if at < len(left) else ""
        print(f"{one:{width}}   {right[at] if at < len(right) else ''}".rstrip())
    print(f"committed {committed}; the true position is {world.true_position(committed)}")
    print(f"{outcome}")
    print(f"wrong: {mistake_of(world, way, committed, outcome)}")
    if isinstance(outcome, Translated):
        offset = outcome.target_offset
        print(
            f"passed: {world.passed(committed, offset)}; "
            f"re-reads: {world.rereads(committed, offset)}"
        )
    print("\n".join(lines))


def _listed(world: World, log: PartitionLog, names: dict[object, str]) -> list[str]:
    copies = log is (world.source if world.kind.failback else world.target)
    origins = {copy: origin for run in world.runs for origin, copy in run}
    lines = [f"{log.start}..{log.end}"]
    for offset, message in log.messages():
        content = world.content(message)
        name = names.setdefault(content, _letters(len(names)))
        stamp = "-" if message.timestamp_ms is None else str(message.timestamp_ms - NOW_MS)
        key = (message.key or b"-").decode()
        line = f"{offset:>5} {name:<3} @{stamp} {key}"
        if copies:
            line += f" <- {origins.get(offset, 'others')}"
        if world.offset_header is not None and copies:
            line += f" says {world.offset_header.of(message.headers)}"
        lines.append(line)
    return lines


def _letters(number: int) -> str:
    first, last = divmod(number, 26)
    return (_letters(first - 1) if first else "") + chr(ord("a") + last)


def _short(answer: object) -> str:
    records = getattr(answer, "records", None)
    if records is None:
        return str(answer)
    offsets = [record.offset for record in records]
    return f"{getattr(answer, 'start', '')}..{getattr(answer, 'end', '')}: {offsets[:20]}"
