"""Scores recomputed from the values behind them, by their formulas alone."""
