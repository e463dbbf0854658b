"""Logs on standard error: structlog's events, for a person (console) or a machine (JSON).

Logs of other libraries go the same way. One function redacts every event, including its traceback:
a value whose name says that it is a secret is never written.
"""

import logging
import math
import re
import socketserver
import sys
import threading
from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

import structlog

from tsoffset.printable import HIDDEN, SENSITIVE, names_secret, printable, shorten

_LONGEST_VALUE = 4_000
_LONGEST_SEARCHED = 64_000

# As in properties (a = b), JSON ("a": b) and Python's form of a mapping ('a': 'b'). The text may
# come from anywhere, so matching has to take linear time: each word is tried once, as a whole.
_SECRET_IN_TEXT = re.compile(
    rf"""(?<![\w.\-])(?P<name>(?=[\w.\-]*?(?:{SENSITIVE}))[\w.\-]++"""
    r"""(?:\s*+=|"\s*+:|'\s*+:(?=\s*+b?["']))\s*+)"""
    r"""(?:b?"(?:[^"\\]|\\.)*+"|b?'(?:[^'\\]|\\.)*+'|[^\s;,]++)""",
    re.IGNORECASE,
)
# They log each lost connection, some on the root logger; tsoffset's own events say what it means.
_NOISY = frozenset({"kafka", "py4j", "pyspark"})


class LogFormat(StrEnum):
    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        return logging.getLevelNamesMapping()[self.name]


def configure_logs(format: LogFormat, level: LogLevel) -> None:
    """Write all logs of this process to standard error from now on."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Secrets are searched in the text that is written, so also in a traceback.
    rendering: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        redact_event,
        *(
            [structlog.processors.JSONRenderer(default=str)]
            if format is LogFormat.JSON
            else _for_a_person(colors=sys.stderr.isatty())
        ),
    ]
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level.number),
        logger_factory=structlog.PrintLoggerFactory(file=cast(TextIO, _StandardError())),
        cache_logger_on_first_use=False,
    )
    handler = _Handler(_StandardError())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    setattr(socketserver.BaseServer, "handle_error", _log_lost_peer)  # noqa: B010 (a method)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level.number, logging.WARNING))
    if level is not LogLevel.DEBUG:
        handler.addFilter(_is_relevant)


def log_warnings_only() -> None:
    """If structlog is not configured, write warnings and errors to standard error: a library logs
    nothing below."""
    # Without any handler, logging prints each lost connection itself.
    for name in _NOISY:
        if not (noisy := logging.getLogger(name)).handlers:
            noisy.addHandler(logging.NullHandler())
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.stdlib.add_log_level,
                structlog.processors.format_exc_info,
                redact_event,
                *_for_a_person(colors=False),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(file=cast(TextIO, _StandardError())),
        )


def log_uncaught_errors() -> None:
    """Log Python's warnings and uncaught errors like everything else, instead of the lines that
    Python prints."""
    logging.captureWarnings(True)

    def uncaught(
        kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, SystemExit):
            log = structlog.get_logger(__name__)
            log.error("uncaught_error", exc_info=(kind, error, trace))

    sys.excepthook = uncaught
    threading.excepthook = lambda args: uncaught(*args[:3])
    sys.unraisablehook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def redact(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with every secret replaced, including those in nested mappings, to be logged."""
    return {name: _redacted_value(name, value) for name, value in settings.items()}


def hide_secrets(text: str) -> str:
    """`text` with passwords, tokens and the like replaced."""
    return _SECRET_IN_TEXT.sub(rf"\g<name>{HIDDEN}", text)


def fit_to_be_shown(text: str) -> str:
    """A sentence without secrets, and without its middle if it is very long."""
    return shorten(_without_secrets(text), _LONGEST_VALUE)


def _without_secrets(text: str) -> str:
    """The text without secrets, and without its end if it is too long to search: a secret is
    recognized by the name before it."""
    if len(text) > _LONGEST_SEARCHED:
        text = f"{text[:_LONGEST_SEARCHED]}…"
    return hide_secrets(text)


def redact_event(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    return redact(event)


def _for_a_person(*, colors: bool) -> list[structlog.typing.Processor]:
    # structlog's default formatter shows the variables of each frame.
    traceback = structlog.dev.plain_traceback
    return [_spell_out, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=traceback)]


def _spell_out(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: no event steers the terminal, or looks like another event. The lines
    of a traceback are indented, because an error's text may have several lines."""
    trace = event.pop("exception", None)
    shown = {
        name: printable(value) if isinstance(value, str) else value for name, value in event.items()
    }
    if trace is not None:
        shown["exception"] = "\n".join(f"    {printable(line)}" for line in trace.split("\n"))
    return shown


def _redacted_value(name: str, value: Any) -> Any:
    if value is not None and names_secret(name):
        return HIDDEN
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such number.
        return str(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _redacted_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted_value(name, inner) for inner in value]
    # Anything else, for example an error, becomes text.
    text = str(value)
    return _without_secrets(text) if name == "exception" else fit_to_be_shown(text)


def _is_relevant(record: logging.LogRecord) -> bool:
    return record.name.split(".")[0] not in _NOISY and _NOISY.isdisjoint(
        Path(record.pathname).parts
    )


def _log_lost_peer(_server: object, _request: object, address: object) -> None:
    """Replaces the traceback that `socketserver` prints. The peer is Spark's Java process; if it
    has ended, the cycle fails, which is reported."""
    structlog.get_logger(__name__).debug("peer_lost", address=str(address), exc_info=True)


class _Handler(logging.StreamHandler[Any]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Instead of the traceback that Python prints, with the arguments unredacted."""
        structlog.get_logger(__name__).error(
            "log_line_spoilt", logger=record.name, text=str(record.msg), error=str(sys.exception())
        )


class _StandardError:
    """`sys.stderr` as it is at each write: a progress bar replaces it, so that lines do not run
    into it. A reader that is gone stops nothing."""

    def write(self, text: str) -> int:
        try:
            return sys.stderr.write(text)
        except BrokenPipeError:
            return len(text)

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except BrokenPipeError:
            return
