"""`python -m tsoffset`."""

from tsoffset.cli.main import main

main()
