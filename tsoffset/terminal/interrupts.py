"""Ctrl-C (SIGINT) outside of a command: while modules are loaded, and while the program ends."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

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
    would continue. Imports have such callbacks. So it is then raised once more, a little later."""
    if signal.getsignal(signal.SIGINT) is not _exit:
        yield
        return
    other_errors = sys.unraisablehook
    sys.unraisablehook = partial(_handle_dropped, other_errors)
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, _exit)
        sys.unraisablehook = other_errors


def _raise(_: int, frame: FrameType | None) -> None:
    if _is_in_hook(frame):
        # Python would drop it here, too.
        _raise_later()
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, _exit)
    raise KeyboardInterrupt


def _handle_dropped(
    other_errors: "Callable[[sys.UnraisableHookArgs], object]", args: "sys.UnraisableHookArgs"
) -> None:
    if isinstance(args.exc_value, KeyboardInterrupt):
        _raise_later()
    else:
        other_errors(args)


def _is_in_hook(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _handle_dropped.__code__:
        frame = frame.f_back
    return frame is not None


def _raise_later() -> None:
    signal.signal(signal.SIGINT, _raise)
    signal.signal(signal.SIGALRM, _raise)
    if not any(signal.getitimer(signal.ITIMER_REAL)):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)
