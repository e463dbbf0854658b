"""Where one group would resume with MirrorMaker 2's checkpoints and with tsoffset.

    python examples/beside_checkpoints.py mm2.properties billing

It reads both clusters in this process, writes nothing and starts no Spark. `tsoffset compare` does
the same for all groups, and checks each difference.
"""

import sys

import tsoffset


def main() -> None:
    config, group = sys.argv[1:3]
    checkpoints = {
        key.target: checkpoint.target_offset
        for key, checkpoint in tsoffset.read_checkpoints(config).items()
        if key.group == group
    }
    print(f"{'partition':<40} {'checkpoint':>12} {'tsoffset':>12} {'between':>12}")
    for partition, found in sorted(tsoffset.translate_offsets(config, group).items()):
        checkpoint = checkpoints.get(partition)
        between = "none" if checkpoint is None else str(found.offset - checkpoint)
        shown = "-" if checkpoint is None else str(checkpoint)
        print(f"{partition!s:<40} {shown:>12} {found.offset:>12} {between:>12}  {found.precision}")


if __name__ == "__main__":
    main()
