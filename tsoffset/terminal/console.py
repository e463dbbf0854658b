"""rich's console for readers that may go away."""

import os
from contextlib import suppress

from rich.console import Console


class SteadyConsole(Console):
    """A plain console of rich's, where a reader that goes away (`| head`) ends the printing.

    rich itself would end the process. `quiet` is true from then on.
    """

    def on_broken_pipe(self) -> None:
        """Drop what is still buffered, or the interpreter's last flush would fail."""
        self.quiet = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)
