"""Logs: JSON or console on standard error, other libraries' included, never a secret."""

import json
import logging
import math
import re
import socket
import socketserver
import sys
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.invoking import logging_kept, run_process, run_program
from tests.random_examples import scaled
from tsoffset.errors import ClusterUnreachable
from tsoffset.logs import (
    LogFormat,
    LogLevel,
    configure_logs,
    hide_secrets,
    redact,
    redact_event,
)
from tsoffset.model import Failed, FailureKind
from tsoffset.printable import HIDDEN
from tsoffset.terminal.notices import Notices

SECRET = "hunter2-canary"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    with logging_kept():
        yield


def test_json_logs_are_one_object_a_line(capsys):
    """Event, level, time and fields; standard output stays free for results."""
    configure_logs(LogFormat.JSON, LogLevel.INFO)
    structlog.get_logger("x").info("cycle_finished", flow="A->B", groups=3)
    captured = capsys.readouterr()
    event = json.loads(captured.err)
    assert captured.out == ""
    assert event.pop("timestamp").endswith("Z")
    assert event == {"event": "cycle_finished", "level": "info", "flow": "A->B", "groups": 3}


def test_the_level_leaves_out_what_is_below(capsys):
    configure_logs(LogFormat.JSON, LogLevel.WARNING)
    log = structlog.get_logger("x")
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["loud"]


def test_other_libraries_log_in_the_same_format(capsys):
    """A line of another library does not break a reader of JSON; a lost connection, which is
    answered for as a value, is no line at all."""
    configure_logs(LogFormat.JSON, LogLevel.INFO)
    logging.getLogger("somebody").warning("disk %s full", "a")
    logging.getLogger("kafka.conn").error("connection lost")
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("disk a full", "warning")


UNCAUGHT = """
import sys, threading, warnings
from tsoffset.logs import *
log_uncaught_errors()
configure_logs(LogFormat.JSON, LogLevel.WARNING)
warnings.warn("old")
class Left:
    def __del__(self): raise ValueError("in __del__")
Left()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise KeyError("password='c4n4ry'")
"""


def test_what_nobody_caught_is_logged_like_the_rest():
    """Warnings and the tracebacks that Python prints itself are one JSON object a line, too."""
    done = run_program(sys.executable, "-c", UNCAUGHT)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [each["event"].partition(" ")[0] for each in events[1:]] == ["uncaught_error"] * 3
    assert "old" in events[0]["event"]
    assert "c4n4ry" not in done.stderr
    assert done.returncode == 1


def test_words_that_are_wrong_are_logged_as_the_words_ask():
    """`--log-format json` holds for what click says of a command line, too."""
    status, _, said = run_process("plan", "--log-format", "json", "--bogus")
    (line,) = said.splitlines()
    assert ("--bogus" in json.loads(line)["message"], status) == (True, 2)


