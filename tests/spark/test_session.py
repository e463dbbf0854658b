"""The session of Spark: its settings, its silence, its start and end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import javaproperties
import pytest
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError

from tests import stored_clusters as shared
from tests.invoking import ROOT, logging_kept, run_program, succeeds
from tests.processes import children, is_java, runs, stop
from tests.spark_functions import kill_java, meet_and_hold_the_daemon, speak
from tests.spark_worlds import SparkWorld, mirrored
from tests.waiting import wait_until
from tsoffset.errors import CycleFailed
from tsoffset.logs import LogFormat, LogLevel, configure_logs
from tsoffset.model import OutcomeKind
from tsoffset.spark import jobs
from tsoffset.spark.jobs import is_alive
from tsoffset.spark.jvm import Jvm, pass_on
from tsoffset.spark.session import session_settings, spark_session, worker_environment


def settings(**given: str) -> dict[str, str]:
    """With `__` for the dots of a key."""
    return session_settings({k.replace("__", "."): v for k, v in given.items()}, "test")


@pytest.mark.parametrize("key", ["spark.sql.adaptive.enabled", "spark.speculation"])
def test_what_could_run_a_task_twice_is_off(key):
    """Neither is the user's to turn on: tasks commit."""
    assert session_settings({}, "test")[key] == "false"
    assert session_settings({key: "true"}, "test")[key] == "false"


def test_every_other_setting_is_the_users():
    """What we set is a default, whatever else the user says holds."""
    assert settings()["spark.ui.enabled"] == "false"
    given = settings(spark__ui__enabled="true", spark__executor__memory="2g")
    assert given["spark.ui.enabled"] == "true"
    assert given["spark.executor.memory"] == "2g"
    assert settings()["spark.ui.retainedJobs"] == settings()["spark.ui.retainedStages"] == "50"
    assert settings(spark__ui__retainedJobs="1000")["spark.ui.retainedJobs"] == "1000"
    assert settings()["spark.app.name"] == "test"
    assert settings(spark__app__name="mine")["spark.app.name"] == "mine"


@pytest.mark.parametrize(
    ("given", "master"),
    [
        (None, "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_lost_worker_costs_an_attempt_and_not_the_cycle(given, master):
    """On this machine Spark gives up at the first failure unless the master says otherwise."""
    found = settings() if given is None else settings(spark__master=given)
    assert found["spark.master"] == master


@pytest.mark.spark
@pytest.mark.thorough
def test_workers_give_large_buffers_back():
    """What is read in megabytes is mapped and unmapped, not kept in a heap full of holes; a
    user's own threshold holds."""
    key = "spark.executorEnv.MALLOC_MMAP_THRESHOLD_"
    assert session_settings({key: "65536"}, "test")[key] == "65536"
    with spark_session({"spark.master": "local[1]"}) as session:
        worker = session.sparkContext.parallelize([""], 1)
        found = worker.map(lambda _: os.environ.get("MALLOC_MMAP_THRESHOLD_")).collect()
    assert found == ["262144"]


def test_users_java_options_are_kept():
    """tsoffset's options come before the user's, which win if both set the same thing."""
    key = "spark.driver.extraJavaOptions"
    assert settings()[key].count("log4j2.configurationFile") == 1
    both = settings(spark__driver__extraJavaOptions="-Dmine=1")[key]
    assert both.endswith(" -Dmine=1")
    own = "-Dlog4j2.configurationFile=mine -XX:TieredStopAtLevel=4"
    assert settings(spark__driver__extraJavaOptions=own)[key] == own
    assert "Tiered" not in settings(spark__master="yarn")[key]


NAMELESS = ("unshare", "--user", "--map-user=54321")
ONE_JOB = """
from tsoffset.history.views import map_in_arrow
from tsoffset.spark.session import spark_session
with spark_session({"spark.master": "local[1]"}) as spark:
    print(map_in_arrow(spark.range(3), lambda batches: batches, "id long").count())
"""


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*NAMELESS, "true"], capture_output=True, check=False).returncode != 0,
    reason="no user namespaces (util-linux: unshare)",
)
def test_a_user_id_without_a_name_will_do():
    """As containers have it (`docker run --user 54321`): Java and Hadoop find no user name, and no
    home, in the system's list."""
    assert succeeds(*NAMELESS, sys.executable, "-c", ONE_JOB).endswith("3\n")


