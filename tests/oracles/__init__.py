"""Formulas of scores written a second time, sharing no line with the metrics: what these score, tests score again."""
