"""The event loop that drives a cluster's connections, in a thread of its own.

Looking up a name, asking a server for a token and reading a key from disk block until there is an
answer. Each of them gets a daemon thread: asyncio's own pool would hold up the end of the process.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError, KafkaError

T = TypeVar("T")


class Loop:
    """An asyncio event loop in a thread; work that blocks runs beside it, one thread at a time for
    each key."""

    def __init__(self, name: str = "tsoffset") -> None:
        self._events = asyncio.new_event_loop()
        self._events.set_exception_handler(_log_quietly)
        self._beside: dict[Hashable, asyncio.Future[Any]] = {}
        # Called in the loop once all work is cancelled.
        self.on_end: Callable[[], object] = lambda: None
        # A daemon: a client that is never closed must not keep the process alive.
        self._thread = threading.Thread(target=self._drive, name=f"kafka-io-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _drive(self) -> None:
        events = self._events
        asyncio.set_event_loop(events)
        try:
            events.run_forever()
        finally:
            tasks = asyncio.all_tasks(events)
            for task in tasks:
                task.cancel()
            events.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.on_end()
            # Transports close their sockets in the turn after they were told to.
            events.run_until_complete(asyncio.sleep(0))
            events.close()

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], *words: Any) -> T:
        """Run a coroutine in the loop and wait for its result, which a signal may interrupt.

        Raises KafkaConnectionError if the loop ends first.
        """
        coroutine = work(*words)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._events).result()
        except concurrent.futures.CancelledError:
            raise KafkaConnectionError("the connections were closed") from None
        except RuntimeError:
            if not self._events.is_closed():
                raise
            coroutine.close()
            raise KafkaConnectionError("the connections were closed") from None

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Call that in the loop, from which this is called, too."""
        self._events.call_later(seconds, call)

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Cancel all work and end the thread; it ends later if it is busy for longer than that."""
        with contextlib.suppress(RuntimeError):  # closed before
            self._events.call_soon_threadsafe(self._events.stop)
        self._thread.join(timeout_seconds)

    # --- work that blocks ------------------------------------------------------------------

    def is_under_way(self, key: Hashable) -> bool:
        """Whether work of that key has not ended yet."""
        return key in self._beside

    async def beside(self, key: Hashable, work: Callable[[], T]) -> T:
        """What the work returns or raises, done in a thread. Nobody waits for it where the loop
        ends first."""
        if key not in self._beside:
            future = self._events.create_future()
            threading.Thread(target=self._do, args=(key, work, future), daemon=True).start()
            self._beside[key] = future
        result: T = await asyncio.shield(self._beside[key])
        return result

    def _do(self, key: Hashable, work: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as cause:  # who waits must be told whatever it is
            error = cause

        def answer() -> None:
            del self._beside[key]
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._events.call_soon_threadsafe(answer)


async def until(moment: float, awaitable: Awaitable[T], late: KafkaError) -> T:
    """What is awaited. Raises `late` at that moment of the monotonic clock."""
    try:
        async with asyncio.timeout_at(moment) as timeout:
            return await awaitable
    except TimeoutError:
        if timeout.expired():
            raise late from None
        raise


def _log_quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """By default the loop writes to the terminal, past the application."""
    error = context.get("exception")
    logging.getLogger(__name__).debug("%s", context.get("message"), exc_info=error)
