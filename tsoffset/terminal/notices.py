"""What a command says to a person beside its result: on standard error, a sentence each."""

from collections.abc import Iterable

import structlog
from rich.console import Console
from rich.text import Text

from tsoffset.errors import ConfigurationError, TsoffsetError
from tsoffset.logs import LogFormat, fit_to_be_shown
from tsoffset.printable import printable

log = structlog.get_logger(__name__)


class Notices:
    """Sentences for a person, or the same as log events where logs are JSON."""

    def __init__(self, format: LogFormat = LogFormat.CONSOLE) -> None:
        self.format = format

    def note(self, sentence: str) -> None:
        """Something for a person alone: where logs are JSON, events tell it."""
        if self.format is LogFormat.CONSOLE:
            _print(Text(printable(sentence)))

    def warning(self, event: str, sentence: str) -> None:
        """Something that a person should look at although the command goes on."""
        if self.format is LogFormat.JSON:
            log.warning(event, message=sentence)
        else:
            _say("warning", "yellow", sentence)

    def configuration_warnings(self, warnings: Iterable[str]) -> None:
        """What the configuration was warned of."""
        for warning in warnings:
            self.warning("configuration_warning", warning)

    def error(self, error: BaseException, *, trace: bool) -> None:
        """What stopped the command, with a traceback only where it is asked for."""
        if isinstance(error, TsoffsetError):
            self.configuration_warnings(error.warnings)
        for sentence in sentences(error):
            if self.format is LogFormat.JSON:
                log.error("command_failed", message=sentence)
            else:
                _say("error", "red", sentence)
        if trace:
            log.error("command_failed_at", exc_info=error)


def sentences(error: BaseException) -> list[str]:
    """What the error says to a person: one sentence for each thing that is wrong."""
    if isinstance(error, ConfigurationError):
        return [str(problem) for problem in error.problems]
    if isinstance(error, TsoffsetError):
        return [str(error)]
    return [
        f"{type(error).__name__}: {error}; this is an internal error in tsoffset; please report it"
        " with the output of --debug"
    ]


def _say(word: str, color: str, sentence: str) -> None:
    _print(Text.assemble((f"{word}: ", color), printable(fit_to_be_shown(sentence))))


def _print(text: Text) -> None:
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)
