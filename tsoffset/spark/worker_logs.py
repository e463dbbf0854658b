"""How workers log: as the driver does, but for what it would rather not see of them."""

import structlog

from tsoffset.logs import LogFormat, LogLevel


def worker_logs() -> tuple[LogFormat, LogLevel]:
    """The format of this process, and warnings alone: a worker's lines come through Spark."""
    json = any(
        isinstance(step, structlog.processors.JSONRenderer)
        for step in structlog.get_config()["processors"]
    )
    return (LogFormat.JSON if json else LogFormat.CONSOLE), LogLevel.WARNING
