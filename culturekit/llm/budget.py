"""A limit in dollars that is never passed: what a request may cost is set aside before it is sent."""

__all__ = ["Budget"]

SLACK = 1e-12


class Budget:
    """What may be spent; without a limit only what was spent is known."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        """Start with what earlier requests cost."""
        self.limit = limit
        self.spent = spent
        self.reserved = 0.0

    def reserve(self, usd: float) -> bool:
        """Set money aside, if there is enough."""
        if self.limit is not None and self.spent + self.reserved + usd > self.limit + SLACK:
            return False
        self.reserved += usd
        return True

    def settle(self, reserved: float, actual: float) -> None:
        """Give a reservation back and count what it really cost."""
        self.reserved -= reserved
        self.spent += actual
