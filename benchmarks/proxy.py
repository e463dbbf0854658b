"""A cluster that is far away: TCP connections through a process that delays everything.

Data is forwarded half a round trip later, in both directions, in order and without a limit of
bandwidth. The broker advertises the proxy's port, so that clients connect to no other.
"""

import asyncio
import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.lab.embedded.ports import HOST, free_port

_CHUNK = 1 << 18
_STARTS_SECONDS = 30


@dataclass(frozen=True, slots=True)
class FarBroker:
    """A broker behind a proxy."""

    broker: EmbeddedBroker
    bootstrap: str
    _delay: "Synchronized[float]"

    @contextmanager
    def moved_away(self, round_trip_ms: float) -> Iterator[None]:
        """Delay everything that is sent within the block by this round trip."""
        self._delay.value = round_trip_ms / 2000
        try:
            yield
        finally:
            self._delay.value = 0.0


@contextmanager
def far_broker(folder: Path, name: str) -> Iterator[FarBroker]:
    """A new broker behind a proxy, at first without delay."""
    front, back = free_port(), free_port()
    spawn = multiprocessing.get_context("spawn")
    delay: Synchronized[float] = spawn.Value("d", 0.0)
    ready = spawn.Event()
    process = spawn.Process(target=_serve, args=(front, back, delay, ready), daemon=True)
    process.start()
    try:
        assert ready.wait(_STARTS_SECONDS), "the proxy does not start"
        broker = EmbeddedBroker(
            folder / name,
            name=name,
            port=back,
            properties={"advertised.listeners": f"PLAINTEXT://{HOST}:{front}"},
        )
        with broker:
            yield FarBroker(broker, f"{HOST}:{front}", delay)
    finally:
        process.terminate()
        process.join()


def _serve(front: int, back: int, delay: "Synchronized[float]", ready: object) -> None:
    # Ctrl-C is for the benchmark, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_listen(front, back, delay, ready))


async def _listen(front: int, back: int, delay: "Synchronized[float]", ready) -> None:
    async def meet(near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            far, send = await asyncio.open_connection(HOST, back)
        except OSError:
            answer.close()
            return
        await asyncio.gather(_carry(near, send, delay), _carry(far, answer, delay))

    server = await asyncio.start_server(meet, HOST, front, limit=_CHUNK)
    ready.set()
    async with server:
        await server.serve_forever()


async def _carry(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: "Synchronized[float]"
) -> None:
    """Forward each piece of data at its time."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def arrive() -> None:
        while True:
            due, data = await under_way.get()
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            if not data:
                return
            target.write(data)
            await target.drain()

    arriving = asyncio.create_task(arrive())
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            under_way.put_nowait((loop.time() + delay.value, data))
    under_way.put_nowait((loop.time() + delay.value, b""))
    with suppress(OSError):
        await arriving
    target.close()
