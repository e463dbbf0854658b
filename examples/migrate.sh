#!/usr/bin/env bash
# The steps of a migration that change nothing: convert MirrorMaker 2's configuration, check both
# clusters, plan, and compare MirrorMaker 2's checkpoints with tsoffset's translations.
#
#   examples/migrate.sh mm2.properties tsoffset.properties
#
# It stops at the first command that reports a problem. The file tsoffset.properties.steps has the next
# steps, and how to undo each; docs/migration.md explains them.
set -euo pipefail
mm2=$1 tsoffset_file=$2
tsoffset=${TSOFFSET:-tsoffset}

steps=$("$tsoffset" migrate "$mm2" -o "$tsoffset_file")
echo "$steps" >"$tsoffset_file.steps"
"$tsoffset" check -c "$tsoffset_file"
"$tsoffset" plan -c "$tsoffset_file"
"$tsoffset" compare -c "$tsoffset_file"
next=$(grep -m 1 -E '^[0-9]+\. Switch' "$tsoffset_file.steps")
echo "nothing was changed; go on in $tsoffset_file.steps with: $next"
