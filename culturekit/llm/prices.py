"""What tokens cost."""

from culturekit.llm.client import Identity, Rate

__all__ = ["parse_price", "rate_of"]


def rate_of(identity: Identity) -> Rate | None:
    """Find the price of a model."""
    return None


def parse_price(text: str) -> Rate:
    """Read a price such as `0.15/0.60`."""
    inward, _, outward = text.partition("/")
    return Rate(float(inward), float(outward), source="stated in the SPEC")