SUBMIT = """#!/bin/sh
printf '%s\\n' "$@" > {seen}/arguments
while [ "$1" != --properties-file ]; do shift || exit 1; done
ls -ln "$2" > {seen}/mode
cp "$2" {seen}/settings
exit 1
"""


def test_settings_are_on_no_command_line(tmp_path, monkeypatch):
    """Every local user reads command lines. They are in a file of this user alone, which is gone
    as soon as it was read; what the user wants of spark-submit himself stays."""
    (tmp_path / "bin").mkdir()
    submit = tmp_path / "bin" / "spark-submit"
    submit.write_text(SUBMIT.format(seen=tmp_path))
    submit.chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars mine.jar pyspark-shell")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = sorted(path.name for path in tmp_path.iterdir())
    given = {"spark.hadoop.fs.s3a.secret.key": "c4n4ry = \\ : é#", "spark.master": "local[1]"}
    jvm = Jvm()
    with pytest.raises(PySparkRuntimeError):
        jvm.start(SparkConf(loadDefaults=False).setAll(list(given.items())))
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[-3:] == ["--jars", "mine.jar", "pyspark-shell"]
    assert "--load-spark-defaults" in arguments
    assert "c4n4ry" not in " ".join(arguments)
    assert (tmp_path / "mode").read_text().startswith("-rw------- ")
    assert javaproperties.loads((tmp_path / "settings").read_text()) == given
    left = {path.name for path in tmp_path.iterdir()} - {"arguments", "mode", "settings"}
    assert sorted(left) == before
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--jars mine.jar pyspark-shell"


@pytest.mark.parametrize(
    ("master", "ours"),
    [
        (None, "true"),
        ("local[2]", "true"),
        ("local[2,1]", "true"),
        ("k8s://https://there", "true"),
        ("yarn", "true"),
        # Where Spark makes no secret itself, all sides must be given one.
        ("local-cluster[2,1,1024]", None),
        ("spark://there:7077", None),
    ],
)
def test_sparks_own_connections_ask_for_a_secret(master, ours):
    """The driver listens on loopback, where every local user is. What the user says holds."""
    given = {} if master is None else {"spark.master": master}
    assert session_settings(given, "test").get("spark.authenticate") == ours
    said = {**given, "spark.authenticate": "false"}
    assert session_settings(said, "test")["spark.authenticate"] == "false"


