"""`python -m tsoffset`: as `tsoffset`, which takes no module from the working directory."""

import sys
from pathlib import Path

# Python puts it first; a file in it, such as one beside a configuration that somebody has sent,
# would be taken for a module of a library.
if not sys.flags.safe_path and sys.path[0] == str(Path.cwd()):
    del sys.path[0]

from tsoffset.cli.main import main

main()
