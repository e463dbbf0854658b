"""What a worker does before its first task."""

import platform
import resource

import pytest

from tsoffset.spark.tasks import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_used_again():
    """What a task has freed is not fetched from the system again, page by page, by the next one."""
    keep_freed_memory()

    def faults_of_a_task() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        columns = [bytearray(4_000_000) for _ in range(20)]
        del columns
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults_of_a_task()
    later = [faults_of_a_task() for _ in range(9)]
    assert sum(later) < 80_000_000 // resource.getpagesize()
