"""Runs the command `tsoffset` for `python -m tsoffset`, without modules from the working directory,
like the console script."""

import os
import sys

# Python puts the working directory first. A file in it, for example beside a configuration from
# somebody else, would be imported as a module of a library.
if not sys.flags.safe_path and sys.path[0] == os.getcwd():  # noqa: PTH109 (not loaded yet)
    del sys.path[0]

from tsoffset.cli.start import main

main()
