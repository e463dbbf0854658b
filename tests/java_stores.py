"""Key stores and trust stores in Java's own format."""

import os
import subprocess
from pathlib import Path

from tsoffset.errors import EmbeddedError
from tsoffset.java import keytool

_KEYTOOL_SECONDS = 60.0


def write_jks(store: Path, path: Path, password: str, key_password: str | None = None) -> Path:
    """Write the content of the PKCS #12 `store` as JKS to `path`, with Java's keytool; returns
    `path`.

    Both are protected by `password`, the key by `key_password` if given (only for a store with a
    key). Raises `JavaMissing`, `JavaTooOld`, and `EmbeddedError` if keytool fails.
    """
    command: list[str | Path] = [keytool(), "-importkeystore", "-noprompt"]
    command += ["-srckeystore", store, "-srcstoretype", "PKCS12", "-srcstorepass:env", "STORE"]
    command += ["-destkeystore", path, "-deststoretype", "JKS", "-deststorepass:env", "STORE"]
    passwords = {"STORE": password}
    if key_password is not None:
        command += ["-srcalias", "key", "-destkeypass:env", "KEY"]
        passwords["KEY"] = key_password
    path.unlink(missing_ok=True)
    try:
        subprocess.run(
            command,
            env=os.environ | passwords,
            check=True,
            capture_output=True,
            text=True,
            timeout=_KEYTOOL_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stdout", None) or type(error).__name__
        raise EmbeddedError(
            f"write {path} with {command[0]}: {said.strip()}; check the store and its password"
        ) from None
    return path
