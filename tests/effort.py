"""How hard properties are tried: the same examples in every run, and others in a thorough one.

A run is repeatable: what Hypothesis tries depends on the test alone, no example has a time limit, and nothing is
remembered between runs. `make test-thorough` draws new examples, five times as many; it prints the seed that
`make test-thorough SEED=...` repeats.
"""

import os

from hypothesis import settings

__all__ = ["PROFILE", "THOROUGH", "examples"]

THOROUGH = os.environ.get("CULTUREKIT_THOROUGH") == "1"
"""Set by `make test-thorough`."""

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("thorough", deadline=None, derandomize=False, print_blob=True)
PROFILE = "thorough" if THOROUGH else "repeatable"


def examples(thorough: int) -> int:
    """Say how many of the examples of a thorough run are tried in this one."""
    return thorough if THOROUGH else max(thorough // 5, 6)
