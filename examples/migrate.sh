#!/usr/bin/env bash
# The half of a migration that changes nothing: our configuration made of MirrorMaker 2's, a look at
# both clusters, a plan, and MirrorMaker 2's checkpoints beside our translations.
#
#   examples/migrate.sh mm2.properties tsoffset.properties
#
# Ends at the first command that is not content. What comes then, and what takes it back, is in the
# file of steps; docs/migration.md walks through it.
set -euo pipefail
theirs=$1 ours=$2
tsoffset=${TSOFFSET:-tsoffset}

"$tsoffset" migrate "$theirs" -o "$ours" >"$ours.steps"
"$tsoffset" check -c "$ours"
"$tsoffset" plan -c "$ours"
"$tsoffset" compare -c "$ours"
echo "nothing was changed; go on with step 4 of $ours.steps"