def test_a_lost_peer_of_a_socket_server_is_no_traceback(capsys):
    """When Spark's Java dies, pyspark's own servers would print a traceback past the logs."""
    configure_logs(LogFormat.JSON, LogLevel.INFO)

    class Breaking(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raise EOFError

    with (
        socketserver.TCPServer(("127.0.0.1", 0), Breaking) as server,
        socket.create_connection(server.server_address),
    ):
        server.handle_request()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("format", list(LogFormat))
def test_a_traceback_is_part_of_its_event(format, capsys):
    """An exception is logged with its trace, in JSON as one field of one line."""
    configure_logs(format, LogLevel.INFO)
    error = ValueError("broken")
    structlog.get_logger("x").error("cycle_failed", exc_info=error)
    text = capsys.readouterr().err
    assert "ValueError: broken" in text
    if format is LogFormat.JSON:
        assert "ValueError: broken" in json.loads(text)["exception"]


def refuse(user: str, settings: dict[str, str], record: bytes) -> None:
    """Fail as a library does that quotes what it was given."""
    canary = SECRET
    assert record.decode() == canary
    raise ValueError(f"{user} is refused: {settings}, password={canary}")


@pytest.mark.parametrize("format", list(LogFormat))
@pytest.mark.parametrize("ours", [True, False])
def test_a_traceback_tells_no_secret(format, ours, capsys):
    """It has the error and its lines of code; neither what the variables held there, nor a secret
    that the error quotes. Our events and other libraries' alike."""
    configure_logs(format, LogLevel.INFO)
    try:
        refuse("somebody", {"sasl.password": SECRET}, SECRET.encode())
    except ValueError:
        log = structlog.get_logger("x") if ours else logging.getLogger("x")
        log.exception("cycle_failed")
    text = capsys.readouterr().err
    assert SECRET not in text
    assert "ValueError: somebody is refused" in text
    assert "in refuse" in text
    assert text.count(HIDDEN) >= 2


@pytest.mark.parametrize(
    "field",
    [
        "password",
        "ssl.key.password",
        "sasl.jaas.config",
        "client_secret",
        "sasl.oauthbearer.token",
        "ssl.keystore.key",
        "aws_credentials",
    ],
)
@pytest.mark.parametrize("format", list(LogFormat))
def test_a_secret_is_never_written(format, field, capsys):
    """Whatever a field is called that holds one, at the top or inside a mapping or a list."""
    configure_logs(format, LogLevel.DEBUG)
    log = structlog.get_logger("x")
    log.warning("configured", **{field: SECRET})
    log.warning("configured", settings={field: SECRET, "nested": {field: [SECRET]}})
    log.warning("configured", many=[{field: SECRET}])
    log.warning("refused", error=ValueError(f"password={SECRET}"))
    captured = capsys.readouterr()
    assert SECRET not in captured.err + captured.out
    assert HIDDEN in captured.err


@pytest.mark.parametrize("format", list(LogFormat))
def test_what_a_command_says_tells_no_secret(format, capsys):
    configure_logs(format, LogLevel.INFO)
    notices = Notices(format)
    notices.error(ValueError(f"password={SECRET}"), trace=True)
    notices.warning("cycle_warning", f"token = {SECRET}")
    text = capsys.readouterr().err
    assert SECRET not in text
    assert text.count(HIDDEN) == 3


@pytest.mark.parametrize(
    "text",
    [
        f'org.x.PlainLoginModule required username="u" password="{SECRET}";',
        f"ssl.truststore.password={SECRET}",
        f"refused: sasl.client.secret = {SECRET}, next",
        f'{{"password": "{SECRET}"}}',
        f'password="with \\" in it {SECRET}"',
        f"{{'api_key': b'{SECRET}'}}",
        f"{{'sasl.password': '{SECRET}', 'ssl.key': None}}",
        f"refused: schema.registry.basic.auth.user.info = u:{SECRET}",
        f"my.passwd={SECRET}",
    ],
)
def test_a_secret_within_a_text_is_hidden(text):
    """What another library says may quote a setting."""
    event = redact_event(None, "info", {"event": "failed", "message": text})
    assert SECRET not in str(event)
    assert HIDDEN in event["message"]


def test_what_is_no_secret_stays():
    """Group names and addresses that sound like secrets are readable."""
    settings = {"bootstrap.servers": "a:1", "group": "token-service", "refused": None}
    assert redact(settings) == settings
    text = "group password-reset: not authorized; 'token-service': not a member; grant READ"
    assert redact({"message": text}) == {"message": text}


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text(max_size=5)))
def test_redaction_keeps_names_and_never_fails(settings):
    assert list(redact(settings)) == list(settings)


OLD = re.compile(
    r"(?P<name>[\w.\-]*(?:passw|passphrase|secret|token|credential|private"
    r"|keystore[._-]key|api[._-]?key|user[._-]?info)[\w.\-]*"
    r"""(?:\s*=|"\s*:|'\s*:(?=\s*b?["']))\s*)"""
    r"""(?:b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\.)*'|[^\s;,]+)""",
    re.IGNORECASE,
)
"""What hid secrets before: right, and as slow as the cube of a word's length."""

