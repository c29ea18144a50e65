"""How hard properties and kills are tried: the same in every run, and others and more in a thorough one.

A run is repeatable: what Hypothesis tries depends on the test alone, no example has a time limit, and nothing is
remembered between runs. `make test-thorough` draws new examples, five times as many; it prints the seed that
`make test-thorough SEED=...` repeats.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

THOROUGH = os.environ.get("CULTUREKIT_THOROUGH") == "1"  # Set by `make test-thorough`

if not THOROUGH and hasattr(providers, "_get_local_constants"):
    # Hypothesis tries constants of all modules that are loaded, so that examples would depend on the tests before them.
    NO_CONSTANTS = providers._local_constants
    providers._get_local_constants = lambda: NO_CONSTANTS

UNTIMED = [HealthCheck.too_slow]  # Whether examples are made fast enough depends on the machine

settings.register_profile(
    "repeatable", max_examples=50, deadline=None, suppress_health_check=UNTIMED, derandomize=True, database=None,
    print_blob=True,
)  # fmt: skip
settings.register_profile(
    "thorough", max_examples=250, deadline=None, suppress_health_check=UNTIMED, database=None, print_blob=True
)
# Suppressed where all examples of a property share what a fixture gives
SHARED_FIXTURE = [*UNTIMED, HealthCheck.function_scoped_fixture]

PROFILE = "thorough" if THOROUGH else "repeatable"


def examples(thorough: int) -> int:
    """Say how many of the examples or kills of a thorough run are tried in this one."""
    return thorough if THOROUGH else max(thorough // 5, 6)
