"""Files of offsets are replaced as a whole."""

import json
from pathlib import Path

import pytest

from tests.offset_files.test_formats import moved
from tsoffset.errors import UsageError
from tsoffset.offset_files.reading import read_file, require_output, write_file


def test_a_file_is_replaced_whole_and_never_its_own_translation(tmp_path):
    source, output = str(tmp_path / "in.json"), str(tmp_path / "out.json")
    Path(source).write_text('{"o":{"0":23}}')
    Path(output).write_text("old")
    document = read_file(source)
    write_file(output, document.render(moved(document.offsets)))
    assert json.loads(Path(output).read_text()) == {"A.o": {"0": 18}}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.json", "out.json"]
    for same in (f"{tmp_path}/./in.json", f"file://{source}"):
        with pytest.raises(UsageError, match="is the input"):
            require_output(source, same)
    for other in (output, "-", "s3://bucket/in.json"):
        require_output(source, other)
