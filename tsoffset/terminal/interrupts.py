"""Ctrl-C (SIGINT) outside of a command: while modules are loaded, and while the program ends."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
_AGAIN_SECONDS = 0.05


def exit_on_interrupt() -> None:
    """From now on Ctrl-C ends the process at once, without a traceback. An ignored Ctrl-C stays
    ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


@contextmanager
def raise_on_interrupt() -> Iterator[None]:
    """In the block Ctrl-C raises KeyboardInterrupt again, so that work is ended in order; a second
    one does not wait for that.

    In a callback of a weak reference, or in `__del__`, Python drops the exception, and the command
    would continue. Imports have such callbacks. So Ctrl-C is then sent again."""
    if signal.getsignal(signal.SIGINT) is not _exit:
        yield
        return
    other_errors = sys.unraisablehook

    def handle_unraisable(args: "sys.UnraisableHookArgs") -> None:
        if isinstance(args.exc_value, KeyboardInterrupt):
            _interrupt_again()
        else:
            other_errors(args)

    sys.unraisablehook = handle_unraisable
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _exit)
        sys.unraisablehook = other_errors


def _raise(*_: object) -> None:
    signal.signal(signal.SIGINT, _exit)
    raise KeyboardInterrupt


def _interrupt_again() -> None:
    """Send Ctrl-C once more, after the callback has ended."""
    signal.signal(signal.SIGINT, _raise)
    later = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
    later.daemon = True
    later.start()


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)
