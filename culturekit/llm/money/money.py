"""US dollars in whole picodollars: a token costs a whole number of these, so sums are exact."""

__all__ = ["PICO", "dollars", "picodollars"]

PICO = 10**12


def picodollars(usd: float) -> int:
    """Turn US dollars into whole picodollars."""
    return round(usd * PICO)


def dollars(amount: int) -> float:
    """Turn picodollars into US dollars."""
    return amount / PICO
