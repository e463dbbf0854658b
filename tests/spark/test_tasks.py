"""What a worker does before its first task."""

import platform
import sys

import pytest

from tests.invoking import succeeds

# In a process of its own, which it changes for good.
_FAULTS_OF_LATER_TASKS = """
import resource
from tsoffset.spark.tasks import keep_freed_memory

def faults_of_a_task():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    columns = [bytearray(4_000_000) for _ in range(20)]
    del columns
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
faults_of_a_task()
print(sum(faults_of_a_task() for _ in range(9)) * resource.getpagesize())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_used_again():
    """What a task has freed is not fetched from the system again, page by page, by the next one."""
    assert int(succeeds(sys.executable, "-c", _FAULTS_OF_LATER_TASKS)) < 80_000_000
