"""The numbers that many places share: each stands here once, with its unit and its reason."""

__all__ = ["BATCH_SIZE", "CONFIDENCE", "PERMUTATIONS", "RESAMPLES"]

CONFIDENCE = 0.95
"""How often intervals are to hold the truth: what readers expect of an interval that says nothing else."""

BATCH_SIZE = 8
"""Images in a batch of which diversity is scored: CUBE asks for eight at a time."""

PERMUTATIONS = 9999
"""Draws of a permutation test: p values reach down to one in ten thousand."""

RESAMPLES = 2000
"""Draws of a bootstrap where each is costly: limits are then known to about a hundredth of their distance."""
