"""`python -m tsoffset`."""

from tsoffset.cli import main

main()
