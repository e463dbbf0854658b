"""Reads files of offsets, whose format their content shows, and replaces them as a whole."""

import json
import sys
from pathlib import Path

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import Document, parse_error, without_repeated_keys
from tsoffset.offset_files.formats import read_csv, read_tools_json
from tsoffset.offset_files.spark_json import EXPECTED, read_spark_json
from tsoffset.stores import UNREACHABLE, Folder, Store, in_words, is_missing, store_at

STANDARD = "-"
"""Standard input, standard output."""

_MOST_BYTES = 64 * 1024 * 1024


def read_file(path: str) -> Document:
    """The offsets of a file, or of standard input. Raises UsageError."""
    if path == STANDARD:
        return parse("standard input", _text("standard input", sys.stdin.buffer.read()))
    store, name = _store_and_name(path)
    try:
        content = store.read(name)
    except IsADirectoryError as error:
        raise UsageError(
            f"read {path}: this is a folder; give a file, or a checkpoint with --spark-checkpoint"
        ) from error
    except UNREACHABLE as error:
        raise UsageError(
            f"read {path}: {in_words(store, error)}; give a file that can be read"
        ) from error
    return parse(path, _text(path, content))


def parse(location: str, text: str) -> Document:
    """The offsets of a text; `location` names it in errors. Raises UsageError."""
    if not text.lstrip().startswith(("{", "[")):
        return read_csv(location, text)
    try:
        value = json.loads(text, object_pairs_hook=without_repeated_keys)
    except json.JSONDecodeError as error:
        raise parse_error(location, error.lineno, error.msg, EXPECTED) from error
    except (ValueError, RecursionError) as error:
        raise parse_error(location, None, str(error), EXPECTED) from error
    if not isinstance(value, dict):
        raise parse_error(location, 1, "a list", EXPECTED)
    if isinstance(value.get("partitions"), list):
        return read_tools_json(location, value)
    return read_spark_json(location, text, value)


def write_file(path: str, text: str) -> None:
    """Replace a file in one step. Raises UsageError where it cannot be written."""
    if path == STANDARD:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    store, name = _store_and_name(path)
    try:
        store.write(name, text.encode())
    except UNREACHABLE as error:
        raise UsageError(f"write {path}: {in_words(store, error)}; nothing was replaced") from error


def require_output(source: str | None, output: str) -> None:
    """Raise UsageError if the output's folder does not exist, or if the output is the source: its
    offsets would be translated twice. `source` is None if it is no file."""
    if output == STANDARD:
        return
    store, name = _store_and_name(output)
    if isinstance(store, Folder) and is_missing(store.folder):
        raise UsageError(
            f"write {output}: the folder {store.folder} does not exist; create it first"
        )
    if source in (None, STANDARD):
        return
    input_store, input_name = _store_and_name(source)
    if Path(store.path(name)).resolve() == Path(input_store.path(input_name)).resolve():
        raise UsageError(
            f"translate: {output} is the input; its offsets are those of the source, and must stay."
            " Give another file with --output"
        )


def _store_and_name(path: str) -> tuple[Store, str]:
    """The folder of a file, and the file's name in it."""
    folder, _, name = path.rpartition("/")
    return store_at(folder or ("/" if path.startswith("/") else ".")), name


def _text(location: str, content: bytes) -> str:
    if len(content) > _MOST_BYTES:
        raise parse_error(location, None, f"{len(content)} bytes", "at most 64 MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise parse_error(location, line, "bytes that are not UTF-8", "text in UTF-8") from error
