"""How many random examples a property gets."""

import os

# TSOFFSET_EXAMPLES: less than 1 in `make test` and `make test-fast`, more in `make test-long`.
_FACTOR = float(os.environ.get("TSOFFSET_EXAMPLES", "1"))


def scaled(usual: int) -> int:
    """So many of `usual` as this run has time for, and at least one."""
    return max(1, round(usual * _FACTOR))


# Histories of many cycles each: a minute for twenty.
MANY = min(100, scaled(100))
