"""An OAuth token endpoint of this machine: client credentials against signed tokens (RS256)."""

import base64
import json
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.http_server import http_server

_KEY_ID = "tests"


class TokenEndpoint:
    """Serves `token_url` to those in `clients` (secrets by client id), and the signing key at
    `jwks_url`; with `tls` both by https.

    `lifetime_seconds` may be changed at any time. `requests` counts what was asked for, by path
    and status; `issued` are the tokens.
    """

    issuer = "https://issuer.test"
    audience = "kafka"

    def __init__(self, clients: Mapping[str, str], *, tls: ssl.SSLContext | None = None) -> None:
        self.clients = dict(clients)
        self.lifetime_seconds = 300.0
        self.requests: Counter[tuple[str, int]] = Counter()
        self.issued: list[str] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        endpoint = self

        class Handler(_Handler):
            serves = endpoint

        self._server = http_server(Handler, tls=tls)

    def __enter__(self) -> Self:
        address = self._server.__enter__()
        self.token_url, self.jwks_url = f"{address}/token", f"{address}/jwks"
        return self

    def __exit__(self, *ended: Any) -> None:
        self._server.__exit__(*ended)

    def token(self, subject: str, **claims: Any) -> str:
        """A token for `subject`; `claims` go over its own."""
        now = int(time.time())
        body = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": subject,
            "iat": now,
            "exp": now + int(self.lifetime_seconds),
            **claims,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, body))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def jwks(self) -> dict[str, Any]:
        """The public half of the signing key."""
        numbers = self._key.public_key().public_numbers()
        n, e = (
            _base64(number.to_bytes((number.bit_length() + 7) // 8))
            for number in (numbers.n, numbers.e)
        )
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, "n": n, "e": e}
        return {"keys": [key]}

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/jwks":
            return 200, self.jwks()
        if path != "/token":
            return 404, {}
        allowed = {
            "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode(): client
            for client, secret in self.clients.items()
        }
        if authorization not in allowed:
            return 401, {"error": "invalid_client", "error_description": "wrong id or secret"}
        self.issued.append(self.token(allowed[authorization]))
        return 200, {
            "access_token": self.issued[-1],
            "token_type": "Bearer",
            "expires_in": int(self.lifetime_seconds),
        }


class _Handler(BaseHTTPRequestHandler):
    serves: TokenEndpoint

    def do_GET(self) -> None:
        self._answer("/jwks" if self.path == "/jwks" else "")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(self.path)

    def _answer(self, path: str) -> None:
        status, body = self.serves.answer(path, self.headers.get("Authorization", ""))
        self.serves.requests[self.path, status] += 1
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is written to the terminal."""


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
