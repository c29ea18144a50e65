"""How many examples a costly property is tried on: some in every run, all of them in a thorough one."""

import os

__all__ = ["THOROUGH", "examples"]

THOROUGH = os.environ.get("CULTUREKIT_THOROUGH") == "1"
"""Set by `make test-thorough`."""


def examples(thorough: int) -> int:
    """Say how many of the examples of a thorough run are tried in this one."""
    return thorough if THOROUGH else max(thorough // 5, 6)
