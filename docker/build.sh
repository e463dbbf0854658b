#!/usr/bin/env bash
# Build the image `tsoffset` and test it, with docker, podman or buildah. The environment variable BASE
# replaces the Dockerfile's base image; EXTRAS (lab,report) names extras to install.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for engine in docker podman buildah ""; do
    if [ -z "$engine" ]; then
        echo "No container engine answers here. Install docker, podman or buildah; docker also needs its daemon (see: docker info)." >&2
        exit 1
    fi
    "$engine" info &>/dev/null && break
done

options=(--file docker/Dockerfile --tag tsoffset ${BASE:+--build-arg "BASE=$BASE"})
[ -z "${EXTRAS:-}" ] || options+=(--build-arg LOCK=extras.lock --build-arg "EXTRAS=[$EXTRAS]")
options+=(--build-arg "VERSION=$(sed -nE 's/^__version__ = "(.*)"/\1/p' tsoffset/version.py)")
options+=(--build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)")
# The default format of podman and buildah has no health check, and they expect the ignore file elsewhere.
[ "$engine" = docker ] || options+=(--format docker --ignorefile docker/Dockerfile.dockerignore)
"$engine" build "${options[@]}" .

# As the image's user, and as a user id that has no name in the image.
job='from tsoffset.history.views import map_in_arrow
from tsoffset.spark.session import spark_session
with spark_session({"spark.master": "local[1]"}) as spark:
    print("rows from Spark:", map_in_arrow(spark.range(3), lambda batches: batches, "id long").count())'
for user in 10001:10001 54321:0; do
    echo "user $user:"
    if [ "$engine" = buildah ]; then
        container=$(buildah from tsoffset)
        trap 'buildah rm "$container" >/dev/null' EXIT
        buildah run --user "$user" "$container" -- python -c "$job"
        buildah rm "$container" >/dev/null
        trap - EXIT
    else
        "$engine" run --rm --read-only --tmpfs /tmp:exec --user "$user" --entrypoint python tsoffset -c "$job"
    fi
done
echo "The image tsoffset is built and runs Spark. Start it: docker/README.md"
