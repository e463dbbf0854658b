"""An HTTP server of this machine."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def http_server(
    handler: Callable[..., BaseHTTPRequestHandler], *, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Its address, without a slash at the end; https with `tls`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
