"""The start of the program, which loads the commands when Ctrl-C is already handled."""

from tsoffset.terminal.interrupts import exit_on_interrupt


def main() -> None:
    """Run the console script."""
    exit_on_interrupt()
    from tsoffset.cli.main import main

    main()
