"""Changes of a list, one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from tsoffset.config.overrides import ListChange, Overrides


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=8))
def test_the_last_word_on_an_entry_holds(words):
    """Whatever was added and removed before, an entry is in the list if it was added last. One that
    the configuration does not have leaves nothing after its removal."""
    change = ListChange()
    for add, entry in words:
        change = change.add(entry) if add else change.remove(entry, ("a", "b"))
    last = {entry: add for add, entry in words}
    assert set(change.apply(("a", "b"))) == {
        entry for entry in "abcd" if last.get(entry, entry in "ab")
    }
    assert set(change.removed) <= {"a", "b"}
    overrides = Overrides().with_change("topics", change)
    assert Overrides.from_json(overrides.to_json()) == overrides
