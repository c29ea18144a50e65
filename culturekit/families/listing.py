"""Where each family of scores is; it is imported when somebody asks for it."""

__all__ = ["FAMILIES"]

FAMILIES = {
    "c3": "culturekit.families.c3:C3",
    "gaps": "culturekit.families.gaps:GAPS",
    "pairs": "culturekit.families.spread:PAIRS",
    "spread": "culturekit.families.spread:SPREAD",
}
"""The families by the names of their commands."""
