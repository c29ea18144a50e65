"""The numbers that many places share: each stands here once, with its unit and its reason."""

__all__ = ["BATCH_SIZE", "CONFIDENCE"]

CONFIDENCE = 0.95
"""How often intervals are to hold the truth: what readers expect of an interval that says nothing else."""

BATCH_SIZE = 8
"""Images in a batch of which diversity is scored: CUBE asks for eight at a time."""
