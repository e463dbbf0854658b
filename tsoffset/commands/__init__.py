"""What the commands of `tsoffset` do, one module each; `tsoffset.cli` has their words."""
