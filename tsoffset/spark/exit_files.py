"""What Java means to delete when it ends, without what is gone already.

Spark makes a Unix socket for each job whose results Python collects, and asks Java to delete it at
its end (`SocketAuthServer`, `File.deleteOnExit`). Java keeps such a name for as long as it lives,
also after the socket is gone: 150 bytes a job, for ever, and a walk over all of them at the end.
"""

import os
from contextlib import suppress

from pyspark import SparkContext

from tsoffset.spark.jobs import SPARK_ERRORS

# No name of a file has it.
_BETWEEN = "\0"


def forget_gone_files(context: SparkContext) -> None:
    """Let Java forget the files that are not there any more; nothing happens where it does not let
    us, or is gone. Java must run on this machine, as it does for a driver."""
    with suppress(*SPARK_ERRORS):
        jvm = context._jvm
        assert jvm is not None
        # Spark opens java.io for reflection when it starts Java.
        field = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
        field.setAccessible(True)
        names = jvm.java.lang.String.join(_BETWEEN, field.get(None)).split(_BETWEEN)
        there = jvm.java.util.LinkedHashSet()
        for name in names:
            if os.path.lexists(name):
                there.add(name)
        # A name that comes in between is lost: that of a socket, most likely, which Spark deletes
        # itself, and with its folder we do.
        field.set(None, there)
