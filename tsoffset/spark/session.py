"""The Spark session of this process, with the settings that tsoffset requires.

Speculation is off, because it would run a task twice at once, and tasks commit. Workers on this
machine run the driver's Python interpreter. docs/spark.md lists the settings.
"""

import os
import pwd
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import py4j.protocol
import structlog
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tsoffset.errors import CycleFailed
from tsoffset.java import find_java
from tsoffset.kafka.clients import CLIENTS
from tsoffset.spark.jobs import Jobs, cause, in_time
from tsoffset.spark.jvm import Jvm, environment
from tsoffset.spark.limits import processors

log = structlog.get_logger(__name__)

DEFAULT_MASTER = "local[*]"
# A worker process that dies costs its task another attempt, as it does on a cluster.
_LOCAL_ATTEMPTS = 4
_LOCAL = re.compile(r"local(?:\[(?P<threads>\d+|\*)\])?")

_ALWAYS = {
    "spark.sql.adaptive.enabled": "false",
    # A slow task would be run a second time while it goes on, and tasks commit.
    "spark.speculation": "false",
}
_UNLESS_SET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Flows that run side by side take turns, each in a pool of its own (`tsoffset.spark.jobs`).
    "spark.scheduler.mode": "FAIR",
    # By itself Spark remembers a thousand jobs and stages with all their tasks, for a page that is
    # switched off.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    # A worker reads into buffers of megabytes. By default glibc soon allocates these in its heap,
    # which data that stays then fragments. Measured for eight times as many batches of 1 MB: 6 %
    # more memory with this setting, 29 % without.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": "262144",
}
# The masters with which Spark itself makes the secret for connections between its processes. It is
# needed, because other users of this machine reach the driver's port, too. With other masters, the
# user has to set a secret on all sides.
_MAKES_A_SECRET = re.compile(r"local(\[[\d*]+(,\d+)?\])?|yarn|k8s://.*")
_SECRET_ASKED_FOR = {"spark.authenticate": "true"}
# Workers on this machine write to our standard error: this daemon prints fewer tracebacks there.
_UNLESS_SET_HERE = {"spark.python.daemon.module": "tsoffset.spark.worker_daemon"}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PYTHON = "spark.pyspark.python"
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKET_FOLDER = "spark.python.unix.domain.socket.dir"
# The longest socket path that systems allow (104 on macOS), minus the name that Spark appends.
_LONGEST_FOLDER = 60

# Longest idle time of a worker. Spark checks every ten seconds whether the minute is over.
WORKER_IDLE_SECONDS = 45.0
# The task of a hung worker is canceled after this time: it would hold a slot of the cycles.
HUNG_WORKER_SECONDS = 10.0


@contextmanager
def spark_session(
    spark_settings: Mapping[str, str],
    *,
    app_name: str = "tsoffset",
    keep_workers: bool = False,
    flows: int = 1,
) -> Iterator[SparkSession]:
    """A session of Spark, on this machine's cores unless `spark.master` says otherwise.

    `spark_settings` are the user's `spark.*` keys. With `keep_workers`, worker processes on this
    machine stay alive while no cycle runs. `flows` is the number of flows that share the session.
    The session, its Java process and this process's open clients end with the block. Raises
    JavaMissing and JavaTooOld, and CycleFailed if Spark does not start.
    """
    find_java()
    settings = session_settings(spark_settings, app_name, flows)
    with ExitStack() as stack:
        settings |= stack.enter_context(_sockets(settings))
        session = stack.enter_context(_session(settings))
        if keep_workers and _is_here(settings):
            stack.enter_context(workers_kept(session))
        yield session


@contextmanager
def _session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    started = time.perf_counter()
    master = settings["spark.master"]
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    jvm = Jvm()
    try:
        with environment(worker_environment(settings, os.environ)), _signals_kept():
            jvm.start(conf)
            if not _user_has_a_name():
                _log_in(jvm)
            context = SparkContext(conf=conf, gateway=jvm.gateway)
            # The server for accumulators prints a traceback if Java ends before it.
            context._accumulatorServer.handle_error = lambda *_: None  # type: ignore
            session = SparkSession(context)
    except (PySparkException, py4j.protocol.Py4JError, OSError) as error:
        why = jvm.last_words() if jvm.gateway is None else None
        why = why or cause(error)
        jvm.close()
        raise CycleFailed(
            f"start Spark, master {master}: {why}; check spark.master and the other spark.* keys"
        ) from error
    except BaseException:
        jvm.close()
        raise
    jvm.let_it_speak()
    log.debug("spark_started", master=master, seconds=round(time.perf_counter() - started, 3))
    try:
        yield session
    finally:
        # A Spark that died on its own cannot be stopped any more.
        with suppress(PySparkException, py4j.protocol.Py4JError, OSError):
            in_time(session.stop)
        jvm.close()
        CLIENTS.close_idle(all_of_them=True)


