"""The event loop that drives a cluster's connections, in its own thread.

Looking up a host name, requesting a token and reading a key file block until they are done. Each
gets a daemon thread: asyncio's own pool would delay the end of the process.
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
    """An asyncio event loop in a thread. Work that blocks runs in other threads, one at a time for
    each key."""

    def __init__(self, name: str = "tsoffset") -> None:
        self._events = asyncio.new_event_loop()
        self._events.set_exception_handler(_log_quietly)
        self._beside: dict[Hashable, asyncio.Future[Any]] = {}
        # Called in the loop after all work was canceled.
        self.on_end: Callable[[], object] = lambda: None
        # A daemon: a client that is never closed must not keep the process alive.
        self._thread = threading.Thread(target=self._drive, name=f"kafka-io-{name}", daemon=True)

    def start(self) -> None:
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
            # Transports close their sockets one turn after they were closed.
            events.run_until_complete(asyncio.sleep(0))
            events.close()

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], *words: Any) -> T:
        """Run a coroutine in the loop and wait for its result; a signal may interrupt the wait.

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

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Cancel all work and end the thread; it ends later if it is busy for longer than that."""
        with contextlib.suppress(RuntimeError):  # closed before
            self._events.call_soon_threadsafe(self._events.stop)
        self._thread.join(timeout_seconds)

    # --- work that blocks ------------------------------------------------------------------

    def is_under_way(self, key: Hashable) -> bool:
        """Whether work of that key is still running."""
        return key in self._beside

    async def run_in_thread(self, key: Hashable, work: Callable[[], T]) -> T:
        """The result of blocking work, done in a thread. If the loop ends first, the result is
        dropped."""
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
        except BaseException as cause:  # the waiting call must get every error
            error = cause

        def answer() -> None:
            del self._beside[key]
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._events.call_soon_threadsafe(answer)


async def wait_until(moment: float, awaitable: Awaitable[T], late: KafkaError) -> T:
    """The awaited result. Raises `late` at that moment of the monotonic clock."""
    try:
        async with asyncio.timeout_at(moment) as timeout:
            return await awaitable
    except TimeoutError:
        if timeout.expired():
            raise late from None
        raise


def _log_quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The default handler writes to the terminal, not to the log."""
    error = context.get("exception")
    logging.getLogger(__name__).debug("%s", context.get("message"), exc_info=error)
