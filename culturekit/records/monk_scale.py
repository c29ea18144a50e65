"""The published swatches of the Monk scale."""

__all__ = ["MONK_SWATCHES"]

MONK_SWATCHES = ("f6ede4", "f3e7db", "f7ead0", "eadaba", "d7bd96", "a07e56", "825c43", "604134", "3a312a", "292420")
"""sRGB as hexadecimal digits, the lightest tone first."""
