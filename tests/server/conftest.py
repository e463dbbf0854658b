"""What pytest does not have to collect."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """schemathesis makes its requests while they are collected, for four seconds, in each process:
    not where the marks leave them out anyway."""
    marks = config.option.markexpr
    left_out = "not slow" in marks or marks.startswith("integration")
    return True if left_out and collection_path.name == "test_schema.py" else None
