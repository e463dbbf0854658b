"""A configuration file while it is written."""

import time

from tests.configured import properties_file
from tsoffset.config.selection import Selector


def test_a_file_that_is_being_written_is_told_from_a_whole_one(tmp_path, monkeypatch):
    """The beginning of a file is valid without its last lines, which may exclude groups."""
    file = properties_file(tmp_path, "a:1", "b:1")
    whole = file.read_text() + "groups.exclude = secret\n"
    monkeypatch.setattr(time, "sleep", lambda _: file.write_text(whole))
    selector = Selector(file)
    assert selector.is_being_written()
    assert not selector.is_being_written()
