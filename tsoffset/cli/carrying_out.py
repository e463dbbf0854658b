"""From the words of a command to its exit status."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from tsoffset.commands.options import (
    Choice,
)
from tsoffset.extras import name_missing_extra
from tsoffset.logs import LogFormat, LogLevel, configure_logs
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.streams import write_failure

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


INTERRUPTED = 130


EXIT_STATUS = """\b
Exit status:
    0  success (skipped rows count as success)
    1  at least one row failed
    2  bad usage or configuration
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C"""


def choose(notices: Notices, **choice: Unpack[Choice]) -> "Selection":
    """What the options name, once a person has been told of what the configuration warns of."""
    from tsoffset.config.selection import selected

    return told(selected(**choice), notices)


def told(selection: "Selection", notices: Notices) -> "Selection":
    """The same, once a person has been told of what the configuration warns of."""
    notices.configuration_warnings(selection.settings.warnings)
    return selection


def carried_out(work: Callable[..., int]) -> Callable[..., NoReturn]:
    """A command that does the work, with its logs set up, and ends with its exit status.

    What stops it is said in one sentence each; a traceback comes with `--debug` only.
    """

    @wraps(work)
    def command(
        *, log_format: LogFormat, log_level: LogLevel, debug: bool, **options: Any
    ) -> NoReturn:
        configure_logs(log_format, LogLevel.DEBUG if debug else log_level)
        notices = Notices(log_format)
        try:
            status = work(notices, **options)
        except KeyboardInterrupt:
            notices.note("interrupted")
            status = INTERRUPTED
        except Exception as error:
            named = name_missing_extra(error)
            notices.error(named, trace=debug)
            status = getattr(named, "exit_status", 1)
        sys.stdout.flush()
        failure = write_failure(sys.stdout)
        if failure is not None and not isinstance(failure, BrokenPipeError):
            notices.warning(
                "output_incomplete",
                f"Standard output could not be written ({failure.strerror}): the output of this"
                " command is incomplete. Free disk space, or redirect the output to another file.",
            )
        sys.exit(status)

    return command
