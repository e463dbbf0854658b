#!/usr/bin/env bash
# Start the daemon, wait until it is ready, print its status, and stop it.
#
#   examples/daemon.sh mm2.properties
#
# For a permanent service: examples/systemd, examples/kubernetes, docs/deployment.md.
set -euo pipefail
config=$1
url=${TSOFFSET_URL:-http://127.0.0.1:8083}

"${TSOFFSET:-tsoffset}" run -c "$config" --log-format json &
daemon=$!
trap 'kill -TERM "$daemon" 2>/dev/null || true' EXIT

# Ready once a cycle of any flow has ended.
until curl --silent --fail "$url/readyz" >/dev/null; do
    kill -0 "$daemon" # fails if the daemon has ended; its log says why
    sleep 0.5
done
curl --silent --fail "$url/api/v1/flows"
echo
curl --silent --fail "$url/metrics" | grep "^tsoffset_flow_pairs"

# SIGTERM stops the daemon within ten seconds, with exit status 0.
trap - EXIT
kill -TERM "$daemon"
wait "$daemon"
