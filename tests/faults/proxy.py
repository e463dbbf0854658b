"""TCP connections through a thread that can delay them, cut them in an answer, or end them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tsoffset.lab.embedded.ports import HOST, free_port

_CHUNK = 1 << 18


class Proxy:
    """Passes on what comes at `front` to the port `back`, and the answers, while it is open: in
    order and without a limit of bandwidth."""

    def __init__(self) -> None:
        self.front, self.back = free_port(), free_port()
        self._delay_seconds = 0.0
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._cutting = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)

    def open(self) -> tuple[int, int]:
        """The ports `front` and `back`."""
        self._thread.start()
        assert self._listening.wait(30), "the proxy does not listen"
        return self.front, self.back

    def __enter__(self) -> "Proxy":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def delay(self, seconds: float) -> None:
        """Pass on all that is sent from now on so much later, in both directions."""
        self._delay_seconds = seconds

    @contextmanager
    def black_hole(self) -> Iterator[None]:
        """Connections stay, new ones are taken, and nothing comes through, as of a line that is
        down: what was sent arrives after it."""
        self._loop.call_soon_threadsafe(self._passing.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._passing.set)

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """Requests arrive; half of the answer comes, and the end of the connection."""
        self._cutting = True
        try:
            yield
        finally:
            self._cutting = False

    def end_connections(self) -> None:
        """End all that are open now; new ones are taken."""
        self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(
            asyncio.start_server(self._meet, HOST, self.front, limit=_CHUNK)
        )
        self._listening.set()
        self._loop.run_forever()

    async def _meet(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            far, send = await asyncio.open_connection(HOST, self.back)
        except OSError:
            answer.transport.abort()
            return
        self._writers |= {answer, send}
        await asyncio.gather(self._carry(near, send), self._carry(far, answer, answers=True))
        self._writers -= {answer, send}

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def arrive() -> None:
            with suppress(OSError):
                while True:
                    due, data = await under_way.get()
                    if (left := due - self._loop.time()) > 0:
                        await asyncio.sleep(left)
                    await self._passing.wait()
                    cut = answers and self._cutting
                    target.write(data[: len(data) // 2] if cut else data)
                    if cut or not data:
                        break
                    await target.drain()
            target.close()

        arriving = asyncio.create_task(arrive())
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                under_way.put_nowait((self._loop.time() + self._delay_seconds, data))
        under_way.put_nowait((self._loop.time() + self._delay_seconds, b""))
        await arriving
