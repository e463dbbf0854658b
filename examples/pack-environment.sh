#!/usr/bin/env bash
# Pack tsoffset and its packages into an archive for Spark's executors, for a cluster whose machines
# do not have them (docs/spark.md).
#
#   examples/pack-environment.sh [ARCHIVE]          (default: tsoffset-environment.tar.gz)
#
# Then, in the file that MirrorMaker 2 and tsoffset read:
#
#   spark.master = spark://spark-master:7077
#   spark.archives = /path/to/tsoffset-environment.tar.gz#environment
#   spark.pyspark.python = ./environment/bin/python
#
# It packs the environment of PYTHON (default: .venv of this checkout), so that driver and executors
# have the same versions, including your own filters and policies if they are installed there. The
# executors' machines need the same Python at the same path (the archive links to it), and Spark in
# the same version, which is not packed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
archive=${1:-tsoffset-environment.tar.gz}
python=${PYTHON:-$root/.venv/bin/python}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "pack the environment: $python is no Python 3.11 or later; run make setup, or set PYTHON" >&2
    exit 1
fi
if ! "$python" -c 'import kafka, pyarrow, pyspark, structlog'; then
    echo "pack the environment: $python lacks what tsoffset needs; run make setup, or set PYTHON" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

site_packages='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -m venv --without-pip "$work/environment"
from=$("$python" -c "$site_packages")
to=$("$work/environment/bin/python" -c "$site_packages")

# Leave out Spark's own programs, which the executors have, development tools, and the link to this
# checkout, whose package is copied instead.
tar -C "$from" -cf - \
    --exclude='__pycache__' \
    --exclude='./pyspark/jars' --exclude='./pyspark/examples' --exclude='./pyspark/data' \
    --exclude='./mypy*' --exclude='./*__mypyc*' --exclude='./ruff*' --exclude='./uv*' \
    --exclude='./pip' --exclude='./pip-*' --exclude='./setuptools*' \
    --exclude='./pytest*' --exclude='./_pytest' --exclude='./hypothesis*' \
    --exclude='./tsoffset' --exclude='./*tsoffset*.pth' --exclude='./__editable__*' \
    . | tar -C "$to" -xf -
tar -C "$root" -cf - --exclude='__pycache__' tsoffset | tar -C "$to" -xf -

# Test the imports of the executors, in another folder and without this checkout.
(cd / && env -i PATH="$PATH" "$work/environment/bin/python" -I -c 'import tsoffset.spark.dataflow, tsoffset.kafka.cluster')

# Moved when it is complete: a partial archive would be unpacked, too.
tar -C "$work/environment" -czf "$work/archive" .
mv "$work/archive" "$archive"
echo "$archive: $(du -h "$archive" | cut -f1)"