PIECES = ["token", "Secret", "api_key", "x", ".", "-", " ", "=", ":", '"', "'", "\\", "b", ",", ";"]


@given(st.lists(st.sampled_from([*PIECES, "\n", "pass", "word", "é"]), max_size=25).map("".join))
@settings(max_examples=scaled(1_000))
def test_the_fast_way_to_hide_secrets_hides_what_the_simple_one_hides(text):
    assert hide_secrets(text) == OLD.sub(rf"\g<name>{HIDDEN}", text)


FORGED = "\x1b[2J\x1b]0;owned\x07\r\n2026-01-01T00:00:00Z [info] all_is_well"


@pytest.mark.parametrize("name", ["group", "event"])
def test_a_name_steers_no_terminal_and_forges_no_line(name, capsys):
    """Escapes and line ends are signs in a console's values, and in the text of a traceback, whose
    lines are set in."""
    configure_logs(LogFormat.CONSOLE, LogLevel.INFO)
    log = structlog.get_logger("x")
    for error in (None, ValueError(FORGED)):
        log.error(**{"event": "group_failed", name: FORGED}, exc_info=error)
    logging.getLogger("somebody").error(FORGED)
    first, second, *trace, last = capsys.readouterr().err.splitlines()
    text = "".join([first, second, *trace, last])
    assert text.isprintable()
    assert [line for line in trace if not line.startswith("    ")] == []
    assert all(line[:4].isdigit() and "x1b[2J" in line for line in (first, second, last))


@pytest.mark.parametrize("format", list(LogFormat))
def test_a_line_is_bounded_whatever_it_quotes(format, capsys):
    """An answer of a hundred megabytes in an error held the process for a minute, and was logged
    whole."""
    configure_logs(format, LogLevel.INFO)
    vast = "x" * 3_000_000
    quoting = ValueError(f"{vast[:60_000]} password={SECRET} {vast}")
    structlog.get_logger("x").error("cycle_failed", message=str(quoting), exc_info=quoting)
    text = capsys.readouterr().err
    assert len(text) < 150_000
    assert SECRET not in text
    assert "ValueError: xxx" in text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_not_is_text(number, capsys):
    """Readers of JSON refuse a line with NaN."""
    configure_logs(LogFormat.JSON, LogLevel.INFO)
    structlog.get_logger("x").info("cycle_finished", seconds=number, of=[number])
    line = json.loads(capsys.readouterr().err, parse_constant=pytest.fail)
    assert (line["seconds"], line["of"]) == (str(number), [str(number)])


@pytest.mark.parametrize("format", list(LogFormat))
def test_a_line_that_a_library_spoils_is_one_line_too(format, capsys):
    """Python prints a traceback with the message and its arguments as they are, secrets too."""
    configure_logs(format, LogLevel.INFO)
    logging.getLogger("somebody").error("got %d", f"password={SECRET}")
    (line,) = capsys.readouterr().err.splitlines()
    assert "log_line_spoilt" in line
    assert "somebody" in line
    assert SECRET not in line


def test_a_long_name_is_shown_without_its_middle(capsys):
    name = "g" * 32_767
    configure_logs(LogFormat.JSON, LogLevel.INFO)
    structlog.get_logger("x").warning("commit_failed", group=name)
    said = Failed(FailureKind.TIMEOUT, f"commit group {name}: no answer in time; check it").message
    Notices(LogFormat.CONSOLE).error(ClusterUnreachable(f"connect to {name}: refused"), trace=False)
    logged, shown = capsys.readouterr().err.splitlines()
    assert max(len(logged), len(shown)) < 5_000
    assert shown.endswith(": refused")
    assert len(said) == 2_000
    assert said.startswith("commit group gg")
    assert said.endswith("no answer in time; check it")