@contextmanager
def workers_kept(session: SparkSession) -> Iterator[threading.Thread]:
    """Keep the session's workers alive while the block lasts. Yields the thread that does it, which
    ends soon after the block.

    Spark ends idle Python workers after a minute; no setting changes that
    (`PythonWorkerFactory.IDLE_WORKER_TIMEOUT_NS`). The next cycle would start new workers, import
    everything and connect to both clusters, which took 1.2 to 2.1 s for a cycle of 0.2 s. One task
    of one row, which takes a few hundredths of a second, keeps all workers of a machine alive.
    """
    over = threading.Event()
    context = session.sparkContext

    def small_job() -> list[bytes]:
        # A lambda, which a worker gets by value: it does not import this module.
        return context.parallelize([b""], 1).mapPartitions(lambda rows: rows).collect()

    def work() -> None:
        while not over.wait(WORKER_IDLE_SECONDS):
            jobs = Jobs(session, "keep workers", None)
            # If Spark has died, or has canceled all jobs, the next cycle reports it.
            with suppress(CycleFailed):
                jobs.run(partial(jobs.collect, "keep workers", small_job), HUNG_WORKER_SECONDS)

    keeping = threading.Thread(target=work, name="keep-workers", daemon=True)
    keeping.start()
    try:
        yield keeping
    finally:
        over.set()


def session_settings(
    spark_settings: Mapping[str, str], app_name: str, flows: int = 1
) -> dict[str, str]:
    """The user's settings with those that tsoffset requires, and its defaults.

    `local[N]` becomes `local[N,4]`, because Spark would otherwise give up at the first lost worker.
    Several flows get N slots each, so tasks that wait for a silent broker do not block other flows
    (`tsoffset.spark.limits.slots`).
    """
    settings = {**_UNLESS_SET, "spark.app.name": app_name, **spark_settings, **_ALWAYS}
    for key, required in _ALWAYS.items():
        if spark_settings.get(key, required) != required:
            log.warning("spark_setting_overridden", key=key, value=required)
    master = settings.get("spark.master", DEFAULT_MASTER)
    if local := _LOCAL.fullmatch(master):
        threads = local["threads"] or "1"
        if flows > 1:
            threads = str((processors() if threads == "*" else int(threads)) * flows)
        master = f"local[{threads},{_LOCAL_ATTEMPTS}]"
    settings["spark.master"] = master
    if _MAKES_A_SECRET.fullmatch(master):
        settings = {**_SECRET_ASKED_FOR, **settings}
    if _is_here(settings):
        settings = {**_UNLESS_SET_HERE, **settings}
    settings[_JAVA_OPTIONS] = _java_options(settings.get(_JAVA_OPTIONS, ""), bool(local))
    return settings


def _is_here(settings: Mapping[str, str]) -> bool:
    """True if driver and tasks run in one Java process on this machine."""
    return settings["spark.master"].startswith("local[")


@contextmanager
def _sockets(settings: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Settings for Unix sockets between Java and Python, which exist while the block lasts; empty
    if the user has set one of them.

    Over TCP, each job waits 40 ms for a delayed acknowledgement (measured). Unix sockets require no
    secret, so they are in a folder that only this user can open.
    """
    if not _is_here(settings) or _SOCKETS in settings or _SOCKET_FOLDER in settings:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="tsoffset-", ignore_cleanup_errors=True) as folder:
        short = len(os.fsencode(folder)) <= _LONGEST_FOLDER
        yield {_SOCKETS: "true", _SOCKET_FOLDER: folder} if short else {}


def _java_options(given: str, here: bool) -> str:
    """The user's options for Java, after those that tsoffset adds if they do not set them."""
    added = []
    if "log4j2.configurationFile" not in given:
        file = Path(__file__).with_name("log4j2.properties").as_uri()
        added.append(f'"-Dlog4j2.configurationFile={file}"')
    if here and "-XX:TieredStopAtLevel" not in given:
        # Measured: without its second compiler, Java starts in half the time (6.5 s of a core
        # instead of 12). In a cycle it only passes tables on.
        added.append("-XX:TieredStopAtLevel=1")
    if not _user_has_a_name():
        home = os.environ.get("HOME") or tempfile.gettempdir()
        added += [f"-Duser.name={os.getuid()}", f'"-Duser.home={home}"']
    return " ".join([*added, given]).rstrip()


def _user_has_a_name() -> bool:
    """False for a user id for which the system has no name, as in containers (OpenShift)."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _log_in(jvm: Jvm) -> None:
    """Tell Hadoop who runs it: its own login asks the system for the user's name and fails."""
    hadoop = jvm.gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    hadoop.setLoginUser(hadoop.createRemoteUser(str(os.getuid())))


def worker_environment(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment variables to add to those in `given` before Spark starts.

    By default, Spark's workers run the PATH's `python3`, which lacks the packages of a virtual
    environment. So workers on this machine get this interpreter. On other machines, its path may
    not exist.
    """
    here = settings["spark.master"].startswith("local")
    added = {}
    if "PYSPARK_PYTHON" not in given:
        if _PYTHON in settings:
            added["PYSPARK_PYTHON"] = settings[_PYTHON]
        elif here:
            added["PYSPARK_PYTHON"] = sys.executable
    if here:
        added["SPARK_LOCAL_IP"] = given.get("SPARK_LOCAL_IP", "127.0.0.1")
        # This package, even if it runs from its sources.
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, given.get("PYTHONPATH", "").split(os.pathsep))]
        added["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    return added


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handler of SIGINT after the block, because pyspark installs its own."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
