#!/bin/sh
# Remove about 240 MB that tsoffset does not load from a Python environment with tsoffset: the packages'
# own tests, and Spark's jars for Hive, MLlib, Connect and streaming state. Not for an environment in
# which other programs use Spark.
#
#   docker/slim.sh /opt/tsoffset
set -eu
packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
find "$packages" -type d \( -name tests -o -name connect-repl \) -prune -exec rm -r {} +
find "$packages/pyspark/jars" -regextype egrep -regex \
    '.*/(rocksdbjni|spark-(connect|hive|mllib)|hive-(exec|metastore)|datanucleus|derby|breeze|spire|cats-kernel|algebra).*' \
    -delete
