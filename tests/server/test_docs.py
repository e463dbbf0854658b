"""What is written of the API: docs/rest.md, and the documentation that it serves itself."""

import re
from contextlib import redirect_stdout
from io import StringIO

from structlog.testing import capture_logs

from tests.invoking import ROOT
from tests.serving import ServedFlows, row
from tsoffset.flow.settings import ServerSettings

TEXT = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")


def test_each_path_is_in_the_table_and_says_in_a_sentence_what_it_does():
    """And no other; not by the name of its function."""
    client = ServedFlows().client(metrics=lambda _accept: (b"", "text/plain"))
    paths = client.get("/openapi.json").json()["paths"]
    written = set(re.findall(r"^\| `(?:POST )?(/[^?`]*)", TEXT, re.MULTILINE))
    pause = "/api/v1/flows/{flow}/pause"
    assert {*paths} == written | {pause.replace("pause", one) for one in ("resume", "sync")}
    for path, methods in paths.items():
        for one in methods.values():
            assert len(one["summary"].split()) > 3, path


def test_the_example_in_python_runs():
    """As it is written, but for the address."""
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    daemon = ServedFlows(ServerSettings(listeners=("http://127.0.0.1:0",)))
    daemon.cycle([row("team a/billing")])
    with capture_logs(), daemon.serve() as (address,), redirect_stdout(StringIO()) as said:
        exec(example.replace("http://127.0.0.1:8083", address), {})  # noqa: S102
    assert said.getvalue().startswith("orders 0 committed ")
