#!/usr/bin/env bash
# Build the image `tsoffset` and try it, with docker, podman or buildah. BASE in the environment takes
# the place of the Dockerfile's base image; EXTRAS (demo,report) names extras to install.
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
# Their own format has no health check, and they look for the file of what to ignore elsewhere.
[ "$engine" = docker ] || options+=(--format docker --ignorefile docker/Dockerfile.dockerignore)
"$engine" build "${options[@]}" .

# With the user of the image, and with one that it has no name for.
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
