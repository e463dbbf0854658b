#!/usr/bin/env bash
# The half of a migration that changes nothing: our configuration made of MirrorMaker 2's, a look at
# both clusters, a plan, and MirrorMaker 2's checkpoints compared with tsoffset's translations.
#
#   examples/migrate.sh mm2.properties tsoffset.properties
#
# Ends at the first command that is not content. What comes then, and what takes it back, is in the
# file of steps; docs/migration.md walks through it.
set -euo pipefail
mm2=$1 tsoffset_file=$2
tsoffset=${TSOFFSET:-tsoffset}

"$tsoffset" migrate "$mm2" -o "$tsoffset_file" >"$tsoffset_file.steps"
"$tsoffset" check -c "$tsoffset_file"
"$tsoffset" plan -c "$tsoffset_file"
"$tsoffset" compare -c "$tsoffset_file"
echo "nothing was changed; go on with step 4 of $tsoffset_file.steps"
