"""Where one group would resume after a failover: by MirrorMaker 2's checkpoints, and by us.

    python examples/beside_checkpoints.py mm2.properties billing

Asks both clusters from this process, writes nothing and starts no Spark. `tsoffset compare` does
the same for all groups, and proves what it says.
"""

import sys

import tsoffset


def main() -> None:
    config, group = sys.argv[1:3]
    theirs = {
        key.target: checkpoint.target_offset
        for key, checkpoint in tsoffset.read_checkpoints(config).items()
        if key.group == group
    }
    print(f"{'partition':<40} {'checkpoint':>12} {'tsoffset':>12} {'between':>12}")
    for partition, ours in sorted(tsoffset.translate_offsets(config, group).items()):
        checkpoint = theirs.get(partition)
        between = "none" if checkpoint is None else str(ours.offset - checkpoint)
        shown = "-" if checkpoint is None else str(checkpoint)
        print(f"{partition!s:<40} {shown:>12} {ours.offset:>12} {between:>12}  {ours.precision}")


if __name__ == "__main__":
    main()