def test_workers_here_run_this_interpreter():
    """The PATH's python3 lacks a virtual environment's packages; a choice that was made stays."""
    here = {"spark.master": "local[2]"}
    assert worker_environment(here, {})["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_PYTHON" not in worker_environment(here, {"PYSPARK_PYTHON": "/my/python"})
    chosen = {**here, "spark.pyspark.python": "/my/python"}
    assert worker_environment(chosen, {})["PYSPARK_PYTHON"] == "/my/python"


def test_workers_elsewhere_run_their_own():
    """This interpreter's path, address and packages mean nothing on another machine."""
    assert worker_environment({"spark.master": "spark://host:7077"}, {}) == {}


def test_workers_here_find_this_package():
    """Also where it is run from its sources, in any directory; the user's path stays."""
    found = worker_environment({"spark.master": "local[2]"}, {"PYTHONPATH": "/mine"})
    assert found["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/mine"]
    assert found["SPARK_LOCAL_IP"] == "127.0.0.1"
    kept = worker_environment({"spark.master": "local[2]"}, {"SPARK_LOCAL_IP": "10.0.0.1"})
    assert kept["SPARK_LOCAL_IP"] == "10.0.0.1"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"spark.master": "nonsense"}, "Master must either be"),
        pytest.param({"spark.driver.memory": "nonsense"}, "nonsense", marks=pytest.mark.thorough),
        pytest.param(
            {"spark.master": "local[2]", "spark.driver.maxResultSize": "nonsense"},
            "nonsense",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_setting_that_spark_refuses_is_named(given, why, capfd):
    """Spark's own reason in one sentence, with what to look at, and no Java on the terminal."""
    environment = dict(os.environ)
    with pytest.raises(CycleFailed, match=why) as refused, spark_session(given):
        pass
    assert "check spark.master and the other spark.* keys" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")
    ours = ("PYSPARK_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP")
    assert [os.environ.get(key) for key in ours] == [environment.get(key) for key in ours]


SESSION = """
import json, os, stat, sys
from tsoffset.logs import LogFormat, LogLevel, configure_logs
from tsoffset.spark.jobs import is_alive
from tsoffset.spark.session import spark_session
from tests.spark_functions import say_who
from tests.processes import children

configure_logs(LogFormat.CONSOLE, LogLevel.WARNING)

told = []
for master in ("local[2]", "local[1]"):
    with spark_session({"spark.master": master}) as session:
        java = children(os.getpid())
        workers = session.sparkContext.parallelize([0], 1).map(say_who).collect()
        told.append({"java": java, "workers": workers, "alive": is_alive(session)})
        sockets = session.sparkContext.getConf().get("spark.python.unix.domain.socket.dir")
        told[-1]["sockets"] = len(os.listdir(sockets))
        told[-1]["mode"] = stat.S_IMODE(os.stat(sockets).st_mode)
    told[-1]["after"] = children(os.getpid())
    told[-1]["sockets_after"] = os.path.exists(sockets)
print(json.dumps(told))
"""


@pytest.mark.thorough
@pytest.mark.spark
def test_session_is_silent_and_leaves_nothing():
    """A program with a session, and a second one after it, writes what it writes itself and not
    a word of Spark's; its workers are this interpreter; its Java and its sockets, which lie where
    no other user can reach them, are gone when the block ends."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
    done = run_program(sys.executable, "-c", SESSION, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = json.loads(done.stdout)
    for told in (first, second):
        assert told["workers"] == [sys.executable] * len(told["workers"])
        assert told["alive"]
        assert len(told["java"]) == 1
        assert told["after"] == []
        # Whoever could write to a worker's socket could have it run anything.
        assert told["sockets"] > 0
        assert told["mode"] == 0o700
        assert not told["sockets_after"]
    assert first["java"] != second["java"]


@pytest.mark.thorough
@pytest.mark.spark
def test_a_worker_that_is_hung_up_on_ends_without_a_word(tmp_path, capfd):
    """Spark does so where one rested for a minute, at its own end, or where it keeps only one of
    two; on a busy machine the worker sees it before the daemon ends it. Spark's own errors of tasks
    that an end overtakes are not told either. What a worker says itself arrives, in the order in
    which it was said, and without a secret; so does the loss of an executor."""
    said = ""

    def has_spoken():
        nonlocal said
        said += capfd.readouterr().err
        return "said by a worker" in said

    only_one = {"spark.python.factory.idleWorkerMaxPoolSize": "1"}
    with spark_session({"spark.master": "local[2]", **only_one}) as session:
        context = session.sparkContext
        folders = context.parallelize([str(tmp_path)] * 2, 2)
        (first, daemon), (second, _) = folders.map(meet_and_hold_the_daemon).collect()
        wait_until(lambda: runs(first) is not runs(second))
        os.kill(daemon, signal.SIGCONT)
        loggers = context._jvm.org.slf4j.LoggerFactory
        loggers.getLogger("org.apache.spark.TaskContextImpl").error("Block does not exist")
        scheduler = loggers.getLogger("org.apache.spark.scheduler.TaskSchedulerImpl")
        scheduler.error("Exception in statusUpdate")
        context.parallelize([0], 1).foreach(speak)
        wait_until(has_spoken)
        scheduler.error("Lost executor 1")
    assert said == "said by a worker: password=[hidden]\n"
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("TaskSchedulerImpl: Lost executor 1")


@pytest.mark.parametrize("format", list(LogFormat))
def test_what_spark_writes_has_the_form_of_the_logs(format, capsys):
    """A reader of JSON meets no other line: what is none becomes an event, and a worker's own
    events stay as they are. For a person all are as they were written, without a secret."""
    lines = ['{"password": "[hidden]", "event": "broke"}\n', "{}\n", "Traceback, token=x\n"]
    with logging_kept():
        configure_logs(format, LogLevel.WARNING)
        for line in lines:
            pass_on(line)
    said = capsys.readouterr().err
    if format is LogFormat.CONSOLE:
        assert said.splitlines()[1:] == ["{}", "Traceback, token=[hidden]"]
        return
    events = [json.loads(line) for line in said.splitlines()]
    assert events[0] == json.loads(lines[0])
    assert [one["event"] for one in events[1:]] == ["spark_wrote"] * 2
    assert [one["line"] for one in events[1:]] == ["{}", "Traceback, token=[hidden]"]


KILLED = """
import os, sys
from tests.spark_functions import java
from tsoffset.spark.session import spark_session
with spark_session({"spark.master": "local[1]"}) as session:
    os.write(1, b"java %d\\n" % java())
    sys.stdin.read()
"""


@pytest.mark.spark
def test_java_does_not_outlive_a_killed_program():
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", KILLED], cwd=ROOT, **streams) as program:
        told = next(line for line in program.stdout if line.startswith(b"java"))
        program.kill()
    wait_until(lambda: not runs(int(told.split()[1])))


class SessionStopped(Exception):
    """What a program's signal handler raises."""


@pytest.mark.spark
@pytest.mark.thorough
def test_program_that_is_stopped_while_spark_starts_leaves_no_java():

    def stop(_number, _frame):
        raise SessionStopped

    def javas():
        return {pid for pid in children(os.getpid()) if is_java(pid)}

    def interrupt():
        wait_until(lambda: bool(javas() - before))
        started.update(javas() - before)
        os.kill(os.getpid(), signal.SIGUSR1)

    before, started = javas(), set[int]()
    handler = signal.signal(signal.SIGUSR1, stop)
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(SessionStopped), spark_session({"spark.master": "local[1]"}):
        time.sleep(600)
    interrupting.join()
    signal.signal(signal.SIGUSR1, handler)
    assert started
    wait_until(lambda: not any(runs(pid) for pid in started))


@pytest.mark.spark
@pytest.mark.thorough
def test_dead_java_fails_its_cycle_and_is_replaced(tmp_path, monkeypatch, capfd):
    """A session whose Java died in the middle of a cycle fails that cycle, says that it is dead
    and ends without an error, and what keeps its workers says nothing of it; the next session runs
    the cycle. A Java process that is hung counts as dead, and is killed, unless spark-submit has
    started it."""
    monkeypatch.setattr("tsoffset.spark.session.WORKER_IDLE_SECONDS", 0.01)
    with spark_session({"spark.master": "local[1]"}, keep_workers=True) as session:
        world = SparkWorld(tmp_path, session)
        world.store(*mirrored())
        hold = tmp_path / f"A.{shared.HOLD}"
        hold.touch()

        def kill():
            wait_until(lambda: bool(shared.asked(tmp_path, "A", "held")))
            kill_java()

        killing = threading.Thread(target=kill)
        killing.start()
        with pytest.raises(CycleFailed, match="Spark gave up"):
            world.cycle()
        killing.join()
        assert not is_alive(session)
        hold.unlink()
    with spark_session({"spark.master": "local[1]"}) as session:
        assert is_alive(session)
        assert "Traceback" not in capfd.readouterr().err
        rows = SparkWorld(tmp_path, session).cycle().rows
        assert {row.outcome for row in rows} <= {OutcomeKind.COMMITTED, OutcomeKind.UNCHANGED}
        monkeypatch.setattr(jobs, "_ANSWERS_WITHIN_SECONDS", 1.0)
        (java,) = filter(is_java, children(os.getpid()))
        stop(java)
        with monkeypatch.context() as by_submit:
            by_submit.setattr(session.sparkContext._gateway, "proc", None)
            assert not is_alive(session)
        assert runs(java)
        assert not is_alive(session)
        wait_until(lambda: not runs(java))
