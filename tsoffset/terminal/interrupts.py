"""Ctrl-C (SIGINT) outside of a command: while modules are loaded, and while the program ends."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


def exit_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once, without a traceback. An ignored Ctrl-C stays
    ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


@contextmanager
def raise_on_interrupt() -> Iterator[None]:
    """In the block Ctrl-C raises KeyboardInterrupt again, so that work is ended in order; a second
    one does not wait for that."""
    if signal.getsignal(signal.SIGINT) is not _exit:
        yield
        return
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _exit)


def _raise(*_: object) -> None:
    signal.signal(signal.SIGINT, _exit)
    raise KeyboardInterrupt


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)
