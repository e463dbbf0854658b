"""Packages that only some commands need: the extras of pyproject.toml."""

from tsoffset.errors import UsageError

# The name under which each package is imported, and its extra.
_EXTRAS = {
    "matplotlib": "report",
    "pooch": "demo",
    "platformdirs": "demo",
}


def name_missing_extra(error: Exception) -> Exception:
    """A UsageError that names the extra, if the error is the failed import of one of its packages;
    else the error itself."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRAS:
        return error
    return UsageError(
        f"This command needs the Python package {package}, which is not installed here: "
        f"pip install 'tsoffset[{_EXTRAS[package]}]'"
    )
