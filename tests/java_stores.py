"""Key stores and trust stores in Java's own format."""

import os
from pathlib import Path

from tests.invoking import succeeds
from tsoffset.java import keytool


def write_jks(store: Path, path: Path, password: str, key_password: str | None = None) -> Path:
    """Write the content of the PKCS #12 `store` as JKS to `path`, with Java's keytool; returns
    `path`. Both are protected by `password`, the key by `key_password` if given (only for a store
    with a key)."""
    command: list[str | Path] = [keytool(), "-importkeystore", "-noprompt"]
    command += ["-srckeystore", store, "-srcstoretype", "PKCS12", "-srcstorepass:env", "STORE"]
    command += ["-destkeystore", path, "-deststoretype", "JKS", "-deststorepass:env", "STORE"]
    if key_password is not None:
        command += ["-srcalias", "key", "-destkeypass:env", "KEY"]
    path.unlink(missing_ok=True)
    succeeds(*command, env={**os.environ, "STORE": password, "KEY": key_password or ""})
    return path
