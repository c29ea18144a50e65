"""Money in whole numbers, and a budget that cannot be overshot: the worst case is set aside before a request leaves."""

from culturekit.errors import UsageError

__all__ = ["Budget", "dollars", "picodollars"]

PICO = 10**12


def picodollars(usd: float) -> int:
    """Turn US dollars into whole picodollars."""
    return round(usd * PICO)


def dollars(amount: int) -> float:
    """Turn picodollars into US dollars."""
    return amount / PICO


class Budget:
    """Money that is allowed, spent, and set aside for requests that are under way.

    It reckons in whole picodollars, so that a million small sums add up to exactly what they are.
    """

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        """Begin with what earlier runs have spent already; without a limit everything is granted and counted."""
        if limit is not None and not 0 <= limit < float("inf"):
            raise UsageError("a budget is an amount of US dollars", expected="0 or more", found=str(limit))
        self.limit = None if limit is None else picodollars(limit)
        self.used = picodollars(spent)
        self.aside = 0

    def reserve(self, usd: float) -> bool:
        """Set the worst case of a request aside; False means that it must not be sent."""
        wanted = picodollars(usd)
        if self.limit is not None and self.used + self.aside + wanted > self.limit:
            return False
        self.aside += wanted
        return True

    def settle(self, reserved: float, actual: float) -> None:
        """Replace what was set aside by what it cost; for a reply that never came that may still be all of it."""
        self.aside -= picodollars(reserved)
        self.used += picodollars(actual)

    @property
    def spent(self) -> float:
        """US dollars spent."""
        return dollars(self.used)

    @property
    def reserved(self) -> float:
        """US dollars set aside for requests under way."""
        return dollars(self.aside)

    @property
    def left(self) -> float | None:
        """US dollars that may still be set aside; None without a limit."""
        return None if self.limit is None else dollars(self.limit - self.used - self.aside)
