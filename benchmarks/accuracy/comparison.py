"""Tallies as JSON, and where one checkout's are worse than another's."""

from collections.abc import Iterable, Iterator, Mapping

from benchmarks.accuracy.judging import TOGETHER, TSOFFSET, Tally
from tsoffset.model import Precision

# Shares are in percent. The increase of answers without an offset, and of questions per source
# offset, below which no line is printed.
NONE_MAY_GROW = 0.5
QUESTIONS_MAY_GROW = 0.005

Raw = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""By length of the logs, kind, and `alone` or `together`: counts and shares."""

_WAYS = {"alone": TSOFFSET, "together": TOGETHER}


def raw(tallies: Mapping[str, Mapping[str, Mapping[str, Tally]]]) -> Raw:
    """tsoffset's tallies, without those of other rules."""
    return {
        length: {
            kind: {way: _raw(of_rules[rule]) for way, rule in _WAYS.items()}
            for kind, of_rules in kinds.items()
        }
        for length, kinds in tallies.items()
    }


def _raw(tally: Tally) -> dict[str, float]:
    counted = {
        str(precision): tally.precisions[precision]
        for precision in (Precision.FRONTIER, Precision.BOUNDED)
    }
    # A wrong exact answer does not count.
    counted["exact"] = tally.truly_exact
    counted["none"] = tally.without_answer
    return {
        "positions": tally.positions,
        **{
            name: round(100 * count / max(1, tally.positions), 3) for name, count in counted.items()
        },
        "unsafe": tally.excused[""],
        "excused": tally.unsafe - tally.excused[""],
        "too_low": tally.certainly_too_low,
        "too_low_excused": tally.too_low - tally.certainly_too_low,
        "failed": tally.failed,
        "rereads": round(tally.mean_rereads, 3),
        "questions": round(tally.mean_questions, 3),
    }


def changes(before: Raw, now: Raw) -> Iterator[str]:
    """A line for each kind that is unsafe now, or worse than before in something; then totals."""
    worse = 0
    for length, kind, way, its_before, its_now in _pairs(before, now):
        said = list(_worse(its_before, its_now))
        worse += bool(said)
        if said:
            yield f"{length}, {way}: {kind}: {'; '.join(said)}"
    missing = sorted({kind for of in now.values() for kind in of if not _known(before, kind)})
    for kind in missing:
        yield f"not in the other file: {kind}"
    yield f"{worse} worse; mean over kinds, before -> now:"
    for length in now:
        for way in _WAYS:
            pairs = [(b, n) for at, _, w, b, n in _pairs(before, now) if (at, w) == (length, way)]
            means = ", ".join(
                f"{name} {_mean(b[name] for b, _ in pairs)} -> {_mean(n[name] for _, n in pairs)}"
                for name in ("exact", "frontier", "bounded", "none", "rereads", "questions")
            )
            counts = ", ".join(
                f"{name} {sum(b[name] for b, _ in pairs)} -> {sum(n[name] for _, n in pairs)}"
                for name in ("unsafe", "excused", "too_low", "too_low_excused", "failed")
            )
            yield f"  {length}, {way}: {means}; {counts}"


def _known(tallies: Raw, kind: str) -> bool:
    return any(kind in kinds for kinds in tallies.values())


def _mean(values: Iterable[float]) -> str:
    listed = list(values)
    return f"{sum(listed) / max(1, len(listed)):.2f}"


def _pairs(
    before: Raw, now: Raw
) -> Iterator[tuple[str, str, str, Mapping[str, float], Mapping[str, float]]]:
    for length, kinds in now.items():
        for kind, ways in kinds.items():
            for way, its_now in ways.items():
                its_before = before.get(length, {}).get(kind, {}).get(way)
                if its_before is not None and its_now["positions"]:
                    yield length, kind, way, its_before, its_now


def _worse(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[str]:
    if now["positions"] != before["positions"]:
        yield f"other worlds: {before['positions']:,} positions -> {now['positions']:,}"
    if now["failed"]:
        yield f"FAILED {before['failed']} -> {now['failed']}"
    if now["unsafe"]:
        yield f"UNSAFE {before['unsafe']} -> {now['unsafe']}"
    if now["too_low"] > before["too_low"]:
        yield f"bound too low {before['too_low']} -> {now['too_low']}"
    if now["exact"] < before["exact"]:
        yield f"exact {before['exact']:.2f} % -> {now['exact']:.2f} %"
    if now["none"] > before["none"] + NONE_MAY_GROW:
        yield f"none {before['none']:.2f} % -> {now['none']:.2f} %"
    if now["questions"] > before["questions"] + QUESTIONS_MAY_GROW:
        yield f"questions {before['questions']:.2f} -> {now['questions']:.2f}"
