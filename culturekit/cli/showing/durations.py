"""Times and rates as people read them."""


def duration(seconds: float) -> str:
    """Write a time in the unit that fits."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def rate_text(rate: float) -> str:
    """Write a speed in the unit that fits."""
    if rate >= 1.0:
        return f"{rate:,.0f}/s"
    return f"{rate * 60.0:.0f}/min" if rate * 60.0 >= 1.0 else f"{rate * 3600.0:.0f}/h"
