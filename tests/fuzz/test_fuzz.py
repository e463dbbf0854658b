"""Random bytes for whatever reads bytes of others, for a moment; `tests/fuzz` has more."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS
from tests.random_examples import scaled

KEPT = sorted((Path(__file__).parent / "seeds").glob("*/*"))


@st.composite
def changed(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with some bytes replaced, left out, doubled or put in, or bytes of no seed."""
    data = bytearray(draw(st.sampled_from(seeds) | st.binary(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        behind = draw(st.integers(at, min(len(data), at + 8)))
        put = draw(
            st.sampled_from((b"", b"\xff" * 8, b"\0" * 4, b"\x7f", bytes(data[at:behind]) * 2))
        )
        data[at:behind] = put or draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_end_a_reader_with_an_error_of_its_own(name):
    """What cannot be read is an error that the caller expects."""
    target = TARGETS[name]

    @settings(max_examples=scaled(150), deadline=None, database=None)
    @given(changed(target.seeds))
    def feed(data: bytes) -> None:
        target.feed(data)

    feed()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}, {path.name}")
def test_what_was_found_once_is_mended(path):
    """An input that ended a reader, or kept it for ever."""
    TARGETS[path.parent.name].feed(path.read_bytes())
