"""Asking before something that cannot be taken back by itself."""

import sys

import click

from tsoffset.errors import UsageError


def must_be_confirmable(*, yes: bool) -> None:
    """Raise UsageError without `--yes` and without a terminal to ask at."""
    if not yes and not sys.stdin.isatty():
        raise UsageError(
            "This moves groups back, and there is no terminal to ask for confirmation. Confirm with"
            " --yes."
        )


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether a person says yes at the terminal, or has said so by `--yes`. Raises UsageError where
    nobody can be asked."""
    must_be_confirmable(yes=yes)
    return yes or click.confirm(question, err=True)
